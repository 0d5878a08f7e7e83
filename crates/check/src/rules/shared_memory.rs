//! R12, shared memory: size, placement and overlap.

use super::RuleContext;
use crate::codes;
use crate::diagnostic::{Findings, Message, Rule};
use warpline_ir::{Kernel, TileInfo};

/// The rules of this group.
pub const RULES: &[Rule] = &[SIZE, TILE, ALIGN, INSIDE, OVERLAP];

const SIZE: Rule = codes::R12_SIZE;
const TILE: Rule = codes::R12_TILE;
const ALIGN: Rule = codes::R12_ALIGN;
const INSIDE: Rule = codes::R12_INSIDE;
const OVERLAP: Rule = codes::R12_OVERLAP;

pub(crate) fn check<'k>(cx: &RuleContext<'k>, found: &mut Findings<'k>) {
    let kernel = cx.kernel;
    let all = u64::from(kernel.shared_bytes);
    let most = cx.target.shared_bytes;
    if all > u64::from(most) {
        // Shrinking the largest tile helps most.
        let largest = kernel.tiles.iter().max_by_key(|t| tile_bytes(t));
        let loc = largest.map_or(Default::default(), |t| t.loc);
        let text = Message::new(format!(
            "the kernel needs {all} bytes of shared memory; a CTA of {} has {most}",
            cx.target.name
        ))
        .label("the largest tile");
        found.report(&SIZE, loc, None, text);
    }
    check_tiles(kernel, found);
    for tile in &kernel.tiles {
        let align = tile.layout.swizzle.align();
        if !tile.offset.is_multiple_of(align) {
            let text = format!(
                "tile `{}` ({}) starts at byte {}; it must start at a multiple of {align}",
                tile.name, tile.layout.swizzle, tile.offset
            );
            found.report(&ALIGN, tile.loc, None, text);
        }
    }
    for b in &kernel.barriers {
        if !b.offset.is_multiple_of(8) {
            let text = format!(
                "mbarriers `{}` start at byte {}, which is not a multiple of 8",
                b.name, b.offset
            );
            found.report(&ALIGN, b.loc, None, text);
        }
    }
    let byte_ranges = byte_ranges(kernel);
    for (i, range) in byte_ranges.iter().enumerate() {
        if range.end > all {
            let text = format!(
                "`{}` ends at byte {}, and shared memory has {all} bytes",
                range.name, range.end
            );
            found.report(&INSIDE, range.loc, None, text);
        }
        for other in &byte_ranges[..i] {
            let are_disjoint = range.end <= other.start || other.end <= range.start;
            let is_declared = range.alias_root.is_some() && range.alias_root == other.alias_root;
            if !are_disjoint && !is_declared {
                let text = format!(
                    "`{}` (bytes {}..{}) overlaps `{}` (bytes {}..{}), and neither is declared an alias",
                    range.name, range.start, range.end, other.name, other.start, other.end
                );
                found.report(&OVERLAP, range.loc, None, text);
                found.label(
                    format!("`{}` is declared here", other.name),
                    other.loc,
                    None,
                );
            }
        }
    }
}

/// Checks each tile by itself.
pub(crate) fn check_tiles(kernel: &Kernel, found: &mut Findings) {
    for tile in &kernel.tiles {
        if let Some(text) = bad_tile(tile) {
            found.report(&TILE, tile.loc, None, text);
        }
    }
}

/// The bytes of a tile or an mbarrier array.
struct ByteRange<'k> {
    name: &'k str,
    loc: warpline_ir::Loc,
    start: u64,
    end: u64,
    /// The tile at the end of its chain of aliases; `None` for mbarriers.
    alias_root: Option<usize>,
}

fn byte_ranges(kernel: &Kernel) -> Vec<ByteRange<'_>> {
    let tiles = kernel.tiles.iter().enumerate().map(|(i, t)| ByteRange {
        name: &t.name,
        loc: t.loc,
        start: t.offset.into(),
        end: u64::from(t.offset) + tile_bytes(t),
        alias_root: Some(alias_root(kernel, i)),
    });
    let barriers = kernel.barriers.iter().map(|b| ByteRange {
        name: &b.name,
        loc: b.loc,
        start: b.offset.into(),
        end: u64::from(b.offset) + 8 * u64::from(b.len),
        alias_root: None,
    });
    tiles.chain(barriers).collect()
}

/// Returns the tile at the end of a chain of aliases. The number of tiles limits the search,
/// because the chain may be a cycle.
fn alias_root(kernel: &Kernel, tile: usize) -> usize {
    let mut root = tile;
    for _ in 0..kernel.tiles.len() {
        match kernel.tiles[root].alias {
            Some(next) => root = next.index(),
            None => break,
        }
    }
    root
}

/// Returns the bytes of a tile. Unlike [`TileInfo::bytes`], it does not overflow.
fn tile_bytes(tile: &TileInfo) -> u64 {
    let l = &tile.layout;
    let rows = u64::from(l.rows).saturating_mul(u64::from(l.cols));
    rows.saturating_mul(l.element_bytes.into())
        .min(u64::MAX >> 32)
        .next_multiple_of(l.swizzle.align().into())
        .saturating_mul(tile.stages.into())
}

/// Returns an error message for an illegal tile.
pub(super) fn bad_tile(tile: &TileInfo) -> Option<String> {
    let l = &tile.layout;
    let name = &tile.name;
    if l.rows == 0 || l.cols == 0 || tile.stages == 0 {
        return Some(format!(
            "tile `{name}` is {}×{} with {} stages; each must be at least 1",
            l.rows, l.cols, tile.stages
        ));
    }
    if l.element_bytes as usize != tile.dtype.bytes() {
        return Some(format!(
            "the layout of tile `{name}` has elements of {} bytes, and {} has {}",
            l.element_bytes,
            tile.dtype,
            tile.dtype.bytes()
        ));
    }
    // Shared-memory addresses have 32 bits.
    if tile_bytes(tile) > u64::from(u32::MAX / 2) {
        return Some(format!(
            "tile `{name}`, {}×{} of {} in {} stages, has 2^31 bytes or more",
            l.rows, l.cols, tile.dtype, tile.stages
        ));
    }
    let row = u64::from(l.cols) * u64::from(l.element_bytes);
    match l.swizzle.span() {
        Some(span) if !row.is_multiple_of(span.into()) => Some(format!(
            "a row of tile `{name}` has {row} bytes; with {} it must be a multiple of {span}",
            l.swizzle
        )),
        _ => None,
    }
}
