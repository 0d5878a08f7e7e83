//! Selects the tuning parameters that the caller leaves open.

use super::config::{Choice, Config, Schedule, WeightStorage, reject};
use super::element::VECTOR_BYTES;
use super::legal;
use super::op::{MAX_RECORD_LEN, RowOp};
use super::problem::Problem;
use super::resources::ResourceModel;
use warpline_family::error::FamilyError;
use warpline_ir::Target;

/// The minimum size in bytes of a row that gets a bulk copy of its own.
const MIN_COPY_BYTES: u64 = 1024;

/// Returns the maximum size in bytes of a row without weights for schedule direct.
///
/// Above it an SM has no second CTA that computes while the first one loads, so a ring must overlap
/// the two. 4-byte elements need half the registers.
fn max_direct_bytes(size: usize) -> u64 {
    match size {
        4 => 128 * 1024,
        _ => 64 * 1024 - 1,
    }
}

/// Bytes in flight per CTA with a ring.
const BYTES_IN_FLIGHT: u32 = 96 * 1024;

/// Returns the config of a problem with the caller's choices applied.
pub(super) fn select<K: RowOp>(
    problem: &Problem<K::Options>,
    choice: &Choice,
    target: &Target,
) -> Result<Config, FamilyError> {
    let model = ResourceModel::<K>::new(problem, choice.vectors, target)?;
    if choice.vectors == Some(true) && !model.vectors {
        let shape = &model.shape;
        return reject(format!(
            "--vectors true needs rows that start and end on 16 bytes, but rows have {} elements with strides {} and {}\nhelp: use --vectors false",
            shape.cols, shape.x_stride, shape.y_stride
        ));
    }
    let schedule = match choice.schedule {
        Some(schedule) => schedule,
        None => model.schedule()?,
    };
    legal::check_schedule(&model, schedule, choice)?;
    choice.check()?;
    let mut config = model.select_layout(schedule, choice)?;
    legal::check(&model, &config, choice)?;
    if !model.fits_shared_memory(&config) {
        return reject(format!(
            "{} stages of {} rows need {} bytes of shared memory, but {} has {}",
            config.stages, config.block, config.shared_bytes, target.name, target.shared_bytes
        ));
    }
    config.ctas = match choice.ctas {
        Some(n) if n == 0 || !n.is_multiple_of(config.cluster) => {
            return reject(format!(
                "--ctas is {n}, but must be a positive multiple of the cluster size {}",
                config.cluster
            ));
        }
        Some(n) => n,
        None => model.ctas(&config),
    };
    Ok(config)
}

/// Returns the choice with the fields fixed on which the bits of a row may depend, for batch
/// invariance: the division of a row among threads. The heuristic selects it without the number of
/// rows; tuned configs depend on that number.
pub(super) fn fixed_choice<K: RowOp>(
    problem: &Problem<K::Options>,
    choice: &Choice,
    target: &Target,
) -> Result<Choice, FamilyError> {
    if choice.batch_invariant != Some(true) {
        return Ok(choice.clone());
    }
    let selected = select::<K>(problem, choice, target)?;
    Ok(Choice {
        ctas: choice.ctas,
        stages: choice.stages,
        units: choice.units,
        batch_invariant: choice.batch_invariant,
        ..Choice::from(&selected)
    })
}

/// Returns legal configs, the heuristic's selection first.
pub(super) fn candidates<K: RowOp>(problem: &Problem<K::Options>, target: &Target) -> Vec<Config> {
    let mut all: Vec<Config> = Vec::new();
    let Ok(model) = ResourceModel::<K>::new(problem, None, target) else {
        return all;
    };
    let mut add = |choice: Choice| {
        let config = select::<K>(problem, &choice, target).ok();
        all.extend(config.filter(|c| model.leaves_reserve(c) && !all.contains(c)));
    };
    add(Choice::default());
    let schedules = [
        Schedule::Specialized,
        Schedule::ThreeRoles,
        Schedule::Direct,
        Schedule::DoubleBuffer,
    ];
    for schedule in schedules {
        let Ok(default) = model.select_layout(schedule, &Choice::default()) else {
            continue;
        };
        for cluster in [default.cluster, default.cluster / 2, default.cluster * 2] {
            for threads in [default.threads, default.threads / 2, default.threads * 2] {
                for block in [None, Some(1), Some(2)] {
                    add(Choice {
                        schedule: Some(schedule),
                        cluster: Some(cluster),
                        threads: Some(threads),
                        block,
                        ..Choice::default()
                    });
                }
            }
        }
    }
    all.truncate(48);
    all
}

