//! The launches that solve a problem, and their arguments.

use super::config::Config;
use super::context::CODED;
use super::kernel;
use super::kernel_spec::KernelSpec;
use super::problem::Problem;
use super::scales::{THREADS, TILE, arrange};
use super::schedule::Schedule;
use super::units;
use super::widen::{NUMBERS_PER_THREAD, permute, widen};
use crate::nvfp4::{BLOCK, ScaleLayout};
use crate::weights::WeightLayout;
use half::{bf16, f16};
use warpline_family::error::FamilyError;
use warpline_family::float::FloatType;
use warpline_family::plan::{Address, Buffer, LaunchStep, Plan, TensorArg, ZEROED_BYTES};
use warpline_family::program::Program;
use warpline_ir::Target;

/// Returns the addresses of codes and scales of gate and up. In one tensor up follows the gate.
fn weights(p: &Problem) -> Result<[[Address; 2]; 2], FamilyError> {
    let named = |[codes, scales]: [&str; 2]| -> Result<[Address; 2], FamilyError> {
        Ok([p.input(codes)?, p.input(scales)?])
    };
    let gate = named(["gate", "gate_scales"])?;
    let (n, k) = (p.n as usize, p.k as usize);
    let up_offsets = [n * k / 2, p.scale_layout.bytes(n, k)];
    let up = match p.weights {
        WeightLayout::Separate => named(["up", "up_scales"])?,
        _ => [0, 1].map(|i| gate[i].buffer.at(up_offsets[i] as u64)),
    };
    Ok([gate, up])
}

/// Codes and scales of `count` rows: the inputs, or their rearranged copies in the workspace.
struct CodedRows {
    count: u32,
    inputs: [Address; 2],
    /// Workspace offsets of the rearranged codes and scales.
    workspace: [Option<u64>; 2],
}

impl CodedRows {
    /// Returns the codes and scales that the GEMM kernel loads.
    fn sources(&self) -> [Address; 2] {
        [0, 1].map(|i| match self.workspace[i] {
            Some(offset) => Buffer::Workspace.at(offset),
            None => self.inputs[i],
        })
    }
}

/// Returns the coded operands of the GEMM kernel (gate, up, and A if it loads codes of A), and the end of
/// the workspace. The widened A comes first in the workspace.
fn coded_rows(p: &Problem, c: &Config) -> Result<(Vec<CodedRows>, u64), FamilyError> {
    let mut all: Vec<_> = weights(p)?.map(|inputs| (p.n, inputs)).into();
    if c.loads_coded_a(p.a_is_coded()) {
        all.push((p.m, [p.input("a")?, p.input("a_scales")?]));
    }
    let mut end = ZEROED_BYTES;
    let mut take = |size: u64| {
        let at = end;
        end += size.next_multiple_of(256);
        at
    };
    if !matches!(c.schedule, Schedule::Warps(_)) {
        take(u64::from(p.m) * p.whole_k() * 2);
    }
    let rows = all.into_iter().map(|(count, inputs)| {
        let codes = p.moves_rows().then(|| u64::from(count) * p.row_bytes());
        let arranged = || ScaleLayout::Block.bytes(count as usize, p.k as usize) as u64;
        let scales = (p.scale_layout == ScaleLayout::Plain).then(arranged);
        CodedRows {
            count,
            inputs,
            workspace: [codes, scales].map(|size| size.map(&mut take)),
        }
    });
    let rows = rows.collect();
    Ok((rows, end))
}

/// Returns a launch with one thread per element.
fn step(kernel: Program, threads: u32) -> LaunchStep {
    LaunchStep::new(kernel, [threads.div_ceil(THREADS), 1, 1])
}

/// Returns the plan: rearrange codes and scales if needed, widen A unless the GEMM kernel decodes it,
/// then the GEMM.
pub(super) fn plan(p: &Problem, c: &Config, target: &Target) -> Result<Plan, FamilyError> {
    let mut steps = Vec::new();
    let (coded, workspace) = coded_rows(p, c)?;
    for rows in &coded {
        let [codes, scales] = rows.inputs;
        if let Some(to) = rows.workspace[0] {
            steps.push(move_rows(p, rows.count, codes, to, target)?);
        }
        if let Some(to) = rows.workspace[1] {
            steps.push(arrange_scales(p, rows.count, scales, to, target)?);
        }
    }
    // No launch of the plan writes codes and scales.
    let weights_are_pdl_safe = steps.is_empty();
    if !matches!(c.schedule, Schedule::Warps(_)) {
        steps.push(widen_a(p, target)?);
    }
    let spec = KernelSpec {
        config: Config { ctas: 0, ..*c },
        gate: p.gate,
        tensor_scales: p.tensor_scales(),
        a_is_coded: c.loads_coded_a(p.a_is_coded()),
        weights_are_pdl_safe,
        is_whole: p.is_whole(),
    };
    let key = format!("nvfp4 {:?} {spec:?}", p.float());
    let kernel = Program::cached(key, target, |target| match p.float() {
        FloatType::Bf16 => kernel::build::<bf16>(&spec, target),
        _ => kernel::build::<f16>(&spec, target),
    })?;
    let gemm = gemm_step(kernel, p, c, &coded)?;
    steps.push(match steps.is_empty() {
        true => gemm,
        false => gemm.dependent(),
    });
    Plan::new(steps, workspace)
}

