//! Copies whose length depends on the launch.

use crate::rules::kernel;
use warpline_ir::Kernel;
use warpline_ir::builder::*;
use warpline_testkit::verdict::{proved, violations};

const TILE: u32 = 1024;

/// Loads the tiles of two vectors, where the last tile is shorter, and reads them.
fn tiles(
    declare: impl Fn(Reg<u32>) -> Reg<u32>,
    bytes_of: impl Fn(Reg<u32>) -> Reg<u32>,
) -> Kernel {
    kernel(|k| {
        let n = declare(k.param::<u32>("n"));
        let (a, b) = (k.pointer::<f32>("a"), k.pointer::<f32>("b"));
        let ring = k.ring("in", 3, |s| (s.vector::<f32>(TILE), s.vector::<f32>(TILE)));
        let total = (n * 4u32) & !15u32;
        let count = total.div_ceil(TILE * 4);
        let each = |body: &dyn Fn(Reg<u32>, Reg<u32>)| {
            range(cta_id(), count).step_by(grid_ctas()).each(|t| {
                let rest = total - t * (TILE * 4);
                body(t * TILE, bytes_of(rest.min(TILE * 4)));
            });
        };
        k.role("load").warps(1).body(|| {
            elect(|| {
                each(&|start, bytes| {
                    let slot = ring.acquire();
                    slot.load_bytes(slot.0, a.address(start), bytes);
                    slot.load_bytes(slot.1, b.address(start), bytes);
                    slot.commit();
                });
            });
        });
        k.role("read").warps(1).body(|| {
            each(&|_, _| {
                let slot = ring.wait();
                let _ = slot.0.load(0u32, lane_id());
                slot.release();
            });
        });
    })
}

#[test]
fn the_last_tile_of_a_vector_may_be_shorter() {
    proved(&tiles(|n| n.at_most(1 << 28), |bytes| bytes));
}

#[test]
fn a_copy_longer_than_its_tile_is_refuted() {
    let found = violations(&tiles(|n| n.at_most(1 << 28), |bytes| bytes + 16u32));
    assert!(!found.is_empty());
}

#[test]
fn a_copy_length_that_is_no_multiple_of_16_is_refuted() {
    let found = violations(&tiles(
        |n| n.at_most(1 << 28),
        |bytes| bytes.max(8u32) - 8u32,
    ));
    assert!(!found.is_empty());
}
