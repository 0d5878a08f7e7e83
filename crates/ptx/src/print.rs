//! Prints the module: header, entry, roles.

use crate::asm::{SHARED, SHARED_16, Writer, map_register};
use crate::flow::Flow;
use crate::names::{Names, comment, sanitize};
use crate::params;
use std::fmt::Write;
use warpline_check::rules::malformed;
use warpline_check::{Checked, Diagnostics, Uniformity};
use warpline_ir::{Kernel, Role, StmtKind, Target};

/// The symbol of the dynamic shared memory.
const SHARED_SYMBOL: &str = "smem";
/// The register with the warp index, uniform in the warp.
const WARP_INDEX: &str = "%warp";
/// The label after all roles.
const ROLES_END: &str = "$roles_end";

/// A kernel as PTX.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ptx {
    /// The text of the module.
    pub text: String,
    /// The name of the entry.
    pub entry: String,
    /// The dynamic shared memory of a launch, in bytes.
    pub shared_bytes: u32,
    /// Threads of a CTA.
    pub threads: u32,
    /// CTAs of a cluster, by axis.
    pub cluster: [u32; 3],
    /// The required PTX version.
    pub version: (u32, u32),
    /// The target, as in `-arch`.
    pub target: &'static str,
}

/// An error of the printer.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PtxError {
    /// The kernel was checked for another target.
    #[error("kernel {kernel} was checked for {checked} and cannot be printed for {requested}")]
    OtherTarget {
        /// The kernel's name.
        kernel: String,
        /// The target of the check.
        checked: &'static str,
        /// The requested target.
        requested: &'static str,
    },
    /// The kernel is unproved and has invalid references.
    #[error("cannot print an unproved kernel with invalid references: {0}")]
    InvalidReferences(Diagnostics),
}

impl PtxError {
    /// Returns a stable code for tools.
    pub fn code(&self) -> &'static str {
        match self {
            PtxError::OtherTarget { .. } => "ptx-target",
            PtxError::InvalidReferences(_) => "ptx-invalid-references",
        }
    }
}

/// Prints a kernel for a target.
///
/// ```
/// use warpline_check::check;
/// use warpline_ir::{Kernel, Target, builder::*};
///
/// let kernel = Kernel::build("scale", &Target::SM_90A, |k| {
///     let x = k.pointer::<f32>("x");
///     k.role("all").warps(4).body(|| {
///         let i = cta_id() * 128 + thread_id();
///         x.store(i, x.load(i) * 2.0);
///     });
/// })?;
/// let ptx = warpline_ptx::print(&check(kernel, &Target::SM_90A)?, &Target::SM_90A)?;
/// assert!(ptx.text.contains(".visible .entry scale("));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The kernel was checked for another target, or is unproved with invalid references.
pub fn print(kernel: &Checked, target: &Target) -> Result<Ptx, PtxError> {
    match kernel.target() {
        Some(checked) if checked == target => {}
        Some(checked) => {
            return Err(PtxError::OtherTarget {
                kernel: kernel.name.clone(),
                checked: checked.name,
                requested: target.name,
            });
        }
        None => {
            let diagnostics = malformed(kernel);
            if !diagnostics.is_empty() {
                return Err(PtxError::InvalidReferences(Diagnostics {
                    kernel: kernel.name.clone(),
                    diagnostics,
                }));
            }
        }
    }
    let mut names = Names::default();
    names.unique(SHARED_SYMBOL.to_owned());
    let entry = names.unique(sanitize(&kernel.name));
    let version = version(kernel);
    let params = params::names(&kernel.params);
    let body = Body::print(kernel, &params);

    let mut text = String::new();
    header(&mut text, kernel, target, version);
    text.push_str(&body.files);
    if kernel.shared_bytes > 0 {
        let align = kernel.shared_align();
        let _ = writeln!(
            text,
            "\n.extern .shared .align {align} .b8 {SHARED_SYMBOL}[];"
        );
    }
    signature(&mut text, kernel, &entry, &params);
    text.push_str("{\n");
    text.push_str(&body.registers);
    text.push_str(&body.setup);
    text.push_str(&body.code);
    text.push_str("}\n");
    Ok(Ptx {
        text,
        entry,
        shared_bytes: kernel.shared_bytes,
        threads: kernel.threads(),
        cluster: kernel.cluster,
        version,
        target: target.name,
    })
}

/// Returns the lowest PTX version that has every op of the kernel.
fn version(kernel: &Kernel) -> (u32, u32) {
    let mut version = (8, 0);
    kernel.each_stmt(&mut |_, s| {
        if let StmtKind::Op(op) = &s.kind {
            version = version.max(op.ptx_version());
        }
    });
    version
}

fn header(text: &mut String, kernel: &Checked, target: &Target, (major, minor): (u32, u32)) {
    let _ = writeln!(text, "// {}", comment(&kernel.to_string()));
    if !kernel.tiles.is_empty() || !kernel.barriers.is_empty() {
        let _ = writeln!(text, "// shared memory, {} bytes:", kernel.shared_bytes);
    }
    for t in &kernel.tiles {
        let l = &t.layout;
        let _ = writeln!(
            text,
            "//   {:>6}  {}: {} {}x{}, {}, stages {}",
            t.offset,
            comment(&t.name),
            t.dtype,
            l.rows,
            l.cols,
            l.swizzle,
            t.stages
        );
    }
    for b in &kernel.barriers {
        let _ = writeln!(
            text,
            "//   {:>6}  {}: mbarriers {}",
            b.offset,
            comment(&b.name),
            b.len
        );
    }
    let _ = writeln!(text, ".version {major}.{minor}");
    let _ = writeln!(text, ".target {}", target.name);
    let _ = writeln!(text, ".address_size 64");
}

