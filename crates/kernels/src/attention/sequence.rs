//! Sequences: batches whose extents differ, in packed tensors, or in a cache of keys and values.
//!
//! | tensors | queries | keys |
//! |---|---|---|
//! | `cu_seqlens_q`, `cu_seqlens_k` (packed) | rows `cu[b]..cu[b + 1]` | rows `cu[b]..cu[b + 1]` |
//! | `key_lens`, or `cu_seqlens_k` with pages | | the first ones of the batch |
//! | `block_table` (pages) | | page `table[b, j / page]`, row `j % page` |
//!
//! A [`TileInfo`] says which sequence a tile belongs to, where its rows are, and which blocks of keys it has.
//! The thread that loads computes it from the number of keys. For packed queries it would have to search for
//! the sequence, so that another kernel computes a table first (`tile_table`). All roles receive the
//! information through the work queue (`work`).

use super::context::SWIZZLE_ROWS;
use super::mask::{Blocks, MaskClass, MaskParams};
use super::problem::{Corner, KeyLens, MAX_LEN, Problem};
use super::rows::Rows;
use super::spans::units;
use super::work::Split;
use warpline_family::error::FamilyError;
use warpline_family::plan::{Address, Buffer, LaunchStep};
use warpline_family::tensor::TensorSpec;
use warpline_ir::DType;
use warpline_ir::builder::*;

/// The part of sequences that is compiled in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct SequenceClass {
    pub(super) packed_queries: bool,
    pub(super) keys: KeyLayout,
    pub(super) key_lens: Option<KeyLens>,
    pub(super) corner: Corner,
}

/// How the keys of a batch lie in K and V.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum KeyLayout {
    Batched,
    Packed,
    Paged,
}

/// A sequence, or the part of it that a tile needs.
#[derive(Clone, Copy)]
pub(super) struct Sequence<T = Reg<u32>> {
    pub(super) batch: T,
    /// The row of query 0 in Q and O.
    pub(super) query_start: T,
    pub(super) queries: T,
    /// The row of key 0 in packed keys.
    pub(super) key_start: T,
    pub(super) keys: T,
}

/// Rows of a page are a multiple of these.
pub(super) const PAGE_ROWS: u32 = SWIZZLE_ROWS;

/// The words of a [`TileInfo`].
pub(super) const INFO_WORDS: usize = 10;

/// What all roles know about a tile: its first query, its sequence, and the blocks of keys.
#[derive(Clone, Copy)]
pub(super) struct TileInfo {
    pub(super) query: Reg<u32>,
    pub(super) sequence: Sequence,
    pub(super) blocks: Blocks,
}

/// The names of the tensors.
pub(super) const QUERY_ENDS: &str = "cu_seqlens_q";
pub(super) const KEY_ENDS: &str = "cu_seqlens_k";
pub(super) const LENGTHS: &str = "key_lens";
pub(super) const TABLE: &str = "block_table";

/// The words from one entry of the table to the next.
pub(super) const ENTRY_WORDS: u32 = 12;

/// The maximum number of packed sequences.
pub(super) const MAX_SEQUENCES: u32 = 1 << 20;

/// Where the information about tiles comes from.
#[derive(Clone, Copy)]
pub(super) struct Sequences {
    class: SequenceClass,
    mask: MaskClass,
    source: InfoSource,
}

#[derive(Clone, Copy)]
enum InfoSource {
    /// The table of tiles: an entry for each tile of a head, and for each part of its keys.
    Table(Global<u32>),
    /// Batches with the same number of queries, and their keys.
    Batches(Extents),
}

/// The parameters that give the extents of a sequence.
#[derive(Clone, Copy)]
pub(super) struct Extents {
    pub(super) mask: MaskParams,
    pub(super) keys: KeyRange,
    /// The maximum number of queries of a sequence.
    pub(super) queries: Reg<u32>,
    /// Queries of a tile, and keys of a block.
    pub(super) tile: [u32; 2],
}

/// The keys of each batch.
#[derive(Clone, Copy)]
pub(super) struct KeyRange {
    source: KeySource,
    /// The maximum number of keys of a batch.
    keys: Reg<u32>,
}

#[derive(Clone, Copy)]
enum KeySource {
    All,
    Ends(Global<u32>),
    Lengths(Global<u32>),
}

