//! The documentation shows the source of the probes. Crate `warpline` checks and runs the probes
//! (`tests/it/shipped.rs`).

const PING_PONG: &str = include_str!("../../src/ping_pong.rs");
const ATTENTION: &str = include_str!("../../src/attention.rs");
const LADDER: &str = include_str!("../../src/ladder/steps.rs");

/// Returns the name and the text of the excerpt in a source.
fn excerpt(source: &str) -> (&str, &str) {
    let (_, from) = source.split_once("// [excerpt: ").expect("an excerpt");
    let (name, body) = from.split_once("]\n").expect("a name");
    let (body, _) = body.split_once("// [end of excerpt]").expect("an end");
    (name, body)
}

#[test]
fn docs_show_the_source() {
    let docs = include_str!("../../../../docs/probes.md");
    for source in [PING_PONG, ATTENTION, LADDER] {
        let (name, body) = excerpt(source);
        assert!(docs.contains(body), "docs/probes.md does not show {name}");
    }
}

#[test]
fn ping_pong_is_under_90_lines() {
    assert!(excerpt(PING_PONG).1.lines().count() < 90);
}
