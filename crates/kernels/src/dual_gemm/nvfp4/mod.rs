//! `C = gate(A · B₁ᵀ) ∘ (A · B₂ᵀ)` where the weights are NVFP4, and A is as
//! well, or f16 or bf16.
//!
//! Hopper multiplies no numbers of 4 bits, but every product of a code and a
//! scale is exact in 16. One line brings codes; its consumers decode weights
//! into the operand of the tensor cores that is in registers, so that memory
//! and shared memory carry 4 bits of each. A step before makes 16 bits of A,
//! which is small, with K in the order that suits the weights; where A is very
//! small, the line decodes it too.
//!
//! | where | what |
//! |---|---|
//! | `call` | the op: from a call to a problem |
//! | `decode` | codes and scales to numbers, in registers |
//! | `widen` | the steps that make of A what the line takes |
//! | `rows` | the step that moves rows of codes to where boxes of them can be copied |
//! | `scales` | where scales lie, and the step that rearranges plain ones |
//! | `line` | the line: its parameters, rings and roles |
//! | `bring` | the role that brings codes and scales of the weights, and A |
//! | `multiply` | the roles that decode weights and multiply |
//! | `dequantise` | the form with dequantisers and a second ring, to compare |
//! | `warps` | the form for few tokens: warps that decode and multiply, each for itself |
//! | `end` | what becomes of the sums |
//! | `config` | tiles, whether they fit, and how long they may take |
//! | `reference` | float64 |

mod bring;
mod call;
mod config;
mod decode;
mod dequantise;
mod end;
mod line;
mod multiply;
mod reference;
mod rows;
mod scales;
mod warps;
mod widen;

pub(super) use call::op;
pub(super) use config::{baseline, candidates, config, estimate, fit};
pub(super) use reference::{inputs, reference};

use super::problem::Problem;
use crate::gemm;
use crate::gemm::{Config, Factor, Form};
use crate::nvfp4::{BLOCK, ScaleLayout};
use crate::weights::Weights;
use half::{bf16, f16};
use line::Course;
use warpline_family::error::FamilyError;
use warpline_family::family::Cost;
use warpline_family::float::Float;
use warpline_family::plan::{Address, Buffer, Plan, Step, TensorArg, ZEROED};
use warpline_family::program::Program;
use warpline_family::tensor::TensorSpec;
use warpline_ir::{DType, Target};

/// The type of numbers that tensor cores see, and of C.
fn float(p: &Problem) -> Float {
    p.activations.unwrap_or(Float::F16)
}

/// The product that tensor cores see.
pub(super) fn widened(p: &Problem) -> gemm::Problem {
    p.product_of(match float(p) {
        Float::Bf16 => Factor::Bf16,
        _ => Factor::F16,
    })
}

/// K in whole stages.
fn whole_k(p: &Problem) -> u64 {
    u64::from(p.k.next_multiple_of(line::BLOCK))
}

/// Refuses what the line does not serve.
pub(super) fn check(p: &Problem) -> Result<(), FamilyError> {
    let refuse = |text: String| Err(FamilyError::Problem(text));
    if p.k == 0 || !(p.k as usize).is_multiple_of(BLOCK) {
        return refuse(format!(
            "nvfp4 has a scale for every {BLOCK} elements of K, so K is a positive multiple of {BLOCK}, not {}",
            p.k
        ));
    }
    if p.activations == Some(Float::F32) {
        return refuse("beside weights of nvfp4 A is nvfp4, f16 or bf16, not f32".into());
    }
    if let Some(out) = p.out.filter(|&out| out != float(p)) {
        return refuse(format!(
            "what comes out is {} here, as A is{}, not {}",
            float(p).dtype(),
            if p.activations.is_none() {
                " decoded to"
            } else {
                ""
            },
            out.dtype()
        ));
    }
    if p.weights == Weights::Interleaved {
        return refuse(
            "weights of nvfp4 are two tensors or one concatenated (--weights apart, concatenated), not interleaved".into(),
        );
    }
    let in_blocks = p.scale_layout == ScaleLayout::Block && p.weights == Weights::Concatenated;
    if in_blocks && !p.n.is_multiple_of(128) {
        return refuse(format!(
            "scales of both weights in blocks of 128 rows lie apart where N is a multiple of 128, not {}",
            p.n
        ));
    }
    let coded = p.a_stride.filter(|_| p.activations.is_none());
    if coded.or(p.weight_stride).or(p.up_stride).is_some() {
        return refuse(
            "rows of codes lie without gaps: no --a-stride, --weight-stride, --up-stride".into(),
        );
    }
    if let Some(stride) = p.a_stride.filter(|stride| !stride.is_multiple_of(8)) {
        return refuse(format!(
            "rows of A start on 16 bytes, so --a-stride is a multiple of 8, not {stride}"
        ));
    }
    // A thread for every 32 numbers of A.
    if u64::from(p.m) * whole_k(p) >= u64::from(widen::EACH) << 31 {
        return refuse(format!(
            "A beside weights of nvfp4 has less than 2^36 elements, not {} x {}",
            p.m, p.k
        ));
    }
    widened(p).check()?;
    // A thread for every 8 bytes of rows that are moved, and for every 4 scales that are.
    let moved = moves_rows(p).then(|| u64::from(p.n) * (row_bytes(p) / 8));
    let arranged = || ScaleLayout::Block.bytes(p.n as usize, p.k as usize) as u64 / 4;
    let arranged = (p.scale_layout == ScaleLayout::Plain).then(arranged);
    let most = u64::from(scales::MOST_THREADS);
    if moved.max(arranged).is_some_and(|threads| threads > most) {
        return refuse(format!(
            "weights of nvfp4 whose rows or scales are rearranged have less than 2^35 elements each, not {} x {}",
            p.n, p.k
        ));
    }
    Ok(())
}

