//! The estimated time of a config.
//!
//! The estimate counts the cycles of one SM: tensor core time, bytes loaded into shared memory,
//! epilogues, and waves of tiles. A second bound is the memory traffic of all SMs.

use super::constants::Constants;
use crate::gemm::access::OperandAccess;
use crate::gemm::config::{Config, Schedule, Staging};
use crate::gemm::mainloop::gather::{LOADS_IN_FLIGHT, THREADS as GATHER_THREADS};
use crate::gemm::problem::{Accumulation, Matrix, Problem};
use crate::gemm::tail::SubGemm;
use warpline_ir::Target;

/// Returns whether rows straddle 32-byte sectors.
pub(super) fn straddles_sectors(m: Matrix) -> bool {
    !(m.stride * m.dtype.bytes() as u64).is_multiple_of(32)
}

/// Returns the out-of-bounds rows of A and B that one k-tile of all tiles loads.
fn out_of_bounds_rows(p: &Problem, c: &Config) -> f64 {
    let [m_tiles, n_tiles] = c.tiles(p);
    let a_rows = (m_tiles * u64::from(c.tile_m) - u64::from(p.m)) * n_tiles;
    let b_rows = (n_tiles * u64::from(c.tile_n) - u64::from(p.n)) * m_tiles;
    (a_rows + u64::from(p.class().b_operands()) * b_rows) as f64 * p.batches() as f64
}

/// Returns the cycles in which the producer gathers a k-tile.
fn gather_cycles(t: &Constants, p: &Problem, c: &Config) -> f64 {
    let class = p.class();
    let size = p.dtype.a_dtype().bytes() as u32;
    let operand = |access: OperandAccess, tile: u32| {
        let Some(unit) = access.gather else {
            return 0.0;
        };
        let loads = f64::from(tile * c.tile_k * size / unit.bytes(size)) / GATHER_THREADS;
        let registers = loads * f64::from(unit.bytes(size).div_ceil(4));
        let groups = (registers / LOADS_IN_FLIGHT).ceil();
        groups * t.gather_group + loads * t.gather_load
    };
    operand(class.a, c.tile_m) + operand(class.b, class.b_operands() * c.tile_n)
}

/// Returns the estimated seconds of a config: the sum over its kernels.
pub(in crate::gemm) fn estimate(p: &Problem, c: &Config, target: &Target) -> f64 {
    estimate_with(&Constants::FITTED, p, c, target)
}

/// Returns the estimated seconds of a config with other constants.
pub(in crate::gemm) fn estimate_with(
    t: &Constants,
    p: &Problem,
    c: &Config,
    target: &Target,
) -> f64 {
    let copies = match c.pack.traffic(p) {
        0 => 0.0,
        bytes => t.launch + bytes as f64 / t.copy,
    };
    copies + estimate_gemm(t, &c.pack.problem(p), c, target)
}

/// Returns the estimated seconds of the GEMM after packing.
fn estimate_gemm(t: &Constants, p: &Problem, c: &Config, target: &Target) -> f64 {
    let sub_gemms = c.sub_gemms(p, target).unwrap_or_default();
    let seconds = |sub_gemm: &SubGemm| {
        let n = sub_gemm.cols.len() as u32;
        estimate_kernel(t, &Problem { n, ..p.clone() }, &sub_gemm.config, target)
    };
    let sum: f64 = sub_gemms.iter().map(seconds).sum();
    // Two kernels must save more than this margin.
    match sub_gemms.len() {
        1 => sum,
        _ => sum * t.two_kernels,
    }
}

