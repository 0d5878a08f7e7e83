//! The test groups, and the runner of a group in a child process.

use crate::cached_reference::CachedReference;
use crate::child::CaseResult;
use crate::ops::{self, DataSize};
use crate::trial::OpTrial;
use crate::vectors::TestVector;
use crate::workloads::{self, NamedWorkload, WorkloadKind};
use crate::{gpu, hangs, mutants, runtime};
use anyhow::{Context as _, Result, bail};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use warpline::{Build, Device, RunOptions};
use warpline_cpu::Options;

/// A group of tests.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TestGroup {
    /// Op trials, compared with the CPU.
    Ops,
    /// Op trials on small data, written to a directory.
    Record(PathBuf),
    /// Workloads in the watchdog build.
    Watchdog,
    /// Workloads in the final build.
    Final,
    /// Guarantees of the runtime.
    Runtime,
    /// Kernels that hang.
    Hangs,
    /// Mutants that the checker refutes as deadlocks.
    Mutants,
}

impl TestGroup {
    /// Returns the arguments of a child process.
    pub fn args(&self) -> Vec<std::ffi::OsString> {
        match self {
            TestGroup::Ops => vec!["ops".into()],
            TestGroup::Record(folder) => vec!["record".into(), folder.into()],
            TestGroup::Watchdog => vec!["watchdog".into()],
            TestGroup::Final => vec!["final".into()],
            TestGroup::Runtime => vec!["runtime".into()],
            TestGroup::Hangs => vec!["hangs".into()],
            TestGroup::Mutants => vec!["mutants".into()],
        }
    }

    /// Parses the arguments of a child process.
    pub fn parse(args: &[std::ffi::OsString]) -> Result<Self> {
        let words: Vec<_> = args.iter().map(|a| a.to_string_lossy()).collect();
        Ok(
            match words.iter().map(AsRef::as_ref).collect::<Vec<_>>()[..] {
                ["ops"] => TestGroup::Ops,
                ["record", _] => TestGroup::Record(PathBuf::from(&args[1])),
                ["watchdog"] => TestGroup::Watchdog,
                ["final"] => TestGroup::Final,
                ["runtime"] => TestGroup::Runtime,
                ["hangs"] => TestGroup::Hangs,
                ["mutants"] => TestGroup::Mutants,
                _ => bail!(
                    "unknown test group {words:?}: use ops, record DIR, watchdog, final, runtime, hangs or mutants"
                ),
            },
        )
    }

    /// Returns the time limit of one test.
    pub fn limit(&self) -> Duration {
        Duration::from_secs(match self {
            TestGroup::Ops | TestGroup::Record(_) | TestGroup::Hangs | TestGroup::Mutants => 60,
            TestGroup::Watchdog | TestGroup::Final | TestGroup::Runtime => 180,
        })
    }
}

/// Runs the tests of a group on a device.
pub struct TestRunner {
    group: TestGroup,
    device: Device,
    trials: Vec<OpTrial>,
    workloads: Vec<NamedWorkload>,
    cache: Mutex<CachedReference>,
}

impl TestRunner {
    /// Opens the device and builds the trials or workloads of the group.
    pub fn open(group: &TestGroup) -> Result<Self> {
        let device = gpu::device()?;
        let trials = match group {
            TestGroup::Ops => ops::all(DataSize::Full),
            TestGroup::Record(_) => ops::all(DataSize::Recorded),
            _ => vec![],
        };
        let workloads = match group {
            TestGroup::Watchdog | TestGroup::Final => workloads::all(&device.target())?,
            _ => vec![],
        };
        Ok(Self {
            group: group.clone(),
            device,
            trials,
            workloads,
            cache: Mutex::default(),
        })
    }

    /// Runs a test by its name.
    pub fn run(&self, name: &str) -> CaseResult {
        let result = match &self.group {
            TestGroup::Ops => self.trial(name).and_then(|t| self.run_on_both(t, None)),
            TestGroup::Record(folder) => {
                let trial = self.trial(name);
                trial.and_then(|t| self.run_on_both(t, Some(folder)))
            }
            TestGroup::Watchdog => self
                .workload(name)
                .and_then(|w| self.run_workload(w, Build::Watchdog)),
            TestGroup::Final => self
                .workload(name)
                .and_then(|w| self.run_workload(w, Build::Final)),
            TestGroup::Runtime => runtime::run(name, &self.device),
            TestGroup::Hangs => hangs::run(name, &self.device),
            TestGroup::Mutants => mutants::run(name, &self.device),
        };
        result.unwrap_or_else(|why| CaseResult::failure(format!("{why:#}")))
    }

    fn trial(&self, name: &str) -> Result<&OpTrial> {
        let found = self.trials.iter().find(|t| t.name == name);
        found.with_context(|| format!("unknown op trial {name:?}"))
    }

    fn workload(&self, name: &str) -> Result<&NamedWorkload> {
        let found = self.workloads.iter().find(|w| w.name == name);
        found.with_context(|| format!("unknown workload {name:?}"))
    }

    /// Compares the results of the GPU and the CPU; writes passing results to `record`.
    fn run_on_both(&self, trial: &OpTrial, record: Option<&Path>) -> Result<CaseResult> {
        let expected = trial.run_on_cpu(&Options::default());
        let expected = expected.map_err(anyhow::Error::msg)?;
        let outputs = gpu::run(trial, &self.device)?;
        if let Err(why) = trial.compare(&trial.inputs, &expected, &outputs) {
            return Ok(CaseResult::mismatch(why));
        }
        if let Some(folder) = record {
            let vector = TestVector {
                device: self.device.info().description,
                inputs: trial.inputs.clone(),
                outputs,
            };
            vector.write(folder, &trial.name)?;
        }
        Ok(CaseResult::default())
    }

    /// Compares a workload with its float64 reference; the outputs are poisoned before the run.
    fn run_workload(&self, named: &NamedWorkload, build: Build) -> Result<CaseResult> {
        let mut options = RunOptions::default();
        options.build = build;
        options.timeout = Duration::from_secs(30);
        // Advisories of the driver's compiler are errors.
        options.strict = build == Build::Final;
        if named.kind != WorkloadKind::Large {
            options.repeat = NonZeroU32::new(2);
        }
        let workload = named.workload.as_ref();
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        options.data = Some(cache.data(workload, options.seed));
        let outcome = warpline::run(workload, &self.device, &options)?;
        if !outcome.passed() {
            return Ok(CaseResult::mismatch(format!("{:#?}", outcome.outputs)));
        }
        let seconds = outcome.times.median_s;
        Ok(CaseResult {
            note: Some(format!(
                "{:.1} µs, {:.1} GB/s, {:.1} TFLOP/s",
                seconds * 1e6,
                outcome.cost.bytes / seconds / 1e9,
                outcome.cost.flops / seconds / 1e12
            )),
            kernels: (outcome.kernels.into_iter())
                .map(|k| (k.name, k.hash))
                .collect(),
            ..CaseResult::default()
        })
    }
}
