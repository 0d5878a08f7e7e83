//! Which config is fastest here: raced, remembered, looked up.
//!
//! [`tune()`] takes every config that a family considers for a problem, builds
//! and compiles them on all cores, races them on the GPU, holds the best
//! against the reference, and remembers the winner on disk. Calls of
//! [ops](crate::ops) and `warpline run` look it up; nothing is ever tuned that
//! was not asked for. `docs/tuning.md` has the rules.
//!
//! | where | what |
//! |---|---|
//! | `key` | what a tuned config is looked up by |
//! | `entry` | what is remembered, as a text that people can read |
//! | `store`, `lock` | entries on disk; one process tunes a key at a time |
//! | `memory` | what this process knows: each key is read once |
//! | `lookup` | the remembered winner, else the family's own choice |
//! | `build` | candidates built and compiled, on all cores |
//! | `race` | rounds in random order, losers dropped, the winner confirmed |
//! | `track` | contenders on a GPU, on rotated buffers |
//! | `model` | without a GPU: the order that a model gives |
//! | `report` | what comes out |
//! | `notices` | what a user should know and no call fails for |

mod build;
mod entry;
mod key;
mod lock;
mod lookup;
mod memory;
mod model;
mod notices;
mod race;
mod report;
mod store;
mod time;
mod track;

pub use entry::{Entry, Ranked};
pub use key::Key;
pub use lookup::choose;
pub(crate) use lookup::first_good;
pub(crate) use memory::Memory;
pub use model::{Modelled, Ranking, rank};
pub use notices::notices;
pub(crate) use notices::say;
pub use race::Fate;
pub use report::{Candidate, Tuned};
pub use store::{Imported, Listed, Store};

use crate::device::Device;
use crate::error::Error;
use build::{Built, build};
use race::{Lane, Lap, Rules, race};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use track::Track;
use warpline_kernels::numbers::Random;
use warpline_kernels::{AnyWork, FamilyError};

/// How to tune.
#[derive(Clone)]
#[non_exhaustive]
pub struct TuneOptions {
    /// Draws the inputs and the orders.
    pub seed: u64,
    /// Only configs that give the same bits in every run.
    pub deterministic: bool,
    /// Also where a winner is remembered that this build can use.
    pub again: bool,
    /// The most candidates; the family's own choice is always one of them.
    pub most: usize,
    /// Told how far it has come.
    pub progress: Option<TuneProgress>,
}

impl Default for TuneOptions {
    fn default() -> Self {
        Self {
            seed: 0,
            deterministic: true,
            again: false,
            most: 48,
            progress: None,
        }
    }
}

impl fmt::Debug for TuneOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TuneOptions")
            .field("seed", &self.seed)
            .field("deterministic", &self.deterministic)
            .field("again", &self.again)
            .field("most", &self.most)
            .field("progress", &self.progress.is_some())
            .finish()
    }
}

/// How far a tuning has come.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TuneStage {
    /// Another process tunes the same, and is waited for.
    Waits {
        /// Who it is.
        holder: String,
    },
    /// Candidates are built and compiled.
    Builds {
        /// Those that are done.
        done: usize,
        /// All of them.
        total: usize,
    },
    /// The inputs are drawn, and the reference is computed.
    Draws,
    /// Rounds are timed.
    Races {
        /// The round; 0 is the warm-up.
        round: u32,
        /// How many there are at most.
        rounds: u32,
        /// Candidates that are left.
        left: usize,
    },
    /// Outputs are compared with the reference.
    Compares,
    /// The winner races against the runner-up alone.
    Confirms,
}

/// Told how far a tuning has come; from several threads while candidates are built.
pub type TuneProgress = Arc<dyn Fn(&TuneStage) + Send + Sync>;

/// How long a race is on a GPU.
const RULES: Rules = Rules {
    warm: Duration::from_millis(200),
    rounds: 25,
    confirm: 31,
    enough: Duration::from_secs(6),
};