/// The pages of each batch.
#[derive(Clone, Copy)]
pub(super) struct PageTable {
    entries: Global<u32>,
    /// Pages of a batch at most.
    columns: Reg<u32>,
    /// Keys of a page.
    page: Reg<u32>,
    divisor: FastDivisor,
}

impl Problem {
    /// Returns whether rows of a tensor are those of all sequences.
    pub(super) fn is_packed(&self, rows: &Rows) -> bool {
        match rows.name {
            "q" | "o" => self.packed_queries,
            _ => self.packed_keys,
        }
    }

    pub(super) fn sequence_class(&self) -> Option<SequenceClass> {
        let class = SequenceClass {
            packed_queries: self.packed_queries,
            keys: match self.page {
                Some(_) => KeyLayout::Paged,
                None if self.packed_keys => KeyLayout::Packed,
                None => KeyLayout::Batched,
            },
            key_lens: match self.packed_keys {
                true => Some(KeyLens::Ends),
                false => self.key_lens,
            },
            corner: self.corner,
        };
        (class.packed_queries || class.key_lens.is_some()).then_some(class)
    }

    pub(super) fn check_sequences(&self) -> Result<(), FamilyError> {
        let reject = |text: &str| Err(FamilyError::Problem(text.into()));
        if self.packed_keys && self.key_lens.is_some() {
            return reject(
                "--key-lens does not go with --packed-keys, whose ends are in cu_seqlens_k",
            );
        }
        match (self.page, self.max_pages, self.key_lens) {
            (None, None, None | Some(KeyLens::Lengths)) => {}
            (None, None, Some(KeyLens::Ends)) => {
                return reject(
                    "--key-lens ends needs --page\nhelp: use --key-lens lengths or --packed-keys",
                );
            }
            (Some(_), Some(_), Some(_)) if !self.packed_keys => {}
            _ => {
                return reject(
                    "a cache with pages needs --page, --max-pages and --key-lens, and no --packed-keys",
                );
            }
        }
        if let Some(page) = self.page {
            if page == 0 || !page.is_multiple_of(PAGE_ROWS) {
                return Err(FamilyError::Problem(format!(
                    "--page is {page}; it must be a multiple of {PAGE_ROWS}"
                )));
            }
            if self.max_pages == Some(0) {
                return reject("--max-pages is 0; it must be at least 1");
            }
            if !self.keys.is_multiple_of(page) {
                return Err(FamilyError::Problem(format!(
                    "--keys is {}, the rows of the whole cache; it must be a multiple of --page {page}",
                    self.keys
                )));
            }
        }
        let is_single = !(self.packed_queries || self.packed_keys || self.page.is_some());
        if self.bias.is_some() && !is_single {
            return reject("--bias does not go with packed sequences or pages");
        }
        let rows = u64::from(self.queries) + u64::from(self.keys);
        if self.sequence_class().is_some() && self.batch == 0 && rows > 0 {
            return reject("--batch is 0, but there are queries or keys");
        }
        if self.sequence_class().is_some() && self.batch > MAX_SEQUENCES {
            return Err(FamilyError::Problem(format!(
                "--batch is {}; sequences are at most {MAX_SEQUENCES}",
                self.batch
            )));
        }
        self.check_spans().map_err(FamilyError::Problem)
    }

    /// Rejects strides that spans cannot address.
    pub(super) fn check_spans(&self) -> Result<(), String> {
        let Some(class) = self.sequence_class() else {
            return Ok(());
        };
        let [_, k, v, o] = self.rows();
        let keys = class.key_lens.map_or(vec![], |_| vec![k, v]);
        let o = class.packed_queries.then_some(o);
        let mut all = keys.iter().chain(&o);
        all.try_for_each(|rows| units(rows, self.dtype.dtype()).map(|_| ()))
    }

    /// Returns the tensors of sequences.
    pub(super) fn sequence_specs(&self) -> Vec<TensorSpec> {
        let Some(class) = self.sequence_class() else {
            return Vec::new();
        };
        let i32s = |name, shape: &[u32]| TensorSpec::new(name, DType::I32, shape);
        let mut specs = Vec::new();
        if class.packed_queries {
            specs.push(i32s(QUERY_ENDS, &[self.batch + 1]));
        }
        match class.key_lens {
            None => {}
            Some(KeyLens::Ends) => specs.push(i32s(KEY_ENDS, &[self.batch + 1])),
            Some(KeyLens::Lengths) => specs.push(i32s(LENGTHS, &[self.batch])),
        }
        if let Some(columns) = self.max_pages {
            specs.push(i32s(TABLE, &[self.batch, columns]));
        }
        specs
    }
}

