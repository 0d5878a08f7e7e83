//! The native part of the Python package `warpline`: what Python cannot do itself.
//!
//! | where | what |
//! |---|---|
//! | `declare` | ops and suites, as JSON for the Python side |
//! | `arguments` | Python values as arguments of a call |
//! | `torch` | torch's tensors, types and streams |
//! | `exchange` | the same without a call of Python |
//! | `workspace` | where ops work, kept by stream |
//! | `dlpack` | tensors as DLPack describes them |
//! | `view` | device arrays of other libraries: DLPack, CUDA array interface |
//! | `launch` | a call on a GPU |
//! | `tune` | tuning the problem of a call |
//! | `host` | a call on the simulator |
//! | `tools` | check, emit, devices |
//! | `errors` | our errors as Python exceptions |

// The Python boundary: raw addresses come in here. Each block states why it is sound.
#![allow(unsafe_code)]
#![deny(clippy::undocumented_unsafe_blocks, unsafe_op_in_unsafe_fn)]

mod arguments;
mod declare;
mod dlpack;
mod errors;
mod exchange;
mod host;
mod launch;
mod tools;
mod torch;
mod tune;
mod view;
mod workspace;

/// The native part of the package `warpline`.
#[pyo3::pymodule]
mod _warpline {
    #[pymodule_export]
    use super::declare::{build_info, ops, suites};
    #[pymodule_export]
    use super::host::simulate;
    #[pymodule_export]
    use super::launch::launch;
    #[pymodule_export]
    use super::tools::{check, devices, driver_version, emit, families, sensors};
    #[pymodule_export]
    use super::torch::use_torch;
    #[pymodule_export]
    use super::tune::{may_differ, tune};
    #[pymodule_export]
    use super::view::View;
}
