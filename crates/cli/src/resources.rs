//! What a kernel needs of an SM: from ptxas where it is found, else our estimate.

use crate::errors::Failure;
use crate::report;
use serde::Serialize;
use std::fmt;
use warpline_ir::{Kernel, Target};
use warpline_ptx::ptxas::{Advisory, Entry, Ptxas, PtxasError};
use warpline_ptx::{Estimate, Ptx};

/// Where numbers come from.
pub(crate) enum Assembler {
    /// ptxas.
    Found(Ptxas),
    /// Our estimate, and why.
    Missing(String),
}

/// What a kernel needs.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Resources {
    kernel: String,
    /// `ptxas`, or `estimate`.
    source: &'static str,
    /// The version of ptxas.
    #[serde(skip_serializing_if = "Option::is_none")]
    ptxas: Option<String>,
    /// Why ptxas was not asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    /// What ptxas says of the entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<Entry>,
    advisories: Vec<Advisory>,
    /// What we know without ptxas, and our estimate of registers by role.
    estimate: Estimate,
}

impl Assembler {
    /// Finds ptxas. That there is none, or one of another version, is a normal
    /// case; one that was named and does not run is not.
    pub(crate) fn find() -> Result<Self, Failure> {
        match Ptxas::find() {
            Ok(ptxas) => Ok(Self::Found(ptxas)),
            Err(e @ (PtxasError::NotFound | PtxasError::WrongVersion { .. })) => {
                Ok(Self::Missing(e.to_string()))
            }
            Err(e) => Err(Failure::input("bad-ptxas", e.to_string())),
        }
    }

    /// What a kernel needs.
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
            estimate: Estimate::of(kernel, target),
        };
        match self {
            Self::Missing(why) => resources.why = Some(why.clone()),
            Self::Found(ptxas) => {
                let made = ptxas
                    .assemble(&ptx.text, target.name)
                    .map_err(|e| Failure::refused("ptxas-refused", e.to_string()))?;
                resources.source = "ptxas";
                resources.ptxas = Some(ptxas.version.clone());
                resources.entry = made.report.entry(&ptx.entry).cloned();
                resources.advisories = made.report.advisories;
            }
        }
        Ok(resources)
    }
}

impl Resources {
    /// Set where ptxas made another kernel than the one that was asked for.
    pub(crate) fn failure(&self) -> Option<Failure> {
        let bad = self.advisories.iter().find(|a| a.is_error())?;
        let text = format!(
            "ptxas did not make kernel {} as it was written: {} ({})",
            self.kernel, bad.text, bad.code
        );
        Some(Failure::refused("ptxas-advisory", text))
    }
}

impl fmt::Display for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let e = &self.estimate;
        let mut rows = Vec::new();
        if let Some(entry) = &self.entry {
            rows.push((
                "registers",
                format!("{} per thread at entry", entry.registers),
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
        rows.push(("threads", e.threads.to_string()));
        rows.push(("shared", format!("{} bytes, dynamic", e.shared_bytes)));
        rows.push((
            "barriers",
            format!("{barriers}, and {} mbarriers", e.mbarriers),
        ));
        for role in &e.roles {
            rows.push((
                "role",
                format!(
                    "{}: warps {}, about {} of {} registers (our estimate)",
                    role.name, role.warps, role.registers, role.budget
                ),
            ));
        }
        for advisory in &self.advisories {
            rows.push(("advisory", format!("{} ({})", advisory.text, advisory.code)));
        }
        rows.extend(self.why.as_ref().map(|why| ("why", why.clone())));
        let source = match &self.ptxas {
            Some(version) => format!("ptxas {version}"),
            None => "our estimate".into(),
        };
        f.write_str(&report::fields(
            &format!("kernel {}, from {source}", self.kernel),
            &rows,
        ))
    }
}
