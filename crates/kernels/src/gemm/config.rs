//! How a product is solved: forms, tiles, and whether they fit the machine.

use super::problem::{Class, Layout, MOST_TILES, Problem, Sums};
use super::tile_scheduler::TileSchedule;
use crate::roles::{self, Budget, Registers};
use crate::weights::Weights;
use std::ops::Range;
use warpline_family::error::FamilyError;
use warpline_family::{fields, words};
use warpline_ir::{Target, build};

words! {
    /// The structure of the program.
    pub enum Form {
        /// Every warpgroup loads and computes
        DoubleBuffer = "double-buffer",
        /// One loader, and consumers that share each tile
        Cooperative = "cooperative",
        /// One loader, and two consumers that take tiles and the tensor cores in turn
        PingPong = "ping-pong",
        /// As cooperative, with a role that stores
        Storer = "storer",
        /// One loader, one consumer for the gate and one for the rest, which it is handed through shared memory
        TwoConsumer = "two-consumer",
        /// One loader, warps that make numbers of what it brings, and consumers: for weights of nvfp4
        Dequantiser = "dequantiser",
        /// One loader, warps that multiply each for itself, and a role that adds up: for nvfp4 and few rows
        Warps = "warps",
    }
}

words! {
    /// CTAs that share what they load, rows × columns of tiles.
    #[derive(Default)]
    pub enum Cluster {
        /// Every CTA alone
        #[default]
        One = "1x1",
        /// Two tiles above each other share B
        Rows = "2x1",
        /// Two tiles side by side share A
        Cols = "1x2",
    }
}

impl Cluster {
    /// CTAs.
    pub(super) fn size(self) -> u32 {
        match self {
            Cluster::One => 1,
            _ => 2,
        }
    }
}

words! {
    /// In which sequence tiles are worked on.
    #[derive(Default)]
    pub enum Order {
        /// Row by row
        RowMajor = "row-major",
        /// Bands of rows, column by column inside a band
        #[default]
        Grouped = "grouped",
        /// A curve that keeps neighbours near in both directions
        Hilbert = "hilbert",
        /// Bands of rows, each CTA taking the next tile when it is done with one
        Dynamic = "dynamic",
    }
}

fields! {
    /// What the caller fixes of the config.
    #[derive(Default)]
    pub struct Choice {
        /// The structure of the program
        pub form: Option<Form>,
        /// Rows of C in a tile
        pub tile_m: Option<u32>,
        /// Columns of C in a tile
        pub tile_n: Option<u32>,
        /// Columns of C in a tile of the last columns, behind whole waves of tiles
        pub tail_n: Option<u32>,
        /// Elements of K in a stage
        pub tile_k: Option<u32>,
        /// Warpgroups that compute
        pub consumers: Option<u32>,
        /// Stages of the ring
        pub stages: Option<u32>,
        /// CTAs that share what they load
        pub cluster: Option<Cluster>,
        /// In which sequence tiles are worked on
        pub order: Option<Order>,
        /// Rows of tiles in a band of the orders grouped and dynamic
        pub group: Option<u32>,
        /// CTAs of a cluster that split the sums of a tile
        pub split_k: Option<u32>,
        /// Deals steps of K to CTAs, not tiles
        pub stream_k: Option<bool>,
        /// Multiplies B by A: the rows of B are those of the tensor cores' tile
        pub swap: Option<bool>,
        /// Has the L2 keep A and forget B first
        pub hints: Option<bool>,
        /// Registers of a loading thread
        pub load_registers: Option<u32>,
        /// Registers of a computing thread
        pub math_registers: Option<u32>,
        /// CTAs of the grid
        pub ctas: Option<u32>,
    }
}

