//! `warpline tune FAMILY`, `warpline tune --suite SUITE`.

use crate::args::fields::request;
use crate::args::tune::TuneArgs;
use crate::errors::{Failure, family_names};
use crate::output::CommandOutput;
use crate::progress::Bar;
use crate::tune_report;
use clap::{ArgMatches, FromArgMatches};
use warpline::bench::suite;
use warpline::{Device, TuneOptions, tune};
use warpline_kernels::{AnyFamily, AnyWorkload, DeviceKind};

/// Autotunes one family at the problem of the command line.
pub(crate) fn family(
    family: &dyn AnyFamily,
    matches: &ArgMatches,
) -> Result<CommandOutput, Failure> {
    let tuning = TuneRequest::new(matches)?;
    let work = family.workload(
        &request(family, matches),
        DeviceKind::Gpu,
        None,
        &tuning.device.target(),
    )?;
    tuning.tune(&[work])
}

/// Autotunes every problem of a suite.
pub(crate) fn without_family(
    families: &[&dyn AnyFamily],
    matches: &ArgMatches,
) -> Result<CommandOutput, Failure> {
    let Some(name) = matches.get_one::<String>("suite") else {
        let names = family_names(families);
        let text = format!("missing FAMILY or --suite; the families are: {names}");
        return Err(Failure::bad_input("no-family", text));
    };
    let tuning = TuneRequest::new(matches)?;
    let target = tuning.device.target();
    let mut works = Vec::new();
    for suite in suite::names(families) {
        if [suite, suite::ALL].contains(&name.as_str()) {
            for family in families {
                works.extend(family.bench(suite, &target)?);
            }
        }
    }
    if works.is_empty() {
        let text = format!("no family has a problem in the suite {name:?}");
        return Err(Failure::bad_input("unknown-suite", text));
    }
    tuning.tune(&works)
}

/// The options of `tune` and the device.
struct TuneRequest {
    args: TuneArgs,
    device: Device,
    /// The reason that nothing is measured; none if the candidates are measured.
    dry_run_reason: Option<String>,
}

impl TuneRequest {
    fn new(matches: &ArgMatches) -> Result<Self, Failure> {
        let args = TuneArgs::from_arg_matches(matches)
            .map_err(|e| Failure::bad_input("bad-usage", e.to_string()))?;
        let (device, reason) = super::device(&args.device)?;
        let dry_run_reason = match (args.dry_run, device.is_cpu(), reason) {
            (true, ..) => Some("--dry-run".into()),
            (_, false, _) => None,
            (_, _, Some(why)) => Some(format!("no GPU is usable: {why}")),
            (_, _, None) => Some("the selected device is the CPU executor".into()),
        };
        Ok(Self {
            args,
            device,
            dry_run_reason,
        })
    }

    fn tune(&self, works: &[Box<dyn AnyWorkload>]) -> Result<CommandOutput, Failure> {
        let mut options = TuneOptions::default();
        options.seed = self.args.seed;
        options.retune = self.args.again;
        options.deterministic = !self.args.nondeterministic;
        if let Some(max) = self.args.candidates {
            options.max_candidates = max.get() as usize;
        }
        match &self.dry_run_reason {
            Some(why) => self.rank(works, &options, why),
            None => self.measure(works, options),
        }
    }

    /// Lists the candidates in the heuristic's order without measuring them.
    fn rank(
        &self,
        works: &[Box<dyn AnyWorkload>],
        options: &TuneOptions,
        why: &str,
    ) -> Result<CommandOutput, Failure> {
        let mut all = Vec::new();
        for work in works {
            all.push(tune::rank(work.as_ref(), &self.device.target(), options)?);
        }
        let mut text: String = all.iter().map(tune_report::ranking).collect();
        text += &format!("Nothing measured, nothing cached: {why}.\n");
        Ok(CommandOutput::new("tune", text)
            .field("measured", false)
            .field("why_not", why)
            .field("rankings", all))
    }

    fn measure(
        &self,
        works: &[Box<dyn AnyWorkload>],
        mut options: TuneOptions,
    ) -> Result<CommandOutput, Failure> {
        let bar = Bar::new();
        let (mut all, mut text) = (Vec::new(), String::new());
        for (i, work) in works.iter().enumerate() {
            options.progress = Some(bar.tune_listener(i, works.len(), work.family()));
            let tuned = tune::tune(work.as_ref(), &self.device, &options)?;
            text += &tune_report::tuned(&tuned);
            all.push(tuned);
        }
        drop(bar);
        Ok(CommandOutput::new("tune", text)
            .field("measured", true)
            .field("tuned", all))
    }
}
