//! Measurement rounds of autotuning: rounds in random order, early elimination, confirmation.
//!
//! 1. *Warm-up*: untimed rounds until the GPU clocks are up. A candidate that fails is eliminated.
//! 2. *Rounds*: each round times all remaining candidates in a new random order. After 3, 5, 8, 12
//!    and 18 rounds, candidates whose median is too far behind the best are dropped; at least two
//!    remain.
//! 3. *Comparison*: outputs are compared with the reference, fastest candidate first, until two
//!    pass. A candidate with a wrong result is eliminated, however fast it is.
//! 4. *Confirmation*: these two are measured again without the others, because clocks change
//!    during the comparison. The heuristic's config (the first candidate) is measured with them to
//!    compute the speedup, but cannot win. The faster of the two wins. If the medians differ by
//!    less than [`TIE`], the one that the family lists first wins, so that tuning is repeatable.
//!
//! This module does not access a GPU: a [`CandidateTimer`] times and compares.

use crate::bench::rounds::shuffled;
use crate::bench::statistics::Quartiles;
use crate::error::Error;
use serde::Serialize;
use std::time::Duration;
use warpline_kernels::numbers::Random;

/// Times candidates and compares their outputs.
pub(super) trait CandidateTimer {
    /// Times one launch and returns its seconds.
    fn time(&mut self, candidate: usize) -> Result<f64, Error>;
    /// Describes the first wrong element of the output; `None` if the output passes.
    fn wrong_result(&mut self, candidate: usize) -> Result<Option<String>, Error>;
    /// Returns the time since the start of the measurement.
    fn elapsed(&self) -> Duration;
}

/// The number of rounds and the time limits of a measurement.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundLimits {
    /// The minimum duration of the warm-up.
    pub(super) warm_up: Duration,
    /// The number of measurement rounds.
    pub(super) rounds: u32,
    /// The number of confirmation rounds.
    pub(super) confirm: u32,
    /// No round starts after this time, except the first [`MIN_ROUNDS`].
    pub(super) time_limit: Duration,
}

/// The minimum number of measurement rounds.
const MIN_ROUNDS: u32 = 3;
/// Rounds after which slow candidates are dropped, each with the maximum ratio of a median to the
/// best median.
const DROPS: [(u32, f64); 5] = [(3, 1.5), (5, 1.2), (8, 1.1), (12, 1.05), (18, 1.03)];
/// The relative difference below which two medians count as equal.
const TIE: f64 = 0.005;

/// The progress of a measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum MeasureStage {
    /// Untimed rounds.
    WarmUp,
    /// A measurement round.
    Round {
        /// The number of the round, from 1.
        round: u32,
        /// The maximum number of rounds.
        rounds: u32,
        /// The number of candidates in the round.
        remaining: usize,
    },
    /// Comparison with the reference.
    Compare,
    /// Confirmation of the best two candidates.
    Confirm,
}

/// The outcome of a candidate.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case", tag = "outcome", content = "reason")]
#[non_exhaustive]
pub enum CandidateOutcome {
    /// It is the fastest candidate with a correct result.
    Winner,
    /// It is second to the winner, with a correct result.
    RunnerUp,
    /// It was measured in all rounds, and others were faster.
    Slower,
    /// It was dropped after this number of rounds.
    Dropped(u32),
    /// Its result is wrong.
    WrongResult(String),
    /// It could not be built, loaded or launched.
    Failed(String),
}

/// The timings and the outcome of a candidate.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct CandidateRecord {
    /// The seconds of each timed launch.
    pub(super) seconds: Vec<f64>,
    pub(super) outcome: CandidateOutcome,
}

impl CandidateRecord {
    fn median(&self) -> f64 {
        Quartiles::new(self.seconds.iter().copied()).map_or(f64::INFINITY, |q| q.median)
    }
}

