//! The sum of the parts: a CTA for each row of O weighs the parts of the keys by their sums.
//!
//! With `l` the logarithm of a part's sum of exponentials and `L` that of all parts, the row is
//! `Σ 2^(l − L) · part`. The order of the sum is fixed, so that every run has the same bits.

use super::bias::Values;
use super::config::Config;
use super::problem::{AddendType, ElementType, MAX_HEADS, Problem};
use super::work::MAX_SPLITS;
use super::workspace::Workspace;
use half::{bf16, f16};
use std::f32::consts::{LN_2, LOG2_E};
use warpline_family::error::FamilyError;
use warpline_family::plan::{Buffer, LaunchStep};
use warpline_family::program::Program;
use warpline_ir::builder::*;
use warpline_ir::{BuildErrors, Kernel, Target};

/// The part of a sum that is compiled in.
#[derive(Clone, Copy, Debug)]
struct SumClass {
    dtype: ElementType,
    /// Warps of a CTA. Each adds every n-th part.
    warps: u32,
    /// Columns of O, rounded up to those of a warp.
    cols: u32,
    sink: Option<AddendType>,
    lse: bool,
    packed: bool,
}

/// Columns that a warp adds at once.
const COLS: u32 = 64;
/// Parts that a warp loads before it knows their weights.
const AHEAD: u32 = 4;

/// Returns the launch that adds the parts.
pub(super) fn launch(
    p: &Problem,
    c: &Config,
    workspace: &Workspace,
    target: &Target,
) -> Result<LaunchStep, FamilyError> {
    let class = SumClass {
        dtype: p.dtype,
        warps: c.splits.next_power_of_two().min(8),
        cols: p.dim_v().next_multiple_of(COLS),
        sink: p.sink,
        lse: p.lse,
        packed: p.packed_queries,
    };
    let kernel = Program::cached(format!("attention combine {class:?}"), target, |target| {
        build(&class, target)
    })?;
    let [_, _, _, o] = p.rows();
    let rows = u32::try_from(o.rows()).ok().filter(|&rows| rows < 1 << 31);
    let Some(rows) = rows else {
        return Err(FamilyError::Config(format!(
            "--splits {} needs fewer than 2^31 rows of O, not {}",
            c.splits,
            o.rows()
        )));
    };
    let [queries, heads, _] = o.extents.map(|x| x as u32);
    let mut step = LaunchStep::new(kernel, [rows, 1, 1])
        .scalar("parts_count", c.splits)
        .scalar("rows", u64::from(rows))
        .scalar("dim_v", p.dim_v())
        .scalar("queries", queries)
        .divisor("queries_divisor", queries)
        .scalar("heads", heads)
        .divisor("heads_divisor", heads)
        .scalar("o_row", o.strides.row)
        .scalar("o_head", o.strides.head)
        .scalar("o_batch", o.strides.batch)
        .pointer("parts", workspace.parts)
        .pointer("logs", workspace.logs)
        .pointer("o", Buffer::Output(0));
    if p.sink.is_some() {
        step = step.pointer("sink", Buffer::named(&p.inputs(), "sink")?);
    }
    if p.lse {
        step = step.pointer("lse", Buffer::Output(1));
    }
    Ok(step.dependent())
}

fn build(class: &SumClass, target: &Target) -> Result<Kernel, BuildErrors> {
    Kernel::build("attention_combine", target, |k| match class.dtype {
        ElementType::F16 => declare::<f16>(k, class),
        ElementType::Bf16 => declare::<bf16>(k, class),
    })
}

