//! What every probe must hold, on the simulator, in ptxas and on a GPU.

use serde_json::{Value as Json, json};
use std::collections::HashSet;
use warpline::kernels::numbers::{Random, half_ulp};
use warpline::kernels::{
    AnyWork, Buffer, Cost, FamilyError, HostTensor, Plan, PlanArg, Step, TensorSpec,
};
use warpline::{Device, RunOptions, Timing, prepare, run};
use warpline_ir::{DType, Kernel, Target, TensorMapDecl, Type};
use warpline_ptx::ptxas::Ptxas;

/// A probe kernel at some extents.
pub(crate) trait Probe: Send + Sync {
    /// Its name.
    const NAME: &'static str;
    /// What is asked, for messages.
    fn extents(&self) -> Json;
    /// The kernel, its grid and its arguments.
    fn step(&self) -> Step;
    /// Bytes of workspace.
    fn workspace(&self) -> u64 {
        0
    }
    /// What goes in.
    fn inputs(&self) -> Vec<TensorSpec>;
    /// What comes out.
    fn outputs(&self) -> Vec<TensorSpec>;
    /// The float64 reference: every value and its error bound.
    fn reference(&self, inputs: &[Vec<f64>]) -> Vec<(f64, f64)>;
    /// Floating-point operations.
    fn flops(&self) -> f64;
}

/// A probe of `C[M, N] = A[M, K] · B[N, K]ᵀ` with bf16 operands.
pub(crate) trait Gemm: Send + Sync {
    /// Its name.
    const NAME: &'static str;
    /// Element type of C.
    const OUT: DType;
    /// M, N, K.
    fn shape(&self) -> [u32; 3];
    /// The config, for messages.
    fn config(&self) -> Json;
    /// The kernel, its grid, and its arguments behind M, N and K.
    fn step(&self) -> Step;
    /// Bytes of workspace.
    fn workspace(&self) -> u64 {
        0
    }
}

impl<G: Gemm> Probe for G {
    const NAME: &'static str = G::NAME;
    fn extents(&self) -> Json {
        json!({ "mnk": self.shape(), "config": self.config() })
    }
    fn step(&self) -> Step {
        let mut step = Gemm::step(self);
        step.args.splice(0..0, self.shape().map(number));
        step
    }
    fn workspace(&self) -> u64 {
        Gemm::workspace(self)
    }
    fn inputs(&self) -> Vec<TensorSpec> {
        let [m, n, k] = self.shape();
        vec![
            tensor("a", DType::Bf16, &[m, k]),
            tensor("b", DType::Bf16, &[n, k]),
        ]
    }
    fn outputs(&self) -> Vec<TensorSpec> {
        let [m, n, _] = self.shape();
        vec![tensor("c", G::OUT, &[m, n])]
    }
    fn reference(&self, inputs: &[Vec<f64>]) -> Vec<(f64, f64)> {
        product(&inputs[0], &inputs[1], self.shape()[2], G::OUT)
    }
    fn flops(&self) -> f64 {
        2.0 * self.shape().map(f64::from).iter().product::<f64>()
    }
}

/// A probe as work to run.
struct Work<P>(P);

impl<P: Probe> AnyWork for Work<P> {
    fn family(&self) -> &'static str {
        P::NAME
    }
    fn problem(&self) -> Json {
        self.0.extents()
    }
    fn config(&self) -> Json {
        json!({})
    }
    fn plan(&self, _: &Target) -> Result<Plan, FamilyError> {
        Ok(Plan {
            steps: vec![self.0.step()],
            workspace: self.0.workspace(),
        })
    }
    fn cost(&self) -> Cost {
        let specs = [self.0.inputs(), self.0.outputs()].concat();
        let bytes: usize = specs.iter().map(TensorSpec::bytes).sum();
        Cost {
            flops: self.0.flops(),
            bytes: bytes as f64,
        }
    }
    fn inputs(&self, seed: u64) -> Vec<HostTensor> {
        let mut random = Random::new(seed);
        let draw = |spec: TensorSpec| {
            let len = spec.elements();
            HostTensor::round(spec, (0..len).map(|_| random.normal()))
        };
        self.0.inputs().into_iter().map(draw).collect()
    }
    fn outputs(&self) -> Vec<TensorSpec> {
        self.0.outputs()
    }
    fn reference(&self, inputs: &[HostTensor]) -> Vec<Vec<(f64, f64)>> {
        let inputs: Vec<Vec<f64>> = inputs.iter().map(|t| t.values().collect()).collect();
        vec![self.0.reference(&inputs)]
    }
}

/// A tensor of a name, type and shape.
pub(crate) fn tensor(name: &'static str, dtype: DType, shape: &[u32]) -> TensorSpec {
    TensorSpec {
        name,
        dtype,
        shape: shape.iter().map(|&x| x as usize).collect(),
    }
}

/// A tensor map whose boxes are `rows` rows of `cols` elements.
pub(crate) fn boxes(dtype: DType, cols: u32, rows: u32) -> TensorMapDecl {
    TensorMapDecl::tiled(dtype, [cols, rows])
}

/// A number as an argument.
pub(crate) fn number(x: u32) -> PlanArg {
    PlanArg::Scalar(Type::U32, u64::from(x))
}

