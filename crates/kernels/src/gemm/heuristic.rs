//! The heuristic: the candidate configs and their estimated times.
//!
//! The estimate counts the cycles of one SM: tensor core time, bytes loaded into shared memory,
//! epilogues, and waves of tiles. A second bound is the memory traffic of all SMs.

use super::access::OperandAccess;
use super::config::{Choice, Config, Raster, Schedule, ScheduleKind, Staging};
use super::mainloop::gather::{LOADS_IN_FLIGHT, THREADS as GATHER_THREADS};
use super::problem::{Accumulation, Activation, Matrix, Problem};
use super::tail::SubGemm;
use super::tile_scheduler::Cluster;
use warpline_family::error::FamilyError;
use warpline_ir::Target;

/// Machine constants, fitted to H200 timings of 87 problems and corrected with 42 more
/// (`docs/perf/gemm.md`).
mod fitted {
    /// Cycles per second.
    pub(super) const CLOCK: f64 = 1.6e9;
    /// Memory bandwidth in bytes per second for rows of 128 bytes, and the relative gain of rows of
    /// 256 bytes.
    pub(super) const MEMORY: f64 = 3.67e12;
    pub(super) const LONG_ROWS: f64 = 0.02;
    /// L2 bandwidth of one SM in bytes per cycle.
    pub(super) const L2: f64 = 76.0;
    /// CTAs that drift apart wait for the L2: the ratio of load time to tensor core time above which
    /// they do, and the slowdown per unit of the excess.
    pub(super) const L2_CONTENTION: [f64; 2] = [0.82, 0.8];
    /// Bandwidth of out-of-bounds rows, which TMA fills with zeros, in bytes per second of all SMs:
    /// far below that of memory.
    pub(super) const OUT_OF_BOUNDS: f64 = 0.915e12;
    /// Load latency in cycles, which the stages in flight hide.
    pub(super) const LATENCY: f64 = 1235.0;
    /// Cycles until the first stage is full.
    pub(super) const FIRST_STAGE: f64 = 3700.0;
    /// Launch overhead in seconds.
    pub(super) const LAUNCH: f64 = 2.3e-6;
    /// Cycles of an epilogue, and per value.
    pub(super) const EPILOGUE: [f64; 2] = [1340.0, 0.019];
    /// Cycles that a part waits for a single staging tile to drain.
    pub(super) const STAGING_WAIT: f64 = 230.0;
    /// Cycles per value of an activation, a bias and a residual.
    pub(super) const EPILOGUE_OPS: [f64; 3] = [0.147, 0.02, 0.05];
    /// Ping-pong: cycles of a switch between tiles, the share of an epilogue that the other
    /// consumer's wgmmas must hide, and the visible share of the last epilogue.
    pub(super) const SWITCH: f64 = 560.0;
    pub(super) const HIDDEN_SHARE: f64 = 0.29;
    pub(super) const LAST_EPILOGUE: f64 = 0.72;
    /// Double buffer: unhidden cycles per k-tile.
    pub(super) const UNHIDDEN: f64 = 1600.0;
    /// Stream-K: cycles of an exchange through memory, and per accumulator.
    pub(super) const STREAM_K: [f64; 2] = [13100.0, 0.384];
    /// Split-K: cycles per accumulator of an exchange through the cluster.
    pub(super) const SPLIT_K: f64 = 0.92;
    /// Extra cost of rows that straddle 32-byte sectors: of reads, and of writes in 32-byte parts.
    pub(super) const MISALIGNED: [f64; 2] = [0.95, 2.65];
    /// Gather: cycles until the loads of a group arrive, and cycles per load of a warp. An estimate that
    /// is not fitted; `docs/lab/any-layout.md` has measurements.
    pub(super) const GATHER: [f64; 2] = [700.0, 8.0];
    /// Cost of storing C element by element, relative to TMA. Not fitted.
    pub(super) const BY_ELEMENT: f64 = 8.0;
    /// Time of two consecutive kernels relative to the sum of both.
    pub(super) const TWO_KERNELS: f64 = 1.01;
    /// At the power limit, every moved byte costs time: the slowdown per byte of a stage and
    /// multiply-add, and the operations of a GEMM that reaches the limit.
    pub(super) const POWER_LIMIT: [f64; 2] = [12.0, 5e11];
}

