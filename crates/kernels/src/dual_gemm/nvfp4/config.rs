//! Tiles, whether they fit, and how long they may take.

use super::super::problem::Problem;
use super::{line, scales, warps, widened};
use crate::gemm::{Choice, Cluster, Config, Form, Order};
use crate::roles::{self, Budget, Registers};
use warpline_family::error::FamilyError;
use warpline_ir::Target;

/// Bytes of a slot of A.
fn token_bytes(c: &Config) -> u32 {
    c.tile_m.saturating_mul(line::depth(c)) * 2
}

/// Bytes of a slot of codes of so many rows of both weights and their scales.
fn code_bytes(rows: u32) -> u32 {
    let scales = line::BLOCKS * line::bands(rows) * scales::TILE;
    2 * (rows * line::PANEL + scales)
}

/// Bytes of a slot of the form of warps, of weights and A.
fn slot_bytes(c: &Config, coded: bool) -> u32 {
    let words = warps::words_of_scales(c, coded);
    warps::panels(c) * warps::rows_of_panel(c, coded) * line::PANEL + words * 4
}

/// Bytes of shared memory: rings, staging tiles, barriers and what alignment may cost.
fn shared_bytes(c: &Config, coded: bool) -> u32 {
    let (sums, ends) = match line::takes_turns(c) {
        // Those of all blocks of a slot are handed to the role that finishes.
        false if c.form == Form::Warps => (
            warps::parts(c) * 2 * c.tile_n * c.tile_m * 4,
            c.tile_n / line::OUTPUTS,
        ),
        false => (0, c.consumers),
        // Those of all consumers but one are handed to it.
        true => ((c.consumers - 1) * 2 * line::OUTPUTS * c.tile_m * 4, 1),
    };
    let staging = ends * line::finished(c) * line::OUTPUTS * 2;
    // All columns but those that a CTA finishes come from others of the cluster.
    let handed = ends * (c.tile_m - line::finished(c)) * 2 * line::OUTPUTS * 4;
    let (weights, feeds) = (line::weight_stages(c), line::feeds(c));
    let tokens = line::token_stages(c);
    let decoded = match c.form {
        Form::Dequantiser => c.stages.saturating_mul(2 * c.tile_n * line::BLOCK * 2),
        _ => 0,
    };
    let brought = match c.form {
        Form::Warps => c.stages.saturating_mul(slot_bytes(c, coded)),
        _ => {
            let feed = (tokens.saturating_mul(token_bytes(c)))
                .saturating_add(weights.saturating_mul(code_bytes(c.tile_n)));
            feeds.saturating_mul(feed)
        }
    };
    let barriers = 16 * (feeds * (tokens + weights) + c.stages) + 256;
    brought.saturating_add(decoded.saturating_add(sums + staging + handed + 2048 + barriers))
}

/// The most tokens of a tile: what sums leave of a consumer's registers, of
/// which products in flight and the next operand need two sets.
fn most_tokens(c: &Config) -> u32 {
    let deep = line::depth(c) > line::BLOCK;
    // Four warpgroups begin with 128 registers and three with 168, which is what
    // the sums of a role that is not given more have to fit.
    match c.form {
        Form::Dequantiser => return if c.consumers == 2 { 128 } else { 192 },
        Form::Warps => return 32,
        _ => {}
    }
    match (line::takes_turns(c), c.consumers, deep) {
        (false, 1 | 2, _) => 256,
        (false, 3, false) => 128,
        (false, 3, true) => 96,
        (false, _, false) => 64,
        (false, _, true) => 16,
        (true, 2, _) => 64,
        (true, ..) => 32,
    }
}

