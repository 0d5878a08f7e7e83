//! The config of a problem: flags, and for the rest what fits the machine.

use super::config::{Choice, Config, HANDED, Schedule, Staging};
use super::problem::{Class, Layout, MOST_TILES, Problem, Sums};
use super::sizes;
use super::tile_scheduler::Cluster;
use crate::roles::{self, Budget, Registers};
use crate::weights::Weights;
use warpline_family::error::FamilyError;
use warpline_family::field::Fields as _;
use warpline_ir::Target;

/// Bytes of a tile row in one TMA copy: the widest swizzle span.
const SPAN: u32 = 128;

/// The most rows of a TMA box.
const MOST_ROWS: u32 = 256;

impl Config {
    /// Completes a config: the flags of `choice`, then those of `base`, then what fits the target.
    /// Rejects flags that do not go together.
    pub(super) fn new(
        p: &Problem,
        base: &Choice,
        choice: &Choice,
        target: &Target,
    ) -> Result<Self, FamilyError> {
        let (class, flags) = (p.class(), choice.or(base));
        let span = SPAN / class.factor.dtype().bytes() as u32;
        let tile_m = flags.tile_m.unwrap_or(128);
        // One of all rows where there are so few: each column of B is then read once.
        let band = match p.m.div_ceil(tile_m.max(1)) {
            9..=16 => 16,
            _ => 8,
        };
        let schedule = Schedule::read(&flags, band)?;
        // Stages are worth their room where others load.
        let (most, usual) = match schedule {
            Schedule::DoubleBuffer { .. } => (2, None),
            _ => (8, base.stages),
        };
        let mut config = Self {
            schedule,
            tile_m,
            tile_n: flags.tile_n.unwrap_or(128),
            tail_n: flags.tail_n.filter(|&n| n > 0),
            tile_k: flags.tile_k.unwrap_or(span),
            stages: choice.stages.or(usual).unwrap_or(0),
            hints: flags.hints.unwrap_or(p.streams_b()),
            registers: None,
            staging: Staging {
                width: 0,
                stages: 0,
            },
            shared_bytes: 0,
            ctas: 0,
        };
        config.check_tile(&class)?;
        config.check_schedule(&class)?;
        config.check_cluster(&class)?;
        config.move_registers(&class, &flags, target)?;
        if let Some(stages) = choice.stages.or(usual) {
            config.check_stages(stages)?;
        }
        config = sizes::settled(&class, &config, most, target)?;
        config.check_room(target)?;
        config.ctas = config.grid(p, flags.ctas, target)?;
        config.check_tail(p, target)?;
        Ok(config)
    }

    /// Rejects tiles that no schedule has.
    fn check_tile(&self, class: &Class) -> Result<(), FamilyError> {
        let size = class.factor.dtype().bytes() as u32;
        let [rows, cols] = self.sides();
        let (of_rows, of_cols) = match self.swap_ab() {
            false => ("--tile-m", "--tile-n"),
            true => ("--tile-n", "--tile-m"),
        };
        let unit = match self.schedule.has_whole_tiles() {
            true => 64,
            false => 64 * self.consumers(),
        };
        if rows == 0 || !rows.is_multiple_of(unit) || rows > 256 {
            return reject(format!(
                "{of_rows} is a multiple of {unit} up to 256 (64 rows for each consumer), not {rows}"
            ));
        }
        // Two factors share the columns of a product.
        let (unit, most) = match class.factors() {
            2 if !self.swap_ab() => (8, 128),
            _ => (16, 256),
        };
        if cols == 0 || !cols.is_multiple_of(unit) || cols > most {
            return reject(format!(
                "{of_cols} is a multiple of {unit} up to {most}, not {cols}"
            ));
        }
        let spans = SPAN / size;
        if self.tile_k == 0 || !(self.tile_k.is_multiple_of(spans) || self.tile_k == spans / 2) {
            return reject(format!(
                "--tile-k is {}, or a multiple of {spans} (128 bytes), not {}",
                spans / 2,
                self.tile_k
            ));
        }
        if class.layout == Layout::Kn && !self.tile_n.is_multiple_of(64) {
            return reject(format!(
                "where B lies as [K, N], --tile-n is a multiple of 64 (128 bytes of a row), not {}",
                self.tile_n
            ));
        }
        if class.layout == Layout::Kn && self.tile_k > MOST_ROWS {
            return reject(format!(
                "where B lies as [K, N], --tile-k is at most {MOST_ROWS} (rows of one copy), not {}",
                self.tile_k
            ));
        }
        if class.sums == Sums::Promoted && self.tile_k != 128 {
            return reject(format!(
                "sums are promoted every 128 products, so --tile-k is 128, not {}",
                self.tile_k
            ));
        }
        Ok(())
    }

