//! An output against the reference, period by period.

use crate::compare::{Comparison, Produced, compare};
use crate::error::Error;
use serde::Serialize;
use warpline_kernels::TensorSpec;

/// How the output of a contender was compared, and what was found.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct Check {
    /// What was compared with what.
    pub how: &'static str,
    /// Elements compared.
    pub elements: usize,
    /// Elements that are wrong.
    pub failed: usize,
    /// A wrong one, in a sentence.
    pub wrong: Option<String>,
}

impl Check {
    /// Is every element right?
    pub fn passed(&self) -> bool {
        self.failed == 0
    }

    /// What is wrong, in a sentence; none where nothing is.
    pub(crate) fn sentence(&self) -> Option<String> {
        let (failed, elements) = (self.failed, self.elements);
        let one = self.wrong.as_deref().unwrap_or("none was compared");
        (!self.passed()).then(|| format!("{failed} of {elements} elements are wrong: {one}"))
    }

    /// The check of all outputs together.
    pub(crate) fn all(how: &'static str, found: impl IntoIterator<Item = Found>) -> Self {
        let mut all = Self {
            how,
            elements: 0,
            failed: 0,
            wrong: None,
        };
        for one in found {
            all.elements += one.elements;
            all.failed += one.failed;
            all.wrong = all.wrong.or(one.wrong);
        }
        all
    }
}

/// What must come out: one period against the reference, and so on to the end.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    /// The output of the small problem, which is one period of the large one's.
    pub(crate) period: TensorSpec,
    /// Its values, each with its bound.
    pub(crate) reference: Vec<(f64, f64)>,
    /// Bytes of the whole output.
    pub(crate) bytes: usize,
}

/// What was found in one output.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Found {
    elements: usize,
    failed: usize,
    wrong: Option<String>,
}

impl Expected {
    /// Compares the whole output, which `read` gives from a place on.
    ///
    /// Periods with the bits of the first are what the first is; others are
    /// compared element by element.
    pub(crate) fn judge(
        &self,
        mut read: impl FnMut(usize, &mut [u8]) -> Result<(), Error>,
    ) -> Result<Found, Error> {
        let period = self.period.bytes();
        let mut found = Found::default();
        if period == 0 || self.bytes == 0 {
            return Ok(found);
        }
        let mut first = vec![0; period.min(self.bytes)];
        read(0, &mut first)?;
        let first_compared = self.compare(&first);
        found.add(&first_compared, 0);
        let mut bytes = vec![0; period];
        for at in (period..self.bytes).step_by(period) {
            let part = &mut bytes[..period.min(self.bytes - at)];
            read(at, part)?;
            let start = at / self.period.dtype.bytes();
            if part.len() == period && *part == *first {
                found.add(&first_compared, start);
            } else {
                found.add(&self.compare(part), start);
            }
        }
        Ok(found)
    }

    /// Compares the start of a period, as long as the bytes are.
    fn compare(&self, bytes: &[u8]) -> Comparison {
        let elements = bytes.len() / self.period.dtype.bytes();
        let spec = TensorSpec {
            shape: vec![elements],
            ..self.period.clone()
        };
        let produced = Produced {
            bytes: bytes.to_vec(),
            never_written: Vec::new(),
        };
        let reference = &self.reference[..elements.min(self.reference.len())];
        compare(&spec, &produced, reference)
    }
}

impl Found {
    /// Adds a part of the output that starts at an element.
    fn add(&mut self, part: &Comparison, start: usize) {
        self.elements += part.elements;
        self.failed += part.failed;
        if part.passed() || self.wrong.is_some() {
            return;
        }
        self.wrong = part.worst.as_ref().map(|w| {
            format!(
                "element {} of {} is {} where {} is expected within {:.3e}",
                start + w.index.first().copied().unwrap_or(0),
                part.output,
                w.value,
                w.expected,
                w.bound
            )
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpline_ir::DType;
    use warpline_kernels::HostTensor;

    /// Four numbers over and over, ten in all.
    fn expected() -> Expected {
        let period = TensorSpec {
            name: "c",
            dtype: DType::F32,
            shape: vec![2, 2],
        };
        Expected {
            period,
            reference: [1.0, 2.0, 3.0, 4.0].map(|x| (x, 0.1)).into(),
            bytes: 10 * 4,
        }
    }

    fn judge(values: [f64; 10]) -> (Found, Vec<(usize, usize)>) {
        let spec = TensorSpec {
            shape: vec![10],
            ..expected().period
        };
        let bytes = HostTensor::round(spec, values).data;
        let mut reads = Vec::new();
        let found = expected().judge(|at, to| {
            reads.push((at, to.len()));
            to.copy_from_slice(&bytes[at..at + to.len()]);
            Ok(())
        });
        (found.unwrap(), reads)
    }

    #[test]
    fn the_whole_output_is_read_once_and_the_last_period_is_cut_off() {
        let (found, reads) = judge([1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0, 1.0, 2.0]);
        assert_eq!((found.elements, found.failed), (10, 0));
        assert_eq!(reads, [(0, 16), (16, 16), (32, 8)]);
    }

    #[test]
    fn other_bits_within_the_bound_are_right_in_every_period() {
        let (found, _) = judge([1.0, 2.0, 3.0, 4.0, 1.05, 2.0, 3.0, 3.95, 1.0, 2.05]);
        assert_eq!((found.elements, found.failed), (10, 0));
    }

    #[test]
    fn a_wrong_element_is_named_by_its_place_in_the_whole() {
        let (found, _) = judge([1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 7.0, 4.0, 1.0, 2.0]);
        assert_eq!(found.failed, 1);
        let sentence = "element 6 of c is 7 where 3 is expected within 1.000e-1";
        assert_eq!(found.wrong.as_deref(), Some(sentence));
        let (found, _) = judge([1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0, 1.0, f64::NAN]);
        assert_eq!(found.failed, 1);
    }

    #[test]
    fn a_wrong_first_period_makes_its_copies_wrong_too() {
        let (found, _) = judge([9.0, 2.0, 3.0, 4.0, 9.0, 2.0, 3.0, 4.0, 1.0, 2.0]);
        assert_eq!((found.elements, found.failed), (10, 2));
        let check = Check::all("how", [Found::default(), found]);
        assert!(!check.passed());
        let sentence = check.sentence().unwrap();
        assert!(sentence.starts_with("2 of 10 elements are wrong: element 0 of c is 9 where"));
    }

    #[test]
    fn nothing_is_read_of_an_empty_output() {
        let mut empty = expected();
        empty.bytes = 0;
        let found = empty.judge(|_, _| Err(Error::DeviceName("read".into())));
        assert_eq!(found.unwrap(), Found::default());
    }
}
