//! The kernel that computes the table of tiles of packed queries: a thread for each tile of a head, and for
//! each part of its keys. It searches for the sequence of the tile.

use super::config::Config;
use super::mask::{MaskClass, MaskParams};
use super::problem::{MAX_LEN, Problem};
use super::sequence::{
    ENTRY_WORDS, Extents, KeyRange, MAX_SEQUENCES, QUERY_ENDS, SequenceClass, range_of,
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

/// Returns the number of entries; only packed queries need them.
pub(super) fn entries(p: &Problem, c: &Config) -> u64 {
    match p.packed_queries {
        true => u64::from(c.head_tiles(p)) * u64::from(c.splits),
        false => 0,
    }
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
            "the problem has {count} tiles of all sequences; a launch has at most {MAX_ENTRIES}"
        )));
    };
    let step = LaunchStep::new(kernel, [count.div_ceil(THREADS), 1, 1])
        .scalar("count", count)
        .scalar("sequences", p.batch)
        .scalar("queries", p.queries)
        .scalar("keys", p.max_keys())
        .pointer("table", workspace.table);
    let step = step
        .scalar("search_steps", p.batch.next_power_of_two().ilog2())
        .pointer(QUERY_ENDS, Buffer::named(&p.inputs(), QUERY_ENDS)?);
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
        let count = k.param::<u32>("count").at_least(1).at_most(MAX_ENTRIES);
        let splits = table.splits.then(|| Splits::declare(k));
        let mask = MaskParams::declare(k, table.mask, table.sequences);
        let queries = QueryTiles::declare(k);
        let key_lens = table.sequences.and_then(|class| class.key_lens);
        let extents = Extents {
            mask,
            keys: KeyRange::declare(k, key_lens, mask.keys),
            queries: k.param::<u32>("queries").at_most(MAX_LEN),
            tile: [table.rows, table.keys],
        };
        let to = k
            .pointer::<u32>("table")
            .elements(extent(count) * ENTRY_WORDS);
        k.role("all").warps(THREADS / 32).body(|| {
            launch_dependents();
            let entry = cta_id() * THREADS + thread_id();
            if_(entry.lt(count), || {
                let (tile, split) = Splits::part(splits, entry);
                let (query, batch, [start, count]) = queries.find(tile, table.rows);
                let own = [start, count.min(extents.queries)];
                let info = extents.info(query, batch, own, split);
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
    ends: Global<u32>,
    /// The steps of a binary search among the sequences.
    search_steps: Reg<u32>,
}

impl QueryTiles {
    fn declare(k: Builder) -> Self {
        let sequences = k
            .param::<u32>("sequences")
            .at_least(1)
            .at_most(MAX_SEQUENCES);
        Self {
            sequences,
            ends: k.pointer(QUERY_ENDS).elements(extent(sequences) + 1u64),
            search_steps: k.param::<u32>("search_steps").at_most(32),
        }
    }

    /// Returns the first query of a tile of `rows` queries, its sequence, and the start and the length of the
    /// sequence: the last one that starts at or before this tile.
    fn find(&self, tile: Reg<u32>, rows: u32) -> (Reg<u32>, Reg<u32>, [Reg<u32>; 2]) {
        let first_tile = |b: Reg<u32>| self.ends.load(b) / rows + b;
        let all = (0u32.reg(), self.sequences);
        let (sequence, _) = steps(self.search_steps).fold(all, |_, (low, high)| {
            let middle = (low + high) / 2;
            let is_before = first_tile(middle).le(tile);
            (
                select(is_before, middle, low),
                select(is_before, high, middle),
            )
        });
        let query = (tile - first_tile(sequence)) * rows;
        (query, sequence, range_of(self.ends, sequence))
    }
}
