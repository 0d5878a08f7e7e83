//! Comparison of outputs with the float64 reference.
//!
//! An element passes if its error is within the tolerance. A NaN passes if the reference is NaN with
//! a finite tolerance. An element that was never written fails, unless the reference marks it as
//! [`UNTOUCHED`].

use serde::Serialize;
use warpline_ir::DType;
use warpline_kernels::numbers::{element_value, half_ulp};
use warpline_kernels::{TensorSpec, UNTOUCHED};

/// The byte that fills outputs before a run. In every floating-point type it forms a NaN that no
/// instruction produces.
pub const POISON: u8 = 0xff;

/// An output after a run on a device.
#[derive(Clone, PartialEq, Debug)]
pub struct DeviceOutput {
    /// The elements, little-endian.
    pub bytes: Vec<u8>,
    /// The indices of elements that were never written, ascending.
    pub never_written: Vec<usize>,
}

/// The comparison of one output with the reference.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct Comparison {
    /// The output's name.
    pub output: String,
    /// The number of compared elements.
    pub elements: usize,
    /// The number of failing elements, including those never written.
    pub failed: usize,
    /// The number of elements that were never written.
    pub never_written: usize,
    /// The largest absolute error; `null` in JSON if it is not finite.
    pub max_error: f64,
    /// The element with the largest error in ulp; none if the output has no elements.
    pub max_ulp: Option<ElementError>,
    /// The element with the largest ratio of error to tolerance; none if the output has no elements.
    pub worst: Option<ElementError>,
}

/// One element of an output and its error.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct ElementError {
    /// The index, outermost dimension first.
    pub index: Vec<usize>,
    /// The actual value.
    pub value: f64,
    /// The reference value.
    pub expected: f64,
    /// The absolute error.
    pub error: f64,
    /// The error in ulp: spacings of the output type at the expected value, or at the
    /// value itself where zero is expected.
    pub ulp: f64,
    /// The error divided by the absolute expected value; infinite where zero is expected
    /// and the value differs.
    pub relative: f64,
    /// The tolerance: the largest absolute error that passes.
    pub bound: f64,
    /// The tolerance in ulp.
    pub bound_ulp: f64,
    /// Error divided by tolerance; above 1 the element fails.
    pub ratio: f64,
}

impl Comparison {
    /// Returns whether every element passes.
    pub fn passed(&self) -> bool {
        self.failed == 0
    }
}

/// Compares one output with the reference, which has the value and tolerance of each element.
///
/// An element without a reference fails.
///
/// ```
/// use warpline::compare::{DeviceOutput, compare};
/// use warpline::kernels::{HostTensor, TensorSpec};
///
/// let spec = TensorSpec { name: "c", dtype: warpline_ir::DType::F32, shape: vec![2, 2] };
/// let bytes = HostTensor::round(spec.clone(), [1.0, 2.0, 3.5, f64::NAN]).data;
/// let produced = DeviceOutput { bytes, never_written: vec![] };
/// let reference = [(1.0, 0.1), (2.0, 0.1), (3.0, 0.1), (4.0, 0.1)];
/// let found = compare(&spec, &produced, &reference);
/// assert_eq!((found.elements, found.failed), (4, 2));
/// assert_eq!(found.worst.unwrap().index, [1, 1]);
/// ```
pub fn compare(spec: &TensorSpec, produced: &DeviceOutput, reference: &[(f64, f64)]) -> Comparison {
    let size = spec.dtype.bytes();
    let elements = spec.elements();
    let mut never_written = produced.never_written.iter().copied().peekable();
    let mut found = Comparison {
        output: spec.name.to_owned(),
        elements,
        failed: 0,
        never_written: 0,
        max_error: 0.0,
        max_ulp: None,
        worst: None,
    };
    let mut worst: Option<(usize, ElementCheck)> = None;
    let mut max_ulp: Option<(usize, f64, ElementCheck)> = None;
    for i in 0..elements {
        let written = never_written.next_if_eq(&i).is_none();
        let bytes = produced
            .bytes
            .get(i * size..(i + 1) * size)
            .filter(|_| written);
        // A NaN tolerance never passes.
        let (expected, bound) = reference.get(i).copied().unwrap_or((f64::NAN, f64::NAN));
        let bytes = bytes.filter(|b| b.iter().any(|&x| x != POISON) || is_integer(spec.dtype));
        if is_untouched(expected, bound) {
            found.failed += usize::from(bytes.is_some());
            continue;
        }
        let checked = match bytes {
            Some(b) => ElementCheck::new(element_value(spec.dtype, b), expected, bound),
            None => ElementCheck::missing(expected, bound),
        };
        found.never_written += usize::from(bytes.is_none());
        found.failed += usize::from(!checked.passes);
        // Any finite value passes where the reference was not computed; it has no error.
        if bound == f64::INFINITY && checked.passes {
            continue;
        }
        found.max_error = found.max_error.max(checked.error);
        if worst.as_ref().is_none_or(|(_, w)| checked.ratio > w.ratio) {
            worst = Some((i, checked));
        }
        let ulp = checked.in_ulp(spec.dtype, checked.error);
        if max_ulp.as_ref().is_none_or(|(_, max, _)| ulp > *max) {
            max_ulp = Some((i, ulp, checked));
        }
    }
    found.worst = worst.map(|(i, check)| check.to_element_error(i, spec));
    found.max_ulp = max_ulp.map(|(i, _, check)| check.to_element_error(i, spec));
    found
}

