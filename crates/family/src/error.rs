//! What a family refuses.

use warpline_check::Refusals;
use warpline_ir::BuildErrors;

/// Why a problem or a config cannot be served.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FamilyError {
    /// The problem breaks a rule of the family.
    #[error("{0}")]
    Problem(String),
    /// The config breaks a rule of the family or the machine.
    #[error("{0}")]
    Config(String),
    /// Stored tensors are not those that the problem asks for, or cannot be read.
    #[error("{0}")]
    Data(String),
    /// A step omits an argument of its kernel, or passes an unknown or mistyped one: a bug in the family.
    #[error("{0}")]
    Plan(String),
    /// The kernel could not be built: a bug of the family.
    #[error(transparent)]
    Build(#[from] BuildErrors),
    /// The checker refused the kernel.
    #[error(transparent)]
    Refused(#[from] Refusals),
}

impl FamilyError {
    /// A stable code, for tools.
    pub fn code(&self) -> &'static str {
        match self {
            FamilyError::Problem(_) => "bad-problem",
            FamilyError::Config(_) => "bad-config",
            FamilyError::Data(_) => "bad-data",
            FamilyError::Plan(_) => "bad-plan",
            FamilyError::Build(_) => "build-failed",
            FamilyError::Refused(_) => "refused",
        }
    }
}
