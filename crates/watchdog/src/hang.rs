//! Notes read on the host: what each warp waits for.

use crate::note::{BYTES, CTAS, Note, State};
use crate::watch::Watched;
use std::fmt;
use warpline_ir::{Awaited, Kernel, Site, Waits};

/// A launch that did not end by itself.
///
/// It reads as the CPU executor's report of a deadlock does, up to what a warp
/// cannot know: how many arrivals are missing.
#[derive(Clone, PartialEq, Debug)]
pub struct Hang {
    /// What each warp waits for.
    pub waits: Vec<Wait>,
}

/// What one warp waits for.
#[derive(Clone, PartialEq, Debug)]
pub struct Wait {
    /// The warp, and the op it is in.
    pub at: Site,
    /// What it waits for.
    pub on: Awaited,
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.on)
    }
}

impl fmt::Display for Hang {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waits = Waits(&self.waits);
        match self.waits.is_empty() {
            true => f.write_str("the launch does not end, and no warp waits: one runs for ever"),
            false => write!(f, "nothing can go on: {}{waits}", waits.count()),
        }
    }
}

impl std::error::Error for Hang {}

impl Watched {
    /// Bytes of the notes of a launch: host-visible memory, zero at launch.
    pub fn notes_bytes(&self, grid: [u32; 3]) -> usize {
        let ctas: u64 = grid.iter().map(|&n| u64::from(n)).product();
        let rows = ctas.min(u64::from(CTAS) + 1) as usize;
        rows * self.kernel.warps() as usize * BYTES as usize
    }

    /// Did a launch that has ended give a wait up?
    pub fn gave_up(&self, notes: &[u64]) -> bool {
        let left = |w: &u64| Note::read(*w).is_some_and(|n| n.state == State::Left);
        notes.iter().any(left)
    }

    /// What every warp of a launch waits for, by its notes.
    pub fn hang(&self, notes: &[u64], grid: [u32; 3]) -> Hang {
        let (kernel, warps) = (&self.kernel, self.kernel.warps());
        let mut waits = Vec::new();
        for cta in ctas(kernel, grid) {
            let row = linear(cta, grid);
            if row >= u64::from(CTAS) {
                continue;
            }
            for warp in 0..warps {
                let at = row as usize * warps as usize + warp as usize;
                let Some(note) = notes.get(at).and_then(|&w| Note::read(w)) else {
                    continue;
                };
                let site = match note.state {
                    State::Waiting | State::Left => self.sites.get(usize::from(note.site)),
                    State::Running | State::Done => None,
                };
                waits.extend(site.map(|site| Wait {
                    at: site.at(kernel, cta, warp),
                    on: site.awaited(kernel, &note),
                }));
            }
        }
        Hang { waits }
    }
}

/// The CTAs of a grid: cluster by cluster, and in each by rank, x fastest.
fn ctas(kernel: &Kernel, grid: [u32; 3]) -> impl Iterator<Item = [u32; 3]> {
    let size = kernel.cluster;
    let clusters: [u32; 3] = std::array::from_fn(|i| grid[i] / size[i].max(1));
    places(clusters).flat_map(move |c| {
        places(size).map(move |r| std::array::from_fn(|i| c[i] * size[i] + r[i]))
    })
}

/// All places of a box, x fastest.
fn places([nx, ny, nz]: [u32; 3]) -> impl Iterator<Item = [u32; 3]> {
    (0..nz).flat_map(move |z| (0..ny).flat_map(move |y| (0..nx).map(move |x| [x, y, z])))
}

fn linear([x, y, z]: [u32; 3], [nx, ny, _]: [u32; 3]) -> u64 {
    let [x, y, z, nx, ny] = [x, y, z, nx, ny].map(u64::from);
    (z * ny + y) * nx + x
}
