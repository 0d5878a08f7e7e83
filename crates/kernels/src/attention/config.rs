//! The config: schedule, tile, stages and registers.

use super::problem::{Class, Problem};
use super::schedule;
use crate::roles::{RegisterBudget, RoleRegisters, check_registers};
use warpline_family::error::FamilyError;
use warpline_family::resources::resources;
use warpline_family::{config, keywords};
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

config! {
    /// The complete set of tuning parameters.
    #[derive(Copy, Eq, Hash)]
    pub struct Config {
        /// Order of the products and the softmax of a consumer
        pub schedule: Schedule,
        /// Warpgroups that compute, with 64 queries each
        pub consumers: u32,
        /// Keys of a block
        pub tile_keys: u32,
        /// Blocks of keys, and of values, in flight
        pub stages: u32,
    }
    /// The tuning parameters that the caller fixes.
    pub struct Choice;
}

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
        let consumers = choice.consumers.unwrap_or(match p.dim {
            _ if p.queries <= 64 => 1,
            ..=64 if p.queries > 128 => 3,
            _ => 2,
        });
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
        if !(1..=3).contains(&self.consumers) {
            return reject(format!(
                "--consumers is {}; it must be 1 to 3",
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
                });
            }
        }
    }
    all
}
