//! A kernel and its watched form.

use crate::emit::Emit;
use crate::gear::{Gear, Limits};
use crate::leave::{Drains, only};
use crate::named::{Turned, turnable};
use crate::note::Notes;
use crate::pass::Pass;
use crate::site::WaitSite;
use warpline_check::Uniformity;
use warpline_ir::ops::compare::Cmp;
use warpline_ir::ops::control::CtaSync;
use warpline_ir::ops::mbarrier::MbarrierInit;
use warpline_ir::ops::memory::Fence as FenceOp;
use warpline_ir::{
    BarId, Barrier, Block, DType, Fence, Kernel, Loc, NamedId, Operand, Param, ParamId, ParamKind,
    RoleId, Special, Type,
};

/// A kernel whose waits end, and what is needed to read its notes.
#[derive(Clone, Debug)]
pub struct Watched {
    /// The kernel: the one it was made from, with two parameters more at the
    /// end. The first is the address of the notes ([`Watched::notes_bytes`]),
    /// in memory that the host can read while the kernel runs; the second the
    /// address of the abort word ([`Watched::ABORT_BYTES`]), on the device.
    /// Both are zero at launch.
    pub kernel: Kernel,
    pub(crate) sites: Vec<WaitSite>,
}

impl Watched {
    /// Bytes of the abort word.
    pub const ABORT_BYTES: usize = 4;
}

/// A kernel that cannot be watched.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("kernel {kernel} has {waits} waits; a note names one of up to {MOST_SITES}")]
pub struct TooManyWaits {
    kernel: String,
    waits: usize,
}

/// Sites that a note can name.
const MOST_SITES: usize = 1 << 16;

/// Makes the watched form of a kernel.
///
/// It computes the same. A wait for an mbarrier, a flag or a named barrier
/// that takes longer than the limits allow is given up: the warp notes what it
/// waited for, tells the others, and leaves. Before a wait that cannot be
/// given up, the warp notes that it is in it.
///
/// ```
/// use warpline_ir::{Kernel, Target, build::*};
/// use warpline_watchdog::{Limits, watch};
///
/// let kernel = Kernel::build("stuck", &Target::SM_90A, |k| {
///     let full = k.barrier("full", 1).count(1);
///     k.role("use").warps(2).body(|| full.at(0u32).wait(0u32));
/// })?;
/// let watched = watch(&kernel, &Limits::default())?;
/// let more: Vec<_> = watched.kernel.params.iter().map(|p| &p.name[..]).collect();
/// assert_eq!(more, ["watch.notes", "watch.abort"]);
///
/// // Notes as the second warp of the only CTA leaves them.
/// let notes = [3, 2 | 1 << 16];
/// let hang = watched.hang(&notes, [1, 1, 1]).to_string();
/// assert!(hang.starts_with("nothing can go on: 1 warp waits\n  use, warp 1, CTA (0,0,0), "));
/// assert!(hang.ends_with(": waits for full[0], parity 0"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn watch(kernel: &Kernel, limits: &Limits) -> Result<Watched, TooManyWaits> {
    let uniformity = Uniformity::of(kernel);
    let mut watched = kernel.clone();
    let nowhere = watched.locs.intern(Vec::new());
    let [notes, abort] = [(PARAMS[0], DType::U64), (PARAMS[1], DType::U32)]
        .map(|(name, dtype)| declare(&mut watched, name, dtype, nowhere));
    let (left, turned) = barriers(&mut watched, nowhere);
    let gear = Gear {
        notes: Notes {
            param: notes,
            warps: kernel.warps(),
        },
        abort,
        left,
        limits: *limits,
    };
    let regs = std::mem::take(&mut watched.regs);
    let mut pass = Pass::new(gear, &uniformity, regs, turned);
    let drains: Vec<_> = kernel.roles.iter().map(|r| Drains::of(&r.body)).collect();
    // What all roles share has nothing of its own in flight.
    let none = Drains::default();
    let prologue = pass.body(&kernel.prologue, None, none);
    for (i, role) in kernel.roles.iter().enumerate() {
        let id = Some(RoleId(i as u32));
        watched.roles[i].body = pass.body(&role.body, id, drains[i]);
    }
    let epilogue = pass.body(&kernel.epilogue, None, none);
    if pass.sites.len() > MOST_SITES {
        return Err(TooManyWaits {
            kernel: kernel.name.clone(),
            waits: pass.sites.len(),
        });
    }
    watched.prologue = begin(&mut pass, prologue, nowhere);
    watched.epilogue = end(&mut pass, epilogue, nowhere);
    watched.regs = pass.regs;
    Ok(Watched {
        kernel: watched,
        sites: pass.sites,
    })
}

