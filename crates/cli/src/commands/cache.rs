//! `warpline cache list`, `clear`, `export FILE`, `import FILE`.

use crate::args::tune::{ClearArgs, FileArgs};
use crate::errors::Failure;
use crate::output::CommandOutput;
use crate::{display, report};
use clap::{ArgMatches, FromArgMatches};
use serde_json::json;
use warpline::tune::{ListedEntry, TuneCache};

/// Runs the given action.
pub(crate) fn cache(matches: &ArgMatches) -> Result<CommandOutput, Failure> {
    let store = TuneCache::from_env();
    match matches.subcommand() {
        Some(("clear", m)) => clear(&store, &parsed::<ClearArgs>(m)?),
        Some(("export", m)) => export(&store, &parsed::<FileArgs>(m)?),
        Some(("import", m)) => import(&store, &parsed::<FileArgs>(m)?),
        _ => list(&store),
    }
}

fn parsed<A: FromArgMatches>(matches: &ArgMatches) -> Result<A, Failure> {
    A::from_arg_matches(matches).map_err(|e| Failure::bad_input("bad-usage", e.to_string()))
}

fn folder(store: &TuneCache) -> String {
    store
        .folder()
        .map_or("no folder (the disk cache is off)".into(), |f| {
            f.display().to_string()
        })
}

fn list(store: &TuneCache) -> Result<CommandOutput, Failure> {
    let listed = store.list()?;
    let mut table = report::table([
        "family",
        "class",
        "extents up to",
        "config",
        "median time",
        "tuned",
    ]);
    let (mut entries, mut skipped, mut notes) = (Vec::new(), Vec::new(), String::new());
    for ListedEntry { path, entry, .. } in listed {
        match entry {
            Ok(entry) => {
                let best = &entry.ranked[0];
                table.add_row([
                    entry.key.family.clone(),
                    display::settings(&entry.key.class),
                    display::settings(&entry.key.extents),
                    display::settings(&best.config),
                    display::seconds(best.median_s),
                    format!("{} on {}", entry.tuned_at, entry.key.device),
                ]);
                entries.push(json!({ "path": path, "entry": entry }));
            }
            Err(why) => {
                notes += &format!("skipped {}: {why}\n", path.display());
                skipped.push(json!({ "path": path, "why": why }));
            }
        }
    }
    let table = match entries.is_empty() {
        true => String::new(),
        false => format!("{}\n", table.trim_fmt()),
    };
    let configs = plural(entries.len());
    let text = format!("{table}{notes}{configs} in {}\n", folder(store));
    Ok(CommandOutput::new("cache", text)
        .field("folder", folder(store))
        .field("entries", entries)
        .field("skipped", skipped))
}

fn plural(n: usize) -> String {
    match n {
        1 => "1 tuned config".into(),
        n => format!("{n} tuned configs"),
    }
}

fn clear(store: &TuneCache, args: &ClearArgs) -> Result<CommandOutput, Failure> {
    let deleted = store.clear(args.family.as_deref())?;
    let text = format!("deleted {} from {}\n", plural(deleted), folder(store));
    Ok(CommandOutput::new("cache", text).field("deleted", deleted))
}

fn export(store: &TuneCache, args: &FileArgs) -> Result<CommandOutput, Failure> {
    let n = store.export(&args.file)?;
    let text = format!("wrote {} to {}\n", plural(n), args.file.display());
    Ok(CommandOutput::new("cache", text).field("exported", n))
}

fn import(store: &TuneCache, args: &FileArgs) -> Result<CommandOutput, Failure> {
    let imported = store.import(&args.file)?;
    let notes = imported.skipped.iter();
    let notes: String = notes.map(|why| format!("skipped: {why}\n")).collect();
    let text = format!(
        "{notes}imported {} into {}; kept {} newer ones\n",
        plural(imported.added),
        folder(store),
        imported.kept
    );
    Ok(CommandOutput::new("cache", text).field("imported", imported))
}
