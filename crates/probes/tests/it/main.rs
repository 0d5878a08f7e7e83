//! What the docs show of a probe is its source. The crate `warpline` checks and runs the probes
//! (`tests/it/shipped.rs`).

const PING_PONG: &str = include_str!("../../src/ping_pong.rs");
const ATTENTION: &str = include_str!("../../src/attention.rs");
const LADDER: &str = include_str!("../../src/ladder/steps.rs");

/// The name of the picture in a source, and the picture.
fn picture(source: &str) -> (&str, &str) {
    let (_, from) = source.split_once("// [picture: ").expect("a picture");
    let (name, body) = from.split_once("]\n").expect("a name");
    let (body, _) = body.split_once("// [end of picture]").expect("an end");
    (name, body)
}

#[test]
fn the_docs_show_the_source() {
    let docs = include_str!("../../../../docs/probes.md");
    for source in [PING_PONG, ATTENTION, LADDER] {
        let (name, body) = picture(source);
        assert!(docs.contains(body), "docs/probes.md does not show {name}");
    }
}

/// The README shows a part of ping-pong, further to the left.
#[test]
fn the_readme_shows_a_part_of_ping_pong() {
    let flat = |text: &str| text.lines().map(str::trim).collect::<Vec<_>>().join("\n");
    let readme = include_str!("../../../../README.md");
    let (_, part) = readme
        .split_once("```text\nfor (i, who)")
        .expect("the part");
    let (part, _) = part.split_once("```").expect("its end");
    assert!(flat(PING_PONG).contains(&flat(part).replace("\n\n", "\n")));
}

/// The body stays short enough to read.
#[test]
fn the_body_of_ping_pong_is_under_90_lines() {
    assert!(picture(PING_PONG).1.lines().count() < 90);
}
