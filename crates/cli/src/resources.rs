//! The resources of a kernel: reported by ptxas if found, else estimated.

use crate::errors::Failure;
use crate::report;
use serde::Serialize;
use std::fmt;
use warpline_ir::{Kernel, Target};
use warpline_ptx::ptxas::{Advisory, KernelReport, Ptxas, PtxasError};
use warpline_ptx::{Ptx, ResourceEstimate};

/// The source of the numbers.
pub(crate) enum Assembler {
    /// ptxas.
    Found(Ptxas),
    /// The estimate, and the reason that ptxas is not used.
    Missing(String),
}

/// The resources of a kernel.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Resources {
    kernel: String,
    /// `ptxas`, or `estimate`.
    source: &'static str,
    /// The version of ptxas.
    #[serde(skip_serializing_if = "Option::is_none")]
    ptxas: Option<String>,
    /// The reason that ptxas is not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    /// The report of ptxas on the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<KernelReport>,
    advisories: Vec<Advisory>,
    /// The resources known without ptxas, and the estimated registers of each role.
    estimate: ResourceEstimate,
}

impl Assembler {
    /// Finds ptxas. Without the pinned version the resources are estimated. A ptxas named by `PTXAS`
    /// that does not run is an error.
    pub(crate) fn find() -> Result<Self, Failure> {
        match Ptxas::find() {
            Ok(ptxas) => Ok(Self::Found(ptxas)),
            Err(e @ (PtxasError::NotFound | PtxasError::WrongVersion { .. })) => {
                Ok(Self::Missing(e.to_string()))
            }
            Err(e) => Err(Failure::bad_input("bad-ptxas", e.to_string())),
        }
    }

    /// Returns the resources of a kernel.
    pub(crate) fn resources(
        &self,
        kernel: &Kernel,
        ptx: &Ptx,
        target: &Target,
    ) -> Result<Resources, Failure> {
        let mut resources = Resources {
            kernel: kernel.name.clone(),
            source: "estimate",
            ptxas: None,
            why: None,
            entry: None,
            advisories: Vec::new(),
            estimate: ResourceEstimate::of(kernel, target),
        };
        match self {
            Self::Missing(why) => resources.why = Some(why.clone()),
            Self::Found(ptxas) => {
                let assembled = ptxas
                    .assemble(&ptx.text, target.name)
                    .map_err(|e| Failure::bad_result("ptxas-rejected", e.to_string()))?;
                resources.source = "ptxas";
                resources.ptxas = Some(ptxas.version.clone());
                resources.entry = assembled.report.kernel(&ptx.entry).cloned();
                resources.advisories = assembled.report.advisories;
            }
        }
        Ok(resources)
    }
}

impl Resources {
    /// Returns a failure if ptxas reports that it changed the kernel.
    pub(crate) fn failure(&self) -> Option<Failure> {
        let bad = self.advisories.iter().find(|a| a.is_error())?;
        let text = format!(
            "ptxas changed kernel {}: {} ({})",
            self.kernel, bad.text, bad.code
        );
        Some(Failure::bad_result("ptxas-advisory", text))
    }
}

impl fmt::Display for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let e = &self.estimate;
        let mut rows = Vec::new();
        if let Some(entry) = &self.entry {
            rows.push((
                "registers",
                format!("{} per thread at launch", entry.registers),
            ));
            rows.push((
                "spills",
                format!(
                    "{} bytes stored, {} bytes loaded, {} bytes of stack",
                    entry.spill_store_bytes, entry.spill_load_bytes, entry.stack_bytes
                ),
            ));
        }
        let barriers = self
            .entry
            .as_ref()
            .map_or(e.barriers, |entry| entry.barriers);
        rows.push(("threads", format!("{} per CTA", e.threads)));
        rows.push((
            "shared",
            format!("{} bytes of dynamic shared memory per CTA", e.shared_bytes),
        ));
        rows.push((
            "barriers",
            format!("{barriers} named barriers, {} mbarriers", e.mbarriers),
        ));
        for role in &e.roles {
            rows.push((
                "role",
                format!(
                    "{}: {} warps, about {} of {} registers per thread (estimate)",
                    role.name, role.warps, role.registers, role.budget
                ),
            ));
        }
        for advisory in &self.advisories {
            rows.push(("advisory", format!("{} ({})", advisory.text, advisory.code)));
        }
        rows.extend(self.why.as_ref().map(|why| ("no ptxas", why.clone())));
        let source = match &self.ptxas {
            Some(version) => format!("ptxas {version}"),
            None => "an estimate".into(),
        };
        f.write_str(&report::fields(
            &format!("kernel {}, from {source}", self.kernel),
            &rows,
        ))
    }
}