/// The parameters that a watched kernel has beside its own: notes, and a word that ends all waits.
const PARAMS: [&str; 2] = ["watch.notes", "watch.abort"];

impl Watched {
    /// The names of the parameters that it has beside the kernel's own: the notes (u64), and the
    /// word (u32) that ends all waits.
    pub fn params(&self) -> [&'static str; 2] {
        PARAMS
    }
}

/// Adds a parameter.
fn declare(kernel: &mut Kernel, name: &str, dtype: DType, loc: Loc) -> ParamId {
    let kind = ParamKind::Pointer(dtype);
    kernel.params.push(Param::new(name, kind, loc));
    ParamId(kernel.params.len() as u32 - 1)
}

/// Adds the mbarriers of the watchdog: one for those who leave, and one for
/// each named barrier that can be turned. A kernel without room gets none.
fn barriers(kernel: &mut Kernel, loc: Loc) -> (Option<BarId>, Vec<Turned>) {
    let turn = turnable(kernel);
    let start = kernel.shared_bytes.next_multiple_of(8);
    let end = start + 8 * (1 + turn.len() as u32);
    if end > kernel.target.shared_bytes {
        return (None, Vec::new());
    }
    kernel.shared_bytes = end;
    let mut offset = start;
    let mut add = |kernel: &mut Kernel, name: String, loc: Loc| {
        let len = 1;
        kernel.barriers.push(Barrier {
            name,
            len,
            offset,
            loc,
        });
        offset += 8;
        BarId(kernel.barriers.len() as u32 - 1)
    };
    let left = add(kernel, "watch.left".to_owned(), loc);
    let mut turned = |(named, warps): (NamedId, u32)| {
        let n = kernel.named(named);
        let (name, loc) = (n.name.clone(), n.loc);
        let bar = add(kernel, name, loc);
        Turned { named, bar, warps }
    };
    let turned = turn.into_iter().map(&mut turned).collect();
    (Some(left), turned)
}

/// One thread makes the mbarriers, and the CTA meets, before all else.
fn begin(pass: &mut Pass<'_>, prologue: Block, loc: Loc) -> Block {
    let left = pass.gear.left.map(|bar| (bar, pass.gear.notes.warps));
    let inits: Vec<_> = left
        .into_iter()
        .chain(pass.turned.iter().map(|t| (t.bar, t.warps)))
        .collect();
    let mut e = Emit::new(&mut pass.regs, None, loc);
    if !inits.is_empty() {
        let tid = e.special(Special::Tid);
        let first = e.compare(Cmp::Eq, Type::U32, tid, Operand::Imm(0));
        e.if_(first, |e| {
            for (bar, count) in inits {
                let bar = only(bar);
                e.op(MbarrierInit { bar, count });
            }
            let fence = Fence::MbarrierInit;
            e.op(FenceOp { fence });
        });
        e.op(CtaSync);
    }
    e.append(prologue.0);
    Block(e.finish())
}

/// Each warp says that it has come to its end.
fn end(pass: &mut Pass<'_>, epilogue: Block, loc: Loc) -> Block {
    let gear = pass.gear;
    let mut e = Emit::new(&mut pass.regs, None, loc);
    e.append(epilogue.0);
    gear.done(&mut e);
    Block(e.finish())
}