/// Measures `n` candidates. One of them is the winner, unless all fail or compute wrong results.
pub(super) fn measure(
    timer: &mut dyn CandidateTimer,
    n: usize,
    limits: &RoundLimits,
    random: &mut Random,
    progress: &dyn Fn(MeasureStage),
) -> Result<Vec<CandidateRecord>, Error> {
    let mut measurement = Measurement {
        records: vec![
            CandidateRecord {
                seconds: Vec::new(),
                outcome: CandidateOutcome::Slower,
            };
            n
        ],
        remaining: (0..n).collect(),
        timer,
        random,
    };
    progress(MeasureStage::WarmUp);
    measurement.warm_up(limits)?;
    for round in 1..=limits.rounds {
        let is_time_over = round > MIN_ROUNDS && measurement.timer.elapsed() > limits.time_limit;
        if measurement.remaining.is_empty() || is_time_over {
            break;
        }
        progress(MeasureStage::Round {
            round,
            rounds: limits.rounds,
            remaining: measurement.remaining.len(),
        });
        measurement.round()?;
        if let Some(&(_, factor)) = DROPS.iter().find(|(after, _)| *after == round) {
            measurement.drop_slow(round, factor);
        }
    }
    progress(MeasureStage::Compare);
    let best = measurement.first_correct(2)?;
    if best.len() == 2 {
        progress(MeasureStage::Confirm);
    }
    measurement.confirm(best, limits.confirm)?;
    Ok(measurement.records)
}

struct Measurement<'a> {
    timer: &'a mut dyn CandidateTimer,
    random: &'a mut Random,
    records: Vec<CandidateRecord>,
    /// The candidates that are still measured, in the family's order.
    remaining: Vec<usize>,
}

