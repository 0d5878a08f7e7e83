//! Decoding of the status words on the host: the wait of each warp.

use crate::status::{MAX_CTAS, State, WORD_BYTES, WarpStatus};
use crate::watch::WatchedKernel;
use std::fmt;
use warpline_ir::{Kernel, OpLocation, WaitList, WaitReason};

/// The report of a launch that hung.
///
/// It has the format of the CPU executor's deadlock report, without the number of missing arrivals,
/// which a warp cannot observe.
#[derive(Clone, PartialEq, Debug)]
pub struct Hang {
    /// The warps that wait.
    pub waits: Vec<HungWarp>,
}

/// A warp in a wait that does not end.
#[derive(Clone, PartialEq, Debug)]
pub struct HungWarp {
    /// The warp and its op.
    pub at: OpLocation,
    /// The barrier or resource that it waits for.
    pub on: WaitReason,
}

impl fmt::Display for HungWarp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.on)
    }
}

impl fmt::Display for Hang {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waits = WaitList(&self.waits);
        match self.waits.is_empty() {
            true => f.write_str(
                "hang: the launch does not end, but no warp is in a wait; a warp loops forever",
            ),
            false => write!(f, "deadlock: {}{waits}", waits.count()),
        }
    }
}

impl std::error::Error for Hang {}

impl WatchedKernel {
    /// Returns the size of the status table of a launch: host-visible memory, zero at launch.
    pub fn status_bytes(&self, grid: [u32; 3]) -> usize {
        let ctas: u64 = grid.iter().map(|&n| u64::from(n)).product();
        let rows = ctas.min(u64::from(MAX_CTAS) + 1) as usize;
        rows * self.kernel.warps() as usize * WORD_BYTES as usize
    }

    /// Returns whether a wait of a completed launch timed out.
    pub fn has_timed_out(&self, status: &[u64]) -> bool {
        let timed_out = |&word: &u64| {
            WarpStatus::decode(word).is_some_and(|status| status.state == State::TimedOut)
        };
        status.iter().any(timed_out)
    }

    /// Decodes the status table into the waits of all warps.
    pub fn read_hang(&self, status: &[u64], grid: [u32; 3]) -> Hang {
        let (kernel, warps) = (&self.kernel, self.kernel.warps());
        let mut waits = Vec::new();
        for cta in ctas(kernel, grid) {
            let row = linear_index(cta, grid);
            if row >= u64::from(MAX_CTAS) {
                continue;
            }
            for warp in 0..warps {
                let index = row as usize * warps as usize + warp as usize;
                let Some(word) = status.get(index).and_then(|&w| WarpStatus::decode(w)) else {
                    continue;
                };
                let site = match word.state {
                    State::Waiting | State::TimedOut => self.sites.get(usize::from(word.site)),
                    State::Running | State::Done => None,
                };
                waits.extend(site.map(|site| HungWarp {
                    at: site.location(kernel, cta, warp),
                    on: site.wait_reason(kernel, &word),
                }));
            }
        }
        Hang { waits }
    }
}

/// Iterates over the CTAs of a grid by cluster and rank, x fastest.
fn ctas(kernel: &Kernel, grid: [u32; 3]) -> impl Iterator<Item = [u32; 3]> {
    let size = kernel.cluster;
    let clusters: [u32; 3] = std::array::from_fn(|i| grid[i] / size[i].max(1));
    coords(clusters).flat_map(move |c| {
        coords(size).map(move |r| std::array::from_fn(|i| c[i] * size[i] + r[i]))
    })
}

/// Iterates over the coordinates of a box, x fastest.
fn coords([nx, ny, nz]: [u32; 3]) -> impl Iterator<Item = [u32; 3]> {
    (0..nz).flat_map(move |z| (0..ny).flat_map(move |y| (0..nx).map(move |x| [x, y, z])))
}

fn linear_index([x, y, z]: [u32; 3], [nx, ny, _]: [u32; 3]) -> u64 {
    let [x, y, z, nx, ny] = [x, y, z, nx, ny].map(u64::from);
    (z * ny + y) * nx + x
}
