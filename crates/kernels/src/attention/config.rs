//! The config: schedule, tile, stages and registers.

use super::bias::BiasStrides;
use super::context::{ROWS, SWIZZLE_ROWS};
use super::problem::{Class, MAX_LEN, Problem};
use super::schedule;
use super::sequence::Sequences;
use super::spans::gcd;
use super::work::{MAX_SPLITS, MAX_TILES};
use crate::roles::{RegisterBudget, RoleRegisters, check_registers};
use warpline_family::error::FamilyError;
use warpline_family::resources::resources;
use warpline_family::{fields, keywords};
use warpline_ir::Target;

keywords! {
    /// The order of the products and the softmax of a consumer.
    pub enum Schedule {
        /// Scores, softmax and values of a block one after the other; consumers overlap each other
        Cooperative = "cooperative",
        /// The scores of a block beside the values of the block before
        PingPong = "ping-pong",
    }
}

keywords! {
    /// How CTAs take tiles of queries.
    pub enum TileAssignment {
        /// A CTA for each tile
        One = "one",
        /// As many CTAs as run at once, each with every n-th tile
        Static = "static",
        /// As many CTAs as run at once; tiles come from a work queue
        Queue = "queue",
    }
}

keywords! {
    /// When the accumulator is rescaled to a larger row maximum.
    pub enum Rescale {
        /// With every block
        Always = "always",
        /// When a score exceeds the maximum of its row by a factor of 2^8
        Lazy = "lazy",
    }
}

fields! {
    /// The tuning parameters that the caller fixes.
    #[derive(Default)]
    pub struct Choice {
        /// Order of the products and the softmax of a consumer
        pub schedule: Option<Schedule>,
        /// How CTAs take tiles of queries
        pub tiles: Option<TileAssignment>,
        /// Warpgroups that compute, with 64 queries each
        pub consumers: Option<u32>,
        /// Keys of a block
        pub tile_keys: Option<u32>,
        /// Blocks of keys, and of values, in flight
        pub stages: Option<u32>,
        /// Tiles of queries in flight
        pub q_stages: Option<u32>,
        /// CTAs of the grid at most (static, queue)
        pub ctas: Option<u32>,
        /// Heads of Q in a tile: 1, or all heads that share a head of K and V (PackGQA)
        pub tile_heads: Option<u32>,
        /// Parts of the keys, which different CTAs compute; a second kernel adds them
        pub splits: Option<u32>,
        /// When the accumulator is rescaled to a larger row maximum
        pub rescale: Option<Rescale>,
        /// The bits of a query do not depend on the other queries and batches: tuned configs are not used
        pub batch_invariant: Option<bool>,
    }
}

/// The complete set of tuning parameters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// Order of the products and the softmax of a consumer.
    pub schedule: Schedule,
    /// How CTAs take tiles of queries.
    pub tiles: TileAssignment,
    /// Warpgroups that compute, with 64 queries each.
    pub consumers: u32,
    /// Keys of a block.
    pub tile_keys: u32,
    /// Blocks of keys, and of values, in flight.
    pub stages: u32,
    /// Tiles of queries in flight.
    pub q_stages: u32,
    /// CTAs of the grid at most; `None` with a CTA for each tile.
    pub ctas: Option<u32>,
    /// Columns of O that a consumer stores at once.
    pub out_cols: u32,
    /// Heads of Q in a tile: 1, or all heads that share a head of K and V (PackGQA).
    pub tile_heads: u32,
    /// Parts of the keys, which different CTAs compute.
    pub splits: u32,
    /// When the accumulator is rescaled to a larger row maximum.
    pub rescale: Rescale,
    /// Keys that one copy loads: those of a block, or fewer from a cache with pages.
    pub copy_keys: u32,
}

impl From<&Config> for Choice {
    fn from(c: &Config) -> Self {
        Self {
            schedule: Some(c.schedule),
            tiles: Some(c.tiles),
            consumers: Some(c.consumers),
            tile_keys: Some(c.tile_keys),
            stages: Some(c.stages),
            q_stages: Some(c.q_stages),
            ctas: c.ctas,
            tile_heads: Some(c.tile_heads),
            splits: Some(c.splits),
            rescale: Some(c.rescale),
            batch_invariant: None,
        }
    }
}

