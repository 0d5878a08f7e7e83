//! The estimated time of a config.
//!
//! A kernel takes the longest of three times: that of its slowest SM, that of its memory traffic, and that
//! of the out-of-bounds rows that TMA fills with zeros. An SM computes its tiles one after the other; a
//! k-tile takes as long as the tensor cores, its loads, their latency or the gather needs, whichever is
//! longest.

use super::constants::Constants;
use super::features::{Features, Kernel, Operand};
use crate::gemm::config::{Config, ScheduleKind};
use crate::gemm::mainloop::gather::LOADS_IN_FLIGHT;
use crate::gemm::problem::Problem;
use warpline_ir::Target;

/// Returns the estimated seconds of a config.
pub(in crate::gemm) fn estimate(p: &Problem, c: &Config, target: &Target) -> f64 {
    Features::of(p, c, target).seconds(&Constants::FITTED)
}

impl Features {
    /// Returns the estimated seconds.
    pub fn seconds(&self, t: &Constants) -> f64 {
        let copies = match self.copied_bytes {
            0.0 => 0.0,
            bytes => t.copy_launch + bytes / t.copy,
        };
        let sum: f64 = self.kernels.iter().map(|kernel| kernel.seconds(t)).sum();
        // Two kernels must save more than this margin.
        copies
            + sum
                * if self.kernels.len() > 1 {
                    t.two_kernels
                } else {
                    1.0
                }
    }
}

impl Operand {
    /// Returns the bytes that the loads of a k-tile take from the L2, if no cluster shares them.
    fn k_tile(&self, t: &Constants, row_bytes: f64) -> f64 {
        let reads = 1.0 + t.straddling_reads * f64::from(self.straddles);
        self.tile_rows * reads * row_bytes
    }
}

impl Kernel {
    fn seconds(&self, t: &Constants) -> f64 {
        let power = (self.flops / t.power_flops).min(1.0);
        let busy = self.cycles(t) / t.clock * (1.0 + power * t.power);
        let residuals = f64::from(self.residual);
        let results = self.outputs * self.out_bytes * (WRITTEN_SHARE + residuals);
        let memory = (self.operand_bytes() + results) / MEMORY;
        let zeros: f64 = self
            .operands
            .iter()
            .map(|operand| operand.out_of_bounds)
            .sum();
        let zeros = zeros * self.k_tiles / t.out_of_bounds;
        let clusters = t.cluster * self.cluster.log2() / t.clock;
        t.launch + clusters + longest(MIX_OF_BOUNDS, &[busy, memory, zeros])
    }

    /// Returns the cycles of the slowest SM.
    fn cycles(&self, t: &Constants) -> f64 {
        let k_tile = self.k_tile(t);
        let epilogue = self.epilogue(t);
        let cycles = match self.stream_k {
            true => self.stream_k(t, k_tile, epilogue),
            false => self.waves_of_tiles(t, k_tile, epilogue),
        };
        // The epilogue of the last tile is visible.
        let tail = match self.is_ping_pong() {
            true => t.last_epilogue * (epilogue + self.values * self.value_cycles(t)),
            false => 0.0,
        };
        let swapped = match self.swap_ab {
            true => t.swap_ab_consumer * self.consumers,
            false => 0.0,
        };
        cycles * self.rounds + tail + swapped
    }

    fn waves_of_tiles(&self, t: &Constants, k_tile: f64, epilogue: f64) -> f64 {
        let waves = self.tiles * self.split_k / self.ctas;
        let k_tiles = (self.k_tiles / self.split_k).ceil();
        let visible = match self.is_ping_pong() {
            // The wgmmas of the other consumer hide the epilogue, if they take long enough.
            true => t.switch + (t.hidden_share * epilogue - self.k_tiles * k_tile).max(0.0),
            false if !self.one_staging_tile && waves > 1.0 => epilogue * t.overlapped_epilogue,
            false => epilogue,
        };
        (waves - 1e-9).ceil() * (k_tiles * k_tile + visible + self.exchange(t))
    }

    /// Returns the cycles in which CTAs that divide K exchange their accumulators.
    fn exchange(&self, t: &Constants) -> f64 {
        let senders = self.split_k - 1.0;
        let sent = self.rows * self.cols * 2.0 / self.consumers;
        match senders {
            0.0 => 0.0,
            _ if self.exchanges_in_memory => {
                t.memory_exchange + senders * t.memory_part + sent * t.memory_value
            }
            _ => t.split_k + senders * t.split_k_value * sent,
        }
    }

    fn stream_k(&self, t: &Constants, k_tile: f64, epilogue: f64) -> f64 {
        let share = self.tiles * self.k_tiles / self.ctas;
        let tiles = share / self.k_tiles;
        let exchange = match tiles.fract() > 1e-6 {
            // CTAs that share a tile wait for each other.
            true => {
                let others = (1.0 / tiles).clamp(1.0, 8.0) - 1.0;
                t.stream_k + self.rows * self.cols * t.stream_k_part_value * others
            }
            false => 0.0,
        };
        share * k_tile + tiles.ceil() * epilogue + exchange
    }

