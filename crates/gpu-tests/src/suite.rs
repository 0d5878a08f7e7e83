//! The list of all tests for the harness.

use crate::child::{CaseResult, ChildRunner};
use crate::ledger::{Ledger, LedgerEntry};
use crate::ops::{DataSize, all};
use crate::runner::TestGroup;
use crate::workloads::{NamedWorkload, WorkloadKind};
use crate::{hangs, mutants, runtime, workloads};
use anyhow::Result;
use libtest_mimic::{Failed, Trial};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use warpline::DeviceInfo;
use warpline_ir::Target;
use warpline_mutants::today;

/// The results that tests collect.
#[derive(Default)]
pub struct RunRecord {
    /// Programs that passed in their final build.
    pub passed: BTreeMap<String, LedgerEntry>,
    /// The names and notes of passed tests.
    pub notes: Vec<(String, String)>,
    /// The total time of each group.
    pub durations: BTreeMap<String, Duration>,
    /// The workloads whose watchdog build failed.
    failed: HashSet<String>,
}

/// The run record, shared by the tests.
pub type SharedRunRecord = Arc<Mutex<RunRecord>>;

/// A child runner, shared by the tests of a group.
type SharedChildren = Arc<Mutex<ChildRunner>>;

fn children(group: TestGroup) -> SharedChildren {
    let limit = group.limit();
    Arc::new(Mutex::new(ChildRunner::new(group, limit)))
}

fn lock<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Creates a test whose time is added to a group.
fn test(
    group: &str,
    name: &str,
    record: &SharedRunRecord,
    run: impl FnOnce() -> Result<(), Failed> + Send + 'static,
) -> Trial {
    let (group, record) = (group.to_owned(), record.clone());
    Trial::test(name, move || {
        let start = Instant::now();
        let result = run();
        *lock(&record).durations.entry(group).or_default() += start.elapsed();
        result
    })
}

/// Converts a result for the harness.
fn to_result(result: CaseResult) -> Result<(), Failed> {
    result.failed.map_or(Ok(()), |message| Err(message.into()))
}

/// Creates a test that a child runs.
fn child_test(
    group: &str,
    name: &str,
    children: &SharedChildren,
    record: &SharedRunRecord,
) -> Trial {
    let (case, children, shared) = (name.to_owned(), children.clone(), record.clone());
    test(group, &format!("{group}::{name}"), record, move || {
        let mut result = lock(&children).run(&case);
        let note = result.note.take();
        lock(&shared).notes.extend(note.map(|note| (case, note)));
        to_result(result)
    })
}

/// Returns the tests that record all op trials to a directory.
pub fn recording_tests(folder: &Path, record: &SharedRunRecord) -> Vec<Trial> {
    let children = children(TestGroup::Record(folder.to_owned()));
    let trials = all(DataSize::Recorded);
    let to_test = |t: &crate::trial::OpTrial| child_test("record", &t.name, &children, record);
    trials.iter().map(to_test).collect()
}

/// Returns the tests of the workloads with programs that a ledger does not have: the `i`-th of `n`
/// equal parts.
pub fn new_tests(
    device: &DeviceInfo,
    record: &SharedRunRecord,
    ledger: &Ledger,
    [i, n]: [usize; 2],
) -> Result<Vec<Trial>> {
    let target = target(device);
    let mut new = Vec::new();
    let mut known: HashSet<String> = ledger.0.keys().cloned().collect();
    for workload in workloads::all(&target)? {
        let steps = workload.workload.plan(&target)?.steps;
        let hashes: Vec<_> = steps.iter().map(|s| s.kernel.program_hash()).collect();
        let before = known.len();
        known.extend(hashes);
        if known.len() > before {
            new.push(workload);
        }
    }
    let part: Vec<_> = new.iter().skip(i - 1).step_by(n).collect();
    let watchdog = children(TestGroup::Watchdog);
    let tables = part
        .iter()
        .filter(|workload| workload.kind == WorkloadKind::Table);
    let mut tests: Vec<_> = tables
        .map(|workload| watchdog_test(workload, &watchdog, record))
        .collect();
    let final_builds = children(TestGroup::Final);
    let final_test =
        |workload: &&NamedWorkload| final_test(workload, &final_builds, device, record);
    tests.extend(part.iter().map(final_test));
    Ok(tests)
}

