//! Declared bounds of launch parameters.
//!
//! The checker relies on them, and every device rejects a launch that breaks
//! them. The generated code does not depend on them, so they do not enter
//! [`Kernel::program_hash`].

use crate::loc::Loc;
use crate::machine::{Fault, FaultKind};
use crate::program::{Kernel, Param, ParamKind};
use crate::types::Type;
use crate::value::ParamId;
use std::fmt;
use std::ops::{Add, Mul, Sub};

/// The declared bounds of one parameter; the default is the full range of its type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// The minimum of an integer.
    pub least: i128,
    /// The maximum of an integer.
    pub most: i128,
    /// The divisor of an integer or of a pointer's address in bytes; 1 is no restriction.
    pub multiple_of: u64,
    /// The minimum number of elements behind a pointer.
    pub elements: Option<Extent>,
}

impl Bounds {
    /// Returns the bounds that the type of a parameter implies.
    pub fn of(kind: &ParamKind) -> Self {
        let (ty, multiple_of) = match kind {
            ParamKind::Scalar(ty) => (*ty, 1),
            ParamKind::Pointer(dtype) => (Type::U64, dtype.bytes() as u64),
            ParamKind::TensorMap(_) => (Type::U64, 1),
        };
        let (least, most) = ty.range().unwrap_or((i128::MIN, i128::MAX));
        Self {
            least,
            most,
            multiple_of,
            elements: None,
        }
    }

    /// Returns whether every allowed value is in `least..=most`.
    pub fn within(&self, least: i128, most: i128) -> bool {
        least <= self.least && self.most <= most
    }

    /// Returns whether no value is within the bounds.
    pub fn is_empty(&self) -> bool {
        let divisor = i128::from(self.multiple_of.max(1));
        let to_first_multiple = (divisor - self.least.rem_euclid(divisor)) % divisor;
        self.least.saturating_add(to_first_multiple) > self.most
    }

    /// Returns the bound that a value breaks, if any.
    pub fn broken_by(&self, value: i128) -> Option<BrokenBound> {
        if value < self.least {
            Some(BrokenBound::Least(self.least))
        } else if value > self.most {
            Some(BrokenBound::Most(self.most))
        } else if value % i128::from(self.multiple_of.max(1)) != 0 {
            Some(BrokenBound::Multiple(self.multiple_of))
        } else {
            None
        }
    }
}

/// A bound that a value breaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BrokenBound {
    /// The value is less than this.
    Least(i128),
    /// The value is more than this.
    Most(i128),
    /// The value is not a multiple of this.
    Multiple(u64),
}

impl fmt::Display for BrokenBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BrokenBound::Least(least) => write!(f, "at least {least}"),
            BrokenBound::Most(most) => write!(f, "at most {most}"),
            BrokenBound::Multiple(divisor) => write!(f, "a multiple of {divisor}"),
        }
    }
}

/// A number that depends on launch parameters: a sum of products of integer parameters and
/// constants, such as `rows*cols` or `rows*stride - stride + cols`.
///
/// The terms are normalized, so equal extents compare equal.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Extent {
    terms: Vec<ExtentTerm>,
}

/// An upper bound of a sum of products of integer parameters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limit {
    /// The sum.
    pub sum: Extent,
    /// The maximum.
    pub most: u64,
    /// The declaration's source location.
    pub loc: Loc,
}

/// One product of an [`Extent`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ExtentTerm {
    /// The parameters of the product, in ascending order; empty for a constant.
    pub params: Vec<ParamId>,
    /// The constant factor, not 0.
    pub times: i64,
}

impl Extent {
    /// Returns the terms of the sum.
    pub fn terms(&self) -> &[ExtentTerm] {
        &self.terms
    }

    /// Computes the value; `None` if a parameter has no value or the result overflows `i128`.
    pub fn value(&self, value_of: impl Fn(ParamId) -> Option<i128>) -> Option<i128> {
        self.terms.iter().try_fold(0i128, |sum, term| {
            let product = term
                .params
                .iter()
                .try_fold(i128::from(term.times), |product, &p| {
                    product.checked_mul(value_of(p)?)
                })?;
            sum.checked_add(product)
        })
    }

    /// Formats the extent with the parameter names of a kernel.
    fn show(&self, kernel: &Kernel) -> String {
        let mut text = String::new();
        for term in &self.terms {
            let name = |p: &ParamId| match kernel.params.get(p.index()) {
                Some(param) => param.name.clone(),
                None => p.to_string(),
            };
            let names = term.params.iter().map(name);
            let factor = term.times.unsigned_abs();
            let constant = (factor != 1 || term.params.is_empty()).then(|| factor.to_string());
            let product: Vec<String> = constant.into_iter().chain(names).collect();
            text.push_str(match (text.is_empty(), term.times < 0) {
                (true, false) => "",
                (true, true) => "-",
                (false, false) => " + ",
                (false, true) => " - ",
            });
            text.push_str(&product.join("*"));
        }
        match text.is_empty() {
            true => "0".to_owned(),
            false => text,
        }
    }

