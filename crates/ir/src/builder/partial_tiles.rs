//! Partial tiles: accumulators that one CTA stores in global memory for another to add.

use super::flow::{Range, elect_lane, range, select};
use super::frag::Frag;
use super::global::{Flags, Global};
use super::reg::Reg;
use super::state::{caller_scope, error};
use super::warp::{role_threads, thread_in_role, warp_in_role, warp_sync};

/// Partial accumulator tiles in global memory with one flag per warp. In a launch each tile is
/// stored once. Either one CTA adds it ([`wait_and_add`](Self::wait_and_add)), or all CTAs of a group
/// add all tiles of the group, each CTA some columns ([`sum_cols`](Self::sum_cols)).
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
        self.write(i, tile);
        self.flags.signal(self.flag(i));
    }

    /// Stores a fragment as partial tile `i` and raises the flags of tiles `readers`: the CTAs that
    /// stored those tiles also read this one, after [`wait_for`](Self::wait_for).
    #[track_caller]
    pub fn store_for(self, i: Reg<u32>, tile: &Frag, readers: Range<u32>) {
        let _caller = caller_scope();
        self.write(i, tile);
        readers.each(|reader| self.flags.signal(self.flag(reader)));
    }

    /// Waits until `count` tiles were stored for the CTA that stored tile `i`, and resets its flags.
    #[track_caller]
    pub fn wait_for(self, i: Reg<u32>, count: Reg<u32>) {
        let _caller = caller_scope();
        let flag = self.flag(i);
        self.flags.wait(flag, count);
        warp_sync();
        elect_lane(|| self.flags.reset(flag));
    }

    /// Returns the sum of the columns from `col` on of `count` tiles, in their order from tile `first`
    /// on. `batch` tiles are loaded at a time.
    #[track_caller]
    pub fn sum_cols(
        self,
        [first, count]: [Reg<u32>; 2],
        col: Reg<u32>,
        width: u32,
        batch: u32,
    ) -> Frag {
        let _caller = caller_scope();
        let zeros = Frag::zeros(self.m, width);
        let of_tile = |i: Reg<u32>| -> Vec<Reg<f32>> {
            let values = self.first_value(i);
            let (groups, threads) = (self.n / 8, 4 * role_threads());
            let group = (col / 8u32) * threads;
            let chunks = (0..self.m / 64).flat_map(|block| (0..width / 8).map(move |j| (block, j)));
            chunks
                .flat_map(|(block, j)| {
                    values
                        .offset((block * groups + j) * threads)
                        .load_vec::<4>(group)
                })
                .collect()
        };
        range(0u32, count).step_by(batch).fold(zeros, |i, sum| {
            let loaded: Vec<_> = (0..batch)
                .map(|j| (i + j, of_tile(first + (i + j).min(count - 1))))
                .collect();
            loaded.into_iter().fold(sum, |sum, (i, values)| {
                let exists = i.lt(count);
                let sums = sum.values().iter().zip(values);
                let sums = sums.map(|(&x, y)| x + select(exists, y, 0.0f32)).collect();
                Frag::new(sum.owner(), sum.rows(), sum.cols(), sums)
            })
        })
    }

    /// Stores a fragment as partial tile `i`.
    #[track_caller]
    fn write(self, i: Reg<u32>, tile: &Frag) {
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
