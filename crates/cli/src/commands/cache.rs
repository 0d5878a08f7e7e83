//! `warpline cache list`, `clear`, `export FILE`, `import FILE`.

use crate::answer::Answer;
use crate::args::tune::{ClearArgs, FileArgs};
use crate::errors::Failure;
use crate::{report, words};
use clap::{ArgMatches, FromArgMatches};
use serde_json::json;
use warpline::tune::{Listed, Store};

/// Does what the subcommand says.
pub(crate) fn cache(matches: &ArgMatches) -> Result<Answer, Failure> {
    let store = Store::from_env();
    match matches.subcommand() {
        Some(("clear", m)) => clear(&store, &parsed::<ClearArgs>(m)?),
        Some(("export", m)) => export(&store, &parsed::<FileArgs>(m)?),
        Some(("import", m)) => import(&store, &parsed::<FileArgs>(m)?),
        _ => list(&store),
    }
}

fn parsed<A: FromArgMatches>(matches: &ArgMatches) -> Result<A, Failure> {
    A::from_arg_matches(matches).map_err(|e| Failure::input("bad-usage", e.to_string()))
}

fn folder(store: &Store) -> String {
    store
        .folder()
        .map_or("nowhere".into(), |f| f.display().to_string())
}

fn list(store: &Store) -> Result<Answer, Failure> {
    let listed = store.list()?;
    let mut table = report::table([
        "work",
        "class",
        "extents up to",
        "config",
        "median",
        "tuned",
    ]);
    let (mut entries, mut passed_over, mut notes) = (Vec::new(), Vec::new(), String::new());
    for Listed { path, entry, .. } in listed {
        match entry {
            Ok(entry) => {
                let best = &entry.ranked[0];
                table.add_row([
                    entry.key.family.clone(),
                    words::settings(&entry.key.class),
                    words::settings(&entry.key.extents),
                    words::settings(&best.config),
                    words::seconds(best.median_s),
                    format!("{} on {}", entry.tuned_at, entry.key.device),
                ]);
                entries.push(json!({ "path": path, "entry": entry }));
            }
            Err(why) => {
                notes += &format!("passed over: {}: {why}\n", path.display());
                passed_over.push(json!({ "path": path, "why": why }));
            }
        }
    }
    let table = match entries.is_empty() {
        true => String::new(),
        false => format!("{}\n", table.trim_fmt()),
    };
    let configs = plural(entries.len());
    let text = format!("{table}{notes}{configs} in {}\n", folder(store));
    Ok(Answer::new("cache", text)
        .field("folder", folder(store))
        .field("entries", entries)
        .field("passed_over", passed_over))
}

fn plural(n: usize) -> String {
    match n {
        1 => "1 tuned config".into(),
        n => format!("{n} tuned configs"),
    }
}

fn clear(store: &Store, args: &ClearArgs) -> Result<Answer, Failure> {
    let gone = store.clear(args.family.as_deref())?;
    let text = format!("{} forgotten in {}\n", plural(gone), folder(store));
    Ok(Answer::new("cache", text).field("forgotten", gone))
}

fn export(store: &Store, args: &FileArgs) -> Result<Answer, Failure> {
    let n = store.export(&args.file)?;
    let text = format!("{} written to {}\n", plural(n), args.file.display());
    Ok(Answer::new("cache", text).field("exported", n))
}

fn import(store: &Store, args: &FileArgs) -> Result<Answer, Failure> {
    let came = store.import(&args.file)?;
    let notes = came.passed_over.iter();
    let notes: String = notes.map(|why| format!("passed over: {why}\n")).collect();
    let text = format!(
        "{notes}{} taken into {}, {} kept as they were\n",
        plural(came.taken),
        folder(store),
        came.kept
    );
    Ok(Answer::new("cache", text).field("imported", came))
}
