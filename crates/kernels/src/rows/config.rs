//! How rows are dealt to threads: what may be chosen, and the rule that chooses the rest.

use super::cell::VECTOR;
use super::problem::Shape;
use crate::error::FamilyError;
use clap::{Args, ValueEnum};
use serde::Serialize;
use warpline_ir::Target;

/// The structure of the program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// Every thread loads its part of a row from global memory into registers
    Direct,
    /// Every warp computes; one thread keeps the bulk copies of the next rows in flight
    DoubleBuffer,
    /// A loader fills a ring of rows, compute warps empty it
    Specialized,
    /// The same, and a storer takes the outputs from a second ring
    ThreeRoles,
    /// Rows of any length, read twice
    TwoSweeps,
}

impl Form {
    /// Rings of rows.
    fn rings(self) -> u32 {
        match self {
            Form::Direct | Form::TwoSweeps => 0,
            Form::DoubleBuffer | Form::Specialized => 1,
            Form::ThreeRoles => 2,
        }
    }

    /// Does it bring rows to shared memory?
    pub(super) fn has_ring(self) -> bool {
        self.rings() > 0
    }
}

/// What the caller fixes of the config.
#[derive(Clone, PartialEq, Debug, Default, Args, Serialize)]
pub struct Choice {
    /// The structure of the program
    #[arg(long)]
    pub form: Option<Form>,
    /// Threads of one CTA that hold a row together: 1, 2, 4, … 32, or whole warps
    #[arg(long, value_name = "COUNT")]
    pub threads: Option<u32>,
    /// Rows that a CTA works on at once
    #[arg(long, value_name = "COUNT")]
    pub block: Option<u32>,
    /// Stages of the ring (double-buffer: 2)
    #[arg(long, value_name = "COUNT")]
    pub stages: Option<u32>,
    /// CTAs that hold a row together: 1 to 16
    #[arg(long, value_name = "COUNT")]
    pub cluster: Option<u32>,
    /// CTAs of the grid
    #[arg(long, value_name = "COUNT")]
    pub ctas: Option<u32>,
}

/// A complete config.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Config {
    /// The structure of the program.
    pub form: Form,
    /// Threads of one CTA that hold a row together.
    pub threads: u32,
    /// Units (16 bytes, or one element where rows are not aligned) that a thread holds.
    pub units: u32,
    /// Are units 16 bytes?
    pub vectors: bool,
    /// Rows that a CTA works on at once.
    pub block: u32,
    /// Stages of the ring; 1 where there is none.
    pub stages: u32,
    /// CTAs that hold a row together.
    pub cluster: u32,
    /// Do weights stay in registers from row to row?
    pub hold: bool,
    /// CTAs of the grid.
    pub ctas: u32,
}

/// The most 32-bit registers in which one thread holds values and weights.
const MOST_HELD: u32 = 64;

/// The most bytes of shared memory that two slots of every ring take by the rule.
const MOST_SLOTS: u64 = 220 * 1024;

/// The most threads that compute in one CTA.
const MOST_THREADS: u32 = 1024;

/// Rows shorter than this are not worth a copy of their own.
const LEAST_COPY: u64 = 1024;

impl Config {
    /// Are blocks of rows taken from a queue?
    pub(super) fn has_queue(&self) -> bool {
        matches!(self.form, Form::Specialized | Form::ThreeRoles)
    }

    /// Threads that compute.
    pub(super) fn computing(&self) -> u32 {
        self.threads * self.block
    }

    /// Warps that compute.
    pub(super) fn warps(&self) -> u32 {
        self.computing().div_ceil(32)
    }

    /// Warps that share a row of one CTA; 1 also where a warp holds several rows.
    pub(super) fn warps_of_row(&self) -> u32 {
        self.threads.div_ceil(32)
    }

    /// Elements of one unit.
    pub(super) fn unit(&self, size: u32) -> u32 {
        if self.vectors { VECTOR / size } else { 1 }
    }

