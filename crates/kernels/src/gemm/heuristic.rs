//! The heuristic: configs worth a try, and how long each may take.
//!
//! The estimate counts cycles of one SM: products by the tensor cores, bytes
//! that reach its shared memory, what a tile costs at its end, and the waves
//! of tiles; beside it, the bytes of all SMs that memory must bring.

use super::config::{Choice, Config, Form, Order, Schedule, Staging};
use super::problem::{Activation, Matrix, Problem, Sums};
use super::tail::Part;
use super::tile_scheduler::Cluster;
use warpline_family::error::FamilyError;
use warpline_ir::Target;

/// What the machine does, fitted to what an H200 took for 87 problems, and
/// corrected by 42 more (`docs/perf/gemm.md`).
mod fitted {
    /// Cycles per second.
    pub(super) const CLOCK: f64 = 1.6e9;
    /// Bytes per second of memory, in rows of 128 bytes, and how much faster
    /// rows of 256 come.
    pub(super) const MEMORY: f64 = 3.67e12;
    pub(super) const LONG: f64 = 0.02;
    /// Bytes per cycle that the L2 brings to one SM.
    pub(super) const L2: f64 = 76.0;
    /// Where products take more than this share of the bytes that the L2 can
    /// bring, CTAs that have drifted apart wait for them: so much for the rest.
    pub(super) const CROWD: [f64; 2] = [0.82, 0.8];
    /// Bytes per second of rows outside of a tensor, which copies fill with
    /// zeros: much fewer than come from memory, all SMs together.
    pub(super) const OUTSIDE: f64 = 0.915e12;
    /// Cycles of the latency that stages in flight hide.
    pub(super) const LATENCY: f64 = 1235.0;
    /// Cycles until the first stage is full.
    pub(super) const START: f64 = 3700.0;
    /// Seconds of a launch.
    pub(super) const LAUNCH: f64 = 2.3e-6;
    /// Cycles of the end of a tile, and of each of its values.
    pub(super) const END: [f64; 2] = [1340.0, 0.019];
    /// Cycles that a part waits until the one before has left the only staging tile.
    pub(super) const WAIT: f64 = 230.0;
    /// Cycles of an activation, a bias and a residual, for each value.
    pub(super) const PARTS: [f64; 3] = [0.147, 0.02, 0.05];
    /// Cycles from tile to tile where another's products hide the end, the share
    /// of it that they must hide, and what is left of the last one's, which
    /// nothing hides.
    pub(super) const TURN: f64 = 560.0;
    pub(super) const HIDE: f64 = 0.29;
    pub(super) const TAIL: f64 = 0.72;
    /// Cycles of a step that nothing hides where every warp loads and computes.
    pub(super) const ALONE: f64 = 1600.0;
    /// Cycles of handing sums through memory, and of each of them.
    pub(super) const STREAM: [f64; 2] = [13100.0, 0.384];
    /// Cycles of handing a sum through a cluster.
    pub(super) const SPLIT: f64 = 0.92;
    /// What rows that start between two sectors of 32 bytes cost more: to
    /// read, and to write in parts of 32 bytes.
    pub(super) const RAGGED: [f64; 2] = [0.95, 2.65];
    /// What two kernels one after the other cost more than the sum of both.
    pub(super) const TWO: f64 = 1.01;
    /// At the limit of power each byte that is moved costs time: this share, for
    /// one byte of a stage for each product, from so many operations on.
    pub(super) const HEAT: [f64; 2] = [12.0, 5e11];
}

/// Do rows start between two sectors of memory?
fn ragged(m: Matrix) -> bool {
    !(m.stride * m.dtype.bytes() as u64).is_multiple_of(32)
}

/// Rows outside of A and B that a step of all tiles asks for.
fn outside(p: &Problem, c: &Config) -> f64 {
    let [tall, wide] = c.tiles(p);
    let of_a = (tall * u64::from(c.tile_m) - u64::from(p.m)) * wide;
    let of_b = (wide * u64::from(c.tile_n) - u64::from(p.n)) * tall;
    (of_a + u64::from(p.class().factors()) * of_b) as f64 * p.batches() as f64
}

/// Seconds that a config may take: those of its kernels.
pub(super) fn estimate(p: &Problem, c: &Config, target: &Target) -> f64 {
    let parts = c.parts(p, target).unwrap_or_default();
    let one = |part: &Part| {
        let n = part.cols.len() as u32;
        estimate_one(&Problem { n, ..p.clone() }, &part.config, target)
    };
    let sum: f64 = parts.iter().map(one).sum();
    // Closer than this the model does not tell one kernel from two.
    match parts.len() {
        1 => sum,
        _ => sum * fitted::TWO,
    }
}

