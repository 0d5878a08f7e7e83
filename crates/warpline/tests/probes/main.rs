//! Hard kernels that try the program form, written with the public API only.
//!
//! Each is checked, assembled without an advisory or a spill, and run on the
//! simulator under every timing against float64. On a machine with an H100 or
//! H200 the same cases run there:
//! `cargo test --release -p warpline --test probes -- --ignored`.

mod attention;
mod dequantise;
mod harness;
mod ping_pong;
mod split_k;
mod stream_k;
mod thin;
mod types;

/// What the docs show of a probe is its source.
#[test]
fn the_docs_show_the_source() {
    let docs = include_str!("../../../../docs/probes.md");
    let sources = [include_str!("ping_pong.rs"), include_str!("attention.rs")];
    for source in sources {
        let (_, from) = source.split_once("// [picture: ").expect("a picture");
        let (name, body) = from.split_once("]\n").expect("a name");
        let (body, _) = body.split_once("// [end of picture]").expect("an end");
        assert!(docs.contains(body), "docs/probes.md does not show {name}");
    }
    // The README shows a part of ping-pong, further to the left.
    let flat = |text: &str| text.lines().map(str::trim).collect::<Vec<_>>().join("\n");
    let readme = include_str!("../../../../README.md");
    let (_, part) = readme
        .split_once("```text\nfor (i, who)")
        .expect("the part");
    let (part, _) = part.split_once("```").expect("its end");
    assert!(flat(sources[0]).contains(&flat(part).replace("\n\n", "\n")));
}
