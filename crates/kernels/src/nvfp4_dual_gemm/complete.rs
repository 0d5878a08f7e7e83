//! Completes a config from flags, and rejects flags that exclude each other.

use super::config::{Choice, Config, Raster};
use super::schedule::{Consumers, DequantConsumers, KDepth, Schedule, ScheduleKind, WarpTile};
use super::shape::Shape;
use super::shared_memory::{max_useful_stages, shared_bytes};
use super::units::{K_BLOCK, PANEL_K};
use crate::roles::{self, RegisterBudget, RoleRegisters};
use warpline_family::error::FamilyError;
use warpline_family::field::Fields as _;
use warpline_ir::{Target, builder};

/// Rejects a config.
fn reject<T>(text: String) -> Result<T, FamilyError> {
    Err(FamilyError::Config(text))
}

impl Config {
    /// Completes a config from `choice`, then `base`, then defaults; rejects illegal combinations.
    pub(crate) fn new(
        p: &Shape,
        base: &Choice,
        choice: &Choice,
        target: &Target,
    ) -> Result<Self, FamilyError> {
        let flags = &choice.or(base);
        let schedule = schedule(p, flags, choice)?;
        let mut c = Self {
            schedule,
            tile_m: flags.tile_m.unwrap_or(64),
            stages: 2,
            raster: raster(flags, choice)?,
            split_k: flags.split_k.unwrap_or(1),
            cache_hints: flags.cache_hints.unwrap_or(p.streams_weights),
            ctas: 0,
        };
        check_tile(&c)?;
        check_registers(&c, target)?;
        c.stages = stages(p, &c, flags, target)?;
        c.ctas = ctas(p, &c, flags, target)?;
        Ok(c)
    }
}

/// Reads the schedule from flags.
fn schedule(p: &Shape, flags: &Choice, fixed: &Choice) -> Result<Schedule, FamilyError> {
    let consumers = flags.consumers.unwrap_or(2);
    let registers = |load, math| RegisterBudget {
        load: flags.load_registers.unwrap_or(load),
        math: flags.math_registers.unwrap_or(math),
    };
    let schedule = match flags.schedule.unwrap_or(ScheduleKind::Cooperative) {
        ScheduleKind::Warps => warps(p, flags, consumers)?,
        ScheduleKind::Dequantizer => match (flags.tile_k.unwrap_or(K_BLOCK), consumers) {
            (K_BLOCK, 1) => Schedule::Dequantizer(DequantConsumers::One),
            (K_BLOCK, 2) => Schedule::Dequantizer(DequantConsumers::Two(registers(40, 192))),
            (tile_k, _) => {
                return reject(format!(
                    "schedule dequantizer needs --tile-k {K_BLOCK} and 1 or 2 consumers (selected: --tile-k {tile_k} \
                     --consumers {consumers})\nhelp: use --tile-k {K_BLOCK} --consumers 2"
                ));
            }
        },
        ScheduleKind::Cooperative => {
            let depth = match flags.tile_k.unwrap_or(K_BLOCK) {
                K_BLOCK => Some(KDepth::Block),
                TWO_K_BLOCKS => Some(KDepth::TwoBlocks),
                PANEL_K => None,
                other => {
                    return reject(format!(
                        "--tile-k is {other}; it must be {K_BLOCK}, {TWO_K_BLOCKS} or {PANEL_K}\n\
                         help: use --tile-k {K_BLOCK}"
                    ));
                }
            };
            let own_outputs = |consumers, depth| Schedule::OwnOutputs { consumers, depth };
            match (depth, consumers) {
                (Some(depth), 1) => own_outputs(Consumers::One, depth),
                (Some(depth), 2) => own_outputs(Consumers::Two(registers(40, 232)), depth),
                (Some(depth), 3) => own_outputs(Consumers::Three(registers(40, 152)), depth),
                (Some(depth), 4) => own_outputs(Consumers::Four, depth),
                (None, 2..=4) => Schedule::InTurn { consumers },
                (None, 1) => {
                    return reject(format!(
                        "--tile-k {PANEL_K} needs 2 to 4 consumers (selected: 1)\n\
                         help: use --tile-k {K_BLOCK}, or more --consumers"
                    ));
                }
                _ => {
                    return reject(format!(
                        "--consumers is {consumers}; it must be 1 to 4\nhelp: use --consumers 2"
                    ));
                }
            }
        }
    };
    let tile_n = p.outputs.weight_rows(schedule.tile_n());
    if let Some(other) = flags.tile_n.filter(|&n| n != tile_n) {
        return reject(format!(
            "--tile-n is {other}; {consumers} consumers with --tile-k {} have {tile_n} columns\n\
             help: use --tile-n {tile_n}, or other --consumers",
            schedule.tile_k()
        ));
    }
    let has_budgets = schedule.registers().is_some();
    if !has_budgets && fixed.load_registers.or(fixed.math_registers).is_some() {
        return reject(
            "register budgets need 2 or 3 consumers with outputs of their own\n\
             help: leave --load-registers and --math-registers out"
                .into(),
        );
    }
    Ok(schedule)
}

