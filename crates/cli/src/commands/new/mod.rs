//! `warpline new NAME`: creates a crate with a kernel to edit.

mod name;
mod source;

use crate::args::NewArgs;
use crate::errors::Failure;
use crate::output::CommandOutput;
use crate::{file, report};
use clap::{ArgMatches, FromArgMatches};
use source::Source;
use std::path::PathBuf;

/// The files of the crate, without its manifest and its lock file.
const FILES: [(&str, &str); 5] = [
    (".gitignore", include_str!("../../../template/gitignore")),
    ("README.md", include_str!("../../../template/README.md")),
    ("src/main.rs", include_str!("../../../template/src/main.rs")),
    (
        "src/family.rs",
        include_str!("../../../template/src/family.rs"),
    ),
    (
        "src/kernel.rs",
        include_str!("../../../template/src/kernel.rs"),
    ),
];
const MANIFEST: &str = include_str!("../../../template/manifest.toml");

/// The family of the crate.
const FAMILY: &str = "scale-bias-relu";

/// Writes the crate.
pub(crate) fn new(matches: &ArgMatches) -> Result<CommandOutput, Failure> {
    let NewArgs {
        name,
        path,
        warpline,
    } = NewArgs::from_arg_matches(matches)
        .map_err(|e| Failure::bad_input("bad-usage", e.to_string()))?;
    name::check(&name)?;
    let source = Source::find(warpline.as_deref())?;
    let folder = path.unwrap_or_else(|| PathBuf::from(&name));
    let files = files(&name, &source);
    file::write_folder(&folder, &files)?;

    let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
    let rows = [
        ("kernel", "src/kernel.rs, yours to edit".to_owned()),
        ("family", format!("{FAMILY}, in src/family.rs")),
        ("warpline", source.to_string()),
        (
            "next",
            format!("cd {} && cargo run -- check {FAMILY}", folder.display()),
        ),
        ("more", "see README.md".to_owned()),
    ];
    let title = format!("created crate {name} in {}", folder.display());
    Ok(CommandOutput::new("new", report::fields(&title, &rows))
        .field("name", &name)
        .field("family", FAMILY)
        .field("folder", folder.to_string_lossy())
        .field("files", names)
        .field("warpline", source))
}

/// Returns the path and the text of each file.
fn files(name: &str, source: &Source) -> Vec<(&'static str, String)> {
    let fill = |text: &str| {
        text.replace("{name}", name)
            .replace("{warpline}", &source.dependencies())
    };
    let mut files = vec![("Cargo.toml", fill(MANIFEST))];
    files.extend(source.lock().map(|lock| ("Cargo.lock", lock)));
    files.extend(FILES.map(|(path, text)| match path.ends_with(".rs") {
        true => (path, text.to_owned()),
        false => (path, fill(text)),
    }));
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_placeholder_is_filled() {
        for source in [Source::Git, Source::Checkout("/a/checkout".into())] {
            for (path, text) in files("mine", &source) {
                let left = ["{name}", "{warpline}"].iter().any(|p| text.contains(p));
                assert!(!left, "{path}:\n{text}");
            }
        }
    }
}