/// A complete config.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// The structure of the program.
    pub form: Form,
    /// Rows of C in a tile.
    pub tile_m: u32,
    /// Columns of C in a tile.
    pub tile_n: u32,
    /// Columns of C in a tile behind whole waves of tiles; 0 where all tiles are alike.
    pub tail_n: u32,
    /// Elements of K in a stage.
    pub tile_k: u32,
    /// Warpgroups that compute.
    pub consumers: u32,
    /// Stages of the ring.
    pub stages: u32,
    /// CTAs that share what they load.
    pub cluster: Cluster,
    /// In which sequence tiles are worked on.
    pub order: Order,
    /// Rows of tiles in a band; 1 where the order has none.
    pub group: u32,
    /// CTAs that split the sums of a tile.
    pub split_k: u32,
    /// Are steps of K dealt to CTAs, and not tiles?
    pub stream_k: bool,
    /// Are the rows of B those of the tensor cores' tile?
    pub swap: bool,
    /// Does the L2 keep A and forget B first?
    pub hints: bool,
    /// Registers of a thread by role; none where none are moved.
    pub registers: Option<Registers>,
    /// CTAs of the grid.
    pub ctas: u32,
}

impl From<&Config> for Choice {
    fn from(c: &Config) -> Self {
        Self {
            form: Some(c.form),
            tile_m: Some(c.tile_m),
            tile_n: Some(c.tile_n),
            tail_n: (c.tail_n > 0).then_some(c.tail_n),
            tile_k: Some(c.tile_k),
            consumers: Some(c.consumers),
            stages: Some(c.stages),
            cluster: Some(c.cluster),
            order: Some(c.order),
            group: Some(c.group),
            split_k: Some(c.split_k),
            stream_k: Some(c.stream_k),
            swap: Some(c.swap),
            hints: Some(c.hints),
            load_registers: c.registers.map(|r| r.load),
            math_registers: c.registers.map(|r| r.math),
            ctas: Some(c.ctas),
        }
    }
}

impl Choice {
    /// All but the grid, which follows from the extents.
    pub(crate) fn without_grid(self) -> Self {
        Self { ctas: None, ..self }
    }
}

/// Bytes of a row of a tile that one copy brings: the widest swizzle.
const SPAN: u32 = 128;

/// How a gate is handed from consumer to consumer: columns of a part, and stages.
pub(super) const HANDED: [u32; 2] = [16, 2];

/// What a consumer has of a tile.
pub(super) struct Area {
    /// Its rows of the tensor cores' tile.
    pub(super) rows: Range<u32>,
    /// Its columns of it.
    pub(super) cols: Range<u32>,
    /// Its first row of C, of the tile of C as the tensor cores see it.
    pub(super) first: u32,
}

impl Area {
    /// Rows and columns.
    pub(super) fn sides(&self) -> [u32; 2] {
        [&self.rows, &self.cols].map(|side| side.end - side.start)
    }
}

impl Config {
    /// Rows of the tensor cores' tile, and its columns.
    pub(super) fn sides(&self) -> [u32; 2] {
        match self.swap {
            false => [self.tile_m, self.tile_n],
            true => [self.tile_n, self.tile_m],
        }
    }

    /// Rows of C that one consumer works on.
    pub(crate) fn rows(&self) -> u32 {
        match self.form {
            Form::PingPong | Form::TwoConsumer => self.sides()[0],
            _ => self.sides()[0] / self.consumers.max(1),
        }
    }

    /// What consumer `i` has of the tensor cores' tile, where the sums of two
    /// factors lie side by side, or above each other where A and B are swapped.
    pub(super) fn area(&self, class: &Class, i: u32) -> Area {
        let (rows, cols) = (self.rows(), self.sides()[1]);
        let (tall, wide) = match (class.factors(), self.swap) {
            (2, true) => (2 * rows, cols),
            (n, _) => (rows, n * cols),
        };
        let (i, cols) = match self.form {
            Form::PingPong => (0, 0..wide),
            Form::TwoConsumer => (0, i * cols..(i + 1) * cols),
            _ => (i, 0..wide),
        };
        Area {
            rows: i * tall..(i + 1) * tall,
            cols,
            first: i * rows,
        }
    }

    /// Parts in which the rows of each factor lie, those of gate and up in turn:
    /// what a consumer multiplies lies together.
    pub(super) fn blocks(&self) -> u32 {
        match self.swap {
            true => self.consumers,
            false => 1,
        }
    }

