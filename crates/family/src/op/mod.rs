//! Ops: the functions that a family serves, declared once.
//!
//! A family states for each op its [`Signature`] and how a call becomes a
//! problem. Python functions, torch schemas, fake implementations, type stubs
//! and the calls of Rust users follow from it.
//!
//! | where | what |
//! |---|---|
//! | [`signature`] | names, parameters, what comes out |
//! | `stub` | a signature as a Python type stub |
//! | [`call`] | the values of one call, by name |
//! | [`value`] | an argument |
//! | [`view`] | a tensor as its caller has it: type, shape, strides, address |
//! | [`layout`] | dimensions of several tensors, walked as few |

pub mod call;
pub mod layout;
pub mod signature;
mod stub;
pub mod value;
pub mod view;

pub use call::Call;
pub use signature::{Default, Kind, Output, Param, Side, Signature};
pub use value::Value;
pub use view::TensorView;
