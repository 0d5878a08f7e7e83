//! The rule that deals rows to threads where the caller does not say how.

use super::cell::VECTOR;
use super::config::{Choice, Config, Form, Weights};
use super::problem::Shape;
use warpline_ir::Target;

/// The most threads that compute in one CTA.
pub(super) const MOST_THREADS: u32 = 1024;

/// The most 32-bit registers in which one thread holds values and weights.
const MOST_HELD: u32 = 64;

/// Registers of a thread beside what it holds.
const BESIDE_HELD: u32 = 32;

/// Rows shorter than this, in bytes, are not worth a copy of their own.
const LEAST_COPY: u64 = 1024;

/// The most bytes of a row without weights that is direct: above, an SM has
/// no second CTA that computes while the first one loads, so that a ring must
/// do it. 4-byte elements need half the registers.
fn most_direct(size: usize) -> u64 {
    match size {
        4 => 128 * 1024,
        _ => 64 * 1024 - 1,
    }
}

/// Bytes in flight for each CTA of a ring.
const IN_FLIGHT: u32 = 96 * 1024;

/// A row, and how much of it a thread has room for.
pub(super) struct Room<'a> {
    pub(super) shape: &'a Shape,
    /// Vectors that every row meets.
    weights: usize,
    /// Are units 16 bytes?
    pub(super) vectors: bool,
    /// Units of a row.
    pub(super) units: u64,
    target: &'a Target,
}

impl<'a> Room<'a> {
    /// Vectors are taken where rows allow them, unless the caller does not.
    pub(super) fn new(
        shape: &'a Shape,
        weights: usize,
        vectors: Option<bool>,
        target: &'a Target,
    ) -> Self {
        let vectors = shape.aligned() && vectors != Some(false);
        Self {
            shape,
            weights,
            vectors,
            units: shape.units(vectors),
            target,
        }
    }

    /// Units that a thread holds at most, beside the weights where they are in registers.
    pub(super) fn most(&self, place: Weights) -> u32 {
        let weights = match place {
            Weights::Registers => self.weights as u32,
            _ => 0,
        };
        MOST_HELD / self.registers(weights)
    }

    /// Registers that a unit takes, with so many weights beside it: 4 bytes for
    /// each value; weights stay as they lie in memory.
    fn registers(&self, weights: u32) -> u32 {
        let size = self.shape.dtype.dtype().bytes() as u32;
        match self.vectors {
            true => VECTOR / size + VECTOR / 4 * weights,
            false => 1 + weights,
        }
    }

    /// Persistent forms get as many CTAs as a device holds at once; the queue
    /// makes it harmless if some of them find no room. Where nothing stays
    /// from row to row, each block is a CTA of its own: the hardware deals
    /// them out in order, and evens out the SMs.
    pub(super) fn ctas(&self, c: &Config) -> u32 {
        let blocks = self.shape.rows.div_ceil(u64::from(c.block)).max(1);
        let kept = c.weights == Weights::Registers && self.weights > 0;
        if !c.form.has_ring() && !kept {
            let most = u64::from(u32::MAX / 2 / c.cluster);
            return blocks.min(most) as u32 * c.cluster;
        }
        let threads = c.all_threads();
        let weights = if kept { self.weights as u32 } else { 0 };
        let registers = c.units * self.registers(weights) + BESIDE_HELD;
        let shared = c.shared_bytes(self.weights).max(1);
        let per_sm = (2048 / threads)
            .min(self.target.registers / (threads * registers))
            .min((u64::from(self.target.shared_bytes) / shared).min(8) as u32)
            .max(1);
        let clusters = u64::from(self.target.sms * per_sm / c.cluster).max(1);
        blocks.min(clusters) as u32 * c.cluster
    }

    /// Rows that start and end on 16 bytes and are worth a copy go through a
    /// ring, if they meet weights, which stay with the CTA, or are long. All
    /// others are direct. What no cluster holds so is read twice.
    pub(super) fn form(&self) -> Form {
        let bytes = self.shape.row_bytes();
        let least = match self.weights {
            0 => most_direct(self.shape.dtype.dtype().bytes()) + 1,
            _ => LEAST_COPY,
        };
        let holds = |form: &Form| self.has_room(&self.deal(*form, &Choice::default()));
        let ring = (self.vectors && bytes >= least).then_some(Form::Specialized);
        let held = ring.into_iter().chain([Form::Direct]).find(holds);
        held.unwrap_or(Form::TwoSweeps)
    }