    /// Accumulators of a thread.
    fn accumulators(&self, class: &Class) -> u32 {
        let [rows, cols] = self.area(class, 0).sides();
        let sums = rows / 64 * cols / 2;
        match class.sums {
            Sums::Fast => sums,
            Sums::Promoted => 2 * sums,
        }
    }

    /// Warpgroups of a CTA.
    fn warpgroups(&self) -> u32 {
        self.consumers
            + match self.form {
                Form::DoubleBuffer => 0,
                Form::Cooperative | Form::PingPong | Form::TwoConsumer | Form::Dequantiser => 1,
                Form::Storer | Form::Warps => 2,
            }
    }

    /// Bytes of one stage of the ring.
    fn stage_bytes(&self, class: &Class) -> u32 {
        let rows = self.tile_m + class.factors() * self.tile_n;
        rows * self.tile_k * class.factor.dtype().bytes() as u32
    }

    /// Barriers, the queue's ring, and what alignment may cost.
    fn overhead(&self) -> u32 {
        1024 + 16 * self.stages + 256
    }

    /// Consumers that send tiles to C.
    fn senders(&self) -> u32 {
        match self.form {
            Form::TwoConsumer => 1,
            _ => self.consumers.max(1),
        }
    }

    /// The staging tiles of one consumer: columns of a part, and stages. The
    /// widest that leave room for the ring.
    pub(super) fn outbox(&self, class: &Class, target: &Target) -> [u32; 2] {
        let size = class.out.dtype().bytes() as u32;
        if self.swap {
            return [self.rows(), 1];
        }
        let ring = self.stages * self.stage_bytes(class) + self.overhead();
        let room = target
            .shared_bytes
            .saturating_sub(ring + self.handed_bytes())
            / self.senders();
        let fits = |&[cols, stages]: &[u32; 2]| {
            self.tile_n.is_multiple_of(cols) && self.rows() * cols * size * stages <= room
        };
        if !self.tile_n.is_multiple_of(16) {
            // Rows of an odd number of 16 bytes lie in different banks without a swizzle.
            let whole = [2, 1].map(|stages| [self.tile_n, stages]);
            return whole.into_iter().find(fits).unwrap_or([8, 1]);
        }
        let narrow = [16, 1];
        let choices = [[128, 2], [128, 1], [64, 2], [64, 1], [32, 2], [32, 1]];
        let mut all = choices
            .map(|[bytes, stages]| [bytes / size, stages])
            .into_iter();
        all.find(fits).unwrap_or(narrow)
    }

    /// Bytes of shared memory.
    fn shared_bytes(&self, class: &Class, target: &Target) -> u32 {
        let size = class.out.dtype().bytes() as u32;
        let [cols, stages] = self.outbox(class, target);
        let rows = if self.swap { self.tile_m } else { self.rows() };
        let mut bytes = self.stages.saturating_mul(self.stage_bytes(class)) + self.overhead();
        bytes += self.senders() * rows * cols * size * stages + self.handed_bytes();
        if self.split_k > 1 {
            bytes += class.factors() * self.tile_m * self.tile_n * 4;
        }
        bytes
    }

    /// Bytes through which one consumer hands the gate to the other.
    fn handed_bytes(&self) -> u32 {
        match self.form {
            Form::TwoConsumer => HANDED.iter().product::<u32>() * self.tile_m * 4,
            _ => 0,
        }
    }

    /// CTAs that an SM holds at a time.
    fn per_sm(&self, class: &Class, target: &Target) -> u32 {
        if self.registers.is_some() {
            return 1;
        }
        let by_memory = (target.shared_bytes + 1024) / (self.shared_bytes(class, target) + 1024);
        // Without moving registers each thread has as many as its accumulators, and some.
        let registers = (self.accumulators(class) + 72).next_multiple_of(8);
        let by_registers = target.registers / (self.warpgroups() * 128 * registers);
        by_memory.min(by_registers).clamp(1, 4)
    }

