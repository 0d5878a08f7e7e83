//! Flat flags to a config: the one place that rejects flags that do not go together.

use super::config::{Choice, Config, Order};
use super::problem::Problem;
use super::schedule::{Consumers, Depth, Dequantizer, Form, Schedule, WarpTile};
use super::shared_memory::{most_stages, shared_bytes};
use super::units::{BLOCK, WIDTH};
use crate::roles::{self, Budget, Registers};
use warpline_family::error::FamilyError;
use warpline_family::field::Fields as _;
use warpline_ir::{Target, build};

/// Rejects a config.
fn reject<T>(text: String) -> Result<T, FamilyError> {
    Err(FamilyError::Config(text))
}

impl Config {
    /// Completes what the caller fixes with `base` and with defaults, or says why that is no config.
    pub(super) fn new(
        p: &Problem,
        base: &Choice,
        choice: &Choice,
        target: &Target,
    ) -> Result<Self, FamilyError> {
        let asked = &choice.or(base);
        let schedule = schedule(asked, choice)?;
        let mut c = Self {
            schedule,
            tile_m: asked.tile_m.unwrap_or(64),
            stages: 2,
            order: order(asked, choice)?,
            split_k: asked.split_k.unwrap_or(1),
            hints: asked.hints.unwrap_or_else(|| p.widened().streams_b()),
            ctas: 0,
        };
        check_tile(&c)?;
        check_registers(&c, target)?;
        c.stages = stages(p, &c, asked, target)?;
        c.ctas = ctas(p, &c, asked, target)?;
        Ok(c)
    }
}

/// Reads the schedule.
fn schedule(asked: &Choice, fixed: &Choice) -> Result<Schedule, FamilyError> {
    let consumers = asked.consumers.unwrap_or(2);
    let registers = |load, math| Registers {
        load: asked.load_registers.unwrap_or(load),
        math: asked.math_registers.unwrap_or(math),
    };
    let schedule = match asked.form.unwrap_or(Form::Cooperative) {
        Form::Warps => warps(asked, consumers)?,
        Form::Dequantizer => match (asked.tile_k.unwrap_or(BLOCK), consumers) {
            (BLOCK, 1) => Schedule::Dequantizer(Dequantizer::One),
            (BLOCK, 2) => Schedule::Dequantizer(Dequantizer::Two(registers(40, 192))),
            (tile_k, _) => {
                return reject(format!(
                    "form dequantiser has --tile-k {BLOCK} and 1 or 2 consumers, not {tile_k} and {consumers}\n\
                     help: use --tile-k {BLOCK} --consumers 2"
                ));
            }
        },
        Form::Cooperative => {
            let depth = match asked.tile_k.unwrap_or(BLOCK) {
                BLOCK => Some(Depth::Block),
                TWO_BLOCKS => Some(Depth::TwoBlocks),
                WIDTH => None,
                other => {
                    return reject(format!(
                        "--tile-k is {BLOCK}, {TWO_BLOCKS}, or {WIDTH}, of which consumers take slots in turn, not {other}\n\
                         help: use --tile-k {BLOCK}"
                    ));
                }
            };
            let own = |consumers, depth| Schedule::OwnOutputs { consumers, depth };
            match (depth, consumers) {
                (Some(depth), 1) => own(Consumers::One, depth),
                (Some(depth), 2) => own(Consumers::Two(registers(40, 232)), depth),
                (Some(depth), 3) => own(Consumers::Three(registers(40, 152)), depth),
                (Some(depth), 4) => own(Consumers::Four, depth),
                (None, 2..=4) => Schedule::InTurn { consumers },
                (None, 1) => {
                    return reject(format!(
                        "2 to 4 consumers take slots of --tile-k {WIDTH} in turn, not 1\n\
                         help: use --tile-k {BLOCK}, or more --consumers"
                    ));
                }
                _ => {
                    return reject(format!(
                        "1 to 4 warpgroups multiply, not {consumers}\nhelp: use --consumers 2"
                    ));
                }
            }
        }
    };
    let tile_n = schedule.tile_n();
    if let Some(other) = asked.tile_n.filter(|&n| n != tile_n) {
        return reject(format!(
            "a tile of {consumers} consumers with --tile-k {} has {tile_n} columns, not {other}\n\
             help: use --tile-n {tile_n}, or other --consumers",
            schedule.tile_k()
        ));
    }
    let moves = schedule.registers().is_some();
    if !moves && fixed.load_registers.or(fixed.math_registers).is_some() {
        return reject(
            "registers are moved where 2 or 3 consumers have outputs of their own\n\
             help: leave --load-registers and --math-registers out"
                .into(),
        );
    }
    Ok(schedule)
}

