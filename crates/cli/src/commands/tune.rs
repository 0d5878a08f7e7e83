//! `warpline tune FAMILY`, `warpline tune --suite SUITE`.

use crate::answer::Answer;
use crate::args::fields::request;
use crate::args::tune::TuneArgs;
use crate::errors::{Failure, known};
use crate::progress::Bar;
use crate::raced;
use clap::{ArgMatches, FromArgMatches};
use warpline::bench::suite;
use warpline::{Device, TuneOptions, tune};
use warpline_kernels::{AnyFamily, AnyWork, Place};

/// Tunes one family at the problem that the arguments ask for.
pub(crate) fn family(family: &dyn AnyFamily, matches: &ArgMatches) -> Result<Answer, Failure> {
    let asked = Asked::new(matches)?;
    let work = family.work(
        &request(family, matches),
        Place::Gpu,
        None,
        &asked.device.target(),
    )?;
    asked.tune(&[work])
}

/// Tunes what families state for a suite.
pub(crate) fn unnamed(
    families: &[&dyn AnyFamily],
    matches: &ArgMatches,
) -> Result<Answer, Failure> {
    let Some(name) = matches.get_one::<String>("suite") else {
        let known = known(families);
        let text = format!("a family must be named, or --suite given: {known}");
        return Err(Failure::input("no-family", text));
    };
    let asked = Asked::new(matches)?;
    let target = asked.device.target();
    let mut works = Vec::new();
    for suite in suite::names(families) {
        if [suite, suite::ALL].contains(&name.as_str()) {
            for family in families {
                works.extend(family.bench(suite, &target)?);
            }
        }
    }
    if works.is_empty() {
        let text = format!("no family states a problem for the suite {name:?}");
        return Err(Failure::input("unknown-suite", text));
    }
    asked.tune(&works)
}

/// What the options ask for.
struct Asked {
    args: TuneArgs,
    device: Device,
    /// Why nothing is measured, if so.
    dry: Option<String>,
}

impl Asked {
    fn new(matches: &ArgMatches) -> Result<Self, Failure> {
        let args = TuneArgs::from_arg_matches(matches)
            .map_err(|e| Failure::input("bad-usage", e.to_string()))?;
        let (device, reason) = super::device(&args.device)?;
        let dry = match (args.dry_run, device.is_simulator(), reason) {
            (true, ..) => Some("--dry-run was given".into()),
            (_, false, _) => None,
            (_, _, Some(why)) => Some(format!("no GPU can be used here: {why}")),
            (_, _, None) => Some("the device named is the simulator".into()),
        };
        Ok(Self { args, device, dry })
    }

    fn tune(&self, works: &[Box<dyn AnyWork>]) -> Result<Answer, Failure> {
        let mut options = TuneOptions::default();
        options.seed = self.args.seed;
        options.again = self.args.again;
        options.deterministic = !self.args.nondeterministic;
        if let Some(most) = self.args.candidates {
            options.most = most.get() as usize;
        }
        match &self.dry {
            Some(why) => self.rank(works, &options, why),
            None => self.measure(works, options),
        }
    }

    /// Ranks without measuring, and says so.
    fn rank(
        &self,
        works: &[Box<dyn AnyWork>],
        options: &TuneOptions,
        why: &str,
    ) -> Result<Answer, Failure> {
        let mut all = Vec::new();
        for work in works {
            all.push(tune::rank(work.as_ref(), &self.device.target(), options)?);
        }
        let mut text: String = all.iter().map(raced::ranking).collect();
        text += &format!("Nothing was measured, and nothing is remembered: {why}.\n");
        Ok(Answer::new("tune", text)
            .field("measured", false)
            .field("why_not", why)
            .field("rankings", all))
    }

    fn measure(
        &self,
        works: &[Box<dyn AnyWork>],
        mut options: TuneOptions,
    ) -> Result<Answer, Failure> {
        let bar = Bar::new();
        let (mut all, mut text) = (Vec::new(), String::new());
        for (i, work) in works.iter().enumerate() {
            options.progress = Some(bar.tuning(i, works.len(), work.family()));
            let tuned = tune::tune(work.as_ref(), &self.device, &options)?;
            text += &raced::tuned(&tuned);
            all.push(tuned);
        }
        drop(bar);
        Ok(Answer::new("tune", text)
            .field("measured", true)
            .field("tuned", all))
    }
}
