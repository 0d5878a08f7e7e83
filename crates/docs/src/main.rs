//! `cargo xtask docs`: writes the generated parts of the documentation.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    match warpline_docs::write(&root) {
        Ok(written) if written.is_empty() => println!("every generated file is current"),
        Ok(written) => written
            .iter()
            .for_each(|path| println!("wrote {}", path.display())),
        Err(error) => {
            eprintln!("error: {error:#}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
