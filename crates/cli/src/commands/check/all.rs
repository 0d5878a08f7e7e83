//! `warpline check --all`: every program of every family, once.

use super::replay;
use super::{texts, unproved};
use crate::answer::Answer;
use crate::errors::Failure;
use crate::progress::Bar;
use crate::{report, words};
use rayon::prelude::*;
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Write;
use warpline_check::{Outcome, Report, examine};
use warpline_ir::{Kernel, Target};
use warpline_kernels::{AnyFamily, AnyWork, FamilyError, shipped};

/// Checks every family with every config.
pub(super) fn all(
    families: &[&dyn AnyFamily],
    replay: bool,
    target: Target,
) -> Result<Answer, Failure> {
    let bar = Bar::new();
    let programs = programs(families, &target, &bar)?;
    bar.count("checks", programs.len());
    let examined = programs.par_iter().map(|program| {
        let report = examine(&program.kernel, &target);
        bar.step();
        Examined::new(program, report)
    });
    let examined: Vec<Examined> = examined.collect();
    drop(bar);

    let rows: Vec<Row> = (families.iter())
        .map(|family| Row::new(family.name(), &examined))
        .collect();
    let mut answer = Answer::new("check", text(&rows, &examined))
        .field("target", target.name)
        .field("proved", examined.iter().all(Examined::is_proved))
        .field("families", &rows)
        .field("kernels", &examined)
        .failing(unproved(examined.iter().map(|e| &e.report)));
    if replay {
        let kernels = programs.iter().map(|p| &p.kernel);
        answer = replay::add(answer, kernels.zip(examined.iter().map(|e| &e.report)));
    }
    Ok(answer)
}

/// A program, and the first work it was met in.
struct Program {
    kernel: Kernel,
    family: &'static str,
    problem: Value,
    config: Value,
}

/// Every program of the families, once.
fn programs(
    families: &[&dyn AnyFamily],
    target: &Target,
    bar: &Bar,
) -> Result<Vec<Program>, FamilyError> {
    let mut works = Vec::new();
    for family in families {
        works.extend(shipped::works(*family, target)?);
    }
    bar.count("builds", works.len());
    let built = works.par_iter().map(|work| {
        let built = build(work.as_ref(), target);
        bar.step();
        built
    });
    let built: Vec<_> = built.collect::<Result<_, _>>()?;
    let mut seen = HashSet::new();
    let mut programs: Vec<_> = built.into_iter().flatten().collect();
    programs.retain(|(hash, _)| seen.insert(hash.clone()));
    Ok(programs.into_iter().map(|(_, program)| program).collect())
}

/// The programs of a plan, each behind its hash.
fn build(work: &dyn AnyWork, target: &Target) -> Result<Vec<(String, Program)>, FamilyError> {
    let steps = work.plan(target)?.steps.into_iter();
    let program = |kernel: Kernel| Program {
        kernel,
        family: work.family(),
        problem: work.problem(),
        config: work.config(),
    };
    Ok(steps
        .map(|step| (step.kernel.text_hash(), program(step.into_kernel())))
        .collect())
}

/// What was found in a program.
#[derive(Serialize)]
struct Examined {
    family: &'static str,
    problem: Value,
    config: Value,
    #[serde(flatten)]
    report: Report,
}

impl Examined {
    fn new(program: &Program, report: Report) -> Self {
        Self {
            family: program.family,
            problem: program.problem.clone(),
            config: program.config.clone(),
            report,
        }
    }

    fn is_proved(&self) -> bool {
        self.report.outcome() == Outcome::Proved
    }
}

/// A family in numbers.
#[derive(Default, Serialize)]
struct Row {
    family: &'static str,
    kernels: usize,
    proved: usize,
    refuted: usize,
    undecided: usize,
    most_states: u64,
    slowest_s: f64,
}

impl Row {
    fn new(family: &'static str, examined: &[Examined]) -> Self {
        let mut row = Self {
            family,
            ..Self::default()
        };
        for Examined { report, .. } in examined.iter().filter(|e| e.family == family) {
            row.kernels += 1;
            *match report.outcome() {
                Outcome::Proved => &mut row.proved,
                Outcome::Refuted => &mut row.refuted,
                Outcome::Undecided => &mut row.undecided,
            } += 1;
            row.most_states = row.most_states.max(report.states);
            row.slowest_s = row.slowest_s.max(report.time.as_secs_f64());
        }
        row
    }

    fn cells(&self) -> [String; 7] {
        [
            self.family.to_owned(),
            self.kernels.to_string(),
            self.proved.to_string(),
            self.refuted.to_string(),
            self.undecided.to_string(),
            self.most_states.to_string(),
            words::seconds(self.slowest_s),
        ]
    }
}

/// What the proofs rest on: each code with the number of kernels that need it.
fn assumed(examined: &[Examined]) -> String {
    let mut kernels: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for (i, e) in examined.iter().enumerate().filter(|(_, e)| e.is_proved()) {
        for assumption in &e.report.assumptions {
            kernels.entry(assumption.code).or_default().insert(i);
        }
    }
    if kernels.is_empty() {
        return String::new();
    }
    let counts = kernels.iter().map(|(code, of)| match of.len() {
        1 => format!("{code} in 1 kernel"),
        n => format!("{code} in {n} kernels"),
    });
    let counts: Vec<String> = counts.collect();
    format!(
        "\nassumes: {} (`check FAMILY` prints each)\n",
        counts.join(", ")
    )
}

/// The table, then what is not proved: each rule and line once.
fn text(rows: &[Row], examined: &[Examined]) -> String {
    let mut table = report::table([
        "family",
        "kernels",
        "proved",
        "refuted",
        "undecided",
        "most states",
        "slowest",
    ]);
    for row in rows {
        table.add_row(row.cells());
    }
    let mut text = format!("{}\n", table.trim_fmt());
    let (mut texts, mut told) = (texts(), HashSet::new());
    for e in examined {
        let mut report = e.report.clone();
        report
            .refusals
            .retain(|r| !told.contains(&(r.code(), r.at)));
        if report.refusals.is_empty() {
            continue;
        }
        told.extend(report.refusals.iter().map(|r| (r.code(), r.at)));
        let (problem, config) = (words::settings(&e.problem), words::settings(&e.config));
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "\n{} with {problem} and {config}:\n{}",
            e.family,
            texts.report(&report)
        );
    }
    let proved = examined.iter().filter(|e| e.is_proved()).count();
    text.push_str(&assumed(examined));
    text + &format!("\n{proved} of {} kernels are proved\n", examined.len())
}