    /// The first deal that has room, of those that agree with the choice:
    ///
    /// 1. One CTA, weights in registers, as few threads as hold a row.
    /// 2. As few CTAs as have room for the weights in shared memory, two rows at once.
    /// 3. As few CTAs as hold a row.
    ///
    /// If none has, the last one, which is refused.
    pub(super) fn deal(&self, form: Form, choice: &Choice) -> Config {
        let ring = form.has_ring();
        let places = match (choice.weights, self.weights, ring) {
            (Some(place), ..) => vec![place],
            (_, 0, _) => vec![Weights::Registers],
            (_, _, false) => vec![Weights::Registers, Weights::Global],
            _ => vec![Weights::Registers, Weights::Shared, Weights::Global],
        };
        let mut last = None;
        for place in places {
            let lone = place == Weights::Registers && self.weights > 0;
            let clusters = match (choice.cluster, form) {
                (Some(c), _) => vec![c],
                (_, Form::TwoSweeps) => vec![1],
                _ if lone => vec![1],
                _ => vec![1, 2, 4, 8, 16],
            };
            let most = if form == Form::Direct { 10 } else { 9 };
            let threads = match (choice.threads, form, place) {
                (Some(t), ..) => vec![t],
                (_, Form::TwoSweeps, _) => vec![512],
                (_, _, Weights::Shared) => vec![256, 512],
                _ => (0..=most).map(|i| 1 << i).collect(),
            };
            for &cluster in &clusters {
                // In a cluster whole warps hold a row; what the caller says is judged later.
                let usable = |t: &&u32| cluster == 1 || **t >= 32 || choice.threads.is_some();
                for &threads in threads.iter().filter(usable) {
                    let config = self.config(form, cluster, threads, place, choice);
                    if self.has_room(&config) {
                        return config;
                    }
                    last = Some(config);
                }
            }
        }
        last.unwrap_or_else(|| self.config(form, 16, 512, Weights::Global, choice))
    }

    fn has_room(&self, c: &Config) -> bool {
        let shared = c.shared_bytes(self.weights) <= u64::from(self.target.shared_bytes);
        let held = c.units <= self.most(c.weights) || c.form == Form::TwoSweeps;
        shared && held && u64::from(c.cluster) <= self.units
    }

    /// A deal, with as many stages as it has room for.
    fn config(
        &self,
        form: Form,
        cluster: u32,
        threads: u32,
        weights: Weights,
        choice: &Choice,
    ) -> Config {
        let part = self.units.div_ceil(u64::from(cluster.max(1)));
        let units = match (form, self.vectors) {
            (Form::TwoSweeps, true) => 4,
            (Form::TwoSweeps, false) => 8,
            _ => part.div_ceil(u64::from(threads.max(1))),
        };
        let mut config = Config {
            form,
            threads,
            units: units.min(u64::from(u32::MAX / 1024 / VECTOR)) as u32,
            vectors: self.vectors,
            block: choice.block.unwrap_or(usual_block(form, threads)),
            stages: if form.has_ring() { 2 } else { 1 },
            cluster,
            weights,
            ctas: 1,
        };
        if matches!(form, Form::Specialized | Form::ThreeRoles) {
            let slot = (config.slot_row() * config.block).max(1);
            let enough = (IN_FLIGHT / slot).clamp(2, 8);
            while config.stages < enough {
                config.stages += 1;
                if !self.has_room(&config) {
                    config.stages -= 1;
                    break;
                }
            }
        }
        config
    }
}

/// Rows that a CTA works on at once.
///
/// Without a ring, four warps, so that a finished CTA makes room soon. With
/// one, 15 warps at most, which with the loader leave every thread 128
/// registers; two rows where 8 warps share one, so that one computes while
/// the other's records meet.
fn usual_block(form: Form, threads: u32) -> u32 {
    match (form, threads) {
        (_, 0) | (Form::TwoSweeps, _) => 1,
        (Form::Direct, t) => (128 / t).max(1),
        (_, 256) => 2,
        (_, t) => (480 / t).max(1),
    }
}
