//! Outboxes: the staging buffers of the epilogue, from fragments to TMA stores.

use super::flow::elect;
use super::folded_frag::FoldedFrag;
use super::frag::Frag;
use super::operand::Half;
use super::raw::{NamedBarrierHandle, TensorMap, bulk_commit, bulk_wait_read, fence_async};
use super::reg::{Coords, Var};
use super::state::{caller_scope, error, with};
use super::tile::{Tile, TileRef, add_constant};
use super::warp::{role_threads, warp_sync};
use crate::loc::Frame;
use crate::types::Element;
use crate::value::RoleId;
use half::{bf16, f16};

/// The builder's record of an outbox.
pub(crate) struct OutboxState {
    name: String,
    /// The role that stores through it, and its next stage.
    user: Option<(RoleId, Var<u32>)>,
}

/// The staging buffer of the epilogue: fragments are written to shared memory, and TMA
/// stores them to global memory while the role continues.
///
/// A role writes a stage after the last TMA store of that stage has read it; stores of other
/// stages stay in flight. The builder emits the waits, the proxy fences and the
/// final wait at the end of the role.
#[derive(Clone, Copy, Debug)]
pub struct Outbox<T> {
    index: usize,
    stages: u32,
    tile: Tile<T>,
    barrier: NamedBarrierHandle,
}

/// An element type of an outbox, which fragments are rounded to.
pub trait OutboxElement: Element {
    /// Rounds a fragment and writes it to shared memory.
    fn store(from: &Frag, to: &TileRef<Self>);
}
macro_rules! outbox_half {
    ($($t:ty),*) => {$(
        impl OutboxElement for $t {
            #[track_caller]
            fn store(from: &Frag, to: &TileRef<Self>) { from.store_matrix(to); }
        }
    )*};
}
outbox_half!(bf16, f16);
impl OutboxElement for f32 {
    #[track_caller]
    fn store(from: &Frag, to: &TileRef<f32>) {
        from.store(to);
    }
}
impl<T: OutboxElement> Outbox<T> {
    pub(crate) fn new(name: &str, stages: u32, tile: Tile<T>, barrier: NamedBarrierHandle) -> Self {
        let index = with(|s| {
            s.outboxes.push(OutboxState {
                name: name.to_owned(),
                user: None,
            });
            s.outboxes.len() - 1
        });
        Self {
            index,
            stages: stages.max(1),
            tile,
            barrier,
        }
    }

    /// Stores a fragment to the tensor of `map` by TMA, its first element at `coords`
    /// (innermost first).
    ///
    /// A fragment wider than the outbox is stored in several parts, one stage each.
    #[track_caller]
    pub fn store<const R: usize>(self, tile: &Frag, map: TensorMap, coords: impl Coords<R>) {
        let _caller = caller_scope();
        let width = self.tile.layout.cols;
        let (values_per_thread, shape) = (tile.values().len(), (tile.rows(), tile.cols()));
        self.stage_and_store(values_per_thread, shape, map, coords, |first, to| {
            T::store(&tile.slice(first..first + width), to);
        });
    }

    /// Like [`store`](Self::store), and applies `f` to 16 columns at a time (to the full width
    /// if the outbox width is not a multiple of 16).
    ///
    /// `f` receives the fragment slice and its first column. Each result is staged before `f`
    /// runs on the next slice, which keeps few values live, and the role waits for a free stage
    /// before it computes.
    #[track_caller]
    pub fn store_map<const R: usize>(
        self,
        tile: &Frag,
        map: TensorMap,
        coords: impl Coords<R>,
        f: impl Fn(Frag, u32) -> Frag,
    ) {
        let _caller = caller_scope();
        let (rows, width) = (self.tile.layout.rows, self.tile.layout.cols);
        let (values_per_thread, shape) = (tile.values().len(), (tile.rows(), tile.cols()));
        let step = match width.is_multiple_of(16) {
            true => 16,
            false => width.max(1),
        };
        self.stage_and_store(values_per_thread, shape, map, coords, |first, to| {
            for col in (0..width).step_by(step as usize) {
                let from = first + col;
                let result = f(tile.slice(from..from + step), from);
                T::store(&result, &to.slice(0..rows, col..col + step));
            }
        });
    }

    /// Like [`store`](Self::store), transposed: the outbox has one row for each column of the
    /// fragment.
    #[track_caller]
    pub fn store_transposed<const R: usize>(
        self,
        tile: &Frag,
        map: TensorMap,
        coords: impl Coords<R>,
    ) where
        T: Half,
    {
        let _caller = caller_scope();
        let (values_per_thread, shape) = (tile.values().len(), (tile.cols(), tile.rows()));
        self.stage_full_width(values_per_thread, shape, map, coords, |to| {
            tile.store_transposed(to)
        });
    }

    /// Like [`store_transposed`](Self::store_transposed), for a [`FoldedFrag`].
    #[track_caller]
    pub fn store_folded_transposed<const R: usize>(
        self,
        tile: &FoldedFrag,
        map: TensorMap,
        coords: impl Coords<R>,
    ) where
        T: Half,
    {
        let _caller = caller_scope();
        let (values_per_thread, shape) = (tile.values().len(), (tile.cols(), tile.rows()));
        self.stage_full_width(values_per_thread, shape, map, coords, |to| {
            tile.store_transposed(to)
        });
    }

