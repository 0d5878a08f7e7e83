//! The report of a tuning run.

use super::entry::{TuneCacheEntry, TunedConfig};
use super::key::TuneKey;
use super::measure::{CandidateOutcome, CandidateRecord};
use crate::bench::statistics::Quartiles;
use crate::device::{Device, DeviceInfo};
use crate::error::Error;
use serde::Serialize;
use serde_json::Value;
use std::path::PathBuf;
use warpline_kernels::AnyWorkload;

/// The report of a tuning run.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct TuneReport {
    /// The family.
    pub family: &'static str,
    /// The problem.
    pub problem: Value,
    /// The GPU.
    pub device: DeviceInfo,
    /// The config of the winner.
    pub config: Value,
    /// The median seconds of one launch of the winner.
    pub median_s: f64,
    /// The speedup of the winner over the heuristic's config; `None` if the
    /// heuristic's config was not timed.
    pub speedup: Option<f64>,
    /// The time of the earlier tuning run that cached this winner; `None` if this run measured it.
    pub cached_at: Option<String>,
    /// All candidates in the family's order; empty if the winner was cached.
    pub candidates: Vec<CandidateReport>,
    /// The file of the cache entry; `None` if the cache is off or could not be written.
    pub cache_file: Option<PathBuf>,
    /// The duration of the tuning run in seconds.
    pub seconds: f64,
}

/// A candidate of a tuning run.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct CandidateReport {
    /// The config.
    pub config: Value,
    /// Whether the heuristic selects this config.
    pub from_heuristic: bool,
    /// The seconds of one launch; `None` if the candidate was not timed.
    pub seconds: Option<Quartiles>,
    /// The outcome and its reason.
    #[serde(flatten)]
    pub outcome: CandidateOutcome,
}

impl TuneReport {
    /// Returns the report of a cached winner.
    pub(super) fn from_cache(
        work: &dyn AnyWorkload,
        device: &Device,
        entry: &TuneCacheEntry,
    ) -> Self {
        let best = &entry.ranked[0];
        Self {
            config: best.config.clone(),
            median_s: best.median_s,
            cached_at: Some(entry.tuned_at.clone()),
            ..Self::new(work, device, &[], Vec::new())
        }
    }

    /// Returns the report of the candidates, without a winner.
    pub(super) fn new(
        work: &dyn AnyWorkload,
        device: &Device,
        works: &[Box<dyn AnyWorkload>],
        records: Vec<Option<CandidateRecord>>,
    ) -> Self {
        let heuristic = work.config();
        let mut candidates = Vec::new();
        for (work, record) in works.iter().zip(records) {
            let record = record.unwrap_or(CandidateRecord {
                seconds: Vec::new(),
                outcome: CandidateOutcome::Failed("it was not measured".into()),
            });
            candidates.push(CandidateReport {
                from_heuristic: work.config() == heuristic,
                config: work.config(),
                seconds: Quartiles::new(record.seconds),
                outcome: record.outcome,
            });
        }
        Self {
            family: work.family(),
            problem: work.problem(),
            device: device.info(),
            config: Value::Null,
            median_s: 0.0,
            speedup: None,
            cached_at: None,
            candidates,
            cache_file: None,
            seconds: 0.0,
        }
    }

    /// Sets the winner, and returns the cache entry.
    pub(super) fn set_winner(
        &mut self,
        key: &TuneKey,
        works: &[Box<dyn AnyWorkload>],
        programs: impl Fn(usize) -> Vec<String>,
    ) -> Result<TuneCacheEntry, Error> {
        let mut ranked = Vec::new();
        for outcome in [CandidateOutcome::Winner, CandidateOutcome::RunnerUp] {
            let found = self.candidates.iter().position(|c| c.outcome == outcome);
            let Some((i, seconds)) = found.and_then(|i| Some((i, self.candidates[i].seconds?)))
            else {
                continue;
            };
            ranked.push(TunedConfig {
                config: works[i].config(),
                programs: programs(i),
                median_s: seconds.median,
                spread: seconds.spread(),
            });
        }
        let Some(best) = ranked.first() else {
            return Err(Error::NotTuned {
                family: self.family,
                why: self.failure(),
            });
        };
        (self.config, self.median_s) = (best.config.clone(), best.median_s);
        let heuristic = self.candidates.iter().find(|c| c.from_heuristic);
        let seconds = heuristic.and_then(|candidate| candidate.seconds);
        self.speedup = seconds.map(|seconds| seconds.median / best.median_s);
        let (problem, all) = (self.problem.clone(), self.candidates.len());
        Ok(TuneCacheEntry::new(key.clone(), problem, ranked, all))
    }

    /// Explains why there is no winner.
    fn failure(&self) -> String {
        let why = self.candidates.iter().find_map(|c| match &c.outcome {
            CandidateOutcome::WrongResult(why) | CandidateOutcome::Failed(why) => {
                Some(why.as_str())
            }
            _ => None,
        });
        let n = self.candidates.len();
        match why {
            None => "no candidate matches the options".into(),
            Some(why) => format!(
                "all {n} candidates failed; the first: {}",
                why.lines().next().unwrap_or_default()
            ),
        }
    }
}