    /// Returns the cycles of a k-tile.
    fn k_tile(&self, t: &Constants) -> f64 {
        // One wgmma of 64 rows and 32 bytes of K: bound by the tensor cores or by shared memory.
        let wgmma = (self.cols / 2.0).max(t.narrow_wgmma + self.cols / 4.0);
        let promotion = if self.is_promoted { 1.25 } else { 1.0 };
        let math = self.rows / 64.0 * self.row_bytes / 32.0 * wgmma * promotion;
        let loads = self.loads(t);
        let latency = t.latency + t.latency_byte * self.k_tile_bytes(t);
        let latency = latency / (self.stages - 1.0);
        let cycles = longest(MIX_OF_STAGES, &[math, loads, latency, self.gather(t)]);
        let multicast = match self.operands.iter().any(|operand| operand.share < 1.0) {
            true => t.multicast,
            false => 0.0,
        };
        cycles * (1.0 + multicast)
    }

    /// Returns the bytes that a CTA receives for a k-tile.
    fn k_tile_bytes(&self, t: &Constants) -> f64 {
        let bytes = |operand: &Operand| operand.k_tile(t, self.row_bytes);
        self.operands.iter().map(bytes).sum()
    }

    /// Returns the cycles of the loads of a k-tile: bound by the SM or by the L2, which all SMs share.
    fn loads(&self, t: &Constants) -> f64 {
        let [mut from_l2, mut distinct] = [0.0; 2];
        for operand in &self.operands {
            // TMA fills rows that do not exist without the L2.
            let loaded = operand.share * operand.in_bounds * operand.k_tile(t, self.row_bytes);
            from_l2 += loaded;
            distinct += loaded / operand.sharing.max(1.0 / operand.share);
        }
        let l2_seconds = self.running * (from_l2 / t.l2 + distinct / t.l2_distinct);
        let l2_cycles = l2_seconds * t.clock;
        longest(MIX_OF_LOADS, &[self.k_tile_bytes(t) / t.load, l2_cycles])
    }

    /// Returns the cycles in which the producer gathers a k-tile.
    fn gather(&self, t: &Constants) -> f64 {
        let of_both = |i: usize| -> f64 { self.operands.iter().map(|o| o.gathers[i]).sum() };
        let [loads, registers] = [of_both(0), of_both(1)];
        (registers / LOADS_IN_FLIGHT).ceil() * t.gather_group + loads * t.gather_load
    }

    /// Returns the cycles of an epilogue per value.
    fn value_cycles(&self, t: &Constants) -> f64 {
        let store = match self.by_element {
            true => t.by_element,
            false => 1.0,
        };
        let ops = t.activation_value * f64::from(self.activation)
            + t.bias_value * f64::from(self.bias)
            + t.residual_value * f64::from(self.residual);
        t.epilogue_value * self.out_bytes / 2.0 * store + ops
    }

    /// Returns the cycles of an epilogue.
    fn epilogue(&self, t: &Constants) -> f64 {
        let value = self.value_cycles(t);
        // CTAs that exchange accumulators in memory store some parts each.
        let parts = match self.exchanges_in_memory {
            true => (self.parts / self.split_k).ceil(),
            false => self.parts,
        };
        let values = self.values * parts / self.parts;
        let mut cycles = t.part * parts + values * value * 2.0 / self.consumers;
        if self.schedule == ScheduleKind::TwoConsumer {
            // One consumer finishes a tile, and waits for the other's part.
            cycles += self.values * (value + t.split_k_value * 0.1);
        }
        if self.one_staging_tile {
            cycles += t.staging_wait * (parts.max(1.0) - 1.0);
        }
        cycles
    }
}

/// Memory bandwidth in bytes per second.
const MEMORY: f64 = 4.4e12;
/// The share of C that reaches memory before the kernel ends.
const WRITTEN_SHARE: f64 = 0.6;
/// Exponents of the smooth maxima: the larger, the less do other times than the longest count.
const MIX_OF_BOUNDS: i32 = 5;
const MIX_OF_STAGES: i32 = 8;
const MIX_OF_LOADS: i32 = 4;

/// Returns a smooth maximum: slightly above the longest time where two are close.
fn longest(exponent: i32, times: &[f64]) -> f64 {
    let max = times.iter().copied().fold(0.0, f64::max);
    if max <= 0.0 {
        return 0.0;
    }
    let sum: f64 = times.iter().map(|time| (time / max).powi(exponent)).sum();
    max * sum.powf(1.0 / f64::from(exponent))
}
