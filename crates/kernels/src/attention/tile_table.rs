//! The kernel that computes the records of packed queries: a thread for each tile of a head.

use super::config::Config;
use super::mask::MaskParams;
use super::problem::{Class, MAX_LEN, Problem};
use super::sequence::{
    KeyRange, MAX_SEQUENCES, QUERY_ENDS, RECORD_WORDS, Record, Sequence, range_of,
};
use super::work::Splits;
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
    let class = TableClass {
        class: p.class(),
        splits: c.is_split(),
        rows: c.tile_queries(),
        keys: c.tile_keys,
    };
    let key = format!("attention tile table {class:?}");
    let kernel = Program::cached(key, target, |target| build(&class, target))?;
    let tiles = c.head_tiles(p) * c.splits;
    let step = LaunchStep::new(kernel, [tiles.div_ceil(THREADS), 1, 1])
        .scalar("tiles", tiles)
        .scalar("sequences", p.batch)
        .scalar("search_steps", p.batch.next_power_of_two().ilog2())
        .scalar("queries", p.queries)
        .scalar("keys", p.max_keys())
        .pointer(QUERY_ENDS, Buffer::named(&p.inputs(), QUERY_ENDS)?)
        .pointer("table", workspace.table);
    let step = match class.splits {
        true => step
            .scalar("splits", c.splits)
            .divisor("splits_divisor", c.splits),
        false => step,
    };
    KeyRange::bind(MaskParams::bind(step, p), p)
}

/// The part of the table that is compiled in.
#[derive(Clone, Copy, Debug)]
struct TableClass {
    class: Class,
    splits: bool,
    /// Queries of a tile, and keys of a block.
    rows: u32,
    keys: u32,
}

fn build(table: &TableClass, target: &Target) -> Result<Kernel, BuildErrors> {
    Kernel::build("attention_tile_table", target, |k| {
        let tiles = k.param::<u32>("tiles").at_least(1).at_most(MAX_TABLE_TILES);
        let TableClass {
            rows,
            keys: block_keys,
            ..
        } = *table;
        let splits = table.splits.then(|| Splits::declare(k));
        let mask = MaskParams::declare(k, &table.class);
        let sequences = k
            .param::<u32>("sequences")
            .at_least(1)
            .at_most(MAX_SEQUENCES);
        let search_steps = k.param::<u32>("search_steps").at_most(32);
        let max_queries = k.param::<u32>("queries").at_most(MAX_LEN);
        let ends = k
            .pointer::<u32>(QUERY_ENDS)
            .elements(extent(sequences) + 1u64);
        let key_lens = table.class.sequences.and_then(|class| class.key_lens);
        let keys = KeyRange::declare(k, key_lens, sequences, mask.keys);
        let table = k
            .pointer::<u32>("table")
            .elements(extent(tiles) * RECORD_WORDS);
        k.role("all").warps(THREADS / 32).body(|| {
            let entry = cta_id() * THREADS + thread_id();
            if_(entry.lt(tiles), || {
                let (tile, split) = Splits::part(splits, entry);
                // The last sequence whose first tile is not behind this one.
                let first_tile = |b: Reg<u32>| ends.load(b) / rows + b;
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
                let sequence = Sequence {
                    batch,
                    query_start,
                    queries,
                    key_start,
                    // A tile behind the queries of its sequence has no keys.
                    keys: select(query.lt(queries), keys, 0u32),
                };
                let (_, blocks) = mask.visible_blocks(
                    Some(&sequence),
                    [query, query + (rows - 1)],
                    block_keys,
                    split,
                );
                let record = Record {
                    query,
                    sequence,
                    blocks,
                };
                let mut words = record.words().to_vec();
                words.resize(RECORD_WORDS as usize, 0u32.reg());
                for (i, words) in (0..).zip(words.as_chunks::<4>().0) {
                    table.store_vec(entry * RECORD_WORDS + 4 * i, *words);
                }
            });
        });
    })
}
