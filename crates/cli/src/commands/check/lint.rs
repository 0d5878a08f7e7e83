//! The checklist of `check FAMILY --lint`.

use crate::errors::Failure;
use crate::progress::Bar;
use crate::resources::Assembler;
use warpline_ir::Target;
use warpline_kernels::{AnyFamily, AnyWork};
use warpline_lint::{Error, Finding, Options, Verdict};

/// Looks at what the work's kernels cost.
pub(super) fn findings(
    family: &dyn AnyFamily,
    work: &dyn AnyWork,
    target: &Target,
) -> Result<Vec<Finding>, Failure> {
    let mut options = Options::default();
    options.target = *target;
    options.family = Some(family);
    options.ptxas = match Assembler::find()? {
        Assembler::Found(ptxas) => Some(ptxas),
        Assembler::Missing(_) => None,
    };
    let _bar = Bar::new();
    warpline_lint::lint(work, &options).map_err(|e| match e {
        Error::Run(e) => e.into(),
        Error::Print(e) => warpline::Error::from(e).into(),
        other => Failure::refused("ptxas-refused", other.to_string()),
    })
}

/// One line per finding, under the name of its kernel.
pub(super) fn text(findings: &[Finding]) -> String {
    let width = findings.iter().map(|f| f.check.len()).max().unwrap_or(0);
    let mut text = String::new();
    let mut kernel = None;
    for f in findings {
        if kernel != Some(&f.kernel) {
            text += &format!("\nlint of kernel {}:\n", f.kernel);
            kernel = Some(&f.kernel);
        }
        let mark = match f.verdict {
            Verdict::Pass => "pass",
            Verdict::Warn => "warn",
            Verdict::NotLooked => "–",
        };
        text += &format!("  {mark:4}  {:width$}  {}{}\n", f.check, place(f), f.text);
    }
    text
}

/// `gemm.rs:88, role math: `, as far as it is known.
fn place(f: &Finding) -> String {
    let at = f.at.map(|at| at.to_string());
    let role = f.role.as_ref().map(|role| format!("role {role}"));
    let parts: Vec<String> = at.into_iter().chain(role).collect();
    match parts.is_empty() {
        true => String::new(),
        false => format!("{}: ", parts.join(", ")),
    }
}
