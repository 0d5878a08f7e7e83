//! Intervals of unknown values that differ between lanes.
//!
//! An index such as `base + (lane ^ x) % 32` is a different unknown number in each lane, but all
//! lanes stay inside one interval, so the access stays inside its bytes.

use super::act::lanes_of;
use super::value::{Val, number};
use super::world::World;
use crate::symbolic::{Arg, type_range};
use warpline_ir::{Binary, Machine, Type};

/// Integers from the first to the second; none is negative.
pub(super) type Interval = (u64, u64);

/// Larger ones are no places in shared memory.
const MOST: u64 = 1 << 20;

impl World<'_, '_> {
    /// The bounds of a value in the lanes that run, read as a type.
    pub(super) fn interval(&self, v: &Val, ty: Type) -> Option<Interval> {
        let whole = |x: i128| u64::try_from(x).ok();
        match v {
            Val::Uni(x) => {
                let x = whole(number(*x, ty))?;
                Some((x, x))
            }
            Val::Lanes(numbers) => {
                let mut all = lanes_of(self.active()).map(|l| whole(number(numbers[l], ty)));
                let first = all.next()??;
                all.try_fold((first, first), |(lo, hi), x| {
                    let x = x?;
                    Some((lo.min(x), hi.max(x)))
                })
            }
            Val::Sym(s) => {
                let range = self.env.terms.range(&self.st.decided, Arg::Sym(*s));
                Some((whole(range.lo)?, whole(range.hi)?))
            }
            Val::Within(lo, hi) => Some((*lo, *hi)),
            Val::Pred { .. } => None,
            Val::Opaque => {
                let all = type_range(ty);
                (ty.is_int() && all.lo == 0).then_some((0, whole(all.hi)?))
            }
        }
    }

    /// The bounds of `f(a, b)`, where lanes may hold different values.
    pub(super) fn bounded(&self, f: Binary, ty: Type, a: &Val, b: &Val) -> Val {
        let by = match f {
            Binary::Shl | Binary::Shr => Type::U32,
            _ => ty,
        };
        let (a, b) = (self.interval(a, ty), self.interval(b, by));
        let found = match (f, a, b) {
            // One of the two is enough.
            (Binary::And, Some((_, hi)), None) | (Binary::And, None, Some((_, hi))) => {
                Some((0, hi))
            }
            (Binary::Rem, None, Some((lo, hi))) if lo > 0 && !ty.is_signed() => Some((0, hi - 1)),
            (f, Some(a), Some(b)) => of(f, a, b),
            _ => None,
        };
        let most = u64::try_from(type_range(ty).hi).unwrap_or(u64::MAX);
        match found {
            Some((lo, hi)) => Val::within(lo, hi, most),
            None => Val::Opaque,
        }
    }

    /// In each lane one of two values of a type.
    pub(super) fn either_of(&self, a: &Val, b: &Val) -> Val {
        // A number that is negative in its type is a large one here, and says little.
        match (self.interval(a, Type::U64), self.interval(b, Type::U64)) {
            (Some(a), Some(b)) => Val::within(a.0.min(b.0), a.1.max(b.1), MOST),
            _ => Val::Opaque,
        }
    }
}

impl Val {
    /// A value between bounds that a type with a largest value holds; unknown if they say little.
    pub(super) fn within(lo: u64, hi: u64, most: u64) -> Self {
        match hi <= most.min(MOST) {
            true => Val::Within(lo, hi),
            false => Val::Opaque,
        }
    }
}

/// The bounds of a function of two values, if it does not wrap around.
fn of(f: Binary, a: Interval, b: Interval) -> Option<Interval> {
    let bits = |x: u64| x.checked_add(1).and_then(u64::checked_next_power_of_two);
    let all_bits = || Some(bits(a.1.max(b.1))? - 1);
    Some(match f {
        Binary::Add => (a.0.checked_add(b.0)?, a.1.checked_add(b.1)?),
        Binary::Sub => (a.0.checked_sub(b.1)?, a.1.checked_sub(b.0)?),
        Binary::Mul => (a.0.checked_mul(b.0)?, a.1.checked_mul(b.1)?),
        Binary::Div => (a.0.checked_div(b.1)?, a.1.checked_div(b.0)?),
        Binary::Rem if b.0 > 0 && a.1 < b.0 => a,
        Binary::Rem if b.0 > 0 => (0, a.1.min(b.1 - 1)),
        Binary::Rem => return None,
        Binary::Min => (a.0.min(b.0), a.1.min(b.1)),
        Binary::Max => (a.0.max(b.0), a.1.max(b.1)),
        Binary::And => (0, a.1.min(b.1)),
        Binary::Or => (a.0.max(b.0), all_bits()?),
        Binary::Xor => (0, all_bits()?),
        Binary::Shl if b.0 == b.1 && b.0 < 32 => {
            (a.0.checked_mul(1 << b.0)?, a.1.checked_mul(1 << b.0)?)
        }
        Binary::Shl => return None,
        Binary::Shr => (
            a.0.checked_shr(u32::try_from(b.1).ok()?).unwrap_or(0),
            a.1.checked_shr(u32::try_from(b.0).ok()?).unwrap_or(0),
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Binary; 12] = [
        Binary::Add,
        Binary::Sub,
        Binary::Mul,
        Binary::Div,
        Binary::Rem,
        Binary::Min,
        Binary::Max,
        Binary::And,
        Binary::Or,
        Binary::Xor,
        Binary::Shl,
        Binary::Shr,
    ];

    /// The function of two numbers, if it does not wrap around.
    fn exact(f: Binary, a: u64, b: u64) -> Option<u64> {
        match f {
            Binary::Add => a.checked_add(b),
            Binary::Sub => a.checked_sub(b),
            Binary::Mul => a.checked_mul(b),
            Binary::Div => a.checked_div(b),
            Binary::Rem => a.checked_rem(b),
            Binary::Min => Some(a.min(b)),
            Binary::Max => Some(a.max(b)),
            Binary::And => Some(a & b),
            Binary::Or => Some(a | b),
            Binary::Xor => Some(a ^ b),
            Binary::Shl => a.checked_shl(b as u32),
            Binary::Shr => Some(a.checked_shr(b as u32).unwrap_or(0)),
        }
    }

    #[test]
    fn results_are_between_their_bounds() {
        let small = 0..10u64;
        for f in ALL {
            for a in small
                .clone()
                .flat_map(|lo| (lo..10).map(move |hi| (lo, hi)))
            {
                for b in small
                    .clone()
                    .flat_map(|lo| (lo..10).map(move |hi| (lo, hi)))
                {
                    let Some((lo, hi)) = of(f, a, b) else {
                        continue;
                    };
                    for (x, y) in (a.0..=a.1).flat_map(|x| (b.0..=b.1).map(move |y| (x, y))) {
                        let z = exact(f, x, y).unwrap_or_else(|| panic!("{f:?} {x} {y} wraps"));
                        assert!((lo..=hi).contains(&z), "{f:?} {x} {y}: {z} in {lo}..={hi}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_may_wrap_has_no_bounds() {
        assert_eq!(of(Binary::Sub, (3, 9), (0, 4)), None);
        assert_eq!(of(Binary::Div, (3, 9), (0, 4)), None);
        assert_eq!(of(Binary::Rem, (3, 9), (0, 4)), None);
        assert_eq!(of(Binary::Mul, (0, u64::MAX), (0, 2)), None);
        assert_eq!(of(Binary::Xor, (0, u64::MAX), (0, 2)), None);
    }
}
