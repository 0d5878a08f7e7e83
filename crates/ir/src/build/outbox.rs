//! Outboxes: register tiles on their way to global memory through shared memory and TMA.

use super::eights::Eights;
use super::flow::elect;
use super::frag::Frag;
use super::operand::Half;
use super::raw::{Map, Named, bulk_commit, bulk_wait_read, fence_async};
use super::reg::{Coords, Var};
use super::state::{error, here, with};
use super::tile::{Tile, TileRef, add};
use super::warp::{role_threads, warp_sync};
use crate::loc::Frame;
use crate::types::Element;
use crate::value::RoleId;
use half::{bf16, f16};

/// What the builder knows of an outbox.
pub(crate) struct OutboxState {
    name: String,
    /// The role that sends, and which stage comes next.
    sender: Option<(RoleId, Var<u32>)>,
}

/// Staging tiles from which TMA copies results to global memory while the
/// role that sent them goes on.
///
/// A stage is written when the copy that last read it is through; copies of
/// other stages go on. Waits, fences and the drain at the role's end are
/// derived.
#[derive(Clone, Copy, Debug)]
pub struct Outbox<T> {
    index: usize,
    stages: u32,
    tile: Tile<T>,
    meet: Named,
}

/// An element type that a register tile can be stored as.
pub trait Stored: Element {
    /// Writes a register tile to shared memory, rounded.
    fn store(from: &Frag, to: &TileRef<Self>);
}
macro_rules! stored_half {
    ($($t:ty),*) => {$(
        impl Stored for $t {
            #[track_caller]
            fn store(from: &Frag, to: &TileRef<Self>) { from.store_matrix(to); }
        }
    )*};
}
stored_half!(bf16, f16);
impl Stored for f32 {
    #[track_caller]
    fn store(from: &Frag, to: &TileRef<f32>) {
        from.store(to);
    }
}
impl<T: Stored> Outbox<T> {
    pub(crate) fn new(name: &str, stages: u32, tile: Tile<T>, meet: Named) -> Self {
        let index = with(|s| {
            s.outboxes.push(OutboxState {
                name: name.to_owned(),
                sender: None,
            });
            s.outboxes.len() - 1
        });
        Self {
            index,
            stages: stages.max(1),
            tile,
            meet,
        }
    }

    /// Sends a tile to the tensor behind `map`, its first element to `coords` (innermost first).
    ///
    /// A tile wider than the outbox goes in several parts, stage by stage.
    #[track_caller]
    pub fn send<const R: usize>(self, tile: &Frag, map: Map, coords: impl Coords<R>) {
        let _at = here();
        let width = self.tile.layout.cols;
        let (held, shape) = (tile.values().len(), (tile.rows(), tile.cols()));
        self.post(held, shape, map, coords, |first, to| {
            T::store(&tile.slice(first..first + width), to);
        });
    }

    /// As [`send`](Self::send), with `f` applied on the way, to 16 columns after
    /// another (to all of an outbox whose width is no multiple of 16): it is
    /// told the first of them, and what it gives is stored before the next are
    /// worked on. So few values are under way at a time, and the role waits for
    /// room before the work and not behind it.
    #[track_caller]
    pub fn send_map<const R: usize>(
        self,
        tile: &Frag,
        map: Map,
        coords: impl Coords<R>,
        f: impl Fn(Frag, u32) -> Frag,
    ) {
        let _at = here();
        let (rows, width) = (self.tile.layout.rows, self.tile.layout.cols);
        let (held, shape) = (tile.values().len(), (tile.rows(), tile.cols()));
        let step = match width.is_multiple_of(16) {
            true => 16,
            false => width.max(1),
        };
        self.post(held, shape, map, coords, |first, to| {
            for col in (0..width).step_by(step as usize) {
                let from = first + col;
                let part = f(tile.slice(from..from + step), from);
                T::store(&part, &to.slice(0..rows, col..col + step));
            }
        });
    }

    /// As [`send`](Self::send), with rows and columns exchanged: the outbox has
    /// a row for each column of the tile.
    #[track_caller]
    pub fn send_transposed<const R: usize>(self, tile: &Frag, map: Map, coords: impl Coords<R>)
    where
        T: Half,
    {
        let _at = here();
        let (held, shape) = (tile.values().len(), (tile.cols(), tile.rows()));
        self.post_whole(held, shape, map, coords, |to| tile.store_transposed(to));
    }

