//! NVFP4 through the kernels: every code with every scale, exactly.

use serde_json::Value;
use warpline::kernels::dual_gemm::{DualGemm, Operands, Problem};
use warpline::kernels::gemm::{Activation, Choice};
use warpline::kernels::nvfp4::{ScaleLayout, codes, products};
use warpline::kernels::{AnyWork, Cost, FamilyError, HostTensor, Plan, TensorSpec, Work};
use warpline::{Device, RunOptions, run};
use warpline_ir::Target;

/// The code and the scale of 1.
const ONE: u8 = 2;
const SCALE: u8 = 0x38;

/// Work on inputs that a test gives, with what must come out.
struct Given {
    work: Work<DualGemm>,
    data: Vec<Vec<u8>>,
    exact: Vec<f64>,
}

impl AnyWork for Given {
    fn family(&self) -> &'static str {
        self.work.family()
    }
    fn problem(&self) -> Value {
        self.work.problem()
    }
    fn config(&self) -> Value {
        self.work.config()
    }
    fn plan(&self, target: &Target) -> Result<Plan, FamilyError> {
        self.work.plan(target)
    }
    fn cost(&self) -> Cost {
        self.work.cost()
    }
    fn inputs(&self, seed: u64) -> Vec<HostTensor> {
        let specs = self.work.inputs(seed).into_iter().map(|t| t.spec);
        let tensor = |(spec, data): (TensorSpec, &Vec<u8>)| HostTensor {
            spec,
            data: data.clone(),
        };
        specs.zip(&self.data).map(tensor).collect()
    }
    fn outputs(&self) -> Vec<TensorSpec> {
        self.work.outputs()
    }
    fn reference(&self, _: &[HostTensor]) -> Vec<Vec<(f64, f64)>> {
        vec![self.exact.iter().map(|&x| (x, 0.0)).collect()]
    }
}

/// Codes of rows of 32, by row and place, packed.
fn packed(rows: usize, code: impl Fn(usize, usize) -> u8) -> Vec<u8> {
    let all: Vec<u8> = (0..rows * 32).map(|i| code(i / 32, i % 32)).collect();
    codes::pack(&all).unwrap_or_else(|e| panic!("{e}"))
}

/// Runs it with codes of A, gate and up, and the scale of the first 16 of each
/// row; that of the others is 1, and the gate's sum as well.
fn holds(
    [m, n]: [usize; 2],
    data: [Vec<u8>; 3],
    first: [&dyn Fn(usize) -> u8; 3],
    exact: impl Fn(usize, usize) -> f64,
) {
    for scale_layout in [ScaleLayout::Plain, ScaleLayout::Block] {
        for consumers in [1, 2] {
            let problem = Problem {
                dtype: Operands::Nvfp4,
                gate: Activation::None,
                scale_layout,
                ..Problem::new(m as u32, n as u32, 32)
            };
            let choice = Choice {
                consumers: Some(consumers),
                ..Choice::default()
            };
            let device = Device::cpu();
            let work = Work::<DualGemm>::new(problem, &choice, &device.target());
            let scales = [m, n, n].into_iter().zip(first).map(|(rows, first)| {
                let plain: Vec<u8> = (0..rows).flat_map(|i| [first(i), SCALE]).collect();
                scale_layout
                    .arrange(&plain, rows, 32)
                    .unwrap_or_else(|e| panic!("{e}"))
            });
            let work = Given {
                work: work.unwrap_or_else(|e| panic!("{e}")),
                data: data.clone().into_iter().chain(scales).collect(),
                exact: (0..m * n).map(|i| exact(i / n, i % n)).collect(),
            };
            let outcome = run(&work, &device, &RunOptions::default());
            let outcome = outcome.unwrap_or_else(|e| panic!("{e}"));
            assert!(
                outcome.passed(),
                "{scale_layout:?}, {consumers}: {:?}",
                outcome.outputs
            );
        }
    }
}

#[test]
fn every_code_and_scale_of_a_weight_is_exact() {
    // Row j of the weight has all codes, with scale j; row r of A picks code r.
    let a = packed(16, |row, k| if row == k { ONE } else { 0 });
    let up = packed(256, |_, k| if k < 16 { k as u8 } else { 0 });
    let gate = packed(256, |_, k| if k < 16 { ONE } else { 0 });
    let (one, own) = (|_| SCALE, |row: usize| row as u8);
    holds([16, 256], [a, gate, up], [&one, &one, &own], |r, j| {
        products::product(r as u8, j as u8)
    });
}

#[test]
fn every_code_and_scale_of_a_is_exact() {
    // Row i of A has all codes, with scale i, and a 1 behind them for the gate.
    let behind = |k: usize| if k == 16 { ONE } else { 0 };
    let a = packed(256, |_, k| if k < 16 { k as u8 } else { behind(k) });
    let up = packed(16, |row, k| if row == k { ONE } else { 0 });
    let gate = packed(16, |_, k| behind(k));
    let (one, own) = (|_| SCALE, |row: usize| row as u8);
    holds([256, 16], [a, gate, up], [&own, &one, &one], |i, r| {
        products::product(r as u8, i as u8)
    });
}