/// Returns all tests in the order of execution.
pub fn all_tests(device: &DeviceInfo, record: &SharedRunRecord) -> Result<Vec<Trial>> {
    let ops = children(TestGroup::Ops);
    let mut tests: Vec<Trial> = (all(DataSize::Recorded).iter())
        .map(|trial| child_test("ops", &trial.name, &ops, record))
        .collect();
    let workloads = workloads::all(&target(device))?;
    let watchdog = children(TestGroup::Watchdog);
    let tables = workloads
        .iter()
        .filter(|workload| workload.kind == WorkloadKind::Table);
    tests.extend(tables.map(|workload| watchdog_test(workload, &watchdog, record)));
    let final_builds = children(TestGroup::Final);
    tests.extend(
        (workloads.iter()).map(|workload| final_test(workload, &final_builds, device, record)),
    );
    let guarantees = children(TestGroup::Runtime);
    tests.extend(runtime::names().map(|name| child_test("runtime", name, &guarantees, record)));
    let hangs_children = children(TestGroup::Hangs);
    for name in hangs::names()? {
        tests.push(hang_test(name, &hangs_children, record));
    }
    // The search for deadlock mutants takes minutes, so it runs only on request.
    if std::env::args().any(|a| a.contains("mutants")) {
        let deadlocks = children(TestGroup::Mutants);
        for name in mutants::names(&target(device))? {
            tests.push(child_test("mutants", &name, &deadlocks, record));
        }
    }
    Ok(tests)
}

/// Returns the target of the tested device.
pub fn target(device: &DeviceInfo) -> Target {
    let target = Target::default();
    let sms = device.gpu.as_ref().map_or(target.sms, |gpu| gpu.sms);
    Target { sms, ..target }
}

/// Creates the test of a workload in the watchdog build.
fn watchdog_test(
    named: &NamedWorkload,
    children: &SharedChildren,
    record: &SharedRunRecord,
) -> Trial {
    let (workload, children, shared) = (named.name.clone(), children.clone(), record.clone());
    let (group, name) = (
        format!("watchdog::{}", named.set),
        format!("watchdog::{workload}"),
    );
    test(&group, &name, record, move || {
        let result = lock(&children).run(&workload);
        if result.failed.is_some() {
            lock(&shared).failed.insert(workload);
        }
        to_result(result)
    })
}

/// Creates the test of a workload in the final build; it fails if the watchdog build failed.
fn final_test(
    named: &NamedWorkload,
    children: &SharedChildren,
    device: &DeviceInfo,
    record: &SharedRunRecord,
) -> Trial {
    let (workload, children, shared) = (named.name.clone(), children.clone(), record.clone());
    // Times of small problems are not reported.
    let reports_time = named.kind == WorkloadKind::Large;
    let driver = device.gpu.as_ref().map(|gpu| gpu.driver.clone());
    let entry = LedgerEntry {
        kernel: String::new(),
        date: today(),
        driver: driver.unwrap_or_default(),
        device: device.description.clone(),
    };
    let (group, name) = (
        format!("final::{}", named.set),
        format!("final::{workload}"),
    );
    test(&group, &name, record, move || {
        if lock(&shared).failed.contains(&workload) {
            return Err("not run: the watchdog build failed".into());
        }
        let mut result = lock(&children).run(&workload);
        let note = result.note.take().filter(|_| reports_time);
        if result.failed.is_none() {
            let passed = result.kernels.iter().map(|(kernel, hash)| {
                let kernel = kernel.clone();
                let entry = entry.clone();
                (hash.clone(), LedgerEntry { kernel, ..entry })
            });
            let mut record = lock(&shared);
            record.passed.extend(passed);
            record.notes.extend(note.map(|note| (workload, note)));
        }
        to_result(result)
    })
}

/// Creates the test of a hangs_children kernel, followed by a correct one.
fn hang_test(name: &'static str, children: &SharedChildren, record: &SharedRunRecord) -> Trial {
    let (children, shared) = (children.clone(), record.clone());
    test("hangs", &format!("hangs::{name}"), record, move || {
        let mut children = lock(&children);
        let mut result = children.run(name);
        let note = result.note.take().map(|note| (name.to_owned(), note));
        lock(&shared).notes.extend(note);
        to_result(result)?;
        to_result(children.run(hangs::CORRECT))
    })
}