const TWO_BLOCKS: u32 = 2 * BLOCK;

/// Reads the schedule of warps that multiply each for itself.
fn warps(asked: &Choice, consumers: u32) -> Result<Schedule, FamilyError> {
    if consumers != 2 {
        return reject(format!(
            "form warps has 8 warps that multiply, which are 2 warpgroups, not {consumers}\n\
             help: leave --consumers out"
        ));
    }
    let [tile_n, tile_k] = [asked.tile_n.unwrap_or(32), asked.tile_k.unwrap_or(512)];
    let all = WarpTile::ALL;
    match all
        .into_iter()
        .find(|tile| tile.sides() == [tile_n, tile_k])
    {
        Some(tile) => Ok(Schedule::Warps(tile)),
        None => {
            let all = all.map(|tile| {
                let [n, k] = tile.sides();
                format!("{n} x {k}")
            });
            reject(format!(
                "form warps has tiles of {} (--tile-n x --tile-k), not {tile_n} x {tile_k}\n\
                 help: use --tile-n 32 --tile-k 512",
                all.join(", ")
            ))
        }
    }
}

/// Reads the order of tiles.
fn order(asked: &Choice, fixed: &Choice) -> Result<build::Order, FamilyError> {
    let order = asked.order.unwrap_or_default();
    match (order, asked.group) {
        (Order::Grouped, Some(0)) => {
            reject("a band has at least 1 row of tiles, not 0\nhelp: use --group 8".into())
        }
        (Order::Grouped, group) => Ok(build::Order::Grouped(group.unwrap_or(8))),
        _ if fixed.group.is_some() => reject(format!(
            "--group requires --order grouped (selected: {})\nhelp: leave --group out",
            order.word()
        )),
        (Order::RowMajor, _) => Ok(build::Order::RowMajor),
        (Order::Hilbert, _) => Ok(build::Order::Hilbert),
    }
}

/// The most tokens of a tile. Accumulators leave the rest of a consumer's registers to the
/// operands, of which it has two sets: one in flight, and the next.
fn most_tokens(schedule: Schedule) -> u32 {
    // Four warpgroups begin with 128 registers and three with 168, which is what the accumulators
    // of a role that is not given more have to fit.
    match schedule {
        Schedule::OwnOutputs { consumers, depth } => match (consumers, depth) {
            (Consumers::One | Consumers::Two(_), _) => 256,
            (Consumers::Three(_), Depth::Block) => 128,
            (Consumers::Three(_), Depth::TwoBlocks) => 96,
            (Consumers::Four, Depth::Block) => 64,
            (Consumers::Four, Depth::TwoBlocks) => 16,
        },
        Schedule::InTurn { consumers: 2 } => 64,
        Schedule::InTurn { .. } => 32,
        Schedule::Dequantizer(Dequantizer::One) => 192,
        Schedule::Dequantizer(Dequantizer::Two(_)) => 128,
        Schedule::Warps(_) => 32,
    }
}