    /// Bytes of one row in a slot of the ring.
    pub(super) fn slot_row(&self) -> u32 {
        self.threads * self.units * VECTOR
    }

    /// Shared memory of the rings, with room for records and barriers.
    fn shared_bytes(&self) -> u64 {
        let rings = u64::from(self.form.rings());
        let slot = u64::from(self.slot_row()) * u64::from(self.block);
        let meeting = 2 * u64::from(self.block * self.warps_of_row() * self.cluster) * 16;
        let queue = 64 * u64::from(self.stages);
        rings * u64::from(self.stages) * (slot + 16) + meeting + queue + u64::from(self.block) * 16
    }

    /// The config for a shape whose rows meet `weights` vectors, with the caller's choices in it.
    pub(super) fn new(
        shape: &Shape,
        weights: usize,
        choice: &Choice,
        target: &Target,
    ) -> Result<Self, FamilyError> {
        let refuse = |text: String| Err(FamilyError::Config(text));
        let room = Room::new(shape, weights);
        let vectors = room.vectors;
        let form = choice.form.unwrap_or_else(|| room.form());
        if form.has_ring() && !vectors {
            return refuse(format!(
                "form {} copies rows in bulk, and rows of {} elements with strides {} and {} do not all start and end on 16 bytes: choose --form direct",
                name(form),
                shape.cols,
                shape.x_stride,
                shape.y_stride
            ));
        }
        let cluster = choice
            .cluster
            .unwrap_or_else(|| room.cluster(form, choice.threads));
        if cluster == 0 || cluster > 16 || u64::from(cluster) > room.units {
            return refuse(format!(
                "a row of {} units is held by a cluster of 1 to {} CTAs, not {cluster}",
                room.units,
                room.units.min(16)
            ));
        }
        if form == Form::TwoSweeps && cluster > 1 {
            return refuse(format!(
                "form two-sweeps works with single CTAs, not with clusters of {cluster}"
            ));
        }
        let threads = choice
            .threads
            .unwrap_or_else(|| room.threads(form, cluster));
        if !(threads.is_power_of_two() && threads < 32
            || threads.is_multiple_of(32) && (32..=MOST_THREADS).contains(&threads))
        {
            return refuse(format!(
                "a row is held by 1, 2, 4, 8, 16 threads, or by 1 to 32 whole warps, not by {threads} threads"
            ));
        }
        if threads < 32 && (cluster > 1 || form == Form::TwoSweeps) {
            return refuse(format!(
                "in a cluster, and in two sweeps, whole warps work on a row, not {threads} threads"
            ));
        }
        let units = room.units_of(form, cluster, threads);
        if units > u64::from(room.most(false)) && form != Form::TwoSweeps {
            return refuse(format!(
                "{threads} threads in each of {cluster} CTAs hold {units} units each of a row of {} elements: {} at most (more --threads or --cluster, or --form two-sweeps)",
                shape.cols,
                room.most(false)
            ));
        }
        let mut config = Self {
            form,
            threads,
            units: units as u32,
            vectors,
            block: 1,
            stages: 1,
            cluster,
            hold: units <= u64::from(room.most(true)) && form != Form::TwoSweeps,
            ctas: 1,
        };
        let most_block = MOST_THREADS / threads;
        config.block = match choice.block {
            None => default_block(&config).min(most_block),
            Some(b) => b,
        };
        if config.block == 0
            || config.block > most_block
            || !config.computing().is_multiple_of(32) && config.computing() > 32
        {
            return refuse(format!(
                "a CTA works on 1 to {most_block} rows of {threads} threads at once, in whole warps, not on {}",
                config.block
            ));
        }
        config.stages = match (form, choice.stages) {
            (Form::Direct | Form::TwoSweeps, None) => 1,
            (Form::Direct | Form::TwoSweeps, Some(s)) => {
                return refuse(format!(
                    "form {} has no ring, so --stages {s} has no meaning: choose --form specialized",
                    name(form)
                ));
            }
            (Form::DoubleBuffer, None | Some(2)) => 2,
            (Form::DoubleBuffer, Some(s)) => {
                return refuse(format!("form double-buffer has 2 stages, not {s}"));
            }
            (_, Some(0)) => return refuse("a ring has at least 1 stage, not 0".into()),
            (_, Some(s)) => s,
            (_, None) => default_stages(&config),
        };
        let (needed, have) = (config.shared_bytes(), u64::from(target.shared_bytes));
        if needed > have {
            return refuse(format!(
                "{} stages of {} rows need {needed} bytes of shared memory; {} has {have}",
                config.stages, config.block, target.name
            ));
        }
        config.ctas = match choice.ctas {
            Some(n) if n == 0 || !n.is_multiple_of(cluster) => {
                return refuse(format!(
                    "a grid is whole clusters of {cluster} CTAs, at least one, not {n} CTAs"
                ));
            }
            Some(n) => n,
            None => config.default_ctas(shape, weights, target),
        };
        Ok(config)
    }

