//! How rows are dealt to threads: what may be chosen, and the rule that chooses the rest.

use super::cell::VECTOR;
use super::problem::Shape;
use super::rule::{MOST_THREADS, Room};
use warpline_family::error::FamilyError;
use warpline_family::{fields, words};
use warpline_ir::Target;

words! {
    /// The structure of the program.
    pub enum Form {
        /// Every thread loads its part of a row from global memory into registers
        Direct = "direct",
        /// Every warp computes; one thread keeps the bulk copies of the next rows in flight
        DoubleBuffer = "double-buffer",
        /// A loader fills a ring of rows, compute warps empty it
        Specialized = "specialized",
        /// The same, and a storer takes the outputs from a second ring
        ThreeRoles = "three-roles",
        /// Rows of any length, read twice
        TwoSweeps = "two-sweeps",
    }
}

impl Form {
    /// Rings of rows.
    pub(super) fn rings(self) -> u32 {
        match self {
            Form::Direct | Form::TwoSweeps => 0,
            Form::DoubleBuffer | Form::Specialized => 1,
            Form::ThreeRoles => 2,
        }
    }

    /// Are blocks of rows taken from a queue?
    pub(super) fn has_queue(self) -> bool {
        matches!(self, Form::Specialized | Form::ThreeRoles)
    }

    /// Does it bring rows to shared memory?
    pub(super) fn has_ring(self) -> bool {
        self.rings() > 0
    }
}

words! {
    /// Where the weights that every row meets stay from row to row.
    pub enum Weights {
        /// In the registers of the threads that need them
        Registers = "registers",
        /// In shared memory
        Shared = "shared",
        /// Nowhere: each row reads them again
        Global = "global",
    }
}

fields! {
    /// What the caller fixes of the config.
    #[derive(Default)]
    pub struct Choice {
        /// The structure of the program
        pub form: Option<Form>,
        /// Threads of one CTA that hold a row together: 1, 2, 4, … 32, or whole warps
        pub threads: Option<u32>,
        /// Rows that a CTA works on at once
        pub block: Option<u32>,
        /// Stages of the ring (double-buffer: 2)
        pub stages: Option<u32>,
        /// CTAs that hold a row together: 1 to 16
        pub cluster: Option<u32>,
        /// Where weights stay from row to row
        pub weights: Option<Weights>,
        /// Are rows read and written by 16 bytes, where all start and end there?
        pub vectors: Option<bool>,
        /// CTAs of the grid
        pub ctas: Option<u32>,
        /// Units of a row that a thread holds: they follow from the rest and the row's length.
        #[doc(hidden)]
        pub units: Option<u32>,
    }
}

impl Choice {
    /// Refuses numbers that no form could take, before anything is computed with them.
    fn is_sane(&self) -> Result<(), FamilyError> {
        let given = [
            ("threads", self.threads),
            ("block", self.block),
            ("stages", self.stages),
            ("cluster", self.cluster),
        ];
        for (flag, value) in given {
            if let Some(n) = value.filter(|&n| n > MOST_THREADS) {
                return refuse(format!("--{flag} is at most {MOST_THREADS}, not {n}"));
            }
        }
        Ok(())
    }
}

/// A complete config.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
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
    /// Where weights stay from row to row.
    pub weights: Weights,
    /// CTAs of the grid.
    pub ctas: u32,
}

impl From<&Config> for Choice {
    fn from(c: &Config) -> Self {
        Self {
            form: Some(c.form),
            threads: Some(c.threads),
            block: Some(c.block),
            stages: Some(c.stages),
            cluster: Some(c.cluster),
            weights: Some(c.weights),
            vectors: Some(c.vectors),
            ctas: Some(c.ctas),
            units: Some(c.units),
        }
    }
}

impl Config {
    /// Places of the queue: the last role can be every ring behind the first, and no more.
    pub(super) fn queue_stages(&self) -> u32 {
        match self.form.has_queue() {
            true => self.form.rings() * self.stages,
            false => 0,
        }
    }

