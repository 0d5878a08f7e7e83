//! Tests of the whole corpus: names, verdicts and runs.

use std::collections::HashSet;
use warpline_corpus::{Bug, CorpusCase, ExpectedRun, all, find, verify};
use warpline_cpu::{GlobalMemory, Options, RunError, run};
use warpline_ir::FaultKind;
use warpline_testkit::kernel::TARGET;
use warpline_testkit::timings::timings;

/// Runs a check for every bug and reports all failures together.
fn for_every_bug(check: impl Fn(&Bug) -> Result<(), String>) {
    let failed: Vec<String> = all()
        .iter()
        .filter_map(|bug| check(bug).err().map(|why| format!("{bug}: {why}")))
        .collect();
    let (n, total) = (failed.len(), all().len());
    assert!(failed.is_empty(), "{n} of {total}:\n{}", failed.join("\n"));
}

fn broken(bug: &Bug) -> Result<CorpusCase, String> {
    bug.broken().map_err(|e| e.to_string())
}

fn repaired(bug: &Bug) -> Result<CorpusCase, String> {
    bug.repaired().map_err(|e| e.to_string())
}

#[test]
fn names_are_unique_and_every_bug_has_a_reference() {
    let names: HashSet<_> = all().iter().map(|bug| bug.name).collect();
    assert_eq!(names.len(), all().len());
    for bug in all() {
        let is_slug_char = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(bug.name.chars().all(is_slug_char), "{bug}");
        assert!(!bug.title.ends_with('.') && !bug.reference.is_empty());
        assert!(std::ptr::eq(find(bug.name).unwrap(), bug));
    }
    assert!(find("nobody's bug").is_none());
}

#[test]
fn the_two_versions_differ_in_program_or_launch() {
    for_every_bug(|bug| {
        let (broken, repaired) = (broken(bug)?, repaired(bug)?);
        let same = broken.kernel.text_hash() == repaired.kernel.text_hash()
            && broken.launch == repaired.launch;
        match same {
            true => Err("both versions are the same".to_owned()),
            false => Ok(()),
        }
    });
}

#[test]
fn every_bug_marks_its_own_line() {
    let mut lines = HashSet::new();
    for bug in all() {
        let line = broken(bug).unwrap().line;
        assert!(line.line > 0 && lines.insert(line), "{bug}: {line}");
        assert_eq!(line, repaired(bug).unwrap().line);
    }
}

#[test]
fn every_bug_is_refuted_at_its_line_and_its_repair_is_proved() {
    for_every_bug(|bug| {
        let result = verify(bug, &TARGET).map_err(|e| e.to_string())?;
        match result.is_expected() {
            true => Ok(()),
            false => Err(result.to_string()),
        }
    });
}

fn run_case(case: &CorpusCase, options: &Options) -> Result<(), Box<RunError>> {
    let mut memory = GlobalMemory::new();
    let launch = case
        .launch
        .instantiate(&mut |bytes| memory.alloc_from(&vec![0; bytes], "buffer"));
    let options = Options {
        threads: 1,
        max_steps: Some(100_000),
        ..options.clone()
    };
    run(&case.kernel, &launch, &memory, &options).map(|_| ())
}

#[test]
fn the_executor_finds_the_expected_faults() {
    for_every_bug(|bug| {
        let case = broken(bug)?;
        let faults: Vec<_> = timings(24)
            .filter_map(|o| run_case(&case, &o).err())
            .collect();
        let kinds: HashSet<String> = faults.iter().map(|e| format!("{:?}", e.kind)).collect();
        let is_expected = |kind: FaultKind| match bug.executor {
            ExpectedRun::Faults(expected) => expected.contains(&kind),
            ExpectedRun::Clean(_) => false,
        };
        match bug.executor {
            ExpectedRun::Faults(_) if faults.is_empty() => Err("no schedule faults".to_owned()),
            _ => match faults.iter().find(|e| !is_expected(e.kind)) {
                None => Ok(()),
                Some(other) => Err(format!("{kinds:?}: {other}")),
            },
        }
    });
}

#[test]
fn repaired_kernels_run_without_faults() {
    for_every_bug(|bug| {
        let case = repaired(bug)?;
        let mut faults = timings(24).filter_map(|o| run_case(&case, &o).err().map(|e| (o, e)));
        match faults.next() {
            None => Ok(()),
            Some((options, e)) => Err(format!("{}, seed {}: {e}", options.timing, options.seed)),
        }
    });
}