    /// Rows and columns of C that a cluster works on together.
    pub(crate) fn unit(&self) -> [u32; 2] {
        let twice = |tile: u32, shared: bool| if shared { 2 * tile } else { tile };
        [
            twice(self.tile_m, self.cluster == Cluster::Rows),
            twice(self.tile_n, self.cluster == Cluster::Cols),
        ]
    }

    /// Tiles of C, by rows and columns, in whole clusters.
    pub(crate) fn tiles(&self, p: &Problem) -> [u64; 2] {
        let over = |extent: u32, unit: u32, tile: u32| {
            u64::from(extent.div_ceil(unit)) * u64::from(unit / tile)
        };
        let [tall, wide] = self.unit();
        [over(p.m, tall, self.tile_m), over(p.n, wide, self.tile_n)]
    }

    /// The order, as the builder has it.
    pub(crate) fn order(&self) -> build::Order {
        match self.order {
            Order::RowMajor => build::Order::RowMajor,
            Order::Grouped | Order::Dynamic => build::Order::Grouped(self.group),
            Order::Hilbert => build::Order::Hilbert,
        }
    }

    /// How the tiles are dealt to CTAs.
    pub(crate) fn tile_schedule(&self, batched: bool) -> TileSchedule {
        TileSchedule {
            unit: self.unit(),
            order: self.order(),
            cluster: self.cluster,
            dynamic: self.order == Order::Dynamic,
            batched,
        }
    }

    /// Bytes of the sums that CTAs leave each other.
    pub(super) fn partial_bytes(&self, class: &Class) -> u64 {
        let sums = class.factors() * self.tile_m * self.tile_n;
        u64::from(self.ctas) * u64::from(sums * 4)
    }

    /// The config of which some fields are fixed, and the others are those of
    /// `base`; complete, or why there is none.
    pub(super) fn new(
        p: &Problem,
        base: &Choice,
        choice: &Choice,
        target: &Target,
    ) -> Result<Self, FamilyError> {
        let class = p.class();
        let size = class.factor.dtype().bytes() as u32;
        let span = SPAN / size;
        macro_rules! asked {
            ($field:ident, $default:expr) => {
                choice.$field.or(base.$field).unwrap_or($default)
            };
        }
        let form = asked!(form, Form::Cooperative);
        let swap = asked!(swap, false);
        let order = asked!(order, Order::Grouped);
        let tile_m = asked!(tile_m, 128);
        // One of all rows where there are so few: each column of B is then read once.
        let band = match p.m.div_ceil(tile_m.max(1)) {
            9..=16 => 16,
            _ => 8,
        };
        let mut config = Self {
            form,
            tile_m,
            tile_n: asked!(tile_n, 128),
            tail_n: asked!(tail_n, 0),
            tile_k: asked!(tile_k, span),
            consumers: asked!(consumers, 2),
            stages: 0,
            cluster: asked!(cluster, Cluster::One),
            order,
            group: match order {
                Order::Grouped | Order::Dynamic => asked!(group, band),
                _ => 1,
            },
            split_k: asked!(split_k, 1),
            stream_k: asked!(stream_k, false),
            swap,
            hints: asked!(hints, p.streams_b()),
            registers: None,
            ctas: 0,
        };
        config.check_shape(&class)?;
        config.move_registers(&class, base, choice, target)?;
        // Stages are worth their room where others load.
        let usual = base.stages.filter(|_| form != Form::DoubleBuffer);
        config.stages = match choice.stages.or(usual) {
            Some(stages) => stages,
            None => config.most_stages(&class, target),
        };
        config.check_room(&class, target)?;
        config.ctas = config.grid(p, choice.ctas.or(base.ctas), target)?;
        config.check_tail(p, target)?;
        Ok(config)
    }