/// Seconds that a kernel may take whose tiles are all alike.
fn estimate_one(p: &Problem, c: &Config, target: &Target) -> f64 {
    use fitted::*;
    let size = p.dtype.dtype().bytes() as f64;
    let factors = f64::from(p.class().factors());
    // Of what is multiplied, and of C.
    let [tile_rows, tile_cols] = c.sides().map(f64::from);
    let (rows, cols) = match c.swap_ab() {
        false => (tile_rows, tile_cols * factors),
        true => (tile_rows * factors, tile_cols),
    };
    let [m, k] = [p.m, p.k].map(f64::from);
    let n = f64::from(p.n) * factors;
    let steps = f64::from(p.k.div_ceil(c.tile_k).max(1));
    let reads = 1.0 + RAGGED[0] * f64::from(ragged(p.a()) || ragged(p.b()));
    let out = p.out().dtype().bytes() as f64;
    let Staging { width, stages } = c.staging;
    let narrow = 64.0 / (f64::from(width) * out);
    let writes = 1.0 + RAGGED[1] * narrow * f64::from(ragged(p.c()));
    // One product of 64 rows and 32 bytes of K, by the tensor cores or as fast
    // as shared memory gives its operands.
    let product = (cols / 2.0).max(28.3 + cols / 4.0);
    let products = rows / 64.0 * f64::from(c.tile_k) * size / 32.0;
    let mut math = products * product;
    if p.sums == Sums::Promoted {
        math *= 1.25;
    }
    let bytes = (rows + cols) * f64::from(c.tile_k) * size * reads;
    let brought = bytes / L2 / f64::from(c.cluster().size()).sqrt();
    let mut step = math.max(brought).max(LATENCY / f64::from(c.stages - 1));
    if let Schedule::DoubleBuffer { .. } = c.schedule {
        step += ALONE;
    }
    let [tall, wide] = c.tiles(p);
    let tiles = tall as f64 * wide as f64 * p.batches() as f64;
    let halves = f64::from(c.schedule.split_k());
    let waves = (tiles * halves / f64::from(c.ctas)).ceil();
    // They drift apart over long sums and many tiles.
    if steps >= 48.0 && waves >= 6.0 && reads == 1.0 {
        step *= 1.0 + CROWD[1] * (brought / math - CROWD[0]).max(0.0);
    }
    let values = tile_rows * tile_cols;
    let parts = [p.activation.is_long(), p.bias, p.residual].map(f64::from);
    let function: f64 = parts
        .iter()
        .zip(PARTS)
        .map(|(there, cost)| there * cost)
        .sum();
    let each = END[1] * out / 2.0 * writes + function;
    // Two consumers share a tile's end; more are faster.
    let mut end = END[0] + values * each * 2.0 / f64::from(c.consumers());
    if let Schedule::TwoConsumer { .. } = c.schedule {
        // One of them ends a tile, and waits for the other's part of it.
        end += values * (each + SPLIT * 0.1);
    }
    if stages == 1 && !c.swap_ab() {
        end += WAIT * (tile_cols / f64::from(width) - 1.0);
    }
    let (end, tail) = match c.schedule {
        // The end of one hides behind the products of the other, if these are long enough.
        Schedule::PingPong { .. } => (
            TURN + (HIDE * end - steps * step).max(0.0),
            TAIL * (end + values * each),
        ),
        _ => (end, 0.0),
    };
    let per_sm = f64::from(c.ctas.div_ceil(target.sms).max(1));
    let cycles = if c.schedule.is_stream_k() {
        let share = tiles * steps / f64::from(c.ctas);
        // CTAs at different steps of K find nothing of each other's in the L2.
        let alone = tall == 1 || wide == 1 || (m + n) * k * size < 30e6;
        let strangers = if alone { 1.0 } else { 1.5 };
        strangers * share * step
            + (share / steps).ceil() * end
            + STREAM[0]
            + rows * cols * STREAM[1]
    } else {
        let handed = if c.schedule.split_k() > 1 {
            rows * cols * SPLIT
        } else {
            0.0
        };
        waves * ((steps / halves).ceil() * step + end + handed)
    };
    let hot = (2.0 * m * n * k * p.batches() as f64 / HEAT[1]).min(1.0);
    let heat = 1.0 + hot * HEAT[0] * (1.0 / rows + 1.0 / cols);
    let busy = (START + cycles * per_sm + tail) / CLOCK * heat;
    let brought_once = (m + n) * k * size * reads;
    let results = m * f64::from(p.n) * out * (writes + f64::from(p.residual));
    // Few bytes in flight do not keep the memory busy.
    let flying = f64::from(c.ctas) * f64::from(c.stages - 1) * bytes;
    let long = f64::from(f64::from(c.tile_k) * size >= 256.0);
    let speed = MEMORY * (1.0 + LONG * long) * (flying / 1e6).min(1.0);
    let memory = p.batches() as f64 * (brought_once + results) / speed;
    let zeros = outside(p, c) * steps * f64::from(c.tile_k) * size / OUTSIDE;
    // The longest of them, and somewhat more where they are alike.
    LAUNCH + (busy.powi(4) + memory.powi(4) + zeros.powi(4)).powf(0.25)
}

