//! The prologue barrier: the CTA barrier at kernel start, placed inside one role, so that this role
//! may issue loads before it.

use super::state::{ActiveThreads, emit, with};
use crate::loc::Frame;
use crate::ops::control::CtaSync;
use crate::value::RoleId;

/// A prologue barrier inside a role's body.
#[derive(Clone, Copy)]
pub(crate) struct PrologueBarrier {
    pub(crate) role: RoleId,
    /// The index of its statement in the role's body.
    pub(crate) index: usize,
    pub(crate) frame: Frame,
}

/// Places the CTA barrier of the kernel start here, instead of before all roles.
///
/// Without this call one thread initializes the mbarriers, and all warps pass a CTA
/// barrier before any role begins. In the role that calls it, the
/// [elected](super::elect) thread initializes the mbarriers and may issue its first
/// loads before the barrier, while other warps still start. All other roles wait at the
/// barrier before their bodies begin; the checker proves that no role uses an
/// uninitialized mbarrier.
/// `setmaxnreg`, which takes a few hundred cycles, comes after the barrier.
///
/// Call it at most once per kernel, by the whole role, outside of loops and branches.
/// Kernels whose CTAs access each other's shared memory start with a cluster barrier and
/// cannot use it.
///
/// ```
/// use warpline_ir::{Kernel, Target, builder::*};
///
/// let kernel = Kernel::build("early", &Target::SM_90A, |k| {
///     let (x, y) = (k.pointer::<u32>("x"), k.pointer::<u32>("y"));
///     let ring = k.ring("x", 2, |s| s.vector::<u32>(32));
///     k.role("load").body(|| {
///         let load = |i: Reg<u32>| {
///             let slot = ring.acquire();
///             slot.load_bytes(slot.tiles(), x.address(i * 32), 128);
///             slot.commit();
///         };
///         elect(|| load(0u32.reg()));
///         prologue_barrier();
///         elect(|| range(1u32, 9u32).each(load));
///     });
///     k.role("store").body(|| {
///         steps(9u32).each(|i| {
///             let slot = ring.wait();
///             y.store(i * 32 + lane_id(), slot.load(0u32, lane_id()));
///             slot.release();
///         });
///     });
/// })?;
/// # Ok::<(), warpline_ir::BuildErrors>(())
/// ```
#[track_caller]
pub fn prologue_barrier() {
    let frame = Frame::caller();
    let is_placed = with(|s| {
        let text = match (s.role, &s.prologue_barrier) {
            (None, _) => "prologue_barrier() is called outside of a role body".to_owned(),
            (Some(_), Some(first)) => {
                let other = Some((first.frame, "first call"));
                let text = "a kernel has two prologue barriers; one is allowed".to_owned();
                s.error("prologue-barrier-once", text, frame, other);
                return false;
            }
            (Some(role), None) if s.active == ActiveThreads::Role && s.blocks.len() == 2 => {
                let index = s.blocks[1].stmts.len();
                s.prologue_barrier = Some(PrologueBarrier { role, index, frame });
                return true;
            }
            (Some(_), None) => {
                "prologue_barrier() is inside a loop, a branch or elect; call it at the top level of the role body"
                    .to_owned()
            }
        };
        s.error("prologue-barrier-place", text, frame, None);
        false
    });
    if is_placed {
        emit(CtaSync);
    }
}
