//! The heuristic: the candidate configs and their estimated times.

use super::config::{Choice, Config};
use super::scale_boxes::ScaleBoxes;
use super::schedule::{Schedule, ScheduleKind};
use super::shape::Shape;
use super::units::{BLOCKS_PER_PANEL, K_BLOCK, OUTPUTS, PANEL_BYTES, PANEL_K};
use crate::batch_invariant::fix;
use warpline_family::error::FamilyError;
use warpline_ir::Target;

/// Schedule, consumers and elements of K per stage of the warpgroup schedules: consumers with their own
/// outputs (64 and 128), and consumers that take slots in turn (256).
const WARPGROUP_SHAPES: [(ScheduleKind, u32, u32); 9] = [
    (ScheduleKind::Cooperative, 2, K_BLOCK),
    (ScheduleKind::Cooperative, 3, K_BLOCK),
    (ScheduleKind::Cooperative, 4, K_BLOCK),
    (ScheduleKind::Cooperative, 1, K_BLOCK),
    (ScheduleKind::Cooperative, 2, 2 * K_BLOCK),
    (ScheduleKind::Cooperative, 3, 2 * K_BLOCK),
    (ScheduleKind::Cooperative, 4, PANEL_K),
    (ScheduleKind::Cooperative, 3, PANEL_K),
    (ScheduleKind::Cooperative, 2, PANEL_K),
];

/// Schedule, consumers and elements of K per stage of the schedule `warps`.
const WARP_SHAPES: [(ScheduleKind, u32, u32); 1] = [(ScheduleKind::Warps, 2, 2 * PANEL_K)];

