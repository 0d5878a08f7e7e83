//! What went wrong in a run, and where.

use std::fmt;
use warpline_ir::{Awaited, FaultKind, Site, Waits};

/// A run that ended in a fault.
#[derive(Clone, PartialEq, Debug)]
pub struct RunError {
    /// The kind of fault.
    pub kind: FaultKind,
    /// What happened, with the values seen.
    pub text: String,
    /// The thread and the op it was in; `None` for faults of the launch and for deadlocks.
    pub at: Option<Site>,
    /// The lane, where one lane is to blame.
    pub lane: Option<u32>,
    /// The other side of a race or of a missing fence.
    pub other: Option<Site>,
    /// For a deadlock: what each warp waits for.
    pub waits: Vec<Wait>,
}

/// What one warp waits for.
#[derive(Clone, PartialEq, Debug)]
pub struct Wait {
    /// The warp, and the op it is in.
    pub at: Site,
    /// What it waits for.
    pub on: WaitOn,
}

/// The things a warp can wait for.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum WaitOn {
    /// A phase of an mbarrier.
    Mbarrier {
        /// The barrier array.
        name: String,
        /// Which of the array: the stage, in a ring.
        index: u32,
        /// The parity waited for.
        parity: u32,
        /// Arrivals that have not come.
        arrivals: u32,
        /// Bytes that have not come (negative: bytes that nobody expected yet).
        bytes: i64,
    },
    /// The rest of the threads of a named barrier.
    Named {
        /// The barrier.
        name: String,
        /// Threads that have come.
        arrived: u32,
        /// Threads that must come.
        threads: u32,
    },
    /// The rest of the CTA.
    Cta {
        /// Threads that have come.
        arrived: u32,
        /// Threads that must come.
        threads: u32,
    },
    /// The rest of the cluster.
    Cluster {
        /// Warps that have come.
        arrived: u32,
        /// Warps that must come.
        warps: u32,
    },
    /// Bulk groups of one lane.
    BulkGroup {
        /// The lane.
        lane: u32,
        /// Groups that may stay open.
        pending: u32,
    },
    /// Copies that one lane has issued by itself.
    Copies {
        /// The lane.
        lane: u32,
        /// Copies that are not done.
        open: u32,
    },
    /// A wgmma that not all four warps of the warpgroup have issued.
    Wgmma {
        /// Warps of the warpgroup that have issued it.
        issued: u32,
    },
    /// Registers of the CTA's pool.
    Registers {
        /// Registers per thread it wants.
        count: u32,
        /// Registers the warp lacks.
        wanted: u32,
        /// Registers free in the pool.
        free: u32,
    },
    /// A value in memory or a barrier that it asks for again and again.
    Poll,
}

impl WaitOn {
    /// What of it the warp itself knows.
    pub fn awaited(&self) -> Awaited {
        match self {
            WaitOn::Mbarrier {
                name,
                index,
                parity,
                ..
            } => Awaited::Mbarrier {
                name: name.clone(),
                index: *index,
                parity: *parity,
            },
            WaitOn::Named { name, .. } => Awaited::Named { name: name.clone() },
            WaitOn::Cta { .. } => Awaited::Cta,
            WaitOn::Cluster { .. } => Awaited::Cluster,
            WaitOn::BulkGroup { pending, .. } => Awaited::BulkGroup { pending: *pending },
            WaitOn::Copies { .. } => Awaited::Copies,
            WaitOn::Wgmma { .. } => Awaited::Wgmma,
            WaitOn::Registers { count, .. } => Awaited::Registers { count: *count },
            WaitOn::Poll => Awaited::Poll,
        }
    }
}

impl fmt::Display for WaitOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.awaited())?;
        match self {
            WaitOn::Mbarrier {
                arrivals, bytes, ..
            } => match (arrivals, bytes) {
                (1, 0) => write!(f, ": 1 arrival is missing"),
                (a, 0) => write!(f, ": {a} arrivals are missing"),
                (0, b) if *b > 0 => write!(f, ": {b} bytes are missing"),
                (a, b) if *b > 0 => write!(f, ": {a} arrivals and {b} bytes are missing"),
                (a, b) => write!(
                    f,
                    ": {a} arrivals are missing, and {} bytes came that nobody expects",
                    -b
                ),
            },
            WaitOn::Named {
                arrived, threads, ..
            }
            | WaitOn::Cta { arrived, threads } => {
                write!(f, ": {arrived} of {threads} threads have come")
            }
            WaitOn::Cluster { arrived, warps } => {
                write!(f, ": {arrived} of {warps} warps have come")
            }
            WaitOn::BulkGroup { lane, .. } => write!(f, ": lane {lane} has more"),
            WaitOn::Copies { lane, open } => write!(f, ": {open} of lane {lane} are not done"),
            WaitOn::Wgmma { issued } => write!(f, ": {issued} of its 4 warps have issued it"),
            WaitOn::Registers { wanted, free, .. } => {
                write!(f, ": the warp lacks {wanted}, the CTA's pool has {free}")
            }
            WaitOn::Poll => Ok(()),
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.on)
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(at) = &self.at {
            write!(f, "{at}: {}: ", at.op)?;
        }
        if let Some(lane) = self.lane {
            write!(f, "lane {lane} ")?;
        }
        f.write_str(&self.text)?;
        if let Some(other) = &self.other {
            write!(f, " ({} in {other})", other.op)?;
        }
        write!(f, "{}", Waits(&self.waits))
    }
}

impl std::error::Error for RunError {}