const TWO_K_BLOCKS: u32 = 2 * K_BLOCK;

/// Reads the options of the schedule `warps`.
fn warps(p: &Shape, flags: &Choice, consumers: u32) -> Result<Schedule, FamilyError> {
    if consumers != 2 {
        return reject(format!(
            "--consumers is {consumers}; schedule warps has 2 (8 multiplying warps)\n\
             help: leave --consumers out"
        ));
    }
    let n_and_k = |tile: WarpTile| {
        let [pairs, k] = tile.n_and_k();
        [p.outputs.weight_rows(pairs), k]
    };
    let [default_n, default_k] = n_and_k(WarpTile::N32K512);
    let [tile_n, tile_k] = [
        flags.tile_n.unwrap_or(default_n),
        flags.tile_k.unwrap_or(default_k),
    ];
    let shapes = WarpTile::ALL;
    match shapes
        .into_iter()
        .find(|&tile| n_and_k(tile) == [tile_n, tile_k])
    {
        Some(tile) => Ok(Schedule::Warps(tile)),
        None => {
            let shapes = shapes.map(|tile| {
                let [n, k] = n_and_k(tile);
                format!("{n}x{k}")
            });
            reject(format!(
                "--tile-n x --tile-k is {tile_n}x{tile_k}; schedule warps supports {}\n\
                 help: use --tile-n {default_n} --tile-k {default_k}",
                shapes.join(", ")
            ))
        }
    }
}

/// Reads the raster from flags.
fn raster(flags: &Choice, fixed: &Choice) -> Result<builder::Rasterization, FamilyError> {
    let raster = flags.raster.unwrap_or_default();
    match (raster, flags.group) {
        (Raster::Grouped, Some(0)) => {
            reject("--group 0: a raster group has at least 1 tile row\nhelp: use --group 8".into())
        }
        (Raster::Grouped, group) => Ok(builder::Rasterization::Grouped(group.unwrap_or(8))),
        _ if fixed.group.is_some() => reject(format!(
            "--group requires --raster grouped (selected: {})\nhelp: leave --group out",
            raster.keyword()
        )),
        (Raster::RowMajor, _) => Ok(builder::Rasterization::RowMajor),
        (Raster::Hilbert, _) => Ok(builder::Rasterization::Hilbert),
    }
}

/// Returns the largest `tile_m`. Besides the accumulators a consumer needs registers for two sets of
/// operands: one in flight, and the next.
fn max_tile_m(schedule: Schedule) -> u32 {
    // Four warpgroups start with 128 registers per thread and three with 168. Without `setmaxnreg`
    // the accumulators must fit those.
    match schedule {
        Schedule::OwnOutputs { consumers, depth } => match (consumers, depth) {
            (Consumers::One | Consumers::Two(_), _) => 256,
            (Consumers::Three(_), KDepth::Block) => 128,
            (Consumers::Three(_), KDepth::TwoBlocks) => 96,
            (Consumers::Four, KDepth::Block) => 64,
            (Consumers::Four, KDepth::TwoBlocks) => 16,
        },
        Schedule::InTurn { consumers: 2 } => 64,
        Schedule::InTurn { .. } => 32,
        Schedule::Dequantizer(DequantConsumers::One) => 192,
        Schedule::Dequantizer(DequantConsumers::Two(_)) => 128,
        Schedule::Warps(_) => 32,
    }
}

