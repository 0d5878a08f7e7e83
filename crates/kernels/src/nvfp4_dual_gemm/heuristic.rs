//! The heuristic: configs worth a try, and how long each may take.

use super::config::{Choice, Config};
use super::problem::Problem;
use super::schedule::{Form, Schedule};
use super::units::{BLOCK, BLOCKS, OUTPUTS, PANEL, WIDTH};
use warpline_family::error::FamilyError;
use warpline_ir::Target;

/// Warpgroups that multiply, and elements of K: with outputs of their own, 64 and 128 at a time, and
/// in turn.
const WARPGROUPS: [(Form, u32, u32); 9] = [
    (Form::Cooperative, 2, BLOCK),
    (Form::Cooperative, 3, BLOCK),
    (Form::Cooperative, 4, BLOCK),
    (Form::Cooperative, 1, BLOCK),
    (Form::Cooperative, 2, 2 * BLOCK),
    (Form::Cooperative, 3, 2 * BLOCK),
    (Form::Cooperative, 4, WIDTH),
    (Form::Cooperative, 3, WIDTH),
    (Form::Cooperative, 2, WIDTH),
];

/// The same where each warp multiplies for itself.
const WARPS: [(Form, u32, u32); 1] = [(Form::Warps, 2, 2 * WIDTH)];

/// Every config worth a try, with the caller's choices in it.
fn space(p: &Problem, choice: &Choice, target: &Target) -> Result<Vec<Config>, FamilyError> {
    let (mut all, mut rejected) = (Vec::new(), None);
    let most = p.m.next_multiple_of(16).min(256);
    let shapes: &[_] = match choice.form {
        Some(Form::Warps) => &WARPS,
        Some(_) => &WARPGROUPS,
        None => &[&WARPGROUPS[..], &WARPS[..]].concat(),
    };
    for &(form, consumers, tile_k) in shapes {
        for tile_m in (1..=most / 16).rev().map(|i| 16 * i) {
            for split_k in [1, 2, 4] {
                let base = Choice {
                    form: Some(form),
                    consumers: Some(consumers),
                    tile_k: Some(tile_k),
                    tile_m: Some(tile_m),
                    split_k: Some(split_k),
                    ..Choice::default()
                };
                match Config::new(p, &base, choice, target) {
                    Ok(c) if !all.contains(&c) => all.push(c),
                    Ok(_) => {}
                    Err(e) => rejected = rejected.or(Some(e)),
                }
            }
        }
    }
    match rejected {
        Some(e) if all.is_empty() => Err(e),
        _ => Ok(all),
    }
}

/// Microseconds, fitted to 30 configs at the five shapes of `bench nvfp4` on an
/// H200 (docs/perf/dual-gemm.md).
mod micros {
    /// A cycle of the tensor cores when they are busy.
    pub(super) const PRODUCT: f64 = 0.63e-3;
    /// 64 of K of a consumer's weights to an operand, in steps of 64 and of 128.
    pub(super) const DECODED: [f64; 2] = [0.115, 0.107];
    /// A byte from the L2 to one SM.
    pub(super) const BYTE: f64 = 1.0 / 60e3;
    /// From a free slot of weights to a full one.
    pub(super) const LATENCY: f64 = 2.0;
    /// The step before, the launch and the first slots.
    pub(super) const BEGIN: f64 = 6.0;
    /// The end of a tile, and of each of its tokens.
    pub(super) const END: [f64; 2] = [1.5, 0.006];
    /// Sums handed between CTAs, and each token of each consumer.
    pub(super) const HANDED: [f64; 2] = [1.5, 0.004];
    /// Sums handed between consumers of a CTA.
    pub(super) const PART: f64 = 0.6;
    /// 256 of K of 32 outputs where each warp multiplies for itself, and what a
    /// token adds.
    pub(super) const PANEL: [f64; 2] = [0.14, 0.0134];
    /// The launch and the first slots where no step comes before.
    pub(super) const ALONE: f64 = 4.8;
}

