//! What went wrong in a run, and where.

use std::fmt;
use warpline_ir::{FaultKind, Frame};

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

/// An op as one warp of one CTA ran it.
#[derive(Clone, PartialEq, Debug)]
pub struct Site {
    /// The role.
    pub role: String,
    /// The warp in its CTA.
    pub warp: u32,
    /// The CTA in the grid.
    pub cta: [u32; 3],
    /// The op's name.
    pub op: String,
    /// The author's line.
    pub frame: Option<Frame>,
    /// The whole location stack, innermost first.
    pub stack: Vec<Frame>,
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

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.cta;
        write!(f, "{}, warp {}, CTA ({x},{y},{z})", self.role, self.warp)?;
        match self.frame {
            Some(at) => write!(f, ", {at}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for WaitOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WaitOn::Mbarrier {
                name,
                index,
                parity,
                arrivals,
                bytes,
            } => {
                write!(f, "waits for {name}[{index}], parity {parity}: ")?;
                match (arrivals, bytes) {
                    (1, 0) => write!(f, "1 arrival is missing"),
                    (a, 0) => write!(f, "{a} arrivals are missing"),
                    (0, b) if *b > 0 => write!(f, "{b} bytes are missing"),
                    (a, b) if *b > 0 => write!(f, "{a} arrivals and {b} bytes are missing"),
                    (a, b) => write!(
                        f,
                        "{a} arrivals are missing, and {} bytes came that nobody expects",
                        -b
                    ),
                }
            }
            WaitOn::Named {
                name,
                arrived,
                threads,
            } => write!(
                f,
                "waits at barrier {name}: {arrived} of {threads} threads have come"
            ),
            WaitOn::Cta { arrived, threads } => write!(
                f,
                "waits for its CTA: {arrived} of {threads} threads have come"
            ),
            WaitOn::Cluster { arrived, warps } => write!(
                f,
                "waits for its cluster: {arrived} of {warps} warps have come"
            ),
            WaitOn::BulkGroup { lane, pending } => write!(
                f,
                "waits until at most {pending} bulk groups of lane {lane} are open"
            ),
            WaitOn::Copies { lane, open } => {
                write!(f, "waits for copies of lane {lane}: {open} are not done")
            }
            WaitOn::Wgmma { issued } => write!(
                f,
                "waits for a wgmma that {issued} of the 4 warps of its warpgroup have issued"
            ),
            WaitOn::Registers {
                count,
                wanted,
                free,
            } => write!(
                f,
                "waits for {count} registers per thread: the warp lacks {wanted}, the CTA's pool has {free}"
            ),
            WaitOn::Poll => f.write_str("polls, and nothing changes"),
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.on)
    }
}

/// The most waits that one message shows.
const SHOWN: usize = 32;

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
        for w in self.waits.iter().take(SHOWN) {
            write!(f, "\n  {w}")?;
        }
        if self.waits.len() > SHOWN {
            write!(f, "\n  and {} more", self.waits.len() - SHOWN)?;
        }
        Ok(())
    }
}

impl std::error::Error for RunError {}
