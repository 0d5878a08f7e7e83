//! How much of a row a thread holds, and what a config takes of an SM.

use super::cell::VECTOR;
use super::config::{Config, Form, Weights};
use super::forms;
use super::op::RowOp;
use super::problem::{Problem, Shape};
use warpline_family::error::FamilyError;
use warpline_ir::Target;
use warpline_ir::build::Resources;

/// The most 32-bit registers in which one thread holds values and weights.
const MOST_HELD: u32 = 64;

/// Registers of a thread beside those that hold values and weights.
const BESIDE_HELD: u32 = 32;

/// Bytes of shared memory that the system takes for each CTA, beside those of the kernel.
const SYSTEM_BYTES: u32 = 1024;

/// The rows of a problem, and the target that computes them.
pub(super) struct Room<'a, K: RowOp> {
    options: &'a K::Options,
    pub(super) shape: Shape,
    /// Vectors that scale or shift every row.
    pub(super) weights: u32,
    /// Are units 16 bytes?
    pub(super) vectors: bool,
    /// Units of a row.
    pub(super) units: u64,
    pub(super) target: &'a Target,
}

impl<'a, K: RowOp> Room<'a, K> {
    /// Units are 16 bytes if rows allow it, unless `vectors` is false.
    pub(super) fn new(
        problem: &'a Problem<K::Options>,
        vectors: Option<bool>,
        target: &'a Target,
    ) -> Result<Self, FamilyError> {
        let shape = problem.shape()?;
        let vectors = shape.aligned() && vectors != Some(false);
        Ok(Self {
            options: &problem.options,
            shape,
            weights: K::vectors(&problem.options).len() as u32,
            vectors,
            units: shape.units(vectors),
            target,
        })
    }

    /// Do weights stay in registers from row to row?
    pub(super) fn keeps_weights(&self, place: Weights) -> bool {
        place == Weights::Registers && self.weights > 0
    }

    /// Units that a thread holds at most, beside the weights if they are in registers.
    pub(super) fn most_units(&self, place: Weights) -> u32 {
        MOST_HELD / self.unit_registers(place)
    }

    /// Registers of a unit: 4 bytes for each value; weights keep their element type.
    fn unit_registers(&self, place: Weights) -> u32 {
        let size = self.shape.dtype.dtype().bytes() as u32;
        let weights = match self.keeps_weights(place) {
            true => self.weights,
            false => 0,
        };
        match self.vectors {
            true => VECTOR / size + VECTOR / 4 * weights,
            false => 1 + weights,
        }
    }

    /// Do the threads of a config hold a row?
    pub(super) fn holds(&self, c: &Config) -> bool {
        let held = c.units <= self.most_units(c.weights) || c.form == Form::TwoSweeps;
        held && u64::from(c.cluster) <= self.units
    }

    /// Asks the builder for the sizes of a config.
    pub(super) fn sized(&self, c: Config) -> Result<Config, FamilyError> {
        let (dtype, options) = (self.shape.dtype, self.options);
        let resources = Resources::of(self.target, |k| forms::roles::<K>(k, dtype, options, &c))?;
        Ok(Config {
            cta_threads: resources.threads,
            shared_bytes: resources.shared_bytes,
            ..c
        })
    }

    /// Has a CTA as much shared memory as a sized config takes?
    pub(super) fn fits(&self, c: &Config) -> bool {
        c.shared_bytes <= self.target.shared_bytes
    }

    /// CTAs of a sized config that an SM runs at once, as far as its registers are known before
    /// ptxas allocates them.
    pub(super) fn ctas_per_sm(&self, c: &Config) -> u32 {
        let registers = c.units * self.unit_registers(c.weights) + BESIDE_HELD;
        let sm_bytes = self.target.shared_bytes + SYSTEM_BYTES;
        (2048 / c.cta_threads)
            .min(self.target.registers / (c.cta_threads * registers))
            .min(sm_bytes / (c.shared_bytes + SYSTEM_BYTES))
            .clamp(1, 8)
    }
}
