//! `check FAMILY --lint`: performance warnings.

use crate::errors::Failure;
use crate::progress::Bar;
use crate::resources::Assembler;
use warpline_check::Rule;
use warpline_check::render::TextRenderer;
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

/// Returns one line per check under the name of its kernel, then each warning with its source line.
pub(super) fn text(findings: &[LintFinding], renderer: &mut TextRenderer) -> String {
    let kernels = findings.chunk_by(|a, b| a.kernel == b.kernel);
    kernels
        .map(|findings| kernel_text(findings, renderer))
        .collect()
}

fn kernel_text(findings: &[LintFinding], renderer: &mut TextRenderer) -> String {
    let width = findings.iter().map(|f| f.check.len()).max().unwrap_or(0);
    let kernel = findings.first().map_or("", |f| &f.kernel);
    let mut text = format!("\nlints of kernel {kernel}:\n");
    for f in findings {
        let status = match f.status {
            LintStatus::Pass => "pass",
            LintStatus::Warn => "warn",
            LintStatus::Skipped => "–",
        };
        text += &format!("  {status:4}  {:width$}  {}\n", f.check, f.text);
    }
    for f in findings.iter().filter(|f| f.status == LintStatus::Warn) {
        if let Some(rule) = Rule::find(f.check) {
            let role = f.role.iter().map(|role| format!("role `{role}`: "));
            let headline = role.chain([f.text.clone()]).collect::<String>();
            text += &format!("\n{}", renderer.warning(rule, &headline, f.at));
        }
    }
    text
}