    /// Persistent forms get as many CTAs as a device holds at once; the queue
    /// makes it harmless if some of them find no room. Where nothing stays
    /// from row to row, each block is a CTA of its own: the hardware deals
    /// them out in order, and evens out the SMs.
    fn default_ctas(&self, shape: &Shape, weights: usize, target: &Target) -> u32 {
        let blocks = shape.rows.div_ceil(u64::from(self.block)).max(1);
        let stays = self.form.has_ring() || weights > 0 && self.hold;
        if !stays {
            let most = u64::from(u32::MAX / 2 / self.cluster);
            return blocks.min(most) as u32 * self.cluster;
        }
        let threads = self.warps() * 32 + if self.form.has_ring() { 32 } else { 0 };
        let by_threads = 2048 / threads;
        let by_registers = 65536 / (threads * 64);
        let by_shared = u64::from(target.shared_bytes) / self.shared_bytes().max(1);
        let per_sm = by_threads
            .min(by_registers)
            .min(by_shared.min(8) as u32)
            .clamp(1, 8);
        let clusters = u64::from(target.sms * per_sm / self.cluster).max(1);
        blocks.min(clusters) as u32 * self.cluster
    }
}

/// The form's name on the command line.
fn name(form: Form) -> String {
    form.to_possible_value()
        .map_or_else(String::new, |v| v.get_name().to_owned())
}

/// How much of a row a thread has room for.
struct Room<'a> {
    shape: &'a Shape,
    weights: usize,
    vectors: bool,
    /// Units of a row.
    units: u64,
}

impl<'a> Room<'a> {
    fn new(shape: &'a Shape, weights: usize) -> Self {
        let vectors = shape.aligned();
        Self {
            shape,
            weights,
            vectors,
            units: shape.units(vectors),
        }
    }

    /// Units that a thread holds at most, with or without the weights beside them.
    fn most(&self, hold: bool) -> u32 {
        let size = self.shape.dtype.dtype().bytes() as u32;
        let weights = if hold { self.weights as u32 } else { 0 };
        // Values take 4 bytes of register each, weights stay as they lie in memory.
        let (values, bytes) = match self.vectors {
            true => (VECTOR / size, VECTOR * weights),
            false => (1, 4 * weights),
        };
        4 * MOST_HELD / (4 * values + bytes)
    }

    /// The rule: what no cluster holds is read twice. Rows that meet no
    /// weights and fit one CTA are direct. Rows that start and end on 16 bytes
    /// and are worth a copy go through a ring. All else is direct.
    fn form(&self) -> Form {
        let one = u64::from(MOST_THREADS * self.most(false));
        if self.units > 16 * one {
            Form::TwoSweeps
        } else if self.weights == 0 && self.units <= one {
            Form::Direct
        } else if self.vectors && self.shape.row_bytes() >= LEAST_COPY {
            Form::Specialized
        } else {
            Form::Direct
        }
    }

