//! Selects how rows are dealt to threads where the caller leaves it open.

use super::cell::VECTOR;
use super::config::{Choice, Config, Form, Weights, refuse};
use super::legal;
use super::op::{MOST_NUMBERS, RowOp};
use super::problem::Problem;
use super::room::Room;
use warpline_family::error::FamilyError;
use warpline_ir::Target;

/// Rows shorter than this, in bytes, are not worth a copy of their own.
const LEAST_COPY: u64 = 1024;

/// The most bytes of a row without weights that is direct: above, an SM has
/// no second CTA that computes while the first one loads, so that a ring must
/// do it. 4-byte elements need half the registers.
fn most_direct(size: usize) -> u64 {
    match size {
        4 => 128 * 1024,
        _ => 64 * 1024 - 1,
    }
}

/// Bytes in flight for each CTA of a ring.
const IN_FLIGHT: u32 = 96 * 1024;

/// Returns the config of a problem, with the caller's choices in it.
pub(super) fn select<K: RowOp>(
    problem: &Problem<K::Options>,
    choice: &Choice,
    target: &Target,
) -> Result<Config, FamilyError> {
    let room = Room::<K>::new(problem, choice.vectors, target)?;
    if choice.vectors == Some(true) && !room.vectors {
        let shape = &room.shape;
        return refuse(format!(
            "rows of {} elements with strides {} and {} do not all start and end on 16 bytes: --vectors false",
            shape.cols, shape.x_stride, shape.y_stride
        ));
    }
    let form = match choice.form {
        Some(form) => form,
        None => room.form()?,
    };
    legal::check_form(&room, form, choice)?;
    choice.check()?;
    let mut config = room.deal(form, choice)?;
    legal::check(&room, &config, choice)?;
    if !room.fits(&config) {
        return refuse(format!(
            "{} stages of {} rows need {} bytes of shared memory; {} has {}",
            config.stages, config.block, config.shared_bytes, target.name, target.shared_bytes
        ));
    }
    config.ctas = match choice.ctas {
        Some(n) if n == 0 || !n.is_multiple_of(config.cluster) => {
            return refuse(format!(
                "a grid is whole clusters of {} CTAs, at least one, not {n} CTAs",
                config.cluster
            ));
        }
        Some(n) => n,
        None => room.ctas(&config),
    };
    Ok(config)
}

