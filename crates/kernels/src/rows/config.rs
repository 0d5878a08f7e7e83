//! How rows are dealt to threads: the options of a caller, and a complete config.

use super::cell::VECTOR;
use warpline_family::error::FamilyError;
use warpline_family::{fields, words};

/// The most threads that compute in one CTA.
pub(super) const MOST_THREADS: u32 = 1024;

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

    /// Do CTAs take blocks of rows from a queue?
    pub(super) fn has_queue(self) -> bool {
        matches!(self, Form::Specialized | Form::ThreeRoles)
    }

    /// Are rows loaded into shared memory?
    pub(super) fn has_ring(self) -> bool {
        self.rings() > 0
    }

    /// Warps beside those that compute: the loader and the storer.
    pub(super) fn helper_warps(self) -> u32 {
        match self {
            Form::Specialized => 1,
            Form::ThreeRoles => 2,
            Form::Direct | Form::DoubleBuffer | Form::TwoSweeps => 0,
        }
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
    /// Rejects numbers that no form takes, before anything is computed from them.
    pub(super) fn check(&self) -> Result<(), FamilyError> {
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
    /// Threads of a CTA, the helpers included, as the builder counts them.
    pub cta_threads: u32,
    /// Bytes of shared memory of a CTA, as the builder places them.
    pub shared_bytes: u32,
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
    /// Stages of the queue: the last role is at most all stages of every ring behind the first.
    pub(super) fn queue_stages(&self) -> u32 {
        match self.form.has_queue() {
            true => self.form.rings() * self.stages,
            false => 0,
        }
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
}

/// Rejects a config.
pub(super) fn refuse<T>(text: String) -> Result<T, FamilyError> {
    Err(FamilyError::Config(text))
}
