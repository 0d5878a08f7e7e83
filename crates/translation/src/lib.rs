//! Reads printed PTX again, and compares it with the program it was printed from.
//!
//! The checker proves a [`Kernel`]; a GPU runs a text. [`verify`] stands
//! between them: a small reader that shares nothing with the printer turns the
//! text into *acts* (an arrival at this barrier with that many bytes, a
//! product of that shape, a branch over that many labels), the program's
//! statements are turned into acts from the fields of their ops, and the two
//! lists must be the same, act by act, in order.
//!
//! What is compared:
//! - the entry: threads, CTAs per SM, cluster, shared memory, parameters;
//! - every branch and label with its condition: loops, roles, elections;
//! - every op that synchronises, copies, multiplies or accesses memory, with
//!   all its modifiers and operands: barriers and tiles by their byte, stages
//!   and parities by their register, constants by value;
//! - of arithmetic, which register is set, and which registers and constants
//!   it is worked out from.
//!
//! What is not: the operator of arithmetic (`add` for `sub`), which the tests
//! of the ops hold against a GPU, and hints to caches, which have no meaning.
//!
//! | where | what |
//! |---|---|
//! | `ptx` | statements, registers and instructions of a text, as acts |
//! | `program` | statements and ops of a kernel, as acts |
//! | `value`, `act` | what both are reduced to |
//! | `compare`, `mismatch` | where they differ, in words |

mod act;
mod compare;
mod counts;
mod mismatch;
mod program;
mod ptx;
mod value;

pub use act::Kind;
pub use counts::Counts;
pub use mismatch::{Mismatch, Mismatches, PtxLine};

use warpline_check::rules::unreadable;
use warpline_ir::Kernel;

/// Does a PTX text say what the program says?
///
/// ```
/// use warpline_check::check;
/// use warpline_ir::{Kernel, Target, build::*};
/// use warpline_translation::{Kind, verify};
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
/// assert_eq!(verify(&kernel, &ptx.text)?.get(Kind::Store), 1);
///
/// let broken = ptx.text.replace("st.global", "st.shared");
/// let refused = verify(&kernel, &broken).unwrap_err().to_string();
/// assert!(refused.contains("space is global in the program and shared::cta in the PTX"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Everything on which they differ, each with the program's line and the
/// line of the text.
pub fn verify(kernel: &Kernel, ptx: &str) -> Result<Counts, Mismatches> {
    let refuse = |list| Mismatches {
        kernel: kernel.name.clone(),
        list,
    };
    let broken = unreadable(kernel);
    if let Some(first) = broken.first() {
        return Err(refuse(vec![Mismatch {
            text: format!("the program cannot be read: {}", first.text),
            at: first.at,
            role: first.role.clone(),
            line: None,
        }]));
    }
    let registers = u32::try_from(kernel.regs.len()).unwrap_or(u32::MAX);
    let said = ptx::read(ptx, registers).map_err(|m| refuse(vec![m]))?;
    let name = program::name(kernel);
    let meant = program::read(kernel, &name);
    let found = compare::compare(kernel, &meant, &said);
    if found.is_empty() {
        Ok(Counts::of(said.iter().map(|s| &s.act)))
    } else {
        Err(refuse(found))
    }
}