/// Returns the legal candidate configs that agree with the caller's choice.
fn legal_configs(p: &Shape, choice: &Choice, target: &Target) -> Result<Vec<Config>, FamilyError> {
    let (mut all, mut rejected) = (Vec::new(), None);
    let max_tile_m = p.m.next_multiple_of(16).min(256);
    let shapes: &[_] = match choice.schedule {
        Some(ScheduleKind::Warps) => &WARP_SHAPES,
        Some(_) => &WARPGROUP_SHAPES,
        None => &[&WARPGROUP_SHAPES[..], &WARP_SHAPES[..]].concat(),
    };
    for &(schedule, consumers, tile_k) in shapes {
        for tile_m in (1..=max_tile_m / 16).rev().map(|i| 16 * i) {
            for split_k in [1, 2, 4] {
                let base = Choice {
                    schedule: Some(schedule),
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

/// Times in microseconds, fitted to 30 configs at the five shapes of `bench nvfp4` on an H200
/// (docs/perf/dual-gemm.md).
mod micros {
    /// A tensor core cycle under load.
    pub(super) const MMA_CYCLE: f64 = 0.63e-3;
    /// Decoding 64 elements of K of a consumer's weights, in steps of 64 and of 128.
    pub(super) const DECODE_BLOCK: [f64; 2] = [0.115, 0.107];
    /// Loading a byte from the L2 to one SM.
    pub(super) const LOAD_BYTE: f64 = 1.0 / 60e3;
    /// Filling a slot of weights.
    pub(super) const FILL_SLOT: f64 = 2.0;
    /// The launch that widens A, the launch of the GEMM, and the fill of the first slots.
    pub(super) const LAUNCHES: f64 = 6.0;
    /// The epilogue of a tile, and of each of its tokens.
    pub(super) const EPILOGUE: [f64; 2] = [1.5, 0.006];
    /// The exchange of accumulators between CTAs, and each token of each consumer.
    pub(super) const CTA_EXCHANGE: [f64; 2] = [1.5, 0.004];
    /// The exchange of accumulators between consumers of a CTA.
    pub(super) const CONSUMER_EXCHANGE: f64 = 0.6;
    /// Schedule `warps`: 256 elements of K of 32 outputs, and each token.
    pub(super) const WARP_PANEL: [f64; 2] = [0.14, 0.0134];
    /// The launch of the GEMM, without an earlier launch, and the fill of the first slots.
    pub(super) const LAUNCH_WITHOUT_WIDEN: f64 = 4.8;
}

/// Returns the bytes of a slot: codes and scales of the weights.
fn slot_bytes(p: &Shape, schedule: Schedule) -> u32 {
    let rows = p.outputs.weight_rows(schedule.tile_n());
    let scale_words = ScaleBoxes::Blocks.words(rows, schedule.panels());
    p.outputs.weights() * (rows * PANEL_BYTES + 4 * scale_words)
}

/// Returns the mainloop time of a tile in the warpgroup schedules: the longest of decoding, wgmmas and
/// loads per round.
fn warpgroup_mainloop(p: &Shape, c: &Config) -> f64 {
    let schedule = c.schedule;
    let (consumers, tokens) = (f64::from(schedule.consumers()), f64::from(c.tile_m));
    // One round: each consumer multiplies all blocks of a panel.
    let blocks = f64::from(BLOCKS_PER_PANEL);
    let wgmmas = blocks * consumers * 4.0 * (tokens / 2.0).max(16.0) * micros::MMA_CYCLE;
    let decoded = micros::DECODE_BLOCK[usize::from(schedule.k_per_step() > K_BLOCK)];
    // The dequantizer decodes for all consumers and writes to shared memory.
    let decoding = match schedule {
        Schedule::Dequantizer(_) => blocks * consumers * 4.0 * decoded,
        _ => blocks * consumers * decoded,
    };
    let min_decoding = blocks * 2.0 * decoded;
    let x = f64::from(c.tile_m * PANEL_K * 2);
    let ring_pairs = f64::from(schedule.panels_per_round());
    let loading = ring_pairs * (x + f64::from(slot_bytes(p, schedule))) * micros::LOAD_BYTE;
    let latency = micros::FILL_SLOT / f64::from(c.weight_stages() - 1);
    let round = wgmmas
        .max(decoding)
        .max(min_decoding)
        .max(loading)
        .max(latency);
    f64::from(c.rounds(p.k, p.outputs)) * round + (ring_pairs - 1.0) * micros::CONSUMER_EXCHANGE
}

/// Returns the mainloop time of a tile in the schedule `warps`.
fn warps_mainloop(p: &Shape, c: &Config) -> f64 {
    let [panel, token] = micros::WARP_PANEL;
    let panels = f64::from(c.rounds(p.k, p.outputs) * c.schedule.panels_per_round());
    let outputs = f64::from(c.schedule.tile_n() / OUTPUTS);
    panels * outputs * (panel + token * f64::from(c.tile_m))
}

/// Returns the estimated seconds of a config.
pub(crate) fn estimate(p: &Shape, c: &Config, target: &Target) -> f64 {
    let tokens = f64::from(c.tile_m);
    let (start, mainloop) = match c.schedule {
        Schedule::Warps(_) => (micros::LAUNCH_WITHOUT_WIDEN, warps_mainloop(p, c)),
        _ if p.outputs.needs_widened_a(c) => (micros::LAUNCHES, warpgroup_mainloop(p, c)),
        _ => (micros::LAUNCH_WITHOUT_WIDEN, warpgroup_mainloop(p, c)),
    };
    let epilogue = micros::EPILOGUE[0] + micros::EPILOGUE[1] * tokens;
    let exchange = match c.split_k {
        1 => 0.0,
        n => {
            let consumer_tokens = tokens * f64::from(c.schedule.consumers());
            f64::from(n.ilog2())
                * (micros::CTA_EXCHANGE[0] + micros::CTA_EXCHANGE[1] * consumer_tokens)
        }
    };
    // The GPU runs fewer clusters of four at once than its SMs allow.
    let clusters = match c.split_k {
        4 => (target.sms / 4).saturating_sub(3),
        n => target.sms / n,
    };
    let clusters = clusters.min(c.ctas / c.split_k).max(1);
    let waves = (c.tiles(p) as f64 / f64::from(clusters)).ceil();
    let kernel_micros = start + waves * (mainloop + epilogue + exchange);
    let memory = p.bytes / 3.6e12;
    (kernel_micros * 1e-6).max(memory)
}

/// Returns the choice with the fields fixed on which the bits of a row may depend, for batch
/// invariance: one consumer adds all of K of an output in order, in wgmmas of the same elements.
pub(crate) fn fixed_choice(choice: &Choice) -> Result<Choice, FamilyError> {
    if choice.batch_invariant != Some(true) {
        return Ok(choice.clone());
    }
    let kind = ScheduleKind::Cooperative;
    let schedule = fix(
        "--schedule",
        choice.schedule.map(ScheduleKind::keyword),
        kind.keyword(),
    )?;
    Ok(Choice {
        schedule: schedule.map(|_| kind),
        // A longer k-tile pairs other blocks, or lets consumers take k-tiles in turn.
        tile_k: fix("--tile-k", choice.tile_k, K_BLOCK)?,
        split_k: fix("--split-k", choice.split_k, 1)?,
        ..choice.clone()
    })
}

/// Returns the config with the shortest estimated time.
pub(crate) fn config(p: &Shape, choice: &Choice, target: &Target) -> Result<Config, FamilyError> {
    let all = legal_configs(p, choice, target)?;
    let best = all
        .into_iter()
        .min_by(|x, y| estimate(p, x, target).total_cmp(&estimate(p, y, target)));
    best.ok_or_else(|| {
        FamilyError::Config("no config serves this problem with these choices".into())
    })
}

/// Returns the candidates for autotuning, shortest estimated time first.
pub(crate) fn candidates(p: &Shape, target: &Target) -> Vec<Config> {
    let mut all = legal_configs(p, &Choice::default(), target).unwrap_or_default();
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
