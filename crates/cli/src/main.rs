//! The `warpline` command.

// The checker allocates many small sets.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    warpline_cli::main(&warpline_kernels::registry())
}
