//! The names that most families import: `use warpline_family::prelude::*;`.

pub use crate::error::FamilyError;
pub use crate::family::{Case, Cost, Family, Place, trips};
pub use crate::field::Rule;
pub use crate::float::Float;
pub use crate::numbers::half_ulp;
pub use crate::plan::{Buffer, Plan, Step, TensorArg};
pub use crate::resources::resources;
pub use crate::tensor::{HostTensor, TensorSpec};
pub use crate::{config, fields, words};
pub use warpline_ir::{DType, Kernel, Target};
