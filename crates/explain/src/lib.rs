//! The pages behind `warpline explain CODE`: the rule of a code, a minimal broken kernel, its
//! repair, and the public bugs of that kind.
//!
//! One file of [`pages`] is one code. Its module documentation is the explanation; its functions
//! `broken` and `repaired` are the two kernels. If the builder never makes the broken program,
//! `broken` edits the repaired kernel or its launch instead. The page prints the source of both
//! functions, and tests run them, so the tools report every printed bug and prove every repair.
//!
//! ```
//! let page = warpline_explain::page("R6.bulk").unwrap();
//! let text = page.to_string();
//! assert!(text.contains("bulk_wait_read"));
//! ```

mod page;
pub mod pages;

pub use page::{Broken, Example, FoundBy, Page};

use warpline_check::Rule;

/// Returns the page of a code.
pub fn page(code: &str) -> Option<Page> {
    let rule = Rule::find(code)?;
    let example = pages::EXAMPLES.iter().find(|example| example.code == code);
    Some(Page { rule, example })
}