/// Returns legal configs, best guess first.
pub(super) fn candidates<K: RowOp>(problem: &Problem<K::Options>, target: &Target) -> Vec<Config> {
    let mut all: Vec<Config> = Vec::new();
    let Ok(room) = Room::<K>::new(problem, None, target) else {
        return all;
    };
    let mut add = |choice: Choice| {
        let config = select::<K>(problem, &choice, target).ok();
        all.extend(config.filter(|c| room.has_room(c) && !all.contains(c)));
    };
    add(Choice::default());
    let forms = [
        Form::Specialized,
        Form::ThreeRoles,
        Form::Direct,
        Form::DoubleBuffer,
    ];
    for form in forms {
        let Ok(usual) = room.deal(form, &Choice::default()) else {
            continue;
        };
        for cluster in [usual.cluster, usual.cluster / 2, usual.cluster * 2] {
            for threads in [usual.threads, usual.threads / 2, usual.threads * 2] {
                for block in [None, Some(1), Some(2)] {
                    add(Choice {
                        form: Some(form),
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

impl<K: RowOp> Room<'_, K> {
    /// Persistent forms get as many CTAs as a device runs at once; the queue
    /// makes it harmless if some of them start late. Where nothing stays
    /// from row to row, each block is a CTA of its own: the hardware deals
    /// them out in order, and evens out the SMs.
    fn ctas(&self, c: &Config) -> u32 {
        let blocks = self.shape.rows.div_ceil(u64::from(c.block)).max(1);
        if !c.form.has_ring() && !self.keeps_weights(c.weights) {
            let most = u64::from(u32::MAX / 2 / c.cluster);
            return blocks.min(most) as u32 * c.cluster;
        }
        let clusters = u64::from(self.target.sms * self.ctas_per_sm(c) / c.cluster).max(1);
        blocks.min(clusters) as u32 * c.cluster
    }

    /// Rows that start and end on 16 bytes and are worth a copy go through a
    /// ring, if they have weights, which stay with the CTA, or are long. All
    /// others are direct. Rows that no cluster holds are read twice.
    fn form(&self) -> Result<Form, FamilyError> {
        let bytes = self.shape.row_bytes();
        let least = match self.weights {
            0 => most_direct(self.shape.dtype.dtype().bytes()) + 1,
            _ => LEAST_COPY,
        };
        let ring = (self.vectors && bytes >= least).then_some(Form::Specialized);
        for form in ring.into_iter().chain([Form::Direct]) {
            let deal = self.deal(form, &Choice::default())?;
            if self.holds(&deal) && self.has_room(&deal) {
                return Ok(form);
            }
        }
        Ok(Form::TwoSweeps)
    }

    /// Does a sized config leave the [reserve](record_reserve) free?
    fn has_room(&self, c: &Config) -> bool {
        c.shared_bytes.saturating_add(record_reserve::<K>(c)) <= self.target.shared_bytes
    }

    /// Returns the first legal deal that has room, of those that agree with the choice:
    ///
    /// 1. One CTA, weights in registers, as few threads as hold a row.
    /// 2. As few CTAs as have room for the weights in shared memory, two rows at once.
    /// 3. As few CTAs as hold a row.
    ///
    /// If none has room, the last legal one, which [`select`] checks; if none is legal, the error
    /// is that of the first.
    fn deal(&self, form: Form, choice: &Choice) -> Result<Config, FamilyError> {
        let mut last = self.config(form, 16, 512, Weights::Global, choice);
        let (mut too_large, mut rejected) = (None, None);
        for (place, cluster, threads) in self.deals(form, choice) {
            last = self.config(form, cluster, threads, place, choice);
            if !self.holds(&last) {
                continue;
            }
            if let Err(why) = legal::check(self, &last, choice) {
                rejected = rejected.or(Some(why));
                continue;
            }
            let deal = self.with_stages(last, choice)?;
            if self.has_room(&deal) {
                return Ok(deal);
            }
            too_large = Some(deal);
        }
        match (too_large, rejected) {
            (Some(deal), _) => Ok(deal),
            (None, Some(why)) => Err(why),
            (None, None) => Ok(last),
        }
    }

    /// Lists the deals to try: where weights stay, CTAs of a cluster, threads of a row.
    fn deals(&self, form: Form, choice: &Choice) -> Vec<(Weights, u32, u32)> {
        let places = match (choice.weights, self.weights, form.has_ring()) {
            (Some(place), ..) => vec![place],
            (_, 0, _) => vec![Weights::Registers],
            (_, _, false) => vec![Weights::Registers, Weights::Global],
            _ => vec![Weights::Registers, Weights::Shared, Weights::Global],
        };
        let mut deals = Vec::new();
        for place in places {
            let clusters = match (choice.cluster, form) {
                (Some(c), _) => vec![c],
                (_, Form::TwoSweeps) => vec![1],
                _ if self.keeps_weights(place) => vec![1],
                _ => vec![1, 2, 4, 8, 16],
            };
            let most = if form == Form::Direct { 10 } else { 9 };
            let threads = match (choice.threads, form, place) {
                (Some(t), ..) => vec![t],
                (_, Form::TwoSweeps, _) => vec![512],
                (_, _, Weights::Shared) => vec![256, 512],
                _ => (0..=most).map(|i| 1 << i).collect(),
            };
            for &cluster in &clusters {
                // In a cluster whole warps hold a row; a number of the caller is checked later.
                let usable = |t: &&u32| cluster == 1 || **t >= 32 || choice.threads.is_some();
                deals.extend(threads.iter().filter(usable).map(|&t| (place, cluster, t)));
            }
        }
        deals
    }

    /// Returns a deal with the fewest stages of its form, before its sizes are known.
    fn config(
        &self,
        form: Form,
        cluster: u32,
        threads: u32,
        weights: Weights,
        choice: &Choice,
    ) -> Config {
        let part = self.units.div_ceil(u64::from(cluster.max(1)));
        let units = match (form, self.vectors) {
            (Form::TwoSweeps, true) => 4,
            (Form::TwoSweeps, false) => 8,
            _ => part.div_ceil(u64::from(threads.max(1))),
        };
        Config {
            form,
            threads,
            units: units.min(u64::from(u32::MAX / 1024 / VECTOR)) as u32,
            vectors: self.vectors,
            block: choice.block.unwrap_or(usual_block(form, threads)),
            stages: if form.has_ring() { 2 } else { 1 },
            cluster,
            weights,
            ctas: 1,
            cta_threads: 0,
            shared_bytes: 0,
        }
    }

    /// Sizes a deal with the caller's stages. If they are open and the form has a queue, it gets
    /// as many stages as bytes should be in flight and as shared memory has room for.
    fn with_stages(&self, c: Config, choice: &Choice) -> Result<Config, FamilyError> {
        if let Some(stages) = choice.stages {
            return self.sized(Config { stages, ..c });
        }
        let slot = (c.slot_row() * c.block).max(1);
        let most = match c.form.has_queue() {
            true => (IN_FLIGHT / slot).clamp(2, 8),
            false => c.stages,
        };
        for stages in (c.stages + 1..=most).rev() {
            let config = self.sized(Config { stages, ..c })?;
            if self.has_room(&config) {
                return Ok(config);
            }
        }
        self.sized(c)
    }
}

/// Bytes of shared memory that a selected deal leaves free: as many as its records would grow by
/// if each had the most numbers of any op. All ops over rows so select the same deal for a shape,
/// and a deal that was measured for one of them serves all.
fn record_reserve<K: RowOp>(c: &Config) -> u32 {
    let warps = c.warps_of_row() * c.cluster;
    let records = if warps > 1 { 2 * c.block * warps } else { 0 };
    records * MOST_NUMBERS.saturating_sub(K::NOTHING.len() as u32) * 4
}

/// Rows that a CTA works on at once.
///
/// Without a ring, four warps, so that a finished CTA makes room soon. With
/// one, 15 warps at most, which with the loader leave every thread 128
/// registers; two rows where 8 warps share one, so that one computes while
/// the other's records meet.
fn usual_block(form: Form, threads: u32) -> u32 {
    match (form, threads) {
        (_, 0) | (Form::TwoSweeps, _) => 1,
        (Form::Direct, t) => (128 / t).max(1),
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
    use warpline_family::float::Float;

    fn config(choice: Choice) -> Result<Config, String> {
        let options = layer_norm::Options::default();
        let problem = Problem::dense(64, 4096, Float::Bf16, options);
        select::<layer_norm::Op>(&problem, &choice, &Target::SM_90A).map_err(|e| e.to_string())
    }

    #[test]
    fn sizes_are_those_of_the_kernel() {
        let target = Target::SM_90A;
        for case in table::cases::<layer_norm::Op>().into_iter().step_by(5) {
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
    fn what_the_caller_says_is_taken_or_refused() {
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
    fn rows_at_once_fill_whole_warps_and_sweeps_take_one() {
        let told = |cols: u64, form: Form, threads: u32, block: u32| {
            let problem = Problem::dense(5, cols, Float::F32, NoFields);
            let choice = Choice {
                form: Some(form),
                threads: Some(threads),
                block: Some(block),
                ..Choice::default()
            };
            let config = select::<softmax::Op>(&problem, &choice, &Target::SM_90A);
            config.map_or_else(|e| e.to_string(), |c| format!("{} threads", c.computing()))
        };
        for form in [Form::Direct, Form::DoubleBuffer, Form::Specialized] {
            assert_eq!(
                told(16, form, 4, 4),
                "--block 4 with 4 threads for each row are 16 threads, but a CTA computes in whole warps of 32\n\
                 help: use --block 8 or a multiple of it"
            );
            assert_eq!(told(16, form, 4, 8), "32 threads");
        }
        let four = told(20_092, Form::TwoSweeps, 128, 4);
        assert!(
            four.starts_with("--block 4: form two-sweeps works on 1 row at a time\nhelp: "),
            "{four}"
        );
        assert_eq!(told(20_092, Form::TwoSweeps, 128, 1), "128 threads");
    }

    #[test]
    fn stages_that_shared_memory_has_no_room_for_are_named() {
        let stages = |stages| Choice {
            form: Some(Form::Specialized),
            stages: Some(stages),
            ..Choice::default()
        };
        let told = config(stages(1000)).unwrap_err();
        assert!(told.starts_with("1000 stages of "), "{told}");
        assert!(
            told.ends_with("bytes of shared memory; sm_90a has 232448"),
            "{told}"
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
    fn absurd_numbers_are_refused_by_a_sentence() {
        for n in [0, 1025, u32::MAX] {
            let forms = [Form::Direct, Form::Specialized, Form::ThreeRoles];
            for form in forms {
                let choice = || Choice {
                    form: Some(form),
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
                    let told = config(choice.clone()).expect_err("absurd");
                    assert!(told.contains(&n.to_string()), "{choice:?}: {told}");
                }
            }
        }
    }
}
