//! Partial tiles: accumulators that one CTA stores in global memory for another to add.

use super::flow::elect_lane;
use super::frag::Frag;
use super::global::{Flags, Global};
use super::reg::Reg;
use super::state::{caller_scope, error};
use super::warp::{role_threads, thread_in_role, warp_in_role, warp_sync};

/// Partial accumulator tiles in global memory with one flag per warp; each tile is stored
/// once and added once in a launch.
///
/// Each thread stores its own registers, 16 bytes at a time and coalesced, and the same
/// thread of the adding role loads them. Flags are zero at launch, and zero again after all
/// tiles are added.
#[derive(Clone, Copy, Debug)]
pub struct PartialTiles {
    tiles: Global<f32>,
    flags: Flags,
    m: u32,
    n: u32,
}

impl PartialTiles {
    pub(crate) fn new(tiles: Global<f32>, flags: Flags, m: u32, n: u32) -> Self {
        Self { tiles, flags, m, n }
    }

    /// Returns the bytes of `count` tiles.
    pub fn bytes(self, count: u32) -> u64 {
        u64::from(count) * u64::from(self.m) * u64::from(self.n) * 4
    }

    /// Stores a fragment as partial tile `i` and raises its flags.
    #[track_caller]
    pub fn store(self, i: Reg<u32>, tile: &Frag) {
        let _caller = caller_scope();
        if !self.check_shape(tile) {
            return;
        }
        let first = self.first_value(i);
        for (j, four) in tile.values().chunks(4).enumerate() {
            let four: [Reg<f32>; 4] = std::array::from_fn(|v| four[v]);
            first
                .offset(4 * j as u32 * role_threads())
                .store_vec(0u32, four);
        }
        self.flags.signal(self.flag(i));
    }

    /// Waits for partial tile `i`, adds it to a fragment, and resets its flags.
    #[track_caller]
    pub fn wait_and_add(self, i: Reg<u32>, to: Frag) -> Frag {
        let _caller = caller_scope();
        if !self.check_shape(&to) {
            return to;
        }
        let flag = self.flag(i);
        self.flags.wait(flag, 1u32);
        let first = self.first_value(i);
        let mut sums = Vec::new();
        for (j, four) in to.values().chunks(4).enumerate() {
            let partial = first
                .offset(4 * j as u32 * role_threads())
                .load_vec::<4>(0u32);
            sums.extend(four.iter().zip(partial).map(|(&x, y)| x + y));
        }
        warp_sync();
        elect_lane(|| self.flags.reset(flag));
        Frag::new(to.owner(), to.rows(), to.cols(), sums)
    }

    /// Returns the address of the thread's first value of tile `i`.
    #[track_caller]
    fn first_value(self, i: Reg<u32>) -> Global<f32> {
        let tile = i.mul_wide(self.m * self.n);
        self.tiles
            .offset(tile + (thread_in_role() * 4).mul_wide(1u32))
    }

    /// Returns the index of the warp's flag of tile `i`.
    #[track_caller]
    fn flag(self, i: Reg<u32>) -> Reg<u32> {
        i * (role_threads() / 32) + warp_in_role()
    }

    #[track_caller]
    fn check_shape(self, tile: &Frag) -> bool {
        let fits = (tile.rows(), tile.cols()) == (self.m, self.n)
            && tile.values().len() as u32 * role_threads() == self.m * self.n;
        if !fits {
            error(
                "partial-shape",
                format!(
                    "a partial tile has {} x {} elements, held by the whole role; the fragment has {} x {}",
                    self.m,
                    self.n,
                    tile.rows(),
                    tile.cols()
                ),
            );
        }
        fits
    }
}