fn signature(text: &mut String, kernel: &Kernel, entry: &str, params: &[String]) {
    let list: Vec<_> = kernel
        .params
        .iter()
        .zip(params)
        .map(|(p, name)| format!("\n    {}", params::declaration(p, name)))
        .collect();
    let closing_newline = if list.is_empty() { "" } else { "\n" };
    let _ = writeln!(
        text,
        "\n.visible .entry {entry}({}{closing_newline})",
        list.join(",")
    );
    // Without `.minnctapersm` ptxas ignores setmaxnreg.
    let _ = writeln!(text, ".maxntid {}, 1, 1", kernel.threads());
    let _ = writeln!(text, ".minnctapersm 1");
    if kernel.cluster_size() > 1 {
        let [x, y, z] = kernel.cluster;
        let _ = writeln!(text, ".explicitcluster");
        let _ = writeln!(text, ".reqnctapercluster {x}, {y}, {z}");
    }
}

/// The parts of an entry.
struct Body {
    files: String,
    registers: String,
    setup: String,
    code: String,
}

impl Body {
    fn print(kernel: &Kernel, params: &[String]) -> Self {
        let uniformity = Uniformity::of(kernel);
        let mut asm = Writer::new(kernel, params);
        let mut flow = Flow {
            asm: &mut asm,
            uniformity: &uniformity,
            elected: false,
        };
        flow.block(&kernel.prologue);
        roles(&mut flow, &kernel.roles);
        flow.block(&kernel.epilogue);
        asm.instruction("ret");

        let entry_values = &asm.entry_values;
        let maps = entry_values.maps.iter().map(|p| params[p.index()].as_str());
        let dispatch = kernel.roles.len() > 1;
        let word_registers = [
            (dispatch, WARP_INDEX),
            (entry_values.shared, SHARED),
            (entry_values.shared_16, SHARED_16),
        ];
        let mut registers = String::new();
        let n = asm.register_count().max(1);
        for (class, prefix) in [("pred", 'p'), ("b16", 'h'), ("b32", 'r'), ("b64", 'd')] {
            let _ = writeln!(registers, "    .reg .{class} %{prefix}<{n}>;");
        }
        for (_, name) in word_registers.into_iter().filter(|(used, _)| *used) {
            let _ = writeln!(registers, "    .reg .b32 {name};");
        }
        let mut setup = String::new();
        if entry_values.shared {
            let _ = writeln!(setup, "    mov.b32 {SHARED}, {SHARED_SYMBOL};");
        }
        if entry_values.shared_16 {
            // In a cluster, bits 24 and up of a shared address are the rank of the CTA. A descriptor has
            // 14 bits of the address; further bits would change its leading byte offset.
            let _ = writeln!(setup, "    bfe.u32 {SHARED_16}, {SHARED}, 4, 14;");
        }
        for name in maps {
            let map = map_register(name);
            let _ = writeln!(registers, "    .reg .b64 {map};");
            let _ = writeln!(setup, "    mov.b64 {map}, {name};");
            let _ = writeln!(setup, "    cvta.param.u64 {map}, {map};");
        }
        registers.push('\n');
        Self {
            files: asm.line_table.files(),
            registers,
            setup,
            code: asm.text,
        }
    }
}

/// Prints the roles in order; each warp branches to its role.
fn roles<'k>(flow: &mut Flow<'_, 'k>, roles: &'k [Role]) {
    let mut names = Names::default();
    let labels: Vec<_> = roles
        .iter()
        .map(|r| names.unique(format!("$role_{}", sanitize(&r.name))))
        .collect();
    if roles.len() > 1 {
        // The shuffle makes the index uniform for ptxas.
        flow.asm
            .instruction(&format!("mov.u32 {WARP_INDEX}, %tid.x"));
        flow.asm
            .instruction(&format!("shr.u32 {WARP_INDEX}, {WARP_INDEX}, 5"));
        flow.asm.instruction(&format!(
            "shfl.sync.idx.b32 {WARP_INDEX}, {WARP_INDEX}, 0, 31, 0xffffffff"
        ));
    }
    for (i, role) in roles.iter().enumerate() {
        if i > 0 {
            flow.asm.place_label(&labels[i]);
        }
        let end = role.first_warp + role.warps;
        let name = comment(&role.name);
        flow.asm.line(&format!(
            "// role {name}: warps {} to {}",
            role.first_warp,
            end.saturating_sub(1)
        ));
        if let Some(next) = labels.get(i + 1) {
            let is_later_role = warpline_ir::Asm::temp(flow.asm, warpline_ir::Type::Pred);
            flow.asm
                .instruction(&format!("setp.ge.u32 {is_later_role}, {WARP_INDEX}, {end}"));
            flow.asm
                .instruction(&format!("@{is_later_role} bra.uni {next}"));
        }
        flow.block(&role.body);
        if i + 1 < roles.len() {
            flow.asm.instruction(&format!("bra.uni {ROLES_END}"));
        }
    }
    if roles.len() > 1 {
        flow.asm.place_label(ROLES_END);
    }
}