    /// Threads of all roles.
    pub(super) fn all_threads(&self) -> u32 {
        let others = match self.form {
            Form::Specialized => 1,
            Form::ThreeRoles => 2,
            _ => 0,
        };
        (self.warps() + others) * 32
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

    /// Shared memory of the rings and the weights, with room for records and barriers.
    pub(super) fn shared_bytes(&self, weights: usize) -> u64 {
        let row = u64::from(self.slot_row());
        let slot = row * u64::from(self.block) + 16;
        let rings = u64::from(self.form.rings() * self.stages) * slot;
        let weights = match self.weights {
            Weights::Shared => weights as u64 * row,
            _ => 0,
        };
        let meeting = 2 * u64::from(self.block * (self.warps_of_row() * self.cluster + 1)) * 16;
        // A place of the queue is 128 bytes, and two barriers.
        let queue = 144 * u64::from(self.queue_stages()) + 512;
        rings + weights + meeting + queue
    }

    /// The config for a shape whose rows meet `weights` vectors, with the caller's choices in it.
    pub(super) fn new(
        shape: &Shape,
        weights: usize,
        choice: &Choice,
        target: &Target,
    ) -> Result<Self, FamilyError> {
        let room = Room::new(shape, weights, choice.vectors, target);
        if choice.vectors == Some(true) && !room.vectors {
            return refuse(format!(
                "rows of {} elements with strides {} and {} do not all start and end on 16 bytes: --vectors false",
                shape.cols, shape.x_stride, shape.y_stride
            ));
        }
        let form = choice.form.unwrap_or_else(|| room.form());
        if form.has_ring() && choice.vectors == Some(false) {
            return refuse(format!(
                "form {} copies rows in bulk, by 16 bytes, and not by single elements (--vectors false): choose --form direct",
                form.word()
            ));
        }
        if form.has_ring() && !room.vectors {
            return refuse(format!(
                "form {} copies rows in bulk, and rows of {} elements with strides {} and {} do not all start and end on 16 bytes: choose --form direct",
                form.word(),
                shape.cols,
                shape.x_stride,
                shape.y_stride
            ));
        }
        choice.is_sane()?;
        let mut config = room.deal(form, choice);
        config.check(&room, choice)?;
        if let Some(stages) = choice.stages {
            config.stages = stages;
        }
        let (needed, have) = (config.shared_bytes(weights), u64::from(target.shared_bytes));
        if needed > have {
            return refuse(format!(
                "{} stages of {} rows need {needed} bytes of shared memory; {} has {have}",
                config.stages, config.block, target.name
            ));
        }
        config.ctas = match choice.ctas {
            Some(n) if n == 0 || !n.is_multiple_of(config.cluster) => {
                return refuse(format!(
                    "a grid is whole clusters of {} CTAs, at least one, not {n} CTAs",
                    config.cluster
                ));
            }
            Some(n) => n,
            None => room.ctas(&config),
        };
        Ok(config)
    }

    /// Refuses what the forms cannot be built with.
    fn check(&self, room: &Room<'_>, choice: &Choice) -> Result<(), FamilyError> {
        let Self {
            form,
            threads,
            cluster,
            block,
            ..
        } = *self;
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
        let most = room.most(self.weights);
        if self.units > most && form != Form::TwoSweeps {
            return refuse(format!(
                "{threads} threads in each of {cluster} CTAs hold {} units each of a row of {} elements: {most} at most (more --threads or --cluster, other --weights, or --form two-sweeps)",
                self.units, room.shape.cols
            ));
        }
        if self.weights == Weights::Shared && !form.has_ring() {
            return refuse(format!(
                "form {} leaves no weights in shared memory: --weights registers or global",
                form.word()
            ));
        }
        let beside = self.all_threads() - self.warps() * 32;
        let most_block = (MOST_THREADS - beside) / threads;
        if block == 0 || block > most_block {
            return refuse(format!(
                "a CTA works on 1 to {most_block} rows of {threads} threads at once, not on {block}"
            ));
        }
        if form == Form::TwoSweeps && block > 1 {
            return refuse(format!(
                "--block {block}: form two-sweeps works on 1 row at a time\n\
                 help: use --block 1, or --form direct for several rows that threads hold"
            ));
        }
        if !self.computing().is_multiple_of(32) {
            return refuse(format!(
                "--block {block} with {threads} threads for each row are {} threads, but a CTA computes in whole warps of 32\n\
                 help: use --block {} or a multiple of it",
                self.computing(),
                32 / threads
            ));
        }
        match (form, choice.stages) {
            (Form::Direct | Form::TwoSweeps, Some(s)) => refuse(format!(
                "form {} has no ring, so --stages {s} has no meaning: choose --form specialized",
                form.word()
            )),
            (Form::DoubleBuffer, Some(s)) if s != 2 => {
                refuse(format!("form double-buffer has 2 stages, not {s}"))
            }
            (_, Some(0)) => refuse("a ring has at least 1 stage, not 0".into()),
            _ => Ok(()),
        }
    }
}

fn refuse<T>(text: String) -> Result<T, FamilyError> {
    Err(FamilyError::Config(text))
}

/// Legal configs, best guess first.
pub(super) fn candidates(shape: &Shape, weights: usize, target: &Target) -> Vec<Config> {
    let mut all: Vec<Config> = Vec::new();
    let mut add = |choice: Choice| {
        let config = Config::new(shape, weights, &choice, target).ok();
        all.extend(config.filter(|c| !all.contains(c)));
    };
    add(Choice::default());
    let room = Room::new(shape, weights, None, target);
    let forms = [
        Form::Specialized,
        Form::ThreeRoles,
        Form::Direct,
        Form::DoubleBuffer,
    ];
    for form in forms {
        let usual = room.deal(form, &Choice::default());
        for cluster in [usual.cluster, usual.cluster / 2, usual.cluster * 2] {
            for threads in [usual.threads, usual.threads / 2, usual.threads * 2] {
                for block in [None, Some(1), Some(2)] {
                    add(Choice {
                        form: Some(form),
                        cluster: Some(cluster),
                        threads: Some(threads),
                        block,
                        ..Choice::default()
                    });
                }
            }
        }
    }
    all.truncate(48);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpline_family::float::Float;

    fn config(choice: Choice) -> Result<Config, String> {
        let shape = Shape {
            rows: 64,
            cols: 4096,
            dtype: Float::Bf16,
            x_stride: 4096,
            y_stride: 4096,
        };
        Config::new(&shape, 2, &choice, &Target::SM_90A).map_err(|e| e.to_string())
    }

    #[test]
    fn what_the_caller_says_is_taken_or_refused() {
        for (threads, cluster) in [(Some(16), Some(2)), (Some(256), Some(4)), (None, Some(3))] {
            let choice = Choice {
                threads,
                cluster,
                ..Choice::default()
            };
            match config(choice) {
                Ok(c) => {
                    assert!(threads.is_none_or(|t| t == c.threads), "{c:?}");
                    assert_eq!(cluster, Some(c.cluster), "{c:?}");
                }
                Err(e) => assert!(e.contains("not 16 threads"), "{e}"),
            }
        }
    }

    #[test]
    fn rows_at_once_fill_whole_warps_and_sweeps_take_one() {
        let told = |cols: u64, form: Form, threads: u32, block: u32| {
            let shape = Shape {
                rows: 5,
                cols,
                dtype: Float::F32,
                x_stride: cols,
                y_stride: cols,
            };
            let choice = Choice {
                form: Some(form),
                threads: Some(threads),
                block: Some(block),
                ..Choice::default()
            };
            let config = Config::new(&shape, 0, &choice, &Target::SM_90A);
            config.map_or_else(|e| e.to_string(), |c| format!("{} threads", c.computing()))
        };
        for form in [Form::Direct, Form::DoubleBuffer, Form::Specialized] {
            assert_eq!(
                told(16, form, 4, 4),
                "--block 4 with 4 threads for each row are 16 threads, but a CTA computes in whole warps of 32\n\
                 help: use --block 8 or a multiple of it"
            );
            assert_eq!(told(16, form, 4, 8), "32 threads");
        }
        let four = told(20_092, Form::TwoSweeps, 128, 4);
        assert!(
            four.starts_with("--block 4: form two-sweeps works on 1 row at a time\nhelp: "),
            "{four}"
        );
        assert_eq!(told(20_092, Form::TwoSweeps, 128, 1), "128 threads");
    }

    #[test]
    fn absurd_numbers_are_refused_by_a_sentence() {
        for n in [0, 1025, u32::MAX] {
            let forms = [Form::Direct, Form::Specialized, Form::ThreeRoles];
            for form in forms {
                let choice = || Choice {
                    form: Some(form),
                    ..Choice::default()
                };
                let all = [
                    Choice {
                        threads: Some(n),
                        ..choice()
                    },
                    Choice {
                        block: Some(n),
                        ..choice()
                    },
                    Choice {
                        stages: Some(n),
                        ..choice()
                    },
                    Choice {
                        cluster: Some(n),
                        ..choice()
                    },
                ];
                for choice in all {
                    let told = config(choice.clone()).expect_err("absurd");
                    assert!(told.contains(&n.to_string()), "{choice:?}: {told}");
                }
            }
        }
    }
}