/// Rejects a tile that the consumers cannot accumulate, or that the CTAs cannot split.
fn check_tile(c: &Config) -> Result<(), FamilyError> {
    if ![1, 2, 4].contains(&c.split_k) {
        return reject(format!(
            "--split-k is {}; it must be 1, 2 or 4\nhelp: use --split-k 1",
            c.split_k
        ));
    }
    let max_tile_m = max_tile_m(c.schedule);
    if c.tile_m == 0 || !c.tile_m.is_multiple_of(16) || c.tile_m > max_tile_m {
        return reject(format!(
            "--tile-m is {}; {} consumers with --tile-k {} support multiples of 16 up to {max_tile_m}\n\
             help: use --tile-m {}",
            c.tile_m,
            c.schedule.consumers(),
            c.schedule.tile_k(),
            c.tile_m.clamp(16, max_tile_m).next_multiple_of(16)
        ));
    }
    if !c.tokens_per_cta().is_multiple_of(8) {
        return reject(format!(
            "--tile-m is {}; --split-k {} needs a multiple of {} (8 tokens per CTA)\n\
             help: use a larger --tile-m",
            c.tile_m,
            c.split_k,
            8 * c.split_k
        ));
    }
    Ok(())
}

/// Rejects register budgets that the roles cannot get, or that are too small for the accumulators.
fn check_registers(c: &Config, target: &Target) -> Result<(), FamilyError> {
    let Some(RegisterBudget { load, math }) = c.schedule.registers() else {
        return Ok(());
    };
    let budget = |role, warpgroups, registers, option| RoleRegisters {
        role,
        warpgroups,
        registers,
        option,
    };
    let consumers = c.schedule.consumers();
    let mut budgets = vec![
        budget("loading", 1, load, "--load-registers"),
        budget("consumer", consumers, math, "--math-registers"),
    ];
    roles::check_registers(&budgets, target)?;
    if let Schedule::Dequantizer(_) = c.schedule {
        let remaining = c.schedule.dequantizer_registers().unwrap_or(0);
        if !(64..=240).contains(&remaining) {
            return reject(format!(
                "{remaining} of 512 registers are left for the dequantizer; it needs 64 to 240\nhelp: change --math-registers"
            ));
        }
        budgets.push(budget("dequantizing", 1, remaining, "--math-registers"));
        roles::check_registers(&budgets, target)?;
    }
    // 64 registers besides the accumulators: operands in flight, the next operands, addresses, counters.
    let needed = c.tile_m / 2 + 64;
    match math < needed {
        true => reject(format!(
            "--tile-m {} needs {needed} registers per consumer thread, but the budget is {math}\n\
             help: use --math-registers {} or a smaller --tile-m",
            c.tile_m,
            needed.next_multiple_of(8)
        )),
        false => Ok(()),
    }
}

/// Returns the stages of the choice, or as many as are useful and fit.
fn stages(p: &Shape, c: &Config, flags: &Choice, target: &Target) -> Result<u32, FamilyError> {
    let stages = match flags.stages {
        Some(stages) if !(2..=32).contains(&stages) => {
            return reject(format!(
                "--stages is {stages}; it must be 2 to 32\nhelp: leave --stages out"
            ));
        }
        Some(stages) => stages,
        None => match max_useful_stages(c, p, target)? {
            Some(stages) => return Ok(stages),
            None => 2,
        },
    };
    let needed = shared_bytes(&Config { stages, ..*c }, p, target)?;
    if needed > target.shared_bytes {
        return reject(format!(
            "{stages} stages of tile {}x{}x{} need {needed} bytes of shared memory, but {} has {}\n\
             help: use fewer --stages or a smaller --tile-m",
            c.tile_m,
            p.outputs.weight_rows(c.schedule.tile_n()),
            c.schedule.tile_k(),
            target.name,
            target.shared_bytes
        ));
    }
    Ok(stages)
}

/// Returns the CTAs of the choice, or as many as run at once and have a tile.
fn ctas(p: &Shape, c: &Config, flags: &Choice, target: &Target) -> Result<u32, FamilyError> {
    let tiles = c.tiles(p);
    if tiles >= 1 << 29 {
        return reject(format!(
            "the problem has {tiles} tiles; a launch has at most 536870911\nhelp: use a larger --tile-m"
        ));
    }
    let resident_ctas = target.sms / c.split_k * c.split_k;
    let useful_ctas = (tiles * u64::from(c.split_k)).min(resident_ctas.into());
    match flags.ctas.unwrap_or(useful_ctas as u32) {
        n if n == 0 || !n.is_multiple_of(c.split_k) => reject(format!(
            "--ctas is {n}; it must be a positive multiple of {} (whole clusters)\n\
             help: leave --ctas out",
            c.split_k
        )),
        n => Ok(n),
    }
}
