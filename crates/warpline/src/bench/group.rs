//! Measurement of one group: build, draw inputs, check, time.

use super::candidate::{DeviceCopy, PlannedCandidate, Timed};
use super::check::Check;
use super::limits::RooflineBound;
use super::report::{BenchGroupReport, BenchRow, Measurement, NoiseEstimate};
use super::rounds::{MeasurementRounds, shuffled};
use super::statistics::Quartiles;
use super::suite::BenchGroup;
use super::tensors::BenchTensors;
use super::timer::Timer;
use super::{BenchOptions, MIN_ROUNDS};
use crate::device::Device;
use crate::error::Error;
use crate::gpu::LoadedPlan;
use crate::prepare::prepare_selected;
use std::time::{Duration, Instant};
use warpline_kernels::AnyWorkload;
use warpline_kernels::numbers::Random;

/// The minimum number of untimed rounds and their minimum duration. Clocks drop while the host
/// compares outputs.
const WARM_UP_ROUNDS: u32 = 5;
const WARM_UP_TIME: Duration = Duration::from_millis(200);
/// Sensors are read once in this many rounds. A reading takes longer than a short kernel, and the
/// GPU idles meanwhile.
const SENSOR_INTERVAL: usize = 4;

/// The state that all groups of a benchmark share.
pub(crate) struct BenchRunner<'a> {
    device: &'a Device,
    options: &'a BenchOptions,
    limit_gemm: Option<&'a dyn AnyWorkload>,
    timer: Timer,
    copy: DeviceCopy,
    /// The limit GEMM on the device; loaded for the first group that needs it.
    loaded_gemm: Option<(PlannedCandidate, BenchTensors)>,
    /// The reason why the limit GEMM is unavailable.
    no_gemm: Option<String>,
    random: Random,
}

/// A group whose candidates and tensors are on the device.
struct LoadedGroup {
    tensors: BenchTensors,
    /// The candidates that were built, each with the index of its row.
    planned: Vec<(usize, PlannedCandidate)>,
}

impl<'a> BenchRunner<'a> {
    pub(crate) fn new(
        device: &'a Device,
        limit_gemm: Option<&'a dyn AnyWorkload>,
        options: &'a BenchOptions,
    ) -> Result<Self, Error> {
        let timer = Timer::new(device)?;
        let copy = DeviceCopy::new(&timer.stream)?;
        Ok(Self {
            device,
            options,
            limit_gemm,
            timer,
            copy,
            loaded_gemm: None,
            no_gemm: None,
            random: Random::new(options.seed),
        })
    }

    /// Returns the number of bytes that the flushes read before each launch.
    pub(crate) fn flush_bytes(&self) -> u64 {
        self.timer.flush_bytes()
    }

    /// Returns the reason why clocks and power are unavailable, if they are.
    pub(crate) fn no_sensors(&self) -> Option<String> {
        self.timer.sensors.unavailable().map(str::to_owned)
    }