/// The minimum keys of a block.
const MIN_KEYS: u32 = 16;
/// The maximum number of consumers.
const MAX_CONSUMERS: u32 = 3;

impl Config {
    /// Returns the rows of a tile.
    fn tile_rows(&self) -> u32 {
        ROWS * self.consumers
    }

    /// Returns the queries of a tile: of each of its heads.
    pub(super) fn tile_queries(&self) -> u32 {
        self.tile_rows() / self.tile_heads
    }

    /// Returns the tiles of a head.
    pub(super) fn head_tiles(&self, p: &Problem) -> u32 {
        Sequences::tiles(p, self.tile_queries())
    }

    /// Returns the box that loads Q: columns and queries, or columns, heads and queries.
    pub(super) fn q_box(&self, cols: u32) -> Vec<u32> {
        match self.tile_heads {
            1 => vec![cols, self.tile_rows()],
            heads => vec![cols, heads, self.q_rows() / heads],
        }
    }

    /// Returns the rows of Q in shared memory: whole queries, and whole patterns of the swizzle. Those behind
    /// the tile are loaded in vain.
    pub(super) fn q_rows(&self) -> u32 {
        self.tile_rows()
            .next_multiple_of(whole_rows(self.tile_heads))
    }

    /// Returns whether different CTAs compute parts of the keys.
    pub(super) fn is_split(&self) -> bool {
        self.splits > 1
    }

    /// Returns whether a thread stores rows of O, instead of TMA.
    pub(super) fn stores_rows(&self) -> bool {
        self.is_split() || self.tile_heads > 1
    }

    /// Returns the registers of a thread: an SM has 64 Ki. A CTA with one consumer takes what it needs, so
    /// that an SM runs several: they overlap each other as consumers do.
    pub(super) fn registers(&self) -> Option<RegisterBudget> {
        let (load, math) = match self.consumers {
            1 => return None,
            // Several pages in a block need more registers to address.
            2 if self.copy_keys < self.tile_keys => (72, 216),
            2 => (24, 240),
            _ => (32, 160),
        };
        Some(RegisterBudget { load, math })
    }

    /// Returns the registers that a consumer thread can have.
    fn available_registers(&self) -> u32 {
        self.registers().map_or(240, |registers| registers.math)
    }

    /// Returns the config that the heuristic selects, with the caller's choices applied.
    pub(super) fn select(
        p: &Problem,
        choice: &Choice,
        target: &Target,
    ) -> Result<Self, FamilyError> {
        let class = p.class();
        let tiles = choice.tiles.unwrap_or(TileAssignment::Queue);
        let tile_heads = choice.tile_heads.unwrap_or(tile_heads(p));
        let consumers = choice.consumers.unwrap_or(match tile_heads {
            1 => consumers(p),
            _ => 1,
        });
        let first = Self {
            schedule: choice.schedule.unwrap_or(Schedule::PingPong),
            tiles,
            consumers,
            tile_keys: choice.tile_keys.unwrap_or(MIN_KEYS),
            stages: choice.stages.unwrap_or(2),
            q_stages: choice.q_stages.unwrap_or(1),
            ctas: max_ctas(tiles, ctas_per_sm(consumers), choice.ctas, target)?,
            out_cols: class.out_box(),
            tile_heads,
            splits: choice.splits.unwrap_or(1),
            rescale: choice.rescale.unwrap_or(Rescale::Lazy),
            copy_keys: 0,
        };
        let with_keys = |tile_keys: u32, c: Self| Self {
            tile_keys,
            copy_keys: p.page.map_or(tile_keys, |page| gcd_u32(page, tile_keys)),
            ..c
        };
        let first = with_keys(first.tile_keys, first);
        first.check_tile(p)?;
        // What fits is enlarged: blocks of keys first, then the store of O, then a second slot for Q.
        let fits = |c: &Self| {
            c.needed_registers(&class) <= c.available_registers()
                && c.shared_bytes(&class) <= u64::from(target.shared_bytes)
        };
        let or = |larger: Self, c: Self| if fits(&larger) { larger } else { c };
        let mut c = first;
        if choice.tile_keys.is_none() {
            let widths = (MIN_KEYS..=max_selected_keys(&class, consumers)).step_by(16);
            c = widths.fold(c, |c, tile_keys| or(with_keys(tile_keys, c), c));
        }
        let out_cols = class.cols_v;
        c = or(Self { out_cols, ..c }, c);
        if tiles != TileAssignment::One && choice.q_stages.is_none() {
            c = or(Self { q_stages: 2, ..c }, c);
        }
        if choice.splits.is_none() {
            c.splits = c.select_splits(p, target.sms);
        }
        c.check(&class, target)?;
        Ok(c)
    }

