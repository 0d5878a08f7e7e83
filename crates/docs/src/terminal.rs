//! The terminal picture of the README, recorded from a real run of `examples/own-kernel`.

use crate::Generated;
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Command;

/// The recorded commands, each with a remark that is shown before it.
const COMMANDS: [(&str, &str); 2] = [
    ("", "check scale --variant broken"),
    (
        "# add bulk_wait_read(0) before slot.release()",
        "check scale --variant repaired",
    ),
];

/// Replacements of the VGA palette, whose blue and red are hard to read on black.
const COLORS: [(&str, &str); 5] = [
    ("#0000AA", "#58A6FF"),
    ("#AA0000", "#FF7B72"),
    ("#00AA00", "#3FB950"),
    ("#AA5500", "#D29922"),
    ("#000000", "#0D1117"),
];

/// Runs the commands in the example's folder and draws the terminal.
pub fn record(root: &Path) -> Result<Generated> {
    let mut transcript = String::new();
    for (remark, args) in COMMANDS {
        if !remark.is_empty() {
            transcript += &format!("\x1b[2m$ {remark}\x1b[0m\n");
        }
        transcript += &format!("\x1b[1m$ warpline {args}\x1b[0m\n{}\n", run(root, args)?);
    }
    let mut text = anstyle_svg::Term::new().render_svg(transcript.trim_end());
    for (vga, readable) in COLORS {
        text = text.replace(vga, readable);
    }
    Ok(Generated {
        path: "docs/img/check.svg".into(),
        text,
    })
}

/// Runs one command and returns its colored output.
fn run(root: &Path, args: &str) -> Result<String> {
    let mut command = Command::new("cargo");
    command.current_dir(root.join("examples/own-kernel"));
    command
        .args(["run", "-q", "--release", "--"])
        .args(args.split(' '));
    command.env("CLICOLOR_FORCE", "1");
    let output = command.output().context("cannot run cargo")?;
    let text = String::from_utf8(output.stdout)?;
    if text.is_empty() {
        bail!(
            "{args} printed nothing: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(text)
}
