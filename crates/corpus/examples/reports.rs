//! Prints the checker's report of every broken kernel of the corpus, or of the named ones.
//!
//! `cargo run -p warpline-corpus --example reports [NAME…]`

use warpline_corpus::{all, verify};
use warpline_ir::Target;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let names: Vec<String> = std::env::args().skip(1).collect();
    for bug in all() {
        if names.is_empty() || names.iter().any(|name| name == bug.name) {
            let result = verify(bug, &Target::SM_90A)?;
            println!("──── {bug}: {}\n{}", bug.title, result.broken.text());
        }
    }
    Ok(())
}
