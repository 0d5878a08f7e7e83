//! The accesses that are ordered before the completion of a copy.

use crate::rules::kernel;
use warpline_ir::builder::*;
use warpline_testkit::verdict::{RuleViolation, violations};

/// One warp runs `before` and `after` around a copy; another warp runs `then` when the copy is
/// complete.
fn races_around_copy(
    before: impl FnOnce(TileRef<u32>),
    after: impl FnOnce(TileRef<u32>),
    then: impl FnOnce(TileRef<u32>),
) -> Vec<RuleViolation> {
    let k = kernel(|k| {
        let data = k.pointer::<u32>("data");
        let words = k.tile::<u32>("words", 1, 32).unswizzled().declare();
        let to = k.tile::<u32>("to", 1, 32).unswizzled().declare();
        let full = k.barrier("full", 1).arrivals(1);
        k.role("copy").body(|| {
            elect_lane(|| {
                let bar = full.at(0u32);
                bar.arrive_expect(128u32);
                before(words.stage(0u32));
                bulk_load(to.whole(), data.address(0u32), 128u32, bar);
                after(words.stage(0u32));
            });
        });
        k.role("wait").body(|| {
            full.at(0u32).wait(0u32);
            elect_lane(|| then(words.stage(0u32)));
        });
    });
    violations(&k)
}

fn read(word: u32) -> impl FnOnce(TileRef<u32>) {
    move |words| {
        // Another word receives the value, so that the load is not dead.
        let value = words.load(0u32, word);
        words.store(0u32, word + 16, value);
    }
}

#[test]
fn reads_before_a_copy_are_ordered_before_its_completion() {
    let write = |word| move |words: TileRef<u32>| words.store(0u32, word, 1u32);
    assert_eq!(races_around_copy(read(0), |_| (), write(0)), []);
    // Reads after the copy are not ordered, even in the same warp and tile.
    let found = races_around_copy(read(0), read(1), write(1));
    assert_eq!(found.iter().map(|f| f.0).collect::<Vec<_>>(), ["R3.order"]);
}

#[test]
fn writes_before_a_copy_are_not_published_by_its_completion() {
    let write = |words: TileRef<u32>| words.store(0u32, 0u32, 1u32);
    let found = races_around_copy(write, |_| (), read(0));
    assert_eq!(found.iter().map(|f| f.0).collect::<Vec<_>>(), ["R3.order"]);
}
