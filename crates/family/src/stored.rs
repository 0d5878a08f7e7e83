//! Tensors that a caller has stored, as far as a family asks for them.

use crate::error::FamilyError;

/// Tensors that are stored somewhere, by name.
///
/// A family asks for those that say something of the problem
/// ([`Family::learn`](crate::Family::learn)); who runs it reads the rest.
pub trait Stored {
    /// Refuses unless all of these are there.
    fn has(&self, names: &[&str]) -> Result<(), FamilyError>;
    /// The shape of a tensor; none where it is stored without one.
    fn shape(&self, name: &str) -> Result<Option<Vec<usize>>, FamilyError>;
    /// How many bytes a tensor has.
    fn bytes(&self, name: &str) -> Result<u64, FamilyError>;
    /// The numbers of a tensor of 64-bit integers.
    fn integers(&self, name: &str) -> Result<Vec<i64>, FamilyError>;
}

/// Was this option given?
pub type Asked<'a> = &'a dyn Fn(&str) -> bool;
