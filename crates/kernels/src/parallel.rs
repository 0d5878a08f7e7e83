//! Fills a long slice on all cores.

use std::num::NonZeroUsize;
use std::thread;

/// Splits a slice into one part per core and runs `fill(first_unit, part)` on each. A unit is `unit`
/// elements; a part has whole units.
pub(crate) fn fill<T: Send>(all: &mut [T], unit: usize, fill: impl Fn(usize, &mut [T]) + Sync) {
    let unit = unit.max(1);
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let units = (all.len() / unit).div_ceil(cores).max(1);
    thread::scope(|scope| {
        for (i, part) in all.chunks_mut(units * unit).enumerate() {
            let fill = &fill;
            scope.spawn(move || fill(i * units, part));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_filled_once_with_its_own_index() {
        for units in [0, 1, 2, 3, 100, 101] {
            let mut all = vec![0; 3 * units];
            fill(&mut all, 3, |first, part| {
                for (i, unit) in part.chunks_mut(3).enumerate() {
                    unit.fill(first + i + 1);
                }
            });
            let whole = (1..=units).flat_map(|i| [i; 3]);
            assert_eq!(all, whole.collect::<Vec<usize>>());
        }
    }
}