/// What goes in, in the order of a plan's inputs: codes, scales, and numbers
/// that multiply a whole tensor.
pub(super) fn specs(p: &Problem) -> Vec<TensorSpec> {
    let (m, n, k) = (p.m as usize, p.n as usize, p.k as usize);
    let codes = |name, rows| TensorSpec {
        name,
        dtype: DType::U8,
        shape: vec![rows, k / 2],
    };
    let scales = |name, rows| TensorSpec {
        name,
        dtype: DType::E4m3,
        shape: match p.scale_layout {
            ScaleLayout::Plain => vec![rows, k / BLOCK],
            ScaleLayout::Block => vec![rows.div_ceil(128), k.div_ceil(64), scales::TILE as usize],
        },
    };
    let number = |name| TensorSpec {
        name,
        dtype: DType::F32,
        shape: vec![1],
    };
    let a = match p.activations {
        None => codes("a", m),
        Some(float) => TensorSpec {
            name: "a",
            dtype: float.dtype(),
            shape: vec![m, p.a_stride.map_or(k, |stride| stride as usize)],
        },
    };
    let mut all = vec![a];
    match p.weights {
        Weights::Apart => all.extend([
            codes("gate", n),
            scales("gate_scales", n),
            codes("up", n),
            scales("up_scales", n),
        ]),
        _ => all.extend([codes("gate", 2 * n), scales("gate_scales", 2 * n)]),
    }
    let coded = p.activations.is_none();
    all.extend(coded.then(|| scales("a_scales", m)));
    if p.scales {
        all.extend(coded.then(|| number("scale_a")));
        all.extend(["scale_gate", "scale_up"].map(number));
    }
    all
}

/// An input of that name.
fn input(p: &Problem, name: &str) -> Result<Address, FamilyError> {
    Ok(Buffer::named(&specs(p), name)?.into())
}

/// The codes of the gate and of the other weight, and their scales: behind the
/// gate's where they are one tensor.
fn weights(p: &Problem) -> Result<[[Address; 2]; 2], FamilyError> {
    let both = |[codes, scales]: [&str; 2]| -> Result<[Address; 2], FamilyError> {
        Ok([input(p, codes)?, input(p, scales)?])
    };
    let gate = both(["gate", "gate_scales"])?;
    let (n, k) = (p.n as usize, p.k as usize);
    let behind = [n * k / 2, p.scale_layout.bytes(n, k)];
    let up = match p.weights {
        Weights::Apart => both(["up", "up_scales"])?,
        _ => [0, 1].map(|i| gate[i].buffer.at(behind[i] as u64)),
    };
    Ok([gate, up])
}

/// What it costs at least.
pub(super) fn cost(p: &Problem) -> Cost {
    let bytes: usize = specs(p).iter().map(TensorSpec::bytes).sum();
    let [m, n, k] = [p.m, p.n, p.k].map(f64::from);
    Cost {
        flops: 4.0 * m * n * k,
        bytes: bytes as f64 + 2.0 * m * n,
    }
}

/// All that is compiled in.
pub(super) fn class(p: &Problem) -> serde_json::Value {
    serde_json::json!({
        "dtype": p.dtype,
        "activations": p.activations,
        "gate": p.gate,
        "scale_layout": p.scale_layout,
        "scales": p.scales,
        "whole": u64::from(p.k) == whole_k(p),
        "moves_rows": moves_rows(p),
    })
}

