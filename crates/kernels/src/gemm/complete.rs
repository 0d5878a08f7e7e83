//! Completes a config: the caller's flags, and defaults that fit the target.

use super::config::{Choice, Config, GATE_RING, Schedule, Staging};
use super::problem::{Accumulation, Class, MAX_TILES, OperandLayout, Problem};
use super::sizes;
use super::tile_scheduler::Cluster;
use crate::roles::{self, RegisterBudget, RoleRegisters};
use crate::weights::WeightLayout;
use warpline_family::error::FamilyError;
use warpline_family::field::Fields as _;
use warpline_ir::Target;

/// Bytes of a tile row in one TMA box: the widest swizzle span.
const SPAN: u32 = 128;

/// The most rows of a TMA box.
const MAX_BOX_ROWS: u32 = 256;

impl Config {
    /// Completes a config from the flags of `choice`, then those of `base`, then defaults that fit
    /// the target. Rejects flags that exclude each other.
    pub(super) fn new(
        p: &Problem,
        base: &Choice,
        choice: &Choice,
        target: &Target,
    ) -> Result<Self, FamilyError> {
        let (class, flags) = (p.class(), choice.or(base));
        let span = SPAN / class.dtype.a_dtype().bytes() as u32;
        let tile_m = flags.tile_m.unwrap_or(128);
        // With 9 to 16 tile rows one group holds all of them: each column of B is read once.
        let group = match p.m.div_ceil(tile_m.max(1)) {
            9..=16 => 16,
            _ => 8,
        };
        let schedule = Schedule::read(&flags, group)?;
        // More stages pay off only where a producer loads ahead.
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
            cache_hints: flags.cache_hints.unwrap_or(p.streams_b()),
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
        config.set_register_budget(&class, &flags, target)?;
        if let Some(stages) = choice.stages.or(usual) {
            config.check_stages(stages)?;
        }
        config = sizes::with_stages(&class, &config, most, target)?;
        config.check_shared_memory(target)?;
        config.ctas = config.grid(p, flags.ctas, target)?;
        config.check_tail(p, target)?;
        Ok(config)
    }

    /// Rejects tile shapes that no schedule supports.
    fn check_tile(&self, class: &Class) -> Result<(), FamilyError> {
        let size = class.dtype.a_dtype().bytes() as u32;
        let [rows, cols] = self.mma_tile();
        let (rows_flag, cols_flag) = match self.swap_ab() {
            false => ("--tile-m", "--tile-n"),
            true => ("--tile-n", "--tile-m"),
        };
        let unit = match self.schedule.has_whole_tiles() {
            true => 64,
            false => 64 * self.consumers(),
        };
        if rows == 0 || !rows.is_multiple_of(unit) || rows > 256 {
            return reject(format!(
                "{rows_flag} is {rows}; it must be a multiple of {unit} up to 256 (64 rows per consumer)"
            ));
        }
        // Gate and up share the columns of one wgmma.
        let (unit, most) = match class.b_operands() {
            2 if !self.swap_ab() => (8, 128),
            _ => (16, 256),
        };
        if cols == 0 || !cols.is_multiple_of(unit) || cols > most {
            return reject(format!(
                "{cols_flag} is {cols}; it must be a multiple of {unit} up to {most}"
            ));
        }
        let spans = SPAN / size;
        if self.tile_k == 0 || !(self.tile_k.is_multiple_of(spans) || self.tile_k == spans / 2) {
            return reject(format!(
                "--tile-k is {}; it must be {} or a multiple of {spans} (128 bytes)",
                self.tile_k,
                spans / 2
            ));
        }
        if class.layout == OperandLayout::Kn && !self.tile_n.is_multiple_of(64) {
            return reject(format!(
                "--tile-n is {}; --layout kn needs a multiple of 64 (128 bytes of a row)",
                self.tile_n
            ));
        }
        if class.layout == OperandLayout::Kn && self.tile_k > MAX_BOX_ROWS {
            return reject(format!(
                "--tile-k is {}; --layout kn allows at most {MAX_BOX_ROWS} (rows of a TMA box)",
                self.tile_k
            ));
        }
        if class.accumulation == Accumulation::Promoted && self.tile_k != 128 {
            return reject(format!(
                "--tile-k is {}; --accumulation promoted needs 128\nhelp: leave --tile-k out",
                self.tile_k
            ));
        }
        Ok(())
    }