/// The configs worth a try for a problem, with the caller's choices in them:
/// none is illegal. Empty where the choices are; then with the reason.
pub(super) fn space(
    p: &Problem,
    choice: &Choice,
    target: &Target,
) -> Result<Vec<Config>, FamilyError> {
    let mut all: Vec<Config> = Vec::with_capacity(256);
    let mut refused = None;
    for base in bases(p) {
        match Config::new(p, &base, choice, target) {
            Ok(config) if !all.contains(&config) => {
                let tail = with_tail(p, &config, choice, target);
                all.push(config);
                all.extend(tail);
            }
            Ok(_) => {}
            Err(e) => refused = refused.or(Some(e)),
        }
    }
    match refused {
        // What is wrong with the choices alone says more than what is with one of many bases.
        Some(e) if all.is_empty() => {
            let alone = Config::new(p, &Choice::default(), choice, target);
            Err(alone.err().unwrap_or(e))
        }
        _ => Ok(all),
    }
}

/// The config with a last wave of narrow tiles, where that may be worth a second kernel.
fn with_tail(p: &Problem, c: &Config, choice: &Choice, target: &Target) -> Option<Config> {
    let [tall, wide] = c.tiles(p);
    let waves = tall * wide / u64::from(c.ctas.max(1));
    let fits =
        c.schedule.form() == Form::PingPong && choice.tail_n.is_none() && choice.ctas.is_none();
    let base = Choice {
        tail_n: Some(c.narrow_tail(p).filter(|_| fits && waves >= WAVES)?),
        ..Choice::from(c).without_grid()
    };
    Config::new(p, &base, choice, target).ok()
}

/// The fewest whole waves before a narrow one.
const WAVES: u64 = 4;

/// What configs are made from: form, tile, and how tiles are divided.
fn bases(p: &Problem) -> Vec<Choice> {
    let mut all = Vec::with_capacity(256);
    // Columns of C, where those of the tensor cores are shared by two factors.
    let factors = p.class().factors();
    let of_c = |n: u32| n / factors;
    let widths = |most: u32| (1..=most / 16).rev().map(move |i| 16 * i / factors);
    let whole = |n: u32| (factors * n).is_multiple_of(32);
    let mut add = |form, tile_m, tile_n, consumers, more: Choice| {
        all.push(Choice {
            form: Some(form),
            tile_m: Some(tile_m),
            tile_n: Some(tile_n),
            consumers: Some(consumers),
            ..more
        });
    };
    let plain = Choice::default;
    let wide = |n: u32| n <= p.n.next_multiple_of(16).max(64);
    if p.m > 64 {
        for n in widths(256).filter(|&n| wide(n)) {
            add(Form::Cooperative, 128, n, 2, plain());
        }
        // The text of many narrow parts, each with the error function, is more
        // than the SM keeps.
        let keeps = |n: u32| n.is_multiple_of(32) || p.activation != Activation::GeluErf;
        for n in widths(208).filter(|&n| n >= of_c(64) && wide(n) && keeps(n)) {
            add(Form::PingPong, 128, n, 2, plain());
        }
        for n in [256, 224, 192, 160, 128]
            .map(of_c)
            .into_iter()
            .filter(|&n| wide(n))
        {
            let stream_k = Choice {
                stream_k: Some(true),
                ..plain()
            };
            add(Form::Cooperative, 128, n, 2, stream_k);
        }
        for n in [64, 96, 128].map(of_c).into_iter().filter(|&n| wide(n)) {
            let split_k = Choice {
                split_k: Some(2),
                ..plain()
            };
            add(Form::Cooperative, 128, n, 2, split_k);
        }
        // Short sums gain more by staging tiles that need no wait than by a last stage.
        for (n, stages) in [(of_c(192), 4), (of_c(128), 5)] {
            let stages = Choice {
                stages: Some(stages),
                ..plain()
            };
            if p.k <= 3072 && p.dtype.dtype().bytes() == 2 && wide(n) {
                add(Form::PingPong, 128, n, 2, stages);
            }
        }
        // Rows between sectors are brought twice: two CTAs share them.
        for (form, m, n) in [
            (Form::Cooperative, 128, 256),
            (Form::Cooperative, 128, 192),
            (Form::Cooperative, 128, 128),
            (Form::PingPong, 128, 192),
            (Form::PingPong, 128, 160),
            (Form::PingPong, 128, 128),
            (Form::PingPong, 64, 128),
        ] {
            let shared = Choice {
                cluster: Some(Cluster::Rows),
                ..plain()
            };
            if ragged(p.a()) || ragged(p.b()) {
                add(form, m, of_c(n), 2, shared);
            }
        }
        for (m, n, consumers) in [(256, 128, 2), (192, 160, 3), (192, 128, 3)] {
            add(Form::Cooperative, m, of_c(n), consumers, plain());
        }
        if factors == 2 {
            for n in [128, 96, 64].into_iter().filter(|&n| wide(n)) {
                add(Form::TwoConsumer, 128, n, 2, plain());
            }
        }
    }
    for n in widths(256).filter(|&n| whole(n) && wide(n)) {
        add(Form::PingPong, 64, n, 2, plain());
    }
    for n in widths(256).filter(|&n| whole(n) && wide(n)) {
        add(Form::Cooperative, 64, n, 1, plain());
    }
    for n in [16, 32, 64, 128].map(of_c).into_iter().filter(|&n| wide(n)) {
        add(Form::DoubleBuffer, 64, n, 1, plain());
    }
    if p.m <= 128 {
        let m = p.m.next_multiple_of(16).max(16);
        for tile_m in [m, m / 2].into_iter().filter(|m| m.is_multiple_of(16)) {
            for (tile_n, consumers) in [(64, 1), (128, 2), (192, 3), (128, 1), (256, 2)] {
                for stream_k in [false, true] {
                    let swap = Choice {
                        swap: Some(true),
                        stream_k: Some(stream_k),
                        ..plain()
                    };
                    add(Form::Cooperative, tile_m, tile_n, consumers, swap);
                }
            }
            let long = Choice {
                swap: Some(true),
                tile_k: Some(256 / p.dtype.dtype().bytes() as u32),
                ..plain()
            };
            add(Form::Cooperative, tile_m, 128, 2, long);
        }
    }
    all
}

