//! Divisors that a launch knows.

use super::declare::Builder;
use super::flow::select;
use super::reg::Reg;
use super::state::here;

/// A divisor that is the same for a whole launch, with its reciprocal: to
/// divide by it takes a product and a shift, where the machine has no division
/// and takes a hundred cycles for what stands for it.
///
/// A launch passes [`Divisor::word`] of the number.
///
/// ```
/// use warpline_ir::{Kernel, Target, build::*};
///
/// let kernel = Kernel::build("rows", &Target::SM_90A, |k| {
///     let (columns, out) = (k.divisor("columns"), k.pointer::<u32>("out"));
///     k.role("all").body(|| out.store(thread_id(), columns.of(thread_id())));
/// })?;
/// assert_eq!(kernel.params[0].name, "columns");
/// # Ok::<(), warpline_ir::BuildErrors>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Divisor {
    factor: Reg<u32>,
    shift: Reg<u32>,
}

/// Bits of a number that can be divided.
const BITS: u32 = 31;

impl Builder {
    /// A divisor passed at launch.
    #[track_caller]
    pub fn divisor(self, name: &str) -> Divisor {
        let _at = here();
        // The shift is 31 to 63, and the factor any word.
        let [least, most] = [BITS, 64].map(|shift| u64::from(shift) << 32);
        let word = self.param::<u64>(name).at_least(least).at_most(most - 1);
        Divisor {
            factor: word.cast(),
            shift: (word >> 32u32).cast(),
        }
    }
}

impl Divisor {
    /// What a launch passes for a divisor, which is at least 1: the factor in
    /// the low half, the shift in the high half.
    ///
    /// ```
    /// use warpline_ir::build::Divisor;
    ///
    /// let word = Divisor::word(7);
    /// let (factor, shift) = (word & 0xffff_ffff, word >> 32);
    /// assert_eq!((1_000_000 * factor) >> shift, 1_000_000 / 7);
    /// ```
    pub const fn word(by: u32) -> u64 {
        let by = if by == 0 { 1 } else { by as u64 };
        // The least power of two that is not less.
        let log = by.next_power_of_two().trailing_zeros();
        // Above the reciprocal by less than what a number of so many bits shows.
        let factor = (1 << (BITS + log)) / by + 1;
        (BITS as u64 + log as u64) << 32 | factor
    }

    /// How often the divisor goes into `x`, a number below 2³¹.
    #[track_caller]
    pub fn of(self, x: Reg<u32>) -> Reg<u32> {
        let _at = here();
        (x.mul_wide(self.factor) >> self.shift).cast()
    }

    /// `yes` in the lanes where `cond` holds, `no` in the rest.
    #[track_caller]
    pub fn select(cond: Reg<bool>, yes: Self, no: Self) -> Self {
        let _at = here();
        Self {
            factor: select(cond, yes.factor, no.factor),
            shift: select(cond, yes.shift, no.shift),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn divided(x: u32, by: u32) -> u32 {
        let word = Divisor::word(by);
        ((u64::from(x) * (word & 0xffff_ffff)) >> (word >> 32)) as u32
    }

    #[test]
    fn quotients_are_exact_up_to_31_bits() {
        let most = (1u32 << BITS) - 1;
        let near = |x: u32| [x.saturating_sub(1), x, x.saturating_add(1)];
        let powers = (0..31).flat_map(|i| near(1 << i));
        let divisors = powers.chain([3, 7, 10, 37, 112, 896, 1000, 65535, most]);
        for by in divisors.filter(|&by| by >= 1 && by <= most) {
            // Around multiples of the divisor, where a wrong reciprocal shows first.
            let multiples = [1, 2, 3, 1000, most / by].map(|i| by.saturating_mul(i).min(most));
            let numbers = multiples.into_iter().flat_map(near).chain([0, most]);
            for x in numbers.filter(|&x| x <= most) {
                assert_eq!(divided(x, by), x / by, "{x} / {by}");
            }
        }
    }

    #[test]
    fn every_divisor_keeps_the_declared_bounds() {
        let kernel = crate::Kernel::build("k", &crate::Target::SM_90A, |k| {
            let _ = k.divisor("by");
            k.role("all").body(|| {});
        })
        .expect("a kernel");
        let bounds = &kernel.params[0].bounds;
        for by in (0..1000).chain((0..32).flat_map(|i| [(1 << i) - 1, 1 << i, (1 << i) + 1])) {
            assert_eq!(bounds.broken_by(Divisor::word(by).into()), None, "{by}");
        }
        assert_eq!(bounds.broken_by(Divisor::word(u32::MAX).into()), None);
        assert!(
            bounds.broken_by(7).is_some(),
            "a number is no divisor's word"
        );
    }

    #[test]
    fn the_factor_fits_into_its_half() {
        for by in (1..100_000).chain((0..31).map(|i| (1u32 << i) + 1)) {
            let word = Divisor::word(by);
            let factor = (1u64 << (word >> 32)) / u64::from(by) + 1;
            assert_eq!(word & 0xffff_ffff, factor, "{by}");
        }
    }
}
