//! Printing, verifying and assembling.

use crate::kernel::TARGET;
use std::sync::LazyLock;
use warpline_check::Checked;
use warpline_ptx::ptxas::{Assembled, KernelReport, Ptxas};
use warpline_ptx::{Ptx, print};

/// The assembler, found once.
static PTXAS: LazyLock<Ptxas> = LazyLock::new(|| Ptxas::find().unwrap_or_else(|e| panic!("{e}")));

/// Prints a kernel and verifies the PTX against it.
pub fn printed(kernel: &Checked) -> Result<Ptx, String> {
    let with_name = |e: String| format!("{}: {e}", kernel.name);
    let ptx = print(kernel, &TARGET).map_err(|e| with_name(e.to_string()))?;
    let counts =
        warpline_translation::verify(kernel, &ptx.text).map_err(|e| with_name(e.to_string()))?;
    match counts.total() > kernel.params.len() {
        true => Ok(ptx),
        false => Err(with_name(
            "the translation check compared only parameters".into(),
        )),
    }
}

/// Prints a kernel, verifies the PTX and [`assembles`] it.
pub fn assembled(kernel: &Checked) -> Result<Assembled, String> {
    assembles(&printed(kernel)?)
}

/// Assembles a PTX text; fails on errors and spills. The result reports all other advisories.
pub fn assembles(ptx: &Ptx) -> Result<Assembled, String> {
    let assembled = assembles_with_spills(ptx)?;
    let spills = |e: &KernelReport| e.spill_store_bytes + e.spill_load_bytes > 0;
    match assembled.report.kernels.iter().find(|e| spills(e)) {
        Some(entry) => Err(format!("{}: ptxas spills: {entry:?}", ptx.entry)),
        None => Ok(assembled),
    }
}

/// Assembles a PTX text; fails on errors.
pub fn assembles_with_spills(ptx: &Ptx) -> Result<Assembled, String> {
    let with_name = |e: String| format!("{}: {e}", ptx.entry);
    let assembled = PTXAS
        .assemble(&ptx.text, ptx.target)
        .map_err(|e| with_name(format!("{e}\n{}", ptx.text)))?;
    let errors: Vec<_> = assembled.report.errors().collect();
    match errors.is_empty() {
        true => Ok(assembled),
        false => Err(with_name(format!("{errors:?}"))),
    }
}