    /// Returns the class that a problem has with this config.
    pub(super) fn class(&self, p: &Problem) -> Class {
        let class = p.class();
        let has_all_keys = !class.is_masked() && class.sequences.is_none() && !self.is_split();
        Class {
            whole_blocks: has_all_keys && p.keys > 0 && p.keys.is_multiple_of(self.tile_keys),
            ..class
        }
    }

    /// Returns the CTAs of the grid.
    pub(super) fn grid_ctas(&self, p: &Problem) -> Result<u32, FamilyError> {
        let tiles = self.query_tiles(p)?;
        Ok(self.ctas.map_or(tiles, |max| max.min(tiles)))
    }

    /// Returns the tiles of all heads.
    fn query_tiles(&self, p: &Problem) -> Result<u32, FamilyError> {
        let batches = if p.packed_queries { 1 } else { p.batch };
        let heads = u64::from(batches) * u64::from(p.heads / self.tile_heads);
        let tiles = heads * u64::from(self.head_tiles(p)) * u64::from(self.splits);
        match u32::try_from(tiles).ok().filter(|&n| n <= MAX_TILES) {
            Some(tiles) => Ok(tiles),
            None => Err(FamilyError::Problem(format!(
                "the problem has {tiles} tiles of queries; a launch has at most {MAX_TILES}"
            ))),
        }
    }

    /// Estimates the bytes of shared memory of a CTA, without barriers.
    fn shared_bytes(&self, class: &Class) -> u64 {
        let [q, v] = [class.cols, class.cols_v].map(|cols| cols.next_multiple_of(64));
        let queries = self.q_stages * self.q_rows() * q;
        let blocks = self.stages * self.tile_keys * (q + v);
        let out = match self.stores_rows() {
            true => 0,
            false => self.tile_rows() * self.out_cols,
        };
        2 * (u64::from(queries) + u64::from(blocks) + u64::from(out)) + 512
    }

    /// Estimates the registers of a consumer thread: the output, the scores, with ping-pong the
    /// probabilities of the block before, and temporaries. The factors separate the configs that ptxas
    /// 13.0 spills from the others.
    fn needed_registers(&self, class: &Class) -> u32 {
        let (output, scores) = (class.cols_v / 2, self.tile_keys / 2);
        let probabilities = match self.schedule {
            Schedule::Cooperative => 0,
            Schedule::PingPong => scores / 2,
        };
        let of_32_scores = if class.is_masked() { 13 } else { 8 };
        let temporaries = 16 + scores * of_32_scores / 32;
        let bias = class.bias.map_or(0, |bias| bias.registers(self.tile_keys));
        output + scores + probabilities + temporaries + bias
    }

    /// Rejects tiles that do not suit the heads of the problem.
    fn check_tile(&self, p: &Problem) -> Result<(), FamilyError> {
        let reject = |text: String| Err(FamilyError::Config(text));
        if !(1..=MAX_CONSUMERS).contains(&self.consumers) {
            return reject(format!(
                "--consumers is {}; it must be 1 to {MAX_CONSUMERS}",
                self.consumers
            ));
        }
        let group = group(p);
        if self.tile_heads != 1 && self.tile_heads != group {
            return reject(format!(
                "--tile-heads is {}; it must be 1 or the {group} heads that share a head of K and V",
                self.tile_heads
            ));
        }
        if self.tile_heads > ROWS
            || self.tile_heads > 1 && (self.consumers != 1 || p.bias.is_some())
        {
            return reject(format!(
                "--tile-heads {} needs at most {ROWS} heads, --consumers 1 and a problem without --bias",
                self.tile_heads
            ));
        }
        if p.sequence_class().is_some() && self.tiles != TileAssignment::Queue {
            return reject("batches of different extents need --tiles queue".into());
        }
        Ok(())
    }

