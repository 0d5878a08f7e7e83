//! Watched kernels.

use crate::emit::Emitter;
use crate::exit::{PendingOps, single_barrier};
use crate::named::{ReplacedBarrier, replaceable};
use crate::pass::Pass;
use crate::site::WaitSite;
use crate::status::StatusTable;
use crate::watchdog::{TimeLimits, Watchdog};
use warpline_check::Uniformity;
use warpline_ir::ops::compare::Cmp;
use warpline_ir::ops::control::CtaSync;
use warpline_ir::ops::mbarrier::MbarrierInit;
use warpline_ir::ops::memory::Fence;
use warpline_ir::{
    BarId, Barrier, Block, DType, FenceKind, Kernel, Loc, NamedId, Operand, Param, ParamId,
    ParamKind, RoleId, Special, Type,
};

/// A kernel with a watchdog, and the table of its waits.
#[derive(Clone, Debug)]
pub struct WatchedKernel {
    /// The original kernel with two additional parameters at the end: the address of the status
    /// table ([`WatchedKernel::status_bytes`]) in memory that the host can read while the kernel
    /// runs, and the address of the abort word ([`WatchedKernel::ABORT_BYTES`]) in device memory.
    /// Both must be zero at launch.
    pub kernel: Kernel,
    pub(crate) sites: Vec<WaitSite>,
}

impl WatchedKernel {
    /// Bytes of the abort word.
    pub const ABORT_BYTES: usize = 4;
}

/// The error for a kernel with too many waits.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("kernel {kernel} has {waits} waits; the watchdog supports at most {MAX_SITES}")]
pub struct TooManyWaits {
    kernel: String,
    waits: usize,
}

/// The number of waits that a status word can distinguish.
const MAX_SITES: usize = 1 << 16;

/// Adds a watchdog to a kernel.
///
/// The watched kernel computes the same result. When a wait for an mbarrier, a flag or a named
/// barrier exceeds its limit, the warp records the wait, sets the abort word and exits. Before a
/// wait without a timeout, the warp records the wait.
///
/// ```
/// use warpline_ir::{Kernel, Target, builder::*};
/// use warpline_watchdog::{TimeLimits, watch};
///
/// let kernel = Kernel::build("stuck", &Target::SM_90A, |k| {
///     let full = k.barrier("full", 1).arrivals(1);
///     k.role("use").warps(2).body(|| full.at(0u32).wait(0u32));
/// })?;
/// let watched = watch(&kernel, &TimeLimits::default())?;
/// let params: Vec<_> = watched.kernel.params.iter().map(|p| &p.name[..]).collect();
/// assert_eq!(params, ["watch.status", "watch.abort"]);
///
/// // Warp 0 is done; warp 1 timed out in wait 1.
/// let status = [3, 2 | 1 << 16];
/// let hang = watched.read_hang(&status, [1, 1, 1]).to_string();
/// assert!(hang.starts_with("deadlock: 1 warp waits\n  use, warp 1, CTA (0,0,0), "));
/// assert!(hang.ends_with(": waits for full[0], parity 0"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn watch(kernel: &Kernel, limits: &TimeLimits) -> Result<WatchedKernel, TooManyWaits> {
    let uniformity = Uniformity::of(kernel);
    let mut watched = kernel.clone();
    let no_loc = watched.locs.intern(&[]);
    let [status, abort] = [(PARAM_NAMES[0], DType::U64), (PARAM_NAMES[1], DType::U32)]
        .map(|(name, dtype)| add_pointer_param(&mut watched, name, dtype, no_loc));
    let (exit_barrier, replaced) = add_barriers(&mut watched, no_loc);
    let watchdog = Watchdog {
        status: StatusTable {
            param: status,
            warps: kernel.warps(),
        },
        abort,
        exit_barrier,
        limits: *limits,
    };
    let regs = std::mem::take(&mut watched.regs);
    let mut pass = Pass::new(watchdog, &uniformity, regs, replaced);
    let pending: Vec<_> = kernel
        .roles
        .iter()
        .map(|r| PendingOps::in_body(&r.body))
        .collect();
    // Prologue and epilogue issue no asynchronous operations.
    let no_ops = PendingOps::default();
    let prologue = pass.body(&kernel.prologue, None, no_ops);
    for (i, role) in kernel.roles.iter().enumerate() {
        let id = Some(RoleId(i as u32));
        watched.roles[i].body = pass.body(&role.body, id, pending[i]);
    }
    let epilogue = pass.body(&kernel.epilogue, None, no_ops);
    if pass.sites.len() > MAX_SITES {
        return Err(TooManyWaits {
            kernel: kernel.name.clone(),
            waits: pass.sites.len(),
        });
    }
    watched.prologue = add_prologue(&mut pass, prologue, no_loc);
    watched.epilogue = add_epilogue(&mut pass, epilogue, no_loc);
    watched.regs = pass.regs;
    Ok(WatchedKernel {
        kernel: watched,
        sites: pass.sites,
    })
}

