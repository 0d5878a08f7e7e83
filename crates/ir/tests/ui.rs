//! What must not compile.

#[test]
fn misuse_does_not_compile() {
    // Half a minute of rustc: a part of `cargo xtask test --full`.
    if std::env::var_os("WARPLINE_FULL").is_none() {
        return;
    }
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
