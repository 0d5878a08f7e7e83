//! The report as text.

use crate::judge::{Count, Found, Report};
use comfy_table::{CellAlignment, Table, presets};
use std::fmt;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", kinds(&self.kinds).trim_fmt())?;
        writeln!(f, "{}\n", rules(self).trim_fmt())?;
        list(f, "survived", &self.survivors, "no reason is given")?;
        list(f, "undecided", &self.undecided, "no reason is told")?;
        for alarm in &self.false_alarms {
            writeln!(f, "{}: {}\n  {}", alarm.outcome, alarm.subject, alarm.text)?;
        }
        for stale in &self.stale {
            writeln!(f, "listed as a survivor, and is none: {stale}")?;
        }
        writeln!(
            f,
            "{} mutants of {} kernels in {:.1} s; {} kernels falsely alarmed",
            self.mutants,
            self.subjects,
            self.seconds,
            self.false_alarms.len()
        )?;
        let slowest = &self.slowest;
        let mutant = slowest.mutant.as_deref().unwrap_or("as it is");
        write!(
            f,
            "the longest check took {:.0} ms: {}, {mutant}",
            slowest.ms, slowest.subject
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

fn kinds(counts: &[Count]) -> Table {
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

fn rules(report: &Report) -> Table {
    let mut table = table(&["rule", "kills"]);
    for (code, kills) in &report.rules {
        table.add_row([(*code).to_owned(), kills.to_string()]);
    }
    table
}

fn list(f: &mut fmt::Formatter<'_>, word: &str, all: &[Found], none: &str) -> fmt::Result {
    for found in all {
        writeln!(f, "{word}: {}, {}", found.subject, found.mutant)?;
        let why = found.why.as_deref().unwrap_or(none);
        writeln!(f, "  {}: {why}", found.at)?;
    }
    Ok(())
}