/// Rejects registers that the roles cannot have, or too few for the sums.
fn check_registers(c: &Config, target: &Target) -> Result<(), FamilyError> {
    let Some(Registers { load, math }) = c.registers else {
        return Ok(());
    };
    let budget = |role, warpgroups, registers, option| Budget {
        role,
        warpgroups,
        registers,
        option,
    };
    let mut all = vec![
        budget("loading", 1, load, "--load-registers"),
        budget("computing", c.consumers, math, "--math-registers"),
    ];
    roles::check_registers(&all, target)?;
    if c.form == Form::Dequantiser {
        let left = 512 - load - c.consumers * math;
        if !(64..=240).contains(&left) {
            return Err(FamilyError::Config(format!(
                "of 512 registers 64 to 240 are left for dequantizing, not {left}\nhelp: change --math-registers"
            )));
        }
        all.push(budget("dequantizing", 1, left, "--math-registers"));
        roles::check_registers(&all, target)?;
    }
    // Beside the sums: operands in flight and the next ones, addresses, counters.
    let needed = c.tile_m / 2 + 64;
    match math < needed {
        true => Err(FamilyError::Config(format!(
            "a tile of {} tokens needs {needed} registers per computing thread, and {} are asked for\n\
             help: use --math-registers {} or a smaller --tile-m",
            c.tile_m,
            math,
            needed.next_multiple_of(8)
        ))),
        false => Ok(()),
    }
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
        tile_n: 0,
        tail_n: 0,
        tile_k: 0,
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
        registers: None,
        ctas: 0,
    };
    c.tile_k = match c.form {
        Form::Warps => asked!(tile_k, 2 * line::WIDTH),
        _ => asked!(tile_k, line::BLOCK),
    };
    if !matches!(c.form, Form::Cooperative | Form::Dequantiser | Form::Warps) || !c.swap {
        return refuse("nvfp4 has the forms cooperative, warps and dequantiser, with the weights as rows of the tensor cores' tile (--swap)".into());
    }
    if c.form == Form::Warps {
        let depths = [1, 2, 4].map(|panels| panels * line::WIDTH);
        if !depths.contains(&c.tile_k) || consumers != 2 {
            return refuse(format!(
                "form warps has --tile-k {}, {} or {} and 2 warpgroups that multiply, not {} and {consumers}",
                depths[0], depths[1], depths[2], c.tile_k
            ));
        }
        let tile_n = asked!(tile_n, line::OUTPUTS);
        if ![line::OUTPUTS, 2 * line::OUTPUTS].contains(&tile_n) {
            return refuse(format!(
                "form warps has --tile-n {} or {}, not {tile_n}",
                line::OUTPUTS,
                2 * line::OUTPUTS
            ));
        }
    }
    if c.form == Form::Dequantiser && (c.tile_k != line::BLOCK || consumers > 2) {
        return refuse(format!(
            "form dequantiser has --tile-k {} and 1 or 2 consumers, not {} and {consumers}",
            line::BLOCK,
            c.tile_k
        ));
    }
    if c.cluster != Cluster::One || c.stream_k || choice.tail_n.is_some() {
        return refuse("nvfp4 goes with neither --cluster, --stream-k nor --tail-n".into());
    }
    if ![1, 2, 4].contains(&c.split_k) {
        return refuse(format!(
            "1, 2 or 4 CTAs split the sums of a tile, not {}",
            c.split_k
        ));
    }
    if c.order == Order::Dynamic {
        return refuse("nvfp4's tiles are dealt beforehand: not --order dynamic".into());
    }
    if !(1..=4).contains(&consumers) {
        return refuse(format!("1 to 4 warpgroups multiply, not {consumers}"));
    }
    if c.form != Form::Warps && ![line::BLOCK, 2 * line::BLOCK, line::WIDTH].contains(&c.tile_k) {
        return refuse(format!(
            "--tile-k is {}, {}, or {} of which each consumer takes every so many, not {}",
            line::BLOCK,
            2 * line::BLOCK,
            line::WIDTH,
            c.tile_k
        ));
    }
    if line::takes_turns(&c) && consumers == 1 {
        return refuse(format!(
            "of --tile-k {} each of 2 to 4 consumers takes every so many, not 1",
            line::WIDTH
        ));
    }
    let outputs = match (c.form, line::takes_turns(&c)) {
        (Form::Warps, _) => asked!(tile_n, line::OUTPUTS),
        (_, false) => line::OUTPUTS * consumers,
        (_, true) => line::OUTPUTS,
    };
    c.tile_n = asked!(tile_n, outputs);
    if c.tile_n != outputs {
        return refuse(format!(
            "a warpgroup has {} outputs: --tile-n of {consumers} consumers with --tile-k {} is {outputs}, not {}",
            line::OUTPUTS,
            c.tile_k,
            c.tile_n
        ));
    }
    if c.form == Form::Warps && !warps::fits(&c) {
        return refuse(format!(
            "{} warps with the same {} outputs share the blocks of 64 of K of a slot: --tile-k is at least {}, not {}",
            warps::parts(&c),
            line::OUTPUTS,
            warps::parts(&c) * line::BLOCK,
            c.tile_k
        ));
    }
    let most = most_tokens(&c);
    if c.tile_m == 0 || !c.tile_m.is_multiple_of(16) || c.tile_m > most {
        return refuse(format!(
            "--tile-m of {consumers} consumers with --tile-k {} is a multiple of 16 up to {most}, not {}",
            c.tile_k, c.tile_m
        ));
    }
    if !line::finished(&c).is_multiple_of(8) {
        return refuse(format!(
            "each CTA of --split-k {} finishes a multiple of 8 tokens of a tile, not {}",
            c.split_k,
            line::finished(&c)
        ));
    }
    if c.group == 0 {
        return refuse("a band has at least 1 row of tiles, not 0 (--group 0)".into());
    }
    match (line::takes_turns(&c), consumers) {
        (false, 2) if c.form == Form::Dequantiser => {
            let (load, math) = (asked!(load_registers, 40), asked!(math_registers, 192));
            c.registers = Some(Registers { load, math });
            check_registers(&c, target)?;
        }
        (false, 2 | 3) if c.form != Form::Warps => {
            let load = asked!(load_registers, 40);
            let math = asked!(math_registers, if consumers == 2 { 232 } else { 152 });
            c.registers = Some(Registers { load, math });
            check_registers(&c, target)?;
        }
        _ if choice.load_registers.or(choice.math_registers).is_some() => {
            return refuse(
                "registers are moved where 2 or 3 consumers have outputs of their own".into(),
            );
        }
        _ => {}
    }
    let coded = p.activations.is_none();
    let fits = |stages: u32| shared_bytes(&Config { stages, ..c }, coded) <= target.shared_bytes;
    // More are not faster, and where sums are split take long to check.
    let useful = match (line::takes_turns(&c), c.split_k) {
        (true, _) => 3,
        (_, 1) => 8,
        _ => 5,
    };
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
            shared_bytes(&c, coded),
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

