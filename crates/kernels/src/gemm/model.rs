//! The chooser: configs worth a try, and how long each may take.
//!
//! The estimate counts cycles of one SM: products by the tensor cores, bytes
//! that reach its shared memory, what a tile costs at its end, and the waves
//! of tiles; beside it, the bytes of all SMs that memory must bring.

use super::config::{Choice, Cluster, Config, Form, Order};
use super::epilogue::Activation;
use super::problem::{Problem, Sums};
use crate::error::FamilyError;
use warpline_ir::Target;

/// Cycles per second under load.
const CLOCK: f64 = 1.55e9;
/// Bytes per second of memory.
const MEMORY: f64 = 4.2e12;
/// Bytes per cycle that the L2 brings to one SM.
const L2: f64 = 62.0;
/// Cycles until the first stage is full.
const START: f64 = 6000.0;
/// Seconds of a launch.
const LAUNCH: f64 = 2.0e-6;

/// Seconds that a config may take.
pub(super) fn estimate(p: &Problem, c: &Config, target: &Target) -> f64 {
    let size = p.dtype.dtype().bytes() as f64;
    let [rows, cols] = c.sides().map(f64::from);
    let steps = f64::from(p.k.div_ceil(c.tile_k).max(1));
    // One product of 64 rows and 32 bytes of K, by the tensor cores or as fast
    // as shared memory gives its operands.
    let product = (cols / 2.0).max(12.0 + cols / 4.0);
    let products = rows / 64.0 * f64::from(c.tile_k) * size / 32.0;
    let mut math = products * product;
    if p.sums == Sums::Promoted {
        math *= 1.25;
    }
    let bytes = (rows + cols) * f64::from(c.tile_k) * size / f64::from(c.cluster.size()).sqrt();
    // Stages in flight hide the latency of a copy.
    let latency = 700.0 / f64::from(c.stages - 1);
    let step = math.max(bytes / L2).max(latency);
    let out = p.out().dtype().bytes() as f64;
    let values = rows * cols;
    let function = match p.activation {
        Activation::None | Activation::Relu => 0.0,
        _ => 0.11,
    };
    let extra = f64::from(p.bias) * 0.01 + f64::from(p.residual) * 0.05;
    let end = 2000.0 + values * (0.027 * out + function + extra);
    let end = match c.form {
        Form::PingPong => 600.0,
        Form::DoubleBuffer => end + 1500.0,
        Form::Cooperative | Form::Storer => end,
    };
    let [tall, wide] = c.tiles(p);
    let tiles = tall as f64 * wide as f64 * p.batches() as f64;
    let per_sm = f64::from(c.ctas.div_ceil(target.sms));
    let parts = f64::from(c.split_k);
    let cycles = if c.stream_k {
        let share = tiles * steps / f64::from(c.ctas);
        // CTAs at different steps of K find little of each other's in the L2.
        1.3 * share * step + (share / steps).ceil() * end + 2000.0 + values * 0.3
    } else {
        let waves = (tiles * parts / f64::from(c.ctas)).ceil();
        let handed = if c.split_k > 1 { 2500.0 } else { 0.0 };
        waves * ((steps / parts).ceil() * step + end + handed)
    };
    let tail = if c.form == Form::PingPong {
        values * 0.06
    } else {
        0.0
    };
    let busy = cycles * per_sm.max(1.0) + tail;
    let traffic = p.batches() as f64
        * ((f64::from(p.m) + f64::from(p.n)) * f64::from(p.k) * size
            + f64::from(p.m) * f64::from(p.n) * out * (1.0 + f64::from(p.residual)));
    // Few bytes in flight do not keep the memory busy.
    let flying = f64::from(c.ctas) * f64::from(c.stages - 1) * bytes;
    let speed = MEMORY * (flying / 6.0e6).min(1.0);
    // The longer of the two, and somewhat more where they are alike.
    let (busy, memory) = (busy / CLOCK, traffic / speed);
    LAUNCH + START / CLOCK + (busy.powi(4) + memory.powi(4)).powf(0.25)
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
            Ok(config) if !all.contains(&config) => all.push(config),
            Ok(_) => {}
            Err(e) => refused = refused.or(Some(e)),
        }
    }
    match refused {
        Some(e) if all.is_empty() => Err(e),
        _ => Ok(all),
    }
}

/// What configs are made from: form, tile, and how tiles are divided.
fn bases(p: &Problem) -> Vec<Choice> {
    let mut all = Vec::with_capacity(256);
    let widths = |most: u32| (1..=most / 16).rev().map(|i| 16 * i);
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
        for n in widths(208).filter(|&n| n >= 64 && wide(n)) {
            add(Form::PingPong, 128, n, 2, plain());
        }
        for n in [256, 224, 192, 160, 128].into_iter().filter(|&n| wide(n)) {
            let stream_k = Choice {
                stream_k: Some(true),
                ..plain()
            };
            add(Form::Cooperative, 128, n, 2, stream_k);
        }
        for n in [64, 96, 128].into_iter().filter(|&n| wide(n)) {
            let split_k = Choice {
                split_k: Some(2),
                ..plain()
            };
            add(Form::Cooperative, 128, n, 2, split_k);
        }
        add(Form::Cooperative, 256, 128, 2, plain());
        add(Form::Cooperative, 192, 160, 3, plain());
        add(Form::Cooperative, 192, 128, 3, plain());
    }
    for n in widths(256).filter(|&n| n % 32 == 0 && wide(n)) {
        add(Form::PingPong, 64, n, 2, plain());
    }
    for n in widths(256).filter(|&n| n % 32 == 0 && wide(n)) {
        add(Form::Cooperative, 64, n, 1, plain());
    }
    for n in [16, 32, 64, 128].into_iter().filter(|&n| wide(n)) {
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
            let config = Config::new(p, &Choice::from(base), &choice, target);
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
    let mut all = vec![
        Choice {
            group: Some(16),
            ..none()
        },
        Choice {
            stages: Some(c.stages - 1),
            ..none()
        },
    ];
    if c.swap {
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