/// Bytes of a slot of codes of both weights, and of their scales.
fn slot_bytes(schedule: Schedule) -> u32 {
    let rows = schedule.tile_n();
    2 * (rows * PANEL + 4 * schedule.slot_words(rows))
}

/// Microseconds of the sums of a tile of consumers: decoding, products or loads, whichever is
/// longest in a slot of weights.
fn sums_of_consumers(p: &Problem, c: &Config) -> f64 {
    let schedule = c.schedule;
    let (consumers, tokens) = (f64::from(schedule.consumers()), f64::from(c.tile_m));
    // A slot of each feed, in which every consumer has as many blocks as a slot has.
    let blocks = f64::from(BLOCKS);
    let products = blocks * consumers * 4.0 * (tokens / 2.0).max(16.0) * micros::PRODUCT;
    let decoded = micros::DECODED[usize::from(schedule.depth() > BLOCK)];
    // A role of its own decodes as much as a consumer would, and writes it out.
    let decoding = match schedule {
        Schedule::Dequantizer(_) => blocks * consumers * 4.0 * decoded,
        _ => blocks * consumers * decoded,
    };
    let alone = blocks * 2.0 * decoded;
    let x = f64::from(c.tile_m * WIDTH * 2);
    let feeds = f64::from(schedule.feeds());
    let loaded = feeds * (x + f64::from(slot_bytes(schedule))) * micros::BYTE;
    let latency = micros::LATENCY / f64::from(c.weight_stages() - 1);
    let round = products.max(decoding).max(alone).max(loaded).max(latency);
    f64::from(c.rounds(p.k)) * round + (feeds - 1.0) * micros::PART
}

/// The same where each warp multiplies for itself.
fn sums_of_warps(p: &Problem, c: &Config) -> f64 {
    let [panel, token] = micros::PANEL;
    let panels = f64::from(c.rounds(p.k) * c.schedule.feeds());
    let outputs = f64::from(c.schedule.tile_n() / OUTPUTS);
    panels * outputs * (panel + token * f64::from(c.tile_m))
}

/// Seconds that a config may take, in waves of tiles.
pub(super) fn estimate(p: &Problem, c: &Config, target: &Target) -> f64 {
    let tokens = f64::from(c.tile_m);
    let (begin, sums) = match c.schedule {
        Schedule::Warps(_) => (micros::ALONE, sums_of_warps(p, c)),
        _ => (micros::BEGIN, sums_of_consumers(p, c)),
    };
    let end = micros::END[0] + micros::END[1] * tokens;
    let handed = match c.split_k {
        1 => 0.0,
        n => {
            let each = tokens * f64::from(c.schedule.consumers());
            f64::from(n.ilog2()) * (micros::HANDED[0] + micros::HANDED[1] * each)
        }
    };
    // Of clusters of four not all that would fit run at a time.
    let clusters = match c.split_k {
        4 => (target.sms / 4).saturating_sub(3),
        n => target.sms / n,
    };
    let clusters = clusters.min(c.ctas / c.split_k).max(1);
    let waves = (c.tiles(p.m, p.n) as f64 / f64::from(clusters)).ceil();
    let busy = begin + waves * (sums + end + handed);
    let memory = p.cost().bytes / 3.6e12;
    (busy * 1e-6).max(memory)
}

/// The config that may take the least time.
pub(super) fn config(p: &Problem, choice: &Choice, target: &Target) -> Result<Config, FamilyError> {
    let all = space(p, choice, target)?;
    let best = all
        .into_iter()
        .min_by(|x, y| estimate(p, x, target).total_cmp(&estimate(p, y, target)));
    best.ok_or_else(|| {
        FamilyError::Config("no config serves this problem with these choices".into())
    })
}

/// The configs worth a measurement, best guess first.
pub(super) fn candidates(p: &Problem, target: &Target) -> Vec<Config> {
    let mut all = space(p, &Choice::default(), target).unwrap_or_default();
    all.sort_by(|x, y| estimate(p, x, target).total_cmp(&estimate(p, y, target)));
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