impl<K: RowOp> ResourceModel<'_, K> {
    /// Returns the CTAs of the grid.
    ///
    /// Persistent schedules get as many CTAs as the GPU runs at once; the work queue balances CTAs
    /// that start late. If nothing stays from row to row, each block is a CTA of its own, and the
    /// hardware scheduler balances the SMs.
    fn ctas(&self, c: &Config) -> u32 {
        let blocks = self.shape.rows.div_ceil(u64::from(c.block)).max(1);
        if !c.schedule.has_ring() && !self.keeps_weights_in_registers(c.weights) {
            let max_clusters = u64::from(u32::MAX / 2 / c.cluster);
            return blocks.min(max_clusters) as u32 * c.cluster;
        }
        let clusters = u64::from(self.target.sms * self.ctas_per_sm(c) / c.cluster).max(1);
        blocks.min(clusters) as u32 * c.cluster
    }

    /// Selects the schedule.
    ///
    /// Aligned rows of at least a minimum size go through a ring if they are long or have weights,
    /// which stay with the CTA. Other rows are direct. Rows that no cluster can hold are two-pass.
    fn schedule(&self) -> Result<Schedule, FamilyError> {
        let bytes = self.shape.row_bytes();
        let min_bytes = match self.weights {
            0 => max_direct_bytes(self.shape.dtype.dtype().bytes()) + 1,
            _ => MIN_COPY_BYTES,
        };
        let ring = (self.vectors && bytes >= min_bytes).then_some(Schedule::Specialized);
        for schedule in ring.into_iter().chain([Schedule::Direct]) {
            let config = self.select_layout(schedule, &Choice::default())?;
            if self.threads_hold_row(&config) && self.leaves_reserve(&config) {
                return Ok(schedule);
            }
        }
        Ok(Schedule::TwoPass)
    }

    /// Returns whether a sized config leaves the [reserve](record_reserve) free.
    fn leaves_reserve(&self, c: &Config) -> bool {
        c.shared_bytes.saturating_add(record_reserve::<K>(c)) <= self.target.shared_bytes
    }

    /// Returns the first legal thread layout that fits and agrees with the choice, in this order:
    ///
    /// 1. One CTA, weights in registers, the fewest threads that can hold a row.
    /// 2. The fewest CTAs that can keep the weights in shared memory, two rows at once.
    /// 3. The fewest CTAs that can hold a row.
    ///
    /// If none fits, returns the last legal one, which [`select`] checks; if none is legal, returns
    /// the first error.
    fn select_layout(&self, schedule: Schedule, choice: &Choice) -> Result<Config, FamilyError> {
        let mut last = self.config(schedule, 16, 512, WeightStorage::Global, choice);
        let (mut too_large, mut rejected) = (None, None);
        for (storage, cluster, threads) in self.layouts(schedule, choice) {
            last = self.config(schedule, cluster, threads, storage, choice);
            if !self.threads_hold_row(&last) {
                continue;
            }
            if let Err(error) = legal::check(self, &last, choice) {
                rejected = rejected.or(Some(error));
                continue;
            }
            let config = self.with_stages(last, choice)?;
            if self.leaves_reserve(&config) {
                return Ok(config);
            }
            too_large = Some(config);
        }
        match (too_large, rejected) {
            (Some(config), _) => Ok(config),
            (None, Some(error)) => Err(error),
            (None, None) => Ok(last),
        }
    }

    /// Returns the thread layouts to try: weight storage, CTAs of a cluster, threads per row.
    fn layouts(&self, schedule: Schedule, choice: &Choice) -> Vec<(WeightStorage, u32, u32)> {
        let storages = match (choice.weights, self.weights, schedule.has_ring()) {
            (Some(storage), ..) => vec![storage],
            (_, 0, _) => vec![WeightStorage::Registers],
            (_, _, false) => vec![WeightStorage::Registers, WeightStorage::Global],
            _ => vec![
                WeightStorage::Registers,
                WeightStorage::Shared,
                WeightStorage::Global,
            ],
        };
        let mut layouts = Vec::new();
        for storage in storages {
            let clusters = match (choice.cluster, schedule) {
                (Some(c), _) => vec![c],
                (_, Schedule::TwoPass) => vec![1],
                _ if self.keeps_weights_in_registers(storage) => vec![1],
                _ => vec![1, 2, 4, 8, 16],
            };
            let max_log2 = if schedule == Schedule::Direct { 10 } else { 9 };
            let threads = match (choice.threads, schedule, storage) {
                (Some(t), ..) => vec![t],
                (_, Schedule::TwoPass, _) => vec![512],
                (_, _, WeightStorage::Shared) => vec![256, 512],
                _ => (0..=max_log2).map(|i| 1 << i).collect(),
            };
            for &cluster in &clusters {
                // In a cluster, whole warps hold a row. `legal::check` rejects other numbers of the caller.
                let is_usable = |t: &&u32| cluster == 1 || **t >= 32 || choice.threads.is_some();
                layouts.extend(
                    threads
                        .iter()
                        .filter(is_usable)
                        .map(|&t| (storage, cluster, t)),
                );
            }
        }
        layouts
    }

    /// Returns the config of a thread layout, with the fewest stages and without sizes.
    fn config(
        &self,
        schedule: Schedule,
        cluster: u32,
        threads: u32,
        weights: WeightStorage,
        choice: &Choice,
    ) -> Config {
        let segment_units = self.units.div_ceil(u64::from(cluster.max(1)));
        let units = match (schedule, self.vectors) {
            (Schedule::TwoPass, true) => 4,
            (Schedule::TwoPass, false) => 8,
            _ => segment_units.div_ceil(u64::from(threads.max(1))),
        };
        Config {
            schedule,
            threads,
            units: units.min(u64::from(u32::MAX / 1024 / VECTOR_BYTES)) as u32,
            vectors: self.vectors,
            block: choice.block.unwrap_or(default_block(schedule, threads)),
            stages: if schedule.has_ring() { 2 } else { 1 },
            cluster,
            weights,
            ctas: 1,
            cta_threads: 0,
            shared_bytes: 0,
        }
    }

    /// Returns the config with its sizes and the caller's stages.
    ///
    /// If the caller leaves the stages open and the schedule has a queue, selects as many as reach the
    /// bytes in flight and fit in shared memory.
    fn with_stages(&self, c: Config, choice: &Choice) -> Result<Config, FamilyError> {
        if let Some(stages) = choice.stages {
            return self.with_sizes(Config { stages, ..c });
        }
        let slot_bytes = (c.slot_row_bytes() * c.block).max(1);
        let max_stages = match c.schedule.has_queue() {
            true => (BYTES_IN_FLIGHT / slot_bytes).clamp(2, 8),
            false => c.stages,
        };
        for stages in (c.stages + 1..=max_stages).rev() {
            let config = self.with_sizes(Config { stages, ..c })?;
            if self.leaves_reserve(&config) {
                return Ok(config);
            }
        }
        self.with_sizes(c)
    }
}

