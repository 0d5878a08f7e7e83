//! What came out, against the float64 reference.
//!
//! An element is right if it lies within its bound of the expected value; a
//! NaN where the reference has a NaN and a finite bound. What was never
//! written is wrong, unless the reference says that it must stay
//! [`UNTOUCHED`].

use serde::Serialize;
use warpline_ir::DType;
use warpline_kernels::numbers::value;
use warpline_kernels::{TensorSpec, UNTOUCHED};

/// Fills outputs before a run: a NaN in every floating-point type that no
/// instruction makes, all ones in integers.
pub const POISON: u8 = 0xff;

/// The bytes of an output as a device left them.
#[derive(Clone, PartialEq, Debug)]
pub struct Produced {
    /// Its elements, little-endian.
    pub bytes: Vec<u8>,
    /// The elements that were never written, in ascending order.
    pub never_written: Vec<usize>,
}

/// One output against the reference.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct Comparison {
    /// The output's name.
    pub output: String,
    /// How many elements were compared.
    pub elements: usize,
    /// How many are wrong, those never written included.
    pub failed: usize,
    /// How many were never written.
    pub never_written: usize,
    /// The largest error of all; `null` in JSON where it is not finite.
    pub max_error: f64,
    /// The element with the largest error for its bound; none if there are no elements.
    pub worst: Option<Worst>,
}

/// One element of an output.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct Worst {
    /// Where it is, outermost dimension first.
    pub index: Vec<usize>,
    /// What came out.
    pub value: f64,
    /// What the reference says.
    pub expected: f64,
    /// How far apart they are.
    pub error: f64,
    /// How far apart they may be.
    pub bound: f64,
    /// Error by bound: 1 is just right, above is wrong.
    pub ratio: f64,
}

impl Comparison {
    /// Is every element right?
    pub fn passed(&self) -> bool {
        self.failed == 0
    }
}

/// Compares one output with the reference: for each element its value and its bound.
///
/// An element that the reference leaves out is wrong.
///
/// ```
/// use warpline::compare::{Produced, compare};
/// use warpline::kernels::{HostTensor, TensorSpec};
///
/// let spec = TensorSpec { name: "c", dtype: warpline_ir::DType::F32, shape: vec![2, 2] };
/// let bytes = HostTensor::round(spec.clone(), [1.0, 2.0, 3.5, f64::NAN]).data;
/// let produced = Produced { bytes, never_written: vec![] };
/// let reference = [(1.0, 0.1), (2.0, 0.1), (3.0, 0.1), (4.0, 0.1)];
/// let found = compare(&spec, &produced, &reference);
/// assert_eq!((found.elements, found.failed), (4, 2));
/// assert_eq!(found.worst.unwrap().index, [1, 1]);
/// ```
pub fn compare(spec: &TensorSpec, produced: &Produced, reference: &[(f64, f64)]) -> Comparison {
    let size = spec.dtype.bytes();
    let elements = spec.elements();
    let mut gaps = produced.never_written.iter().copied().peekable();
    let mut found = Comparison {
        output: spec.name.to_owned(),
        elements,
        failed: 0,
        never_written: 0,
        max_error: 0.0,
        worst: None,
    };
    let mut worst: Option<(usize, Judged)> = None;
    for i in 0..elements {
        let written = gaps.next_if_eq(&i).is_none();
        let bytes = produced
            .bytes
            .get(i * size..(i + 1) * size)
            .filter(|_| written);
        // What the reference leaves out has no bound.
        let (expected, bound) = reference.get(i).copied().unwrap_or((f64::NAN, f64::NAN));
        let bytes = bytes.filter(|b| b.iter().any(|&x| x != POISON) || is_integer(spec.dtype));
        if is_untouched(expected, bound) {
            found.failed += usize::from(bytes.is_some());
            continue;
        }
        let judged = match bytes {
            Some(b) => Judged::new(value(spec.dtype, b), expected, bound),
            None => Judged::missing(expected, bound),
        };
        found.never_written += usize::from(bytes.is_none());
        found.failed += usize::from(!judged.right);
        found.max_error = found.max_error.max(judged.error);
        if worst.as_ref().is_none_or(|(_, w)| judged.ratio > w.ratio) {
            worst = Some((i, judged));
        }
    }
    found.worst = worst.map(|(i, j)| Worst {
        index: place(i, &spec.shape),
        value: j.value,
        expected: j.expected,
        error: j.error,
        bound: j.bound,
        ratio: j.ratio,
    });
    found
}

/// Is every bit pattern a number?
fn is_integer(dtype: DType) -> bool {
    use DType::{I32, I64, U8, U16, U32, U64};
    matches!(dtype, U8 | U16 | U32 | U64 | I32 | I64)
}

/// Does the reference say that nothing writes the element?
fn is_untouched(expected: f64, bound: f64) -> bool {
    expected.is_nan() && bound == UNTOUCHED.1
}

/// One element, judged.
#[derive(Clone, Copy)]
struct Judged {
    value: f64,
    expected: f64,
    error: f64,
    bound: f64,
    ratio: f64,
    right: bool,
}