impl Measurement<'_> {
    fn warm_up(&mut self, limits: &RoundLimits) -> Result<(), Error> {
        loop {
            for i in self.random_order() {
                self.time(i)?;
            }
            if self.remaining.is_empty() || self.timer.elapsed() >= limits.warm_up {
                break;
            }
        }
        Ok(())
    }

    /// Returns the remaining candidates in a new random order.
    fn random_order(&mut self) -> Vec<usize> {
        let order = shuffled(self.remaining.len(), self.random).into_iter();
        order.map(|i| self.remaining[i]).collect()
    }

    fn round(&mut self) -> Result<(), Error> {
        for i in self.random_order() {
            if let Some(seconds) = self.time(i)? {
                self.records[i].seconds.push(seconds);
            }
        }
        Ok(())
    }

    /// Times one launch. Eliminates a candidate that fails; returns an error if the device is lost.
    fn time(&mut self, i: usize) -> Result<Option<f64>, Error> {
        match self.timer.time(i) {
            Ok(seconds) => Ok(Some(seconds)),
            Err(e) if e.is_device_lost() => Err(e),
            Err(e) => {
                self.eliminate(i, CandidateOutcome::Failed(e.to_string()));
                Ok(None)
            }
        }
    }

    fn eliminate(&mut self, i: usize, outcome: CandidateOutcome) {
        self.records[i].outcome = outcome;
        self.remaining.retain(|&other| other != i);
    }

    /// Returns the remaining candidates, fastest first.
    fn by_median(&self) -> Vec<usize> {
        let mut order = self.remaining.clone();
        let median = |i: usize| self.records[i].median();
        order.sort_by(|&a, &b| median(a).total_cmp(&median(b)));
        order
    }

    fn drop_slow(&mut self, round: u32, factor: f64) {
        let order = self.by_median();
        let Some(&first) = order.first() else { return };
        let max = self.records[first].median() * factor;
        for &i in order.iter().skip(2) {
            if self.records[i].median() > max {
                self.eliminate(i, CandidateOutcome::Dropped(round));
            }
        }
    }

    /// Returns up to `max` candidates with a correct result, fastest first. Dropped candidates
    /// follow the remaining ones, because a faster candidate with a wrong result may have caused
    /// the drop.
    fn first_correct(&mut self, max: usize) -> Result<Vec<usize>, Error> {
        let mut order = self.by_median();
        let is_dropped =
            |record: &CandidateRecord| matches!(record.outcome, CandidateOutcome::Dropped(_));
        let mut dropped: Vec<usize> = (0..self.records.len())
            .filter(|&i| is_dropped(&self.records[i]))
            .collect();
        let median = |i: usize| self.records[i].median();
        dropped.sort_by(|&a, &b| median(a).total_cmp(&median(b)));
        order.extend(dropped);
        let mut correct = Vec::new();
        for i in order {
            if correct.len() == max {
                break;
            }
            match self.timer.wrong_result(i) {
                Ok(None) => correct.push(i),
                Ok(Some(why)) => self.eliminate(i, CandidateOutcome::WrongResult(why)),
                Err(e) if e.is_device_lost() => return Err(e),
                Err(e) => self.eliminate(i, CandidateOutcome::Failed(e.to_string())),
            }
        }
        Ok(correct)
    }

    /// Measures the best two again without the others, and sets the winner.
    fn confirm(&mut self, best: Vec<usize>, rounds: u32) -> Result<(), Error> {
        let finalists = match best.as_slice() {
            [] => return Ok(()),
            [only] => {
                self.records[*only].outcome = CandidateOutcome::Winner;
                return Ok(());
            }
            finalists => finalists.to_vec(),
        };
        self.remaining = finalists.clone();
        let heuristic = &self.records[0];
        let add_heuristic = !finalists.contains(&0)
            && matches!(
                heuristic.outcome,
                CandidateOutcome::Slower | CandidateOutcome::Dropped(_)
            );
        self.remaining.extend(add_heuristic.then_some(0));
        self.remaining.sort_unstable();
        // Only timings of the same rounds are comparable.
        for &i in &self.remaining {
            self.records[i].seconds.clear();
        }
        for _ in 0..rounds {
            self.round()?;
        }
        self.remaining.retain(|i| finalists.contains(i));
        let (winner, second) = match *self.remaining.as_slice() {
            [a, b] => {
                let (first, later) = (self.records[a].median(), self.records[b].median());
                match later < first * (1.0 - TIE) {
                    true => (b, Some(a)),
                    false => (a, Some(b)),
                }
            }
            // The other failed during the confirmation.
            [winner] => (winner, None),
            _ => return Ok(()),
        };
        self.records[winner].outcome = CandidateOutcome::Winner;
        if let Some(second) = second {
            self.records[second].outcome = CandidateOutcome::RunnerUp;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A timer that returns given times with noise.
    struct FakeTimer {
        seconds: Vec<f64>,
        /// The largest relative deviation of a time.
        noise: f64,
        wrong: Vec<usize>,
        fails: Vec<usize>,
        loses_device: bool,
        random: Random,
        timed: Vec<usize>,
        spent: f64,
    }

    impl FakeTimer {
        fn new(seconds: &[f64]) -> Self {
            Self {
                seconds: seconds.into(),
                noise: 0.0,
                wrong: vec![],
                fails: vec![],
                loses_device: false,
                random: Random::new(1),
                timed: vec![],
                spent: 0.0,
            }
        }
    }

    impl CandidateTimer for FakeTimer {
        fn time(&mut self, i: usize) -> Result<f64, Error> {
            self.timed.push(i);
            if self.fails.contains(&i) {
                return Err(match self.loses_device {
                    true => Error::HangReport("hangs".into()),
                    false => Error::DeviceName("x".into()),
                });
            }
            self.spent += self.seconds[i];
            // As on a GPU: never much faster, occasionally much slower.
            let deviation = match self.random.uniform() {
                x if x < 0.05 => 20.0 * self.noise,
                _ => self.noise * (self.random.uniform() * 2.0 - 1.0),
            };
            Ok(self.seconds[i] * (1.0 + deviation))
        }
        fn wrong_result(&mut self, i: usize) -> Result<Option<String>, Error> {
            Ok(self.wrong.contains(&i).then(|| "1 of 8 is wrong".into()))
        }
        fn elapsed(&self) -> Duration {
            Duration::from_secs_f64(self.spent)
        }
    }

    const LIMITS: RoundLimits = RoundLimits {
        warm_up: Duration::ZERO,
        rounds: 25,
        confirm: 25,
        time_limit: Duration::from_secs(1000),
    };

    fn run(timer: &mut FakeTimer, seed: u64) -> Result<Vec<CandidateRecord>, Error> {
        let n = timer.seconds.len();
        measure(timer, n, &LIMITS, &mut Random::new(seed), &|_| {})
    }

    fn with_outcome(records: &[CandidateRecord], outcome: &CandidateOutcome) -> Vec<usize> {
        let all = records.iter().enumerate();
        all.filter(|(_, record)| record.outcome == *outcome)
            .map(|(i, _)| i)
            .collect()
    }

    #[test]
    fn the_fastest_wins_and_slow_candidates_are_dropped_early() {
        let mut timer = FakeTimer::new(&[1.3, 1.0, 4.0, 1.01, 1.15]);
        let records = run(&mut timer, 0).unwrap();
        assert_eq!(records[1].outcome, CandidateOutcome::Winner);
        assert_eq!(records[3].outcome, CandidateOutcome::RunnerUp);
        assert_eq!(records[2].outcome, CandidateOutcome::Dropped(3));
        assert_eq!(records[0].outcome, CandidateOutcome::Dropped(5));
        assert_eq!(records[4].outcome, CandidateOutcome::Dropped(8));
        let launches = |i| timer.timed.iter().filter(|&&t| t == i).count();
        assert_eq!(launches(2), 1 + 3, "the warm-up and three rounds");
        assert_eq!(launches(1), 1 + 25 + 25);
        assert_eq!(records[1].seconds.len(), 25, "only the confirmation counts");
    }

    #[test]
    fn noise_moves_the_winner_by_less_than_two_percent() {
        let seconds: Vec<f64> = (0..48)
            .map(|i| 1.0 + f64::from((i * 7) % 48) * 0.004)
            .collect();
        for seed in 0..40 {
            let mut timer = FakeTimer::new(&seconds);
            timer.noise = 0.02;
            timer.random = Random::new(seed + 100);
            let records = run(&mut timer, seed).unwrap();
            let winners = with_outcome(&records, &CandidateOutcome::Winner);
            assert_eq!(winners.len(), 1);
            assert!(
                seconds[winners[0]] < 1.02,
                "seed {seed}: {}",
                seconds[winners[0]]
            );
        }
    }

    #[test]
    fn in_a_tie_the_first_candidate_wins() {
        for seed in 0..20 {
            let mut timer = FakeTimer::new(&[2.0, 1.002, 1.0, 1.1]);
            let records = run(&mut timer, seed).unwrap();
            assert_eq!(with_outcome(&records, &CandidateOutcome::Winner), [1]);
            assert_eq!(with_outcome(&records, &CandidateOutcome::RunnerUp), [2]);
        }
    }

    #[test]
    fn rounds_have_different_orders() {
        let mut timer = FakeTimer::new(&[1.0; 4]);
        run(&mut timer, 3).unwrap();
        let rounds: std::collections::BTreeSet<_> = timer.timed[..26 * 4].chunks(4).collect();
        assert!(rounds.len() > 8, "{rounds:?}");
    }

    #[test]
    fn a_candidate_with_a_wrong_result_never_wins() {
        let mut timer = FakeTimer::new(&[1.0, 0.5, 0.6, 1.2]);
        timer.wrong = vec![1];
        let records = run(&mut timer, 0).unwrap();
        assert_eq!(
            records[1].outcome,
            CandidateOutcome::WrongResult("1 of 8 is wrong".into())
        );
        assert_eq!(records[2].outcome, CandidateOutcome::Winner);
        // The wrong candidate caused the drop; without it, this candidate is second.
        assert_eq!(records[0].outcome, CandidateOutcome::RunnerUp);
        assert_eq!(records[3].outcome, CandidateOutcome::Dropped(3));
    }

    #[test]
    fn a_failing_candidate_is_eliminated_and_the_others_continue() {
        let mut timer = FakeTimer::new(&[1.0, 0.1, 2.0]);
        timer.fails = vec![1];
        let records = run(&mut timer, 0).unwrap();
        assert!(matches!(&records[1].outcome, CandidateOutcome::Failed(_)));
        assert_eq!(records[0].outcome, CandidateOutcome::Winner);
        assert_eq!(timer.timed.iter().filter(|&&i| i == 1).count(), 1);
    }

    #[test]
    fn a_lost_device_ends_the_measurement() {
        let mut timer = FakeTimer::new(&[1.0, 1.0]);
        (timer.fails, timer.loses_device) = (vec![1], true);
        assert!(run(&mut timer, 0).unwrap_err().is_device_lost());
    }

    #[test]
    fn there_is_no_winner_if_all_fail_or_are_wrong() {
        let mut timer = FakeTimer::new(&[1.0, 1.1, 1.2]);
        (timer.fails, timer.wrong) = (vec![0], vec![1, 2]);
        let records = run(&mut timer, 0).unwrap();
        assert!(with_outcome(&records, &CandidateOutcome::Winner).is_empty());
        let mut none = FakeTimer::new(&[]);
        assert!(run(&mut none, 0).unwrap().is_empty());
    }

    #[test]
    fn a_single_candidate_wins() {
        let records = run(&mut FakeTimer::new(&[1.0]), 0).unwrap();
        assert_eq!(records[0].outcome, CandidateOutcome::Winner);
        assert_eq!(records[0].seconds.len(), 25);
    }

    #[test]
    fn slow_candidates_are_timed_in_three_rounds() {
        let mut timer = FakeTimer::new(&[300.0, 400.0]);
        let records = run(&mut timer, 0).unwrap();
        assert_eq!(records[0].outcome, CandidateOutcome::Winner);
        let before_confirmation = timer.timed.len() - 2 * LIMITS.confirm as usize;
        assert_eq!(before_confirmation, 2 * (1 + 3));
    }
}
