//! The example outside of the workspace: what its README shows is what its commands print.
//!
//! Its sources are compiled into this test, which costs seconds. With
//! `WARPLINE_FULL` set it is also built where it is, as its author would.

#[path = "../../../../examples/own-kernel/src/family.rs"]
mod family;
#[path = "../../../../examples/own-kernel/src/kernel.rs"]
mod kernel;

use crate::common::table_holds;
use std::path::Path;
use std::process::Command;
use warpline_testkit::full::full;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/own-kernel");
const README: &str = include_str!("../../../../examples/own-kernel/README.md");

/// How a command of the README begins.
const COMMAND: &str = "$ cargo run -q --release -- ";

/// A command of the README, and what it shows below.
struct Shown {
    args: Vec<&'static str>,
    text: String,
}

/// Every command of the README, in order.
fn shown() -> Vec<Shown> {
    let mut all: Vec<Shown> = Vec::new();
    let mut inside = false;
    for line in README.lines() {
        match line.strip_prefix(COMMAND) {
            _ if line.starts_with("```") => inside = line == "```console",
            Some(args) if inside => all.push(Shown {
                args: args.split(' ').collect(),
                text: String::new(),
            }),
            _ => {
                if let Some(shown) = all.last_mut().filter(|_| inside) {
                    shown.text += &format!("{line}\n");
                }
            }
        }
    }
    all
}

/// Output with the paths that it has where the example is.
fn local(text: &str) -> String {
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

/// Output without how far was looked and how long.
fn steady(text: &str) -> String {
    let line = |line: &str| match line.split_once("; ") {
        Some((verdict, _)) if line.starts_with("kernel ") => format!("{verdict}\n"),
        _ => format!("{line}\n"),
    };
    local(text).lines().map(line).collect()
}

/// What a command prints, from the sources in this test.
fn called(args: &[&str]) -> String {
    let words = ["own-kernel"].iter().chain(args);
    let words: Vec<_> = words.map(Into::into).collect();
    let reply = warpline_cli::call(&[&family::Scale], &words);
    reply.out + &reply.err
}

/// What it prints where it is, built as a program of its own.
fn run_there(args: &[&str]) -> String {
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

/// The README with what its commands print now.
fn rewritten() -> String {
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
            text += &local(&called(&args));
        }
    }
    text
}

#[test]
fn the_readme_shows_what_is_printed() {
    // As for the other commands that are written down.
    if std::env::var("TRYCMD").is_ok_and(|v| v == "overwrite") {
        std::fs::write(Path::new(FOLDER).join("README.md"), rewritten()).unwrap();
        return;
    }
    let full = full();
    let shown = shown();
    assert!(shown.len() >= 2, "no commands in the README");
    for Shown { args, text } in shown {
        let mut printed = vec![called(&args)];
        printed.extend(full.then(|| run_there(&args)));
        for printed in printed {
            let (printed, text) = (steady(&printed), steady(&text));
            assert_eq!(printed, text, "{args:?} prints\n{printed}");
        }
    }
}

#[test]
fn programs_read_the_bug_too() {
    let printed = called(&["check", "scale", "--form", "broken", "--json"]);
    let (json, error) = printed.split_once("\nerror: ").unwrap();
    assert_eq!(error, "kernel scale is refuted\n");
    let answer: serde_json::Value = serde_json::from_str(json).unwrap();
    let [refusal] = answer["reports"][0]["refusals"]
        .as_array()
        .unwrap()
        .as_slice()
    else {
        panic!("one refusal: {answer:#}");
    };
    assert_eq!(refusal["code"], "R6.bulk");
    let lines = |place: &serde_json::Value| {
        let line = place["line"].as_u64().unwrap() as usize;
        include_str!("../../../../examples/own-kernel/src/kernel.rs")
            .lines()
            .nth(line - 1)
    };
    assert!(lines(&refusal["at"]).unwrap().contains("store_vec"));
    let other = &refusal["others"][0]["at"];
    assert!(lines(other).unwrap().contains("bulk_store"));
}

#[test]
fn the_repaired_form_is_right() {
    table_holds(&family::Scale);
}

/// The target folder of this test: what both have in common is built once.
fn target() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap()
}

fn cargo(command: &str) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.arg(command).current_dir(FOLDER);
    cargo.env("CARGO_TARGET_DIR", target());
    // Set by who times this test; build scripts ask for it, and would run again.
    cargo.env_remove("RUSTC_BOOTSTRAP");
    cargo
}

/// Cargo reads the example as a package of its own, and finds this crate from there.
#[test]
fn it_is_no_member_of_this_workspace() {
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