/// Rejects a tile that consumers cannot hold, or that CTAs cannot split.
fn check_tile(c: &Config) -> Result<(), FamilyError> {
    if ![1, 2, 4].contains(&c.split_k) {
        return reject(format!(
            "1, 2 or 4 CTAs split the sums of a tile, not {}\nhelp: use --split-k 1",
            c.split_k
        ));
    }
    let most = most_tokens(c.schedule);
    if c.tile_m == 0 || !c.tile_m.is_multiple_of(16) || c.tile_m > most {
        return reject(format!(
            "--tile-m of {} consumers with --tile-k {} is a multiple of 16 up to {most}, not {}\n\
             help: use --tile-m {}",
            c.schedule.consumers(),
            c.schedule.tile_k(),
            c.tile_m,
            c.tile_m.clamp(16, most).next_multiple_of(16)
        ));
    }
    if !c.finished().is_multiple_of(8) {
        return reject(format!(
            "each CTA of --split-k {} finishes a multiple of 8 tokens of a tile, not {}\n\
             help: use a --tile-m that is a multiple of {}",
            c.split_k,
            c.finished(),
            8 * c.split_k
        ));
    }
    Ok(())
}

/// Rejects registers that the roles cannot have, or too few for the accumulators.
fn check_registers(c: &Config, target: &Target) -> Result<(), FamilyError> {
    let Some(Registers { load, math }) = c.schedule.registers() else {
        return Ok(());
    };
    let budget = |role, warpgroups, registers, option| Budget {
        role,
        warpgroups,
        registers,
        option,
    };
    let consumers = c.schedule.consumers();
    let mut all = vec![
        budget("loading", 1, load, "--load-registers"),
        budget("computing", consumers, math, "--math-registers"),
    ];
    roles::check_registers(&all, target)?;
    if let Schedule::Dequantizer(_) = c.schedule {
        let left = c.schedule.dequantizer_registers().unwrap_or(0);
        if !(64..=240).contains(&left) {
            return reject(format!(
                "of 512 registers 64 to 240 are left for dequantizing, not {left}\nhelp: change --math-registers"
            ));
        }
        all.push(budget("dequantizing", 1, left, "--math-registers"));
        roles::check_registers(&all, target)?;
    }
    // Beside the accumulators: operands in flight and the next ones, addresses, counters.
    let needed = c.tile_m / 2 + 64;
    match math < needed {
        true => reject(format!(
            "a tile of {} tokens needs {needed} registers per computing thread, and {math} are asked for\n\
             help: use --math-registers {} or a smaller --tile-m",
            c.tile_m,
            needed.next_multiple_of(8)
        )),
        false => Ok(()),
    }
}

/// The stages that are asked for, or as many as are useful and fit.
fn stages(p: &Problem, c: &Config, asked: &Choice, target: &Target) -> Result<u32, FamilyError> {
    let stages = match asked.stages {
        Some(stages) if !(2..=32).contains(&stages) => {
            return reject(format!(
                "a ring has 2 to 32 stages here, not {stages}\nhelp: leave --stages out"
            ));
        }
        Some(stages) => stages,
        None => match most_stages(c, p.a_is_coded(), target)? {
            Some(most) => return Ok(most),
            None => 2,
        },
    };
    let needed = shared_bytes(&Config { stages, ..*c }, p.a_is_coded(), target)?;
    if needed > target.shared_bytes {
        return reject(format!(
            "{stages} stages of {} x {} x {} need {needed} bytes of shared memory; {} has {}\n\
             help: use fewer --stages or a smaller --tile-m",
            c.tile_m,
            c.schedule.tile_n(),
            c.schedule.tile_k(),
            target.name,
            target.shared_bytes
        ));
    }
    Ok(stages)
}

/// The CTAs that are asked for, or as many as run at a time and have a tile.
fn ctas(p: &Problem, c: &Config, asked: &Choice, target: &Target) -> Result<u32, FamilyError> {
    let tiles = c.tiles(p.m, p.n);
    if tiles >= 1 << 29 {
        return reject(format!(
            "{tiles} tiles are more than a grid counts: 536870911"
        ));
    }
    let slots = target.sms / c.split_k * c.split_k;
    let all = (tiles * u64::from(c.split_k)).min(slots.into());
    match asked.ctas.unwrap_or(all as u32) {
        n if n == 0 || !n.is_multiple_of(c.split_k) => reject(format!(
            "a grid has a multiple of {} CTAs (whole clusters), at least one, not {n}\n\
             help: leave --ctas out",
            c.split_k
        )),
        n => Ok(n),
    }
}
