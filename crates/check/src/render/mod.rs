//! A [`Report`](crate::Report) for people and for programs.
//!
//! [`Report::text`](crate::Report::text) reads as a compiler's messages do: the rule, a sentence,
//! the lines of both sides with their source, and what led to it. For programs
//! a report is [`serde::Serialize`]; the fields are listed in `json.rs`.

mod frame;
mod group;
mod json;
mod paint;
mod text;

pub use frame::Sources;
pub(crate) use group::{Group, groups};
pub use json::Place;
pub use paint::Look;
pub use text::{Texts, Verdict};