/// A small problem of the same class.
pub(super) fn reduced(p: &Problem) -> Option<Problem> {
    let small = Problem {
        m: p.m.min(200),
        n: p.n.min(264),
        // As much behind a block of scales.
        k: p.k.min(576 + p.k % line::BLOCK),
        ..p.clone()
    };
    (small != *p).then_some(small)
}

/// Codes and scales of so many rows as the line takes them: what was given, or
/// what a step before leaves in the workspace.
struct Rows {
    count: u32,
    given: [Address; 2],
    /// Where codes are moved to, and scales.
    moved: [Option<u64>; 2],
}

impl Rows {
    /// Codes and scales, as the line takes them.
    fn sources(&self) -> [Address; 2] {
        [0, 1].map(|i| match self.moved[i] {
            Some(offset) => Buffer::Workspace.at(offset),
            None => self.given[i],
        })
    }
}

/// What the line is given in codes: the gate, the other weight, and A where it
/// takes it so; and where the workspace ends, in which A in 16 bits comes first.
fn coded_rows(p: &Problem, c: &Config) -> Result<(Vec<Rows>, u64), FamilyError> {
    let mut all: Vec<_> = weights(p)?.map(|given| (p.n, given)).into();
    if takes_codes(p, c) {
        all.push((p.m, [input(p, "a")?, input(p, "a_scales")?]));
    }
    let mut end = ZEROED;
    let mut take = |size: u64| {
        let at = end;
        end += size.next_multiple_of(256);
        at
    };
    if c.form != Form::Warps {
        take(u64::from(p.m) * whole_k(p) * 2);
    }
    let rows = all.into_iter().map(|(count, given)| {
        let codes = moves_rows(p).then(|| u64::from(count) * row_bytes(p));
        let arranged = || ScaleLayout::Block.bytes(count as usize, p.k as usize) as u64;
        let scales = (p.scale_layout == ScaleLayout::Plain).then(arranged);
        Rows {
            count,
            given,
            moved: [codes, scales].map(|size| size.map(&mut take)),
        }
    });
    let rows = rows.collect();
    Ok((rows, end))
}

/// Does the line take A in codes?
fn takes_codes(p: &Problem, c: &Config) -> bool {
    c.form == Form::Warps && p.activations.is_none()
}

/// Bytes from one row of codes to the next, as the line takes them: a multiple of 16.
fn row_bytes(p: &Problem) -> u64 {
    u64::from(p.k / 2).next_multiple_of(16)
}

/// Do rows of codes start where no copy of a box can?
fn moves_rows(p: &Problem) -> bool {
    row_bytes(p) != u64::from(p.k / 2)
}

/// A step of a thread for each of so many.
fn step(kernel: Program, threads: u32) -> Step {
    Step::new(kernel, [threads.div_ceil(scales::THREADS), 1, 1])
}

/// The kernels: codes and scales as the line takes them, where they are not; A
/// in 16 bits, where the line does not make it; the line.
pub(super) fn plan(p: &Problem, c: &Config, target: &Target) -> Result<Plan, FamilyError> {
    let mut steps = Vec::new();
    let (coded, workspace) = coded_rows(p, c)?;
    for rows in &coded {
        let [codes, scales] = rows.given;
        if let Some(to) = rows.moved[0] {
            steps.push(move_rows(p, rows.count, codes, to, target)?);
        }
        if let Some(to) = rows.moved[1] {
            steps.push(arrange_scales(p, rows.count, scales, to, target)?);
        }
    }
    // Codes and scales that no step of the plan writes.
    let settled = steps.is_empty();
    if c.form != Form::Warps {
        steps.push(widen_a(p, target)?);
    }
    let class = widened(p).class();
    let compiled_in = Config { ctas: 0, ..*c };
    let course = Course::new(p.k, c, takes_codes(p, c), settled);
    let kernel = Program::once(
        format!(
            "nvfp4 {class:?} {compiled_in:?} {course:?} {:?}",
            numbers(p)
        ),
        target,
        |target| match float(p) {
            Float::Bf16 => line::build::<bf16>(&class, c, course, numbers(p), target),
            _ => line::build::<f16>(&class, c, course, numbers(p), target),
        },
    )?;
    let line = line_step(kernel, p, c, &coded)?;
    steps.push(match steps.is_empty() {
        true => line,
        false => line.dependent(),
    });
    Plan::new(steps, workspace)
}

