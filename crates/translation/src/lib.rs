//! The translation check: parses printed PTX and compares it with its kernel.
//!
//! The checker proves a [`Kernel`], but the GPU runs a PTX text. [`verify`] closes the gap. A small
//! parser that shares no code with the printer converts the text into *actions* (an mbarrier arrival
//! with its bytes, a wgmma with its shape, a branch with its target). The kernel's statements are
//! converted into actions from the fields of their ops. The two lists must be equal, in order.
//!
//! Compared:
//! - the entry: threads, CTAs per SM, cluster, shared memory, parameters;
//! - every branch and label with its condition: loops, roles, elections;
//! - every op that synchronizes, copies, multiplies or accesses memory, with all modifiers and
//!   operands: barriers and tiles by byte offset, stages and parities by register, constants by
//!   value;
//! - every arithmetic instruction, by the register that it writes and the registers and constants
//!   that it reads.
//!
//! Not compared:
//! - the operator of arithmetic (`add` or `sub`); the op tests run every operator on a GPU;
//! - cache operators and eviction priorities, which do not change results.
//!
//! | module | contents |
//! |---|---|
//! | `ptx` | the parser: converts the statements of a PTX text to actions |
//! | `program` | converts the statements of a kernel to actions |
//! | `value`, `action`, `counts` | actions, their operands, and their number by kind |
//! | `compare`, `mismatch` | the comparison and its messages |

mod action;
mod compare;
mod counts;
mod mismatch;
mod program;
mod ptx;
mod value;

pub use action::ActionKind;
pub use counts::ActionCounts;
pub use mismatch::{Mismatch, Mismatches, PtxLine};

use warpline_check::rules::malformed;
use warpline_ir::Kernel;

/// Checks that a PTX text implements the kernel.
///
/// ```
/// use warpline_check::check;
/// use warpline_ir::{Kernel, Target, builder::*};
/// use warpline_translation::{ActionKind, verify};
///
/// let kernel = Kernel::build("scale", &Target::SM_90A, |k| {
///     let x = k.pointer::<f32>("x");
///     k.role("all").warps(4).body(|| {
///         let i = cta_id() * 128 + thread_id();
///         x.store(i, x.load(i) * 2.0);
///     });
/// })?;
/// let kernel = check(kernel, &Target::SM_90A)?;
/// let ptx = warpline_ptx::print(&kernel, &Target::SM_90A)?;
/// assert_eq!(verify(&kernel, &ptx.text)?.get(ActionKind::Store), 1);
///
/// let broken = ptx.text.replace("st.global", "st.shared");
/// let mismatch = verify(&kernel, &broken).unwrap_err().to_string();
/// assert!(mismatch.contains("space is global in the program but shared::cta in the PTX"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The mismatches, each with its source line and its PTX line where they are known.
pub fn verify(kernel: &Kernel, ptx: &str) -> Result<ActionCounts, Mismatches> {
    let mismatches = |list| Mismatches {
        kernel: kernel.name.clone(),
        list,
    };
    let diagnostics = malformed(kernel);
    if let Some(first) = diagnostics.first() {
        return Err(mismatches(vec![Mismatch {
            text: format!("the program is malformed: {}", first.text),
            at: first.at,
            role: first.role.clone(),
            line: None,
        }]));
    }
    let registers = u32::try_from(kernel.regs.len()).unwrap_or(u32::MAX);
    let parsed = ptx::read(ptx, registers).map_err(|m| mismatches(vec![m]))?;
    let name = program::entry_name(kernel);
    let expected = program::read(kernel, &name);
    let found = compare::compare(kernel, &expected, &parsed);
    if found.is_empty() {
        Ok(ActionCounts::of(parsed.iter().map(|ptx| &ptx.action)))
    } else {
        Err(mismatches(found))
    }
}
