//! Tuning parameters: the part that the caller fixes, and the complete config.

use super::element::VECTOR_BYTES;
use warpline_family::error::FamilyError;
use warpline_family::{fields, keywords};

/// The maximum number of compute threads of a CTA.
pub(super) const MAX_THREADS: u32 = 1024;

keywords! {
    /// The division of the kernel into roles.
    pub enum Schedule {
        /// Every thread loads its part of a row from global memory into registers
        Direct = "direct",
        /// Every warp computes; one thread keeps bulk copies of the next rows in flight
        DoubleBuffer = "double-buffer",
        /// A load role fills a ring of rows; compute warps consume it
        Specialized = "specialized",
        /// As specialized, with a second ring and a store role for the outputs
        ThreeRoles = "three-roles",
        /// Loads each row twice, so rows may have any length
        TwoPass = "two-pass",
    }
}

impl Schedule {
    /// Returns the number of rings of rows.
    pub(super) fn rings(self) -> u32 {
        match self {
            Schedule::Direct | Schedule::TwoPass => 0,
            Schedule::DoubleBuffer | Schedule::Specialized => 1,
            Schedule::ThreeRoles => 2,
        }
    }

    /// Returns whether CTAs take blocks of rows from a work queue.
    pub(super) fn has_queue(self) -> bool {
        matches!(self, Schedule::Specialized | Schedule::ThreeRoles)
    }

    /// Returns whether rows are loaded into shared memory.
    pub(super) fn has_ring(self) -> bool {
        self.rings() > 0
    }

    /// Returns the number of warps that load or store instead of computing.
    pub(super) fn helper_warps(self) -> u32 {
        match self {
            Schedule::Specialized => 1,
            Schedule::ThreeRoles => 2,
            Schedule::Direct | Schedule::DoubleBuffer | Schedule::TwoPass => 0,
        }
    }
}

keywords! {
    /// Where the per-column vectors stay from row to row.
    pub enum WeightStorage {
        /// In registers of the threads that use them
        Registers = "registers",
        /// In shared memory
        Shared = "shared",
        /// In global memory: each row loads them again
        Global = "global",
    }
}

fields! {
    /// The tuning parameters that the caller fixes.
    #[derive(Default)]
    pub struct Choice {
        /// Division of the kernel into roles
        pub schedule: Option<Schedule>,
        /// Threads of a CTA that share a row: 1, 2, 4, 8, 16, or a multiple of 32
        pub threads: Option<u32>,
        /// Rows that a CTA works on at once
        pub block: Option<u32>,
        /// Stages of each ring (double-buffer: 2)
        pub stages: Option<u32>,
        /// CTAs per row, as one cluster: 1 to 16
        pub cluster: Option<u32>,
        /// Storage of the per-column weights (layer-norm, rms-norm; softmax has none)
        pub weights: Option<WeightStorage>,
        /// Access rows by 16-byte vectors; needs rows that start and end on 16 bytes
        pub vectors: Option<bool>,
        /// CTAs of the grid
        pub ctas: Option<u32>,
        /// The bits of a row do not depend on the other rows or on their number: tuned configs are not used
        pub batch_invariant: Option<bool>,
        /// Units per thread; derived from the other parameters and the row length.
        #[doc(hidden)]
        pub units: Option<u32>,
    }
}

impl Choice {
    /// Rejects numbers above the limit of every schedule, before they enter any arithmetic.
    pub(super) fn check(&self) -> Result<(), FamilyError> {
        let counts = [
            ("threads", self.threads),
            ("block", self.block),
            ("stages", self.stages),
            ("cluster", self.cluster),
        ];
        for (flag, value) in counts {
            if let Some(n) = value.filter(|&n| n > MAX_THREADS) {
                return reject(format!("--{flag} must be at most {MAX_THREADS}, not {n}"));
            }
        }
        Ok(())
    }
}

/// The complete set of tuning parameters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// Division of the kernel into roles.
    pub schedule: Schedule,
    /// Threads of a CTA that share a row.
    pub threads: u32,
    /// Units per thread. A unit is 16 bytes, or one element if rows are not aligned.
    pub units: u32,
    /// Whether a unit is 16 bytes.
    pub vectors: bool,
    /// Rows that a CTA works on at once.
    pub block: u32,
    /// Stages of each ring; 1 without a ring.
    pub stages: u32,
    /// CTAs per row.
    pub cluster: u32,
    /// Storage of the per-column weights.
    pub weights: WeightStorage,
    /// CTAs of the grid.
    pub ctas: u32,
    /// Threads of a CTA including load and store warps, as counted by the builder.
    pub cta_threads: u32,
    /// Shared memory of a CTA in bytes, as allocated by the builder.
    pub shared_bytes: u32,
}

impl From<&Config> for Choice {
    fn from(c: &Config) -> Self {
        Self {
            schedule: Some(c.schedule),
            threads: Some(c.threads),
            block: Some(c.block),
            stages: Some(c.stages),
            cluster: Some(c.cluster),
            weights: Some(c.weights),
            vectors: Some(c.vectors),
            ctas: Some(c.ctas),
            units: Some(c.units),
            batch_invariant: None,
        }
    }
}

impl Config {
    /// Returns the stages of the work queue: the last role can lag behind the first by all stages of every
    /// ring.
    pub(super) fn queue_stages(&self) -> u32 {
        match self.schedule.has_queue() {
            true => self.schedule.rings() * self.stages,
            false => 0,
        }
    }

    /// Returns the number of compute threads.
    pub(super) fn compute_threads(&self) -> u32 {
        self.threads * self.block
    }

    /// Returns the number of compute warps.
    pub(super) fn warps(&self) -> u32 {
        self.compute_threads().div_ceil(32)
    }

    /// Returns the warps of one CTA that share a row; 1 also if a warp holds several rows.
    pub(super) fn warps_per_row(&self) -> u32 {
        self.threads.div_ceil(32)
    }

    /// Returns the elements of one unit.
    pub(super) fn unit_len(&self, size: u32) -> u32 {
        if self.vectors { VECTOR_BYTES / size } else { 1 }
    }

    /// Returns the bytes of one row in a ring slot.
    pub(super) fn slot_row_bytes(&self) -> u32 {
        self.threads * self.units * VECTOR_BYTES
    }
}

/// Returns the error of a config that no schedule supports.
pub(super) fn reject<T>(text: String) -> Result<T, FamilyError> {
    Err(FamilyError::Config(text))
}