impl Sequences {
    /// Declares the parameters. `tile` has the queries of a tile and the keys of a block; `queries` is the
    /// number of queries of a batch, if all have the same.
    pub(super) fn declare(
        k: Builder,
        class: SequenceClass,
        mask: (MaskClass, MaskParams),
        queries: Option<Reg<u32>>,
        tile: [u32; 2],
    ) -> Self {
        let (mask_class, mask) = mask;
        let source = match queries.filter(|_| !class.packed_queries) {
            None => InfoSource::Table(k.pointer("tile_table")),
            Some(queries) => InfoSource::Batches(Extents {
                mask,
                keys: KeyRange::declare(k, class.key_lens, mask.keys),
                queries,
                tile,
            }),
        };
        Self {
            class,
            mask: mask_class,
            source,
        }
    }

    /// Binds the parameters. `table` is where the kernel of `tile_table` stores the entries.
    pub(super) fn bind(
        step: LaunchStep,
        p: &Problem,
        table: Address,
    ) -> Result<LaunchStep, FamilyError> {
        match p.packed_queries {
            true => Ok(step.pointer("tile_table", table).dependent()),
            false => KeyRange::bind(step, p),
        }
    }

    /// Waits for the kernel that computes the table, if there is one.
    pub(super) fn wait(&self) {
        if let InfoSource::Table(_) = self.source {
            wait_prerequisites();
        }
    }

    /// Returns the tiles of a head: in packed queries, tiles of sequence `b` start at `cu[b] / rows + b`,
    /// so that some sequences have one more than they need.
    pub(super) fn tiles(p: &Problem, rows: u32) -> u32 {
        match p.packed_queries {
            true => p.queries / rows + p.batch,
            false => p.queries.div_ceil(rows),
        }
    }

    /// Returns the words about a tile: `entry` is its place in the table, `query` its first query.
    pub(super) fn words(
        &self,
        entry: impl FnOnce() -> Reg<u32>,
        (query, batch): (Reg<u32>, Reg<u32>),
        split: Option<Split>,
    ) -> [Reg<u32>; INFO_WORDS] {
        match self.source {
            InfoSource::Table(table) => {
                let entry = entry();
                let words = [0, 4, 8].map(|i| table.load_vec::<4>(entry * ENTRY_WORDS + i));
                std::array::from_fn(|i| words[i / 4][i % 4])
            }
            InfoSource::Batches(extents) => {
                let queries = [0u32.reg(), extents.queries];
                let info = extents.info(query, batch, queries, split);
                // Which tile has how many blocks is nothing that proofs need.
                info.words().map(Reg::opaque)
            }
        }
    }

    /// Returns the information with these words.
    pub(super) fn read(&self, words: [Reg<u32>; INFO_WORDS]) -> TileInfo {
        let [
            query,
            batch,
            query_start,
            queries,
            key_start,
            keys,
            blocks @ ..,
        ] = words;
        let sequence = Sequence {
            batch,
            query_start,
            queries,
            key_start: match self.class.keys {
                KeyLayout::Packed => key_start,
                KeyLayout::Batched | KeyLayout::Paged => 0u32.reg(),
            },
            keys,
        };
        TileInfo {
            query,
            sequence,
            blocks: Blocks::of_words(blocks, self.mask),
        }
    }
}

impl Extents {
    /// Computes the information about a tile from its first query, its batch, the start and the number of the
    /// batch's queries, and the part of the keys.
    pub(super) fn info(
        &self,
        query: Reg<u32>,
        batch: Reg<u32>,
        [query_start, queries]: [Reg<u32>; 2],
        split: Option<Split>,
    ) -> TileInfo {
        let [key_start, keys] = self.keys.of(batch);
        let sequence = Sequence {
            batch,
            query_start,
            queries,
            key_start,
            // A tile behind the queries of its sequence has no keys.
            keys: select(query.lt(queries), keys, 0u32),
        };
        let [rows, block_keys] = self.tile;
        let last = query + (rows - 1);
        let (_, blocks) =
            self.mask
                .visible_blocks(Some(&sequence), [query, last], block_keys, split);
        TileInfo {
            query,
            sequence,
            blocks,
        }
    }
}

