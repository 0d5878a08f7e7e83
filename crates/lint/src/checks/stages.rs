//! The number of stages of rings.

use super::{data_bytes, is_small};
use crate::finding::LintFinding;
use crate::input::{FindingList, LintInput};
use warpline_check::Facts;
use warpline_cpu::Stats;
use warpline_ir::{
    AccessKind, Completion, Kernel, MemoryAddress, MemoryRegion, Proxy, RoleId, StmtKind, TileId,
    TileInfo,
};

/// The fewest stages of a ring: with one stage, producer and consumer alternate and never overlap.
pub const MIN_STAGES: u32 = 2;

/// The most stages of a ring: they hide the latency of memory, and the shared memory of further
/// stages is better spent on larger tiles.
pub const MAX_STAGES: u32 = 6;

pub(crate) fn run(input: &LintInput<'_>, mut findings: FindingList<'_>) -> Vec<LintFinding> {
    let kernel = input.kernel;
    let rings = rings(kernel);
    let mut needs_run = false;
    for ring in &rings {
        let (tile, name) = (kernel.tile(ring[0]), names(kernel, ring));
        match tile.stages {
            MIN_STAGES..=MAX_STAGES => {}
            1 => match &input.stats {
                Ok(stats) if fills(stats, kernel, ring[0]) > 1.0 => {
                    let text = format!(
                        "{name} has 1 stage and is filled {:.1} times per CTA; {MIN_STAGES} to {MAX_STAGES} stages overlap loads and compute",
                        fills(stats, kernel, ring[0])
                    );
                    findings.warn_tile(text, tile);
                }
                // A tile that is filled once is not a ring.
                Ok(_) => {}
                Err(_) => needs_run = true,
            },
            n => {
                let text =
                    format!("{name} has {n} stages; {MIN_STAGES} to {MAX_STAGES} are enough");
                findings.warn_tile(text, tile);
            }
        }
    }
    if let (true, Err(why)) = (needs_run, &input.stats) {
        return findings.skip(why);
    }
    let stages = |ring: &Vec<TileId>| kernel.tile(ring[0]).stages;
    let rings: Vec<String> = (rings.iter())
        .filter(|ring| stages(ring) > 1)
        .map(|ring| format!("{} has {} stages", names(kernel, ring), stages(ring)))
        .collect();
    findings.or_pass(|| match rings.len() {
        0 => "the kernel has no ring".to_owned(),
        _ => rings.join(", "),
    })
}

/// Returns the rings: tiles with several stages, and tiles that pass from one role or a TMA copy to
/// another role. Tiles declared in one line form one ring.
pub(super) fn rings(kernel: &Kernel) -> Vec<Vec<TileId>> {
    let is_passed = passed_between_roles(kernel);
    let mut rings: Vec<Vec<TileId>> = Vec::new();
    for (i, tile) in kernel.tiles.iter().enumerate() {
        if is_small(tile) || tile.stages == 1 && !is_passed[i] {
            continue;
        }
        let line = |t: &TileInfo| kernel.locs.author(t.loc).map(|at| (at.file, at.line));
        let same_ring = |t: &TileInfo| line(t) == line(tile) && t.stages == tile.stages;
        match rings.iter_mut().find(|r| same_ring(kernel.tile(r[0]))) {
            Some(ring) => ring.push(TileId(i as u32)),
            None => rings.push(vec![TileId(i as u32)]),
        }
    }
    rings
}

/// Returns the names of the tiles of a ring.
pub(super) fn names(kernel: &Kernel, ring: &[TileId]) -> String {
    let names: Vec<&str> = ring.iter().map(|&t| &*kernel.tile(t).name).collect();
    format!("tile `{}`", names.join("` and `"))
}

/// Returns how often a CTA fills the most-used stage of a tile, on average.
pub(super) fn fills(stats: &Stats, kernel: &Kernel, tile: TileId) -> f64 {
    let whole = data_bytes(kernel.tile(tile)) * stats.ctas;
    let written = stats.tiles.get(tile.index()).map(|t| &t.written[..]);
    let most = written.into_iter().flatten().copied().max().unwrap_or(0);
    most as f64 / whole.max(1) as f64
}

/// By tile: does one role, or a bulk copy that signals an mbarrier, write it, and another role read
/// it?
fn passed_between_roles(kernel: &Kernel) -> Vec<bool> {
    let mut by_engine = vec![false; kernel.tiles.len()];
    let mut writers: Vec<Vec<RoleId>> = vec![Vec::new(); kernel.tiles.len()];
    let mut readers = writers.clone();
    kernel.each_stmt(&mut |role, stmt| {
        let (Some(role), StmtKind::Op(op)) = (role, &stmt.kind) else {
            return;
        };
        for touch in Facts::of(op).touches {
            let tile = match touch.memory {
                MemoryRegion::PerLane(MemoryAddress::Shared(p), _)
                | MemoryRegion::Shared(p, _)
                | MemoryRegion::MatrixRows(p, _) => p.tile,
                MemoryRegion::View(v) => v.tile,
                _ => continue,
            };
            // A remote store of a single thread is not a copy of a block.
            let bulk = touch.proxy == Proxy::Bulk;
            let signals = bulk && matches!(touch.completion, Completion::Bytes(_));
            match touch.access {
                AccessKind::Read => readers[tile.index()].push(role),
                _ => writers[tile.index()].push(role),
            }
            by_engine[tile.index()] |= signals && touch.access != AccessKind::Read;
        }
    });
    let others = |i: usize| writers[i].iter().any(|w| readers[i].iter().any(|r| r != w));
    (0..kernel.tiles.len())
        .map(|i| by_engine[i] || others(i))
        .collect()
}
