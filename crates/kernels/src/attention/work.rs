//! The tiles of queries in the order in which CTAs compute them.
//!
//! Heads form *sections* whose K and V fit in the L2 together. Within a section the tiles with the most
//! keys come first, and all heads of a tile are neighbors. So the last tiles, which end at different
//! times, are short.

use super::config::Config;
use super::problem::{MAX_LEN, Problem};
use warpline_family::plan::LaunchStep;
use warpline_ir::builder::*;

/// The bytes of K and V that stay in the L2.
const SECTION_BYTES: u64 = 32 << 20;

/// The maximum number of tiles of a launch.
pub(super) const MAX_TILES: u64 = (1 << 31) - 1;

/// A tile of queries of one head.
#[derive(Clone, Copy)]
pub(super) struct Work {
    /// The first query.
    pub(super) query: Reg<u32>,
    /// The head of Q and O.
    pub(super) head: Reg<u32>,
    /// The head of K and V.
    pub(super) kv_head: Reg<u32>,
    pub(super) batch: Reg<u32>,
}

impl Work {
    /// Declares the parameters, and returns the tile of this CTA.
    pub(super) fn declare(k: Builder, tile_rows: u32) -> Self {
        let max_tiles = MAX_LEN.div_ceil(tile_rows);
        let tiles = k.param::<u32>("q_tiles").at_least(1).at_most(max_tiles);
        let counts = |name| k.param::<u32>(name).at_least(1).at_most(1 << 20);
        let [all, in_section] = ["all_kv_heads", "section_kv_heads"].map(counts);
        let [section_tiles, group, kv_heads] =
            ["section_tiles", "group", "kv_heads"].map(|name| k.divisor(name));
        let [group_size, batch_heads] = ["group_size", "batch_kv_heads"].map(counts);
        let i = cta_id();
        let section = section_tiles.divide(i);
        let first = section * in_section;
        let rest = i - section * (in_section * group_size * tiles);
        // The last section may have fewer heads.
        let heads = (all - first).min(in_section) * group_size;
        let turn = rest / heads;
        let head = rest - turn * heads;
        let pair = group.divide(head);
        let kv = first + pair;
        let batch = kv_heads.divide(kv);
        let kv_head = kv - batch * batch_heads;
        Self {
            query: (tiles - 1 - turn.min(tiles - 1)) * tile_rows,
            head: kv_head * group_size + (head - pair * group_size),
            kv_head,
            batch,
        }
    }

    /// Binds the parameters.
    pub(super) fn bind(step: LaunchStep, p: &Problem, c: &Config) -> LaunchStep {
        let group = p.heads / p.kv_heads();
        let all = p.batch * p.kv_heads();
        let row_bytes = 2 * u64::from(p.dim) * p.dtype.dtype().bytes() as u64;
        let bytes = (u64::from(p.keys) * row_bytes).max(1);
        let fitting = (SECTION_BYTES / bytes).clamp(1, 1 << 20) as u32;
        let section = (1 << fitting.ilog2()).min(all);
        let tiles = p.queries.div_ceil(c.tile_rows());
        step.scalar("q_tiles", tiles)
            .scalar("all_kv_heads", all)
            .scalar("section_kv_heads", section)
            .divisor("section_tiles", section * group * tiles)
            .divisor("group", group)
            .divisor("kv_heads", p.kv_heads())
            .scalar("group_size", group)
            .scalar("batch_kv_heads", p.kv_heads())
    }
}
