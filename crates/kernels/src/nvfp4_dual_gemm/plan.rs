//! The launches that solve a problem, and their arguments.

use super::config::Config;
use super::kernel;
use super::kernel_spec::{KernelSpec, Outputs};
use super::operands::{AOperand, CodedTensor, Operands};
use super::scale_boxes::ScaleBoxes;
use super::scales::{THREADS, TILE_BYTES, arrange};
use super::schedule::Schedule;
use super::units;
use super::widen::{NUMBERS_PER_THREAD, permute, widen};
use crate::nvfp4::{BLOCK, ScaleLayout};
use half::{bf16, f16};
use warpline_family::error::FamilyError;
use warpline_family::float::FloatType;
use warpline_family::plan::{Address, Buffer, LaunchStep, Plan, TensorArg, ZEROED_BYTES};
use warpline_family::program::Program;
use warpline_ir::Target;

/// Codes and scales of a tensor: the inputs, or their rearranged copies in the workspace.
struct CodedRows<'a> {
    tensor: &'a CodedTensor,
    /// Workspace offsets of the rearranged codes and scales.
    workspace: [Option<u64>; 2],
}

impl CodedRows<'_> {
    /// Returns the codes and scales that the GEMM kernel loads.
    fn sources(&self) -> [Address; 2] {
        [0, 1].map(|i| match self.workspace[i] {
            Some(offset) => Buffer::Workspace.at(offset),
            None => self.tensor.inputs[i],
        })
    }
}

/// Returns the coded operands of the GEMM kernel (the weights, and A if it loads codes of A), and the end of
/// the workspace. The widened A comes first in the workspace.
fn coded_rows<'a>(p: &'a Operands, c: &Config) -> (Vec<CodedRows<'a>>, u64) {
    let mut all: Vec<_> = p.weights.iter().collect();
    if let AOperand::Coded(a) = &p.a
        && c.loads_coded_a(true)
    {
        all.push(a);
    }
    let mut end = ZEROED_BYTES;
    let mut allocate = |size: u64| {
        let offset = end;
        end += size.next_multiple_of(256);
        offset
    };
    if p.shape.outputs.needs_widened_a(c) {
        allocate(u64::from(p.shape.m) * p.shape.padded_k() * 2);
    }
    let rows = all.into_iter().map(|tensor| {
        let rows = tensor.rows;
        let codes =
            (p.shape.needs_aligned_copy()).then(|| u64::from(rows) * p.shape.aligned_row_bytes());
        let arranged = || ScaleLayout::Block.bytes(rows as usize, p.shape.k as usize) as u64;
        let scales = p.shape.rearranges_scales(p.scale_layout).then(arranged);
        CodedRows {
            tensor,
            workspace: [codes, scales].map(|size| size.map(&mut allocate)),
        }
    });
    let rows = rows.collect();
    (rows, end)
}

/// Returns a launch with `threads` threads in one dimension.
fn elementwise_step(kernel: Program, threads: u32) -> LaunchStep {
    LaunchStep::new(kernel, [threads.div_ceil(THREADS), 1, 1])
}

/// Returns the plan: rearrange codes and scales if needed, widen A unless the GEMM kernel decodes it,
/// then the GEMM.
pub(crate) fn plan(p: &Operands, c: &Config, target: &Target) -> Result<Plan, FamilyError> {
    let mut steps = Vec::new();
    let (coded, workspace) = coded_rows(p, c);
    for rows in &coded {
        let [codes, scales] = rows.tensor.inputs;
        if let Some(to) = rows.workspace[0] {
            steps.push(align_rows_step(p, rows.tensor.rows, codes, to, target)?);
        }
        if let Some(to) = rows.workspace[1] {
            steps.push(arrange_scales_step(
                p,
                rows.tensor.rows,
                scales,
                to,
                target,
            )?);
        }
    }
    // No launch of the plan writes codes or scales.
    let weights_are_pdl_safe = steps.is_empty();
    if p.shape.outputs.needs_widened_a(c) {
        steps.push(widen_a_step(p, target)?);
    }
    let spec = KernelSpec {
        config: Config { ctas: 0, ..*c },
        outputs: p.shape.outputs,
        scale_boxes: p.shape.scale_boxes,
        tensor_scales: p.tensor_scales,
        a_is_coded: c.loads_coded_a(p.shape.a_is_coded),
        weights_are_pdl_safe,
        has_whole_blocks: p.shape.has_whole_blocks(),
    };
    let key = format!("nvfp4 {:?} {spec:?}", p.decoded_type);
    let kernel = Program::cached(key, target, |target| match p.decoded_type {
        FloatType::Bf16 => kernel::build::<bf16>(&spec, target),
        _ => kernel::build::<f16>(&spec, target),
    })?;
    let gemm = gemm_step(kernel, p, c, &coded);
    steps.push(match steps.is_empty() {
        true => gemm,
        false => gemm.dependent(),
    });
    Plan::new(steps, workspace)
}

/// Returns the launch that aligns rows of codes to 16 bytes.
fn align_rows_step(
    p: &Operands,
    rows: u32,
    codes: Address,
    to: u64,
    target: &Target,
) -> Result<LaunchStep, FamilyError> {
    let kernel = Program::cached("nvfp4 rows".into(), target, super::align_rows::align_rows)?;
    let padded_words = (p.shape.aligned_row_bytes() / 8) as u32;
    let step = elementwise_step(kernel, rows * padded_words)
        .scalar("words", p.shape.k / BLOCK as u32)
        .scalar("across", padded_words)
        .scalar("count", rows * padded_words)
        .divisor("by_row", padded_words)
        .pointer("from", codes)
        .pointer("to", Buffer::Workspace.at(to));
    Ok(step)
}