    /// Adds a term, sorted by descending number of parameters. Coefficients saturate at 64 bits;
    /// no buffer is that large.
    fn push(&mut self, params: Vec<ParamId>, times: i64) {
        let sort_key = |params: &Vec<ParamId>| (std::cmp::Reverse(params.len()), params.clone());
        let key = sort_key(&params);
        match (self.terms).binary_search_by_key(&key, |term| sort_key(&term.params)) {
            Ok(i) => {
                self.terms[i].times = self.terms[i].times.saturating_add(times);
                if self.terms[i].times == 0 {
                    self.terms.remove(i);
                }
            }
            Err(_) if times == 0 => {}
            Err(i) => self.terms.insert(i, ExtentTerm { params, times }),
        }
    }
}

impl From<u32> for Extent {
    fn from(n: u32) -> Self {
        u64::from(n).into()
    }
}

impl From<u64> for Extent {
    fn from(n: u64) -> Self {
        let mut extent = Self::default();
        extent.push(Vec::new(), i64::try_from(n).unwrap_or(i64::MAX));
        extent
    }
}

impl From<ParamId> for Extent {
    fn from(p: ParamId) -> Self {
        let mut extent = Self::default();
        extent.push(vec![p], 1);
        extent
    }
}

impl<T: Into<Extent>> Add<T> for Extent {
    type Output = Self;
    fn add(mut self, other: T) -> Self {
        for term in other.into().terms {
            self.push(term.params, term.times);
        }
        self
    }
}

impl<T: Into<Extent>> Sub<T> for Extent {
    type Output = Self;
    fn sub(mut self, other: T) -> Self {
        for term in other.into().terms {
            self.push(term.params, term.times.saturating_neg());
        }
        self
    }
}

impl<T: Into<Extent>> Mul<T> for Extent {
    type Output = Self;
    fn mul(self, other: T) -> Self {
        let other = other.into();
        let mut product = Self::default();
        for a in &self.terms {
            for b in &other.terms {
                let mut params = [a.params.as_slice(), &b.params].concat();
                params.sort_unstable();
                product.push(params, a.times.saturating_mul(b.times));
            }
        }
        product
    }
}

impl Param {
    /// Returns a parameter whose bounds are those of its type.
    pub fn new(name: impl Into<String>, kind: ParamKind, loc: Loc) -> Self {
        Self {
            name: name.into(),
            bounds: Bounds::of(&kind),
            kind,
            pdl_safe: false,
            loc,
        }
    }

    /// Checks the bits of an argument; the fault states the value, the rule and the fix.
    pub(crate) fn check(&self, bits: u64) -> Result<(), Fault> {
        let (name, bounds) = (&self.name, &self.bounds);
        if let ParamKind::Pointer(dtype) = &self.kind {
            let align = bounds.multiple_of.max(1);
            if bits.is_multiple_of(align) {
                return Ok(());
            }
            return reject(format!(
                "parameter {name} is the address {bits:#x}, but the kernel takes {dtype} elements at a multiple of {align} bytes\n\
                 help: pass an address that is a multiple of {align}"
            ));
        }
        let ParamKind::Scalar(ty) = &self.kind else {
            return Ok(());
        };
        let Some(value) = ty.int_value(bits) else {
            return Ok(());
        };
        match bounds.broken_by(value) {
            None => Ok(()),
            Some(rule) => reject(format!(
                "parameter {name} is {value}, but the kernel takes {ty} values that are {rule}\n\
                 help: pass a value that is {rule}"
            )),
        }
    }
}

impl Kernel {
    /// Checks the declared limits; `value` returns the value of an integer parameter.
    pub(crate) fn check_limits(
        &self,
        value: impl Fn(ParamId) -> Option<i128>,
    ) -> Result<(), Fault> {
        for Limit { sum, most, .. } in &self.limits {
            let found = sum.value(&value);
            if found.is_some_and(|n| n <= i128::from(*most)) {
                continue;
            }
            let found = found.map_or("more than 2^127".to_owned(), |n| n.to_string());
            return reject(format!(
                "{} is {found}, but the kernel takes at most {most}\n\
                 help: pass smaller values",
                sum.show(self)
            ));
        }
        Ok(())
    }