    /// As [`send_transposed`](Self::send_transposed), of [`Eights`].
    #[track_caller]
    pub fn send_eights<const R: usize>(self, tile: &Eights, map: Map, coords: impl Coords<R>)
    where
        T: Half,
    {
        let _at = here();
        let (held, shape) = (tile.values().len(), (tile.cols(), tile.rows()));
        self.post_whole(held, shape, map, coords, |to| tile.store_transposed(to));
    }

    /// Posts a tile whose rows are as long as the outbox's, all columns at once.
    #[track_caller]
    fn post_whole<const R: usize>(
        self,
        held: usize,
        shape: (u32, u32),
        map: Map,
        coords: impl Coords<R>,
        store: impl Fn(&TileRef<T>),
    ) {
        match shape.1 == self.tile.layout.cols {
            true => self.post(held, shape, map, coords, |_, to| store(to)),
            false => self.refuse(shape.0, shape.1, map),
        }
    }

    /// Sends a tile as `rows` × `cols`, of which a thread holds so many values,
    /// part by part: `store` writes the part from a column on.
    #[track_caller]
    fn post<const R: usize>(
        self,
        held: usize,
        (rows, cols): (u32, u32),
        map: Map,
        coords: impl Coords<R>,
        store: impl Fn(u32, &TileRef<T>),
    ) {
        let (box_rows, width) = (self.tile.layout.rows, self.tile.layout.cols);
        let box_cols = map.bytes() / (box_rows * self.tile.layout.element).max(1);
        let boxed = box_cols > 0 && width.is_multiple_of(box_cols);
        // A warp's tile is the warp's: a role of several has as many.
        let once = held as u32 * role_threads() == rows * cols;
        if R == 0 || rows != box_rows || !cols.is_multiple_of(width) || !boxed || !once {
            self.refuse(rows, cols, map);
            return;
        }
        let Some(stage) = self.sender() else { return };
        for first in (0..cols).step_by(width as usize) {
            let now = stage.get();
            // What this stage held before has left it.
            elect(|| bulk_wait_read(self.stages - 1));
            self.meet();
            let staged = self.tile.stage(now);
            store(first, &staged);
            fence_async();
            self.meet();
            elect(|| {
                for col in (0..width).step_by(box_cols as usize) {
                    let part = staged.slice(0..box_rows, col..col + box_cols);
                    let coords = coords.coords();
                    let mut at = coords.map(|c| add(c, 0));
                    at[0] = add(coords[0], first + col);
                    map.store(part, at);
                }
                bulk_commit();
            });
            if self.stages > 1 {
                let next = now + 1;
                stage.set(super::select(next.eq(self.stages), 0u32, next));
            }
        }
    }

    #[track_caller]
    fn refuse(self, rows: u32, cols: u32, map: Map) {
        error(
            "outbox-shape",
            format!(
                "an outbox of {} x {}, copied in boxes of {} bytes, takes tiles of as many rows and a multiple of its columns, one of the whole role; not {rows} x {cols} in {} warps",
                self.tile.layout.rows,
                self.tile.layout.cols,
                map.bytes(),
                role_threads() / 32,
            ),
        );
    }

    /// The role's threads meet.
    #[track_caller]
    fn meet(self) {
        match role_threads() {
            32 => warp_sync(),
            threads => self.meet.sync(threads),
        }
    }

    /// The stage that comes next, of the role that sends.
    #[track_caller]
    fn sender(self) -> Option<Var<u32>> {
        let frame = Frame::caller();
        let known = with(|s| match (s.outboxes[self.index].sender, s.role) {
            (Some((sender, stage)), Some(role)) if sender == role => Some(Some(stage)),
            (None, Some(_)) => None,
            _ => {
                let text = format!(
                    "outbox {} is sent from one role, not from {} as well",
                    s.outboxes[self.index].name,
                    s.role_name()
                );
                s.error("outbox-role", text, frame, None);
                Some(None)
            }
        });
        known.unwrap_or_else(|| {
            let stage = Var::carried(0u32);
            with(|s| {
                let role = s.role?;
                s.outboxes[self.index].sender = Some((role, stage));
                Some(stage)
            })
        })
    }
}

/// At the end of a role: its shared memory stays until the last copy has read it.
#[track_caller]
pub(super) fn drain() {
    let sends = with(|s| {
        let role = s.role;
        let mut senders = s.outboxes.iter().filter_map(|o| o.sender);
        senders.any(|(r, _)| Some(r) == role)
    });
    if sends {
        elect(|| bulk_wait_read(0));
    }
}
