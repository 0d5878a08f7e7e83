//! Errors of a run: the fault, its class, and its location.

use std::fmt;
use warpline_ir::{FaultKind, OpLocation, WaitList, WaitReason};

/// The start of the text of an arrival count mismatch.
pub(crate) const TOO_MANY_ARRIVALS: &str = "arrives too often";

/// A run that ended in a fault.
#[derive(Clone, PartialEq, Debug)]
pub struct RunError {
    /// The kind of fault.
    pub kind: FaultKind,
    /// The action of the op with its values, and the broken rule.
    pub text: String,
    /// The warp and op of the fault; `None` for faults of the launch and for deadlocks.
    pub at: Option<OpLocation>,
    /// The faulting lane, if it is a single one.
    pub lane: Option<u32>,
    /// The other access of a race or of a missing fence.
    pub other: Option<OpLocation>,
    /// The kind of a race between two accesses.
    pub race: Option<RaceKind>,
    /// The change that usually fixes the fault.
    pub help: Option<&'static str>,
    /// For a deadlock: the blocked warps.
    pub waits: Vec<BlockedWarp>,
}

/// The kind of a race: the later access, and the earlier one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RaceKind {
    /// A read without order after a write.
    ReadAfterWrite,
    /// A write without order after a read.
    WriteAfterRead,
    /// A write without order after a write.
    WriteAfterWrite,
}

impl RaceKind {
    /// Returns the kind of a race; `other_writes` is the earlier access.
    pub(crate) fn of(writes: bool, other_writes: bool) -> Self {
        match (writes, other_writes) {
            (false, _) => Self::ReadAfterWrite,
            (true, false) => Self::WriteAfterRead,
            (true, true) => Self::WriteAfterWrite,
        }
    }
}

impl fmt::Display for RaceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReadAfterWrite => "read-after-write race",
            Self::WriteAfterRead => "write-after-read race",
            Self::WriteAfterWrite => "write-after-write race",
        })
    }
}

/// A blocked warp.
#[derive(Clone, PartialEq, Debug)]
pub struct BlockedWarp {
    /// The warp and its op.
    pub at: OpLocation,
    /// The condition that it waits for.
    pub on: BlockedOn,
}

/// The condition that a blocked warp waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum BlockedOn {
    /// A phase of an mbarrier.
    Mbarrier {
        /// The barrier array.
        name: String,
        /// The index in the array: the stage of a ring.
        index: u32,
        /// The parity of the wait.
        parity: u32,
        /// The missing arrivals.
        arrivals: u32,
        /// The missing bytes; negative if bytes arrived before `expect_tx`.
        bytes: i64,
    },
    /// A named barrier.
    Named {
        /// The barrier.
        name: String,
        /// The arrived threads.
        arrived: u32,
        /// The required threads.
        threads: u32,
    },
    /// The CTA barrier.
    Cta {
        /// The arrived threads.
        arrived: u32,
        /// The required threads.
        threads: u32,
    },
    /// The cluster barrier.
    Cluster {
        /// The arrived warps.
        arrived: u32,
        /// The required warps.
        warps: u32,
    },
    /// Bulk groups of one lane.
    BulkGroup {
        /// The lane.
        lane: u32,
        /// The number of groups that may stay pending.
        pending: u32,
    },
    /// `cp.async` copies of one lane.
    Copies {
        /// The lane.
        lane: u32,
        /// The incomplete copies.
        open: u32,
    },
    /// A wgmma that not all four warps of the warpgroup have issued.
    Wgmma {
        /// The warps of the warpgroup that have issued it.
        issued: u32,
    },
    /// Registers of the CTA's pool.
    Registers {
        /// The requested registers per thread.
        count: u32,
        /// The additional registers that the warp needs.
        wanted: u32,
        /// The free registers of the pool.
        free: u32,
    },
    /// A value in memory or a barrier that the warp polls.
    Poll,
}