    /// Rejects a schedule that does not serve the problem's class.
    fn check_schedule(&self, class: &Class) -> Result<(), FamilyError> {
        match self.schedule {
            Schedule::TwoConsumer { .. } if class.up.is_none() => reject(
                "form two-consumer has an operand for each consumer: it is for dual-gemm".into(),
            ),
            Schedule::TwoConsumer { .. } if !self.tile_n.is_multiple_of(HANDED[0]) => {
                reject(format!(
                    "form two-consumer hands {} columns at a time: --tile-n is a multiple of them, not {}",
                    HANDED[0], self.tile_n
                ))
            }
            Schedule::TwoConsumer { .. } | Schedule::Storer { .. }
                if !class.epilogue.reductions().is_empty() =>
            {
                reject(format!(
                    "form {} gives no --row-sums, --col-sums and --amax\n\
                     help: choose --form cooperative or ping-pong",
                    self.schedule.form().word()
                ))
            }
            Schedule::StreamK { .. } if class.batched => {
                reject("--stream-k deals the k-tiles of one product: not with --batch".into())
            }
            Schedule::DoubleBuffer { .. } if class.sums == Sums::Promoted => {
                reject("--sums promoted needs a producer: not form double-buffer".into())
            }
            Schedule::DoubleBuffer { consumers, .. }
                if !(self.tile_n / consumers).is_multiple_of(8) =>
            {
                reject(format!(
                    "in form double-buffer each consumer loads a multiple of 8 rows of B: --tile-n is a multiple \
                     of {}, not {}",
                    8 * consumers,
                    self.tile_n
                ))
            }
            _ => Ok(()),
        }
    }

    /// Rejects tiles that the CTAs of a cluster cannot share.
    fn check_cluster(&self, class: &Class) -> Result<(), FamilyError> {
        let span = SPAN / class.factor.dtype().bytes() as u32;
        let shared = match self.cluster() {
            Cluster::One => return Ok(()),
            Cluster::Rows => self.tile_n,
            Cluster::Cols => self.tile_m,
        };
        if self.tile_k > span {
            return reject(format!(
                "with --cluster a stage has at most {span} elements of K (128 bytes), not {}",
                self.tile_k
            ));
        }
        if !shared.is_multiple_of(16) {
            return reject(format!(
                "two CTAs share a side that is a multiple of 16, not {shared}"
            ));
        }
        match self.cluster() {
            Cluster::Rows if class.layout == Layout::Kn => {
                reject("--cluster 2x1 shares rows of B, which lies as [K, N]: choose 1x2".into())
            }
            Cluster::Rows if class.up == Some(Weights::Interleaved) => reject(
                "--cluster 2x1 shares whole rows of weights, not interleaved ones: choose 1x2"
                    .into(),
            ),
            _ => Ok(()),
        }
    }

    /// Sets the register budget of each role; rejects a tile whose accumulators do not fit.
    fn move_registers(
        &mut self,
        class: &Class,
        flags: &Choice,
        target: &Target,
    ) -> Result<(), FamilyError> {
        let (asked_load, asked_math) = (flags.load_registers, flags.math_registers);
        let sums = self.accumulators(class);
        let threads = self.schedule.warpgroups() * 128;
        let entry = target.entry_registers(threads);
        let moves = !matches!(self.schedule, Schedule::DoubleBuffer { .. }) && threads >= 384;
        if moves {
            let idle = self.schedule.warpgroups() - self.consumers();
            // 504 or 512 in all, in units of 8 for each warpgroup.
            let pool = entry * self.schedule.warpgroups();
            let give = |load: u32| {
                let left = pool.saturating_sub(idle.saturating_mul(load));
                left / self.consumers() / 8 * 8
            };
            let is_storer = matches!(self.schedule, Schedule::Storer { .. });
            let load = asked_load.unwrap_or(match (self.consumers(), sums) {
                (3, _) => 32,
                (_, ..=192) if !is_storer => 40,
                _ => 24,
            });
            let math = asked_math.unwrap_or(give(load).min(240));
            roles::check_registers(
                &[
                    Budget {
                        role: "loading",
                        warpgroups: idle,
                        registers: load,
                        option: "--load-registers",
                    },
                    Budget {
                        role: "computing",
                        warpgroups: self.consumers(),
                        registers: math,
                        option: "--math-registers",
                    },
                ],
                target,
            )?;
            self.registers = Some(Registers { load, math });
        } else if asked_load.or(asked_math).is_some() {
            return reject(format!(
                "registers are moved between roles of 3 or more warpgroups; this config has {}",
                self.schedule.warpgroups()
            ));
        }
        // What ptxas counts with are the registers at entry where they are fewer than 168.
        let have = match self.registers {
            Some(registers) if threads <= 384 => registers.math,
            _ => entry,
        };
        // Registers beside the accumulators: addresses, counters, values being stored.
        let besides = 32;
        if sums + besides > have {
            return reject(format!(
                "a tile of {} x {} keeps {sums} sums in each computing thread, and needs {} registers with what is \
                 besides; there are {have}: {} too many",
                self.tile_m,
                self.tile_n,
                sums + besides,
                sums + besides - have
            ));
        }
        Ok(())
    }

