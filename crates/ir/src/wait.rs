//! Descriptions of blocked warps, shared by the CPU executor, the watchdog and the checker.

use crate::loc::Frame;
use std::fmt;

/// One op, executed by one warp of one CTA.
#[derive(Clone, PartialEq, Debug)]
pub struct OpLocation {
    /// The role.
    pub role: String,
    /// The warp's index in the CTA.
    pub warp: u32,
    /// The CTA's index in the grid.
    pub cta: [u32; 3],
    /// The op's name.
    pub op: String,
    /// The author's source line.
    pub frame: Option<Frame>,
    /// The location stack, innermost frame first.
    pub stack: Vec<Frame>,
}

impl fmt::Display for OpLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.cta;
        write!(f, "{}, warp {}, CTA ({x},{y},{z})", self.role, self.warp)?;
        match self.frame {
            Some(at) => write!(f, ", {at}"),
            None => Ok(()),
        }
    }
}

/// The event that a blocked warp waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum WaitReason {
    /// A phase of an mbarrier.
    Mbarrier {
        /// The barrier array.
        name: String,
        /// The index in the array; in a ring, the stage.
        index: u32,
        /// The awaited parity.
        parity: u32,
    },
    /// Other threads of a named barrier.
    Named {
        /// The barrier.
        name: String,
    },
    /// Other threads of the CTA.
    Cta,
    /// Other threads of the cluster.
    Cluster,
    /// Bulk groups of the warp's lanes.
    BulkGroup {
        /// The number of groups that may stay in flight.
        pending: u32,
    },
    /// `cp.async` copies of the warp's lanes.
    Copies,
    /// `wgmma` of the warpgroup.
    Wgmma,
    /// Registers of the CTA's pool (`setmaxnreg.inc`).
    Registers {
        /// The requested registers per thread.
        count: u32,
    },
    /// A value in memory or an mbarrier that the warp polls.
    Poll,
}

impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WaitReason::Mbarrier {
                name,
                index,
                parity,
            } => write!(f, "waits for {name}[{index}], parity {parity}"),
            WaitReason::Named { name } => write!(f, "waits at barrier {name}"),
            WaitReason::Cta => f.write_str("waits at the CTA barrier"),
            WaitReason::Cluster => f.write_str("waits at the cluster barrier"),
            WaitReason::BulkGroup { pending } => {
                write!(f, "waits until at most {pending} bulk groups are in flight")
            }
            WaitReason::Copies => f.write_str("waits for its cp.async copies"),
            WaitReason::Wgmma => f.write_str("waits for a wgmma of its warpgroup"),
            WaitReason::Registers { count } => write!(f, "waits for {count} registers per thread"),
            WaitReason::Poll => f.write_str("polls a value that does not change"),
        }
    }
}

/// The maximum number of waits in one message.
const MAX_SHOWN: usize = 32;

/// A list of blocked warps, one line each, for the end of a message.
#[derive(Clone, Copy, Debug)]
pub struct WaitList<'a, W>(pub &'a [W]);

impl<W> WaitList<'_, W> {
    /// Returns the count as a phrase: `3 warps wait`.
    pub fn count(&self) -> String {
        match self.0.len() {
            1 => "1 warp waits".to_owned(),
            n => format!("{n} warps wait"),
        }
    }
}

impl<W: fmt::Display> fmt::Display for WaitList<'_, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for w in self.0.iter().take(MAX_SHOWN) {
            write!(f, "\n  {w}")?;
        }
        match self.0.len().checked_sub(MAX_SHOWN) {
            None | Some(0) => Ok(()),
            Some(more) => write!(f, "\n  and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_list_is_truncated() {
        let all: Vec<u32> = (0..40).collect();
        assert_eq!(WaitList(&all[..2]).to_string(), "\n  0\n  1");
        assert!(!WaitList(&all[..32]).to_string().contains("more"));
        assert!(WaitList(&all).to_string().ends_with("\n  31\n  and 8 more"));
        let counts = [1, 2].map(|n| WaitList(&all[..n]).count());
        assert_eq!(counts, ["1 warp waits", "2 warps wait"]);
    }
}
