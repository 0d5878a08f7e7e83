//! Completes a config: the caller's flags, and defaults that fit the target.

use super::config::{
    Choice, Config, GATE_RING, MAX_GROUPS, MAX_PART_K_TILES, Schedule, Staging, TileAssignment,
};
use super::problem::{Accumulation, Class, MAX_TILES, Problem};
use super::sizes;
use super::tile_scheduler::Cluster;
use crate::roles::{self, RegisterBudget, RoleRegisters};
use crate::weights::WeightLayout;
use warpline_family::error::FamilyError;
use warpline_family::field::Fields as _;
use warpline_ir::Target;

/// Bytes of a tile row in one TMA box: the widest swizzle span.
const SPAN: u32 = 128;

/// Registers of a consumer thread besides its accumulators, so that none spill.
const CONSUMER_REGISTERS: u32 = 80;

/// The minimum number of registers of a thread that gathers, so that none spill.
const MIN_GATHER_REGISTERS: u32 = 88;

/// The maximum number of rows of a TMA box.
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
        let flags = choice.or(base);
        let pack = flags.pack.unwrap_or_default();
        pack.check(p)?;
        let p = &*pack.problem(p);
        let class = p.class();
        let span = SPAN / class.dtype.a_dtype().bytes() as u32;
        let tile_m = flags.tile_m.unwrap_or(128);
        // One group holds 9 to 16 tile rows, so that each column of B is read once.
        let group = match p.m.div_ceil(tile_m.max(1)) {
            9..=16 => 16,
            _ => 8,
        };
        let schedule = Schedule::read(&flags, group)?;
        // More stages help only where a producer loads ahead.
        let (max_stages, base_stages) = match schedule {
            Schedule::DoubleBuffer { .. } => (2, None),
            _ => (8, base.stages),
        };
        let mut config = Self {
            schedule,
            tile_m,
            tile_n: flags.tile_n.unwrap_or(128),
            tail_n: flags.tail_n.filter(|&n| n > 0),
            tile_k: flags.tile_k.unwrap_or(span),
            stages: choice.stages.or(base_stages).unwrap_or(0),
            cache_hints: flags.cache_hints.unwrap_or(p.streams_b()),
            registers: None,
            staging: Staging {
                width: 0,
                stages: 0,
            },
            shared_bytes: 0,
            pack,
            ctas: 0,
        };
        config.check_tile(&class)?;
        config.check_schedule(&class)?;
        config.check_cluster(&class)?;
        config.set_register_budget(&class, &flags, target)?;
        if let Some(stages) = choice.stages.or(base_stages) {
            config.check_stages(stages)?;
        }
        config = sizes::with_stages(&class, &config, max_stages, target)?;
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
        let (unit, max_cols) = match class.b_operands() {
            2 if !self.swap_ab() => (8, 128),
            _ => (16, 256),
        };
        if cols == 0 || !cols.is_multiple_of(unit) || cols > max_cols {
            return reject(format!(
                "{cols_flag} is {cols}; it must be a multiple of {unit} up to {max_cols}"
            ));
        }
        let span = SPAN / size;
        if self.tile_k == 0 || !(self.tile_k.is_multiple_of(span) || self.tile_k == span / 2) {
            return reject(format!(
                "--tile-k is {}; it must be {} or a multiple of {span} (128 bytes)",
                self.tile_k,
                span / 2
            ));
        }
        for (access, tile, flag, layout) in [
            (class.a, self.tile_m, "--tile-m", "--a-layout km"),
            (class.b, self.tile_n, "--tile-n", "--layout kn"),
        ] {
            if !access.k_major && !tile.is_multiple_of(64) {
                return reject(format!(
                    "{flag} is {tile}; {layout} needs a multiple of 64 (128 bytes of a row)"
                ));
            }
            if !access.k_major && self.tile_k > MAX_BOX_ROWS {
                return reject(format!(
                    "--tile-k is {}; {layout} allows at most {MAX_BOX_ROWS} (rows of a TMA box)",
                    self.tile_k
                ));
            }
        }
        if class.gathers() && !self.tile_k.is_multiple_of(span) {
            return reject(format!(
                "--tile-k is {}; operands that TMA cannot address need a multiple of {span} (128 bytes)",
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

    /// Rejects a schedule that does not support the problem's class.
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
            Schedule::DoubleBuffer { .. } if class.gathers() => reject(
                "schedule double-buffer needs operands that TMA can address\nhelp: use --schedule cooperative"
                    .into(),
            ),
            Schedule::TwoConsumer { .. } | Schedule::Storer { .. } if class.c_by_element => {
                reject(format!(
                    "schedule {} needs an output that TMA can address\nhelp: use --schedule cooperative",
                    self.schedule.kind().keyword()
                ))
            }
            _ if class.gathers() && matches!(self.schedule.tiles(), TileAssignment::Dynamic(_)) => {
                reject(
                    "--raster dynamic needs operands that TMA can address\nhelp: use another --raster"
                        .into(),
                )
            }
            Schedule::SplitK { .. }
                if self.schedule.exchanges_in_memory() && !class.epilogue.reductions().is_empty() =>
            {
                reject(
                    "--exchange memory does not support --row-sums, --col-sums and --amax\n\
                     help: use --exchange cluster"
                        .into(),
                )
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
        let (flag, shared) = match self.cluster() {
            Cluster::One => return Ok(()),
            Cluster::Rows => ("--tile-n", self.tile_n),
            Cluster::Cols => ("--tile-m", self.tile_m),
        };
        if self.tile_k > span {
            return reject(format!(
                "--tile-k is {}; --cluster allows at most {span} (128 bytes)",
                self.tile_k
            ));
        }
        if !shared.is_multiple_of(16) {
            return reject(format!(
                "{flag} is {shared}; --cluster needs a multiple of 16 (each CTA loads half of the shared operand)"
            ));
        }
        if class.gathers() {
            return reject(
                "--cluster needs operands that TMA can address\nhelp: leave --cluster out".into(),
            );
        }
        match self.cluster() {
            Cluster::Rows if !class.b.k_major => {
                reject("--cluster 2x1 does not support --layout kn\nhelp: use --cluster 1x2".into())
            }
            Cluster::Cols if !class.a.k_major => reject(
                "--cluster 1x2 does not support --a-layout km\nhelp: use --cluster 2x1".into(),
            ),
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
        let has_budgets = !matches!(self.schedule, Schedule::DoubleBuffer { .. }) && threads >= 384;
        if has_budgets {
            let copy_warpgroups = self.schedule.warpgroups() - self.consumers();
            // The pool is 504 or 512; `setmaxnreg` takes multiples of 8.
            let pool = entry * self.schedule.warpgroups();
            let math_budget = |load: u32| {
                let remaining = pool.saturating_sub(copy_warpgroups.saturating_mul(load));
                remaining / self.consumers() / 8 * 8
            };
            let is_storer = matches!(self.schedule, Schedule::Storer { .. });
            // The loads of a gather are in flight in registers: it gets those that consumers do not need.
            let gather_budget = || {
                let math = (accumulators + CONSUMER_REGISTERS).next_multiple_of(8);
                let remaining = pool.saturating_sub(self.consumers() * math) / copy_warpgroups;
                (remaining / 8 * 8).clamp(MIN_GATHER_REGISTERS, entry)
            };
            let load = (flags.load_registers).unwrap_or(match (self.consumers(), accumulators) {
                _ if class.gathers() => gather_budget(),
                (3, _) => 32,
                (_, ..=192) if !is_storer => 40,
                _ => 24,
            });
            let math = flags.math_registers.unwrap_or(math_budget(load).min(240));
            roles::check_registers(
                &[
                    RoleRegisters {
                        role: "loading",
                        warpgroups: copy_warpgroups,
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
        // Above 384 threads ptxas allocates no more than the registers at entry, whatever the budget.
        let available = match self.registers {
            Some(registers) if threads <= 384 => registers.math,
            _ => entry,
        };
        // For addresses, counters and values on their way to the store.
        let other_registers = 32;
        let needed = accumulators + other_registers;
        if needed > available {
            return reject(format!(
                "tile {}x{} needs {needed} registers per consumer thread ({accumulators} accumulators + {other_registers}), \
                 but {available} are available\nhelp: use a smaller --tile-n or more --consumers",
                self.tile_m, self.tile_n
            ));
        }
        Ok(())
    }

    /// Rejects a number of stages that the ring does not support.
    fn check_stages(&self, stages: u32) -> Result<(), FamilyError> {
        // Double buffer loads one stage ahead, so further stages stay unused.
        let max_stages = match self.schedule {
            Schedule::DoubleBuffer { .. } => 4,
            _ => 32,
        };
        match (2..=max_stages).contains(&stages) {
            true => Ok(()),
            false => reject(format!(
                "--stages is {stages}; schedule {} supports 2 to {max_stages}",
                self.schedule.kind().keyword()
            )),
        }
    }

    /// Rejects a config that does not fit into shared memory.
    fn check_shared_memory(&self, target: &Target) -> Result<(), FamilyError> {
        let (needed, available) = (
            self.shared_bytes + sizes::RESERVED_BYTES,
            target.shared_bytes,
        );
        if needed <= available {
            return Ok(());
        }
        reject(format!(
            "tile {}x{}x{} with {} stages needs {needed} bytes of shared memory, but {} has {available}\n\
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

    /// Returns the CTAs of the grid: `ctas` if it is set, else as many as are resident at once.
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
        let cluster_ctas = self.schedule.cluster_ctas();
        let resident = clustered_sms(target, cluster_ctas) * self.ctas_per_sm(&p.class(), target);
        let resident = resident / cluster_ctas * cluster_ctas;
        let useful = tiles * u64::from(self.schedule.split_k());
        let k_tiles = u64::from(p.k.div_ceil(self.tile_k).max(1));
        // The kernel's counter also reaches the k-tile after the last one.
        if self.schedule.is_stream_k() && tiles.saturating_mul(k_tiles + 1) > MAX_TILES {
            return reject(format!(
                "{tiles} tiles have {k_tiles} k-tiles each; --stream-k supports at most {MAX_TILES} in all\n\
                 help: leave --stream-k out"
            ));
        }
        match ctas {
            _ if self.schedule.exchanges_in_memory()
                && (useful > resident.min(MAX_GROUPS).into()
                    || k_tiles / u64::from(self.schedule.split_k()) > MAX_PART_K_TILES.into()
                    || ctas.is_some_and(|n| u64::from(n) != useful)) =>
            {
                reject(format!(
                    "{tiles} tiles with --split-k {} take {useful} CTAs; --exchange memory needs exactly these, all resident at once: at most {resident}\n\
                     help: use a smaller --split-k, a larger tile, or --exchange cluster",
                    self.schedule.split_k()
                ))
            }
            None if self.schedule.is_stream_k() => {
                Ok((tiles * k_tiles).min(resident.into()) as u32)
            }
            None => Ok(useful.min(resident.into()) as u32),
            Some(n) if n == 0 || !n.is_multiple_of(cluster_ctas) => reject(format!(
                "--ctas is {n}; it must be a positive multiple of {cluster_ctas} (whole clusters)"
            )),
            Some(n) if self.schedule.is_stream_k() && n > resident => reject(format!(
                "--ctas is {n}; --stream-k needs all CTAs resident at once: at most {resident}"
            )),
            Some(n) => Ok(n),
        }
    }
}

/// Returns the SMs that run clusters at the same time. The SMs of a cluster are in one GPC. The H200
/// has GPCs of 14 to 18 SMs, so that clusters of 4 leave 12 of 132 SMs idle, and those of 8 leave 20.
fn clustered_sms(target: &Target, cluster_ctas: u32) -> u32 {
    match cluster_ctas {
        0..=2 => target.sms,
        3..=4 => target.sms * 10 / 11,
        _ => target.sms * 28 / 33,
    }
}

fn reject<T>(text: String) -> Result<T, FamilyError> {
    Err(FamilyError::Config(text))
}
