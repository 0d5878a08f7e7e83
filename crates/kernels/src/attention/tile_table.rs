//! The kernel that computes the records of packed queries: a thread for each tile of a head.

use super::config::Config;
use super::problem::{KeyLens, MAX_LEN, Problem};
use super::sequence::{KeyRange, MAX_SEQUENCES, QUERY_ENDS, RECORD_WORDS, range_of};
use super::workspace::Workspace;
use warpline_family::error::FamilyError;
use warpline_family::plan::{Buffer, LaunchStep};
use warpline_family::program::Program;
use warpline_ir::builder::*;
use warpline_ir::{BuildErrors, Kernel, Target};

/// The maximum number of records.
const MAX_TABLE_TILES: u32 = (1 << 29) - 1;
/// Threads of a CTA.
const THREADS: u32 = 128;

/// Returns the launch that computes the records.
pub(super) fn launch(
    p: &Problem,
    c: &Config,
    workspace: &Workspace,
    target: &Target,
) -> Result<LaunchStep, FamilyError> {
    let key_lens = p.sequence_class().and_then(|class| class.key_lens);
    let key = format!("attention tile table {key_lens:?}");
    let kernel = Program::cached(key, target, |target| build(key_lens, target))?;
    let tiles = c.head_tiles(p);
    let step = LaunchStep::new(kernel, [tiles.div_ceil(THREADS), 1, 1])
        .scalar("tiles", tiles)
        .scalar("rows", c.tile_queries())
        .divisor("rows_divisor", c.tile_queries())
        .scalar("sequences", p.batch)
        .scalar("search_steps", p.batch.next_power_of_two().ilog2())
        .scalar("queries", p.queries)
        .scalar("keys", p.max_keys())
        .pointer(QUERY_ENDS, Buffer::named(&p.inputs(), QUERY_ENDS)?)
        .pointer("table", workspace.table);
    KeyRange::bind(step, p)
}

fn build(key_lens: Option<KeyLens>, target: &Target) -> Result<Kernel, BuildErrors> {
    Kernel::build("attention_tile_table", target, |k| {
        let tiles = k.param::<u32>("tiles").at_least(1).at_most(MAX_TABLE_TILES);
        let rows = k.param::<u32>("rows").at_least(1).at_most(256);
        let rows_divisor = k.divisor("rows_divisor");
        let sequences = k
            .param::<u32>("sequences")
            .at_least(1)
            .at_most(MAX_SEQUENCES);
        let search_steps = k.param::<u32>("search_steps").at_most(32);
        let max_queries = k.param::<u32>("queries").at_most(MAX_LEN);
        let keys = k.param::<u32>("keys").at_most(MAX_LEN);
        let ends = k
            .pointer::<u32>(QUERY_ENDS)
            .elements(extent(sequences) + 1u64);
        let keys = KeyRange::declare(k, key_lens, sequences, keys);
        let table = k
            .pointer::<u32>("table")
            .elements(extent(tiles) * RECORD_WORDS);
        k.role("all").warps(THREADS / 32).body(|| {
            let tile = cta_id() * THREADS + thread_id();
            if_(tile.lt(tiles), || {
                // The last sequence whose first tile is not behind this one.
                let first_tile = |b: Reg<u32>| rows_divisor.divide(ends.load(b)) + b;
                let first = (0u32.reg(), sequences);
                let (batch, _) = steps(search_steps).fold(first, |_, (low, high)| {
                    let middle = (low + high) / 2;
                    let is_before = first_tile(middle).le(tile);
                    (
                        select(is_before, middle, low),
                        select(is_before, high, middle),
                    )
                });
                let [query_start, queries] = range_of(ends, batch);
                let queries = queries.min(max_queries);
                let query = (tile - first_tile(batch)) * rows;
                let [key_start, keys] = keys.of(batch);
                let keys = select(query.lt(queries), keys, 0u32);
                let at = tile * RECORD_WORDS;
                table.store_vec(at, [query, batch, query_start, queries]);
                table.store_vec(at + 4, [key_start, keys, 0u32.reg(), 0u32.reg()]);
            });
        });
    })
}