    /// Rejects a schedule that does not serve the problem's class.
    fn check_schedule(&self, class: &Class) -> Result<(), FamilyError> {
        match self.schedule {
            Schedule::TwoConsumer { .. } if class.up.is_none() => reject(
                "schedule two-consumer needs a gated GEMM\nhelp: use the family dual-gemm, or --schedule cooperative"
                    .into(),
            ),
            Schedule::TwoConsumer { .. } if !self.tile_n.is_multiple_of(GATE_RING[0]) => {
                reject(format!(
                    "--tile-n is {}; schedule two-consumer needs a multiple of {}",
                    self.tile_n, GATE_RING[0]
                ))
            }
            Schedule::TwoConsumer { .. } | Schedule::Storer { .. }
                if !class.epilogue.reductions().is_empty() =>
            {
                reject(format!(
                    "schedule {} does not support --row-sums, --col-sums and --amax\n\
                     help: use --schedule cooperative or ping-pong",
                    self.schedule.kind().keyword()
                ))
            }
            Schedule::StreamK { .. } if class.batched => {
                reject("--stream-k does not support --batch\nhelp: leave one of them out".into())
            }
            Schedule::DoubleBuffer { .. } if class.accumulation == Accumulation::Promoted => {
                reject(
                    "--accumulation promoted does not support schedule double-buffer\n\
                     help: use --schedule cooperative"
                        .into(),
                )
            }
            Schedule::DoubleBuffer { consumers, .. }
                if !(self.tile_n / consumers).is_multiple_of(8) =>
            {
                reject(format!(
                    "--tile-n is {}; schedule double-buffer needs a multiple of {} (8 rows of B per consumer)",
                    self.tile_n,
                    8 * consumers
                ))
            }
            _ => Ok(()),
        }
    }

    /// Rejects tile shapes whose operands the CTAs of a cluster cannot share.
    fn check_cluster(&self, class: &Class) -> Result<(), FamilyError> {
        let span = SPAN / class.dtype.a_dtype().bytes() as u32;
        let shared = match self.cluster() {
            Cluster::One => return Ok(()),
            Cluster::Rows => self.tile_n,
            Cluster::Cols => self.tile_m,
        };
        if self.tile_k > span {
            return reject(format!(
                "--tile-k is {}; --cluster allows at most {span} (128 bytes)",
                self.tile_k
            ));
        }
        if !shared.is_multiple_of(16) {
            return reject(format!(
                "the shared side of the tile has {shared} rows; --cluster needs a multiple of 16"
            ));
        }
        match self.cluster() {
            Cluster::Rows if class.layout == OperandLayout::Kn => {
                reject("--cluster 2x1 does not support --layout kn\nhelp: use --cluster 1x2".into())
            }
            Cluster::Rows if class.up == Some(WeightLayout::Interleaved) => reject(
                "--cluster 2x1 does not support --weights interleaved\nhelp: use --cluster 1x2"
                    .into(),
            ),
            _ => Ok(()),
        }
    }

    /// Sets the register budget of each role; rejects a tile whose accumulators do not fit.
    fn set_register_budget(
        &mut self,
        class: &Class,
        flags: &Choice,
        target: &Target,
    ) -> Result<(), FamilyError> {
        let accumulators = self.accumulators(class);
        let threads = self.schedule.warpgroups() * 128;
        let entry = target.entry_registers(threads);
        let moves = !matches!(self.schedule, Schedule::DoubleBuffer { .. }) && threads >= 384;
        if moves {
            let copying = self.schedule.warpgroups() - self.consumers();
            // 504 or 512 in all; setmaxnreg takes multiples of 8.
            let pool = entry * self.schedule.warpgroups();
            let give = |load: u32| {
                let left = pool.saturating_sub(copying.saturating_mul(load));
                left / self.consumers() / 8 * 8
            };
            let is_storer = matches!(self.schedule, Schedule::Storer { .. });
            let load = (flags.load_registers).unwrap_or(match (self.consumers(), accumulators) {
                (3, _) => 32,
                (_, ..=192) if !is_storer => 40,
                _ => 24,
            });
            let math = flags.math_registers.unwrap_or(give(load).min(240));
            roles::check_registers(
                &[
                    RoleRegisters {
                        role: "loading",
                        warpgroups: copying,
                        registers: load,
                        option: "--load-registers",
                    },
                    RoleRegisters {
                        role: "consumer",
                        warpgroups: self.consumers(),
                        registers: math,
                        option: "--math-registers",
                    },
                ],
                target,
            )?;
            self.registers = Some(RegisterBudget { load, math });
        } else if flags.load_registers.or(flags.math_registers).is_some() {
            return reject(format!(
                "register budgets need roles and at least 3 warpgroups; this config has {} warpgroups\n\
                 help: leave --load-registers and --math-registers out",
                self.schedule.warpgroups()
            ));
        }
        // Above 384 threads ptxas allocates for the registers at entry, whatever the budget is.
        let have = match self.registers {
            Some(registers) if threads <= 384 => registers.math,
            _ => entry,
        };
        // Addresses, counters and values being stored.
        let other = 32;
        let needed = accumulators + other;
        if needed > have {
            return reject(format!(
                "tile {}x{} needs {needed} registers per consumer thread ({accumulators} accumulators + {other}), \
                 but {have} are available\nhelp: use a smaller --tile-n or more --consumers",
                self.tile_m, self.tile_n
            ));
        }
        Ok(())
    }