/// Returns the launch that converts plain scales to the block layout.
fn arrange_scales_step(
    p: &Operands,
    rows: u32,
    scales: Address,
    to: u64,
    target: &Target,
) -> Result<LaunchStep, FamilyError> {
    let kernel = Program::cached("nvfp4 scales".into(), target, arrange)?;
    let bytes = ScaleLayout::Block.bytes(rows as usize, p.shape.k as usize);
    let words = (bytes / 4) as u32;
    let step = elementwise_step(kernel, words)
        .scalar("rows", rows)
        .scalar("groups", p.shape.k / BLOCK as u32)
        .scalar("words", words)
        .pointer("from", scales)
        .pointer("to", Buffer::Workspace.at(to));
    Ok(step)
}

/// Returns the launch that widens A, or permutes K of a 16-bit A.
fn widen_a_step(p: &Operands, target: &Target) -> Result<LaunchStep, FamilyError> {
    let threads_per_row = (p.shape.padded_k() / u64::from(NUMBERS_PER_THREAD)) as u32;
    let threads = p.shape.m * threads_per_row;
    let bind_common = |step: LaunchStep| {
        step.scalar("groups", p.shape.k / BLOCK as u32)
            .scalar("across", threads_per_row)
            .scalar("count", threads)
            .divisor("by_row", threads_per_row)
            .pointer("to", Buffer::Workspace.at(ZEROED_BYTES))
    };
    match &p.a {
        AOperand::Coded(a) => {
            let whole_blocks = p.shape.has_whole_blocks();
            let key = format!("nvfp4 widen {:?} {whole_blocks}", p.scale_layout);
            let kernel = Program::cached(key, target, |target| {
                widen(p.scale_layout, whole_blocks, target)
            })?;
            Ok(bind_common(elementwise_step(kernel, threads))
                .pointer("codes", a.inputs[0])
                .pointer("scales", a.inputs[1]))
        }
        &AOperand::Wide { address, stride } => {
            let kernel = Program::cached("nvfp4 permute".into(), target, permute)?;
            Ok(bind_common(elementwise_step(kernel, threads))
                .scalar("stride", stride)
                .pointer("from", address))
        }
    }
}

/// Returns the launch of the GEMM.
fn gemm_step(kernel: Program, p: &Operands, c: &Config, coded: &[CodedRows<'_>]) -> LaunchStep {
    let shape = &p.shape;
    let (m, n) = (u64::from(shape.m), u64::from(shape.n));
    let tensor = |address: Address, extents: &[u64], strides: &[u64]| {
        TensorArg::strided(address, extents.to_vec(), strides.to_vec())
    };
    let mut step = LaunchStep::new(kernel, [c.ctas, 1, 1])
        .scalar("groups", shape.k / BLOCK as u32)
        .scalar("rounds", c.rounds(shape.k, shape.outputs))
        .tensor(
            "c",
            tensor(Buffer::Output(0).into(), &[n, m], &[2 * p.out_stride]),
        );
    let schedule = c.tile_schedule(shape.outputs);
    step = schedule.bind_args(step, [shape.m, shape.n], None);
    let k_blocks = u64::from(shape.k.div_ceil(units::K_BLOCK));
    let tile_bytes = u64::from(TILE_BYTES);
    for rows in coded {
        let [codes, scales] = rows.sources();
        let (count, names) = (u64::from(rows.tensor.rows), rows.tensor.names);
        let code_extents = [u64::from(shape.k / 2), count];
        let scales = match shape.scale_boxes {
            ScaleBoxes::Blocks => {
                let extents = [tile_bytes / 4, k_blocks, count.div_ceil(128)];
                tensor(scales, &extents, &[tile_bytes, tile_bytes * k_blocks])
            }
            ScaleBoxes::Rows => tensor(scales, &[k_blocks, count], &[4 * k_blocks]),
        };
        step = step
            .tensor(
                names[0],
                tensor(codes, &code_extents, &[shape.aligned_row_bytes()]),
            )
            .tensor(names[1], scales);
    }
    match (c.schedule, &p.a) {
        (Schedule::Warps(_), AOperand::Coded(_)) => {}
        // The kernel loads the input A as bytes.
        (Schedule::Warps(_), &AOperand::Wide { address, stride }) => {
            let extents = [2 * u64::from(shape.k), m];
            step = step.tensor("x", tensor(address, &extents, &[2 * stride]));
        }
        (_, &AOperand::Wide { address, stride }) if !shape.outputs.needs_widened_a(c) => {
            let extents = [u64::from(shape.k), m];
            step = step.tensor("x", tensor(address, &extents, &[2 * stride]));
        }
        _ => {
            let padded_k = shape.padded_k();
            let x = Buffer::Workspace.at(ZEROED_BYTES);
            step = step.tensor("x", tensor(x, &[padded_k, m], &[padded_k * 2]));
        }
    }
    for (&name, &address) in p.tensor_scales.iter().zip(&p.tensor_scale_addresses) {
        step = step.pointer(name, address);
    }
    if let (Outputs::Linear { bias: true }, Some(bias)) = (shape.outputs, p.bias) {
        step = step.scalar("n", shape.n).pointer("bias", bias);
    }
    step
}
