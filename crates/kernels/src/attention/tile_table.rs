//! The kernel that computes the table of tiles: a thread for each tile of a head, and for each part of its
//! keys.

use super::config::Config;
use super::mask::{MaskClass, MaskParams};
use super::problem::{MAX_LEN, Problem};
use super::sequence::{
    ENTRY_WORDS, KeyRange, MAX_SEQUENCES, QUERY_ENDS, Sequence, SequenceClass, TileInfo, range_of,
};
use super::work::Splits;
use super::workspace::Workspace;
use warpline_family::error::FamilyError;
use warpline_family::plan::{Buffer, LaunchStep};
use warpline_family::program::Program;
use warpline_ir::builder::*;
use warpline_ir::{BuildErrors, Kernel, Target};

/// The maximum number of entries.
const MAX_ENTRIES: u32 = (1 << 28) - 1;
/// Threads of a CTA.
const THREADS: u32 = 128;

/// Returns the number of entries.
pub(super) fn entries(p: &Problem, c: &Config) -> u64 {
    let batches = if p.packed_queries { 1 } else { p.batch };
    u64::from(batches) * u64::from(c.head_tiles(p)) * u64::from(c.splits)
}

/// Returns the launch that computes the table.
pub(super) fn launch(
    p: &Problem,
    c: &Config,
    workspace: &Workspace,
    target: &Target,
) -> Result<LaunchStep, FamilyError> {
    let class = TableClass {
        mask: p.class().mask,
        sequences: p.sequence_class(),
        splits: c.is_split(),
        rows: c.tile_queries(),
        keys: c.tile_keys,
    };
    let key = format!("attention tile table {class:?}");
    let kernel = Program::cached(key, target, |target| build(&class, target))?;
    let count = entries(p, c);
    let Some(count) = u32::try_from(count).ok().filter(|&n| n <= MAX_ENTRIES) else {
        return Err(FamilyError::Problem(format!(
            "the problem has {count} tiles of all batches; a launch has at most {MAX_ENTRIES}"
        )));
    };
    let step = LaunchStep::new(kernel, [count.div_ceil(THREADS), 1, 1])
        .scalar("count", count)
        .scalar("sequences", p.batch)
        .scalar("queries", p.queries)
        .scalar("keys", p.max_keys())
        .pointer("table", workspace.table);
    let step = match p.packed_queries {
        true => step
            .scalar("search_steps", p.batch.next_power_of_two().ilog2())
            .pointer(QUERY_ENDS, Buffer::named(&p.inputs(), QUERY_ENDS)?),
        false => step
            .scalar("batch_tiles", c.head_tiles(p))
            .divisor("batch_tiles_divisor", c.head_tiles(p)),
    };
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
    mask: MaskClass,
    sequences: Option<SequenceClass>,
    splits: bool,
    /// Queries of a tile, and keys of a block.
    rows: u32,
    keys: u32,
}

fn build(table: &TableClass, target: &Target) -> Result<Kernel, BuildErrors> {
    Kernel::build("attention_tile_table", target, |k| {
        let TableClass {
            rows,
            keys: block_keys,
            ..
        } = *table;
        let count = k.param::<u32>("count").at_least(1).at_most(MAX_ENTRIES);
        let splits = table.splits.then(|| Splits::declare(k));
        let mask = MaskParams::declare(k, table.mask, table.sequences);
        let queries = QueryTiles::declare(k, table.sequences);
        let key_lens = table.sequences.and_then(|class| class.key_lens);
        let keys = KeyRange::declare(k, key_lens, queries.sequences, mask.keys);
        let to = k
            .pointer::<u32>("table")
            .elements(extent(count) * ENTRY_WORDS);
        k.role("all").warps(THREADS / 32).body(|| {
            let entry = cta_id() * THREADS + thread_id();
            if_(entry.lt(count), || {
                let (tile, split) = Splits::part(splits, entry);
                let (query, mut sequence) = queries.find(tile, rows);
                let [key_start, keys] = keys.of(sequence.batch);
                sequence.key_start = key_start;
                // A tile behind the queries of its sequence has no keys.
                sequence.keys = select(query.lt(sequence.queries), keys, 0u32);
                let last = query + (rows - 1);
                let (_, blocks) =
                    mask.visible_blocks(Some(&sequence), [query, last], block_keys, split);
                let info = TileInfo {
                    query,
                    sequence,
                    blocks,
                };
                let mut words = info.words().to_vec();
                words.resize(ENTRY_WORDS as usize, 0u32.reg());
                for (i, words) in (0..).zip(words.as_chunks::<4>().0) {
                    to.store_vec(entry * ENTRY_WORDS + 4 * i, *words);
                }
            });
        });
    })
}

/// The tiles of all sequences.
#[derive(Clone, Copy)]
struct QueryTiles {
    sequences: Reg<u32>,
    /// The maximum number of queries of a sequence.
    queries: Reg<u32>,
    source: TileSource,
}

#[derive(Clone, Copy)]
enum TileSource {
    /// The ends of packed sequences, and the steps of a binary search among them.
    Ends(Global<u32>, Reg<u32>),
    /// All batches have the same number of tiles.
    Batches(Reg<u32>, FastDivisor),
}

impl QueryTiles {
    fn declare(k: Builder, sequences: Option<SequenceClass>) -> Self {
        let is_packed = sequences.is_some_and(|class| class.packed_queries);
        let sequences = k
            .param::<u32>("sequences")
            .at_least(1)
            .at_most(MAX_SEQUENCES);
        Self {
            sequences,
            queries: k.param::<u32>("queries").at_most(MAX_LEN),
            source: match is_packed {
                true => TileSource::Ends(
                    k.pointer(QUERY_ENDS).elements(extent(sequences) + 1u64),
                    k.param::<u32>("search_steps").at_most(32),
                ),
                false => TileSource::Batches(
                    k.param::<u32>("batch_tiles")
                        .at_least(1)
                        .at_most(MAX_ENTRIES),
                    k.divisor("batch_tiles_divisor"),
                ),
            },
        }
    }

    /// Returns the first query and the sequence of a tile of `rows` queries, still without keys.
    fn find(&self, tile: Reg<u32>, rows: u32) -> (Reg<u32>, Sequence) {
        let (query, batch, [query_start, queries]) = match self.source {
            TileSource::Batches(tiles, divisor) => {
                let batch = divisor.divide(tile);
                let query = (tile - batch * tiles) * rows;
                (query, batch, [0u32.reg(), self.queries])
            }
            TileSource::Ends(ends, search_steps) => {
                // The last sequence that starts at or before this tile.
                let first_tile = |b: Reg<u32>| ends.load(b) / rows + b;
                let all = (0u32.reg(), self.sequences);
                let (batch, _) = steps(search_steps).fold(all, |_, (low, high)| {
                    let middle = (low + high) / 2;
                    let is_before = first_tile(middle).le(tile);
                    (
                        select(is_before, middle, low),
                        select(is_before, high, middle),
                    )
                });
                let [start, queries] = range_of(ends, batch);
                let query = (tile - first_tile(batch)) * rows;
                (query, batch, [start, queries.min(self.queries)])
            }
        };
        let none = 0u32.reg();
        let sequence = Sequence {
            batch,
            query_start,
            queries,
            key_start: none,
            keys: none,
        };
        (query, sequence)
    }
}
