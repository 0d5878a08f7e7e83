//! What the bytes of a copy show to who waits for them.

use crate::rules::kernel;
use warpline_ir::builder::*;
use warpline_testkit::verdict::{Breach, breaches};

/// One warp does something before and after a copy, another what it does once the bytes are there.
fn around(
    before: impl FnOnce(TileRef<u32>),
    after: impl FnOnce(TileRef<u32>),
    then: impl FnOnce(TileRef<u32>),
) -> Vec<Breach> {
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
    breaches(&k)
}

fn read(word: u32) -> impl FnOnce(TileRef<u32>) {
    move |words| {
        // A value that is used: it is stored again, elsewhere.
        let value = words.load(0u32, word);
        words.store(0u32, word + 16, value);
    }
}

#[test]
fn reads_before_a_copy_are_over_when_its_bytes_are_there() {
    let write = |word| move |words: TileRef<u32>| words.store(0u32, word, 1u32);
    assert_eq!(around(read(0), |_| (), write(0)), []);
    // Also of the same warp and tile, those behind it are not.
    let found = around(read(0), read(1), write(1));
    assert_eq!(found.iter().map(|f| f.0).collect::<Vec<_>>(), ["R3.order"]);
}

#[test]
fn writes_before_a_copy_are_not_seen_with_its_bytes() {
    let write = |words: TileRef<u32>| words.store(0u32, 0u32, 1u32);
    let found = around(write, |_| (), read(0));
    assert_eq!(found.iter().map(|f| f.0).collect::<Vec<_>>(), ["R3.order"]);
}
