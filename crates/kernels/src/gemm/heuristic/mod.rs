//! The heuristic: selects the config with the least estimated time.
//!
//! | where | what |
//! |---|---|
//! | `candidates` | schedules, tile shapes and divisions of K that are worth an estimate |
//! | `features` | the numbers of a config that its time depends on |
//! | `model` | the estimated time of a config |
//! | `constants` | the fitted constants of the model |

mod candidates;
mod constants;
mod features;
mod model;

pub use constants::Constants;
pub use features::Features;
pub(super) use model::estimate;

use super::config::{Choice, Config, ScheduleKind};
use super::pack::Pack;
use super::problem::Problem;
use candidates::{bases, neighbors};
use std::collections::HashSet;
use warpline_family::error::FamilyError;
use warpline_ir::Target;

/// Returns the legal candidate configs that agree with the caller's choice, or an error if there is
/// none.
fn legal_configs(
    p: &Problem,
    choice: &Choice,
    target: &Target,
) -> Result<Vec<Config>, FamilyError> {
    let mut all: Vec<Config> = Vec::with_capacity(512);
    let (mut seen, mut rejected) = (HashSet::with_capacity(512), None);
    let packs = [Pack::None].iter().chain(Pack::options(p));
    let bases = bases(p, target);
    for base in packs.flat_map(|&pack| bases.iter().map(move |base| (pack, base))) {
        let (pack, base) = base;
        let base = Choice {
            pack: Some(pack),
            ..base.clone()
        };
        match Config::new(p, &base, choice, target) {
            Ok(config) if seen.insert(config) => {
                let tail = with_tail(p, &config, choice, target);
                all.push(config);
                all.extend(tail);
            }
            Ok(_) => {}
            Err(e) => rejected = rejected.or(Some(e)),
        }
    }
    match rejected {
        // The error with the default base is clearer than that of a candidate's base.
        Some(e) if all.is_empty() => {
            let default = Config::new(p, &Choice::default(), choice, target);
            Err(default.err().unwrap_or(e))
        }
        _ => Ok(all),
    }
}

/// Returns the config with a last wave of narrow tiles, if that may be worth a second kernel.
fn with_tail(p: &Problem, c: &Config, choice: &Choice, target: &Target) -> Option<Config> {
    let [m_tiles, n_tiles] = c.tiles(p);
    let waves = m_tiles * n_tiles / u64::from(c.ctas.max(1));
    let is_eligible = c.schedule.kind() == ScheduleKind::PingPong
        && choice.tail_n.is_none()
        && choice.ctas.is_none();
    let base = Choice {
        tail_n: Some(
            c.narrow_tail(p)
                .filter(|_| is_eligible && waves >= MIN_FULL_WAVES)?,
        ),
        ..Choice::from(c).without_grid()
    };
    Config::new(p, &base, choice, target).ok()
}

/// The minimum number of full waves before a narrow one.
const MIN_FULL_WAVES: u64 = 4;

/// Returns the legal candidates with their estimated seconds, fastest first.
pub(super) fn ranked(
    p: &Problem,
    choice: &Choice,
    target: &Target,
) -> Result<Vec<(f64, Config)>, FamilyError> {
    let all = legal_configs(p, choice, target)?.into_iter();
    let mut all: Vec<_> = all.map(|c| (estimate(p, &c, target), c)).collect();
    all.sort_by(|(x, _), (y, _)| x.total_cmp(y));
    Ok(all)
}

/// Returns the config with the least estimated time.
pub(super) fn select(p: &Problem, choice: &Choice, target: &Target) -> Result<Config, FamilyError> {
    let best = ranked(p, choice, target)?.into_iter().next();
    best.map(|(_, config)| config).ok_or_else(|| {
        FamilyError::Config("no config serves this problem with these choices".into())
    })
}

/// Returns the candidates for autotuning: the configs with the best estimates, then neighbors of them
/// that the model does not distinguish.
pub(super) fn candidates(p: &Problem, target: &Target) -> Vec<Config> {
    let all = ranked(p, &Choice::default(), target).unwrap_or_default();
    let best = all.into_iter().take(MAX_BASES);
    let mut all: Vec<Config> = best.map(|(_, config)| config).collect();
    for base in all.clone().iter().take(BASES_WITH_NEIGHBORS) {
        for choice in neighbors(base) {
            let config = Config::new(p, &Choice::from(base).without_grid(), &choice, target);
            all.extend(config.ok().filter(|c| !all.contains(c)));
        }
    }
    all.truncate(MAX_CANDIDATES);
    all
}

/// The maximum number of candidates.
const MAX_CANDIDATES: usize = 48;
/// The maximum number of candidates before neighbors are added.
const MAX_BASES: usize = 24;
/// Candidates that get neighbors, fastest first.
const BASES_WITH_NEIGHBORS: usize = 6;