    /// The fewest CTAs that hold a row with its weights, or without them.
    fn cluster(&self, form: Form, threads: Option<u32>) -> u32 {
        if form == Form::TwoSweeps {
            return 1;
        }
        let threads = u64::from(threads.unwrap_or(most_threads(form)));
        // Two slots of every ring must fit.
        let slots = u64::from(2 * form.rings() * VECTOR);
        let holds = |c: u32, hold| {
            let part = self.units.div_ceil(u64::from(c));
            threads * u64::from(self.most(hold)) >= part && part * slots <= MOST_SLOTS
        };
        let all = [1, 2, 4, 8, 16];
        let found = all.into_iter().find(|&c| holds(c, true));
        found
            .or_else(|| all.into_iter().find(|&c| holds(c, false)))
            .unwrap_or(16)
    }

    /// The fewest threads that hold their part of a row: less than a warp for short rows.
    fn threads(&self, form: Form, cluster: u32) -> u32 {
        if form == Form::TwoSweeps {
            return most_threads(form);
        }
        let least = if cluster > 1 { 32 } else { 1 };
        let all = || (0..=10).map(|i| 1u32 << i).filter(|&t| t >= least);
        let holds = |t: u32, hold| {
            self.units_of(form, cluster, t) <= u64::from(self.most(hold))
                && (t <= most_threads(form) || !hold)
        };
        let found = all().find(|&t| holds(t, true));
        found
            .or_else(|| all().find(|&t| holds(t, false)))
            .unwrap_or(MOST_THREADS)
    }

    /// Units of the busiest thread.
    fn units_of(&self, form: Form, cluster: u32, threads: u32) -> u64 {
        if form == Form::TwoSweeps {
            return if self.vectors { 4 } else { 8 };
        }
        let part = self.units.div_ceil(u64::from(cluster));
        part.div_ceil(u64::from(threads.max(1)))
    }
}

/// The most threads of a CTA that hold a row by the rule.
fn most_threads(form: Form) -> u32 {
    match form {
        Form::Direct => MOST_THREADS,
        _ => 512,
    }
}

/// Enough rows at once for 12 warps, which leave every thread 128 registers
/// beside a loader; 8 where there is none.
fn default_block(c: &Config) -> u32 {
    match c.form {
        Form::TwoSweeps => 1,
        Form::Direct => (256 / c.threads).max(1),
        _ => (384 / c.threads).max(1),
    }
}

/// Enough stages for 96 KiB in flight, or what fits; 2 at least.
fn default_stages(c: &Config) -> u32 {
    let slot = c.slot_row() * c.block;
    let most = (MOST_SLOTS as u32) / (slot * c.form.rings());
    (96 * 1024 / slot).clamp(2, 8).min(most.max(2))
}

/// Legal configs, best guess first.
pub(super) fn candidates(shape: &Shape, weights: usize, target: &Target) -> Vec<Config> {
    let mut all: Vec<Config> = Vec::new();
    let mut add = |choice: Choice| {
        let config = Config::new(shape, weights, &choice, target);
        if let Some(c) = config.ok().filter(|c| !all.contains(c)) {
            all.push(c);
        }
    };
    add(Choice::default());
    let forms = [
        Form::Specialized,
        Form::ThreeRoles,
        Form::DoubleBuffer,
        Form::Direct,
    ];
    for form in forms {
        let cluster = Room::new(shape, weights).cluster(form, None);
        for cluster in [cluster, cluster / 2, cluster * 2].map(Some) {
            for threads in [None, Some(32), Some(64), Some(128), Some(256), Some(512)] {
                let choice = Choice {
                    form: Some(form),
                    cluster,
                    threads,
                    ..Choice::default()
                };
                add(choice);
            }
        }
    }
    all.truncate(48);
    all
}