/// Warpgroups that multiply, and elements of K: with outputs of their own, in
/// steps of 64 and of 128, and in turn.
const WARPGROUPS: [(Form, u32, u32); 9] = [
    (Form::Cooperative, 2, line::BLOCK),
    (Form::Cooperative, 3, line::BLOCK),
    (Form::Cooperative, 4, line::BLOCK),
    (Form::Cooperative, 1, line::BLOCK),
    (Form::Cooperative, 2, 2 * line::BLOCK),
    (Form::Cooperative, 3, 2 * line::BLOCK),
    (Form::Cooperative, 4, line::WIDTH),
    (Form::Cooperative, 3, line::WIDTH),
    (Form::Cooperative, 2, line::WIDTH),
];

/// The same where each warp multiplies for itself.
const WARPS: [(Form, u32, u32); 1] = [(Form::Warps, 2, 2 * line::WIDTH)];

/// Every config worth a try, with the caller's choices in it.
fn space(p: &Problem, choice: &Choice, target: &Target) -> Result<Vec<Config>, FamilyError> {
    let (mut all, mut refused) = (Vec::new(), None);
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

/// Microseconds of the sums of a tile: decoding, products or bytes, whichever is
/// longest in a slot of weights.
fn sums(p: &Problem, c: &Config) -> f64 {
    let (consumers, tokens) = (f64::from(c.consumers), f64::from(c.tile_m));
    // A slot of each feed, in which every consumer has as many blocks as a slot has.
    let blocks = f64::from(line::BLOCKS);
    let products = blocks * consumers * 4.0 * (tokens / 2.0).max(16.0) * micros::PRODUCT;
    let decoded = micros::DECODED[usize::from(line::depth(c) > line::BLOCK)];
    // A role of its own decodes as much as a consumer would, and writes it out.
    let decoding = match c.form {
        Form::Dequantiser => blocks * consumers * 4.0 * decoded,
        _ => blocks * consumers * decoded,
    };
    let alone = blocks * 2.0 * decoded;
    let x = f64::from(c.tile_m * line::WIDTH * 2);
    let feeds = f64::from(line::feeds(c));
    let brought = feeds * (x + f64::from(code_bytes(c.tile_n))) * micros::BYTE;
    let latency = micros::LATENCY / f64::from(line::weight_stages(c) - 1);
    let round = products.max(decoding).max(alone).max(brought).max(latency);
    f64::from(line::rounds(p.k, c)) * round + (feeds - 1.0) * micros::PART
}

/// The same where each warp multiplies for itself.
fn sums_of_warps(p: &Problem, c: &Config) -> f64 {
    let [panel, token] = micros::PANEL;
    let panels = f64::from(line::rounds(p.k, c) * line::feeds(c));
    let outputs = f64::from(c.tile_n / line::OUTPUTS);
    panels * outputs * (panel + token * f64::from(c.tile_m))
}

/// Seconds that a config may take, in waves of tiles.
pub(crate) fn estimate(p: &Problem, c: &Config, target: &Target) -> Option<f64> {
    let tokens = f64::from(c.tile_m);
    let (begin, sums) = match c.form {
        Form::Warps => (micros::ALONE, sums_of_warps(p, c)),
        _ => (micros::BEGIN, sums(p, c)),
    };
    let end = micros::END[0] + micros::END[1] * tokens;
    let handed = match c.split_k {
        1 => 0.0,
        n => {
            let each = tokens * f64::from(c.consumers);
            f64::from(n.ilog2()) * (micros::HANDED[0] + micros::HANDED[1] * each)
        }
    };
    let [tall, wide] = c.tiles(&widened(p));
    // Of clusters of four not all that would fit run at a time.
    let clusters = match c.split_k {
        4 => (target.sms / 4).saturating_sub(3),
        n => target.sms / n,
    };
    let clusters = clusters.min(c.ctas / c.split_k).max(1);
    let waves = ((tall * wide) as f64 / f64::from(clusters)).ceil();
    let busy = begin + waves * (sums + end + handed);
    let memory = super::cost(p).bytes / 3.6e12;
    Some((busy * 1e-6).max(memory))
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

/// The config of the baseline schedule: one loader, and two consumers that
/// decode weights and have outputs of their own.
pub(crate) fn baseline(
    p: &Problem,
    choice: &Choice,
    target: &Target,
) -> Result<Config, FamilyError> {
    complete(p, &Choice::default(), choice, target)
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
    stored: &Choice,
    target: &Target,
) -> Result<Config, FamilyError> {
    complete(p, &stored.clone().without_grid(), choice, target)
}
