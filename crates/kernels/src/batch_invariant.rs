//! Batch invariance: the parameter of the ops, and fields that it fixes.

use std::fmt::Display;
use warpline_family::error::FamilyError;
use warpline_family::op::OpParam;

/// The parameter of the ops.
pub(crate) const BATCH_INVARIANT: OpParam = OpParam::flag(
    "batch_invariant",
    "The bits of a row do not depend on the other rows or on their number.",
);

/// Returns the value of a field that batch invariance fixes; rejects another value of the caller.
pub(crate) fn fix<T: PartialEq + Display>(
    flag: &str,
    chosen: Option<T>,
    value: T,
) -> Result<Option<T>, FamilyError> {
    match chosen {
        Some(other) if other != value => Err(FamilyError::Config(format!(
            "{flag} is {other}; --batch-invariant needs {value}\nhelp: leave one of them out"
        ))),
        _ => Ok(Some(value)),
    }
}
