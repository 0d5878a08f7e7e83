//! Configs that no kernel is built for, and why.

use super::config::{Choice, Config, Form, MOST_THREADS, Weights, refuse};
use super::op::RowOp;
use super::room::Room;
use warpline_family::error::FamilyError;

/// Rejects a form whose copies the rows do not allow.
pub(super) fn check_form<K: RowOp>(
    room: &Room<'_, K>,
    form: Form,
    choice: &Choice,
) -> Result<(), FamilyError> {
    let shape = &room.shape;
    if form.has_ring() && choice.vectors == Some(false) {
        return refuse(format!(
            "form {} copies rows in bulk, by 16 bytes, and not by single elements (--vectors false): choose --form direct",
            form.word()
        ));
    }
    if form.has_ring() && !room.vectors {
        return refuse(format!(
            "form {} copies rows in bulk, and rows of {} elements with strides {} and {} do not all start and end on 16 bytes: choose --form direct",
            form.word(),
            shape.cols,
            shape.x_stride,
            shape.y_stride
        ));
    }
    Ok(())
}

/// Rejects a config that its form is not built with.
pub(super) fn check<K: RowOp>(
    room: &Room<'_, K>,
    c: &Config,
    choice: &Choice,
) -> Result<(), FamilyError> {
    let Config {
        form,
        threads,
        cluster,
        block,
        ..
    } = *c;
    if cluster == 0 || cluster > 16 || u64::from(cluster) > room.units {
        return refuse(format!(
            "a row of {} units is held by a cluster of 1 to {} CTAs, not {cluster}",
            room.units,
            room.units.min(16)
        ));
    }
    if form == Form::TwoSweeps && cluster > 1 {
        return refuse(format!(
            "form two-sweeps works with single CTAs, not with clusters of {cluster}"
        ));
    }
    if !(threads.is_power_of_two() && threads < 32
        || threads.is_multiple_of(32) && (32..=MOST_THREADS).contains(&threads))
    {
        return refuse(format!(
            "a row is held by 1, 2, 4, 8, 16 threads, or by 1 to 32 whole warps, not by {threads} threads"
        ));
    }
    if threads < 32 && (cluster > 1 || form == Form::TwoSweeps) {
        return refuse(format!(
            "in a cluster, and in two sweeps, whole warps work on a row, not {threads} threads"
        ));
    }
    let most = room.most_units(c.weights);
    if c.units > most && form != Form::TwoSweeps {
        return refuse(format!(
            "{threads} threads in each of {cluster} CTAs hold {} units each of a row of {} elements: {most} at most (more --threads or --cluster, other --weights, or --form two-sweeps)",
            c.units, room.shape.cols
        ));
    }
    if c.weights == Weights::Shared && !form.has_ring() {
        return refuse(format!(
            "form {} leaves no weights in shared memory: --weights registers or global",
            form.word()
        ));
    }
    let most_block = (MOST_THREADS - form.helper_warps() * 32) / threads;
    if block == 0 || block > most_block {
        return refuse(format!(
            "a CTA works on 1 to {most_block} rows of {threads} threads at once, not on {block}"
        ));
    }
    if form == Form::TwoSweeps && block > 1 {
        return refuse(format!(
            "--block {block}: form two-sweeps works on 1 row at a time\n\
             help: use --block 1, or --form direct for several rows that threads hold"
        ));
    }
    if !c.computing().is_multiple_of(32) {
        return refuse(format!(
            "--block {block} with {threads} threads for each row are {} threads, but a CTA computes in whole warps of 32\n\
             help: use --block {} or a multiple of it",
            c.computing(),
            32 / threads
        ));
    }
    match (form, choice.stages) {
        (Form::Direct | Form::TwoSweeps, Some(s)) => refuse(format!(
            "form {} has no ring, so --stages {s} has no meaning: choose --form specialized",
            form.word()
        )),
        (Form::DoubleBuffer, Some(s)) if s != 2 => {
            refuse(format!("form double-buffer has 2 stages, not {s}"))
        }
        (_, Some(0)) => refuse("a ring has at least 1 stage, not 0".into()),
        _ => Ok(()),
    }
}
