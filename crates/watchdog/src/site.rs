//! Sites: the waits of a kernel, numbered, and what each waits for.

use crate::note::Note;
use warpline_ir::{Awaited, BarId, Kernel, Loc, NamedId, Op, Site, Sync};

/// A wait of the kernel as it was written.
#[derive(Clone, Debug)]
pub(crate) struct WaitSite {
    /// The op's name.
    pub(crate) op: String,
    pub(crate) loc: Loc,
    pub(crate) what: What,
}

/// What a site waits for; barrier and parity are in the note.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum What {
    Mbarrier(BarId),
    Named(NamedId),
    Cta,
    Cluster,
    BulkGroup { pending: u32 },
    Copies,
    Wgmma,
    Registers { count: u32 },
    Poll,
}

impl What {
    /// Is it a meeting of warps, which goes on once those who are missing have left?
    pub(crate) fn is_meeting(self) -> bool {
        matches!(self, What::Named(_) | What::Cta | What::Cluster)
    }

    /// What an act waits for, if it waits.
    pub(crate) fn of(s: &Sync) -> Option<Self> {
        Some(match *s {
            Sync::Wait { bar, .. } => What::Mbarrier(bar.bar),
            Sync::NamedSync { bar, .. } | Sync::NamedTally { bar, .. } => What::Named(bar),
            Sync::Cta => What::Cta,
            Sync::ClusterWait => What::Cluster,
            Sync::BulkWait { pending, .. } => What::BulkGroup { pending },
            Sync::CopyWait { .. } => What::Copies,
            Sync::WgmmaWait { .. } => What::Wgmma,
            Sync::SetMaxRegs { count, grow: true } => What::Registers { count },
            _ => return None,
        })
    }
}

impl WaitSite {
    pub(crate) fn new(op: &Op, loc: Loc, what: What) -> Self {
        let op = op.name();
        Self { op, loc, what }
    }

    /// What a note says of this site.
    pub(crate) fn awaited(&self, kernel: &Kernel, note: &Note) -> Awaited {
        match self.what {
            What::Mbarrier(bar) => Awaited::Mbarrier {
                name: kernel.barrier(bar).name.clone(),
                index: note.index,
                parity: note.parity,
            },
            What::Named(named) => Awaited::Named {
                name: kernel.named(named).name.clone(),
            },
            What::Cta => Awaited::Cta,
            What::Cluster => Awaited::Cluster,
            What::BulkGroup { pending } => Awaited::BulkGroup { pending },
            What::Copies => Awaited::Copies,
            What::Wgmma => Awaited::Wgmma,
            What::Registers { count } => Awaited::Registers { count },
            What::Poll => Awaited::Poll,
        }
    }

    /// This site as a warp of a CTA runs it.
    pub(crate) fn at(&self, kernel: &Kernel, cta: [u32; 3], warp: u32) -> Site {
        Site {
            role: kernel.roles[kernel.role_of_warp(warp).index()].name.clone(),
            warp,
            cta,
            op: self.op.clone(),
            frame: kernel.locs.author(self.loc),
            stack: kernel.locs.stack(self.loc).to_vec(),
        }
    }
}
