//! Register and shared-memory needs of a config.

use super::config::{Config, Schedule, WeightStorage};
use super::element::VECTOR_BYTES;
use super::op::RowOp;
use super::problem::{Problem, Shape};
use super::schedules;
use warpline_family::error::FamilyError;
use warpline_ir::Target;
use warpline_ir::builder::Resources;

/// Maximum 32-bit registers of a thread for values and weights.
const MAX_VALUE_REGISTERS: u32 = 64;

/// Estimated registers of a thread for everything else.
const OTHER_REGISTERS: u32 = 32;

/// Bytes of shared memory per CTA that the system reserves.
const RESERVED_SHARED_BYTES: u32 = 1024;

/// The register and shared-memory needs of a problem on a target.
pub(super) struct ResourceModel<'a, K: RowOp> {
    options: &'a K::Options,
    pub(super) shape: Shape,
    /// The number of per-column vectors.
    pub(super) weights: u32,
    /// Whether a unit is 16 bytes.
    pub(super) vectors: bool,
    /// Units of a row.
    pub(super) units: u64,
    pub(super) target: &'a Target,
}

impl<'a, K: RowOp> ResourceModel<'a, K> {
    /// Creates the model. Units are 16 bytes if the rows are aligned, unless `vectors` is false.
    pub(super) fn new(
        problem: &'a Problem<K::Options>,
        vectors: Option<bool>,
        target: &'a Target,
    ) -> Result<Self, FamilyError> {
        let shape = problem.shape()?;
        let vectors = shape.is_aligned() && vectors != Some(false);
        Ok(Self {
            options: &problem.options,
            shape,
            weights: K::vectors(&problem.options).len() as u32,
            vectors,
            units: shape.units(vectors),
            target,
        })
    }

    /// Returns whether weights stay in registers from row to row.
    pub(super) fn keeps_weights_in_registers(&self, storage: WeightStorage) -> bool {
        storage == WeightStorage::Registers && self.weights > 0
    }

    /// Returns the maximum units per thread, next to the weights if those are in registers.
    pub(super) fn max_units(&self, storage: WeightStorage) -> u32 {
        MAX_VALUE_REGISTERS / self.unit_registers(storage)
    }

    /// Returns the registers of a unit: one per value; weights stay packed.
    fn unit_registers(&self, storage: WeightStorage) -> u32 {
        let size = self.shape.dtype.dtype().bytes() as u32;
        let weights = match self.keeps_weights_in_registers(storage) {
            true => self.weights,
            false => 0,
        };
        match self.vectors {
            true => VECTOR_BYTES / size + VECTOR_BYTES / 4 * weights,
            false => 1 + weights,
        }
    }

    /// Returns whether the threads of a config can hold a row.
    pub(super) fn threads_hold_row(&self, c: &Config) -> bool {
        let fit_registers = c.units <= self.max_units(c.weights) || c.schedule == Schedule::TwoPass;
        fit_registers && u64::from(c.cluster) <= self.units
    }

    /// Returns the config with the threads and shared memory that the builder reports.
    pub(super) fn with_sizes(&self, c: Config) -> Result<Config, FamilyError> {
        let (dtype, options) = (self.shape.dtype, self.options);
        let resources = Resources::of(self.target, |k| {
            schedules::roles::<K>(k, dtype, options, &c)
        })?;
        Ok(Config {
            cta_threads: resources.threads,
            shared_bytes: resources.shared_bytes,
            ..c
        })
    }

    /// Returns whether a sized config fits in shared memory.
    pub(super) fn fits_shared_memory(&self, c: &Config) -> bool {
        c.shared_bytes <= self.target.shared_bytes
    }

    /// Estimates the CTAs of a sized config per SM; ptxas decides the actual registers later.
    pub(super) fn ctas_per_sm(&self, c: &Config) -> u32 {
        let registers = c.units * self.unit_registers(c.weights) + OTHER_REGISTERS;
        let sm_bytes = self.target.shared_bytes + RESERVED_SHARED_BYTES;
        (2048 / c.cta_threads)
            .min(self.target.registers / (c.cta_threads * registers))
            .min(sm_bytes / (c.shared_bytes + RESERVED_SHARED_BYTES))
            .clamp(1, 8)
    }
}
