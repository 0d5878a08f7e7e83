//! Partial tiles: sums that one CTA leaves in global memory for another to add.

use super::flow::elect_lane;
use super::frag::Frag;
use super::global::{Flags, Global};
use super::reg::Reg;
use super::state::{error, here};
use super::warp::{role_threads, thread_in_role, warp_in_role, warp_sync};

/// Tiles of sums in global memory, each with a flag per warp: given once and
/// taken once in a launch.
///
/// Every thread leaves its own registers, sixteen bytes side by side with its
/// neighbours', and the same thread of the taking role finds them. Flags are
/// zero at launch, and zero again when all tiles were taken.
#[derive(Clone, Copy, Debug)]
pub struct PartialTiles {
    sums: Global<f32>,
    flags: Flags,
    m: u32,
    n: u32,
}

impl PartialTiles {
    pub(crate) fn new(sums: Global<f32>, flags: Flags, m: u32, n: u32) -> Self {
        Self { sums, flags, m, n }
    }

    /// Bytes of `count` tiles.
    pub fn bytes(self, count: u32) -> u64 {
        u64::from(count) * u64::from(self.m) * u64::from(self.n) * 4
    }

    /// Leaves a tile in place `i`, and raises its flag.
    #[track_caller]
    pub fn give(self, i: Reg<u32>, tile: &Frag) {
        let _at = here();
        if !self.fits(tile) {
            return;
        }
        let first = self.place(i);
        for (j, four) in tile.values().chunks(4).enumerate() {
            let four: [Reg<f32>; 4] = std::array::from_fn(|v| four[v]);
            first
                .offset(4 * j as u32 * role_threads())
                .store_vec(0u32, four);
        }
        self.flags.signal(self.flag(i));
    }

    /// Waits for the tile in place `i` and adds it.
    #[track_caller]
    pub fn add(self, i: Reg<u32>, to: Frag) -> Frag {
        let _at = here();
        if !self.fits(&to) {
            return to;
        }
        let flag = self.flag(i);
        self.flags.wait(flag, 1u32);
        let first = self.place(i);
        let mut sums = Vec::new();
        for (j, four) in to.values().chunks(4).enumerate() {
            let more = first
                .offset(4 * j as u32 * role_threads())
                .load_vec::<4>(0u32);
            sums.extend(four.iter().zip(more).map(|(&x, y)| x + y));
        }
        warp_sync();
        elect_lane(|| self.flags.reset(flag));
        Frag::new(to.team(), to.rows(), to.cols(), sums)
    }

    /// The thread's first number of tile `i`.
    #[track_caller]
    fn place(self, i: Reg<u32>) -> Global<f32> {
        let tile = i.mul_wide(self.m * self.n);
        self.sums
            .offset(tile + (thread_in_role() * 4).mul_wide(1u32))
    }

    /// The warp's flag of tile `i`.
    #[track_caller]
    fn flag(self, i: Reg<u32>) -> Reg<u32> {
        i * (role_threads() / 32) + warp_in_role()
    }

    #[track_caller]
    fn fits(self, tile: &Frag) -> bool {
        let fine = (tile.rows(), tile.cols()) == (self.m, self.n)
            && tile.values().len() as u32 * role_threads() == self.m * self.n;
        if !fine {
            error(
                "partial-shape",
                format!(
                    "a partial tile of {} x {} is given and taken whole by a role, not as {} x {}",
                    self.m,
                    self.n,
                    tile.rows(),
                    tile.cols()
                ),
            );
        }
        fine
    }
}
