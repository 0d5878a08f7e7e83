//! Tiles, whether they fit, and how long they may take.

use super::super::problem::Problem;
use super::{line, scales, widened};
use crate::error::FamilyError;
use crate::gemm::{Choice, Cluster, Config, Form, Order};
use warpline_ir::Target;

/// Bytes of a stage: A, codes of both weights, their scales.
fn stage_bytes(c: &Config) -> u32 {
    c.tile_m * line::DEPTH * 2 + 2 * c.tile_n * line::DEPTH / 2 + 2 * scales::TILE
}

/// Bytes of shared memory: stages, staging tiles, barriers and what alignment may cost.
fn shared_bytes(c: &Config) -> u32 {
    let staging = c.consumers * c.tile_m * c.rows() * 2;
    // Sums that others of a cluster hand over.
    let handed = (c.split_k.max(1) - 1) * c.consumers * 2 * c.rows() * c.tile_m * 4;
    c.stages.saturating_mul(stage_bytes(c)) + staging + handed + 1024 + 32 * c.stages + 256
}

/// The config of which some fields are fixed, and the others are those of `base`.
fn complete(
    p: &Problem,
    base: &Choice,
    choice: &Choice,
    target: &Target,
) -> Result<Config, FamilyError> {
    let refuse = |text: String| Err(FamilyError::Config(text));
    macro_rules! asked {
        ($field:ident, $default:expr) => {
            choice.$field.or(base.$field).unwrap_or($default)
        };
    }
    let consumers = asked!(consumers, 2);
    let order = asked!(order, Order::Grouped);
    let mut c = Config {
        form: asked!(form, Form::Cooperative),
        tile_m: asked!(tile_m, 64),
        tile_n: asked!(tile_n, 64 * consumers),
        tile_k: asked!(tile_k, line::DEPTH),
        consumers,
        stages: 0,
        cluster: asked!(cluster, Cluster::One),
        order,
        group: match order {
            Order::Grouped | Order::Dynamic => asked!(group, 8),
            _ => 1,
        },
        split_k: asked!(split_k, 1),
        stream_k: asked!(stream_k, false),
        swap: asked!(swap, true),
        hints: asked!(hints, widened(p).streams_b()),
        load_registers: 0,
        math_registers: 0,
        ctas: 0,
    };
    if c.form != Form::Cooperative || !c.swap {
        return refuse("nvfp4 has form cooperative, with the weights as rows of the tensor cores' tile (--swap)".into());
    }
    if c.cluster != Cluster::One || c.stream_k {
        return refuse("nvfp4 goes with neither --cluster nor --stream-k".into());
    }
    if ![1, 2, 4].contains(&c.split_k) {
        return refuse(format!(
            "1, 2 or 4 CTAs split the sums of a tile, not {}",
            c.split_k
        ));
    }
    if c.split_k > 1 && c.order == Order::Dynamic {
        return refuse("with --split-k a CTA's tiles are known: not --order dynamic".into());
    }
    if !(1..=2).contains(&consumers) || c.tile_n != 64 * consumers {
        return refuse(format!(
            "1 or 2 warpgroups decode 64 rows of each weight: --tile-n is 64 for each consumer, not {} for {consumers}",
            c.tile_n
        ));
    }
    if c.tile_m == 0 || !c.tile_m.is_multiple_of(16) || c.tile_m > 128 {
        return refuse(format!(
            "--tile-m is a multiple of 16 up to 128, not {}",
            c.tile_m
        ));
    }
    if c.tile_k != line::DEPTH {
        return refuse(format!("--tile-k is {}, not {}", line::DEPTH, c.tile_k));
    }
    if c.group == 0 {
        return refuse("a band has at least 1 row of tiles, not 0 (--group 0)".into());
    }
    match consumers {
        2 => {
            c.load_registers = asked!(load_registers, 40);
            c.math_registers = asked!(math_registers, 232);
        }
        _ if choice.load_registers.or(choice.math_registers).is_some() => {
            return refuse(
                "registers are moved between roles of 3 or more warpgroups; this config has 2"
                    .into(),
            );
        }
        _ => {}
    }
    let fits = |stages: u32| shared_bytes(&Config { stages, ..c }) <= target.shared_bytes;
    // More are not faster, and where sums are split take long to check.
    let useful = if c.split_k > 1 { 5 } else { 8 };
    let most = (2..=useful).rev().find(|&stages| fits(stages)).unwrap_or(2);
    c.stages = asked!(stages, most);
    if c.stages < 2 || c.stages > 32 {
        return refuse(format!("a ring has 2 to 32 stages here, not {}", c.stages));
    }
    if !fits(c.stages) {
        return refuse(format!(
            "{} stages of {} x {} x {} need {} bytes of shared memory with what is stored; {} has {}",
            c.stages,
            c.tile_m,
            c.tile_n,
            c.tile_k,
            shared_bytes(&c),
            target.name,
            target.shared_bytes
        ));
    }
    let [tall, wide] = c.tiles(&widened(p));
    let tiles = tall * wide;
    if tiles >= 1 << 29 {
        return refuse(format!(
            "{tiles} tiles are more than a grid counts: 536870911"
        ));
    }
    let slots = target.sms / c.split_k * c.split_k;
    let all = (tiles * u64::from(c.split_k)).min(slots.into());
    c.ctas = match asked!(ctas, all as u32) {
        n if n == 0 || !n.is_multiple_of(c.split_k) => {
            return refuse(format!(
                "a grid has a multiple of {} CTAs (whole clusters), at least one, not {n}",
                c.split_k
            ));
        }
        n => n,
    };
    Ok(c)
}

