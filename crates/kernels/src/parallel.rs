//! Fills a long slice on all cores.

use std::num::NonZeroUsize;
use std::thread;

/// Splits a slice into one part per core and runs `fill(first_unit, part)` on each. A unit has
/// `unit_len` elements and is never divided.
pub(crate) fn fill<T: Send>(
    elements: &mut [T],
    unit_len: usize,
    fill: impl Fn(usize, &mut [T]) + Sync,
) {
    let unit_len = unit_len.max(1);
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let units_per_core = (elements.len() / unit_len).div_ceil(cores).max(1);
    thread::scope(|scope| {
        for (i, part) in elements.chunks_mut(units_per_core * unit_len).enumerate() {
            let fill = &fill;
            scope.spawn(move || fill(i * units_per_core, part));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_filled_once_with_its_own_index() {
        for units in [0, 1, 2, 3, 100, 101] {
            let mut filled = vec![0; 3 * units];
            fill(&mut filled, 3, |first, part| {
                for (i, unit) in part.chunks_mut(3).enumerate() {
                    unit.fill(first + i + 1);
                }
            });
            let expected = (1..=units).flat_map(|i| [i; 3]);
            assert_eq!(filled, expected.collect::<Vec<usize>>());
        }
    }
}
