//! Errors of families.

use warpline_check::Diagnostics;
use warpline_ir::BuildErrors;

/// The reason why a family rejects a problem, a config or a plan.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FamilyError {
    /// The problem breaks a rule of the family.
    #[error("{0}")]
    Problem(String),
    /// The call is valid, but no kernel computes it: an element type, an extent.
    #[error("{0}")]
    Unsupported(String),
    /// The call is valid, but no kernel addresses a tensor of it: its strides, its alignment. Dense
    /// copies may be supported.
    #[error("{0}")]
    Layout(String),
    /// The config breaks a rule of the family or of the target.
    #[error("{0}")]
    Config(String),
    /// A stored tensor does not match the problem or cannot be read.
    #[error("{0}")]
    Data(String),
    /// A launch step omits an argument or passes an unknown or mistyped one: a bug in the family.
    #[error("{0}")]
    Plan(String),
    /// The kernel could not be built: a bug in the family.
    #[error(transparent)]
    Build(#[from] BuildErrors),
    /// The checker did not prove the kernel.
    #[error(transparent)]
    NotProved(#[from] Diagnostics),
}

impl FamilyError {
    /// Returns a stable code for tools.
    pub fn code(&self) -> &'static str {
        match self {
            FamilyError::Problem(_) => "bad-problem",
            FamilyError::Unsupported(_) => "unsupported",
            FamilyError::Layout(_) => "unsupported-layout",
            FamilyError::Config(_) => "bad-config",
            FamilyError::Data(_) => "bad-data",
            FamilyError::Plan(_) => "bad-plan",
            FamilyError::Build(_) => "build-failed",
            FamilyError::NotProved(_) => "not-proved",
        }
    }
}
