//! R12, shared memory: how much, where, and who lies on whom.

use super::Case;
use crate::refusal::{Findings, Rule};
use warpline_ir::{Kernel, Tile};

/// The rules of this group.
pub const RULES: &[Rule] = &[SIZE, TILE, ALIGN, INSIDE, OVERLAP];

const SIZE: Rule = Rule {
    code: "R12.size",
    holds: "a CTA has no more shared memory than the target gives it",
};
const TILE: Rule = Rule {
    code: "R12.tile",
    holds: "a tile has elements and stages, and its rows are whole swizzle spans",
};
const ALIGN: Rule = Rule {
    code: "R12.align",
    holds: "a tile starts where its swizzle pattern does, an mbarrier at a multiple of 8",
};
const INSIDE: Rule = Rule {
    code: "R12.inside",
    holds: "tiles and mbarriers lie inside the CTA's shared memory",
};
const OVERLAP: Rule = Rule {
    code: "R12.overlap",
    holds: "tiles share bytes only where one is declared an alias, and mbarriers share none",
};

pub(crate) fn judge<'k>(case: &Case<'k>, found: &mut Findings<'k>) {
    let kernel = case.kernel;
    let all = u64::from(kernel.shared_bytes);
    let most = case.target.shared_bytes;
    if all > u64::from(most) {
        // The largest tile is where an author can give way.
        let largest = kernel.tiles.iter().max_by_key(|t| tile_bytes(t));
        let loc = largest.map_or(Default::default(), |t| t.loc);
        let text = format!(
            "a CTA of {} has {most} bytes of shared memory; the kernel needs {all}",
            case.target.name
        );
        found.refuse(&SIZE, loc, None, text);
    }
    judge_tiles(kernel, found);
    for tile in &kernel.tiles {
        let align = tile.layout.swizzle.align();
        if !tile.offset.is_multiple_of(align) {
            let text = format!(
                "a tile with {} starts at a multiple of {align} bytes; {} starts at {}",
                tile.layout.swizzle, tile.name, tile.offset
            );
            found.refuse(&ALIGN, tile.loc, None, text);
        }
    }
    for b in &kernel.barriers {
        if !b.offset.is_multiple_of(8) {
            let text = format!(
                "an mbarrier is at a multiple of 8 bytes; {} starts at {}",
                b.name, b.offset
            );
            found.refuse(&ALIGN, b.loc, None, text);
        }
    }
    let runs = runs(kernel);
    for (i, run) in runs.iter().enumerate() {
        if run.end > all {
            let text = format!(
                "shared memory has {all} bytes; {} ends at {}",
                run.name, run.end
            );
            found.refuse(&INSIDE, run.loc, None, text);
        }
        for other in &runs[..i] {
            let apart = run.end <= other.start || other.end <= run.start;
            let declared = run.family.is_some() && run.family == other.family;
            if !apart && !declared {
                let text = format!(
                    "{} (bytes {} to {}) lies on {} (bytes {} to {}, {}), and neither is declared an alias",
                    run.name,
                    run.start,
                    run.end,
                    other.name,
                    other.start,
                    other.end,
                    kernel.locs.show(other.loc)
                );
                found.refuse(&OVERLAP, run.loc, None, text);
            }
        }
    }
}

/// Judges each tile for itself.
pub(crate) fn judge_tiles(kernel: &Kernel, found: &mut Findings) {
    for tile in &kernel.tiles {
        if let Some(text) = bad_tile(tile) {
            found.refuse(&TILE, tile.loc, None, text);
        }
    }
}

/// Bytes that a tile or a barrier array takes.
struct Run<'k> {
    name: &'k str,
    loc: warpline_ir::Loc,
    start: u64,
    end: u64,
    /// The tile it is an alias of in the end; `None` for barriers.
    family: Option<usize>,
}

fn runs(kernel: &Kernel) -> Vec<Run<'_>> {
    let tiles = kernel.tiles.iter().enumerate().map(|(i, t)| Run {
        name: &t.name,
        loc: t.loc,
        start: t.offset.into(),
        end: u64::from(t.offset) + tile_bytes(t),
        family: Some(family(kernel, i)),
    });
    let barriers = kernel.barriers.iter().map(|b| Run {
        name: &b.name,
        loc: b.loc,
        start: b.offset.into(),
        end: u64::from(b.offset) + 8 * u64::from(b.len),
        family: None,
    });
    tiles.chain(barriers).collect()
}

/// The tile at the end of a chain of aliases (a cycle ends where it closes).
fn family(kernel: &Kernel, tile: usize) -> usize {
    let mut at = tile;
    for _ in 0..kernel.tiles.len() {
        match kernel.tiles[at].alias {
            Some(next) => at = next.index(),
            None => break,
        }
    }
    at
}

/// As [`Tile::bytes`], but safe for tiles of any size.
fn tile_bytes(tile: &Tile) -> u64 {
    let l = &tile.layout;
    let rows = u64::from(l.rows).saturating_mul(u64::from(l.cols));
    rows.saturating_mul(l.element.into())
        .min(u64::MAX >> 32)
        .next_multiple_of(l.swizzle.align().into())
        .saturating_mul(tile.stages.into())
}

/// What is wrong with a tile by itself.
pub(super) fn bad_tile(tile: &Tile) -> Option<String> {
    let l = &tile.layout;
    let name = &tile.name;
    if l.rows == 0 || l.cols == 0 || tile.stages == 0 {
        return Some(format!(
            "a tile has rows, columns and stages; {name} is {}×{} in {} stages",
            l.rows, l.cols, tile.stages
        ));
    }
    if l.element as usize != tile.dtype.bytes() {
        return Some(format!(
            "an element of {} has {} bytes; the layout of {name} has {}",
            tile.dtype,
            tile.dtype.bytes(),
            l.element
        ));
    }
    // Addresses are 32 bits wide: beyond, nothing can be said of the tile.
    if tile_bytes(tile) > u64::from(u32::MAX / 2) {
        return Some(format!(
            "a tile has less than 2^31 bytes; {name} is {}×{} of {} in {} stages",
            l.rows, l.cols, tile.dtype, tile.stages
        ));
    }
    let row = u64::from(l.cols) * u64::from(l.element);
    match l.swizzle.span() {
        Some(span) if !row.is_multiple_of(span.into()) => Some(format!(
            "the rows of a tile with {} are a multiple of {span} bytes; those of {name} have {row}",
            l.swizzle
        )),
        _ => None,
    }
}
