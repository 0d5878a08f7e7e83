//! What the kernels share: slots of 128 bytes, and places in a ring of them.

use warpline_ir::build::*;

/// Elements of a slot.
pub(crate) const WORDS: u32 = 32;
/// Bytes of a slot.
pub(crate) const BYTES: u32 = 4 * WORDS;

/// A ring in the raw layer: slots, and a barrier to say full and empty for each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ring {
    pub(crate) stages: u32,
    pub(crate) slots: Tile<f32>,
    pub(crate) full: Bar,
    pub(crate) empty: Bar,
}

impl Ring {
    /// A ring that one thread fills and that `readers` warps empty.
    pub(crate) fn new(k: Builder, name: &str, stages: u32, readers: u32) -> Self {
        let slots = k.tile(name, 1, WORDS).plain().stages(stages).declare();
        Self {
            stages,
            slots,
            full: k.barrier(&format!("{name}.full"), stages).count(1),
            empty: k.barrier(&format!("{name}.empty"), stages).count(readers),
        }
    }

    /// Where its producer starts: the first waits for empty slots pass.
    #[track_caller]
    pub(crate) fn fills(self) -> Cursor {
        Cursor::new(self.stages, 1)
    }

    /// Where its consumers start.
    #[track_caller]
    pub(crate) fn reads(self) -> Cursor {
        Cursor::new(self.stages, 0)
    }

    /// Waits for an empty slot and has slot `i` of `x` brought there.
    #[track_caller]
    pub(crate) fn fill(self, at: Cursor, x: Global<f32>, i: Reg<u32>) {
        let stage = at.stage();
        self.empty.at(stage).wait(at.parity());
        self.bring(stage, x, i);
        at.advance();
    }

    /// Has slot `i` of `x` brought to a stage.
    #[track_caller]
    pub(crate) fn bring(self, stage: Reg<u32>, x: Global<f32>, i: Reg<u32>) {
        let full = self.full.at(stage);
        bulk_load(self.slots.stage(stage), x.address(i * WORDS), BYTES, full);
        full.arrive_expect(BYTES);
    }

    /// Waits for a full slot, reads it and gives it back.
    #[track_caller]
    pub(crate) fn read(self, at: Cursor) {
        self.full.at(at.stage()).wait(at.parity());
        self.look(at.stage());
        give_back(self.empty.at(at.stage()));
        at.advance();
    }

    /// Each lane reads its word of a slot.
    #[track_caller]
    pub(crate) fn look(self, stage: Reg<u32>) {
        self.slots.stage(stage).load(0u32, lane_id());
    }
}

/// The warp has read a slot: each lane fences, and one arrives.
#[track_caller]
pub(crate) fn give_back(empty: BarHandle) {
    fence_async();
    warp_sync();
    elect_lane(|| empty.arrive());
}

/// A place in a ring: a stage, and the parity of its next phase.
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

    /// Goes on to the next stage, after the last to the first of the next phase.
    #[track_caller]
    pub(crate) fn advance(self) {
        let (stage, parity) = (self.stage.get(), self.parity.get());
        let last = stage.eq(self.stages - 1);
        self.stage.set(select(last, 0u32, stage + 1));
        self.parity.set(select(last, parity ^ 1, parity));
    }

    /// Starts again at stage 0, with a parity.
    #[track_caller]
    pub(crate) fn restart(self, parity: u32) {
        self.stage.set(0u32);
        self.parity.set(parity);
    }
}
