//! Ops: the functions that a family serves to Python, torch and Rust.
//!
//! For each op, a family declares a [`Signature`] and a function that converts a call to a
//! problem. Python functions, torch schemas, fake implementations, type stubs and Rust calls are
//! derived from it.
//!
//! | where | what |
//! |---|---|
//! | [`signature`] | names, parameters and outputs |
//! | `stub` | a signature as a Python type stub |
//! | [`args`] | the arguments and outputs of one call, by name |
//! | [`value`] | the value of an argument |
//! | [`view`] | a tensor of the caller: type, shape, strides, address |
//! | [`layout`] | merging of dimensions that several tensors share |

pub mod args;
pub mod layout;
pub mod signature;
mod stub;
pub mod value;
pub mod view;

pub use args::OpArgs;
pub use signature::{
    DefaultValue, OpOutput, OpParam, OpParamKind, OptionalOutput, OutputDim, Signature,
};
pub use value::ArgValue;
pub use view::TensorView;