/// A dense tensor as an argument; `extents` innermost first.
pub(crate) fn dense(decl: TensorMapDecl, buffer: Buffer, extents: &[u32]) -> PlanArg {
    let size = decl.dtype.bytes() as u64;
    let extents: Vec<u64> = extents.iter().map(|&x| u64::from(x)).collect();
    let strides = extents
        .iter()
        .scan(size, |bytes, x| {
            *bytes *= x;
            Some(*bytes)
        })
        .take(extents.len() - 1)
        .collect();
    PlanArg::TensorMap {
        decl,
        buffer,
        offset: 0,
        extents,
        strides,
    }
}

/// A kernel with its launch.
pub(crate) fn step(kernel: Kernel, grid: [u32; 3], args: Vec<PlanArg>) -> Step {
    Step { kernel, grid, args }
}

/// The sum of products of two rows, with the bound of an f32 sum of so many, rounded to `out`.
pub(crate) fn dot(a: &[f64], b: &[f64], out: DType) -> (f64, f64) {
    let (mut sum, mut size) = (0.0, 0.0);
    for (x, y) in a.iter().zip(b) {
        sum += x * y;
        size += (x * y).abs();
    }
    // Products are exact; the hardware truncates what it aligns, once per step of K.
    (sum, half_ulp(out, sum) * 1.01 + size * 2f64.powi(-20))
}

/// A · Bᵀ for rows of `k`: every value with its bound.
///
/// Of a large product only every 61st row is computed; the others may hold any number.
fn product(a: &[f64], b: &[f64], k: u32, out: DType) -> Vec<(f64, f64)> {
    let k = k as usize;
    let every = if a.len() * b.len() / k > 1 << 32 {
        61
    } else {
        1
    };
    let row = |(i, x): (usize, &[f64])| -> Vec<(f64, f64)> {
        match i % every {
            0 => b.chunks(k).map(|y| dot(x, y, out)).collect(),
            _ => vec![(0.0, f64::INFINITY); b.len() / k],
        }
    };
    a.chunks(k).enumerate().flat_map(row).collect()
}

/// Seeds of random timings: 50 for the first case, fewer for the others.
fn seeds(first: bool) -> u64 {
    let full = std::env::var_os("WARPLINE_FULL").is_some();
    if first || full { 50 } else { 4 }
}

/// Every case is right under eager, late and random timings, and its kernel assembles cleanly.
pub(crate) fn holds<P: Probe + 'static>(cases: Vec<P>) {
    let device = Device::cpu();
    let mut assembled = HashSet::new();
    for (i, case) in cases.into_iter().enumerate() {
        let mut runs = vec![(Timing::Eager, 0), (Timing::Late, 0)];
        runs.extend((0..seeds(i == 0)).map(|seed| (Timing::Random, seed)));
        if assembled.insert(case.step().kernel.hash()) {
            assembles(&case);
        }
        let work = Work(case);
        for (timing, seed) in runs {
            let what = format!("{} {} {timing}, seed {seed}", P::NAME, work.problem());
            let mut options = RunOptions::default();
            (options.timing, options.seed) = (timing, seed);
            match run(&work, &device, &options) {
                Ok(outcome) => assert!(outcome.passed(), "{what}: {:?}", outcome.outputs),
                Err(e) => panic!("{what}: {e}"),
            }
        }
    }
}

/// The kernel is checked, and ptxas has nothing to say about it: no advisory, no spill.
fn assembles<P: Probe>(case: &P) {
    let target = Target::SM_90A;
    let kernel = warpline_check::check(case.step().kernel, &target)
        .unwrap_or_else(|e| panic!("{}: {e}", P::NAME));
    let ptx = warpline_ptx::print(&kernel, &target).unwrap_or_else(|e| panic!("{}: {e}", P::NAME));
    let ptxas = Ptxas::find().unwrap_or_else(|e| panic!("{e}"));
    let out = ptxas
        .assemble(&ptx.text, "sm_90a")
        .unwrap_or_else(|e| panic!("{}: {e}", P::NAME));
    let advisories: Vec<_> = out.report.errors().collect();
    assert!(advisories.is_empty(), "{}: {advisories:?}", P::NAME);
    for entry in &out.report.entries {
        assert_eq!(entry.spill_store_bytes, 0, "{} spills", P::NAME);
    }
}

/// Every case is right on the GPU; its rate is printed.
pub(crate) fn holds_on_the_gpu<P: Probe + 'static>(cases: Vec<P>) {
    let (device, reason) = Device::auto();
    let none = reason.unwrap_or_default();
    assert!(!device.is_simulator(), "no GPU: {none}");
    for case in cases {
        let work = Work(case);
        prepare(&work, &device.target()).unwrap_or_else(|e| panic!("{}: {e}", P::NAME));
        let what = format!("{} {}", P::NAME, work.problem());
        let options = RunOptions::default();
        match run(&work, &device, &options) {
            Ok(outcome) => {
                assert!(outcome.passed(), "{what}: {:?}", outcome.outputs);
                let s = outcome.times.median_s;
                eprintln!(
                    "{what}: {:.1} µs, {:.0} GFLOP/s",
                    s * 1e6,
                    work.cost().flops / s / 1e9
                );
            }
            Err(e) => panic!("{what}: {e}"),
        }
    }
}