impl TileInfo {
    /// Returns the words.
    pub(super) fn words(&self) -> [Reg<u32>; INFO_WORDS] {
        let Sequence {
            batch,
            query_start,
            queries,
            key_start,
            keys,
        } = self.sequence;
        let [last, above, full, below] = self.blocks.words();
        [
            self.query,
            batch,
            query_start,
            queries,
            key_start,
            keys,
            last,
            above,
            full,
            below,
        ]
    }
}

impl KeyRange {
    pub(super) fn declare(k: Builder, key_lens: Option<KeyLens>, keys: Reg<u32>) -> Self {
        let sequences = || k.param::<u32>("key_sequences").at_most(MAX_SEQUENCES);
        let source = match key_lens {
            None => KeySource::All,
            Some(KeyLens::Ends) => {
                KeySource::Ends(k.pointer(KEY_ENDS).elements(extent(sequences()) + 1u64))
            }
            Some(KeyLens::Lengths) => KeySource::Lengths(k.pointer(LENGTHS).elements(sequences())),
        };
        Self { source, keys }
    }

    /// Binds the parameters.
    pub(super) fn bind(step: LaunchStep, p: &Problem) -> Result<LaunchStep, FamilyError> {
        let name = match p.sequence_class().and_then(|class| class.key_lens) {
            None => return Ok(step),
            Some(KeyLens::Ends) => KEY_ENDS,
            Some(KeyLens::Lengths) => LENGTHS,
        };
        let step = step.scalar("key_sequences", p.batch);
        Ok(step.pointer(name, Buffer::named(&p.inputs(), name)?))
    }

    /// Returns the start and the number of keys of a batch, at most as many as there can be.
    pub(super) fn of(&self, batch: Reg<u32>) -> [Reg<u32>; 2] {
        let [start, keys] = match self.source {
            KeySource::All => return [0u32.reg(), self.keys],
            KeySource::Ends(ends) => range_of(ends, batch),
            KeySource::Lengths(lengths) => [0u32.reg(), lengths.load(batch)],
        };
        [start, keys.min(self.keys)]
    }
}

/// Returns the start and the length of a sequence from the ends of all; a negative length is 0.
pub(super) fn range_of(ends: Global<u32>, b: Reg<u32>) -> [Reg<u32>; 2] {
    let [start, end] = [ends.load(b), ends.load(b + 1)];
    [start, end.max(start) - start]
}

impl PageTable {
    pub(super) fn declare(k: Builder) -> Self {
        let columns = k.param::<u32>("max_pages").at_least(1).at_most(MAX_LEN);
        let len = k.param::<u64>("block_table_len");
        Self {
            entries: k.pointer::<u32>(TABLE).elements(len),
            columns,
            page: k.param::<u32>("page").at_least(1).at_most(MAX_LEN),
            divisor: k.divisor("page_divisor"),
        }
    }

    pub(super) fn bind(
        step: LaunchStep,
        p: &Problem,
        inputs: &[TensorSpec],
    ) -> Result<LaunchStep, FamilyError> {
        let (Some(page), Some(columns)) = (p.page, p.max_pages) else {
            return Ok(step);
        };
        let table = Buffer::named(inputs, TABLE)?;
        Ok(step
            .pointer(TABLE, table)
            .scalar("max_pages", columns)
            .scalar("block_table_len", u64::from(p.batch) * u64::from(columns))
            .scalar("page", page)
            .divisor("page_divisor", page))
    }

    /// Returns the page of a key, the key's row in it, and the keys of the sequence in the page.
    pub(super) fn find(&self, sequence: &Sequence, key: Reg<u32>) -> [Reg<u32>; 3] {
        let column = self.divisor.divide(key);
        let first = column * self.page;
        let entry =
            column.min(self.columns - 1).cast::<u64>() + sequence.batch.mul_wide(self.columns);
        let keys = (sequence.keys.max(first) - first).min(self.page);
        [self.entries.load(entry), key - first, keys]
    }
}
