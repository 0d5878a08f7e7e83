//! A probe as work to run, and what all of them are written with.

use serde_json::{Value as Json, json};
use warpline_ir::build::{Builder, Reg};
use warpline_ir::{BuildErrors, DType, Target, TensorMapDecl};
use warpline_kernels::numbers::half_ulp;
use warpline_kernels::{AnyWork, Cost, FamilyError, HostTensor, Plan, Step, TensorSpec};

/// Declares an extent of a probe: so small that tiles and their k-tiles are counted in 32 bits.
#[track_caller]
pub(crate) fn side(k: Builder, name: &str) -> Reg<u32> {
    k.param(name).at_most(1 << 16)
}

/// A probe kernel at some extents.
pub(crate) trait Probe: Send + Sync {
    /// Its name.
    const NAME: &'static str;
    /// What is asked, for messages.
    fn extents(&self) -> Json;
    /// How it is solved, for messages.
    fn config(&self) -> Json {
        json!({})
    }
    /// The kernel, its grid and its arguments.
    fn step(&self, target: &Target) -> Result<Step, BuildErrors>;
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
    /// The kernel, its grid, and its arguments other than `m`, `n` and `k`.
    fn step(&self, target: &Target) -> Result<Step, BuildErrors>;
    /// Bytes of workspace.
    fn workspace(&self) -> u64 {
        0
    }
}

impl<G: Gemm> Probe for G {
    const NAME: &'static str = G::NAME;
    fn extents(&self) -> Json {
        json!({ "mnk": self.shape() })
    }
    fn config(&self) -> Json {
        Gemm::config(self)
    }
    fn step(&self, target: &Target) -> Result<Step, BuildErrors> {
        let [m, n, k] = self.shape();
        let step = Gemm::step(self, target)?;
        Ok(step.scalar("m", m).scalar("n", n).scalar("k", k))
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

/// Probes without their types.
pub(crate) fn works<P: Probe + 'static>(probes: Vec<P>) -> Vec<Box<dyn AnyWork>> {
    let work = |probe| Box::new(Work(probe)) as Box<dyn AnyWork>;
    probes.into_iter().map(work).collect()
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
        self.0.config()
    }
    fn plan(&self, target: &Target) -> Result<Plan, FamilyError> {
        Plan::new(vec![self.0.step(target)?], self.0.workspace())
    }
    fn cost(&self) -> Cost {
        let specs = [self.0.inputs(), self.0.outputs()].concat();
        Cost::once(self.0.flops(), &specs)
    }
    fn inputs(&self) -> Vec<TensorSpec> {
        self.0.inputs()
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
/// Of a large product some rows are computed, as [`sampled`] has it.
pub(crate) fn product(a: &[f64], b: &[f64], k: u32, out: DType) -> Vec<(f64, f64)> {
    let k = k as usize;
    let work = a.len() * b.len() / k;
    sampled(a.len() / k, b.len() / k, work, |i| {
        let x = &a[i * k..][..k];
        b.chunks(k).map(|y| dot(x, y, out)).collect()
    })
}

/// Rows of a reference that takes `work` operations. Of a large one every n-th
/// row is computed, and the others may hold any number; n is odd, so that all
/// rows of a tile have their turn.
pub(crate) fn sampled(
    rows: usize,
    cols: usize,
    work: usize,
    row: impl Fn(usize) -> Vec<(f64, f64)>,
) -> Vec<(f64, f64)> {
    let every = work >> 30 | 1;
    let any = |i: usize| match i % every {
        0 => row(i),
        _ => vec![(0.0, f64::INFINITY); cols],
    };
    (0..rows).flat_map(any).collect()
}
