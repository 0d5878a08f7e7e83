//! Autotuning: measures candidate configs on a GPU and caches the fastest.
//!
//! [`tune()`] builds and compiles every candidate of a problem on all cores, times them in
//! measurement rounds on the GPU, compares the best with the reference, and stores the winner on
//! disk. Calls of [ops](crate::ops) and `warpline run` look it up. Tuning runs only on request.
//! `docs/tuning.md` describes the rules.
//!
//! | where | what |
//! |---|---|
//! | `key` | the cache key of a tuned config |
//! | `entry` | the cache entry: a readable, versioned text |
//! | `cache`, `lock` | entries on disk; one process tunes a key at a time |
//! | `loaded` | the entries that this process has read; each key is read once |
//! | `lookup` | config selection: the cached winner, else the heuristic's config |
//! | `build` | builds and compiles candidates on all cores |
//! | `measure` | measurement rounds, elimination, confirmation of the winner |
//! | `gpu_candidates` | candidates on a GPU, with rotated buffers |
//! | `model` | ranking by the family's model, without a GPU |
//! | `report` | the report of a tuning run |
//! | `notices` | warnings about configs; no call fails because of them |

mod build;
mod cache;
mod entry;
mod gpu_candidates;
mod key;
mod loaded;
mod lock;
mod lookup;
mod measure;
mod model;
mod notices;
mod report;
mod time;

pub use cache::{ImportReport, ListedEntry, TuneCache};
pub use entry::{TuneCacheEntry, TunedConfig};
pub use key::TuneKey;
pub(crate) use loaded::LoadedTuneCache;
pub(crate) use lookup::first_usable;
pub use lookup::select;
pub use measure::CandidateOutcome;
pub use model::{CandidateEstimate, Ranking, rank};
pub use notices::notices;
pub(crate) use notices::notify;
pub use report::{CandidateReport, TuneReport};

use crate::device::Device;
use crate::error::Error;
use build::{BuiltCandidate, build_all};
use gpu_candidates::GpuCandidates;
use measure::{CandidateRecord, MeasureStage, RoundLimits, measure};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use warpline_kernels::numbers::Random;
use warpline_kernels::{AnyWorkload, FamilyError};

/// Options of [`tune()`].
#[derive(Clone)]
#[non_exhaustive]
pub struct TuneOptions {
    /// The seed of the inputs and of the order in each round.
    pub seed: u64,
    /// Whether to consider only configs that produce the same bits in every run.
    pub deterministic: bool,
    /// Whether to measure again if the cache has a usable entry.
    pub retune: bool,
    /// The maximum number of candidates. The heuristic's config is always one of them.
    pub max_candidates: usize,
    /// The progress callback.
    pub progress: Option<TuneProgress>,
}

impl Default for TuneOptions {
    fn default() -> Self {
        Self {
            seed: 0,
            deterministic: true,
            retune: false,
            max_candidates: 48,
            progress: None,
        }
    }
}

impl fmt::Debug for TuneOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TuneOptions")
            .field("seed", &self.seed)
            .field("deterministic", &self.deterministic)
            .field("retune", &self.retune)
            .field("max_candidates", &self.max_candidates)
            .field("progress", &self.progress.is_some())
            .finish()
    }
}

/// The progress of a tuning run.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TuneStage {
    /// Waits for another process that tunes the same key.
    Waiting {
        /// The other process.
        holder: String,
    },
    /// Builds and compiles candidates.
    Building {
        /// The number of finished candidates.
        done: usize,
        /// The number of candidates.
        total: usize,
    },
    /// Draws the inputs and computes the reference.
    DrawingInputs,
    /// Runs measurement rounds.
    Measuring {
        /// The round; 0 is the warm-up.
        round: u32,
        /// The maximum number of rounds.
        rounds: u32,
        /// The number of remaining candidates.
        remaining: usize,
    },
    /// Compares outputs with the reference.
    Comparing,
    /// Measures the winner and the runner-up again without the others.
    Confirming,
}

/// A progress callback. Several threads call it while candidates are built.
pub type TuneProgress = Arc<dyn Fn(&TuneStage) + Send + Sync>;

/// The limits of a measurement on a GPU.
const LIMITS: RoundLimits = RoundLimits {
    warm_up: Duration::from_millis(200),
    rounds: 25,
    confirm: 31,
    time_limit: Duration::from_secs(6),
};

