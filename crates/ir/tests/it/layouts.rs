//! Tile layouts: element offsets are distinct, swizzles are involutions, and wgmma
//! descriptors address the elements of the layout.

use proptest::prelude::*;
use std::collections::HashSet;
use warpline_ir::{Major, Swizzle, TileLayout, WgmmaDescriptor, accumulator_at};

const SWIZZLES: [Swizzle; 4] = [Swizzle::None, Swizzle::B32, Swizzle::B64, Swizzle::B128];

/// Generates tiles with rows, panels and element sizes that fit their swizzle.
fn tiles() -> impl Strategy<Value = TileLayout> {
    (0..4usize, 1..40u32, 1..4u32, 0..3u32).prop_map(|(s, rows, panels, size)| {
        let (swizzle, element) = (SWIZZLES[s], 1 << size);
        let span = swizzle.span().unwrap_or(48);
        TileLayout {
            element_bytes: element,
            rows,
            cols: panels * span / element,
            swizzle,
        }
    })
}

proptest! {
    #[test]
    fn element_offsets_are_distinct(t in tiles()) {
        let mut seen = HashSet::new();
        for row in 0..t.rows {
            for col in 0..t.cols {
                let at = t.offset(row, col);
                prop_assert!(at.is_multiple_of(t.element_bytes) && at + t.element_bytes <= t.stage_bytes());
                prop_assert!(seen.insert(at), "two elements at {at}");
            }
        }
    }

    #[test]
    fn swizzle_is_its_own_inverse_on_16_byte_chunks(byte in 0..1u32 << 20, s in 0..4usize) {
        let swizzle = SWIZZLES[s];
        prop_assert_eq!(swizzle.apply(swizzle.apply(byte)), byte);
        prop_assert_eq!(swizzle.apply(byte) % 16, byte % 16);
        let span = swizzle.span().unwrap_or(1);
        prop_assert_eq!(swizzle.apply(byte) / span, byte / span, "stays in its row");
    }

    #[test]
    fn stages_are_aligned_to_the_swizzle(t in tiles()) {
        prop_assert!(t.stage_bytes().is_multiple_of(t.swizzle.align()));
        prop_assert!(t.stage_bytes() >= t.rows * t.row_bytes());
    }

    /// The 16-byte chunks of one column in 8 adjacent rows are in different bank groups.
    #[test]
    fn eight_rows_of_one_chunk_use_eight_bank_groups(chunk in 0..8u32, first in 0..8u32) {
        let t = TileLayout { element_bytes: 2, rows: 64, cols: 64, swizzle: Swizzle::B128 };
        let banks: HashSet<u32> = (0..8).map(|r| t.offset(first * 8 + r, chunk * 8) % 128 / 16).collect();
        prop_assert_eq!(banks.len(), 8);
    }
}

/// Computes an address from a descriptor as the hardware does: 8-row groups by the stride
/// offset, panels by the leading offset, and the swizzle on the final address.
fn descriptor_address(t: &TileLayout, major: Major, start: u32, mn: u32, k: u32) -> u32 {
    let (lo, hi) = t.descriptor(WgmmaDescriptor { major });
    let (leading, stride) = ((lo >> 16 & 0x3fff) << 4, (hi & 0x3fff) << 4);
    let span = match hi >> 30 {
        1 => 128,
        2 => 64,
        3 => 32,
        _ => panic!("an unswizzled tile has no descriptor"),
    };
    let linear = match major {
        Major::K => start + mn / 8 * stride + mn % 8 * span + k * t.element_bytes,
        Major::Mn => {
            let panel_cols = span / t.element_bytes;
            start
                + mn / panel_cols * leading
                + k / 8 * stride
                + k % 8 * span
                + mn % panel_cols * t.element_bytes
        }
    };
    t.swizzle.apply(linear)
}

#[test]
fn descriptors_address_the_elements_of_the_layout() {
    for swizzle in [Swizzle::B32, Swizzle::B64, Swizzle::B128] {
        let span = swizzle.span().expect("swizzled");
        // K-major: [mn, k], one instruction K of 16 at a time.
        let t = TileLayout {
            element_bytes: 2,
            rows: 64,
            cols: span / 2,
            swizzle,
        };
        for k0 in (0..t.cols).step_by(16) {
            for (mn, k) in (0..64).flat_map(|mn| (0..16).map(move |k| (mn, k))) {
                let start = t.unswizzled_offset(0, k0);
                assert_eq!(
                    descriptor_address(&t, Major::K, start, mn, k),
                    t.offset(mn, k0 + k)
                );
            }
        }
        // MN-major: [k, mn], over several panels.
        let t = TileLayout {
            element_bytes: 2,
            rows: 32,
            cols: span * 2,
            swizzle,
        };
        for k0 in [0, 16] {
            for (mn, k) in (0..t.cols).flat_map(|mn| (0..16).map(move |k| (mn, k))) {
                let start = t.unswizzled_offset(k0, 0);
                assert_eq!(
                    descriptor_address(&t, Major::Mn, start, mn, k),
                    t.offset(k0 + k, mn)
                );
            }
        }
    }
}

#[test]
fn accumulator_layout_covers_the_tile() {
    for n in [8, 64, 176, 256] {
        let mut seen = HashSet::new();
        for (warp, lane) in (0..4).flat_map(|w| (0..32).map(move |l| (w, l))) {
            for i in 0..n / 2 {
                let at = accumulator_at(warp, lane, i);
                assert!(at.0 < 64 && at.1 < n && seen.insert(at));
            }
        }
        assert_eq!(seen.len() as u32, 64 * n);
    }
}

#[test]
fn only_views_of_whole_atoms_are_aligned() {
    let t = TileLayout {
        element_bytes: 2,
        rows: 128,
        cols: 128,
        swizzle: Swizzle::B128,
    };
    assert!(t.is_atom_aligned(0, 128, 0, 128));
    assert!(t.is_atom_aligned(64, 64, 64, 64), "whole panels");
    assert!(
        t.is_atom_aligned(8, 8, 16, 16),
        "16-byte chunks inside a panel"
    );
    assert!(!t.is_atom_aligned(4, 8, 0, 64), "half an atom");
    assert!(!t.is_atom_aligned(0, 8, 4, 8), "half a chunk");
    assert!(!t.is_atom_aligned(0, 8, 32, 64), "across a panel's edge");
}