    /// Returns the number of parts of the keys: one item of work for each SM, if each has enough keys.
    fn select_splits(&self, p: &Problem, sms: u32) -> u32 {
        let items = Self { splits: 1, ..*self }
            .query_tiles(p)
            .unwrap_or(MAX_TILES)
            .max(1);
        let blocks = (p.visible_keys() / f64::from(self.tile_keys)).ceil() as u32;
        // Two CTAs on some SMs are better than none on many.
        let least = match ctas_per_sm(self.consumers) {
            1 => 1,
            _ => (sms + sms / 4) / items,
        };
        let most = (blocks / MIN_SPLIT_BLOCKS).min(MAX_SPLITS);
        let splits = (sms / items).max(least.min(2)).min(most).max(1);
        match blocks - blocks / splits >= MIN_SAVED_BLOCKS {
            true => splits,
            false => 1,
        }
    }

    fn check(&self, class: &Class, target: &Target) -> Result<(), FamilyError> {
        let reject = |text: String| Err(FamilyError::Config(text));
        if !self.tile_keys.is_multiple_of(16) || !(16..=256).contains(&self.tile_keys) {
            return reject(format!(
                "--tile-keys is {}; it must be a multiple of 16 from 16 to 256",
                self.tile_keys
            ));
        }
        if !(1..=MAX_SPLITS).contains(&self.splits) {
            return reject(format!(
                "--splits is {}; it must be 1 to {MAX_SPLITS}",
                self.splits
            ));
        }
        for (flag, stages) in [("--stages", self.stages), ("--q-stages", self.q_stages)] {
            if stages == 0 {
                return reject(format!("{flag} is 0; a ring needs at least 1 stage"));
            }
        }
        if let Some(RegisterBudget { load, math }) = self.registers() {
            let role = |role, warpgroups, registers| RoleRegisters {
                role,
                warpgroups,
                registers,
                option: "--consumers",
            };
            let roles = [
                role("loading", 1, load),
                role("computing", self.consumers, math),
            ];
            check_registers(&roles, target)?;
        }
        let needed = self.needed_registers(class);
        let available = self.available_registers();
        if needed > available {
            return reject(format!(
                "--tile-keys {} needs about {needed} registers in each thread of {} consumers, but {available} are \
                 available\nhelp: use a smaller --tile-keys or fewer --consumers",
                self.tile_keys, self.consumers
            ));
        }
        let what = format!(
            "{} stages of {} keys and {} of {} queries",
            self.stages,
            self.tile_keys,
            self.q_stages,
            self.tile_rows()
        );
        resources(&what, target, |k| schedule::declare(k, class, self)).map(|_| ())
    }
}

/// Returns the maximum number of CTAs, if CTAs take several tiles; `per_sm` run at once on an SM.
fn max_ctas(
    tiles: TileAssignment,
    per_sm: u32,
    choice: Option<u32>,
    target: &Target,
) -> Result<Option<u32>, FamilyError> {
    let reject = |text: &str| Err(FamilyError::Config(text.into()));
    match (tiles, choice) {
        (TileAssignment::One, None) => Ok(None),
        (TileAssignment::One, Some(_)) => {
            reject("--ctas needs --tiles static or queue, but --tiles is one")
        }
        (_, Some(0)) => reject("--ctas is 0; it must be at least 1"),
        (_, choice) => Ok(Some(choice.unwrap_or(target.sms * per_sm))),
    }
}

/// Blocks of keys that a part has at least, as measured.
const MIN_SPLIT_BLOCKS: u32 = 2;
/// Blocks that a CTA must have less, so that a part is worth the sum of the parts, as measured.
const MIN_SAVED_BLOCKS: u32 = 6;

/// Returns the heads of Q that share a head of K and V.
pub(super) fn group(p: &Problem) -> u32 {
    p.heads.checked_div(p.kv_heads()).unwrap_or(1).max(1)
}

/// Returns the heads of a tile: all that share a head of K and V, if their queries then need fewer tiles.
fn tile_heads(p: &Problem) -> u32 {
    let (group, [queries, _]) = (group(p), p.typical_extents());
    let fits =
        u64::from(queries) * u64::from(group) <= u64::from(ROWS) && whole_rows(group) <= MAX_Q_ROWS;
    if fits && p.bias.is_none() { group } else { 1 }
}

