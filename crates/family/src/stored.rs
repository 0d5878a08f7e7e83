//! Input tensors that the caller stores in files.

use crate::error::FamilyError;

/// Named tensors that the caller stores.
///
/// A family reads the tensors that determine fields of the problem
/// ([`Family::complete_from_tensors`](crate::Family::complete_from_tensors)); the runtime reads the rest.
pub trait StoredTensors {
    /// Returns an error unless all of these tensors exist.
    fn require(&self, names: &[&str]) -> Result<(), FamilyError>;
    /// Returns the shape of a tensor; `None` if it is stored without a shape.
    fn shape(&self, name: &str) -> Result<Option<Vec<usize>>, FamilyError>;
    /// Returns the size of a tensor in bytes.
    fn bytes(&self, name: &str) -> Result<u64, FamilyError>;
    /// Returns the elements of an i64 tensor.
    fn integers(&self, name: &str) -> Result<Vec<i64>, FamilyError>;
}

/// Returns whether the caller set an option.
pub type IsOptionSet<'a> = &'a dyn Fn(&str) -> bool;
