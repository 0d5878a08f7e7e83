//! `docs/families.md` is generated from the registry.

use warpline_kernels::{docs, registry};

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/families.md");

const HEAD: &str = "\
# Families

Every kernel family that ships: the fields of its problem and its config, as flags of the command
line (`--tile-m` is `tile_m` in JSON and in Python), the Python functions that it serves, and the
suites that it is measured in. Generated from the registry; to update it, run
`WARPLINE_BLESS=1 cargo test -p warpline-kernels documented`.
";

#[test]
fn families_md_is_up_to_date() {
    let sections = registry()
        .into_iter()
        .map(|f| format!("\n{}", docs::markdown(f)));
    let expected = HEAD.to_owned() + &sections.collect::<String>();
    if std::env::var_os("WARPLINE_BLESS").is_some() {
        std::fs::write(PATH, &expected).expect("docs/families.md can be written");
    }
    let page = std::fs::read_to_string(PATH).unwrap_or_default();
    assert!(
        page == expected,
        "docs/families.md is out of date\nhelp: run this test with WARPLINE_BLESS=1"
    );
}
