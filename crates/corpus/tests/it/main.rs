//! The corpus as a whole: well formed, judged as it must be, and run.

use std::collections::HashSet;
use warpline_corpus::{Bug, Case, Executor, all, find, verify};
use warpline_cpu::{Memory, Options, RunError, run};
use warpline_ir::FaultKind;
use warpline_testkit::kernel::TARGET;
use warpline_testkit::timings::timings;

/// Runs a check for every bug, and shows all that fail together.
fn for_every_bug(check: impl Fn(&Bug) -> Result<(), String>) {
    let failed: Vec<String> = all()
        .iter()
        .filter_map(|bug| check(bug).err().map(|why| format!("{bug}: {why}")))
        .collect();
    let (n, all) = (failed.len(), all().len());
    assert!(failed.is_empty(), "{n} of {all}:\n{}", failed.join("\n"));
}

fn broken(bug: &Bug) -> Result<Case, String> {
    bug.broken().map_err(|e| e.to_string())
}

fn repaired(bug: &Bug) -> Result<Case, String> {
    bug.repaired().map_err(|e| e.to_string())
}

#[test]
fn names_are_unique_and_say_where_to_look() {
    let names: HashSet<_> = all().iter().map(|bug| bug.name).collect();
    assert_eq!(names.len(), all().len());
    for bug in all() {
        let slug = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(bug.name.chars().all(slug), "{bug}");
        assert!(!bug.title.ends_with('.') && !bug.reference.is_empty());
        assert!(std::ptr::eq(find(bug.name).unwrap(), bug));
    }
    assert!(find("nobody's bug").is_none());
}

#[test]
fn the_two_forms_are_two_programs_or_two_launches() {
    for_every_bug(|bug| {
        let (broken, repaired) = (broken(bug)?, repaired(bug)?);
        let same = broken.kernel.text_hash() == repaired.kernel.text_hash()
            && broken.trial == repaired.trial;
        match same {
            true => Err("both forms are the same".to_owned()),
            false => Ok(()),
        }
    });
}

/// Each kernel marks a line of its own.
#[test]
fn every_bug_has_a_line() {
    let mut lines = HashSet::new();
    for bug in all() {
        let line = broken(bug).unwrap().line;
        assert!(line.line > 0 && lines.insert(line), "{bug}: {line}");
        assert_eq!(line, repaired(bug).unwrap().line);
    }
}

#[test]
fn every_bug_is_refused_at_its_line_and_its_repair_is_proved() {
    for_every_bug(|bug| {
        let verdict = verify(bug, &TARGET).map_err(|e| e.to_string())?;
        match verdict.is_expected() {
            true => Ok(()),
            false => Err(verdict.to_string()),
        }
    });
}

fn run_case(case: &Case, options: &Options) -> Result<(), Box<RunError>> {
    let mut memory = Memory::new();
    let launch = case
        .trial
        .launch(&mut |bytes| memory.alloc_from(&vec![0; bytes], "buffer"));
    let options = Options {
        threads: 1,
        max_steps: Some(100_000),
        ..options.clone()
    };
    run(&case.kernel, &launch, &memory, &options).map(|_| ())
}

#[test]
fn the_executor_finds_what_it_can_find() {
    for_every_bug(|bug| {
        let case = broken(bug)?;
        let faults: Vec<_> = timings(24)
            .filter_map(|o| run_case(&case, &o).err())
            .collect();
        let kinds: HashSet<String> = faults.iter().map(|e| format!("{:?}", e.kind)).collect();
        let is_expected = |kind: FaultKind| match bug.executor {
            Executor::Faults(expected) => expected.contains(&kind),
            Executor::Blind(_) => false,
        };
        match bug.executor {
            Executor::Faults(_) if faults.is_empty() => Err("it runs through".to_owned()),
            _ => match faults.iter().find(|e| !is_expected(e.kind)) {
                None => Ok(()),
                Some(other) => Err(format!("{kinds:?}: {other}")),
            },
        }
    });
}

#[test]
fn repaired_kernels_run_clean() {
    for_every_bug(|bug| {
        let case = repaired(bug)?;
        let mut faults = timings(24).filter_map(|o| run_case(&case, &o).err().map(|e| (o, e)));
        match faults.next() {
            None => Ok(()),
            Some((options, e)) => Err(format!("{}, seed {}: {e}", options.timing, options.seed)),
        }
    });
}