/// The step that moves rows of codes to where boxes of them can be copied.
fn move_rows(
    p: &Problem,
    rows: u32,
    codes: Address,
    to: u64,
    target: &Target,
) -> Result<Step, FamilyError> {
    let kernel = Program::once("nvfp4 rows".into(), target, rows::apart)?;
    let across = (row_bytes(p) / 8) as u32;
    let step = step(kernel, rows * across)
        .scalar("words", p.k / BLOCK as u32)
        .scalar("across", across)
        .scalar("count", rows * across)
        .divisor("by_row", across)
        .pointer("from", codes)
        .pointer("to", Buffer::Workspace.at(to));
    Ok(step)
}

/// The step that brings plain scales to the layout of blocks.
fn arrange_scales(
    p: &Problem,
    rows: u32,
    scales: Address,
    to: u64,
    target: &Target,
) -> Result<Step, FamilyError> {
    let kernel = Program::once("nvfp4 scales".into(), target, scales::arrange)?;
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

/// The step that makes of A what the line takes.
fn widen_a(p: &Problem, target: &Target) -> Result<Step, FamilyError> {
    let across = (whole_k(p) / u64::from(widen::EACH)) as u32;
    let count = p.m * across;
    let place = |step: Step| {
        step.scalar("groups", p.k / BLOCK as u32)
            .scalar("across", across)
            .scalar("count", count)
            .divisor("by_row", across)
            .pointer("to", Buffer::Workspace.at(ZEROED))
    };
    match p.activations {
        None => {
            let whole = u64::from(p.k) == whole_k(p);
            let key = format!("nvfp4 widen {:?} {whole}", p.scale_layout);
            let kernel = Program::once(key, target, |target| {
                widen::widen(p.scale_layout, whole, target)
            })?;
            Ok(place(step(kernel, count))
                .pointer("codes", input(p, "a")?)
                .pointer("scales", input(p, "a_scales")?))
        }
        Some(_) => {
            let kernel = Program::once("nvfp4 permute".into(), target, widen::permute)?;
            Ok(place(step(kernel, count))
                .scalar("stride", p.a_stride.unwrap_or(p.k.into()))
                .pointer("from", input(p, "a")?))
        }
    }
}

/// The numbers that multiply whole tensors.
fn numbers(p: &Problem) -> &'static [&'static str] {
    match (p.scales, p.activations) {
        (false, _) => &[],
        (true, None) => &["scale_gate", "scale_up", "scale_a"],
        (true, Some(_)) => &["scale_gate", "scale_up"],
    }
}

/// The launch of the line.
fn line_step(
    kernel: Program,
    p: &Problem,
    c: &Config,
    coded: &[Rows],
) -> Result<Step, FamilyError> {
    let (m, n) = (u64::from(p.m), u64::from(p.n));
    let tensor = |at: Address, extents: &[u64], strides: &[u64]| {
        TensorArg::strided(at, extents.to_vec(), strides.to_vec())
    };
    let [rows, cols] = c.unit();
    let (m_tiles, n_tiles) = (p.m.div_ceil(rows), p.n.div_ceil(cols));
    let [group, last] = c.order().divisors(m_tiles, n_tiles);
    let out_stride = p.c_stride.unwrap_or(n) * 2;
    let mut step = Step::new(kernel, [c.ctas, 1, 1])
        .scalar("groups", p.k / BLOCK as u32)
        .scalar("rounds", line::rounds(p.k, c))
        .tensor(
            "c",
            tensor(Buffer::Output(0).into(), &[n, m], &[out_stride]),
        )
        .scalar("m_tiles", m_tiles)
        .scalar("n_tiles", n_tiles)
        .divisor("raster_group", group)
        .divisor("last_group", last);
    let depth = u64::from(p.k.div_ceil(line::BLOCK));
    let tile = u64::from(scales::TILE);
    for (rows, names) in coded.iter().zip(line::CODED) {
        let [codes, scales] = rows.sources();
        let count = u64::from(rows.count);
        let across = [u64::from(p.k / 2), count];
        let (extents, strides) = ([tile / 4, depth, count.div_ceil(128)], [tile, tile * depth]);
        step = step
            .tensor(names[0], tensor(codes, &across, &[row_bytes(p)]))
            .tensor(names[1], tensor(scales, &extents, &strides));
    }
    match c.form {
        Form::Warps if takes_codes(p, c) => {}
        // The bytes of A as it is.
        Form::Warps => {
            let stride = 2 * p.a_stride.unwrap_or(p.k.into());
            let across = [2 * u64::from(p.k), m];
            step = step.tensor("x", tensor(input(p, "a")?, &across, &[stride]));
        }
        _ => {
            let whole = whole_k(p);
            let x = Buffer::Workspace.at(ZEROED);
            step = step.tensor("x", tensor(x, &[whole, m], &[whole * 2]));
        }
    }
    for name in numbers(p) {
        step = step.pointer(name, input(p, name)?);
    }
    Ok(step)
}
