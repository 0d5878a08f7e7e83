//! `check FAMILY --lint`: performance warnings.

use crate::errors::Failure;
use crate::progress::Bar;
use crate::resources::Assembler;
use warpline_ir::Target;
use warpline_kernels::{AnyFamily, AnyWorkload};
use warpline_lint::{LintError, LintFinding, LintStatus, Options};

/// Runs the lints on the workload's kernels.
pub(super) fn findings(
    family: &dyn AnyFamily,
    work: &dyn AnyWorkload,
    target: &Target,
) -> Result<Vec<LintFinding>, Failure> {
    let mut options = Options::default();
    options.target = *target;
    options.family = Some(family);
    options.ptxas = match Assembler::find()? {
        Assembler::Found(ptxas) => Some(ptxas),
        Assembler::Missing(_) => None,
    };
    let _bar = Bar::new();
    warpline_lint::lint(work, &options).map_err(|e| match e {
        LintError::Run(e) => e.into(),
        LintError::Print(e) => warpline::Error::from(e).into(),
        other => Failure::bad_result("ptxas-rejected", other.to_string()),
    })
}

/// Formats one line per finding, under the name of its kernel.
pub(super) fn text(findings: &[LintFinding]) -> String {
    let width = findings.iter().map(|f| f.check.len()).max().unwrap_or(0);
    let mut text = String::new();
    let mut kernel = None;
    for f in findings {
        if kernel != Some(&f.kernel) {
            text += &format!("\nlints of kernel {}:\n", f.kernel);
            kernel = Some(&f.kernel);
        }
        let mark = match f.status {
            LintStatus::Pass => "pass",
            LintStatus::Warn => "warn",
            LintStatus::Skipped => "–",
        };
        text += &format!(
            "  {mark:4}  {:width$}  {}{}\n",
            f.check,
            location(f),
            f.text
        );
    }
    text
}

/// Formats the known part of `gemm.rs:88, role math: `.
fn location(f: &LintFinding) -> String {
    let at = f.at.map(|at| at.to_string());
    let role = f.role.as_ref().map(|role| format!("role {role}"));
    let parts: Vec<String> = at.into_iter().chain(role).collect();
    match parts.is_empty() {
        true => String::new(),
        false => format!("{}: ", parts.join(", ")),
    }
}
