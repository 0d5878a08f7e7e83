//! `cargo xtask docs`: writes the generated parts of the documentation.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let written = match std::env::args().any(|arg| arg == "--terminal") {
        true => warpline_docs::write_terminal(&root),
        false => warpline_docs::write(&root),
    };
    match written {
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