/// The names of the additional parameters: the status table and the abort word.
const PARAM_NAMES: [&str; 2] = ["watch.status", "watch.abort"];

impl WatchedKernel {
    /// Returns the names of the additional parameters: the status table (u64) and the abort word
    /// (u32).
    pub fn params(&self) -> [&'static str; 2] {
        PARAM_NAMES
    }
}

/// Adds a pointer parameter.
fn add_pointer_param(kernel: &mut Kernel, name: &str, dtype: DType, loc: Loc) -> ParamId {
    let kind = ParamKind::Pointer(dtype);
    kernel.params.push(Param::new(name, kind, loc));
    ParamId(kernel.params.len() as u32 - 1)
}

/// Adds the mbarriers of the watchdog: the exit barrier, and one for each replaceable named
/// barrier. Adds none if shared memory is full.
fn add_barriers(kernel: &mut Kernel, loc: Loc) -> (Option<BarId>, Vec<ReplacedBarrier>) {
    let candidates = replaceable(kernel);
    let start = kernel.shared_bytes.next_multiple_of(8);
    let end = start + 8 * (1 + candidates.len() as u32);
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
    let exit_barrier = add(kernel, "watch.exit".to_owned(), loc);
    let mut replace = |(named, warps): (NamedId, u32)| {
        let n = kernel.named(named);
        let (name, loc) = (n.name.clone(), n.loc);
        let bar = add(kernel, name, loc);
        ReplacedBarrier { named, bar, warps }
    };
    let replaced = candidates.into_iter().map(&mut replace).collect();
    (Some(exit_barrier), replaced)
}

/// Prepends the initialization of the mbarriers by one thread, and a CTA barrier.
fn add_prologue(pass: &mut Pass<'_>, prologue: Block, loc: Loc) -> Block {
    let exit = pass
        .watchdog
        .exit_barrier
        .map(|bar| (bar, pass.watchdog.status.warps));
    let inits: Vec<_> = exit
        .into_iter()
        .chain(
            pass.replaced
                .iter()
                .map(|replaced| (replaced.bar, replaced.warps)),
        )
        .collect();
    let mut e = Emitter::new(&mut pass.regs, None, loc);
    if !inits.is_empty() {
        let tid = e.special(Special::Tid);
        let first = e.compare(Cmp::Eq, Type::U32, tid, Operand::Imm(0));
        e.if_(first, |e| {
            for (bar, count) in inits {
                let bar = single_barrier(bar);
                e.op(MbarrierInit { bar, count });
            }
            let fence = FenceKind::MbarrierInit;
            e.op(Fence { kind: fence });
        });
        e.op(CtaSync);
    }
    e.append(prologue.0);
    Block(e.finish())
}

/// Appends the status write of a finished warp.
fn add_epilogue(pass: &mut Pass<'_>, epilogue: Block, loc: Loc) -> Block {
    let watchdog = pass.watchdog;
    let mut e = Emitter::new(&mut pass.regs, None, loc);
    e.append(epilogue.0);
    watchdog.finish_warp(&mut e);
    Block(e.finish())
}
