//! What a stuck warp waits for, in words: the same from every device that runs a kernel.

use crate::loc::Frame;
use std::fmt;

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

/// The things a warp can wait for, as far as the warp itself knows them.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Awaited {
    /// A phase of an mbarrier.
    Mbarrier {
        /// The barrier array.
        name: String,
        /// Which of the array: the stage, in a ring.
        index: u32,
        /// The parity waited for.
        parity: u32,
    },
    /// The rest of the threads of a named barrier.
    Named {
        /// The barrier.
        name: String,
    },
    /// The rest of the CTA.
    Cta,
    /// The rest of the cluster.
    Cluster,
    /// Bulk groups of its lanes.
    BulkGroup {
        /// Groups that may stay open.
        pending: u32,
    },
    /// Copies that its lanes have issued by themselves.
    Copies,
    /// wgmmas of its warpgroup.
    Wgmma,
    /// Registers of the CTA's pool.
    Registers {
        /// Registers per thread it wants.
        count: u32,
    },
    /// A value in memory or a barrier that it asks for again and again.
    Poll,
}

impl fmt::Display for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Awaited::Mbarrier {
                name,
                index,
                parity,
            } => write!(f, "waits for {name}[{index}], parity {parity}"),
            Awaited::Named { name } => write!(f, "waits at barrier {name}"),
            Awaited::Cta => f.write_str("waits for its CTA"),
            Awaited::Cluster => f.write_str("waits for its cluster"),
            Awaited::BulkGroup { pending } => {
                write!(f, "waits until at most {pending} bulk groups are open")
            }
            Awaited::Copies => f.write_str("waits for its copies"),
            Awaited::Wgmma => f.write_str("waits for a wgmma of its warpgroup"),
            Awaited::Registers { count } => write!(f, "waits for {count} registers per thread"),
            Awaited::Poll => f.write_str("polls, and nothing changes"),
        }
    }
}

/// The most waits that one message shows.
const SHOWN: usize = 32;

/// What each warp waits for, below a sentence that says why that is told.
#[derive(Clone, Copy, Debug)]
pub struct Waits<'a, W>(pub &'a [W]);

impl<W> Waits<'_, W> {
    /// How many there are, as a sentence goes on: `3 warps wait`.
    pub fn count(&self) -> String {
        match self.0.len() {
            1 => "1 warp waits".to_owned(),
            n => format!("{n} warps wait"),
        }
    }
}

impl<W: fmt::Display> fmt::Display for Waits<'_, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for w in self.0.iter().take(SHOWN) {
            write!(f, "\n  {w}")?;
        }
        match self.0.len().checked_sub(SHOWN) {
            None | Some(0) => Ok(()),
            Some(more) => write!(f, "\n  and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_is_cut() {
        let all: Vec<u32> = (0..40).collect();
        assert_eq!(Waits(&all[..2]).to_string(), "\n  0\n  1");
        assert!(!Waits(&all[..32]).to_string().contains("more"));
        assert!(Waits(&all).to_string().ends_with("\n  31\n  and 8 more"));
        let counts = [1, 2].map(|n| Waits(&all[..n]).count());
        assert_eq!(counts, ["1 warp waits", "2 warps wait"]);
    }
}