/// The maximum rows of Q in shared memory for a tile of several heads that the heuristic selects.
const MAX_Q_ROWS: u32 = 2 * ROWS;

/// Returns the least rows that are whole queries of `heads` heads, and whole patterns of the swizzle.
fn whole_rows(heads: u32) -> u32 {
    heads / gcd_u32(heads, SWIZZLE_ROWS) * SWIZZLE_ROWS
}

fn gcd_u32(a: u32, b: u32) -> u32 {
    gcd(a.into(), b.into()) as u32
}

/// Returns how many CTAs run at once on an SM. A CTA of several consumers has more than half of its
/// registers.
fn ctas_per_sm(consumers: u32) -> u32 {
    if consumers == 1 { 2 } else { 1 }
}

/// Returns the maximum keys of a block that the heuristic selects, as measured: CTAs of one consumer share
/// an SM, and three consumers have few registers for masks.
fn max_selected_keys(class: &Class, consumers: u32) -> u32 {
    match consumers {
        1 => 64,
        3 if class.is_masked() => 96,
        _ => 128,
    }
}

/// The visible keys of a query from which on three consumers are faster than two, as measured. A tile of
/// more queries has more blocks that a mask covers in part.
const KEYS_OF_THREE: f64 = 1024.0;
const MASKED_KEYS_OF_THREE: f64 = 3072.0;

/// Returns the number of consumers: three have 160 registers each, enough for short rows only.
fn consumers(p: &Problem) -> u32 {
    let minimum = match p.class().is_masked() {
        true => MASKED_KEYS_OF_THREE,
        false => KEYS_OF_THREE,
    };
    let [queries, _] = p.typical_extents();
    match queries {
        ..=64 => 1,
        129.. if p.dim_v() <= 64 && p.visible_keys() >= minimum => 3,
        _ => 2,
    }
}

/// Returns the choice for batch invariance, which fixes the keys of a block and does not split keys: nothing
/// else of the config changes the bits of a query. Their number fits one and two consumers, with any mask.
pub(super) fn fixed_choice(
    p: &Problem,
    choice: &Choice,
    target: &Target,
) -> Result<Choice, FamilyError> {
    if choice.batch_invariant != Some(true) {
        return Ok(choice.clone());
    }
    // Biases that are loaded one by one need the most registers.
    let single = BiasStrides {
        key: 0,
        row: 0,
        head: 0,
        batch: 0,
    };
    let longest = Problem {
        queries: MAX_LEN,
        bias_strides: p.bias.map(|_| single),
        ..p.clone()
    };
    let two = Choice {
        consumers: choice.consumers.or(Some(2)),
        ..choice.clone()
    };
    let selected = match choice.tile_heads.unwrap_or(tile_heads(p)) {
        1 => consumers(p).min(2),
        _ => 1,
    };
    Ok(Choice {
        consumers: choice.consumers.or(Some(selected)),
        // Where the keys are split depends on all queries of a tile.
        splits: choice.splits.or(Some(1)),
        tile_keys: Some(Config::select(&longest, &two, target)?.tile_keys),
        ..choice.clone()
    })
}

/// Returns the choices that autotuning completes, the heuristic's first.
pub(super) fn choices(p: &Problem) -> Vec<Choice> {
    let (consumers, widths): (&[u32], &[u32]) = match p.dim.max(p.dim_v()) {
        _ if p.queries <= 64 => (&[1], &[64, 128, 192]),
        0..=64 => (&[3, 2], &[96, 112, 128, 192]),
        65..=128 => (&[2], &[96, 128, 160, 176]),
        _ => (&[2], &[48, 64, 80, 96, 112]),
    };
    let mut all = vec![Choice::default()];
    for schedule in Schedule::ALL {
        for tiles in [TileAssignment::One, TileAssignment::Queue] {
            for &consumers in consumers {
                for (&tile_keys, stages) in widths.iter().flat_map(|keys| [(keys, 2), (keys, 3)]) {
                    all.push(Choice {
                        schedule: Some(*schedule),
                        tiles: Some(tiles),
                        consumers: Some(consumers),
                        tile_keys: Some(tile_keys),
                        stages: Some(stages),
                        ..Choice::default()
                    });
                }
            }
        }
    }
    all
}