/// Returns whether every bit pattern is a valid value, so that poison cannot be detected.
fn is_integer(dtype: DType) -> bool {
    use DType::{I32, I64, U8, U16, U32, U64};
    matches!(dtype, U8 | U16 | U32 | U64 | I32 | I64)
}

/// Returns whether the reference marks the element as one that must not be written.
fn is_untouched(expected: f64, bound: f64) -> bool {
    expected.is_nan() && bound == UNTOUCHED.1
}

/// The comparison of one element.
#[derive(Clone, Copy)]
struct ElementCheck {
    value: f64,
    expected: f64,
    error: f64,
    bound: f64,
    ratio: f64,
    passes: bool,
}

impl ElementCheck {
    fn new(value: f64, expected: f64, bound: f64) -> Self {
        // Equal infinities have no error, and neither has an expected NaN.
        let error = match (value - expected).abs() {
            _ if value == expected || value.is_nan() && expected.is_nan() => 0.0,
            e if e.is_nan() => f64::INFINITY,
            e => e,
        };
        let passes = error <= bound && error.is_finite();
        let ratio = match error / bound {
            _ if error == 0.0 && passes => 0.0,
            r if r.is_nan() => f64::INFINITY,
            r => r,
        };
        Self {
            value,
            expected,
            error,
            bound,
            ratio,
            passes,
        }
    }

    /// Returns a distance in ulp of the output type.
    fn in_ulp(&self, dtype: DType, distance: f64) -> f64 {
        if distance == 0.0 {
            return 0.0;
        }
        let magnitude = match self.expected {
            0.0 => self.value,
            expected => expected,
        };
        distance / (2.0 * half_ulp(dtype, magnitude))
    }

    fn to_element_error(self, flat: usize, spec: &TensorSpec) -> ElementError {
        let relative = match self.error {
            0.0 => 0.0,
            error => error / self.expected.abs(),
        };
        ElementError {
            index: unflatten(flat, &spec.shape),
            value: self.value,
            expected: self.expected,
            error: self.error,
            ulp: self.in_ulp(spec.dtype, self.error),
            relative: if relative.is_nan() {
                f64::INFINITY
            } else {
                relative
            },
            bound: self.bound,
            bound_ulp: self.in_ulp(spec.dtype, self.bound),
            ratio: self.ratio,
        }
    }

    /// Returns the failure of an element that was never written.
    fn missing(expected: f64, bound: f64) -> Self {
        Self {
            value: f64::NAN,
            expected,
            error: f64::INFINITY,
            bound,
            ratio: f64::INFINITY,
            passes: false,
        }
    }
}