    /// Refuses tiles that no form has.
    fn check_shape(&self, class: &Class) -> Result<(), FamilyError> {
        let refuse = |text: String| Err(FamilyError::Config(text));
        let size = class.factor.dtype().bytes() as u32;
        let [rows, cols] = self.sides();
        let (of_rows, of_cols) = match self.swap {
            false => ("--tile-m", "--tile-n"),
            true => ("--tile-n", "--tile-m"),
        };
        // Each of them has all rows of a tile.
        let whole = match self.form {
            Form::PingPong => Some("ping-pong"),
            Form::TwoConsumer => Some("two-consumer"),
            _ => None,
        };
        let most_consumers = if whole.is_some() { 2 } else { 3 };
        if let Some(name) = whole.filter(|_| self.consumers != 2) {
            return refuse(format!(
                "form {name} has 2 consumers, not {}",
                self.consumers
            ));
        }
        if self.consumers == 0 || self.consumers > most_consumers {
            return refuse(format!(
                "1 to {most_consumers} warpgroups compute, not {}",
                self.consumers
            ));
        }
        let unit = 64 * if whole.is_some() { 1 } else { self.consumers };
        if rows == 0 || !rows.is_multiple_of(unit) || rows > 256 {
            return refuse(format!(
                "{of_rows} is a multiple of {unit} up to 256 (64 rows for each consumer), not {rows}"
            ));
        }
        // Two factors share the columns of a product.
        let (unit, most) = match class.factors() {
            2 if !self.swap => (8, 128),
            _ => (16, 256),
        };
        if cols == 0 || !cols.is_multiple_of(unit) || cols > most {
            return refuse(format!(
                "{of_cols} is a multiple of {unit} up to {most}, not {cols}"
            ));
        }
        let spans = SPAN / size;
        if self.tile_k == 0 || !(self.tile_k.is_multiple_of(spans) || self.tile_k * 2 == spans) {
            return refuse(format!(
                "--tile-k is {}, or a multiple of {spans} (128 bytes), not {}",
                spans / 2,
                self.tile_k
            ));
        }
        if class.layout == Layout::Kn && !self.tile_n.is_multiple_of(64) {
            return refuse(format!(
                "where B lies as [K, N], --tile-n is a multiple of 64 (128 bytes of a row), not {}",
                self.tile_n
            ));
        }
        if class.sums == Sums::Promoted && self.tile_k != 128 {
            return refuse(format!(
                "sums are promoted every 128 products, so --tile-k is 128, not {}",
                self.tile_k
            ));
        }
        if self.group == 0 {
            return refuse("a band has at least 1 row of tiles, not 0 (--group 0)".into());
        }
        self.check_parts(class)
    }