    /// Measures one group and frees its memory.
    pub(crate) fn run(
        &mut self,
        group: &BenchGroup,
        report_progress: &dyn Fn(&'static str),
    ) -> Result<BenchGroupReport, Error> {
        let first = group.workloads()[0].as_ref();
        let cost = first.cost();
        let mut report = BenchGroupReport {
            family: group.family(),
            problem: first.problem(),
            bound: RooflineBound::for_cost(&cost),
            cost,
            limit: None,
            limit_sustained: None,
            no_limit: None,
            noise: None,
            rows: (group.workloads().iter().enumerate())
                .map(|(i, work)| BenchRow::new(work.as_ref(), i == 0 && !group.has_steps()))
                .collect(),
        };
        if report.bound == RooflineBound::Compute {
            report_progress("loading the limit GEMM");
            self.load_gemm()?;
            report.no_limit = self.no_gemm.clone();
        }
        match self.load_group(group, &mut report, report_progress) {
            Ok(mut loaded) => {
                let measured = self.measure(&mut loaded, &mut report, report_progress);
                if measured.as_ref().is_err_and(Error::is_device_lost) {
                    // Freeing memory would wait for a kernel that never ends.
                    std::mem::forget(loaded);
                }
                measured?;
            }
            Err(e) if e.is_device_lost() => return Err(e),
            Err(e) => report.fail(&e),
        }
        match group.has_steps() {
            true => report.set_step_speedups(),
            false => report.rank(),
        }
        Ok(report)
    }

    /// Builds all candidates and copies their tensors to the device.
    fn load_group(
        &self,
        group: &BenchGroup,
        report: &mut BenchGroupReport,
        report_progress: &dyn Fn(&'static str),
    ) -> Result<LoadedGroup, Error> {
        report_progress("building and compiling");
        let mut plans = Vec::new();
        for (i, work) in group.workloads().iter().enumerate() {
            match self.load(work.as_ref()) {
                Ok((plan, workspace)) => {
                    report.rows[i].kernels = plan.footprints().collect();
                    plans.push((i, (plan, workspace)));
                }
                Err(e) if e.is_device_lost() => return Err(e),
                Err(e) => report.rows[i].failure = Some(e.to_string()),
            }
        }
        report_progress("drawing inputs and computing the reference");
        let workspace = plans.iter().map(|(_, (_, bytes))| bytes).sum();
        let (seed, stream) = (self.options.seed, &self.timer.stream);
        let tensors = BenchTensors::new(group.workloads()[0].as_ref(), seed, workspace, stream)?;
        let mut planned = Vec::new();
        for (i, (plan, bytes)) in plans {
            let work = group.workloads()[i].as_ref();
            match PlannedCandidate::new(work, &plan, bytes, &tensors, stream) {
                Ok(candidate) => planned.push((i, candidate)),
                Err(e) if e.is_device_lost() => return Err(e),
                Err(e) => report.rows[i].failure = Some(e.to_string()),
            }
        }
        Ok(LoadedGroup { tensors, planned })
    }

    /// Loads the kernels of a workload and returns them with the workspace size.
    fn load(&self, work: &dyn AnyWorkload) -> Result<(LoadedPlan, u64), Error> {
        let prepared = prepare_selected(work, &self.device.target())?;
        Ok((prepared.load(self.device)?, prepared.workspace))
    }

    /// Loads the limit GEMM onto the device, once.
    fn load_gemm(&mut self) -> Result<(), Error> {
        if self.loaded_gemm.is_some() || self.no_gemm.is_some() {
            return Ok(());
        }
        let failure = match self.limit_gemm {
            None => Some("no GEMM was passed".into()),
            Some(work) => match self.try_load_gemm(work) {
                Err(e) if e.is_device_lost() => return Err(e),
                Err(e) => Some(e.to_string()),
                Ok(check) => check.failure(),
            },
        };
        if let Some(failure) = failure {
            self.no_gemm = Some(format!("the limit was not measured: {failure}"));
            self.loaded_gemm = None;
        }
        Ok(())
    }

    fn try_load_gemm(&mut self, work: &dyn AnyWorkload) -> Result<Check, Error> {
        let (plan, workspace) = self.load(work)?;
        let stream = &self.timer.stream;
        let tensors = BenchTensors::new(work, self.options.seed, workspace, stream)?;
        let planned = PlannedCandidate::new(work, &plan, workspace, &tensors, stream)?;
        // Stored before it runs: freeing it would wait if the kernel hangs.
        let (planned, tensors) = self.loaded_gemm.insert((planned, tensors));
        check(&self.timer, planned, tensors)
    }

    /// Checks every candidate and times those that pass.
    fn measure(
        &mut self,
        loaded: &mut LoadedGroup,
        report: &mut BenchGroupReport,
        report_progress: &dyn Fn(&'static str),
    ) -> Result<(), Error> {
        report_progress("comparing with the reference");
        let mut timed = TimedCandidates::default();
        for (i, planned) in &mut loaded.planned {
            let row = &mut report.rows[*i];
            let check = match check(&self.timer, planned, &mut loaded.tensors) {
                Ok(check) => check,
                Err(e) if e.is_device_lost() => return Err(e),
                Err(e) => {
                    row.failure = Some(e.to_string());
                    continue;
                }
            };
            row.failure = check.failure();
            if check.passed() {
                timed.rows.push(*i);
                timed.candidates.push(planned);
            }
            row.check = Some(check);
        }
        if timed.rows.is_empty() {
            return Ok(());
        }
        match (report.bound, &mut self.loaded_gemm) {
            (RooflineBound::Memory, _) => timed.candidates.push(&mut self.copy),
            (RooflineBound::Compute, Some((gemm, _))) => timed.candidates.push(gemm),
            (RooflineBound::Compute, None) => {}
        }
        report_progress("timing");
        timed.time(&self.timer, self.options.rounds, &mut self.random, report)?;
        if self.options.sustained {
            report_progress("running each candidate for more than a second");
            timed.sustain(&self.timer, &mut self.random, report)?;
        }
        Ok(())
    }
}

/// Runs a candidate on poisoned outputs and compares the outputs with the reference.
pub(crate) fn check(
    timer: &Timer,
    candidate: &mut PlannedCandidate,
    tensors: &mut BenchTensors,
) -> Result<Check, Error> {
    tensors.poison(&timer.stream)?;
    timer.run_once(candidate)?;
    tensors.check(&timer.stream)
}

/// The timed candidates: those that passed the check, then the limit, if there is one.
#[derive(Default)]
struct TimedCandidates<'a> {
    candidates: Vec<&'a mut dyn Timed>,
    /// The row of each candidate except the limit.
    rows: Vec<usize>,
}

impl TimedCandidates<'_> {
    /// Times all candidates in rounds.
    fn time(
        &mut self,
        timer: &Timer,
        rounds: u32,
        random: &mut Random,
        report: &mut BenchGroupReport,
    ) -> Result<(), Error> {
        let entries = MeasurementRounds::new(self.candidates.len(), 0);
        let (start, mut warm_up_rounds) = (Instant::now(), 0);
        let needs_warm_up = || {
            warm_up_rounds += 1;
            warm_up_rounds <= WARM_UP_ROUNDS || start.elapsed() < WARM_UP_TIME
        };
        let mut launches = 0;
        let samples = entries.run(rounds.max(MIN_ROUNDS), random, needs_warm_up, |i| {
            launches += 1;
            let read = (launches / entries.len()).is_multiple_of(SENSOR_INTERVAL);
            timer.time(self.candidates[i], read)
        })?;

        let measured: Vec<_> = (self.candidates.iter().zip(&samples))
            .map(|(candidate, samples)| Measurement::new(samples, &candidate.cost(), report.bound))
            .collect();
        report.limit = measured.get(self.rows.len()).cloned().flatten();
        let first = measured[0].as_ref().map(|m| m.seconds.median);
        let repeated = Quartiles::new(
            samples
                .iter()
                .last()
                .into_iter()
                .flatten()
                .map(|s| s.seconds),
        );
        report.noise = first
            .zip(repeated)
            .map(|(a, b)| NoiseEstimate::new(a, b.median));
        for (&row, measured) in self.rows.iter().zip(measured) {
            let row = &mut report.rows[row];
            let rates = measured.as_ref().zip(report.limit.as_ref());
            row.limit_fraction = rates.map(|(m, limit)| m.rate / limit.rate);
            row.measured = measured;
        }
        Ok(())
    }

    /// Runs each candidate alone for more than a second, in random order.
    fn sustain(
        &mut self,
        timer: &Timer,
        random: &mut Random,
        report: &mut BenchGroupReport,
    ) -> Result<(), Error> {
        for i in shuffled(self.candidates.len(), random) {
            let candidate = &mut *self.candidates[i];
            let samples = timer.sustain(candidate)?;
            let measured = Measurement::new(&samples, &candidate.cost(), report.bound);
            match self.rows.get(i) {
                Some(&row) => report.rows[row].sustained = measured,
                None => report.limit_sustained = measured,
            }
        }
        Ok(())
    }
}