impl Judged {
    fn new(value: f64, expected: f64, bound: f64) -> Self {
        // Equal infinities are equal; a NaN is right where one is expected.
        let error = match (value - expected).abs() {
            _ if value == expected || value.is_nan() && expected.is_nan() => 0.0,
            e if e.is_nan() => f64::INFINITY,
            e => e,
        };
        let right = error <= bound && error.is_finite();
        let ratio = match error / bound {
            _ if error == 0.0 && right => 0.0,
            r if r.is_nan() => f64::INFINITY,
            r => r,
        };
        Self {
            value,
            expected,
            error,
            bound,
            ratio,
            right,
        }
    }

    /// What was never written.
    fn missing(expected: f64, bound: f64) -> Self {
        Self {
            value: f64::NAN,
            expected,
            error: f64::INFINITY,
            bound,
            ratio: f64::INFINITY,
            right: false,
        }
    }
}

/// The place of an element, outermost dimension first.
fn place(mut flat: usize, shape: &[usize]) -> Vec<usize> {
    let mut at: Vec<usize> = shape
        .iter()
        .rev()
        .map(|&n| {
            let i = flat % n.max(1);
            flat /= n.max(1);
            i
        })
        .collect();
    at.reverse();
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpline_kernels::HostTensor;

    fn against(values: &[f64], reference: &[(f64, f64)], never_written: &[usize]) -> Comparison {
        let shape = vec![values.len()];
        let spec = TensorSpec {
            name: "c",
            dtype: DType::F32,
            shape,
        };
        let bytes = HostTensor::round(spec.clone(), values.iter().copied()).data;
        compare(
            &spec,
            &Produced {
                bytes,
                never_written: never_written.into(),
            },
            reference,
        )
    }

    #[test]
    fn what_lies_within_its_bound_is_right_and_four_times_the_bound_is_wrong() {
        let reference = [(1.0, 0.25), (2.0, 0.5), (0.0, 0.0)];
        assert!(against(&[1.25, 1.5, 0.0], &reference, &[]).passed());
        for (i, &(x, bound)) in reference.iter().enumerate().take(2) {
            let mut values = [1.0, 2.0, 0.0];
            values[i] = x + 4.0 * bound;
            let found = against(&values, &reference, &[]);
            assert_eq!(found.failed, 1);
            let worst = found.worst.unwrap();
            assert_eq!((worst.index, worst.ratio), (vec![i], 4.0));
        }
        let found = against(&[1.0, 2.0, 1e-30], &reference, &[]);
        assert_eq!(
            found.failed, 1,
            "a bound of 0 takes nothing but the value itself"
        );
        assert_eq!(found.worst.unwrap().ratio, f64::INFINITY);
    }

    #[test]
    fn a_nan_is_right_only_where_one_is_expected() {
        for expected in [1.0, f64::INFINITY] {
            let found = against(&[f64::NAN], &[(expected, f64::INFINITY)], &[]);
            assert_eq!(found.failed, 1, "{expected}");
        }
        assert!(against(&[f64::NAN], &[(f64::NAN, 0.0)], &[]).passed());
        assert!(!against(&[1.0], &[(f64::NAN, 0.0)], &[]).passed());
        assert!(!against(&[f64::NAN], &[(f64::NAN, 0.0)], &[0]).passed());
        let found = against(&[1.0], &[(1.0, f64::NAN)], &[]);
        assert_eq!(found.failed, 1, "a bound that is no number bounds nothing");
    }

    #[test]
    fn equal_infinities_are_right_and_others_are_not() {
        let inf = f64::INFINITY;
        assert!(against(&[inf], &[(inf, 0.0)], &[]).passed());
        assert!(!against(&[inf], &[(-inf, 0.0)], &[]).passed());
        assert!(!against(&[inf], &[(1.0, 1e30)], &[]).passed());
    }

    #[test]
    fn what_was_never_written_is_wrong_whatever_its_bytes_are() {
        let found = against(&[1.0, 1.0, 1.0], &[(1.0, 0.0); 3], &[1]);
        assert_eq!((found.failed, found.never_written), (1, 1));
        assert_eq!(found.worst.unwrap().index, [1]);
    }

    #[test]
    fn what_must_stay_untouched_is_wrong_once_it_is_written() {
        assert!(against(&[0.0], &[UNTOUCHED], &[0]).passed());
        assert_eq!(against(&[0.0], &[UNTOUCHED], &[]).failed, 1);
        assert_eq!(against(&[f64::NAN], &[UNTOUCHED], &[]).failed, 1);
        // On a GPU the poison is still there.
        let spec = TensorSpec {
            name: "c",
            dtype: DType::Bf16,
            shape: vec![2],
        };
        let poisoned = Produced {
            bytes: vec![POISON; 4],
            never_written: vec![],
        };
        let found = compare(&spec, &poisoned, &[UNTOUCHED, (f64::NAN, 0.0)]);
        assert_eq!((found.failed, found.never_written), (1, 1));
    }

    #[test]
    fn what_the_reference_leaves_out_is_wrong() {
        assert_eq!(against(&[1.0, 1.0], &[(1.0, 0.0)], &[]).failed, 1);
    }

    #[test]
    fn nothing_compared_is_nothing_wrong() {
        let found = against(&[], &[], &[]);
        assert!(found.passed() && found.worst.is_none());
    }

    #[test]
    fn places_count_the_innermost_dimension_fastest() {
        assert_eq!(place(0, &[2, 3, 4]), [0, 0, 0]);
        assert_eq!(place(23, &[2, 3, 4]), [1, 2, 3]);
        assert_eq!(place(5, &[2, 3, 4]), [0, 1, 1]);
        assert_eq!(place(7, &[100]), [7]);
    }
}
