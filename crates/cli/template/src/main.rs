//! Every command of the `warpline` tool, for a kernel of one's own.

mod family;
mod kernel;

fn main() -> std::process::ExitCode {
    warpline_cli::main(&[&family::ScaleBiasRelu])
}