/// Finds the fastest config for a problem on a GPU and caches it in this process and on disk.
/// Returns a cached winner without measuring, unless [`TuneOptions::retune`] is set.
///
/// The report lists candidates that fail or compute a wrong result. If no candidate passes, the
/// result is an [`Error::NotTuned`].
///
/// ```no_run
/// use warpline::kernels::{DeviceKind, registry};
/// use warpline::{Device, TuneOptions, tune};
///
/// # fn main() -> Result<(), warpline::Error> {
/// let device = Device::cuda(0)?;
/// let work = registry()[1].default_workload(DeviceKind::Gpu, &device.target())?;
/// let tuned = tune(work.as_ref(), &device, &TuneOptions::default())?;
/// println!("{} takes {:.1} µs", tuned.config, tuned.median_s * 1e6);
/// # Ok(())
/// # }
/// ```
pub fn tune(
    work: &dyn AnyWorkload,
    device: &Device,
    options: &TuneOptions,
) -> Result<TuneReport, Error> {
    let start = Instant::now();
    let gpu = device.gpu().ok_or(Error::NoGpu)?;
    let key = TuneKey::new(work, device, options.deterministic).ok_or_else(|| Error::NotTuned {
        family: work.family(),
        why: "the workload belongs to no family".into(),
    })?;
    let report_progress = |stage: TuneStage| {
        if let Some(progress) = &options.progress {
            progress(&stage);
        }
    };
    let cached = || {
        let loaded = gpu.tuned.get(&key).filter(|_| !options.retune)?;
        let is_usable = lookup::is_usable(&loaded, work, device);
        is_usable.then(|| TuneReport::from_cache(work, device, &loaded.entry))
    };
    if let Some(tuned) = cached() {
        return Ok(tuned);
    }
    let on_wait = |holder: &str| {
        report_progress(TuneStage::Waiting {
            holder: holder.into(),
        });
    };
    let _lock = (gpu.tuned.cache().lock(&key, on_wait)).unwrap_or_else(|why| {
        notices::notify(why);
        None
    });
    // Another process may have tuned the key since this process read it.
    gpu.tuned.forget(&key);
    if let Some(tuned) = cached() {
        gpu.plans.clear();
        return Ok(tuned);
    }

    let works = candidates(work, device, options)?;
    let total = works.len();
    report_progress(TuneStage::Building { done: 0, total });
    let built = build_all(&works, device, &|done| {
        report_progress(TuneStage::Building { done, total });
    });
    let mut records: Vec<Option<CandidateRecord>> = works.iter().map(|_| None).collect();
    let mut usable: Vec<(usize, BuiltCandidate)> = Vec::new();
    for (i, built) in built.into_iter().enumerate() {
        match built {
            Ok(built) => usable.push((i, built)),
            Err(e) if e.is_device_lost() => return Err(e),
            Err(e) => records[i] = Some(failed_record(&e)),
        }
    }
    if !usable.is_empty() {
        report_progress(TuneStage::DrawingInputs);
        measure_candidates(
            &works,
            &usable,
            device,
            options,
            &mut records,
            &report_progress,
        )?;
    }
    let programs = |i: usize| {
        let found = usable.iter().find(|(candidate, _)| *candidate == i);
        found.map_or(Vec::new(), |(_, built)| built.programs.clone())
    };
    let mut tuned = TuneReport::new(work, device, &works, records);
    let entry = tuned.set_winner(&key, &works, programs)?;
    match gpu.tuned.cache().write(&entry) {
        Ok(path) => tuned.cache_file = path,
        Err(why) => notices::notify(why),
    }
    gpu.tuned.insert(entry);
    // Cached plans may use another config.
    gpu.plans.clear();
    tuned.seconds = start.elapsed().as_secs_f64();
    tracing::info!(
        family = tuned.family,
        problem = %tuned.problem,
        config = %tuned.config,
        median_s = tuned.median_s,
        seconds = tuned.seconds,
        "tuned"
    );
    Ok(tuned)
}

/// Returns the candidates: the heuristic's config first, then the others in the order of the
/// family's model or, without a model, in the family's order.
fn candidates(
    work: &dyn AnyWorkload,
    device: &Device,
    options: &TuneOptions,
) -> Result<Vec<Box<dyn AnyWorkload>>, Error> {
    let mut works = model::allowed_candidates(work, &device.target(), options.deterministic)?;
    works.truncate(options.max_candidates.max(1));
    Ok(works)
}

/// Measures the candidates that were built, and sets their records.
fn measure_candidates(
    works: &[Box<dyn AnyWorkload>],
    usable: &[(usize, BuiltCandidate)],
    device: &Device,
    options: &TuneOptions,
    records: &mut [Option<CandidateRecord>],
    report_progress: &dyn Fn(TuneStage),
) -> Result<(), Error> {
    let built: Vec<(&dyn AnyWorkload, &BuiltCandidate)> = (usable.iter())
        .map(|(i, built)| (works[*i].as_ref(), built))
        .collect();
    let (mut candidates, bound) = GpuCandidates::new(&built, device, options.seed)?;
    let mut measured = Vec::new();
    for ((i, _), bound) in usable.iter().zip(bound) {
        match bound {
            Ok(()) => measured.push(*i),
            Err(e) => records[*i] = Some(failed_record(&e)),
        }
    }
    let mut random = Random::new(options.seed);
    let progress = |stage: MeasureStage| {
        report_progress(match stage {
            MeasureStage::WarmUp => TuneStage::Measuring {
                round: 0,
                rounds: LIMITS.rounds,
                remaining: measured.len(),
            },
            MeasureStage::Round {
                round,
                rounds,
                remaining,
            } => TuneStage::Measuring {
                round,
                rounds,
                remaining,
            },
            MeasureStage::Compare => TuneStage::Comparing,
            MeasureStage::Confirm => TuneStage::Confirming,
        });
    };
    let n = measured.len();
    let new_records = measure(&mut candidates, n, &LIMITS, &mut random, &progress);
    if new_records.as_ref().is_err_and(Error::is_device_lost) {
        // Freeing memory would wait for a kernel that never ends.
        std::mem::forget(candidates);
    }
    for (i, record) in measured.into_iter().zip(new_records?) {
        records[i] = Some(record);
    }
    Ok(())
}

fn failed_record(e: &Error) -> CandidateRecord {
    CandidateRecord {
        seconds: Vec::new(),
        outcome: CandidateOutcome::Failed(e.to_string()),
    }
}

/// Returns the error for a workload that belongs to no family.
fn no_candidates(work: &dyn AnyWorkload) -> Error {
    let text = format!("{} has no candidates to tune", work.family());
    FamilyError::Problem(text).into()
}
