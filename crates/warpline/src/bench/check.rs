//! Comparison of an output with the reference, period by period.

use crate::compare::{Comparison, DeviceOutput, compare};
use crate::error::Error;
use serde::Serialize;
use warpline_kernels::TensorSpec;

/// The comparison of a candidate's outputs with the reference.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct Check {
    /// The comparison method.
    pub method: &'static str,
    /// The number of compared elements.
    pub elements: usize,
    /// The number of elements outside their tolerance.
    pub failed: usize,
    /// A description of the first failing element.
    pub first_failure: Option<String>,
}

impl Check {
    /// Returns whether every element is within its tolerance.
    pub fn passed(&self) -> bool {
        self.failed == 0
    }

    /// Describes the failure; `None` if the outputs pass.
    pub(crate) fn failure(&self) -> Option<String> {
        let (failed, elements) = (self.failed, self.elements);
        let first = self.first_failure.as_deref().unwrap_or("not compared");
        (!self.passed()).then(|| format!("{failed} of {elements} elements are wrong: {first}"))
    }

    /// Sums the checks of all outputs.
    pub(crate) fn sum(method: &'static str, found: impl IntoIterator<Item = OutputCheck>) -> Self {
        let mut sum = Self {
            method,
            elements: 0,
            failed: 0,
            first_failure: None,
        };
        for output in found {
            sum.elements += output.elements;
            sum.failed += output.failed;
            sum.first_failure = sum.first_failure.or(output.first_failure);
        }
        sum
    }
}

/// The expected values of an output, which repeats one period.
#[derive(Clone, Debug)]
pub(crate) struct ExpectedOutput {
    /// The output of the small problem: one period of the large output.
    pub(crate) period: TensorSpec,
    /// The value and tolerance of each element of the period.
    pub(crate) reference: Vec<(f64, f64)>,
    /// The size of the whole output in bytes.
    pub(crate) bytes: usize,
}

/// The comparison of one output.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct OutputCheck {
    elements: usize,
    failed: usize,
    first_failure: Option<String>,
}

impl ExpectedOutput {
    /// Compares the whole output. `read` fills a slice from a byte offset of the output.
    ///
    /// A period with the same bits as the first has the same result; others are compared element by
    /// element.
    pub(crate) fn check(
        &self,
        mut read: impl FnMut(usize, &mut [u8]) -> Result<(), Error>,
    ) -> Result<OutputCheck, Error> {
        let period = self.period.bytes();
        let mut found = OutputCheck::default();
        if period == 0 || self.bytes == 0 {
            return Ok(found);
        }
        let mut first = vec![0; period.min(self.bytes)];
        read(0, &mut first)?;
        let first_result = self.compare(&first);
        found.add(&first_result, 0);
        let mut bytes = vec![0; period];
        for offset in (period..self.bytes).step_by(period) {
            let chunk = &mut bytes[..period.min(self.bytes - offset)];
            read(offset, chunk)?;
            let start = offset / self.period.dtype.bytes();
            if chunk.len() == period && *chunk == *first {
                found.add(&first_result, start);
            } else {
                found.add(&self.compare(chunk), start);
            }
        }
        Ok(found)
    }

    /// Compares bytes with the start of the period.
    fn compare(&self, bytes: &[u8]) -> Comparison {
        let elements = bytes.len() / self.period.dtype.bytes();
        let spec = TensorSpec {
            shape: vec![elements],
            ..self.period.clone()
        };
        let produced = DeviceOutput {
            bytes: bytes.to_vec(),
            never_written: Vec::new(),
        };
        let reference = &self.reference[..elements.min(self.reference.len())];
        compare(&spec, &produced, reference)
    }
}

impl OutputCheck {
    /// Adds the comparison of the elements from `start`.
    fn add(&mut self, comparison: &Comparison, start: usize) {
        self.elements += comparison.elements;
        self.failed += comparison.failed;
        if comparison.passed() || self.first_failure.is_some() {
            return;
        }
        self.first_failure = comparison.worst.as_ref().map(|w| {
            format!(
                "element {} of {} is {}, expected {} ± {:.3e}",
                start + w.index.first().copied().unwrap_or(0),
                comparison.output,
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

    /// Returns a period of four values in an output of ten.
    fn expected() -> ExpectedOutput {
        let period = TensorSpec {
            name: "c",
            dtype: DType::F32,
            shape: vec![2, 2],
        };
        ExpectedOutput {
            period,
            reference: [1.0, 2.0, 3.0, 4.0].map(|x| (x, 0.1)).into(),
            bytes: 10 * 4,
        }
    }

    fn check(values: [f64; 10]) -> (OutputCheck, Vec<(usize, usize)>) {
        let spec = TensorSpec {
            shape: vec![10],
            ..expected().period
        };
        let bytes = HostTensor::round(spec, values).data;
        let mut reads = Vec::new();
        let found = expected().check(|offset, buffer| {
            reads.push((offset, buffer.len()));
            buffer.copy_from_slice(&bytes[offset..offset + buffer.len()]);
            Ok(())
        });
        (found.unwrap(), reads)
    }

    #[test]
    fn the_whole_output_is_read_once_with_a_truncated_last_period() {
        let (found, reads) = check([1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0, 1.0, 2.0]);
        assert_eq!((found.elements, found.failed), (10, 0));
        assert_eq!(reads, [(0, 16), (16, 16), (32, 8)]);
    }

    #[test]
    fn other_bits_within_the_tolerance_pass_in_every_period() {
        let (found, _) = check([1.0, 2.0, 3.0, 4.0, 1.05, 2.0, 3.0, 3.95, 1.0, 2.05]);
        assert_eq!((found.elements, found.failed), (10, 0));
    }

    #[test]
    fn a_failing_element_is_named_by_its_index_in_the_whole_output() {
        let (found, _) = check([1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 7.0, 4.0, 1.0, 2.0]);
        assert_eq!(found.failed, 1);
        let failure = "element 6 of c is 7, expected 3 ± 1.000e-1";
        assert_eq!(found.first_failure.as_deref(), Some(failure));
        let (found, _) = check([1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0, 1.0, f64::NAN]);
        assert_eq!(found.failed, 1);
    }

    #[test]
    fn a_failing_first_period_fails_in_its_copies() {
        let (found, _) = check([9.0, 2.0, 3.0, 4.0, 9.0, 2.0, 3.0, 4.0, 1.0, 2.0]);
        assert_eq!((found.elements, found.failed), (10, 2));
        let check = Check::sum("method", [OutputCheck::default(), found]);
        assert!(!check.passed());
        let failure = check.failure().unwrap();
        assert!(failure.starts_with("2 of 10 elements are wrong: element 0 of c is 9, expected"));
    }

    #[test]
    fn an_empty_output_is_not_read() {
        let mut empty = expected();
        empty.bytes = 0;
        let found = empty.check(|_, _| Err(Error::DeviceName("read".into())));
        assert_eq!(found.unwrap(), OutputCheck::default());
    }
}