    /// Rejects a number of stages that no ring has.
    fn check_stages(&self, stages: u32) -> Result<(), FamilyError> {
        // What is loaded is the stage that comes next: more than a few are not used.
        let most = match self.schedule {
            Schedule::DoubleBuffer { .. } => 4,
            _ => 32,
        };
        match (2..=most).contains(&stages) {
            true => Ok(()),
            false => reject(format!("a ring has 2 to {most} stages here, not {stages}")),
        }
    }

    /// Rejects what does not fit into shared memory.
    fn check_room(&self, target: &Target) -> Result<(), FamilyError> {
        let (needed, have) = (self.shared_bytes + sizes::FREE, target.shared_bytes);
        if needed <= have {
            return Ok(());
        }
        reject(format!(
            "{} stages of {} x {} x {} need {needed} bytes of shared memory with what is stored; {} has {have}: \
             {} too many",
            self.stages,
            self.tile_m,
            self.tile_n,
            self.tile_k,
            target.name,
            needed - have
        ))
    }

    /// CTAs that an SM holds at a time.
    fn per_sm(&self, class: &Class, target: &Target) -> u32 {
        if self.registers.is_some() {
            return 1;
        }
        // The driver keeps 1024 bytes for each CTA.
        let bytes = self.shared_bytes + sizes::FREE;
        let by_memory = (target.shared_bytes + 1024) / (bytes + 1024);
        // Without moving registers each thread has as many as its accumulators, and some.
        let registers = (self.accumulators(class) + 72).next_multiple_of(8);
        let by_registers = target.registers / (self.schedule.warpgroups() * 128 * registers);
        by_memory.min(by_registers).clamp(1, 4)
    }

    /// CTAs of the grid.
    fn grid(&self, p: &Problem, asked: Option<u32>, target: &Target) -> Result<u32, FamilyError> {
        let [rows, cols] = self.tiles(p);
        let tiles = rows * cols * p.batches();
        if tiles > MOST_TILES {
            return reject(format!(
                "{tiles} tiles of {} x {} are more than a grid counts: {MOST_TILES}",
                self.tile_m, self.tile_n
            ));
        }
        let unit = self.cluster().size() * self.schedule.split_k();
        let slots = target.sms * self.per_sm(&p.class(), target) / unit * unit;
        let all = tiles * u64::from(self.schedule.split_k());
        let steps = u64::from(p.k.div_ceil(self.tile_k).max(1));
        // The step behind the last one is counted too.
        if self.schedule.is_stream_k() && tiles.saturating_mul(steps + 1) > MOST_TILES {
            return reject(format!(
                "{steps} k-tiles of each of {tiles} tiles are more than --stream-k counts: {MOST_TILES}"
            ));
        }
        match asked {
            None if self.schedule.is_stream_k() => Ok((tiles * steps).min(slots.into()) as u32),
            None => Ok(all.min(slots.into()) as u32),
            Some(n) if n == 0 || !n.is_multiple_of(unit) => reject(format!(
                "a grid has a multiple of {unit} CTAs (whole clusters), at least one, not {n}"
            )),
            Some(n) if self.schedule.is_stream_k() && n > slots => reject(format!(
                "with --stream-k all CTAs are on the machine at once: at most {slots}, not {n}"
            )),
            Some(n) => Ok(n),
        }
    }
}

fn reject<T>(text: String) -> Result<T, FamilyError> {
    Err(FamilyError::Config(text))
}