/// Returns the bytes of shared memory that a selected config leaves free: the growth of its records
/// if each had the maximum length of any op.
///
/// All row-wise ops then select the same config for a shape, and a measurement of one serves all.
fn record_reserve<K: RowOp>(c: &Config) -> u32 {
    let warps = c.warps_per_row() * c.cluster;
    let records = if warps > 1 { 2 * c.block * warps } else { 0 };
    records * MAX_RECORD_LEN.saturating_sub(K::IDENTITY.len() as u32) * 4
}

/// Returns the rows that a CTA works on at once.
///
/// Without a ring: four warps, so that a finished CTA soon makes room for the next. With a ring: at
/// most 15 warps, so that 128 registers per thread remain beside the load warp. Two rows if 8 warps
/// share one, so that one row computes while the other reduces.
fn default_block(schedule: Schedule, threads: u32) -> u32 {
    match (schedule, threads) {
        (_, 0) | (Schedule::TwoPass, _) => 1,
        (Schedule::Direct, t) => (128 / t).max(1),
        (_, 256) => 2,
        (_, t) => (480 / t).max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::super::table;
    use super::*;
    use crate::layer_norm::{self, LayerNorm};
    use crate::softmax;
    use warpline_family::family::Family as _;
    use warpline_family::field::NoFields;
    use warpline_family::float::FloatType;

    fn config(choice: Choice) -> Result<Config, String> {
        let options = layer_norm::LayerNormOptions::default();
        let problem = Problem::dense(64, 4096, FloatType::Bf16, options);
        select::<layer_norm::LayerNormOp>(&problem, &choice, &Target::SM_90A)
            .map_err(|e| e.to_string())
    }

    #[test]
    fn sizes_match_the_built_kernel() {
        let target = Target::SM_90A;
        for case in table::cases::<layer_norm::LayerNormOp>()
            .into_iter()
            .step_by(5)
        {
            let config = LayerNorm::config(&case.problem, &case.choice, &target).unwrap();
            let plan = LayerNorm::plan(&case.problem, &config, &target).unwrap();
            let kernel = &plan.steps[0].kernel;
            assert_eq!(
                (config.cta_threads, config.shared_bytes),
                (kernel.threads(), kernel.shared_bytes),
                "{config:?}"
            );
        }
    }

    #[test]
    fn choices_are_kept_or_rejected() {
        for (threads, cluster) in [(Some(16), Some(2)), (Some(256), Some(4)), (None, Some(3))] {
            let choice = Choice {
                threads,
                cluster,
                ..Choice::default()
            };
            match config(choice) {
                Ok(c) => {
                    assert!(threads.is_none_or(|t| t == c.threads), "{c:?}");
                    assert_eq!(cluster, Some(c.cluster), "{c:?}");
                }
                Err(e) => assert!(e.contains("not 16 threads"), "{e}"),
            }
        }
    }

    #[test]
    fn blocks_fill_whole_warps_and_two_pass_takes_one_row() {
        let message = |cols: u64, schedule: Schedule, threads: u32, block: u32| {
            let problem = Problem::dense(5, cols, FloatType::F32, NoFields);
            let choice = Choice {
                schedule: Some(schedule),
                threads: Some(threads),
                block: Some(block),
                ..Choice::default()
            };
            let config = select::<softmax::SoftmaxOp>(&problem, &choice, &Target::SM_90A);
            config.map_or_else(
                |e| e.to_string(),
                |c| format!("{} threads", c.compute_threads()),
            )
        };
        for schedule in [
            Schedule::Direct,
            Schedule::DoubleBuffer,
            Schedule::Specialized,
        ] {
            assert_eq!(
                message(16, schedule, 4, 4),
                "--block 4 with 4 threads per row needs 16 threads, but a CTA computes in whole warps of 32\n\
                 help: use --block 8 or a multiple of it"
            );
            assert_eq!(message(16, schedule, 4, 8), "32 threads");
        }
        let four_rows = message(20_092, Schedule::TwoPass, 128, 4);
        assert!(
            four_rows.starts_with(
                "--schedule two-pass works on 1 row at a time, not on --block 4\nhelp: "
            ),
            "{four_rows}"
        );
        assert_eq!(message(20_092, Schedule::TwoPass, 128, 1), "128 threads");
    }

    #[test]
    fn stages_beyond_shared_memory_are_rejected() {
        let stages = |stages| Choice {
            schedule: Some(Schedule::Specialized),
            stages: Some(stages),
            ..Choice::default()
        };
        let message = config(stages(1000)).unwrap_err();
        assert!(message.starts_with("1000 stages of "), "{message}");
        assert!(
            message.ends_with("bytes of shared memory, but sm_90a has 232448"),
            "{message}"
        );
        // More stages than the heuristic would select.
        let config = config(stages(12)).unwrap();
        assert_eq!(config.stages, 12);
        assert!(
            config.shared_bytes <= Target::SM_90A.shared_bytes,
            "{config:?}"
        );
    }

    #[test]
    fn out_of_range_numbers_are_rejected() {
        for n in [0, 1025, u32::MAX] {
            let schedules = [
                Schedule::Direct,
                Schedule::Specialized,
                Schedule::ThreeRoles,
            ];
            for schedule in schedules {
                let choice = || Choice {
                    schedule: Some(schedule),
                    ..Choice::default()
                };
                let all = [
                    Choice {
                        threads: Some(n),
                        ..choice()
                    },
                    Choice {
                        block: Some(n),
                        ..choice()
                    },
                    Choice {
                        stages: Some(n),
                        ..choice()
                    },
                    Choice {
                        cluster: Some(n),
                        ..choice()
                    },
                ];
                for choice in all {
                    let message = config(choice.clone()).expect_err("out of range");
                    assert!(message.contains(&n.to_string()), "{choice:?}: {message}");
                }
            }
        }
    }
}