/// Returns the launch that aligns rows of codes to 16 bytes.
fn move_rows(
    p: &Problem,
    rows: u32,
    codes: Address,
    to: u64,
    target: &Target,
) -> Result<LaunchStep, FamilyError> {
    let kernel = Program::cached("nvfp4 rows".into(), target, super::align_rows::align_rows)?;
    let across = (p.row_bytes() / 8) as u32;
    let step = step(kernel, rows * across)
        .scalar("words", p.k / BLOCK as u32)
        .scalar("across", across)
        .scalar("count", rows * across)
        .divisor("by_row", across)
        .pointer("from", codes)
        .pointer("to", Buffer::Workspace.at(to));
    Ok(step)
}

/// Returns the launch that converts plain scales to the block layout.
fn arrange_scales(
    p: &Problem,
    rows: u32,
    scales: Address,
    to: u64,
    target: &Target,
) -> Result<LaunchStep, FamilyError> {
    let kernel = Program::cached("nvfp4 scales".into(), target, arrange)?;
    let bytes = ScaleLayout::Block.bytes(rows as usize, p.k as usize);
    let words = (bytes / 4) as u32;
    let step = step(kernel, words)
        .scalar("rows", rows)
        .scalar("groups", p.k / BLOCK as u32)
        .scalar("words", words)
        .pointer("from", scales)
        .pointer("to", Buffer::Workspace.at(to));
    Ok(step)
}

/// Returns the launch that widens A, or permutes K of a 16-bit A.
fn widen_a(p: &Problem, target: &Target) -> Result<LaunchStep, FamilyError> {
    let across = (p.whole_k() / u64::from(NUMBERS_PER_THREAD)) as u32;
    let count = p.m * across;
    let place = |step: LaunchStep| {
        step.scalar("groups", p.k / BLOCK as u32)
            .scalar("across", across)
            .scalar("count", count)
            .divisor("by_row", across)
            .pointer("to", Buffer::Workspace.at(ZEROED_BYTES))
    };
    match p.activations {
        None => {
            let whole = p.is_whole();
            let key = format!("nvfp4 widen {:?} {whole}", p.scale_layout);
            let kernel =
                Program::cached(key, target, |target| widen(p.scale_layout, whole, target))?;
            Ok(place(step(kernel, count))
                .pointer("codes", p.input("a")?)
                .pointer("scales", p.input("a_scales")?))
        }
        Some(_) => {
            let kernel = Program::cached("nvfp4 permute".into(), target, permute)?;
            Ok(place(step(kernel, count))
                .scalar("stride", p.a_stride.unwrap_or(p.k.into()))
                .pointer("from", p.input("a")?))
        }
    }
}

/// Returns the launch of the GEMM.
fn gemm_step(
    kernel: Program,
    p: &Problem,
    c: &Config,
    coded: &[CodedRows],
) -> Result<LaunchStep, FamilyError> {
    let (m, n) = (u64::from(p.m), u64::from(p.n));
    let tensor = |at: Address, extents: &[u64], strides: &[u64]| {
        TensorArg::strided(at, extents.to_vec(), strides.to_vec())
    };
    let out_stride = p.c_stride.unwrap_or(n) * 2;
    let mut step = LaunchStep::new(kernel, [c.ctas, 1, 1])
        .scalar("groups", p.k / BLOCK as u32)
        .scalar("rounds", c.rounds(p.k))
        .tensor(
            "c",
            tensor(Buffer::Output(0).into(), &[n, m], &[out_stride]),
        );
    step = c.tile_schedule().bind_args(step, [p.m, p.n], None);
    let depth = u64::from(p.k.div_ceil(units::K_BLOCK));
    let tile = u64::from(TILE);
    for (rows, names) in coded.iter().zip(CODED) {
        let [codes, scales] = rows.sources();
        let count = u64::from(rows.count);
        let across = [u64::from(p.k / 2), count];
        let (extents, strides) = ([tile / 4, depth, count.div_ceil(128)], [tile, tile * depth]);
        step = step
            .tensor(names[0], tensor(codes, &across, &[p.row_bytes()]))
            .tensor(names[1], tensor(scales, &extents, &strides));
    }
    match c.schedule {
        Schedule::Warps(_) if p.a_is_coded() => {}
        // A unchanged, as bytes.
        Schedule::Warps(_) => {
            let stride = 2 * p.a_stride.unwrap_or(p.k.into());
            let across = [2 * u64::from(p.k), m];
            step = step.tensor("x", tensor(p.input("a")?, &across, &[stride]));
        }
        _ => {
            let whole = p.whole_k();
            let x = Buffer::Workspace.at(ZEROED_BYTES);
            step = step.tensor("x", tensor(x, &[whole, m], &[whole * 2]));
        }
    }
    for name in p.tensor_scales() {
        step = step.pointer(name, p.input(name)?);
    }
    Ok(step)
}
