//! The flags of the binary; other flags go to the test harness.

use crate::child;
use crate::runner::TestGroup;
use anyhow::{Context as _, Result, bail};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The help text, printed above that of the harness.
pub const HELP: &str = "\
gpu-tests: tests that run on an H100 or H200

  --record DIR     run only the op trials on small data and write the results to DIR
  --ledger FILE    add the programs that pass in their final build to the GPU ledger FILE
  --new I/N        with --ledger: run only the workloads whose programs are not in the ledger yet, the
                   I-th of N equal parts of them; parts can run at the same time, each with a copy of
                   the ledger
  --missing FILE   list shipped programs that are not in the GPU ledger FILE; needs no GPU
";

/// The task of this process.
#[derive(PartialEq, Debug)]
pub enum Task {
    /// Serve a parent process.
    Child(TestGroup),
    /// List the programs that are missing in a ledger.
    Missing(PathBuf),
    /// Run tests.
    TestArgs(TestArgs),
}

/// The flags of a test run.
#[derive(Default, PartialEq, Debug)]
pub struct TestArgs {
    /// The directory for recorded test vectors.
    pub record: Option<PathBuf>,
    /// The ledger to update.
    pub ledger: Option<PathBuf>,
    /// Only workloads with programs that the ledger does not have: a part, and the number of parts.
    pub new: Option<[usize; 2]>,
    /// The flags of the harness: filters, `--list`, …
    pub rest: Vec<OsString>,
}

impl Task {
    /// Parses the arguments after the program name.
    pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Self> {
        let mut args = args.into_iter();
        let mut tests = TestArgs::default();
        while let Some(arg) = args.next() {
            let mut path = |flag: &str| -> Result<PathBuf> {
                let next = args
                    .next()
                    .with_context(|| format!("{flag} needs a path"))?;
                Ok(next.into())
            };
            match arg.to_str() {
                Some(child::FLAG) => {
                    let group: Vec<_> = args.collect();
                    return Ok(Task::Child(TestGroup::parse(&group)?));
                }
                Some("--missing") => {
                    let ledger = path("--missing")?;
                    if let Some(extra) = args.next() {
                        bail!("unexpected argument {extra:?}: --missing takes one path");
                    }
                    return Ok(Task::Missing(ledger));
                }
                Some("--record") => tests.record = Some(path("--record")?),
                Some("--ledger") => tests.ledger = Some(path("--ledger")?),
                Some("--new") => tests.new = Some(parse_part(&path("--new")?)?),
                _ => tests.rest.push(arg),
            }
        }
        if tests.record.is_some() && tests.ledger.is_some() {
            bail!("--record runs no final builds, so --ledger cannot be combined with it");
        }
        if tests.new.is_some() && tests.ledger.is_none() {
            bail!("--new needs --ledger");
        }
        Ok(Task::TestArgs(tests))
    }
}

/// Parses a part: its number from 1, and the number of parts.
fn parse_part(text: &Path) -> Result<[usize; 2]> {
    let part = || {
        let (i, n) = text.to_str()?.split_once('/')?;
        let (i, n) = (i.parse().ok()?, n.parse().ok()?);
        (1..=n).contains(&i).then_some([i, n])
    };
    part().with_context(|| format!("--new is {}; it must be a part like 1/4", text.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Task> {
        Task::parse(args.iter().map(OsString::from))
    }

    #[test]
    fn harness_flags_are_passed_on() {
        let task = parse(&["ops", "--ledger", "l.json", "--list"]).unwrap();
        let Task::TestArgs(tests) = task else {
            panic!("{task:?}")
        };
        assert_eq!(tests.ledger, Some("l.json".into()));
        assert_eq!(tests.rest, ["ops", "--list"]);
    }

    #[test]
    fn a_child_receives_its_group() {
        for group in [
            TestGroup::Ops,
            TestGroup::Final,
            TestGroup::Record("a b".into()),
        ] {
            let args = [vec![child::FLAG.into()], group.args()].concat();
            assert_eq!(Task::parse(args).unwrap(), Task::Child(group));
        }
    }

    #[test]
    fn invalid_flags_are_rejected() {
        for (args, why) in [
            (&["--record"][..], "--record needs a path"),
            (&["--missing"], "--missing needs a path"),
            (&["--missing", "a", "b"], "takes one path"),
            (&["--record", "a", "--ledger", "b"], "cannot be combined"),
            (&["--new", "1/2"], "--new needs --ledger"),
            (&["--new", "3/2"], "must be a part like 1/4"),
            (&["--child", "nothing"], "unknown test group"),
        ] {
            let error = parse(args).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