/// Every config worth a try, with the caller's choices in it.
fn space(p: &Problem, choice: &Choice, target: &Target) -> Result<Vec<Config>, FamilyError> {
    let (mut all, mut refused) = (Vec::new(), None);
    let most = p.m.next_multiple_of(16).min(128);
    for consumers in [2, 1] {
        for tile_m in (1..=most / 16).rev().map(|i| 16 * i) {
            for split_k in [1, 2, 4] {
                let base = Choice {
                    consumers: Some(consumers),
                    tile_m: Some(tile_m),
                    split_k: Some(split_k),
                    ..Choice::default()
                };
                match complete(p, &base, choice, target) {
                    Ok(c) if !all.contains(&c) => all.push(c),
                    Ok(_) => {}
                    Err(e) => refused = refused.or(Some(e)),
                }
            }
        }
    }
    match refused {
        Some(e) if all.is_empty() => Err(e),
        _ => Ok(all),
    }
}

/// Seconds that a config may take: decoding, products or bytes, whichever is
/// longest in a step, in waves of tiles.
pub(crate) fn estimate(p: &Problem, c: &Config, target: &Target) -> Option<f64> {
    let consumers = f64::from(c.consumers);
    // Four products of 16 of K for each of two blocks of rows, and instructions
    // of a warp on each scheduler.
    let products = consumers * 8.0 * (f64::from(c.tile_m) / 2.0).max(16.0);
    let decoding = 330.0;
    let brought = f64::from(stage_bytes(c)) / 60.0;
    let latency = 1300.0 / f64::from(c.stages - 1);
    // What one warpgroup decodes hides behind the products of the other.
    let alone = products / consumers + decoding;
    let step = products.max(alone).max(brought).max(latency);
    let [tall, wide] = c.tiles(&widened(p));
    let clusters = c.ctas.min(target.sms) / c.split_k;
    let waves = ((tall * wide) as f64 / f64::from(clusters)).ceil();
    let steps = f64::from(p.k.div_ceil(line::DEPTH).div_ceil(c.split_k));
    let handed = f64::from(c.split_k - 1) * (800.0 + f64::from(c.tile_m) * 40.0);
    let end = 1500.0 + f64::from(c.tile_m) * 20.0 + handed;
    let busy = (4000.0 + waves * (steps * step + end)) / 1.6e9;
    let memory = super::cost(p).bytes / 3.6e12;
    Some(4.5e-6 + (busy.powi(4) + memory.powi(4)).powf(0.25))
}

fn time(p: &Problem, c: &Config, target: &Target) -> f64 {
    estimate(p, c, target).unwrap_or(f64::INFINITY)
}

/// The config that may take the least time.
pub(crate) fn config(p: &Problem, choice: &Choice, target: &Target) -> Result<Config, FamilyError> {
    let all = space(p, choice, target)?;
    let best = all
        .into_iter()
        .min_by(|x, y| time(p, x, target).total_cmp(&time(p, y, target)));
    best.ok_or_else(|| {
        FamilyError::Config("no config serves this problem with these choices".into())
    })
}

/// The configs worth a measurement, best guess first.
pub(crate) fn candidates(p: &Problem, target: &Target) -> Vec<Config> {
    let mut all = space(p, &Choice::default(), target).unwrap_or_default();
    all.sort_by(|x, y| time(p, x, target).total_cmp(&time(p, y, target)));
    for base in all.clone().into_iter().take(6) {
        for stages in [base.stages - 1, 3]
            .into_iter()
            .filter(|&s| s >= 2 && s < base.stages)
        {
            let c = Config { stages, ..base };
            if !all.contains(&c) {
                all.push(c);
            }
        }
    }
    all.truncate(32);
    all
}

/// A config that was found for another problem of the class, for this one.
pub(crate) fn fit(
    p: &Problem,
    choice: &Choice,
    config: &Config,
    target: &Target,
) -> Result<Config, FamilyError> {
    complete(p, &Choice::from(config), choice, target)
}
