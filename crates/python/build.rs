//! Passes the Git commit to the package, if known.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=../../.git/HEAD");
    println!("cargo::rerun-if-changed=../../.git/logs/HEAD");
    let git = Command::new("git").args(["rev-parse", "HEAD"]).output();
    if let Ok(output) = git
        && output.status.success()
    {
        let commit = String::from_utf8_lossy(&output.stdout);
        println!("cargo::rustc-env=WARPLINE_COMMIT={}", commit.trim());
    }
}
