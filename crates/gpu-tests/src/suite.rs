//! All tests, as the harness is given them.

use crate::cases::Kind;
use crate::child::{Answer, Children};
use crate::ledger::{Entry, today};
use crate::ops::{Amount, all};
use crate::works::{Named, Part};
use crate::{hangs, mutants, runtime, works};
use anyhow::Result;
use libtest_mimic::{Failed, Trial};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use warpline::DeviceInfo;
use warpline_ir::Target;

/// What tests leave behind them.
#[derive(Default)]
pub struct Left {
    /// Programs that passed in their final build.
    pub passed: BTreeMap<String, Entry>,
    /// What is worth telling of those that passed, with their names.
    pub notes: Vec<(String, String)>,
    /// How long the tests of each group took, by its name.
    pub took: BTreeMap<String, Duration>,
    /// Works whose watchdog build failed.
    failed: HashSet<String>,
}

/// What tests leave, while they run.
pub type Leaving = Arc<Mutex<Left>>;

/// Children of one kind, one at a time.
type Shared = Arc<Mutex<Children>>;

fn children(kind: Kind) -> Shared {
    let limit = kind.limit();
    Arc::new(Mutex::new(Children::new(kind, limit)))
}

fn lock<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A test whose time counts for a group.
fn test(
    group: &str,
    name: &str,
    left: &Leaving,
    run: impl FnOnce() -> Result<(), Failed> + Send + 'static,
) -> Trial {
    let (group, left) = (group.to_owned(), left.clone());
    Trial::test(name, move || {
        let start = Instant::now();
        let verdict = run();
        *lock(&left).took.entry(group).or_default() += start.elapsed();
        verdict
    })
}

/// What the harness is told.
fn verdict(answer: Answer) -> Result<(), Failed> {
    answer.failed.map_or(Ok(()), |why| Err(why.into()))
}

/// A test that one child runs.
fn asks(group: &str, name: &str, children: &Shared, left: &Leaving) -> Trial {
    let (asked, children, leaving) = (name.to_owned(), children.clone(), left.clone());
    test(group, &format!("{group}::{name}"), left, move || {
        let mut answer = lock(&children).run(&asked);
        let note = answer.note.take();
        lock(&leaving).notes.extend(note.map(|note| (asked, note)));
        verdict(answer)
    })
}

/// The ops, recorded to a folder.
pub fn recording(folder: &Path, left: &Leaving) -> Vec<Trial> {
    let children = children(Kind::Record(folder.to_owned()));
    let trials = all(Amount::Recorded);
    let record = |t: &crate::trial::Trial| asks("record", &t.name, &children, left);
    trials.iter().map(record).collect()
}

/// Every test, in the order in which they are run.
pub fn everything(device: &DeviceInfo, left: &Leaving) -> Result<Vec<Trial>> {
    let ops = children(Kind::Ops);
    let mut tests: Vec<Trial> = (all(Amount::Recorded).iter())
        .map(|trial| asks("ops", &trial.name, &ops, left))
        .collect();
    let works = works::all(&target(device))?;
    let watchdog = children(Kind::Watchdog);
    let tables = works.iter().filter(|work| work.part == Part::Table);
    tests.extend(tables.map(|work| watched(work, &watchdog, left)));
    let finals = children(Kind::Final);
    tests.extend((works.iter()).map(|work| shipped(work, &finals, device, left)));
    let promises = children(Kind::Runtime);
    tests.extend(runtime::names().map(|name| asks("runtime", name, &promises, left)));
    let hanging = children(Kind::Hangs);
    for name in hangs::names()? {
        tests.push(hang(name, &hanging, left));
    }
    // To find them takes minutes: only who asks for them gets them.
    if std::env::args().any(|a| a.contains("mutants")) {
        let deadlocks = children(Kind::Mutants);
        for name in mutants::names(&target(device))? {
            tests.push(asks("mutants", &name, &deadlocks, left));
        }
    }
    Ok(tests)
}

/// The target of the device that is tested.
pub fn target(device: &DeviceInfo) -> Target {
    let target = Target::default();
    let sms = device.gpu.as_ref().map_or(target.sms, |gpu| gpu.sms);
    Target { sms, ..target }
}

/// A work with bounded waits.
fn watched(named: &Named, children: &Shared, left: &Leaving) -> Trial {
    let (work, children, leaving) = (named.name.clone(), children.clone(), left.clone());
    let (group, name) = (
        format!("watchdog::{}", named.set),
        format!("watchdog::{work}"),
    );
    test(&group, &name, left, move || {
        let answer = lock(&children).run(&work);
        if answer.failed.is_some() {
            lock(&leaving).failed.insert(work);
        }
        verdict(answer)
    })
}

/// A work as it ships, unless it has failed with bounded waits.
fn shipped(named: &Named, children: &Shared, device: &DeviceInfo, left: &Leaving) -> Trial {
    let (work, children, leaving) = (named.name.clone(), children.clone(), left.clone());
    // Times of small problems tell nothing.
    let large = named.part == Part::Large;
    let driver = device.gpu.as_ref().map(|gpu| gpu.driver.clone());
    let entry = Entry {
        kernel: String::new(),
        date: today(),
        driver: driver.unwrap_or_default(),
        device: device.description.clone(),
    };
    let (group, name) = (format!("final::{}", named.set), format!("final::{work}"));
    test(&group, &name, left, move || {
        if lock(&leaving).failed.contains(&work) {
            return Err("its watchdog build failed, so this one was not tried".into());
        }
        let mut answer = lock(&children).run(&work);
        let note = answer.note.take().filter(|_| large);
        if answer.failed.is_none() {
            let passed = answer.kernels.iter().map(|(kernel, hash)| {
                let kernel = kernel.clone();
                let entry = entry.clone();
                (hash.clone(), Entry { kernel, ..entry })
            });
            let mut left = lock(&leaving);
            left.passed.extend(passed);
            left.notes.extend(note.map(|note| (work, note)));
        }
        verdict(answer)
    })
}

/// A kernel that hangs, and a good one behind it.
fn hang(name: &'static str, children: &Shared, left: &Leaving) -> Trial {
    let (children, leaving) = (children.clone(), left.clone());
    test("hangs", &format!("hangs::{name}"), left, move || {
        let mut children = lock(&children);
        let mut answer = children.run(name);
        let note = answer.note.take().map(|note| (name.to_owned(), note));
        lock(&leaving).notes.extend(note);
        verdict(answer)?;
        verdict(children.run(hangs::GOOD))
    })
}
