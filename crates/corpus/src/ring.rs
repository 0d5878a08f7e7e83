//! A ring of 128-byte slots with raw mbarriers, and its cursors.

use warpline_ir::builder::*;

/// Elements of a slot.
pub(crate) const WORDS: u32 = 32;
/// Bytes of a slot.
pub(crate) const BYTES: u32 = 4 * WORDS;

/// A ring of raw mbarriers: slots, with a full and an empty mbarrier for each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ring {
    pub(crate) stages: u32,
    pub(crate) slots: Tile<f32>,
    pub(crate) full: MbarrierArray,
    pub(crate) empty: MbarrierArray,
}

impl Ring {
    /// Declares a ring that one thread fills and `readers` warps empty.
    pub(crate) fn new(k: Builder, name: &str, stages: u32, readers: u32) -> Self {
        let slots = k.tile(name, 1, WORDS).unswizzled().stages(stages).declare();
        Self {
            stages,
            slots,
            full: k.barrier(&format!("{name}.full"), stages).arrivals(1),
            empty: k
                .barrier(&format!("{name}.empty"), stages)
                .arrivals(readers),
        }
    }

    /// Returns the cursor of the producer, whose first waits for empty slots pass.
    #[track_caller]
    pub(crate) fn producer_cursor(self) -> Cursor {
        Cursor::new(self.stages, 1)
    }

    /// Returns the cursor of a consumer.
    #[track_caller]
    pub(crate) fn consumer_cursor(self) -> Cursor {
        Cursor::new(self.stages, 0)
    }

    /// Waits for an empty slot and loads slot `i` of `x` into it.
    #[track_caller]
    pub(crate) fn fill(self, cursor: Cursor, x: Global<f32>, i: Reg<u32>) {
        let stage = cursor.stage();
        self.empty.at(stage).wait(cursor.parity());
        self.load_slot(stage, x, i);
        cursor.advance();
    }

    /// Loads slot `i` of `x` into a stage.
    #[track_caller]
    pub(crate) fn load_slot(self, stage: Reg<u32>, x: Global<f32>, i: Reg<u32>) {
        let full = self.full.at(stage);
        bulk_load(self.slots.stage(stage), x.address(i * WORDS), BYTES, full);
        full.arrive_expect(BYTES);
    }

    /// Waits for a full slot, reads it and releases it.
    #[track_caller]
    pub(crate) fn read(self, cursor: Cursor) {
        self.full.at(cursor.stage()).wait(cursor.parity());
        self.read_slot(cursor.stage());
        release_slot(self.empty.at(cursor.stage()));
        cursor.advance();
    }

    /// Reads one word of a slot in each lane.
    #[track_caller]
    pub(crate) fn read_slot(self, stage: Reg<u32>) {
        self.slots.stage(stage).load(0u32, lane_id());
    }
}

/// Releases a slot that the warp has read: each lane runs the proxy fence, and one lane arrives.
#[track_caller]
pub(crate) fn release_slot(empty: MbarrierHandle) {
    fence_async();
    warp_sync();
    elect_lane(|| empty.arrive());
}

/// A position in a ring: a stage, and the parity of its next phase.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor {
    stages: u32,
    stage: Var<u32>,
    parity: Var<u32>,
}

impl Cursor {
    #[track_caller]
    pub(crate) fn new(stages: u32, parity: u32) -> Self {
        Self {
            stages,
            stage: Var::new(0u32),
            parity: Var::new(parity),
        }
    }

    #[track_caller]
    pub(crate) fn stage(self) -> Reg<u32> {
        self.stage.get()
    }

    #[track_caller]
    pub(crate) fn parity(self) -> Reg<u32> {
        self.parity.get()
    }

    /// Advances to the next stage, and flips the parity after the last one.
    #[track_caller]
    pub(crate) fn advance(self) {
        let (stage, parity) = (self.stage.get(), self.parity.get());
        let last = stage.eq(self.stages - 1);
        self.stage.set(select(last, 0u32, stage + 1));
        self.parity.set(select(last, parity ^ 1, parity));
    }

    /// Restarts at stage 0 with a parity.
    #[track_caller]
    pub(crate) fn restart(self, parity: u32) {
        self.stage.set(0u32);
        self.parity.set(parity);
    }
}