    /// Refuses parts that do not go together.
    fn check_parts(&self, class: &Class) -> Result<(), FamilyError> {
        let refuse = |text: &str| Err(FamilyError::Config(text.into()));
        let span = SPAN / class.factor.dtype().bytes() as u32;
        let split = self.split_k > 1;
        if self.split_k == 0 || self.split_k > 2 {
            return Err(FamilyError::Config(format!(
                "1 or 2 CTAs split the sums of a tile, not {}",
                self.split_k
            )));
        }
        if matches!(self.form, Form::Dequantiser | Form::Warps) {
            return refuse(
                "forms dequantiser and warps are for weights of nvfp4 (dual-gemm --dtype nvfp4)",
            );
        }
        if self.form == Form::TwoConsumer {
            if class.up.is_none() {
                return refuse(
                    "form two-consumer has a factor for each consumer: it is for dual-gemm",
                );
            }
            if !self.tile_n.is_multiple_of(HANDED[0]) {
                return Err(FamilyError::Config(format!(
                    "form two-consumer hands {} columns at a time: --tile-n is a multiple of them, not {}",
                    HANDED[0], self.tile_n
                )));
            }
        }
        if class.up == Some(Weights::Interleaved) && self.cluster == Cluster::Rows {
            return refuse(
                "--cluster 2x1 shares whole rows of weights, not interleaved ones: choose 1x2",
            );
        }
        if (split || self.stream_k) && self.form != Form::Cooperative {
            return refuse("--split-k and --stream-k are for form cooperative");
        }
        if split && self.stream_k {
            return refuse("--split-k and --stream-k both divide the sums: choose one");
        }
        if class.batched && self.stream_k {
            return refuse("--stream-k deals the steps of one product: not with --batch");
        }
        if self.form == Form::DoubleBuffer && class.sums == Sums::Promoted {
            return refuse("--sums promoted needs a loader: not form double-buffer");
        }
        if self.form == Form::DoubleBuffer && !(self.tile_n / self.consumers).is_multiple_of(8) {
            return Err(FamilyError::Config(format!(
                "in form double-buffer each consumer brings a multiple of 8 rows of B: --tile-n is a multiple of {}, not {}",
                8 * self.consumers,
                self.tile_n
            )));
        }
        if self.form == Form::DoubleBuffer && self.consumers == 3 {
            return refuse(
                "form double-buffer has 1 or 2 consumers, which bring equal parts; not 3",
            );
        }
        if (split || self.stream_k) && self.order == Order::Dynamic {
            return refuse(
                "with --split-k or --stream-k a CTA's tiles are known: not --order dynamic",
            );
        }
        if self.form == Form::DoubleBuffer && self.order == Order::Dynamic {
            return refuse(
                "--order dynamic needs a loader that fetches tiles: not form double-buffer",
            );
        }
        if self.cluster != Cluster::One {
            if self.form == Form::DoubleBuffer {
                return refuse("--cluster needs a loader: not form double-buffer");
            }
            if self.swap || split || self.stream_k {
                return refuse("--cluster goes with neither --swap, --split-k nor --stream-k");
            }
            if self.tile_k > span {
                return Err(FamilyError::Config(format!(
                    "with --cluster a stage has at most {span} elements of K (128 bytes), not {}",
                    self.tile_k
                )));
            }
            if self.cluster == Cluster::Rows && class.layout == Layout::Kn {
                return refuse("--cluster 2x1 shares rows of B, which lies as [K, N]: choose 1x2");
            }
            let shared = match self.cluster {
                Cluster::Rows => self.tile_n,
                _ => self.tile_m,
            };
            if !shared.is_multiple_of(16) {
                return refuse("two CTAs share a side that is a multiple of 16");
            }
        }
        if self.swap && !matches!(self.form, Form::Cooperative | Form::DoubleBuffer) {
            return refuse("--swap is for the forms cooperative and double-buffer");
        }
        Ok(())
    }

    /// Settles the registers of the roles, or says what is too much.
    fn move_registers(
        &mut self,
        class: &Class,
        base: &Choice,
        choice: &Choice,
        target: &Target,
    ) -> Result<(), FamilyError> {
        let asked_load = choice.load_registers.or(base.load_registers);
        let asked_math = choice.math_registers.or(base.math_registers);
        let refuse = |text: String| Err(FamilyError::Config(text));
        let sums = self.accumulators(class);
        let threads = self.warpgroups() * 128;
        let entry = target.entry_registers(threads);
        let moves = self.form != Form::DoubleBuffer && threads >= 384;
        if moves {
            let idle = self.warpgroups() - self.consumers;
            // 504 or 512 in all, in units of 8 for each warpgroup.
            let pool = entry * self.warpgroups();
            let give = |load: u32| {
                let left = pool.saturating_sub(idle.saturating_mul(load));
                left / self.consumers / 8 * 8
            };
            let load = asked_load.unwrap_or(match (self.consumers, sums) {
                (3, _) => 32,
                (_, ..=192) if self.form != Form::Storer => 40,
                _ => 24,
            });
            let math = asked_math.unwrap_or(give(load).min(240));
            roles::check_registers(
                &[
                    Budget {
                        role: "loading",
                        warpgroups: idle,
                        registers: load,
                        option: "--load-registers",
                    },
                    Budget {
                        role: "computing",
                        warpgroups: self.consumers,
                        registers: math,
                        option: "--math-registers",
                    },
                ],
                target,
            )?;
            self.registers = Some(Registers { load, math });
        } else if asked_load.or(asked_math).is_some() {
            return refuse(format!(
                "registers are moved between roles of 3 or more warpgroups; this config has {}",
                self.warpgroups()
            ));
        }
        // What ptxas counts with are the registers at entry where they are fewer than 168.
        let have = match self.registers {
            Some(registers) if threads <= 384 => registers.math,
            _ => entry,
        };
        // Besides the sums: addresses, counters, what is being stored.
        let besides = 32;
        if sums + besides > have {
            return refuse(format!(
                "a tile of {} x {} keeps {sums} sums in each computing thread, and needs {} registers with what is \
                 besides; there are {have}: {} too many",
                self.tile_m,
                self.tile_n,
                sums + besides,
                sums + besides - have
            ));
        }
        Ok(())
    }