/// Finds the fastest config for a problem on a GPU, and remembers it: for this
/// process, and on disk for others. One that is remembered already is given
/// back, unless [`TuneOptions::again`].
///
/// A candidate that cannot be built, fails or is wrong is a line of the report;
/// if all are, that is an [`Error::NotTuned`].
///
/// ```no_run
/// use warpline::kernels::{Place, registry};
/// use warpline::{Device, TuneOptions, tune};
///
/// # fn main() -> Result<(), warpline::Error> {
/// let device = Device::cuda(0)?;
/// let work = registry()[1].default_work(Place::Gpu, &device.target())?;
/// let tuned = tune(work.as_ref(), &device, &TuneOptions::default())?;
/// println!("{} takes {:.1} µs", tuned.config, tuned.median_s * 1e6);
/// # Ok(())
/// # }
/// ```
pub fn tune(work: &dyn AnyWork, device: &Device, options: &TuneOptions) -> Result<Tuned, Error> {
    let start = Instant::now();
    let gpu = device.gpu().ok_or(Error::NoGpu)?;
    let key = Key::new(work, device, options.deterministic).ok_or_else(|| Error::NotTuned {
        family: work.family(),
        why: "it is not the work of a family".into(),
    })?;
    let tell = |stage: TuneStage| {
        if let Some(progress) = &options.progress {
            progress(&stage);
        }
    };
    let remembered = || {
        let known = gpu.tuned.of(&key).filter(|_| !options.again)?;
        let usable = lookup::is_remembered(&known, work, device);
        usable.then(|| Tuned::remembered(work, device, &known.entry))
    };
    if let Some(tuned) = remembered() {
        return Ok(tuned);
    }
    let waits = |holder: &str| {
        tell(TuneStage::Waits {
            holder: holder.into(),
        });
    };
    let _lock = (gpu.tuned.store().lock(&key, waits)).unwrap_or_else(|why| {
        notices::say(why);
        None
    });
    // Another process may have tuned it since it was read here.
    gpu.tuned.forget(&key);
    if let Some(tuned) = remembered() {
        gpu.plans.clear();
        return Ok(tuned);
    }

    let works = candidates(work, device, options)?;
    let total = works.len();
    tell(TuneStage::Builds { done: 0, total });
    let built = build(&works, device, &|done| {
        tell(TuneStage::Builds { done, total });
    });
    let mut fates: Vec<Option<Lane>> = works.iter().map(|_| None).collect();
    let mut good: Vec<(usize, Built)> = Vec::new();
    for (i, built) in built.into_iter().enumerate() {
        match built {
            Ok(built) => good.push((i, built)),
            Err(e) if e.is_lost() => return Err(e),
            Err(e) => fates[i] = Some(failed(&e)),
        }
    }
    if !good.is_empty() {
        tell(TuneStage::Draws);
        run(&works, &good, device, options, &mut fates, &tell)?;
    }
    let programs = |i: usize| {
        let found = good.iter().find(|(at, _)| *at == i);
        found.map_or(Vec::new(), |(_, built)| built.programs.clone())
    };
    let mut tuned = Tuned::new(work, device, &works, fates);
    let entry = tuned.entry(&key, &works, programs)?;
    match gpu.tuned.store().write(&entry) {
        Ok(path) => tuned.kept = path,
        Err(why) => notices::say(why),
    }
    gpu.tuned.remember(entry);
    // What calls came to before may be another config.
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

/// The configs that may win: the family's own choice, then what its model or
/// its own order puts first.
fn candidates(
    work: &dyn AnyWork,
    device: &Device,
    options: &TuneOptions,
) -> Result<Vec<Box<dyn AnyWork>>, Error> {
    let mut works = model::allowed(work, &device.target(), options.deterministic)?;
    works.truncate(options.most.max(1));
    Ok(works)
}

/// Races those who were built, and says what became of each.
fn run(
    works: &[Box<dyn AnyWork>],
    good: &[(usize, Built)],
    device: &Device,
    options: &TuneOptions,
    fates: &mut [Option<Lane>],
    tell: &dyn Fn(TuneStage),
) -> Result<(), Error> {
    let given: Vec<(&dyn AnyWork, &Built)> = (good.iter())
        .map(|(i, built)| (works[*i].as_ref(), built))
        .collect();
    let (mut track, laid) = Track::new(&given, device, options.seed)?;
    let mut runners = Vec::new();
    for ((i, _), laid) in good.iter().zip(laid) {
        match laid {
            Ok(()) => runners.push(*i),
            Err(e) => fates[*i] = Some(failed(&e)),
        }
    }
    let mut random = Random::new(options.seed);
    let raced = race(&mut track, runners.len(), &RULES, &mut random, &|lap| {
        tell(match lap {
            Lap::Warm => TuneStage::Races {
                round: 0,
                rounds: RULES.rounds,
                left: runners.len(),
            },
            Lap::Round(round, rounds, left) => TuneStage::Races {
                round,
                rounds,
                left,
            },
            Lap::Compare => TuneStage::Compares,
            Lap::Confirm => TuneStage::Confirms,
        });
    });
    if raced.as_ref().is_err_and(Error::is_lost) {
        // Freeing anything would wait for a kernel that does not end.
        std::mem::forget(track);
    }
    for (i, lane) in runners.into_iter().zip(raced?) {
        fates[i] = Some(lane);
    }
    Ok(())
}

fn failed(e: &Error) -> Lane {
    Lane {
        seconds: Vec::new(),
        fate: Fate::Failed(e.to_string()),
    }
}

/// A sentence of a family as an error.
fn not_a_family(work: &dyn AnyWork) -> Error {
    let text = format!("{} has no candidates to tune", work.family());
    FamilyError::Problem(text).into()
}
