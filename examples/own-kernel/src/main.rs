//! The `warpline` command line for this kernel.

mod family;
mod kernel;

fn main() -> std::process::ExitCode {
    warpline_cli::main(&[&family::Scale])
}