impl BlockedOn {
    /// Returns the part that the warp itself can observe.
    pub fn wait_reason(&self) -> WaitReason {
        match self {
            BlockedOn::Mbarrier {
                name,
                index,
                parity,
                ..
            } => WaitReason::Mbarrier {
                name: name.clone(),
                index: *index,
                parity: *parity,
            },
            BlockedOn::Named { name, .. } => WaitReason::Named { name: name.clone() },
            BlockedOn::Cta { .. } => WaitReason::Cta,
            BlockedOn::Cluster { .. } => WaitReason::Cluster,
            BlockedOn::BulkGroup { pending, .. } => WaitReason::BulkGroup { pending: *pending },
            BlockedOn::Copies { .. } => WaitReason::Copies,
            BlockedOn::Wgmma { .. } => WaitReason::Wgmma,
            BlockedOn::Registers { count, .. } => WaitReason::Registers { count: *count },
            BlockedOn::Poll => WaitReason::Poll,
        }
    }
}

impl fmt::Display for BlockedOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.wait_reason())?;
        match self {
            BlockedOn::Mbarrier {
                arrivals, bytes, ..
            } => match (arrivals, bytes) {
                (1, 0) => write!(f, ": 1 arrival is missing"),
                (a, 0) => write!(f, ": {a} arrivals are missing"),
                (0, b) if *b > 0 => write!(f, ": {b} bytes are missing"),
                (1, b) if *b > 0 => write!(f, ": 1 arrival and {b} bytes are missing"),
                (a, b) if *b > 0 => write!(f, ": {a} arrivals and {b} bytes are missing"),
                (a, b) => write!(
                    f,
                    ": {a} arrivals are missing, and {} bytes arrived without expect_tx",
                    -b
                ),
            },
            BlockedOn::Named {
                arrived, threads, ..
            }
            | BlockedOn::Cta { arrived, threads } => {
                write!(f, ": {arrived} of {threads} threads have arrived")
            }
            BlockedOn::Cluster { arrived, warps } => {
                write!(f, ": {arrived} of {warps} warps have arrived")
            }
            BlockedOn::BulkGroup { lane, .. } => write!(f, ": lane {lane} has more in flight"),
            BlockedOn::Copies { lane, open } => {
                write!(f, ": {open} copies of lane {lane} are incomplete")
            }
            BlockedOn::Wgmma { issued } => {
                write!(f, ": {issued} of 4 warps of the warpgroup have issued it")
            }
            BlockedOn::Registers { wanted, free, .. } => {
                write!(f, ": the warp needs {wanted} more, the CTA has {free} free")
            }
            BlockedOn::Poll => Ok(()),
        }
    }
}

impl fmt::Display for BlockedWarp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.on)
    }
}

impl RunError {
    /// Returns the class of the bug: `deadlock`, `write-after-read race`, `missing proxy fence`.
    pub fn class(&self) -> String {
        let class = match self.kind {
            FaultKind::OutOfBounds => "out-of-bounds access",
            FaultKind::Misaligned => "misaligned access",
            FaultKind::NeverWritten => "uninitialized read",
            FaultKind::Race => {
                return self.race.map_or("race".to_owned(), |race| race.to_string());
            }
            FaultKind::MissingProxyFence => "missing proxy fence",
            FaultKind::TensorMap => "tensor map error",
            FaultKind::Barrier if self.text.starts_with(TOO_MANY_ARRIVALS) => {
                "arrival count mismatch"
            }
            FaultKind::Barrier => "barrier misuse",
            FaultKind::Convergence => "divergent warp",
            FaultKind::RegisterInFlight => "wgmma register hazard",
            FaultKind::Registers => "invalid setmaxnreg",
            FaultKind::PeerExited => "access to an exited CTA",
            FaultKind::Trap => "trap",
            FaultKind::Deadlock => "deadlock",
            FaultKind::Limit => "step limit exceeded",
            FaultKind::Launch => "invalid launch",
            FaultKind::Illegal => "unsupported op",
            FaultKind::Operand => "invalid operand",
            _ => "fault",
        };
        class.to_owned()
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.class())?;
        if let Some(at) = &self.at {
            write!(f, "{} ", at.op)?;
        }
        if let Some(lane) = self.lane {
            write!(f, "(lane {lane}) ")?;
        }
        f.write_str(&self.text)?;
        if let Some(at) = &self.at {
            write!(f, "\n  at {at}")?;
        }
        if let Some(other) = &self.other {
            write!(f, "\n  other access: {} at {other}", other.op)?;
        }
        write!(f, "{}", WaitList(&self.waits))?;
        match self.help {
            Some(help) => write!(f, "\nhelp: {help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for RunError {}
