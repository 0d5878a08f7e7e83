use warpline_ir::{DType, Swizzle, TileLayout};
use warpline_testkit::raw::{RawKernel, plain, swizzled};

#[test]
fn disjoint_tiles_and_barriers_pass() {
    let mut k = RawKernel::one();
    k.tile(5, "a", swizzled(128), 4);
    k.tile(6, "b", plain(1, 1000), 1);
    k.barrier(7, "full", 4);
    k.passes();
}

#[test]
fn too_much_shared_memory_is_refuted() {
    let mut k = RawKernel::one();
    k.tile(5, "a", swizzled(128), 14);
    k.tile(6, "b", swizzled(128), 1);
    let text = k.refuted("R12.size", 5);
    assert!(
        text.contains("needs 245760 bytes of shared memory; a CTA of sm_90a has 232448"),
        "{text}"
    );
}

#[test]
fn a_huge_tile_is_refuted_without_a_panic() {
    let mut k = RawKernel::one();
    let tile = k.tile(5, "a", swizzled(128), 1);
    let t = &mut k.0.tiles[tile.index()];
    t.stages = u32::MAX;
    t.layout.rows = u32::MAX;
    k.0.shared_bytes = u32::MAX;
    let codes: Vec<_> = k.diagnostics().iter().map(|r| r.code()).collect();
    assert_eq!(codes, ["R12.size", "R12.tile", "R12.inside"]);
}

#[test]
fn a_tile_without_stages_is_refuted() {
    let mut k = RawKernel::one();
    k.tile(5, "a", swizzled(128), 0);
    k.refuted("R12.tile", 5);
}

#[test]
fn rows_that_are_not_a_multiple_of_the_swizzle_span_are_refuted() {
    let mut k = RawKernel::one();
    let layout = TileLayout {
        element_bytes: 2,
        rows: 64,
        cols: 48,
        swizzle: Swizzle::B128,
    };
    k.tile(5, "a", layout, 1);
    let text = k.refuted("R12.tile", 5);
    assert!(text.contains("a row of tile `a` has 96 bytes"), "{text}");
}

#[test]
fn a_layout_with_another_element_size_is_refuted() {
    let mut k = RawKernel::one();
    let tile = k.tile(5, "a", swizzled(64), 1);
    k.0.tiles[tile.index()].dtype = DType::E4m3;
    k.refuted("R12.tile", 5);
}

#[test]
fn a_tile_that_is_not_aligned_to_its_swizzle_is_refuted() {
    let mut k = RawKernel::one();
    let tile = k.tile(5, "a", swizzled(64), 1);
    k.0.tiles[tile.index()].offset = 512;
    k.0.shared_bytes += 512;
    let text = k.refuted("R12.align", 5);
    assert!(
        text.contains("tile `a` (swizzle 128B) starts at byte 512"),
        "{text}"
    );
}

#[test]
fn a_misaligned_barrier_is_refuted() {
    let mut k = RawKernel::one();
    let bar = k.barrier(5, "full", 2);
    k.0.barriers[bar.index()].offset = 4;
    k.0.shared_bytes += 4;
    k.refuted("R12.align", 5);
}

#[test]
fn a_tile_past_the_end_of_shared_memory_is_refuted() {
    let mut k = RawKernel::one();
    k.tile(5, "a", swizzled(64), 2);
    k.0.shared_bytes -= 8;
    let text = k.refuted("R12.inside", 5);
    assert!(
        text.contains("`a` ends at byte 16384, and shared memory has 16376 bytes"),
        "{text}"
    );
}

#[test]
fn barriers_past_the_end_of_shared_memory_are_refuted() {
    let mut k = RawKernel::one();
    k.barrier(5, "full", 4);
    k.0.shared_bytes -= 8;
    k.refuted("R12.inside", 5);
}

#[test]
fn overlapping_tiles_are_refuted() {
    let mut k = RawKernel::one();
    k.tile(5, "a", swizzled(64), 1);
    let b = k.tile(6, "b", swizzled(64), 1);
    k.0.tiles[b.index()].offset = 0;
    let text = k.refuted("R12.overlap", 6);
    assert!(
        text.contains("`b` (bytes 0..8192) overlaps `a` (bytes 0..8192)"),
        "{text}"
    );
}

#[test]
fn declared_aliases_may_overlap() {
    let mut k = RawKernel::one();
    let a = k.tile(5, "a", swizzled(64), 1);
    for line in [6, 7] {
        let b = k.tile(line, "b", swizzled(64), 1);
        k.0.tiles[b.index()].offset = 0;
        k.0.tiles[b.index()].alias = Some(a);
    }
    k.passes();
}

#[test]
fn a_barrier_that_overlaps_a_tile_is_refuted() {
    let mut k = RawKernel::one();
    k.tile(5, "a", swizzled(64), 1);
    let bar = k.barrier(6, "full", 1);
    k.0.barriers[bar.index()].offset = 1024;
    k.refuted("R12.overlap", 6);
}
