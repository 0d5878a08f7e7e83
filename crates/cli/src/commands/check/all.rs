//! `warpline check --all`: checks every distinct program of every family.

use super::replay;
use super::{renderer, unproved};
use crate::errors::Failure;
use crate::output::CommandOutput;
use crate::progress::Bar;
use crate::{display, report};
use rayon::prelude::*;
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Write;
use warpline_check::{Report, Verdict, examine};
use warpline_ir::{Kernel, Target};
use warpline_kernels::{AnyFamily, AnyWorkload, FamilyError, shipped};

/// Checks every family with every config.
pub(super) fn all(
    families: &[&dyn AnyFamily],
    replay: bool,
    target: Target,
) -> Result<CommandOutput, Failure> {
    let bar = Bar::new();
    let programs = programs(families, &target, &bar)?;
    bar.count("checking kernels", programs.len());
    let examined = programs.par_iter().map(|program| {
        let report = examine(&program.kernel, &target);
        bar.step();
        CheckedProgram::new(program, report)
    });
    let examined: Vec<CheckedProgram> = examined.collect();
    drop(bar);

    let rows: Vec<Row> = (families.iter())
        .map(|family| Row::new(family.name(), &examined))
        .collect();
    let mut output = CommandOutput::new("check", text(&rows, &examined))
        .field("target", target.name)
        .field("proved", examined.iter().all(CheckedProgram::is_proved))
        .field("families", &rows)
        .field("kernels", &examined)
        .with_failure(unproved(examined.iter().map(|e| &e.report)));
    if replay {
        let kernels = programs.iter().map(|p| &p.kernel);
        output = replay::add(output, kernels.zip(examined.iter().map(|e| &e.report)));
    }
    Ok(output)
}

/// A program and the first workload that uses it.
struct Program {
    kernel: Kernel,
    family: &'static str,
    problem: Value,
    config: Value,
}

/// Builds every distinct program of the families.
fn programs(
    families: &[&dyn AnyFamily],
    target: &Target,
    bar: &Bar,
) -> Result<Vec<Program>, FamilyError> {
    let mut works = Vec::new();
    for family in families {
        works.extend(shipped::workloads(*family, target)?);
    }
    bar.count("building kernels", works.len());
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

/// Builds the programs of a plan, each with its hash.
fn build(work: &dyn AnyWorkload, target: &Target) -> Result<Vec<(String, Program)>, FamilyError> {
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

/// A program and the checker's report.
#[derive(Serialize)]
struct CheckedProgram {
    family: &'static str,
    problem: Value,
    config: Value,
    #[serde(flatten)]
    report: Report,
}

impl CheckedProgram {
    fn new(program: &Program, report: Report) -> Self {
        Self {
            family: program.family,
            problem: program.problem.clone(),
            config: program.config.clone(),
            report,
        }
    }

    fn is_proved(&self) -> bool {
        self.report.verdict() == Verdict::Proved
    }
}

/// The verdict counts of a family.
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
    fn new(family: &'static str, examined: &[CheckedProgram]) -> Self {
        let mut row = Self {
            family,
            ..Self::default()
        };
        for CheckedProgram { report, .. } in examined.iter().filter(|e| e.family == family) {
            row.kernels += 1;
            *match report.verdict() {
                Verdict::Proved => &mut row.proved,
                Verdict::Refuted => &mut row.refuted,
                Verdict::Undecided => &mut row.undecided,
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
            display::seconds(self.slowest_s),
        ]
    }
}

/// Formats the assumptions of the proofs: each code with the number of kernels whose proof relies on it.
fn assumptions(examined: &[CheckedProgram]) -> String {
    let mut kernels: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for (i, e) in examined.iter().enumerate().filter(|(_, e)| e.is_proved()) {
        for assumption in &e.report.assumptions {
            kernels.entry(assumption.code).or_default().insert(i);
        }
    }
    if kernels.is_empty() {
        return String::new();
    }
    let counts = kernels.iter().map(|(code, indices)| match indices.len() {
        1 => format!("{code} in 1 kernel"),
        n => format!("{code} in {n} kernels"),
    });
    let counts: Vec<String> = counts.collect();
    format!(
        "\nassumes: {} (`check FAMILY` prints each)\n",
        counts.join(", ")
    )
}

/// Formats the table, then each refutation and undecided rule once per rule and source line.
fn text(rows: &[Row], examined: &[CheckedProgram]) -> String {
    let mut table = report::table([
        "family",
        "kernels",
        "proved",
        "refuted",
        "undecided",
        "max states",
        "max time",
    ]);
    for row in rows {
        table.add_row(row.cells());
    }
    let mut text = format!("{}\n", table.trim_fmt());
    let (mut renderer, mut reported) = (renderer(), HashSet::new());
    for program in examined {
        let mut report = program.report.clone();
        report
            .diagnostics
            .retain(|r| !reported.contains(&(r.code(), r.at)));
        if report.diagnostics.is_empty() {
            continue;
        }
        reported.extend(report.diagnostics.iter().map(|r| (r.code(), r.at)));
        let (problem, config) = (
            display::settings(&program.problem),
            display::settings(&program.config),
        );
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "\n{} with {problem} and {config}:\n{}",
            program.family,
            renderer.report(&report)
        );
    }
    let proved = examined.iter().filter(|e| e.is_proved()).count();
    text.push_str(&assumptions(examined));
    text + &format!("\nproved: {proved} of {} kernels\n", examined.len())
}
