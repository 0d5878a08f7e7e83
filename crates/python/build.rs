//! Tells the package which commit it was built from, where that is known.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=../../.git/HEAD");
    println!("cargo::rerun-if-changed=../../.git/logs/HEAD");
    let git = Command::new("git").args(["rev-parse", "HEAD"]).output();
    if let Ok(answer) = git
        && answer.status.success()
    {
        let commit = String::from_utf8_lossy(&answer.stdout);
        println!("cargo::rustc-env=WARPLINE_COMMIT={}", commit.trim());
    }
}
