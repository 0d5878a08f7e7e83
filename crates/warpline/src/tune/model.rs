//! Without a GPU: the candidates in the order that a model gives, and no times.

use super::build::on_all_cores;
use super::{TuneOptions, not_a_family};
use crate::error::Error;
use crate::prepare::prepare_exactly;
use serde::Serialize;
use serde_json::Value;
use warpline_ir::Target;
use warpline_kernels::AnyWork;

/// The candidates of a problem, likeliest first. Nothing was measured.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Ranking {
    /// The family.
    pub family: &'static str,
    /// The problem.
    pub problem: Value,
    /// What ranks them: the family's model, or its own order.
    pub by: &'static str,
    /// Likeliest first.
    pub candidates: Vec<Modelled>,
}

/// A candidate that was not measured.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Modelled {
    /// The config.
    pub config: Value,
    /// Is it the family's own choice?
    pub chosen: bool,
    /// Seconds by the family's model.
    pub estimate_s: Option<f64>,
    /// Why it cannot be used: what the builder or the checker says.
    pub refused: Option<String>,
}

/// The configs that may win: the family's own choice, then those of its
/// candidates that the caller allows, by its model where it has one.
pub(super) fn allowed(
    work: &dyn AnyWork,
    target: &Target,
    deterministic: bool,
) -> Result<Vec<Box<dyn AnyWork>>, Error> {
    work.tuning().ok_or_else(|| not_a_family(work))?;
    let mut works = work.alternatives(target)?;
    if deterministic {
        works.retain(|w| w.tuning().is_some_and(|t| t.is_deterministic));
    }
    if let Some((_, rest)) = works.split_first_mut() {
        // A candidate that the model does not judge comes last.
        rest.sort_by(|a, b| {
            let seconds = |w: &dyn AnyWork| seconds(w, target).unwrap_or(f64::INFINITY);
            seconds(a.as_ref()).total_cmp(&seconds(b.as_ref()))
        });
    }
    Ok(works)
}

fn seconds(work: &dyn AnyWork, target: &Target) -> Option<f64> {
    work.estimate(target)
}

/// Ranks the candidates of a problem without a GPU: each is built and checked
/// as it would be, and none is measured.
///
/// ```
/// use warpline::kernels::{Place, registry};
/// use warpline::{Device, TuneOptions, tune};
///
/// # fn main() -> Result<(), warpline::Error> {
/// let target = Device::cpu().target();
/// let work = registry()[0].default_work(Place::Gpu, &target)?;
/// let ranking = tune::rank(work.as_ref(), &target, &TuneOptions::default())?;
/// assert_eq!(ranking.candidates[0].config, work.config());
/// # Ok(())
/// # }
/// ```
pub fn rank(work: &dyn AnyWork, target: &Target, options: &TuneOptions) -> Result<Ranking, Error> {
    let mut works = allowed(work, target, options.deterministic)?;
    works.truncate(options.most.max(1));
    let own = work.config();
    let modelled = works.iter().any(|w| seconds(w.as_ref(), target).is_some());
    let judged = |w: &dyn AnyWork| Modelled {
        config: w.config(),
        chosen: w.config() == own,
        estimate_s: seconds(w, target),
        refused: prepare_exactly(w, target).err().map(|e| e.to_string()),
    };
    let mut candidates = on_all_cores(&works, |w| judged(w.as_ref()), &|_| {});
    if modelled {
        let time = |m: &Modelled| m.estimate_s.unwrap_or(f64::INFINITY);
        candidates.sort_by(|a, b| time(a).total_cmp(&time(b)));
    }
    Ok(Ranking {
        family: work.family(),
        problem: work.problem(),
        by: match modelled {
            true => "the family's model",
            false => "the family's own order, as it has no model",
        },
        candidates,
    })
}
