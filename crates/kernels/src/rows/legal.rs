//! Rejects configs that their schedule does not support.

use super::config::{Choice, Config, MAX_THREADS, Schedule, WeightStorage, reject};
use super::op::RowOp;
use super::resources::ResourceModel;
use warpline_family::error::FamilyError;

/// Rejects a schedule with bulk copies if rows are not aligned to 16 bytes, or for `--vectors false`.
pub(super) fn check_schedule<K: RowOp>(
    model: &ResourceModel<'_, K>,
    schedule: Schedule,
    choice: &Choice,
) -> Result<(), FamilyError> {
    let shape = &model.shape;
    if schedule.has_ring() && choice.vectors == Some(false) {
        return reject(format!(
            "--schedule {} copies rows in bulk, in units of 16 bytes, so it does not support --vectors false\nhelp: use --schedule direct",
            schedule.keyword()
        ));
    }
    if schedule.has_ring() && !model.vectors {
        return reject(format!(
            "--schedule {} copies rows in bulk, but rows of {} elements with strides {} and {} do not all start and end on 16 bytes\nhelp: use --schedule direct",
            schedule.keyword(),
            shape.cols,
            shape.x_stride,
            shape.y_stride
        ));
    }
    Ok(())
}

/// Rejects a config that its schedule does not support.
pub(super) fn check<K: RowOp>(
    model: &ResourceModel<'_, K>,
    c: &Config,
    choice: &Choice,
) -> Result<(), FamilyError> {
    let Config {
        schedule,
        threads,
        cluster,
        block,
        ..
    } = *c;
    if cluster == 0 || cluster > 16 || u64::from(cluster) > model.units {
        return reject(format!(
            "--cluster is {cluster}, but a row of {} units needs 1 to {} CTAs",
            model.units,
            model.units.min(16)
        ));
    }
    if schedule == Schedule::TwoPass && cluster > 1 {
        return reject(format!(
            "--schedule two-pass does not support --cluster {cluster}\nhelp: use --cluster 1"
        ));
    }
    let max_threads = MAX_THREADS - schedule.helper_warps() * 32;
    if !(threads.is_power_of_two() && threads < 32
        || threads.is_multiple_of(32) && (32..=max_threads).contains(&threads))
    {
        return reject(format!(
            "--threads must be 1, 2, 4, 8, 16 or a multiple of 32 up to {max_threads}, not {threads} (selected: --schedule {})",
            schedule.keyword()
        ));
    }
    if threads < 32 && (cluster > 1 || schedule == Schedule::TwoPass) {
        let option = match schedule {
            Schedule::TwoPass => "--schedule two-pass".to_owned(),
            _ => format!("--cluster {cluster}"),
        };
        return reject(format!(
            "{option} needs whole warps per row, not {threads} threads\nhelp: use --threads 32 or a multiple of it"
        ));
    }
    let max_units = model.max_units(c.weights);
    if c.units > max_units && schedule != Schedule::TwoPass {
        return reject(format!(
            "a row of {} elements needs {} units per thread with --threads {threads} and --cluster {cluster}, but the limit is {max_units}\nhelp: use more --threads, a larger --cluster, other --weights, or --schedule two-pass",
            model.shape.cols, c.units
        ));
    }
    if c.weights == WeightStorage::Shared && !schedule.has_ring() {
        return reject(format!(
            "--schedule {} does not support --weights shared\nhelp: use --weights registers or --weights global",
            schedule.keyword()
        ));
    }
    let max_block = max_threads / threads;
    if block == 0 || block > max_block {
        return reject(format!(
            "--block is {block}, but a CTA works on 1 to {max_block} rows of {threads} threads"
        ));
    }
    if schedule == Schedule::TwoPass && block > 1 {
        return reject(format!(
            "--schedule two-pass works on 1 row at a time, not on --block {block}\n\
             help: use --block 1, or --schedule direct"
        ));
    }
    if !c.compute_threads().is_multiple_of(32) {
        return reject(format!(
            "--block {block} with {threads} threads per row needs {} threads, but a CTA computes in whole warps of 32\n\
             help: use --block {} or a multiple of it",
            c.compute_threads(),
            32 / threads
        ));
    }
    match (schedule, choice.stages) {
        (Schedule::Direct | Schedule::TwoPass, Some(s)) => reject(format!(
            "--stages {s} requires a schedule with a ring (selected: {})\nhelp: use --schedule specialized",
            schedule.keyword()
        )),
        (Schedule::DoubleBuffer, Some(s)) if s != 2 => {
            reject(format!("--schedule double-buffer has 2 stages, not {s}"))
        }
        (_, Some(0)) => reject("--stages is 0, but a ring needs at least 1 stage".into()),
        _ => Ok(()),
    }
}
