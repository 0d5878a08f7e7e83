//! The native module of the Python package `warpline`.
//!
//! | where | what |
//! |---|---|
//! | `declare` | ops and benchmark suites as JSON |
//! | `arguments` | converts Python values to arguments |
//! | `torch` | torch's tensors, element types and streams |
//! | `exchange` | reads torch tensors without calling Python |
//! | `workspace` | workspaces, cached by stream |
//! | `dlpack` | DLPack tensors |
//! | `view` | GPU arrays of other libraries: DLPack, CUDA array interface |
//! | `launch` | calls on a GPU |
//! | `direct` | calls on torch tensors without torch's dispatcher |
//! | `tune` | autotunes the problem of a call |
//! | `host` | calls on the CPU executor |
//! | `tools` | check, emit, devices |
//! | `errors` | converts errors to Python exceptions |

// The boundary to Python receives raw addresses. Each unsafe block states why it is sound.
#![allow(unsafe_code)]
#![deny(clippy::undocumented_unsafe_blocks, unsafe_op_in_unsafe_fn)]

mod arguments;
mod declare;
mod direct;
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

/// The native module of the package `warpline`.
#[pyo3::pymodule]
mod _warpline {
    #[pymodule_export]
    use super::declare::{build_info, ops, suites, survey_names, surveys};
    #[pymodule_export]
    use super::direct::direct;
    #[pymodule_export]
    use super::host::{check_call, simulate};
    #[pymodule_export]
    use super::launch::launch;
    #[pymodule_export]
    use super::tools::{check, devices, driver_version, emit, families, sensors};
    #[pymodule_export]
    use super::torch::use_torch;
    #[pymodule_export]
    use super::tune::{allow_nondeterministic, tune};
    #[pymodule_export]
    use super::view::View;
}
