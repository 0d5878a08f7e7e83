//! Where the CTA meets at its start, if a role has something to do before.

use super::state::{Width, emit, with};
use crate::loc::Frame;
use crate::ops::control::CtaSync;
use crate::value::RoleId;

/// A meeting that stands in a role's body.
#[derive(Clone, Copy)]
pub(crate) struct Meeting {
    pub(crate) role: RoleId,
    /// Which statement of the role's body it is.
    pub(crate) at: usize,
    pub(crate) frame: Frame,
}

/// The CTA meets here at its start, and not before this role begins.
///
/// Otherwise one thread makes the mbarriers of rings and turns, and all warps
/// meet before any role begins. In a role that calls `meet` the thread that
/// [`elect`](super::elect) chooses makes them and goes on, so that its first
/// copies are under way while the other warps still come; all others use rings
/// only behind the meeting, which the checker sees to. Registers are moved
/// there, too, as that takes a few hundred cycles.
///
/// Once in a kernel; by the whole role, in no loop or branch; and not in a
/// cluster whose CTAs touch each other's shared memory: these meet first.
///
/// ```
/// use warpline_ir::{Kernel, Target, build::*};
///
/// let kernel = Kernel::build("early", &Target::SM_90A, |k| {
///     let (x, y) = (k.pointer::<u32>("x"), k.pointer::<u32>("y"));
///     let ring = k.ring("x", 2, |s| s.vector::<u32>(32));
///     k.role("load").body(|| {
///         let bring = |i: Reg<u32>| {
///             let slot = ring.acquire();
///             slot.load_bytes(slot.tiles(), x.address(i * 32), 128);
///             slot.commit();
///         };
///         elect(|| bring(0u32.reg()));
///         meet();
///         elect(|| range(1u32, 9u32).each(bring));
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
pub fn meet() {
    let frame = Frame::caller();
    let stands = with(|s| {
        let text = match (s.role, &s.meeting) {
            (None, _) => "meet is called in a role's body".to_owned(),
            (Some(_), Some(m)) => {
                let other = Some((m.frame, "the first"));
                let text = "the CTA meets once at its start".to_owned();
                s.error("meet-once", text, frame, other);
                return false;
            }
            (Some(role), None) if s.width == Width::Role && s.blocks.len() == 2 => {
                let at = s.blocks[1].stmts.len();
                s.meeting = Some(Meeting { role, at, frame });
                return true;
            }
            (Some(_), None) => {
                "the whole role meets the others: in no loop, in no branch, and not as one lane"
                    .to_owned()
            }
        };
        s.error("meet-place", text, frame, None);
        false
    });
    if stands {
        emit(CtaSync);
    }
}
