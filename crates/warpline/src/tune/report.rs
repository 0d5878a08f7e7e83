//! What comes out of a tuning.

use super::entry::{Entry, Ranked};
use super::key::Key;
use super::race::{Fate, Lane};
use crate::bench::statistics::Quartiles;
use crate::device::{Device, DeviceInfo};
use crate::error::Error;
use serde::Serialize;
use serde_json::Value;
use std::path::PathBuf;
use warpline_kernels::AnyWork;

/// What came of a tuning.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Tuned {
    /// The family.
    pub family: &'static str,
    /// The problem.
    pub problem: Value,
    /// Where it ran.
    pub device: DeviceInfo,
    /// The winner.
    pub config: Value,
    /// Seconds of one launch of it, in the median.
    pub median_s: f64,
    /// How much faster it is than the family's own choice, as a factor; none
    /// where that was not timed.
    pub gain: Option<f64>,
    /// When it was tuned before, if it was: then nothing was measured now.
    pub remembered: Option<String>,
    /// All candidates, in the family's order; none where it was remembered.
    pub candidates: Vec<Candidate>,
    /// The file it is in; none where it could not be kept, or is off.
    pub kept: Option<PathBuf>,
    /// How long it took.
    pub seconds: f64,
}

/// What became of a candidate.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Candidate {
    /// The config.
    pub config: Value,
    /// Is it the family's own choice?
    pub chosen: bool,
    /// Seconds of one launch; none where it was not timed.
    pub seconds: Option<Quartiles>,
    /// What became of it, and why.
    #[serde(flatten)]
    pub fate: Fate,
}

impl Tuned {
    /// A winner that is remembered.
    pub(super) fn remembered(work: &dyn AnyWork, device: &Device, entry: &Entry) -> Self {
        let best = &entry.ranked[0];
        Self {
            config: best.config.clone(),
            median_s: best.median_s,
            remembered: Some(entry.tuned_at.clone()),
            ..Self::new(work, device, &[], Vec::new())
        }
    }

    /// What became of the candidates.
    pub(super) fn new(
        work: &dyn AnyWork,
        device: &Device,
        works: &[Box<dyn AnyWork>],
        lanes: Vec<Option<Lane>>,
    ) -> Self {
        let own = work.config();
        let mut candidates = Vec::new();
        for (work, lane) in works.iter().zip(lanes) {
            let lane = lane.unwrap_or(Lane {
                seconds: Vec::new(),
                fate: Fate::Failed("it was not raced".into()),
            });
            candidates.push(Candidate {
                chosen: work.config() == own,
                config: work.config(),
                seconds: Quartiles::new(lane.seconds),
                fate: lane.fate,
            });
        }
        Self {
            family: work.family(),
            problem: work.problem(),
            device: device.info(),
            config: Value::Null,
            median_s: 0.0,
            gain: None,
            remembered: None,
            candidates,
            kept: None,
            seconds: 0.0,
        }
    }

    /// Settles who won, and gives what is to be remembered.
    pub(super) fn entry(
        &mut self,
        key: &Key,
        works: &[Box<dyn AnyWork>],
        programs: impl Fn(usize) -> Vec<String>,
    ) -> Result<Entry, Error> {
        let mut ranked = Vec::new();
        for fate in [Fate::Won, Fate::RunnerUp] {
            let found = self.candidates.iter().position(|c| c.fate == fate);
            let Some((i, seconds)) = found.and_then(|i| Some((i, self.candidates[i].seconds?)))
            else {
                continue;
            };
            ranked.push(Ranked {
                config: works[i].config(),
                programs: programs(i),
                median_s: seconds.median,
                spread: seconds.spread(),
            });
        }
        let Some(best) = ranked.first() else {
            return Err(Error::NotTuned {
                family: self.family,
                why: self.why_none(),
            });
        };
        (self.config, self.median_s) = (best.config.clone(), best.median_s);
        let own = self.candidates.iter().find(|c| c.chosen);
        let own = own.and_then(|own| own.seconds);
        self.gain = own.map(|own| own.median / best.median_s);
        let (problem, all) = (self.problem.clone(), self.candidates.len());
        Ok(Entry::new(key.clone(), problem, ranked, all))
    }

    /// Why nobody won.
    fn why_none(&self) -> String {
        let why = self.candidates.iter().find_map(|c| match &c.fate {
            Fate::Wrong(why) | Fate::Failed(why) => Some(why.as_str()),
            _ => None,
        });
        let n = self.candidates.len();
        match why {
            None => "it has no candidate that the options allow".into(),
            Some(why) => format!(
                "none of {n} candidates could be used; the first one: {}",
                why.lines().next().unwrap_or_default()
            ),
        }
    }
}
