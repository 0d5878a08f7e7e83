//! What a child can be asked to run.

use crate::cached_reference::CachedReference;
use crate::child::Answer;
use crate::ops::{self, Amount};
use crate::trial::Trial;
use crate::vectors::Vector;
use crate::works::{self, Named, Part};
use crate::{gpu, hangs, mutants, runtime};
use anyhow::{Context as _, Result, bail};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use warpline::{Build, Device, RunOptions};
use warpline_cpu::Options;

/// A kind of case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Trials of ops, against the CPU.
    Ops,
    /// Trials of ops on few data, written to a folder.
    Record(PathBuf),
    /// Works with bounded waits.
    Watchdog,
    /// Works as they are shipped.
    Final,
    /// What the runtime promises.
    Runtime,
    /// Kernels that hang.
    Hangs,
    /// Mutants that the checker calls deadlocks.
    Mutants,
}

impl Kind {
    /// As arguments of a child.
    pub fn args(&self) -> Vec<std::ffi::OsString> {
        match self {
            Kind::Ops => vec!["ops".into()],
            Kind::Record(folder) => vec!["record".into(), folder.into()],
            Kind::Watchdog => vec!["watchdog".into()],
            Kind::Final => vec!["final".into()],
            Kind::Runtime => vec!["runtime".into()],
            Kind::Hangs => vec!["hangs".into()],
            Kind::Mutants => vec!["mutants".into()],
        }
    }

    /// From arguments.
    pub fn parse(args: &[std::ffi::OsString]) -> Result<Self> {
        let words: Vec<_> = args.iter().map(|a| a.to_string_lossy()).collect();
        Ok(
            match words.iter().map(AsRef::as_ref).collect::<Vec<_>>()[..] {
                ["ops"] => Kind::Ops,
                ["record", _] => Kind::Record(PathBuf::from(&args[1])),
                ["watchdog"] => Kind::Watchdog,
                ["final"] => Kind::Final,
                ["runtime"] => Kind::Runtime,
                ["hangs"] => Kind::Hangs,
                ["mutants"] => Kind::Mutants,
                _ => bail!(
                    "a child is ops, record FOLDER, watchdog, final, runtime, hangs or mutants, not {words:?}"
                ),
            },
        )
    }

    /// How long one case may take before it counts as hung.
    pub fn limit(&self) -> Duration {
        Duration::from_secs(match self {
            Kind::Ops | Kind::Record(_) | Kind::Hangs | Kind::Mutants => 60,
            Kind::Watchdog | Kind::Final | Kind::Runtime => 180,
        })
    }
}

/// The cases of a kind, on a device.
pub struct Case {
    kind: Kind,
    device: Device,
    trials: Vec<Trial>,
    works: Vec<Named>,
    cache: Mutex<CachedReference>,
}

impl Case {
    /// Opens the device and builds what the kind needs.
    pub fn open(kind: &Kind) -> Result<Self> {
        let device = gpu::device()?;
        let trials = match kind {
            Kind::Ops => ops::all(Amount::Full),
            Kind::Record(_) => ops::all(Amount::Recorded),
            _ => vec![],
        };
        let works = match kind {
            Kind::Watchdog | Kind::Final => works::all(&device.target())?,
            _ => vec![],
        };
        Ok(Self {
            kind: kind.clone(),
            device,
            trials,
            works,
            cache: Mutex::default(),
        })
    }

    /// Runs a case by its name.
    pub fn run(&self, name: &str) -> Answer {
        let answer = match &self.kind {
            Kind::Ops => self.trial(name).and_then(|t| self.on_both(t, None)),
            Kind::Record(folder) => {
                let trial = self.trial(name);
                trial.and_then(|t| self.on_both(t, Some(folder)))
            }
            Kind::Watchdog => self
                .work(name)
                .and_then(|w| self.compare(w, Build::Watchdog)),
            Kind::Final => self.work(name).and_then(|w| self.compare(w, Build::Final)),
            Kind::Runtime => runtime::run(name, &self.device),
            Kind::Hangs => hangs::run(name, &self.device),
            Kind::Mutants => mutants::run(name, &self.device),
        };
        answer.unwrap_or_else(|why| Answer::failure(format!("{why:#}")))
    }

    fn trial(&self, name: &str) -> Result<&Trial> {
        let found = self.trials.iter().find(|t| t.name == name);
        found.with_context(|| format!("there is no trial {name:?}"))
    }

    fn work(&self, name: &str) -> Result<&Named> {
        let found = self.works.iter().find(|w| w.name == name);
        found.with_context(|| format!("there is no work {name:?}"))
    }

    /// The GPU's results against the CPU's; kept in a folder if there is one and they are right.
    fn on_both(&self, trial: &Trial, record: Option<&Path>) -> Result<Answer> {
        let expected = trial.on_the_cpu(&Options::default());
        let expected = expected.map_err(anyhow::Error::msg)?;
        let outputs = gpu::run(trial, &self.device)?;
        if let Err(why) = trial.compare(&trial.inputs, &expected, &outputs) {
            return Ok(Answer::wrong(why));
        }
        if let Some(folder) = record {
            let vector = Vector {
                device: self.device.info().description,
                inputs: trial.inputs.clone(),
                outputs,
            };
            vector.write(folder, &trial.name)?;
        }
        Ok(Answer::default())
    }

    /// A work against its float64 reference; its outputs are poisoned before.
    fn compare(&self, named: &Named, build: Build) -> Result<Answer> {
        let mut options = RunOptions::default();
        options.build = build;
        options.timeout = Duration::from_secs(30);
        // What the driver's compiler remarks on is an error here.
        options.strict = build == Build::Final;
        if named.part != Part::Large {
            options.repeat = NonZeroU32::new(2);
        }
        let work = named.work.as_ref();
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        options.data = Some(cache.data(work, options.seed));
        let outcome = warpline::run(work, &self.device, &options)?;
        if !outcome.passed() {
            return Ok(Answer::wrong(format!("{:#?}", outcome.outputs)));
        }
        let seconds = outcome.times.median_s;
        Ok(Answer {
            note: Some(format!(
                "{:.1} µs, {:.1} GB/s, {:.1} TFLOP/s",
                seconds * 1e6,
                outcome.cost.bytes / seconds / 1e9,
                outcome.cost.flops / seconds / 1e12
            )),
            kernels: (outcome.kernels.into_iter())
                .map(|k| (k.name, k.hash))
                .collect(),
            ..Answer::default()
        })
    }
}
