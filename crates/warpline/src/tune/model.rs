//! Ranking of candidates by the family's model, without a GPU and without timings.

use super::build::on_all_cores;
use super::{TuneOptions, no_candidates};
use crate::error::Error;
use crate::prepare::prepare_selected;
use serde::Serialize;
use serde_json::Value;
use warpline_ir::Target;
use warpline_kernels::AnyWorkload;

/// The candidates of a problem, most promising first, without measurements.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Ranking {
    /// The family.
    pub family: &'static str,
    /// The problem.
    pub problem: Value,
    /// The source of the order: the family's model, or the order of the family.
    pub ranked_by: &'static str,
    /// The heuristic's config, then the other candidates, most promising first.
    pub candidates: Vec<CandidateEstimate>,
}

/// A candidate that was not measured.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct CandidateEstimate {
    /// The config.
    pub config: Value,
    /// Whether the heuristic selects this config.
    pub from_heuristic: bool,
    /// The seconds that the family's model estimates.
    pub estimate_s: Option<f64>,
    /// The error of the builder or the checker; `None` if the config can be used.
    pub rejected: Option<String>,
}

/// Returns the heuristic's config, then the candidates that the options allow, in the order of the
/// family's model if it has one.
pub(super) fn allowed_candidates(
    work: &dyn AnyWorkload,
    target: &Target,
    deterministic: bool,
) -> Result<Vec<Box<dyn AnyWorkload>>, Error> {
    work.tuning().ok_or_else(|| no_candidates(work))?;
    let mut works = work.alternatives(target)?;
    if deterministic {
        works.retain(|w| w.tuning().is_some_and(|t| t.is_deterministic));
    }
    if let Some((_, rest)) = works.split_first_mut() {
        // Candidates without an estimate are last.
        rest.sort_by(|a, b| {
            let seconds = |w: &dyn AnyWorkload| w.estimate(target).unwrap_or(f64::INFINITY);
            seconds(a.as_ref()).total_cmp(&seconds(b.as_ref()))
        });
    }
    Ok(works)
}

/// Ranks the candidates of a problem without a GPU. Builds and checks each candidate, but measures
/// none.
///
/// ```
/// use warpline::kernels::{DeviceKind, registry};
/// use warpline::{Device, TuneOptions, tune};
///
/// # fn main() -> Result<(), warpline::Error> {
/// let target = Device::cpu().target();
/// let work = registry()[0].default_workload(DeviceKind::Gpu, &target)?;
/// let ranking = tune::rank(work.as_ref(), &target, &TuneOptions::default())?;
/// assert_eq!(ranking.candidates[0].config, work.config());
/// # Ok(())
/// # }
/// ```
pub fn rank(
    work: &dyn AnyWorkload,
    target: &Target,
    options: &TuneOptions,
) -> Result<Ranking, Error> {
    let mut works = allowed_candidates(work, target, options.deterministic)?;
    works.truncate(options.max_candidates.max(1));
    let heuristic = work.config();
    let has_model = works.iter().any(|w| w.estimate(target).is_some());
    let estimate = |w: &dyn AnyWorkload| CandidateEstimate {
        config: w.config(),
        from_heuristic: w.config() == heuristic,
        estimate_s: w.estimate(target),
        rejected: prepare_selected(w, target).err().map(|e| e.to_string()),
    };
    let mut candidates = on_all_cores(&works, |w| estimate(w.as_ref()), &|_| {});
    if has_model && let Some((_, rest)) = candidates.split_first_mut() {
        let seconds = |c: &CandidateEstimate| c.estimate_s.unwrap_or(f64::INFINITY);
        rest.sort_by(|a, b| seconds(a).total_cmp(&seconds(b)));
    }
    Ok(Ranking {
        family: work.family(),
        problem: work.problem(),
        ranked_by: match has_model {
            true => "the family's model",
            false => "the family's order, because it has no model",
        },
        candidates,
    })
}
