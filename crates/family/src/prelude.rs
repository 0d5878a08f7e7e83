//! The names that most families import: `use warpline_family::prelude::*;`.

pub use crate::error::FamilyError;
pub use crate::family::{Cost, DeviceKind, Family, TestCase, trip_counts};
pub use crate::field::FieldRule;
pub use crate::float::FloatType;
pub use crate::numbers::half_ulp;
pub use crate::plan::{Buffer, LaunchStep, Plan, TensorArg};
pub use crate::resources::resources;
pub use crate::tensor::{HostTensor, TensorSpec};
pub use crate::{config, fields, keywords};
pub use warpline_ir::{DType, Kernel, Target};