    /// Like [`store_folded_transposed`](Self::store_folded_transposed), for two fragments side by
    /// side: the columns of `right` follow those of `left` in the stored tile.
    #[track_caller]
    pub fn store_folded_pair_transposed<const R: usize>(
        self,
        left: &FoldedFrag,
        right: &FoldedFrag,
        map: TensorMap,
        coords: impl Coords<R>,
    ) where
        T: Half,
    {
        let _caller = caller_scope();
        let (rows, cols) = (left.cols(), left.rows());
        let values_per_thread = left.values().len() + right.values().len();
        let shape = (rows, cols + right.rows());
        self.stage_full_width(values_per_thread, shape, map, coords, |to| {
            left.store_transposed(&to.slice(0..rows, 0..cols));
            right.store_transposed(&to.slice(0..rows, cols..shape.1));
        });
    }

    /// Stages and stores a tile that is exactly as wide as the outbox.
    #[track_caller]
    fn stage_full_width<const R: usize>(
        self,
        values_per_thread: usize,
        shape: (u32, u32),
        map: TensorMap,
        coords: impl Coords<R>,
        write: impl Fn(&TileRef<T>),
    ) {
        match shape.1 == self.tile.layout.cols {
            true => self.stage_and_store(values_per_thread, shape, map, coords, |_, to| write(to)),
            false => self.reject_shape(shape.0, shape.1, map),
        }
    }

    /// Stages and stores a tile of `rows` × `cols`, one outbox width at a time; `write` fills
    /// the stage with the part that starts at a column.
    #[track_caller]
    fn stage_and_store<const R: usize>(
        self,
        values_per_thread: usize,
        (rows, cols): (u32, u32),
        map: TensorMap,
        coords: impl Coords<R>,
        write: impl Fn(u32, &TileRef<T>),
    ) {
        let (box_rows, width) = (self.tile.layout.rows, self.tile.layout.cols);
        let box_cols = map.bytes() / (box_rows * self.tile.layout.element_bytes).max(1);
        let fits_boxes = box_cols > 0 && width.is_multiple_of(box_cols);
        // All threads of the role together must hold the tile exactly once.
        let held_once = values_per_thread as u32 * role_threads() == rows * cols;
        if R == 0 || rows != box_rows || !cols.is_multiple_of(width) || !fits_boxes || !held_once {
            self.reject_shape(rows, cols, map);
            return;
        }
        let Some(stage) = self.next_stage() else {
            return;
        };
        for first in (0..cols).step_by(width as usize) {
            let current = stage.get();
            // The last TMA store of this stage must have read it.
            elect(|| bulk_wait_read(self.stages - 1));
            self.sync_role();
            let staged = self.tile.stage(current);
            write(first, &staged);
            fence_async();
            self.sync_role();
            elect(|| {
                for col in (0..width).step_by(box_cols as usize) {
                    let part = staged.slice(0..box_rows, col..col + box_cols);
                    let coords = coords.coords();
                    let mut box_coords = coords.map(|c| add_constant(c, 0));
                    box_coords[0] = add_constant(coords[0], first + col);
                    map.store(part, box_coords);
                }
                bulk_commit();
            });
            if self.stages > 1 {
                let next = current + 1;
                stage.set(super::select(next.eq(self.stages), 0u32, next));
            }
        }
    }

    #[track_caller]
    fn reject_shape(self, rows: u32, cols: u32, map: TensorMap) {
        error(
            "outbox-shape",
            format!(
                "an outbox of {} x {}, stored in boxes of {} bytes, needs one tile per role with the same rows and a multiple of its columns; this role of {} warps stores {rows} x {cols}",
                self.tile.layout.rows,
                self.tile.layout.cols,
                map.bytes(),
                role_threads() / 32,
            ),
        );
    }

    /// Synchronizes the threads of the role.
    #[track_caller]
    fn sync_role(self) {
        match role_threads() {
            32 => warp_sync(),
            threads => self.barrier.sync(threads),
        }
    }

    /// Returns the role's next stage; records the role at its first store.
    #[track_caller]
    fn next_stage(self) -> Option<Var<u32>> {
        let frame = Frame::caller();
        let known = with(|s| match (s.outboxes[self.index].user, s.role) {
            (Some((user, stage)), Some(role)) if user == role => Some(Some(stage)),
            (None, Some(_)) => None,
            _ => {
                let text = format!(
                    "outbox {} is used by role {} and by another role; one role may use it",
                    s.outboxes[self.index].name,
                    s.role_name()
                );
                s.error("outbox-role", text, frame, None);
                Some(None)
            }
        });
        known.unwrap_or_else(|| {
            let stage = Var::role_state(0u32);
            with(|s| {
                let role = s.role?;
                s.outboxes[self.index].user = Some((role, stage));
                Some(stage)
            })
        })
    }
}

/// Waits at the end of a role until its TMA stores have read their shared memory.
#[track_caller]
pub(super) fn drain() {
    let is_user = with(|s| {
        let role = s.role;
        let mut users = s.outboxes.iter().filter_map(|o| o.user);
        users.any(|(r, _)| Some(r) == role)
    });
    if is_user {
        elect(|| bulk_wait_read(0));
    }
}