    /// Rejects a number of stages that the ring does not support.
    fn check_stages(&self, stages: u32) -> Result<(), FamilyError> {
        // Double buffer loads one stage ahead: more than a few stay unused.
        let most = match self.schedule {
            Schedule::DoubleBuffer { .. } => 4,
            _ => 32,
        };
        match (2..=most).contains(&stages) {
            true => Ok(()),
            false => reject(format!(
                "--stages is {stages}; schedule {} supports 2 to {most}",
                self.schedule.kind().keyword()
            )),
        }
    }

    /// Rejects a config that does not fit into shared memory.
    fn check_shared_memory(&self, target: &Target) -> Result<(), FamilyError> {
        let (needed, have) = (
            self.shared_bytes + sizes::RESERVED_BYTES,
            target.shared_bytes,
        );
        if needed <= have {
            return Ok(());
        }
        reject(format!(
            "tile {}x{}x{} with {} stages needs {needed} bytes of shared memory, but {} has {have}\n\
             help: use fewer --stages or a smaller tile",
            self.tile_m, self.tile_n, self.tile_k, self.stages, target.name
        ))
    }

    /// Returns the CTAs per SM (occupancy).
    fn ctas_per_sm(&self, class: &Class, target: &Target) -> u32 {
        if self.registers.is_some() {
            return 1;
        }
        // The driver reserves 1024 bytes per CTA.
        let bytes = self.shared_bytes + sizes::RESERVED_BYTES;
        let by_memory = (target.shared_bytes + 1024) / (bytes + 1024);
        // Without setmaxnreg a thread needs its accumulators and about 72 more registers.
        let registers = (self.accumulators(class) + 72).next_multiple_of(8);
        let by_registers = target.registers / (self.schedule.warpgroups() * 128 * registers);
        by_memory.min(by_registers).clamp(1, 4)
    }

    /// Returns the CTAs of the grid: `ctas` if it is set, else as many as run at once.
    fn grid(&self, p: &Problem, ctas: Option<u32>, target: &Target) -> Result<u32, FamilyError> {
        let [m_tiles, n_tiles] = self.tiles(p);
        let tiles = m_tiles * n_tiles * p.batches();
        if tiles > MAX_TILES {
            return reject(format!(
                "the problem has {tiles} tiles of {}x{}; a launch has at most {MAX_TILES}\n\
                 help: use a larger tile",
                self.tile_m, self.tile_n
            ));
        }
        let unit = self.cluster().size() * self.schedule.split_k();
        let slots = target.sms * self.ctas_per_sm(&p.class(), target) / unit * unit;
        let all = tiles * u64::from(self.schedule.split_k());
        let k_tiles = u64::from(p.k.div_ceil(self.tile_k).max(1));
        // The kernel's counter also reaches the k-tile after the last one.
        if self.schedule.is_stream_k() && tiles.saturating_mul(k_tiles + 1) > MAX_TILES {
            return reject(format!(
                "{tiles} tiles have {k_tiles} k-tiles each; --stream-k supports at most {MAX_TILES} in all\n\
                 help: leave --stream-k out"
            ));
        }
        match ctas {
            None if self.schedule.is_stream_k() => Ok((tiles * k_tiles).min(slots.into()) as u32),
            None => Ok(all.min(slots.into()) as u32),
            Some(n) if n == 0 || !n.is_multiple_of(unit) => reject(format!(
                "--ctas is {n}; it must be a positive multiple of {unit} (whole clusters)"
            )),
            Some(n) if self.schedule.is_stream_k() && n > slots => reject(format!(
                "--ctas is {n}; --stream-k needs all CTAs resident at once: at most {slots}"
            )),
            Some(n) => Ok(n),
        }
    }
}

fn reject<T>(text: String) -> Result<T, FamilyError> {
    Err(FamilyError::Config(text))
}