    /// Checks every declared extent against the buffers of a launch. `value` returns the value
    /// of an integer parameter; `bytes` returns the bytes from a pointer to the end of its
    /// buffer, or `None` if unknown.
    pub fn check_extents(
        &self,
        value: impl Fn(ParamId) -> Option<i128>,
        bytes: impl Fn(ParamId) -> Option<u64>,
    ) -> Result<(), Fault> {
        for (id, p) in (0..).map(ParamId).zip(&self.params) {
            let (Some(extent), ParamKind::Pointer(dtype)) = (&p.bounds.elements, &p.kind) else {
                continue;
            };
            let Some(bytes) = bytes(id) else {
                continue;
            };
            let available = bytes / dtype.bytes() as u64;
            let needed = extent.value(&value);
            if needed.is_some_and(|n| n <= i128::from(available)) {
                continue;
            }
            let needed = needed.map_or("more than 2^127".to_owned(), |n| n.to_string());
            let shown = extent.show(self);
            let rule = match shown == needed {
                true => needed,
                false => format!("{shown} = {needed}"),
            };
            return reject(format!(
                "parameter {} points to {available} {dtype} elements, but the kernel takes at least {rule}\n\
                 help: pass a larger buffer or smaller extents",
                p.name
            ));
        }
        Ok(())
    }

    /// Formats the declared limits for the text form.
    pub(crate) fn show_limits(&self) -> String {
        let line = |l: &Limit| format!("  limit {} at most {}\n", l.sum.show(self), l.most);
        self.limits.iter().map(line).collect()
    }

    /// Formats the declared bounds of a parameter for the text form.
    pub(crate) fn show_bounds(&self, p: &Param) -> String {
        let (bounds, defaults) = (&p.bounds, Bounds::of(&p.kind));
        let mut text = String::new();
        if bounds.least != defaults.least {
            text += &format!(" at least {}", bounds.least);
        }
        if bounds.most != defaults.most {
            text += &format!(" at most {}", bounds.most);
        }
        if bounds.multiple_of != defaults.multiple_of {
            text += &match p.kind {
                ParamKind::Pointer(_) => format!(" aligned to {}", bounds.multiple_of),
                _ => format!(" multiple of {}", bounds.multiple_of),
            };
        }
        if let Some(extent) = &bounds.elements {
            text += &format!(" elements {}", extent.show(self));
        }
        text
    }
}

fn reject(text: String) -> Result<(), Fault> {
    Err(Fault::new(FaultKind::Launch, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params() -> [Extent; 3] {
        [0, 1, 2].map(|i| ParamId(i).into())
    }

    #[test]
    fn extents_compare_equal_in_any_order_of_terms() {
        let [rows, cols, stride] = params();
        let one = (rows.clone() - 1u32) * stride.clone() + cols.clone();
        let other = cols + stride.clone() * rows.clone() - stride.clone();
        assert_eq!(one, other);
        assert_ne!(one, rows.clone() * stride);
        assert_eq!(rows.clone() * 2u32 - rows.clone() - rows, 0u32.into());
    }

    #[test]
    fn extent_without_a_value_or_with_an_overflow_is_none() {
        let [rows, cols, _] = params();
        let product = rows.clone() * cols.clone() + 3u32;
        let values = |a: i128, b: i128| move |p: ParamId| Some([a, b][p.index()]);
        assert_eq!(product.value(values(5, 7)), Some(38));
        assert_eq!(product.value(values(-5, 7)), Some(-32));
        let large = i128::from(u64::MAX);
        assert_eq!(
            product.value(values(large, large)),
            None,
            "the product overflows i128"
        );
        let half = i128::from(i64::MAX);
        assert_eq!(product.value(values(half, half)), Some(half * half + 3));
        assert_eq!(product.value(|_| None), None);
    }

    #[test]
    fn default_bounds_are_the_range_of_the_type() {
        let bounds = |ty| Bounds::of(&ParamKind::Scalar(ty));
        let range = |ty| (bounds(ty).least, bounds(ty).most);
        assert_eq!(range(Type::U32), (0, (1 << 32) - 1));
        assert_eq!(range(Type::I32), (-(1 << 31), (1 << 31) - 1));
        assert_eq!(range(Type::U64), (0, (1 << 64) - 1));
        assert_eq!(range(Type::I64), (-(1 << 63), (1 << 63) - 1));
        assert!(bounds(Type::U32).within(0, 1 << 32));
        assert!(!bounds(Type::I32).within(0, 1 << 32));
    }

    #[test]
    fn value_beyond_a_bound_breaks_that_bound() {
        let bounds = Bounds {
            least: -8,
            most: 24,
            multiple_of: 8,
            elements: None,
        };
        for allowed in [-8, 0, 8, 24] {
            assert_eq!(bounds.broken_by(allowed), None);
        }
        for (value, broken) in [
            (-16, BrokenBound::Least(-8)),
            (-4, BrokenBound::Multiple(8)),
            (12, BrokenBound::Multiple(8)),
            (32, BrokenBound::Most(24)),
        ] {
            assert_eq!(bounds.broken_by(value), Some(broken));
        }
    }
}
