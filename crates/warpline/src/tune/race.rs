//! The race: rounds in random order, losers dropped early, the winner confirmed.
//!
//! 1. *Warm-up*: rounds that do not count, until clocks are up. Who fails is out.
//! 2. *Rounds*: each times all who are left, in a fresh random order. After 3,
//!    5, 8, 12 and 18 rounds those whose median is too far behind the best are
//!    dropped; two always stay.
//! 3. *Compared*: from the front, outputs are held against the reference until
//!    two are right. A wrong one is out, however fast.
//! 4. *Confirmed*: these two race alone, with the family's own choice (the first
//!    of all) beside them, which cannot win but tells the gain: after a pause the
//!    clocks are others. The winner is the faster one, and of two
//!    that cannot be told apart the one that the family names first, so that
//!    tuning again gives the same.
//!
//! Nothing here knows a GPU: [`Field`] times and compares.

use crate::bench::rounds::shuffled;
use crate::bench::statistics::Quartiles;
use crate::error::Error;
use serde::Serialize;
use std::time::Duration;
use warpline_kernels::numbers::Random;

/// Who races.
pub(super) trait Field {
    /// Seconds of one launch.
    fn time(&mut self, contender: usize) -> Result<f64, Error>;
    /// What is wrong with what comes out, in a sentence; none where nothing is.
    fn wrong(&mut self, contender: usize) -> Result<Option<String>, Error>;
    /// How long it has been going on.
    fn elapsed(&self) -> Duration;
}

/// How long a race is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Warm-up goes on for at least so long.
    pub(super) warm: Duration,
    /// Rounds that count, for those who are not dropped.
    pub(super) rounds: u32,
    /// Rounds of the last two.
    pub(super) confirm: u32,
    /// After so long no new round starts, once there were [`LEAST`].
    pub(super) enough: Duration,
}

/// The fewest rounds.
const LEAST: u32 = 3;
/// After so many rounds, who is slower than the best by that factor is dropped.
const DROPS: [(u32, f64); 5] = [(3, 1.5), (5, 1.2), (8, 1.1), (12, 1.05), (18, 1.03)];
/// Two medians that differ by less cannot be told apart.
const TIE: f64 = 0.005;

/// How far a race has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Lap {
    /// Rounds that do not count.
    Warm,
    /// A round, of how many, and how many are left in it.
    Round(u32, u32, usize),
    /// Outputs are compared.
    Compare,
    /// The last two.
    Confirm,
}

/// What became of a candidate.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case", tag = "fate", content = "why")]
#[non_exhaustive]
pub enum Fate {
    /// It is the fastest, and right.
    Won,
    /// It lost to the winner alone, and is right.
    RunnerUp,
    /// It was timed to the end, and others were faster.
    Slower,
    /// It was dropped early, after so many rounds.
    Dropped(u32),
    /// What it computes is wrong.
    Wrong(String),
    /// It could not be built, loaded or launched.
    Failed(String),
}

/// What a contender did.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Lane {
    /// Seconds of each launch that counts.
    pub(super) seconds: Vec<f64>,
    pub(super) fate: Fate,
}

impl Lane {
    fn median(&self) -> f64 {
        Quartiles::new(self.seconds.iter().copied()).map_or(f64::INFINITY, |q| q.median)
    }
}

/// Races `n` contenders. There is a winner, unless all failed or were wrong.
pub(super) fn race(
    field: &mut dyn Field,
    n: usize,
    rules: &Rules,
    random: &mut Random,
    tell: &dyn Fn(Lap),
) -> Result<Vec<Lane>, Error> {
    let mut race = Race {
        lanes: vec![
            Lane {
                seconds: Vec::new(),
                fate: Fate::Slower,
            };
            n
        ],
        left: (0..n).collect(),
        field,
        random,
    };
    tell(Lap::Warm);
    race.warm(rules)?;
    for round in 1..=rules.rounds {
        if race.left.is_empty() || round > LEAST && race.field.elapsed() > rules.enough {
            break;
        }
        tell(Lap::Round(round, rules.rounds, race.left.len()));
        race.round()?;
        if let Some(&(_, factor)) = DROPS.iter().find(|(after, _)| *after == round) {
            race.drop_slow(round, factor);
        }
    }
    tell(Lap::Compare);
    let best = race.right(2)?;
    if best.len() == 2 {
        tell(Lap::Confirm);
    }
    race.finish(best, rules.confirm)?;
    Ok(race.lanes)
}

