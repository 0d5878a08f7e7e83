//! Measurement rounds in random order.

use crate::error::Error;
use warpline_kernels::numbers::Random;

/// The entries of each round: every candidate, and one of them a second time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct MeasurementRounds {
    entries: Vec<usize>,
}

impl MeasurementRounds {
    /// Returns rounds of `candidates` candidates, with `repeated` timed twice.
    pub(crate) fn new(candidates: usize, repeated: usize) -> Self {
        Self {
            entries: (0..candidates).chain([repeated]).collect(),
        }
    }

    /// Returns the number of entries in a round.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Times every entry in each of `rounds` rounds. Returns the samples by entry: the candidates in
    /// their order, then the repeated one.
    ///
    /// Runs untimed rounds first, while `needs_warm_up` returns true.
    pub(crate) fn run<S>(
        &self,
        rounds: u32,
        random: &mut Random,
        mut needs_warm_up: impl FnMut() -> bool,
        mut time: impl FnMut(usize) -> Result<S, Error>,
    ) -> Result<Vec<Vec<S>>, Error> {
        let n = self.len();
        while needs_warm_up() {
            for entry in shuffled(n, random) {
                time(self.entries[entry])?;
            }
        }
        let mut samples: Vec<Vec<S>> = (0..n).map(|_| Vec::new()).collect();
        for _ in 0..rounds {
            for entry in shuffled(n, random) {
                samples[entry].push(time(self.entries[entry])?);
            }
        }
        Ok(samples)
    }
}

/// Returns 0 … n − 1 in a uniformly random order (Fisher–Yates).
pub(crate) fn shuffled(n: usize, random: &mut Random) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    for last in (1..n).rev() {
        let other = (random.uniform() * (last + 1) as f64) as usize;
        order.swap(last, other.min(last));
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn all_orders_are_equally_likely() {
        let mut random = Random::new(1);
        let mut seen: BTreeMap<Vec<usize>, u32> = BTreeMap::new();
        for _ in 0..24_000 {
            *seen.entry(shuffled(4, &mut random)).or_default() += 1;
        }
        assert_eq!(seen.len(), 24);
        assert!(seen.values().all(|&n| (850..1150).contains(&n)), "{seen:?}");
        assert!(shuffled(0, &mut random).is_empty());
        assert_eq!(shuffled(1, &mut random), [0]);
    }

    #[test]
    fn each_round_times_every_candidate_once_and_one_twice() {
        let mut log = Vec::new();
        let mut warm_up = 3;
        let needs_warm_up = || {
            warm_up -= 1;
            warm_up >= 0
        };
        let time = |candidate| {
            log.push(candidate);
            Ok(log.len())
        };
        let samples = MeasurementRounds::new(3, 1)
            .run(20, &mut Random::new(7), needs_warm_up, time)
            .unwrap();

        assert_eq!(samples.len(), 4);
        assert!(samples.iter().all(|s| s.len() == 20));
        let rounds: Vec<&[usize]> = log.chunks(4).collect();
        assert_eq!(rounds.len(), 23);
        for round in &rounds {
            let mut sorted = round.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 1, 2]);
        }
        let orders: BTreeSet<_> = rounds.iter().collect();
        assert!(orders.len() > 5, "orders differ: {orders:?}");
        // The warm-up does not count.
        assert!(samples.iter().flatten().all(|&at| at > 3 * 4));
        // The samples of an entry belong to its candidate.
        for (entry, candidate) in [0, 1, 2, 1].into_iter().enumerate() {
            assert!(samples[entry].iter().all(|&at| log[at - 1] == candidate));
        }
    }

    #[test]
    fn a_failure_ends_the_rounds() {
        let mut calls = 0;
        let time = |_| -> Result<(), Error> {
            calls += 1;
            Err(Error::DeviceName("x".into()))
        };
        let run = MeasurementRounds::new(2, 0).run(15, &mut Random::new(0), || false, time);
        assert!(run.is_err());
        assert_eq!(calls, 1);
    }
}