/// Returns whether rows straddle 32-byte sectors.
fn straddles_sectors(m: Matrix) -> bool {
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
fn gather_cycles(p: &Problem, c: &Config) -> f64 {
    let class = p.class();
    let size = p.dtype.a_dtype().bytes() as u32;
    let operand = |access: OperandAccess, tile: u32| {
        let Some(unit) = access.gather else {
            return 0.0;
        };
        let loads = f64::from(tile * c.tile_k * size / unit.bytes(size)) / GATHER_THREADS;
        let registers = loads * f64::from(unit.bytes(size).div_ceil(4));
        let groups = (registers / LOADS_IN_FLIGHT).ceil();
        groups * fitted::GATHER[0] + loads * fitted::GATHER[1]
    };
    operand(class.a, c.tile_m) + operand(class.b, class.b_operands() * c.tile_n)
}

/// Returns the estimated seconds of a config: the sum over its kernels.
pub(super) fn estimate(p: &Problem, c: &Config, target: &Target) -> f64 {
    let sub_gemms = c.sub_gemms(p, target).unwrap_or_default();
    let seconds = |sub_gemm: &SubGemm| {
        let n = sub_gemm.cols.len() as u32;
        estimate_kernel(&Problem { n, ..p.clone() }, &sub_gemm.config, target)
    };
    let sum: f64 = sub_gemms.iter().map(seconds).sum();
    // Two kernels must save more than this margin.
    match sub_gemms.len() {
        1 => sum,
        _ => sum * fitted::TWO_KERNELS,
    }
}

/// Returns the estimated seconds of a kernel whose tiles have one shape.
fn estimate_kernel(p: &Problem, c: &Config, target: &Target) -> f64 {
    use fitted::*;
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
        1.0 + MISALIGNED[0] * f64::from(straddles_sectors(p.a()) || straddles_sectors(p.b()));
    let out = p.out().dtype().bytes() as f64;
    let Staging { width, stages } = c.staging;
    let narrow = 64.0 / (f64::from(width) * out);
    let writes = 1.0 + MISALIGNED[1] * narrow * f64::from(straddles_sectors(p.c()));
    // One wgmma of 64 rows and 32 bytes of K: bound by the tensor cores or by shared memory.
    let wgmma = (cols / 2.0).max(28.3 + cols / 4.0);
    let wgmmas = rows / 64.0 * f64::from(c.tile_k) * size / 32.0;
    let mut math = wgmmas * wgmma;
    if p.accumulation == Accumulation::Promoted {
        math *= 1.25;
    }
    let bytes = (rows + cols) * f64::from(c.tile_k) * size * reads;
    let loading = bytes / L2 / f64::from(c.cluster().size()).sqrt();
    let mut k_tile_cycles = (math.max(loading))
        .max(LATENCY / f64::from(c.stages - 1))
        .max(gather_cycles(p, c));
    if let Schedule::DoubleBuffer { .. } = c.schedule {
        k_tile_cycles += UNHIDDEN;
    }
    let [m_tiles, n_tiles] = c.tiles(p);
    let tiles = m_tiles as f64 * n_tiles as f64 * p.batches() as f64;
    let split_k = f64::from(c.schedule.split_k());
    let waves = (tiles * split_k / f64::from(c.ctas)).ceil();
    // CTAs drift apart over a large K and many tiles.
    if k_tiles >= 48.0 && waves >= 6.0 && reads == 1.0 {
        k_tile_cycles *= 1.0 + L2_CONTENTION[1] * (loading / math - L2_CONTENTION[0]).max(0.0);
    }
    let values = tile_rows * tile_cols;
    let enabled = [p.activation.is_expensive(), p.bias, p.residual].map(f64::from);
    let ops_cycles: f64 = enabled
        .iter()
        .zip(EPILOGUE_OPS)
        .map(|(is_set, cost)| is_set * cost)
        .sum();
    let store = match p.class().c_by_element {
        false => writes,
        true => BY_ELEMENT,
    };
    let value_cycles = EPILOGUE[1] * out / 2.0 * store + ops_cycles;
    // The constants are for two consumers; more are faster.
    let mut epilogue = EPILOGUE[0] + values * value_cycles * 2.0 / f64::from(c.consumers());
    if let Schedule::TwoConsumer { .. } = c.schedule {
        // One consumer finishes a tile, and waits for the other's part.
        epilogue += values * (value_cycles + SPLIT_K * 0.1);
    }
    if stages == 1 && !c.swap_ab() {
        epilogue += STAGING_WAIT * (tile_cols / f64::from(width) - 1.0);
    }
    let (epilogue, tail) = match c.schedule {
        // The epilogue of one consumer overlaps the wgmmas of the other, if these are long enough.
        Schedule::PingPong { .. } => (
            SWITCH + (HIDDEN_SHARE * epilogue - k_tiles * k_tile_cycles).max(0.0),
            LAST_EPILOGUE * (epilogue + values * value_cycles),
        ),
        _ => (epilogue, 0.0),
    };
    let per_sm = f64::from(c.ctas.div_ceil(target.sms).max(1));
    let cycles = if c.schedule.is_stream_k() {
        let share = tiles * k_tiles / f64::from(c.ctas);
        // CTAs at different k-tiles do not share L2 lines.
        let is_unaffected = m_tiles == 1 || n_tiles == 1 || (m + n) * k * size < 30e6;
        let l2_misses = if is_unaffected { 1.0 } else { 1.5 };
        l2_misses * share * k_tile_cycles
            + (share / k_tiles).ceil() * epilogue
            + STREAM_K[0]
            + rows * cols * STREAM_K[1]
    } else {
        let exchange = if c.schedule.split_k() > 1 {
            rows * cols * SPLIT_K
        } else {
            0.0
        };
        waves * ((k_tiles / split_k).ceil() * k_tile_cycles + epilogue + exchange)
    };
    let power = (2.0 * m * n * k * p.batches() as f64 / POWER_LIMIT[1]).min(1.0);
    let slowdown = 1.0 + power * POWER_LIMIT[0] * (1.0 / rows + 1.0 / cols);
    let busy = (FIRST_STAGE + cycles * per_sm + tail) / CLOCK * slowdown;
    let operand_bytes = (m + n) * k * size * reads;
    let results = m * f64::from(p.n) * out * (writes + f64::from(p.residual));
    // Few bytes in flight do not saturate memory.
    let in_flight = f64::from(c.ctas) * f64::from(c.stages - 1) * bytes;
    let long = f64::from(f64::from(c.tile_k) * size >= 256.0);
    let speed = MEMORY * (1.0 + LONG_ROWS * long) * (in_flight / 1e6).min(1.0);
    let memory = p.batches() as f64 * (operand_bytes + results) / speed;
    let zeros = out_of_bounds_rows(p, c) * k_tiles * f64::from(c.tile_k) * size / OUT_OF_BOUNDS;
    // A smooth maximum: slightly above the largest term where two are close.
    LAUNCH + (busy.powi(4) + memory.powi(4) + zeros.powi(4)).powf(0.25)
}

/// Returns the legal candidate configs that agree with the caller's choice, or an error if there is
/// none.
pub(super) fn legal_configs(
    p: &Problem,
    choice: &Choice,
    target: &Target,
) -> Result<Vec<Config>, FamilyError> {
    let mut all: Vec<Config> = Vec::with_capacity(256);
    let mut rejected = None;
    for base in base_choices(p) {
        match Config::new(p, &base, choice, target) {
            Ok(config) if !all.contains(&config) => {
                let tail = with_tail(p, &config, choice, target);
                all.push(config);
                all.extend(tail);
            }
            Ok(_) => {}
            Err(e) => rejected = rejected.or(Some(e)),
        }
    }
    match rejected {
        // The error with the default base is clearer than that of a candidate's base.
        Some(e) if all.is_empty() => {
            let default = Config::new(p, &Choice::default(), choice, target);
            Err(default.err().unwrap_or(e))
        }
        _ => Ok(all),
    }
}

/// Returns the config with a last wave of narrow tiles, if that may be worth a second kernel.
fn with_tail(p: &Problem, c: &Config, choice: &Choice, target: &Target) -> Option<Config> {
    let [m_tiles, n_tiles] = c.tiles(p);
    let waves = m_tiles * n_tiles / u64::from(c.ctas.max(1));
    let is_eligible = c.schedule.kind() == ScheduleKind::PingPong
        && choice.tail_n.is_none()
        && choice.ctas.is_none();
    let base = Choice {
        tail_n: Some(
            c.narrow_tail(p)
                .filter(|_| is_eligible && waves >= MIN_FULL_WAVES)?,
        ),
        ..Choice::from(c).without_grid()
    };
    Config::new(p, &base, choice, target).ok()
}

/// The minimum number of full waves before a narrow one.
const MIN_FULL_WAVES: u64 = 4;

/// Returns the bases of the candidates: schedule, tile shape, and division of K.
fn base_choices(p: &Problem) -> Vec<Choice> {
    let mut all = Vec::with_capacity(256);
    // Tile widths count columns of C: gate and up share the columns of a wgmma.
    let b_operands = p.class().b_operands();
    let c_cols = |n: u32| n / b_operands;
    let widths = |max: u32| (1..=max / 16).rev().map(move |i| 16 * i / b_operands);
    let is_coarse = |n: u32| (b_operands * n).is_multiple_of(32);
    let mut add = |schedule, tile_m, tile_n, consumers, more: Choice| {
        all.push(Choice {
            schedule: Some(schedule),
            tile_m: Some(tile_m),
            tile_n: Some(tile_n),
            consumers: Some(consumers),
            ..more
        });
    };
    let defaults = Choice::default;
    let is_useful = |n: u32| n <= p.n.next_multiple_of(16).max(64);
    if p.m > 64 {
        for n in widths(256).filter(|&n| is_useful(n)) {
            add(ScheduleKind::Cooperative, 128, n, 2, defaults());
        }
        // The code of many narrow parts, each with erf, exceeds the instruction cache.
        let fits_instruction_cache =
            |n: u32| n.is_multiple_of(32) || p.activation != Activation::GeluErf;
        for n in
            widths(208).filter(|&n| n >= c_cols(64) && is_useful(n) && fits_instruction_cache(n))
        {
            add(ScheduleKind::PingPong, 128, n, 2, defaults());
        }
        for n in [256, 224, 192, 160, 128]
            .map(c_cols)
            .into_iter()
            .filter(|&n| is_useful(n))
        {
            let stream_k = Choice {
                stream_k: Some(true),
                ..defaults()
            };
            add(ScheduleKind::Cooperative, 128, n, 2, stream_k);
        }
        for n in [64, 96, 128]
            .map(c_cols)
            .into_iter()
            .filter(|&n| is_useful(n))
        {
            let split_k = Choice {
                split_k: Some(2),
                ..defaults()
            };
            add(ScheduleKind::Cooperative, 128, n, 2, split_k);
        }
        // A small K gains more from a second staging tile than from one more stage.
        for (n, stages) in [(c_cols(192), 4), (c_cols(128), 5)] {
            let stages = Choice {
                stages: Some(stages),
                ..defaults()
            };
            if p.k <= 3072 && p.dtype.a_dtype().bytes() == 2 && is_useful(n) {
                add(ScheduleKind::PingPong, 128, n, 2, stages);
            }
        }
        // Rows that straddle sectors are read twice; a cluster of two CTAs shares them.
        for (schedule, m, n) in [
            (ScheduleKind::Cooperative, 128, 256),
            (ScheduleKind::Cooperative, 128, 192),
            (ScheduleKind::Cooperative, 128, 128),
            (ScheduleKind::PingPong, 128, 192),
            (ScheduleKind::PingPong, 128, 160),
            (ScheduleKind::PingPong, 128, 128),
            (ScheduleKind::PingPong, 64, 128),
        ] {
            let cluster = Choice {
                cluster: Some(Cluster::Rows),
                ..defaults()
            };
            if straddles_sectors(p.a()) || straddles_sectors(p.b()) {
                add(schedule, m, c_cols(n), 2, cluster);
            }
        }
        for (m, n, consumers) in [(256, 128, 2), (192, 160, 3), (192, 128, 3)] {
            add(
                ScheduleKind::Cooperative,
                m,
                c_cols(n),
                consumers,
                defaults(),
            );
        }
        if b_operands == 2 {
            for n in [128, 96, 64].into_iter().filter(|&n| is_useful(n)) {
                add(ScheduleKind::TwoConsumer, 128, n, 2, defaults());
            }
        }
    }
    for n in widths(256).filter(|&n| is_coarse(n) && is_useful(n)) {
        add(ScheduleKind::PingPong, 64, n, 2, defaults());
    }
    for n in widths(256).filter(|&n| is_coarse(n) && is_useful(n)) {
        add(ScheduleKind::Cooperative, 64, n, 1, defaults());
    }
    for n in [16, 32, 64, 128]
        .map(c_cols)
        .into_iter()
        .filter(|&n| is_useful(n))
    {
        add(ScheduleKind::DoubleBuffer, 64, n, 1, defaults());
    }
    if p.m <= 128 {
        let m = p.m.next_multiple_of(16).max(16);
        // M innermost needs whole panels of 64 columns.
        let m = if p.class().a.k_major {
            m
        } else {
            m.next_multiple_of(64)
        };
        for tile_m in [m, m / 2].into_iter().filter(|m| m.is_multiple_of(16)) {
            for (tile_n, consumers) in [(64, 1), (128, 2), (192, 3), (128, 1), (256, 2)] {
                for stream_k in [false, true] {
                    let swap_ab = Choice {
                        swap_ab: Some(true),
                        stream_k: Some(stream_k),
                        ..defaults()
                    };
                    add(
                        ScheduleKind::Cooperative,
                        tile_m,
                        tile_n,
                        consumers,
                        swap_ab,
                    );
                }
            }
            let long_k_tile = Choice {
                swap_ab: Some(true),
                tile_k: Some(256 / p.dtype.a_dtype().bytes() as u32),
                ..defaults()
            };
            add(ScheduleKind::Cooperative, tile_m, 128, 2, long_k_tile);
        }
    }
    all
}

/// Returns the config with the least estimated time.
pub(super) fn select(p: &Problem, choice: &Choice, target: &Target) -> Result<Config, FamilyError> {
    let all = legal_configs(p, choice, target)?;
    let time = |c: &Config| estimate(p, c, target);
    let best = all.iter().min_by(|x, y| time(x).total_cmp(&time(y)));
    best.copied().ok_or_else(|| {
        FamilyError::Config("no config serves this problem with these choices".into())
    })
}

/// Returns the candidates for autotuning: the configs with the best estimates, then neighbors of them
/// that the model does not distinguish.
pub(super) fn candidates(p: &Problem, target: &Target) -> Vec<Config> {
    let mut all = legal_configs(p, &Choice::default(), target).unwrap_or_default();
    all.sort_by(|x, y| estimate(p, x, target).total_cmp(&estimate(p, y, target)));
    all.truncate(MAX_BASES);
    for base in all.clone().iter().take(BASES_WITH_NEIGHBORS) {
        for choice in neighbors(base) {
            let config = Config::new(p, &Choice::from(base).without_grid(), &choice, target);
            all.extend(config.ok().filter(|c| !all.contains(c)));
        }
    }
    all.truncate(MAX_CANDIDATES);
    all
}

/// The maximum number of candidates.
const MAX_CANDIDATES: usize = 48;
/// The maximum number of candidates before neighbors are added.
const MAX_BASES: usize = 24;
/// The number of candidates whose neighbors are added.
const BASES_WITH_NEIGHBORS: usize = 6;

/// Returns variations of a config that the model does not distinguish from it.
fn neighbors(c: &Config) -> Vec<Choice> {
    let defaults = Choice::default;
    let group = Choice::from(c).group;
    let mut all = vec![
        Choice {
            group: Some(if group == Some(16) { 8 } else { 16 }),
            ..defaults()
        },
        Choice {
            stages: Some(c.stages - 1),
            ..defaults()
        },
    ];
    if c.swap_ab() {
        let (cache_hints, tile_k) = (Some(!c.cache_hints), Some(2 * c.tile_k));
        // A k-tile of twice the size leaves room for half the stages.
        let stages = Some(c.stages / 2);
        all.push(Choice {
            cache_hints,
            ..defaults()
        });
        all.push(Choice {
            tile_k,
            stages,
            ..defaults()
        });
        all.push(Choice {
            tile_k,
            stages,
            cache_hints,
            ..defaults()
        });
    } else {
        all.push(Choice {
            raster: Some(Raster::Dynamic),
            ..defaults()
        });
        all.push(Choice {
            cluster: Some(Cluster::Rows),
            ..defaults()
        });
    }
    all
}
