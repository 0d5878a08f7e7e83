//! `C = gate(A · B₁ᵀ) ∘ (A · B₂ᵀ)` where all three are NVFP4.
//!
//! Hopper multiplies no numbers of 4 bits, but every product of a code and a
//! scale is exact in f16. One step makes f16 of A, which is small; then one
//! line brings the weights as codes and decodes them into the operand of the
//! tensor cores that is in registers, so that memory and shared memory carry
//! 4 bits of each.
//!
//! | where | what |
//! |---|---|
//! | `decode` | codes and scales to numbers, in registers |
//! | `widen` | the step that makes f16 of A |
//! | `scales` | where scales lie, and the step that rearranges plain ones |
//! | `line` | the line |
//! | `config` | tiles, whether they fit, and how long they may take |
//! | `reference` | float64 |

mod config;
mod decode;
mod line;
mod reference;
mod scales;
mod widen;

pub(super) use config::{candidates, config, estimate, fit};
pub(super) use reference::{inputs, reference};

use super::problem::Problem;
use crate::error::FamilyError;
use crate::family::Cost;
use crate::float::Float;
use crate::gemm;
use crate::gemm::{Config, Factor, Order};
use crate::nvfp4::{BLOCK, ScaleLayout};
use crate::plan::{Buffer, Plan, PlanArg, Step, ZEROED};
use crate::program::Program;
use crate::tensor::TensorSpec;
use crate::weights::Weights;
use warpline_ir::build::Divisor;
use warpline_ir::{DType, TensorMapDecl, Type};

/// The product that tensor cores see: f16.
fn widened(p: &Problem) -> gemm::Problem {
    p.product_of(Factor::F16)
}

/// K in whole stages.
fn whole_k(p: &Problem) -> u64 {
    u64::from(p.k.next_multiple_of(line::DEPTH))
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
    if !p.k.is_multiple_of(32) {
        return refuse(format!(
            "rows of codes start on 16 bytes, so K is a multiple of 32, not {}",
            p.k
        ));
    }
    if p.out.is_some_and(|out| out != Float::F16) {
        return refuse(format!(
            "what comes out of nvfp4 is f16, not {}",
            p.out.unwrap_or(Float::F16).dtype()
        ));
    }
    if p.weights != Weights::Apart {
        return refuse("weights of nvfp4 are two tensors (--weights apart)".into());
    }
    if p.a_stride.or(p.weight_stride).or(p.up_stride).is_some() {
        return refuse(
            "rows of codes lie without gaps: no --a-stride, --weight-stride, --up-stride".into(),
        );
    }
    // A thread for every eight numbers of A.
    if u64::from(p.m) * whole_k(p) >= 8 << 31 {
        return refuse(format!(
            "A of nvfp4 has less than 2^34 elements, not {} x {}",
            p.m, p.k
        ));
    }
    widened(p).check()
}

/// What goes in, in the order of a plan's inputs: codes, scales, and numbers
/// that multiply a whole tensor.
fn specs(p: &Problem) -> Vec<TensorSpec> {
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
    let mut all = vec![
        codes("a", m),
        codes("gate", n),
        codes("up", n),
        scales("a_scales", m),
        scales("gate_scales", n),
        scales("up_scales", n),
    ];
    if p.scales {
        all.extend(
            ["scale_a", "scale_gate", "scale_up"].map(|name| TensorSpec {
                name,
                dtype: DType::F32,
                shape: vec![1],
            }),
        );
    }
    all
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
        "gate": p.gate,
        "scale_layout": p.scale_layout,
        "scales": p.scales,
    })
}

/// A small problem of the same class.
pub(super) fn reduced(p: &Problem) -> Option<Problem> {
    let small = Problem {
        m: p.m.min(200),
        n: p.n.min(264),
        k: p.k.min(608),
        ..p.clone()
    };
    (small != *p).then_some(small)
}

/// Where the parts of the workspace start: A in f16, the scales of each weight.
struct Workspace {
    scales: [u64; 2],
    bytes: u64,
}

impl Workspace {
    fn of(p: &Problem) -> Self {
        let whole = |bytes: u64| bytes.next_multiple_of(256);
        let first = ZEROED + whole(u64::from(p.m) * whole_k(p) * 2);
        let each = match p.scale_layout {
            ScaleLayout::Plain => {
                whole(ScaleLayout::Block.bytes(p.n as usize, p.k as usize) as u64)
            }
            ScaleLayout::Block => 0,
        };
        Self {
            scales: [first, first + each],
            bytes: first + 2 * each,
        }
    }
}

