//! A [`Report`](crate::Report) for people and for programs.
//!
//! [`Report::text`](crate::Report::text) prints in the style of rustc: the headline, the source
//! lines of both sides, the cause, the trace and help. For programs a report is
//! [`serde::Serialize`]; `json.rs` lists the fields.

mod frame;
mod group;
mod json;
mod paint;
mod text;

pub use frame::Sources;
pub(crate) use group::{Group, groups};
pub use json::SourceLocation;
pub use paint::ColorMode;
pub use text::{SummaryLine, TextRenderer};
