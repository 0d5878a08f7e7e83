//! The flags of the binary; other flags go to the test harness.

use crate::child;
use crate::runner::TestGroup;
use anyhow::{Context as _, Result, bail};
use std::ffi::OsString;
use std::path::PathBuf;

/// The help text, printed above that of the harness.
pub const HELP: &str = "\
gpu-tests: tests that run on an H100 or H200

  --record DIR     run only the op trials on small data and write the results to DIR
  --ledger FILE    add the programs that pass in their final build to the GPU ledger FILE
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
                _ => tests.rest.push(arg),
            }
        }
        if tests.record.is_some() && tests.ledger.is_some() {
            bail!("--record runs no final builds, so --ledger cannot be combined with it");
        }
        Ok(Task::TestArgs(tests))
    }
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
            (&["--child", "nothing"], "unknown test group"),
        ] {
            let error = parse(args).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
