//! Fast division by a launch parameter.

use super::declare::Builder;
use super::flow::select;
use super::reg::Reg;
use super::state::caller_scope;

/// A divisor that is a launch parameter, encoded as a reciprocal (CUTLASS's `FastDivmod`).
///
/// Division is a multiplication and a shift; an integer division takes about 100 cycles.
/// The launch passes [`FastDivisor::encode`] of the divisor.
///
/// ```
/// use warpline_ir::{Kernel, Target, builder::*};
///
/// let kernel = Kernel::build("rows", &Target::SM_90A, |k| {
///     let (columns, out) = (k.divisor("columns"), k.pointer::<u32>("out"));
///     k.role("all").body(|| out.store(thread_id(), columns.divide(thread_id())));
/// })?;
/// assert_eq!(kernel.params[0].name, "columns");
/// # Ok::<(), warpline_ir::BuildErrors>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct FastDivisor {
    factor: Reg<u32>,
    shift: Reg<u32>,
}

/// The maximum width of a dividend in bits.
const BITS: u32 = 31;

impl Builder {
    /// Declares a divisor as a launch parameter.
    #[track_caller]
    pub fn divisor(self, name: &str) -> FastDivisor {
        let _caller = caller_scope();
        // The shift is 31 to 63; the factor is any word.
        let [least, most] = [BITS, 64].map(|shift| u64::from(shift) << 32);
        let word = self.param::<u64>(name).at_least(least).at_most(most - 1);
        FastDivisor {
            factor: word.cast(),
            shift: (word >> 32u32).cast(),
        }
    }
}

impl FastDivisor {
    /// Encodes a divisor (at least 1) for a launch: the factor in the low word, the shift in the
    /// high word.
    ///
    /// ```
    /// use warpline_ir::builder::FastDivisor;
    ///
    /// let word = FastDivisor::encode(7);
    /// let (factor, shift) = (word & 0xffff_ffff, word >> 32);
    /// assert_eq!((1_000_000 * factor) >> shift, 1_000_000 / 7);
    /// ```
    pub const fn encode(by: u32) -> u64 {
        let by = if by == 0 { 1 } else { by as u64 };
        // The binary logarithm, rounded up.
        let log = by.next_power_of_two().trailing_zeros();
        // The error of the rounded-up reciprocal is too small to affect dividends of BITS bits.
        let factor = (1 << (BITS + log)) / by + 1;
        (BITS as u64 + log as u64) << 32 | factor
    }

    /// Returns `x / divisor` for `x` below 2³¹.
    #[track_caller]
    pub fn divide(self, x: Reg<u32>) -> Reg<u32> {
        let _caller = caller_scope();
        (x.mul_wide(self.factor) >> self.shift).cast()
    }

    /// Selects `yes` in the lanes where `cond` is true and `no` in the rest.
    #[track_caller]
    pub fn select(cond: Reg<bool>, yes: Self, no: Self) -> Self {
        let _caller = caller_scope();
        Self {
            factor: select(cond, yes.factor, no.factor),
            shift: select(cond, yes.shift, no.shift),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn divide_by_reciprocal(x: u32, by: u32) -> u32 {
        let word = FastDivisor::encode(by);
        ((u64::from(x) * (word & 0xffff_ffff)) >> (word >> 32)) as u32
    }

    #[test]
    fn quotients_are_exact_up_to_31_bits() {
        let most = (1u32 << BITS) - 1;
        let neighbors = |x: u32| [x.saturating_sub(1), x, x.saturating_add(1)];
        let powers = (0..31).flat_map(|i| neighbors(1 << i));
        let divisors = powers.chain([3, 7, 10, 37, 112, 896, 1000, 65535, most]);
        for by in divisors.filter(|&by| by >= 1 && by <= most) {
            // Values around multiples of the divisor detect a wrong reciprocal.
            let multiples = [1, 2, 3, 1000, most / by].map(|i| by.saturating_mul(i).min(most));
            let numbers = multiples.into_iter().flat_map(neighbors).chain([0, most]);
            for x in numbers.filter(|&x| x <= most) {
                assert_eq!(divide_by_reciprocal(x, by), x / by, "{x} / {by}");
            }
        }
    }

    #[test]
    fn every_encoded_divisor_is_within_the_declared_bounds() {
        let kernel = crate::Kernel::build("k", &crate::Target::SM_90A, |k| {
            let _ = k.divisor("by");
            k.role("all").body(|| {});
        })
        .expect("a kernel");
        let bounds = &kernel.params[0].bounds;
        for by in (0..1000).chain((0..32).flat_map(|i| [(1 << i) - 1, 1 << i, (1 << i) + 1])) {
            assert_eq!(
                bounds.broken_by(FastDivisor::encode(by).into()),
                None,
                "{by}"
            );
        }
        assert_eq!(bounds.broken_by(FastDivisor::encode(u32::MAX).into()), None);
        assert!(bounds.broken_by(7).is_some(), "7 is not an encoded divisor");
    }

    #[test]
    fn factor_fits_into_32_bits() {
        for by in (1..100_000).chain((0..31).map(|i| (1u32 << i) + 1)) {
            let word = FastDivisor::encode(by);
            let factor = (1u64 << (word >> 32)) / u64::from(by) + 1;
            assert_eq!(word & 0xffff_ffff, factor, "{by}");
        }
    }
}
