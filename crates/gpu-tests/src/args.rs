//! The flags of the binary, before those of the test harness.

use crate::cases::Kind;
use crate::child;
use anyhow::{Context as _, Result, bail};
use std::ffi::OsString;
use std::path::PathBuf;

/// What is printed for `--help`, above the harness' own.
pub const HELP: &str = "\
gpu-tests: what must hold on an H100 or H200

  --record DIR     run the ops alone, on few data, and write what came out to DIR
  --ledger FILE    note the programs that passed in their final build in FILE
  --missing FILE   list what ships and is not in the ledger FILE; needs no GPU
";

/// What this process is for.
#[derive(PartialEq, Debug)]
pub enum Task {
    /// Serve a parent.
    Child(Kind),
    /// List what is missing in a ledger.
    Missing(PathBuf),
    /// Run tests.
    Tests(Tests),
}

/// How to run tests.
#[derive(Default, PartialEq, Debug)]
pub struct Tests {
    /// Where to write what ops give.
    pub record: Option<PathBuf>,
    /// Where to note the programs that passed.
    pub ledger: Option<PathBuf>,
    /// Flags of the harness: filters, `--list`, ….
    pub rest: Vec<OsString>,
}

impl Task {
    /// Reads the arguments behind the program's name.
    pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Self> {
        let mut args = args.into_iter();
        let mut tests = Tests::default();
        while let Some(arg) = args.next() {
            let mut path = |what: &str| -> Result<PathBuf> {
                let next = args
                    .next()
                    .with_context(|| format!("{what} needs a path"))?;
                Ok(next.into())
            };
            match arg.to_str() {
                Some(child::FLAG) => {
                    let kind: Vec<_> = args.collect();
                    return Ok(Task::Child(Kind::parse(&kind)?));
                }
                Some("--missing") => {
                    let ledger = path("--missing")?;
                    if let Some(more) = args.next() {
                        bail!("--missing takes one path, and there is {more:?} behind it");
                    }
                    return Ok(Task::Missing(ledger));
                }
                Some("--record") => tests.record = Some(path("--record")?),
                Some("--ledger") => tests.ledger = Some(path("--ledger")?),
                _ => tests.rest.push(arg),
            }
        }
        if tests.record.is_some() && tests.ledger.is_some() {
            bail!("--record runs ops alone, so it has nothing for a ledger");
        }
        Ok(Task::Tests(tests))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Task> {
        Task::parse(args.iter().map(OsString::from))
    }

    #[test]
    fn flags_of_the_harness_are_left_to_it() {
        let task = parse(&["ops", "--ledger", "l.json", "--list"]).unwrap();
        let Task::Tests(tests) = task else {
            panic!("{task:?}")
        };
        assert_eq!(tests.ledger, Some("l.json".into()));
        assert_eq!(tests.rest, ["ops", "--list"]);
    }

    #[test]
    fn a_child_knows_its_kind() {
        for kind in [Kind::Ops, Kind::Final, Kind::Record("a b".into())] {
            let args = [vec![child::FLAG.into()], kind.args()].concat();
            assert_eq!(Task::parse(args).unwrap(), Task::Child(kind));
        }
    }

    #[test]
    fn wrong_flags_are_told() {
        for (args, why) in [
            (&["--record"][..], "--record needs a path"),
            (&["--missing"], "--missing needs a path"),
            (&["--missing", "a", "b"], "takes one path"),
            (&["--record", "a", "--ledger", "b"], "nothing for a ledger"),
            (&["--child", "nothing"], "a child is ops"),
        ] {
            let error = parse(args).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
