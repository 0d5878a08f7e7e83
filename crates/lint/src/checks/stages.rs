//! Stages of rings.

use super::{data_bytes, is_light};
use crate::case::{Answers, Case};
use crate::finding::Finding;
use warpline_check::Facts;
use warpline_cpu::Stats;
use warpline_ir::{Access, At, Completion, Kernel, Memory, Proxy, RoleId, StmtKind, Tile, TileId};

/// The fewest stages of a ring: with one, whoever fills it and whoever empties
/// it wait for each other in turn.
pub const FEWEST: u32 = 2;

/// The most stages of a ring: memory's latency is covered by then, and what
/// more stages take is better spent on larger tiles.
pub const MOST: u32 = 6;

pub(crate) fn look(case: &Case<'_>, mut answers: Answers<'_>) -> Vec<Finding> {
    let kernel = case.kernel;
    let rings = rings(kernel);
    let mut unsure = false;
    for ring in &rings {
        let (tile, name) = (kernel.tile(ring[0]), names(kernel, ring));
        match tile.stages {
            FEWEST..=MOST => {}
            1 => match &case.stats {
                Ok(stats) if fills(stats, kernel, ring[0]) > 1.0 => {
                    let text = format!(
                        "{name} has 1 stage and is filled {:.1} times per CTA: {FEWEST} to {MOST} overlap",
                        fills(stats, kernel, ring[0])
                    );
                    answers.warn_tile(text, tile);
                }
                // Filled once, it is no ring.
                Ok(_) => {}
                Err(_) => unsure = true,
            },
            n => {
                let text = format!("{name} has {n} stages, where {FEWEST} to {MOST} are enough");
                answers.warn_tile(text, tile);
            }
        }
    }
    if let (true, Err(why)) = (unsure, &case.stats) {
        return answers.and_not_looked(why);
    }
    let stages = |ring: &Vec<TileId>| kernel.tile(ring[0]).stages;
    let rings: Vec<String> = (rings.iter())
        .filter(|ring| stages(ring) > 1)
        .map(|ring| format!("{} has {} stages", names(kernel, ring), stages(ring)))
        .collect();
    answers.or_pass(|| match rings.len() {
        0 => "there is no ring".to_owned(),
        _ => rings.join(", "),
    })
}

/// Tiles with several stages, and those that are handed from one role, or from
/// an engine, to another; those that are declared in one line together.
pub(super) fn rings(kernel: &Kernel) -> Vec<Vec<TileId>> {
    let handed = handed_over(kernel);
    let mut rings: Vec<Vec<TileId>> = Vec::new();
    for (i, tile) in kernel.tiles.iter().enumerate() {
        if is_light(tile) || tile.stages == 1 && !handed[i] {
            continue;
        }
        let line = |t: &Tile| kernel.locs.author(t.loc).map(|at| (at.file, at.line));
        let alike = |t: &Tile| line(t) == line(tile) && t.stages == tile.stages;
        match rings.iter_mut().find(|r| alike(kernel.tile(r[0]))) {
            Some(ring) => ring.push(TileId(i as u32)),
            None => rings.push(vec![TileId(i as u32)]),
        }
    }
    rings
}

/// The tiles of a ring, by name.
pub(super) fn names(kernel: &Kernel, ring: &[TileId]) -> String {
    let names: Vec<&str> = ring.iter().map(|&t| &*kernel.tile(t).name).collect();
    format!("tile {}", names.join(" and "))
}

/// How often the fullest stage of a tile was filled in each CTA, on average.
pub(super) fn fills(stats: &Stats, kernel: &Kernel, tile: TileId) -> f64 {
    let whole = data_bytes(kernel.tile(tile)) * stats.ctas;
    let written = stats.tiles.get(tile.index()).map(|t| &t.written[..]);
    let most = written.into_iter().flatten().copied().max().unwrap_or(0);
    most as f64 / whole.max(1) as f64
}

/// By tile: is it written by one role, or by a bulk copy that tells an mbarrier,
/// and read by another?
fn handed_over(kernel: &Kernel) -> Vec<bool> {
    let mut by_engine = vec![false; kernel.tiles.len()];
    let mut writers: Vec<Vec<RoleId>> = vec![Vec::new(); kernel.tiles.len()];
    let mut readers = writers.clone();
    kernel.each_stmt(&mut |role, stmt| {
        let (Some(role), StmtKind::Op(op)) = (role, &stmt.kind) else {
            return;
        };
        for touch in Facts::of(op).touches {
            let tile = match touch.memory {
                Memory::At(At::Shared(p), _) | Memory::Run(p, _) | Memory::Rows(p, _) => p.tile,
                Memory::View(v) => v.tile,
                _ => continue,
            };
            // What single threads send to a peer is no copy of a block.
            let bulk = touch.proxy == Proxy::Bulk;
            let signals = bulk && matches!(touch.completion, Completion::Bytes(_));
            match touch.access {
                Access::Read => readers[tile.index()].push(role),
                _ => writers[tile.index()].push(role),
            }
            by_engine[tile.index()] |= signals && touch.access != Access::Read;
        }
    });
    let others = |i: usize| writers[i].iter().any(|w| readers[i].iter().any(|r| r != w));
    (0..kernel.tiles.len())
        .map(|i| by_engine[i] || others(i))
        .collect()
}
