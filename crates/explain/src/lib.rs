//! The pages behind `warpline explain CODE`: the rule of a code, a minimal broken kernel, its
//! repair, and the public bugs of that kind.
//!
//! | module | codes of |
//! |---|---|
//! | [`pages`] | the checker, the CPU executor, plans and the linter: one file is one code |
//! | [`build_errors`] | the builder, [`BuildErrors`](warpline_ir::BuildErrors): one module is one code |
//! | [`failures`] | the runtime and the command line, without kernels |
//!
//! The documentation of a page's module is the explanation; its functions `broken` and `repaired`
//! are the two kernels. If the builder never makes the broken kernel, `broken` edits the repaired
//! kernel or its launch instead. The page prints the source of both functions, and tests run them,
//! so the tools report every printed bug and prove every repair.
//!
//! ```
//! let page = warpline_explain::page("R6.bulk").unwrap();
//! let text = page.to_string();
//! assert!(text.contains("bulk_wait_read"));
//! ```

pub mod build_errors;
pub mod failures;
mod page;
pub mod pages;

pub use page::{Broken, Example, FoundBy, Page};

use warpline_check::{CODES, Rule};

/// The codes of one tool.
#[derive(Clone, Copy, Debug)]
pub struct CodeGroup {
    /// The tools that print the codes.
    pub title: &'static str,
    /// The codes.
    pub rules: &'static [Rule],
}

/// Every code, by tool.
pub const GROUPS: [CodeGroup; 3] = [
    CodeGroup {
        title: "checker, CPU executor and linter",
        rules: CODES,
    },
    CodeGroup {
        title: "builder",
        rules: build_errors::RULES,
    },
    CodeGroup {
        title: "runtime and command line",
        rules: failures::RULES,
    },
];

/// Returns every code.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    GROUPS.iter().flat_map(|group| group.rules)
}

/// Returns every page with kernels.
pub fn examples() -> impl Iterator<Item = &'static Example> {
    pages::EXAMPLES.iter().chain(build_errors::EXAMPLES)
}

/// Returns the page of a code.
pub fn page(code: &str) -> Option<Page> {
    let rule = rules().find(|rule| rule.code == code)?;
    let example = examples().find(|example| example.code == code);
    Some(Page { rule, example })
}
