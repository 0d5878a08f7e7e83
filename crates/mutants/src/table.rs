//! The report as text.

use crate::evaluate::{KindCounts, MutantReport, UnrefutedMutant};
use comfy_table::{CellAlignment, Table, presets};
use std::fmt;

impl fmt::Display for MutantReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", kind_table(&self.kinds).trim_fmt())?;
        writeln!(f, "{}\n", rule_table(self).trim_fmt())?;
        write_mutants(f, "survived", &self.survived, "not listed as equivalent")?;
        write_mutants(f, "undecided", &self.undecided, "no diagnostic")?;
        for alarm in &self.false_alarms {
            writeln!(f, "{}: {}\n  {}", alarm.verdict, alarm.kernel, alarm.text)?;
        }
        for stale in &self.stale {
            writeln!(
                f,
                "no proved mutant matches this entry of equivalent.json: {stale}"
            )?;
        }
        writeln!(
            f,
            "{} mutants of {} kernels in {:.1} s; {} unchanged kernels not proved",
            self.mutants,
            self.kernels,
            self.seconds,
            self.false_alarms.len()
        )?;
        let slowest = &self.slowest;
        let mutant = slowest.mutant.as_deref().unwrap_or("unchanged");
        write!(
            f,
            "the slowest check took {:.0} ms: {}, {mutant}",
            slowest.ms, slowest.kernel
        )
    }
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(header.iter().map(|h| h.to_uppercase()));
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn kind_table(counts: &[KindCounts]) -> Table {
    let mut table = table(&["kind", "made", "killed", "undecided", "survived"]);
    let row = |name: &str, c: [usize; 4]| {
        let numbers = c.iter().map(ToString::to_string);
        std::iter::once(name.to_owned())
            .chain(numbers)
            .collect::<Vec<_>>()
    };
    let mut sum = [0; 4];
    for c in counts {
        let numbers = [c.made, c.killed, c.undecided, c.survived];
        sum.iter_mut().zip(numbers).for_each(|(s, n)| *s += n);
        table.add_row(row(c.kind, numbers));
    }
    table.add_row(row("all", sum));
    table
}

fn rule_table(report: &MutantReport) -> Table {
    let mut table = table(&["rule", "kills"]);
    for (code, kills) in &report.rules {
        table.add_row([(*code).to_owned(), kills.to_string()]);
    }
    table
}

/// Writes the mutants with their reasons, or with `default_reason`.
fn write_mutants(
    f: &mut fmt::Formatter<'_>,
    verdict: &str,
    mutants: &[UnrefutedMutant],
    default_reason: &str,
) -> fmt::Result {
    for mutant in mutants {
        writeln!(f, "{verdict}: {}, {}", mutant.kernel, mutant.mutant)?;
        let reason = mutant.reason.as_deref().unwrap_or(default_reason);
        writeln!(f, "  {}: {reason}", mutant.at)?;
    }
    Ok(())
}
