//! The example outside of the workspace: its README shows the output of its commands.
//!
//! Its sources are compiled into this test. With `WARPLINE_FULL` the example is also built in
//! its own folder.

#[path = "../../../../examples/own-kernel/src/family.rs"]
mod family;
#[path = "../../../../examples/own-kernel/src/kernel.rs"]
mod kernel;

use crate::common::assert_cases_pass;
use std::path::Path;
use std::process::Command;
use warpline_testkit::full::full;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/own-kernel");
const README: &str = include_str!("../../../../examples/own-kernel/README.md");

const GUIDE: &str = include_str!("../../../../docs/guide.md");

/// The prefix of a command in the README.
const COMMAND: &str = "$ cargo run -q --release -- ";

/// A command and its output in the README.
struct ReadmeCommand {
    args: Vec<&'static str>,
    text: String,
}

/// Returns every command of the README, in order.
fn readme_commands() -> Vec<ReadmeCommand> {
    let mut all: Vec<ReadmeCommand> = Vec::new();
    let mut inside = false;
    for line in README.lines() {
        match line.strip_prefix(COMMAND) {
            _ if line.starts_with("```") => inside = line == "```console",
            Some(args) if inside => all.push(ReadmeCommand {
                args: args.split(' ').collect(),
                text: String::new(),
            }),
            _ => {
                if let Some(command) = all.last_mut().filter(|_| inside) {
                    command.text += &format!("{line}\n");
                }
            }
        }
    }
    all
}

/// Makes the paths of an output relative to the folder of the example.
fn with_local_paths(text: &str) -> String {
    let line = |line: &str| match (line.find("--> "), line.find("examples/own-kernel/")) {
        (Some(arrow), Some(folder)) => {
            let (arrow, path) = (
                &line[..arrow],
                &line[folder + "examples/own-kernel/".len()..],
            );
            format!("{arrow}--> {path}\n")
        }
        _ => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

/// Makes paths local and removes the number of states and the time from an output.
fn without_counts(text: &str) -> String {
    let line = |line: &str| match line.split_once("; ") {
        Some((verdict, _)) if line.starts_with("kernel ") => format!("{verdict}\n"),
        _ => format!("{line}\n"),
    };
    with_local_paths(text).lines().map(line).collect()
}

/// Returns the output of a command, from the sources in this test.
fn run_command(args: &[&str]) -> String {
    let words = ["own-kernel"].iter().chain(args);
    let words: Vec<_> = words.map(Into::into).collect();
    let output = warpline_cli::run(&[&family::Scale], &words);
    output.stdout + &output.stderr
}

/// Returns the output of the example built in its own folder.
fn run_built_example(args: &[&str]) -> String {
    let built = cargo("build").args(["--quiet", "--offline"]).status();
    assert!(built.unwrap().success());
    let program = target().join("debug/own-kernel");
    let output = Command::new(program)
        .args(args)
        .current_dir(FOLDER)
        .output();
    let output = output.unwrap();
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

/// Returns the README with the current output of its commands.
fn updated_readme() -> String {
    let mut text = String::new();
    let mut inside = false;
    for line in README.lines() {
        let args = line.strip_prefix(COMMAND);
        if line.starts_with("```") {
            inside = line == "```console";
        } else if inside && args.is_none() {
            continue;
        }
        text += &format!("{line}\n");
        if let Some(args) = args {
            let args: Vec<&str> = args.split(' ').collect();
            text += &with_local_paths(&run_command(&args));
        }
    }
    text
}

#[test]
fn the_readme_matches_the_output() {
    // The same variable updates the trycmd snapshots.
    if std::env::var("TRYCMD").is_ok_and(|v| v == "overwrite") {
        std::fs::write(Path::new(FOLDER).join("README.md"), updated_readme()).unwrap();
        return;
    }
    let is_full = full();
    let commands = readme_commands();
    assert!(commands.len() >= 2, "no commands in the README");
    for ReadmeCommand { args, text } in commands {
        let mut printed = vec![run_command(&args)];
        printed.extend(is_full.then(|| run_built_example(&args)));
        for printed in printed {
            let (printed, text) = (without_counts(&printed), without_counts(&text));
            assert_eq!(printed, text, "{args:?} prints\n{printed}");
        }
    }
}

/// The guide explains the reports of the README.
#[test]
fn the_guide_shows_the_same_reports() {
    let guide = without_counts(GUIDE);
    let reports = readme_commands()
        .into_iter()
        .filter(|command| command.args[0] == "check");
    for ReadmeCommand { args, text } in reports {
        assert!(
            guide.contains(&without_counts(&text)),
            "docs/guide.md lacks the output of {args:?}"
        );
    }
}

#[test]
fn the_bug_is_reported_as_json() {
    let printed = run_command(&["check", "scale", "--variant", "broken", "--json"]);
    let (json, error) = printed.split_once("\nerror: ").unwrap();
    assert_eq!(error, "kernel scale is refuted\n");
    let answer: serde_json::Value = serde_json::from_str(json).unwrap();
    let [diagnostic] = answer["reports"][0]["diagnostics"]
        .as_array()
        .unwrap()
        .as_slice()
    else {
        panic!("one diagnostic: {answer:#}");
    };
    assert_eq!(diagnostic["code"], "R6.bulk");
    let source_line = |location: &serde_json::Value| {
        let line = location["line"].as_u64().unwrap() as usize;
        include_str!("../../../../examples/own-kernel/src/kernel.rs")
            .lines()
            .nth(line - 1)
    };
    assert!(
        source_line(&diagnostic["at"])
            .unwrap()
            .contains("store_vec")
    );
    let other = &diagnostic["labels"][0]["at"];
    assert!(source_line(other).unwrap().contains("bulk_store"));
}

#[test]
fn the_repaired_kernel_passes() {
    assert_cases_pass(&family::Scale);
}

/// Returns the target folder of this test, to share dependencies.
fn target() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap()
}

fn cargo(command: &str) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.arg(command).current_dir(FOLDER);
    cargo.env("CARGO_TARGET_DIR", target());
    // `xtask time-tests` sets it; build scripts depend on it and would run again.
    cargo.env_remove("RUSTC_BOOTSTRAP");
    cargo
}

/// Cargo treats the example as a separate workspace that depends on this crate by path.
#[test]
fn the_example_is_a_separate_workspace() {
    let output = cargo("metadata")
        .args(["--offline", "--no-deps", "--format-version", "1"])
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let root = Path::new(metadata["workspace_root"].as_str().unwrap());
    assert_eq!(root, Path::new(FOLDER).canonicalize().unwrap());
    let [package] = metadata["packages"].as_array().unwrap().as_slice() else {
        panic!("one package: {metadata}");
    };
    let dependencies = package["dependencies"].as_array().unwrap().iter();
    let paths: Vec<&str> = dependencies.filter_map(|d| d["path"].as_str()).collect();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    assert!(paths.iter().any(|p| Path::new(p) == here), "{paths:?}");
}