/// Declares the kernel.
fn declare<T: Half>(k: Builder, class: &SumClass) {
    let count = k
        .param::<u32>("parts_count")
        .at_least(1)
        .at_most(MAX_SPLITS);
    let rows = k.param::<u64>("rows");
    let dim = k.param::<u32>("dim_v").at_least(8).at_most(class.cols);
    let queries = k.param::<u32>("queries").at_least(1);
    let queries_divisor = k.divisor("queries_divisor");
    let heads = k
        .param::<u32>("heads")
        .at_least(1)
        .at_most(MAX_HEADS as u32);
    let heads_divisor = k.divisor("heads_divisor");
    let strides = ["o_row", "o_head", "o_batch"].map(|name| k.param::<u64>(name));
    let (parts, logs) = (k.pointer::<f32>("parts"), k.pointer::<f32>("logs"));
    let o = k.pointer::<T>("o");
    let sink = class.sink.map(|ty| Values::declare(k, "sink", ty));
    let lse = class.lse.then(|| k.pointer::<f32>("lse"));
    let warps = class.warps;
    let sums = k
        .tile::<f32>("sums", warps, class.cols)
        .unswizzled()
        .declare();
    let all_warps = k.named_barrier("sums");
    k.role("all").warps(warps).body(|| {
        wait_prerequisites();
        let row = cta_id();
        let outer = queries_divisor.divide(row);
        let query = row - outer * queries;
        let batch = heads_divisor.divide(outer);
        let head = outer - batch * heads;
        let index = |part: Reg<u32>| part.cast::<u64>() * rows + row.cast::<u64>();
        // Each lane loads two columns of every 64, and with them the part's logarithm.
        let groups = class.cols / COLS;
        let col = |i: u32| lane_id() * 2 + i * COLS;
        let load = |part: Reg<u32>| {
            let part = part.min(count - 1);
            let from = parts.offset(index(part) * dim.cast::<u64>());
            let values = (0..groups).flat_map(|i| from.load_vec::<2>(col(i).min(dim - 2)));
            (logs.load(index(part)), values.collect::<Vec<_>>())
        };
        // The first parts of a warp arrive while it computes the weights.
        let ahead = (0..AHEAD).map(|i| warp_in_role() + i * warps);
        let ahead: Vec<_> = ahead.map(|part| (part, load(part))).collect();
        // Every warp computes the maximum and the sum over all parts.
        let own = || range(lane_id(), count).step_by(32u32);
        let log = |part: Reg<u32>| logs.load(index(part)) * LOG2_E;
        let max = own().fold(f32::NEG_INFINITY.reg(), |part, max| max.max(log(part)));
        let max = reduce_lanes(max, |x, y| x.max(y));
        let sink = sink.map(|sink| sink.load(head) * LOG2_E);
        let max = sink.map_or(max, |sink| max.max(sink));
        let subtrahend = select(max.eq(f32::NEG_INFINITY), 0.0f32, max);
        let sum = own().fold(0.0f32.reg(), |part, sum| sum + exp2(log(part) - subtrahend));
        let sum = reduce_lanes(sum, |x, y| x + y);
        let sum = sink.map_or(sum, |sink| sum + exp2(sink - subtrahend));
        let total = subtrahend + log2(sum);
        let add = |sums: Vec<Reg<f32>>, (log, values): (Reg<f32>, Vec<Reg<f32>>)| {
            let weight = exp2(log * LOG2_E - subtrahend);
            let pairs = values.iter().zip(&sums);
            pairs.map(|(x, sum)| x.fma(weight, *sum)).collect()
        };
        let zeros = vec![0.0f32.reg(); 2 * groups as usize];
        let row_sum = ahead.into_iter().fold(zeros, |sums, (part, loaded)| {
            let is_part = part.lt(count);
            let added: Vec<_> = add(sums.clone(), loaded);
            let pairs = added.into_iter().zip(sums);
            pairs.map(|(x, sum)| select(is_part, x, sum)).collect()
        });
        let rest = range(warp_in_role() + AHEAD * warps, count).step_by(warps);
        let row_sum = rest.fold(row_sum, |part, sums| add(sums, load(part)));
        let to = sums.whole();
        for (i, pair) in (0..).zip(row_sum.chunks(2)) {
            to.store_vec(warp_in_role(), col(i), [pair[0], pair[1]]);
        }
        all_warps.sync(role_threads());
        let [o_row, o_head, o_batch] = strides;
        let batch_start = match class.packed {
            true => 0u64.reg(),
            false => batch.cast::<u64>() * o_batch,
        };
        let to_row =
            o.offset(query.cast::<u64>() * o_row + head.cast::<u64>() * o_head + batch_start);
        // The threads of the CTA share the columns.
        let scale = select(sum.eq(0.0f32), 0.0f32, recip(sum));
        let pairs = range(thread_in_role(), dim / 2).step_by(32 * warps);
        pairs.each(|pair| {
            let mut total = [0.0f32.reg(); 2];
            for warp in 0..warps {
                let part = to.load_vec::<2>(warp, pair * 2);
                total = [0, 1].map(|j| total[j] + part[j]);
            }
            let [a, b] = total.map(|x| x * scale);
            to_row.store_as(pair * 2, [Reg::<T::Pair>::round(a, b)]);
        });
        if let Some(lse) = lse {
            elect(|| lse.store(row.cast::<u64>(), total * LN_2));
        }
    });
}

/// Reduces the values of the lanes of a warp.
fn reduce_lanes(x: Reg<f32>, f: impl Fn(Reg<f32>, Reg<f32>) -> Reg<f32>) -> Reg<f32> {
    [16u32, 8, 4, 2, 1]
        .into_iter()
        .fold(x, |x, mask| f(x, shuffle_xor(x, mask)))
}