struct Race<'a> {
    field: &'a mut dyn Field,
    random: &'a mut Random,
    lanes: Vec<Lane>,
    /// Those who are still timed, in the family's order.
    left: Vec<usize>,
}

impl Race<'_> {
    fn warm(&mut self, rules: &Rules) -> Result<(), Error> {
        loop {
            for i in self.order() {
                self.time(i)?;
            }
            if self.left.is_empty() || self.field.elapsed() >= rules.warm {
                break;
            }
        }
        Ok(())
    }

    /// Those who are left, in a fresh random order.
    fn order(&mut self) -> Vec<usize> {
        let order = shuffled(self.left.len(), self.random).into_iter();
        order.map(|at| self.left[at]).collect()
    }

    fn round(&mut self) -> Result<(), Error> {
        for i in self.order() {
            if let Some(seconds) = self.time(i)? {
                self.lanes[i].seconds.push(seconds);
            }
        }
        Ok(())
    }

    /// Times one launch; who fails is out, unless the device goes with it.
    fn time(&mut self, i: usize) -> Result<Option<f64>, Error> {
        match self.field.time(i) {
            Ok(seconds) => Ok(Some(seconds)),
            Err(e) if e.is_lost() => Err(e),
            Err(e) => {
                self.out(i, Fate::Failed(e.to_string()));
                Ok(None)
            }
        }
    }

    fn out(&mut self, i: usize, fate: Fate) {
        self.lanes[i].fate = fate;
        self.left.retain(|&other| other != i);
    }

    /// Those who are left, fastest first.
    fn standing(&self) -> Vec<usize> {
        let mut order = self.left.clone();
        let median = |i: usize| self.lanes[i].median();
        order.sort_by(|&a, &b| median(a).total_cmp(&median(b)));
        order
    }

    fn drop_slow(&mut self, round: u32, factor: f64) {
        let order = self.standing();
        let Some(&first) = order.first() else { return };
        let most = self.lanes[first].median() * factor;
        for &i in order.iter().skip(2) {
            if self.lanes[i].median() > most {
                self.out(i, Fate::Dropped(round));
            }
        }
    }

    /// The first `most` whose output is right, fastest first. Also those who
    /// were dropped are asked, where nobody else is left.
    fn right(&mut self, most: usize) -> Result<Vec<usize>, Error> {
        let mut order = self.standing();
        let dropped = |lane: &Lane| matches!(lane.fate, Fate::Dropped(_));
        let mut rest: Vec<usize> = (0..self.lanes.len())
            .filter(|&i| dropped(&self.lanes[i]))
            .collect();
        let median = |i: usize| self.lanes[i].median();
        rest.sort_by(|&a, &b| median(a).total_cmp(&median(b)));
        order.extend(rest);
        let mut right = Vec::new();
        for i in order {
            if right.len() == most {
                break;
            }
            match self.field.wrong(i) {
                Ok(None) => right.push(i),
                Ok(Some(why)) => self.out(i, Fate::Wrong(why)),
                Err(e) if e.is_lost() => return Err(e),
                Err(e) => self.out(i, Fate::Failed(e.to_string())),
            }
        }
        Ok(right)
    }

    /// Lets the best two race alone, and says who won.
    fn finish(&mut self, best: Vec<usize>, rounds: u32) -> Result<(), Error> {
        let two = match best.as_slice() {
            [] => return Ok(()),
            [only] => {
                self.lanes[*only].fate = Fate::Won;
                return Ok(());
            }
            two => two.to_vec(),
        };
        self.left = two.clone();
        let own = &self.lanes[0];
        let beside = !two.contains(&0) && matches!(own.fate, Fate::Slower | Fate::Dropped(_));
        self.left.extend(beside.then_some(0));
        self.left.sort_unstable();
        // What counts of these is how they did against each other.
        for &i in &self.left {
            self.lanes[i].seconds.clear();
        }
        for _ in 0..rounds {
            self.round()?;
        }
        self.left.retain(|i| two.contains(i));
        let (winner, second) = match *self.left.as_slice() {
            [a, b] => {
                let (first, later) = (self.lanes[a].median(), self.lanes[b].median());
                match later < first * (1.0 - TIE) {
                    true => (b, Some(a)),
                    false => (a, Some(b)),
                }
            }
            // One that failed at last.
            [one] => (one, None),
            _ => return Ok(()),
        };
        self.lanes[winner].fate = Fate::Won;
        if let Some(second) = second {
            self.lanes[second].fate = Fate::RunnerUp;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A field whose contenders take as long as they are told.
    struct Fake {
        seconds: Vec<f64>,
        /// The greatest share that a time is off by.
        noise: f64,
        wrong: Vec<usize>,
        fails: Vec<usize>,
        lost: bool,
        random: Random,
        timed: Vec<usize>,
        spent: f64,
    }

    impl Fake {
        fn new(seconds: &[f64]) -> Self {
            Self {
                seconds: seconds.into(),
                noise: 0.0,
                wrong: vec![],
                fails: vec![],
                lost: false,
                random: Random::new(1),
                timed: vec![],
                spent: 0.0,
            }
        }
    }

    impl Field for Fake {
        fn time(&mut self, i: usize) -> Result<f64, Error> {
            self.timed.push(i);
            if self.fails.contains(&i) {
                return Err(match self.lost {
                    true => Error::HangReport("hangs".into()),
                    false => Error::DeviceName("x".into()),
                });
            }
            self.spent += self.seconds[i];
            // As on a GPU: never much faster, now and then much slower.
            let off = match self.random.uniform() {
                x if x < 0.05 => 20.0 * self.noise,
                _ => self.noise * (self.random.uniform() * 2.0 - 1.0),
            };
            Ok(self.seconds[i] * (1.0 + off))
        }
        fn wrong(&mut self, i: usize) -> Result<Option<String>, Error> {
            Ok(self.wrong.contains(&i).then(|| "1 of 8 is wrong".into()))
        }
        fn elapsed(&self) -> Duration {
            Duration::from_secs_f64(self.spent)
        }
    }

    const RULES: Rules = Rules {
        warm: Duration::ZERO,
        rounds: 25,
        confirm: 25,
        enough: Duration::from_secs(1000),
    };

    fn run(field: &mut Fake, seed: u64) -> Result<Vec<Lane>, Error> {
        let n = field.seconds.len();
        race(field, n, &RULES, &mut Random::new(seed), &|_| {})
    }

    fn at(lanes: &[Lane], fate: &Fate) -> Vec<usize> {
        let all = lanes.iter().enumerate();
        all.filter(|(_, l)| l.fate == *fate)
            .map(|(i, _)| i)
            .collect()
    }

    #[test]
    fn the_fastest_wins_and_the_slow_ones_are_dropped_early() {
        let mut field = Fake::new(&[1.3, 1.0, 4.0, 1.01, 1.15]);
        let lanes = run(&mut field, 0).unwrap();
        assert_eq!(lanes[1].fate, Fate::Won);
        assert_eq!(lanes[3].fate, Fate::RunnerUp);
        assert_eq!(lanes[2].fate, Fate::Dropped(3));
        assert_eq!(lanes[0].fate, Fate::Dropped(5));
        assert_eq!(lanes[4].fate, Fate::Dropped(8));
        let launches = |i| field.timed.iter().filter(|&&t| t == i).count();
        assert_eq!(launches(2), 1 + 3, "the warm-up, and three rounds");
        assert_eq!(launches(1), 1 + 25 + 25);
        assert_eq!(lanes[1].seconds.len(), 25, "the last race counts");
    }

    #[test]
    fn noise_moves_the_winner_by_less_than_two_percent() {
        let seconds: Vec<f64> = (0..48)
            .map(|i| 1.0 + f64::from((i * 7) % 48) * 0.004)
            .collect();
        for seed in 0..40 {
            let mut field = Fake::new(&seconds);
            field.noise = 0.02;
            field.random = Random::new(seed + 100);
            let lanes = run(&mut field, seed).unwrap();
            let won = at(&lanes, &Fate::Won);
            assert_eq!(won.len(), 1);
            assert!(seconds[won[0]] < 1.02, "seed {seed}: {}", seconds[won[0]]);
        }
    }

    #[test]
    fn of_two_that_cannot_be_told_apart_the_first_wins() {
        for seed in 0..20 {
            let mut field = Fake::new(&[2.0, 1.002, 1.0, 1.1]);
            let lanes = run(&mut field, seed).unwrap();
            assert_eq!(at(&lanes, &Fate::Won), [1]);
            assert_eq!(at(&lanes, &Fate::RunnerUp), [2]);
        }
    }

    #[test]
    fn each_round_has_an_order_of_its_own() {
        let mut field = Fake::new(&[1.0; 4]);
        run(&mut field, 3).unwrap();
        let rounds: std::collections::BTreeSet<_> = field.timed[..26 * 4].chunks(4).collect();
        assert!(rounds.len() > 8, "{rounds:?}");
    }

    #[test]
    fn who_is_wrong_does_not_win_however_fast() {
        let mut field = Fake::new(&[1.0, 0.5, 0.6, 1.2]);
        field.wrong = vec![1];
        let lanes = run(&mut field, 0).unwrap();
        assert_eq!(lanes[1].fate, Fate::Wrong("1 of 8 is wrong".into()));
        assert_eq!(lanes[2].fate, Fate::Won);
        // It was dropped for being slower than what is wrong, and is second best.
        assert_eq!(lanes[0].fate, Fate::RunnerUp);
        assert_eq!(lanes[3].fate, Fate::Dropped(3));
    }

    #[test]
    fn who_fails_is_out_and_the_others_go_on() {
        let mut field = Fake::new(&[1.0, 0.1, 2.0]);
        field.fails = vec![1];
        let lanes = run(&mut field, 0).unwrap();
        assert!(matches!(&lanes[1].fate, Fate::Failed(why) if why.starts_with("a device is")));
        assert_eq!(lanes[0].fate, Fate::Won);
        assert_eq!(field.timed.iter().filter(|&&i| i == 1).count(), 1);
    }

    #[test]
    fn a_lost_device_ends_the_race() {
        let mut field = Fake::new(&[1.0, 1.0]);
        (field.fails, field.lost) = (vec![1], true);
        assert!(run(&mut field, 0).unwrap_err().is_lost());
    }

    #[test]
    fn nobody_wins_where_all_fail_or_are_wrong() {
        let mut field = Fake::new(&[1.0, 1.1, 1.2]);
        (field.fails, field.wrong) = (vec![0], vec![1, 2]);
        let lanes = run(&mut field, 0).unwrap();
        assert!(at(&lanes, &Fate::Won).is_empty());
        let mut none = Fake::new(&[]);
        assert!(run(&mut none, 0).unwrap().is_empty());
    }

    #[test]
    fn one_alone_wins() {
        let lanes = run(&mut Fake::new(&[1.0]), 0).unwrap();
        assert_eq!(lanes[0].fate, Fate::Won);
        assert_eq!(lanes[0].seconds.len(), 25);
    }

    #[test]
    fn slow_work_is_timed_three_rounds_and_no_more_than_enough() {
        let mut field = Fake::new(&[300.0, 400.0]);
        let lanes = run(&mut field, 0).unwrap();
        assert_eq!(lanes[0].fate, Fate::Won);
        let before_the_last_two = field.timed.len() - 2 * RULES.confirm as usize;
        assert_eq!(before_the_last_two, 2 * (1 + 3));
    }
}