/// Returns the estimated seconds of a kernel whose tiles have one shape.
fn estimate_kernel(t: &Constants, p: &Problem, c: &Config, target: &Target) -> f64 {
    let size = p.dtype.a_dtype().bytes() as f64;
    let b_operands = f64::from(p.class().b_operands());
    // The tile of C, and the MMA tile with gate and up.
    let [tile_rows, tile_cols] = c.mma_tile().map(f64::from);
    let (rows, cols) = match c.swap_ab() {
        false => (tile_rows, tile_cols * b_operands),
        true => (tile_rows * b_operands, tile_cols),
    };
    let [m, k] = [p.m, p.k].map(f64::from);
    let n = f64::from(p.n) * b_operands;
    let k_tiles = f64::from(p.k.div_ceil(c.tile_k).max(1));
    let reads =
        1.0 + t.misaligned_reads * f64::from(straddles_sectors(p.a()) || straddles_sectors(p.b()));
    let out = p.out().dtype().bytes() as f64;
    let Staging { width, stages } = c.staging;
    let narrow = 64.0 / (f64::from(width) * out);
    let writes = 1.0 + t.misaligned_writes * narrow * f64::from(straddles_sectors(p.c()));
    // One wgmma of 64 rows and 32 bytes of K: bound by the tensor cores or by shared memory.
    let wgmma = (cols / 2.0).max(28.3 + cols / 4.0);
    let wgmmas = rows / 64.0 * f64::from(c.tile_k) * size / 32.0;
    let mut math = wgmmas * wgmma;
    if p.accumulation == Accumulation::Promoted {
        math *= 1.25;
    }
    let bytes = (rows + cols) * f64::from(c.tile_k) * size * reads;
    let loading = bytes / t.l2 / f64::from(c.cluster().size()).sqrt();
    let mut k_tile_cycles = (math.max(loading))
        .max(t.latency / f64::from(c.stages - 1))
        .max(gather_cycles(t, p, c));
    if let Schedule::DoubleBuffer { .. } = c.schedule {
        k_tile_cycles += t.unhidden;
    }
    let [m_tiles, n_tiles] = c.tiles(p);
    let tiles = m_tiles as f64 * n_tiles as f64 * p.batches() as f64;
    let split_k = f64::from(c.schedule.split_k());
    let waves = (tiles * split_k / f64::from(c.ctas)).ceil();
    // CTAs drift apart over a large K and many tiles.
    if k_tiles >= 48.0 && waves >= 6.0 && reads == 1.0 {
        k_tile_cycles *= 1.0 + t.l2_contention * (loading / math - t.l2_contention_from).max(0.0);
    }
    let values = tile_rows * tile_cols;
    let enabled = [p.activation.is_expensive(), p.bias, p.residual].map(f64::from);
    let costs = [t.activation_value, t.bias_value, t.residual_value];
    let ops_cycles: f64 = enabled.iter().zip(costs).map(|(on, cost)| on * cost).sum();
    let store = match p.class().c_by_element {
        false => writes,
        true => t.by_element,
    };
    let value_cycles = t.epilogue_value * out / 2.0 * store + ops_cycles;
    // The constants are for two consumers; more are faster.
    let mut epilogue = t.epilogue + values * value_cycles * 2.0 / f64::from(c.consumers());
    if let Schedule::TwoConsumer { .. } = c.schedule {
        // One consumer finishes a tile, and waits for the other's part.
        epilogue += values * (value_cycles + t.split_k * 0.1);
    }
    if stages == 1 && !c.swap_ab() {
        epilogue += t.staging_wait * (tile_cols / f64::from(width) - 1.0);
    }
    let (epilogue, tail) = match c.schedule {
        // The epilogue of one consumer overlaps the wgmmas of the other, if these are long enough.
        Schedule::PingPong { .. } => (
            t.switch + (t.hidden_share * epilogue - k_tiles * k_tile_cycles).max(0.0),
            t.last_epilogue * (epilogue + values * value_cycles),
        ),
        _ => (epilogue, 0.0),
    };
    let per_sm = f64::from(c.ctas.div_ceil(target.sms).max(1));
    let cycles = if c.schedule.is_stream_k() {
        let share = tiles * k_tiles / f64::from(c.ctas);
        // CTAs at different k-tiles do not share t.l2 lines.
        let is_unaffected = m_tiles == 1 || n_tiles == 1 || (m + n) * k * size < 30e6;
        let l2_misses = if is_unaffected { 1.0 } else { 1.5 };
        l2_misses * share * k_tile_cycles
            + (share / k_tiles).ceil() * epilogue
            + t.stream_k
            + rows * cols * t.stream_k_value
    } else {
        let exchange = if c.schedule.split_k() > 1 {
            rows * cols * t.split_k
        } else {
            0.0
        };
        waves * ((k_tiles / split_k).ceil() * k_tile_cycles + epilogue + exchange)
    };
    let power = (2.0 * m * n * k * p.batches() as f64 / t.power_flops).min(1.0);
    let slowdown = 1.0 + power * t.power_slowdown * (1.0 / rows + 1.0 / cols);
    let busy = (t.first_stage + cycles * per_sm + tail) / t.clock * slowdown;
    let operand_bytes = (m + n) * k * size * reads;
    let results = m * f64::from(p.n) * out * (writes + f64::from(p.residual));
    // Few bytes in flight do not saturate memory.
    let in_flight = f64::from(c.ctas) * f64::from(c.stages - 1) * bytes;
    let long = f64::from(f64::from(c.tile_k) * size >= 256.0);
    let speed = t.memory * (1.0 + t.long_rows * long) * (in_flight / 1e6).min(1.0);
    let memory = p.batches() as f64 * (operand_bytes + results) / speed;
    let zeros = out_of_bounds_rows(p, c) * k_tiles * f64::from(c.tile_k) * size / t.out_of_bounds;
    // A smooth maximum: slightly above the largest term where two are close.
    t.launch + (busy.powi(4) + memory.powi(4) + zeros.powi(4)).powf(0.25)
}
