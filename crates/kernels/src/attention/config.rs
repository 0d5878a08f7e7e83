//! The config: schedule, tile, stages and registers.

use super::problem::{Class, Problem};
use super::schedule;
use crate::roles::{RegisterBudget, RoleRegisters, check_registers};
use warpline_family::error::FamilyError;
use warpline_family::resources::resources;
use warpline_family::{fields, keywords};
use warpline_ir::Target;

keywords! {
    /// The order of the products and the softmax of a consumer.
    pub enum Schedule {
        /// Scores, softmax and values of a block one after the other; consumers overlap each other
        Cooperative = "cooperative",
        /// The scores of a block beside the values of the block before
        PingPong = "ping-pong",
    }
}

fields! {
    /// The tuning parameters that the caller fixes.
    #[derive(Default)]
    pub struct Choice {
        /// Order of the products and the softmax of a consumer
        pub schedule: Option<Schedule>,
        /// Warpgroups that compute, with 64 queries each
        pub consumers: Option<u32>,
        /// Keys of a block
        pub tile_keys: Option<u32>,
        /// Blocks of keys, and of values, in flight
        pub stages: Option<u32>,
        /// The bits of a query do not depend on the other queries and batches: tuned configs are not used
        pub batch_invariant: Option<bool>,
    }
}

/// The complete set of tuning parameters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// Order of the products and the softmax of a consumer.
    pub schedule: Schedule,
    /// Warpgroups that compute, with 64 queries each.
    pub consumers: u32,
    /// Keys of a block.
    pub tile_keys: u32,
    /// Blocks of keys, and of values, in flight.
    pub stages: u32,
}

impl From<&Config> for Choice {
    fn from(c: &Config) -> Self {
        Self {
            schedule: Some(c.schedule),
            consumers: Some(c.consumers),
            tile_keys: Some(c.tile_keys),
            stages: Some(c.stages),
            batch_invariant: None,
        }
    }
}

/// The maximum number of consumers.
const MAX_CONSUMERS: u32 = 3;

impl Config {
    /// Returns the queries of a tile.
    pub(super) fn tile_rows(&self) -> u32 {
        64 * self.consumers
    }

    /// Returns the registers of a thread: an SM has 64 Ki.
    pub(super) fn registers(&self) -> RegisterBudget {
        let (load, math) = match self.consumers {
            1 => (24, 240),
            2 => (24, 240),
            _ => (32, 160),
        };
        RegisterBudget { load, math }
    }

    /// Returns the config that the heuristic selects, with the caller's choices applied.
    pub(super) fn select(
        p: &Problem,
        choice: &Choice,
        target: &Target,
    ) -> Result<Self, FamilyError> {
        let consumers = choice.consumers.unwrap_or(consumers(p.dim, p.queries));
        let class = p.class();
        let mut config = Self {
            schedule: choice.schedule.unwrap_or(Schedule::PingPong),
            consumers,
            tile_keys: 128,
            stages: choice.stages.unwrap_or(2),
        };
        config.tile_keys = choice.tile_keys.unwrap_or_else(|| {
            while config.tile_keys > 64 && config.needed_registers(&class) > config.registers().math
            {
                config.tile_keys -= 16;
            }
            config.tile_keys
        });
        config.check(&class, target)?;
        Ok(config)
    }

    /// Estimates the registers of a consumer thread: the output, the scores, with ping-pong the
    /// probabilities of the block before, and temporaries. The factors separate the configs that ptxas
    /// 13.0 spills from the others.
    fn needed_registers(&self, class: &Class) -> u32 {
        let (output, scores) = (class.dim / 2, self.tile_keys / 2);
        let probabilities = match self.schedule {
            Schedule::Cooperative => 0,
            Schedule::PingPong => scores / 2,
        };
        let temporaries = 16 + scores * if class.causal { 13 } else { 8 } / 32;
        output + scores + probabilities + temporaries
    }

    fn check(&self, class: &Class, target: &Target) -> Result<(), FamilyError> {
        let reject = |text: String| Err(FamilyError::Config(text));
        if !(1..=MAX_CONSUMERS).contains(&self.consumers) {
            return reject(format!(
                "--consumers is {}; it must be 1 to {MAX_CONSUMERS}",
                self.consumers
            ));
        }
        if !self.tile_keys.is_multiple_of(16) || !(16..=256).contains(&self.tile_keys) {
            return reject(format!(
                "--tile-keys is {}; it must be a multiple of 16 from 16 to 256",
                self.tile_keys
            ));
        }
        if self.stages == 0 {
            return reject("--stages is 0; a ring needs at least 1 stage".into());
        }
        let registers = self.registers();
        check_registers(
            &[
                RoleRegisters {
                    role: "loading",
                    warpgroups: 1,
                    registers: registers.load,
                    option: "--consumers",
                },
                RoleRegisters {
                    role: "computing",
                    warpgroups: self.consumers,
                    registers: registers.math,
                    option: "--consumers",
                },
            ],
            target,
        )?;
        let needed = self.needed_registers(class);
        if needed > registers.math {
            return reject(format!(
                "--tile-keys {} needs about {needed} registers in each thread of {} consumers, but {} are \
                 available\nhelp: use a smaller --tile-keys or fewer --consumers",
                self.tile_keys, self.consumers, registers.math
            ));
        }
        let what = format!(
            "{} stages of {} keys with {} queries",
            self.stages,
            self.tile_keys,
            self.tile_rows()
        );
        resources(&what, target, |k| schedule::declare(k, class, self)).map(|_| ())
    }
}

/// Returns the keys of a block: 128, or the most whose registers suffice.
fn tile_keys(class: &Class, schedule: Schedule, consumers: u32) -> u32 {
    let fits = |&tile_keys: &u32| {
        let config = Config {
            schedule,
            consumers,
            tile_keys,
            stages: 2,
        };
        config.needed_registers(class) <= config.registers().math
    };
    (64..=128).rev().step_by(16).find(fits).unwrap_or(64)
}

/// Returns the number of consumers.
fn consumers(dim: u32, queries: u32) -> u32 {
    match dim {
        _ if queries <= 64 => 1,
        ..=64 if queries > 128 => 3,
        _ => 2,
    }
}

/// Returns the choice with the keys of a block fixed, for batch invariance: the bits of a query depend
/// on nothing else of the config. The most consumers have the fewest registers.
pub(super) fn fixed_choice(p: &Problem, choice: &Choice) -> Choice {
    let consumers = choice.consumers.unwrap_or(consumers(p.dim, u32::MAX));
    let keys = || tile_keys(&p.class(), Schedule::PingPong, consumers);
    Choice {
        tile_keys: match choice.batch_invariant {
            Some(true) => Some(choice.tile_keys.unwrap_or_else(keys)),
            _ => choice.tile_keys,
        },
        ..choice.clone()
    }
}

/// Returns the choices that autotuning completes, the heuristic's first.
pub(super) fn choices(p: &Problem) -> Vec<Choice> {
    let mut all = vec![Choice::default()];
    let widths = match p.dim {
        64 => [192, 128, 112, 96],
        _ => [160, 128, 96, 64],
    };
    for schedule in Schedule::ALL {
        for consumers in [2, 3, 1] {
            for (tile_keys, stages) in widths.iter().flat_map(|&keys| [(keys, 2), (keys, 3)]) {
                all.push(Choice {
                    schedule: Some(*schedule),
                    consumers: Some(consumers),
                    tile_keys: Some(tile_keys),
                    stages: Some(stages),
                    batch_invariant: None,
                });
            }
        }
    }
    all
}
