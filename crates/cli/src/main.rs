//! The `warpline` command.

fn main() -> std::process::ExitCode {
    warpline_cli::main(&warpline_kernels::registry())
}