/// Converts a flat index to a multi-dimensional index, outermost dimension first.
fn unflatten(mut flat: usize, shape: &[usize]) -> Vec<usize> {
    let mut index: Vec<usize> = shape
        .iter()
        .rev()
        .map(|&n| {
            let i = flat % n.max(1);
            flat /= n.max(1);
            i
        })
        .collect();
    index.reverse();
    index
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpline_kernels::HostTensor;

    fn compare_f32(
        values: &[f64],
        reference: &[(f64, f64)],
        never_written: &[usize],
    ) -> Comparison {
        let shape = vec![values.len()];
        let spec = TensorSpec {
            name: "c",
            dtype: DType::F32,
            shape,
        };
        let bytes = HostTensor::round(spec.clone(), values.iter().copied()).data;
        compare(
            &spec,
            &DeviceOutput {
                bytes,
                never_written: never_written.into(),
            },
            reference,
        )
    }

    #[test]
    fn an_element_passes_only_within_its_tolerance() {
        let reference = [(1.0, 0.25), (2.0, 0.5), (0.0, 0.0)];
        assert!(compare_f32(&[1.25, 1.5, 0.0], &reference, &[]).passed());
        for (i, &(x, bound)) in reference.iter().enumerate().take(2) {
            let mut values = [1.0, 2.0, 0.0];
            values[i] = x + 4.0 * bound;
            let found = compare_f32(&values, &reference, &[]);
            assert_eq!(found.failed, 1);
            let worst = found.worst.unwrap();
            assert_eq!((worst.index, worst.ratio), (vec![i], 4.0));
        }
        let found = compare_f32(&[1.0, 2.0, 1e-30], &reference, &[]);
        assert_eq!(
            found.failed, 1,
            "a tolerance of 0 accepts only the value itself"
        );
        assert_eq!(found.worst.unwrap().ratio, f64::INFINITY);
    }

    #[test]
    fn a_nan_passes_only_if_it_is_expected() {
        for expected in [1.0, f64::INFINITY] {
            let found = compare_f32(&[f64::NAN], &[(expected, f64::INFINITY)], &[]);
            assert_eq!(found.failed, 1, "{expected}");
        }
        assert!(compare_f32(&[f64::NAN], &[(f64::NAN, 0.0)], &[]).passed());
        assert!(!compare_f32(&[1.0], &[(f64::NAN, 0.0)], &[]).passed());
        assert!(!compare_f32(&[f64::NAN], &[(f64::NAN, 0.0)], &[0]).passed());
        let found = compare_f32(&[1.0], &[(1.0, f64::NAN)], &[]);
        assert_eq!(found.failed, 1, "a NaN tolerance never passes");
    }

    #[test]
    fn only_equal_infinities_pass() {
        let inf = f64::INFINITY;
        assert!(compare_f32(&[inf], &[(inf, 0.0)], &[]).passed());
        assert!(!compare_f32(&[inf], &[(-inf, 0.0)], &[]).passed());
        assert!(!compare_f32(&[inf], &[(1.0, 1e30)], &[]).passed());
    }

    #[test]
    fn an_unwritten_element_fails() {
        let found = compare_f32(&[1.0, 1.0, 1.0], &[(1.0, 0.0); 3], &[1]);
        assert_eq!((found.failed, found.never_written), (1, 1));
        assert_eq!(found.worst.unwrap().index, [1]);
    }

    #[test]
    fn an_untouched_element_fails_if_it_is_written() {
        assert!(compare_f32(&[0.0], &[UNTOUCHED], &[0]).passed());
        assert_eq!(compare_f32(&[0.0], &[UNTOUCHED], &[]).failed, 1);
        assert_eq!(compare_f32(&[f64::NAN], &[UNTOUCHED], &[]).failed, 1);
        // On a GPU, unwritten elements still have the poison.
        let spec = TensorSpec {
            name: "c",
            dtype: DType::Bf16,
            shape: vec![2],
        };
        let poisoned = DeviceOutput {
            bytes: vec![POISON; 4],
            never_written: vec![],
        };
        let found = compare(&spec, &poisoned, &[UNTOUCHED, (f64::NAN, 0.0)]);
        assert_eq!((found.failed, found.never_written), (1, 1));
    }

    #[test]
    fn an_element_without_a_reference_fails() {
        assert_eq!(compare_f32(&[1.0, 1.0], &[(1.0, 0.0)], &[]).failed, 1);
    }

    #[test]
    fn an_empty_output_passes() {
        let found = compare_f32(&[], &[], &[]);
        assert!(found.passed() && found.worst.is_none());
    }

    #[test]
    fn errors_are_reported_in_ulp_and_relative() {
        // bf16 has 8 significant bits: its spacing at 1 is 2^-7, at 4 it is 2^-5.
        let spec = TensorSpec {
            name: "c",
            dtype: DType::Bf16,
            shape: vec![3],
        };
        let bytes = HostTensor::round(spec.clone(), [1.0, 4.0, 0.0]).data;
        let produced = DeviceOutput {
            bytes,
            never_written: vec![],
        };
        let (at_1, at_4) = (2f64.powi(-8), 2f64.powi(-7));
        let reference = [(1.0 + at_1, 0.25), (4.0 + at_4, at_4), (0.0, 0.0)];
        let found = compare(&spec, &produced, &reference);
        assert!(found.passed());
        let most = found.max_ulp.unwrap();
        assert_eq!((most.index, most.ulp), (vec![0], 0.5));
        assert_eq!(most.relative, at_1 / (1.0 + at_1));
        let worst = found.worst.unwrap();
        assert_eq!((worst.index, worst.ulp), (vec![1], 0.25));
        assert_eq!((worst.bound_ulp, worst.ratio), (0.25, 1.0));
    }

    #[test]
    fn an_expected_zero_uses_the_ulp_of_the_value() {
        let found = compare_f32(&[f64::powi(2.0, -20)], &[(0.0, 1.0)], &[]);
        let most = found.max_ulp.unwrap();
        assert_eq!((most.ulp, most.relative), (2f64.powi(23), f64::INFINITY));
        let found = compare_f32(&[1.0], &[(1.0, 0.0)], &[0]);
        assert_eq!(found.max_ulp.unwrap().ulp, f64::INFINITY);
    }

    #[test]
    fn the_innermost_dimension_is_the_last_index() {
        assert_eq!(unflatten(0, &[2, 3, 4]), [0, 0, 0]);
        assert_eq!(unflatten(23, &[2, 3, 4]), [1, 2, 3]);
        assert_eq!(unflatten(5, &[2, 3, 4]), [0, 1, 1]);
        assert_eq!(unflatten(7, &[100]), [7]);
    }
}
