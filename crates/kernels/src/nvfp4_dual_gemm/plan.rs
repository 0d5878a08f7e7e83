//! The launches that solve a problem, and their arguments.

use super::config::Config;
use super::context::CODED;
use super::kernel;
use super::kernel_spec::KernelSpec;
use super::problem::Problem;
use super::scales::{THREADS, TILE_BYTES, arrange};
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

/// Returns the addresses of codes and scales of gate and up. In concatenated weights up follows the gate.
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
/// the workspace. The gated_gemm A comes first in the workspace.
fn coded_rows(p: &Problem, c: &Config) -> Result<(Vec<CodedRows>, u64), FamilyError> {
    let mut all: Vec<_> = weights(p)?.map(|inputs| (p.n, inputs)).into();
    if c.loads_coded_a(p.a_is_coded()) {
        all.push((p.m, [p.input("a")?, p.input("a_scales")?]));
    }
    let mut end = ZEROED_BYTES;
    let mut allocate = |size: u64| {
        let offset = end;
        end += size.next_multiple_of(256);
        offset
    };
    if !matches!(c.schedule, Schedule::Warps(_)) {
        allocate(u64::from(p.m) * p.padded_k() * 2);
    }
    let rows = all.into_iter().map(|(count, inputs)| {
        let codes = p
            .needs_aligned_copy()
            .then(|| u64::from(count) * p.aligned_row_bytes());
        let arranged = || ScaleLayout::Block.bytes(count as usize, p.k as usize) as u64;
        let scales = (p.scale_layout == ScaleLayout::Plain).then(arranged);
        CodedRows {
            count,
            inputs,
            workspace: [codes, scales].map(|size| size.map(&mut allocate)),
        }
    });
    let rows = rows.collect();
    Ok((rows, end))
}

/// Returns a launch with `threads` threads in one dimension.
fn elementwise_step(kernel: Program, threads: u32) -> LaunchStep {
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
            steps.push(align_rows_step(p, rows.count, codes, to, target)?);
        }
        if let Some(to) = rows.workspace[1] {
            steps.push(arrange_scales_step(p, rows.count, scales, to, target)?);
        }
    }
    // No launch of the plan writes codes or scales.
    let weights_are_pdl_safe = steps.is_empty();
    if !matches!(c.schedule, Schedule::Warps(_)) {
        steps.push(widen_a_step(p, target)?);
    }
    let spec = KernelSpec {
        config: Config { ctas: 0, ..*c },
        gate: p.gate,
        tensor_scales: p.tensor_scales(),
        a_is_coded: c.loads_coded_a(p.a_is_coded()),
        weights_are_pdl_safe,
        has_whole_blocks: p.has_whole_blocks(),
    };
    let key = format!("nvfp4 {:?} {spec:?}", p.decoded_type());
    let kernel = Program::cached(key, target, |target| match p.decoded_type() {
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
fn align_rows_step(
    p: &Problem,
    rows: u32,
    codes: Address,
    to: u64,
    target: &Target,
) -> Result<LaunchStep, FamilyError> {
    let kernel = Program::cached("nvfp4 rows".into(), target, super::align_rows::align_rows)?;
    let padded_words = (p.aligned_row_bytes() / 8) as u32;
    let step = elementwise_step(kernel, rows * padded_words)
        .scalar("words", p.k / BLOCK as u32)
        .scalar("across", padded_words)
        .scalar("count", rows * padded_words)
        .divisor("by_row", padded_words)
        .pointer("from", codes)
        .pointer("to", Buffer::Workspace.at(to));
    Ok(step)
}

/// Returns the launch that converts plain scales to the block layout.
fn arrange_scales_step(
    p: &Problem,
    rows: u32,
    scales: Address,
    to: u64,
    target: &Target,
) -> Result<LaunchStep, FamilyError> {
    let kernel = Program::cached("nvfp4 scales".into(), target, arrange)?;
    let bytes = ScaleLayout::Block.bytes(rows as usize, p.k as usize);
    let words = (bytes / 4) as u32;
    let step = elementwise_step(kernel, words)
        .scalar("rows", rows)
        .scalar("groups", p.k / BLOCK as u32)
        .scalar("words", words)
        .pointer("from", scales)
        .pointer("to", Buffer::Workspace.at(to));
    Ok(step)
}

/// Returns the launch that widens A, or permutes K of a 16-bit A.
fn widen_a_step(p: &Problem, target: &Target) -> Result<LaunchStep, FamilyError> {
    let threads_per_row = (p.padded_k() / u64::from(NUMBERS_PER_THREAD)) as u32;
    let threads = p.m * threads_per_row;
    let bind_common = |step: LaunchStep| {
        step.scalar("groups", p.k / BLOCK as u32)
            .scalar("across", threads_per_row)
            .scalar("count", threads)
            .divisor("by_row", threads_per_row)
            .pointer("to", Buffer::Workspace.at(ZEROED_BYTES))
    };
    match p.activations {
        None => {
            let whole_blocks = p.has_whole_blocks();
            let key = format!("nvfp4 widen {:?} {whole_blocks}", p.scale_layout);
            let kernel = Program::cached(key, target, |target| {
                widen(p.scale_layout, whole_blocks, target)
            })?;
            Ok(bind_common(elementwise_step(kernel, threads))
                .pointer("codes", p.input("a")?)
                .pointer("scales", p.input("a_scales")?))
        }
        Some(_) => {
            let kernel = Program::cached("nvfp4 permute".into(), target, permute)?;
            Ok(bind_common(elementwise_step(kernel, threads))
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
    let tensor = |address: Address, extents: &[u64], strides: &[u64]| {
        TensorArg::strided(address, extents.to_vec(), strides.to_vec())
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
    let k_blocks = u64::from(p.k.div_ceil(units::K_BLOCK));
    let tile_bytes = u64::from(TILE_BYTES);
    for (rows, names) in coded.iter().zip(CODED) {
        let [codes, scales] = rows.sources();
        let count = u64::from(rows.count);
        let code_extents = [u64::from(p.k / 2), count];
        let scale_extents = [tile_bytes / 4, k_blocks, count.div_ceil(128)];
        let scale_strides = [tile_bytes, tile_bytes * k_blocks];
        step = step
            .tensor(
                names[0],
                tensor(codes, &code_extents, &[p.aligned_row_bytes()]),
            )
            .tensor(names[1], tensor(scales, &scale_extents, &scale_strides));
    }
    match c.schedule {
        Schedule::Warps(_) if p.a_is_coded() => {}
        // The kernel loads the input A as bytes.
        Schedule::Warps(_) => {
            let stride = 2 * p.a_stride.unwrap_or(p.k.into());
            let extents = [2 * u64::from(p.k), m];
            step = step.tensor("x", tensor(p.input("a")?, &extents, &[stride]));
        }
        _ => {
            let padded_k = p.padded_k();
            let x = Buffer::Workspace.at(ZEROED_BYTES);
            step = step.tensor("x", tensor(x, &[padded_k, m], &[padded_k * 2]));
        }
    }
    for name in p.tensor_scales() {
        step = step.pointer(name, p.input(name)?);
    }
    Ok(step)
}