/// The config that may take the least time.
pub(super) fn choose(p: &Problem, choice: &Choice, target: &Target) -> Result<Config, FamilyError> {
    let all = space(p, choice, target)?;
    let time = |c: &Config| estimate(p, c, target);
    let best = all.iter().min_by(|x, y| time(x).total_cmp(&time(y)));
    best.copied().ok_or_else(|| {
        FamilyError::Config("no config serves this problem with these choices".into())
    })
}

/// The configs worth a measurement, best guess first: those that the model
/// tells apart, and of the best the neighbours that it does not.
pub(super) fn ranked(p: &Problem, target: &Target) -> Vec<Config> {
    let mut all = space(p, &Choice::default(), target).unwrap_or_default();
    all.sort_by(|x, y| estimate(p, x, target).total_cmp(&estimate(p, y, target)));
    all.truncate(BASES);
    for base in all.clone().iter().take(NEIGHBOURS) {
        for choice in neighbours(base) {
            let config = Config::new(p, &Choice::from(base).without_grid(), &choice, target);
            all.extend(config.ok().filter(|c| !all.contains(c)));
        }
    }
    all.truncate(MOST);
    all
}

/// The most candidates, those that the model tells apart, and how many of these have neighbours.
const MOST: usize = 48;
const BASES: usize = 24;
const NEIGHBOURS: usize = 6;

/// What the model does not tell apart from a config.
fn neighbours(c: &Config) -> Vec<Choice> {
    let none = Choice::default;
    let group = Choice::from(c).group;
    let mut all = vec![
        Choice {
            group: Some(if group == Some(16) { 8 } else { 16 }),
            ..none()
        },
        Choice {
            stages: Some(c.stages - 1),
            ..none()
        },
    ];
    if c.swap_ab() {
        let (hints, tile_k) = (Some(!c.hints), Some(2 * c.tile_k));
        // Stages as many as fit.
        let stages = Some(c.stages / 2);
        all.push(Choice { hints, ..none() });
        all.push(Choice {
            tile_k,
            stages,
            ..none()
        });
        all.push(Choice {
            tile_k,
            stages,
            hints,
            ..none()
        });
    } else {
        all.push(Choice {
            order: Some(Order::Dynamic),
            ..none()
        });
        all.push(Choice {
            cluster: Some(Cluster::Rows),
            ..none()
        });
    }
    all
}