    /// The most stages that leave room for staging tiles.
    fn most_stages(&self, class: &Class, target: &Target) -> u32 {
        let with = |stages: u32| Self { stages, ..*self };
        let wide = |stages: &u32| {
            let config = with(*stages);
            let size = class.out.dtype().bytes() as u32;
            let [cols, _] = config.outbox(class, target);
            let room = config.shared_bytes(class, target) <= target.shared_bytes;
            let narrow = match self.tile_n % 32 {
                0 => cols * size < 64,
                _ => cols < self.tile_n && !self.tile_n.is_multiple_of(16),
            };
            room && (self.swap || !narrow)
        };
        let most = if self.form == Form::DoubleBuffer {
            2
        } else {
            8
        };
        (2..=most).rev().find(wide).unwrap_or(2)
    }

    /// Refuses what does not fit into shared memory.
    fn check_room(&self, class: &Class, target: &Target) -> Result<(), FamilyError> {
        let refuse = |text: String| Err(FamilyError::Config(text));
        // What is loaded is the stage that comes next: more than a few are not used.
        let most = if self.form == Form::DoubleBuffer {
            4
        } else {
            32
        };
        if self.stages < 2 || self.stages > most {
            return refuse(format!(
                "a ring has 2 to {most} stages here, not {}",
                self.stages
            ));
        }
        let needed = self.shared_bytes(class, target);
        if needed > target.shared_bytes {
            return refuse(format!(
                "{} stages of {} x {} x {} need {needed} bytes of shared memory with what is stored; {} has {}: {} too many",
                self.stages,
                self.tile_m,
                self.tile_n,
                self.tile_k,
                target.name,
                target.shared_bytes,
                needed - target.shared_bytes
            ));
        }
        Ok(())
    }

    /// CTAs of the grid.
    fn grid(&self, p: &Problem, asked: Option<u32>, target: &Target) -> Result<u32, FamilyError> {
        let refuse = |text: String| Err(FamilyError::Config(text));
        let [rows, cols] = self.tiles(p);
        let tiles = rows * cols * p.batches();
        if tiles > MOST_TILES {
            return refuse(format!(
                "{tiles} tiles of {} x {} are more than a grid counts: {MOST_TILES}",
                self.tile_m, self.tile_n
            ));
        }
        let unit = self.cluster.size() * self.split_k;
        let slots = target.sms * self.per_sm(&p.class(), target) / unit * unit;
        let all = tiles * u64::from(self.split_k);
        let steps = u64::from(p.k.div_ceil(self.tile_k).max(1));
        // The step behind the last one is counted too.
        if self.stream_k && tiles.saturating_mul(steps + 1) > MOST_TILES {
            return refuse(format!(
                "{steps} k-tiles of each of {tiles} tiles are more than --stream-k counts: {MOST_TILES}"
            ));
        }
        match asked {
            None if self.stream_k => Ok((tiles * steps).min(slots.into()) as u32),
            None => Ok(all.min(slots.into()) as u32),
            Some(n) if n == 0 || !n.is_multiple_of(unit) => refuse(format!(
                "a grid has a multiple of {unit} CTAs (whole clusters), at least one, not {n}"
            )),
            Some(n) if self.stream_k && n > slots => refuse(format!(
                "with --stream-k all CTAs are on the machine at once: at most {slots}, not {n}"
            )),
            Some(n) => Ok(n),
        }
    }
}