/// The kernels: A to f16, plain scales of weights to blocks, the line.
pub(super) fn plan(p: &Problem, c: &Config) -> Result<Plan, FamilyError> {
    let space = Workspace::of(p);
    let number = |x: u32| PlanArg::Scalar(Type::U32, x.into());
    let input = |i: usize| PlanArg::Pointer(Buffer::Input(i), 0);
    let ctas = |threads: u32| [threads.div_ceil(scales::THREADS), 1, 1];
    let groups = p.k / BLOCK as u32;
    let mut steps = Vec::new();
    if p.scale_layout == ScaleLayout::Plain {
        let kernel = Program::once("nvfp4 scales".into(), scales::arrange)?;
        let words = (ScaleLayout::Block.bytes(p.n as usize, p.k as usize) / 4) as u32;
        for i in 0..2 {
            let args = vec![
                number(p.n),
                number(groups),
                number(words),
                input(4 + i),
                PlanArg::Pointer(Buffer::Workspace, space.scales[i]),
            ];
            steps.push(Step::new(kernel.clone(), ctas(words), args));
        }
    }
    let across = (whole_k(p) / 8) as u32;
    let kernel = Program::once(format!("nvfp4 widen {:?}", p.scale_layout), || {
        widen::widen(p.scale_layout)
    })?;
    let count = p.m * across;
    let args = vec![
        number(groups),
        number(across),
        number(count),
        PlanArg::Scalar(Type::U64, Divisor::word(across)),
        input(0),
        input(3),
        PlanArg::Pointer(Buffer::Workspace, ZEROED),
    ];
    steps.push(Step::new(kernel, ctas(count), args));
    let class = widened(p).class();
    let compiled_in = Config { ctas: 0, ..*c };
    let kernel = Program::once(format!("nvfp4 {class:?} {compiled_in:?}"), || {
        line::build(&class, c, p.scales)
    })?;
    steps.push(Step::new(kernel, [c.ctas, 1, 1], args_of_line(p, c, &space)).dependent());
    Ok(Plan {
        steps,
        workspace: space.bytes,
    })
}

/// The arguments of the line, in the order of its parameters.
fn args_of_line(p: &Problem, c: &Config, space: &Workspace) -> Vec<PlanArg> {
    let number = |x: u32| PlanArg::Scalar(Type::U32, x.into());
    let [x, codes, out] = line::maps(c);
    let map =
        |decl: TensorMapDecl, buffer, offset, cols: u64, rows: u32, size: u64| PlanArg::TensorMap {
            decl,
            buffer,
            offset,
            extents: vec![cols, rows.into()],
            strides: vec![cols * size],
        };
    let half_k = u64::from(p.k / 2);
    let mut args = vec![
        number(p.k / BLOCK as u32),
        map(x, Buffer::Workspace, ZEROED, whole_k(p), p.m, 2),
    ];
    args.extend([1, 2].map(|i| map(codes.clone(), Buffer::Input(i), 0, half_k, p.n, 1)));
    let stride = p.c_stride.unwrap_or(p.n.into());
    args.push(PlanArg::TensorMap {
        decl: out,
        buffer: Buffer::Output(0),
        offset: 0,
        extents: vec![p.n.into(), p.m.into()],
        strides: vec![stride * 2],
    });
    let [tall, wide] = c.unit();
    let (tall, wide) = (p.m.div_ceil(tall), p.n.div_ceil(wide));
    args.extend([tall, wide].map(number));
    let divisors = c.order().divisors(tall, wide);
    args.extend(divisors.map(|by| PlanArg::Scalar(Type::U64, Divisor::word(by))));
    if c.order == Order::Dynamic {
        args.push(PlanArg::Pointer(Buffer::Workspace, 0));
    }
    args.extend([0, 1].map(|i| match p.scale_layout {
        ScaleLayout::Plain => PlanArg::Pointer(Buffer::Workspace, space.scales[i]),
        ScaleLayout::Block => PlanArg::Pointer(Buffer::Input(4 + i), 0),
    }));
    if p.scales {
        args.extend([6, 7, 8].map(|i| PlanArg::Pointer(Buffer::Input(i), 0)));
    }
    args
}
