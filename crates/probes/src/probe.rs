//! The traits of a probe, and helpers for writing one.

use serde_json::{Value as Json, json};
use warpline_ir::builder::{Builder, Reg};
use warpline_ir::{BuildErrors, DType, Target, TensorMapDecl};
use warpline_kernels::numbers::{self, half_ulp};
use warpline_kernels::{AnyWorkload, Cost, FamilyError, HostTensor, LaunchStep, Plan, TensorSpec};

/// Declares an extent, small enough that tiles and k-tiles are counted in 32 bits.
#[track_caller]
pub(crate) fn extent_param(k: Builder, name: &str) -> Reg<u32> {
    k.param(name).at_most(1 << 16)
}

/// A probe kernel at some extents.
pub(crate) trait Probe: Send + Sync {
    /// The name of the probe.
    const NAME: &'static str;
    /// Returns the extents, for messages.
    fn extents(&self) -> Json;
    /// Returns the config, for messages.
    fn config(&self) -> Json {
        json!({})
    }
    /// Returns the kernel with its grid and arguments.
    fn step(&self, target: &Target) -> Result<LaunchStep, BuildErrors>;
    /// Returns the workspace size in bytes.
    fn workspace(&self) -> u64 {
        0
    }
    /// Returns the specs of the inputs.
    fn inputs(&self) -> Vec<TensorSpec>;
    /// Returns the specs of the outputs.
    fn outputs(&self) -> Vec<TensorSpec>;
    /// Computes the float64 reference: each value and its tolerance.
    fn reference(&self, inputs: &[Vec<f64>]) -> Vec<(f64, f64)>;
    /// Returns the number of floating-point operations.
    fn flops(&self) -> f64;
}

/// A probe of `C[M, N] = A[M, K] · B[N, K]ᵀ` with bf16 operands.
pub(crate) trait GemmProbe: Send + Sync {
    /// The name of the probe.
    const NAME: &'static str;
    /// The element type of C.
    const OUT: DType;
    /// Returns M, N, K.
    fn shape(&self) -> [u32; 3];
    /// Returns the config, for messages.
    fn config(&self) -> Json;
    /// Returns the kernel with its grid and its arguments other than `m`, `n` and `k`.
    fn step(&self, target: &Target) -> Result<LaunchStep, BuildErrors>;
    /// Returns the workspace size in bytes.
    fn workspace(&self) -> u64 {
        0
    }
}

impl<G: GemmProbe> Probe for G {
    const NAME: &'static str = G::NAME;
    fn extents(&self) -> Json {
        json!({ "mnk": self.shape() })
    }
    fn config(&self) -> Json {
        GemmProbe::config(self)
    }
    fn step(&self, target: &Target) -> Result<LaunchStep, BuildErrors> {
        let [m, n, k] = self.shape();
        let step = GemmProbe::step(self, target)?;
        Ok(step.scalar("m", m).scalar("n", n).scalar("k", k))
    }
    fn workspace(&self) -> u64 {
        GemmProbe::workspace(self)
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
        gemm_reference(&inputs[0], &inputs[1], self.shape()[2], G::OUT)
    }
    fn flops(&self) -> f64 {
        2.0 * self.shape().map(f64::from).iter().product::<f64>()
    }
}

/// Erases the types of probes.
pub(crate) fn workloads<P: Probe + 'static>(probes: Vec<P>) -> Vec<Box<dyn AnyWorkload>> {
    let workload = |probe| Box::new(ProbeWorkload(probe)) as Box<dyn AnyWorkload>;
    probes.into_iter().map(workload).collect()
}

/// A probe as a workload.
struct ProbeWorkload<P>(P);

impl<P: Probe> AnyWorkload for ProbeWorkload<P> {
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

/// Creates a tensor spec.
pub(crate) fn tensor(name: &'static str, dtype: DType, shape: &[u32]) -> TensorSpec {
    TensorSpec {
        name,
        dtype,
        shape: shape.iter().map(|&x| x as usize).collect(),
    }
}

/// Declares a tensor map with boxes of `rows` rows of `cols` elements.
pub(crate) fn box_map(dtype: DType, cols: u32, rows: u32) -> TensorMapDecl {
    TensorMapDecl::tiled(dtype, [cols, rows])
}

/// Returns the dot product of two rows, with the tolerance of an f32 accumulation rounded to `out`.
pub(crate) fn dot(a: &[f64], b: &[f64], out: DType) -> (f64, f64) {
    let (sum, magnitude) = numbers::dot(a, b);
    // Products are exact; the tensor cores truncate during alignment, once per k-tile.
    (sum, half_ulp(out, sum) * 1.01 + magnitude * 2f64.powi(-20))
}

/// Computes A · Bᵀ for rows of length `k`: each value with its tolerance.
///
/// For a large GEMM only some rows are computed; see [`sampled_rows`].
pub(crate) fn gemm_reference(a: &[f64], b: &[f64], k: u32, out: DType) -> Vec<(f64, f64)> {
    let k = k as usize;
    let work = a.len() * b.len() / k;
    sampled_rows(a.len() / k, b.len() / k, work, |i| {
        let x = &a[i * k..][..k];
        b.chunks(k).map(|y| dot(x, y, out)).collect()
    })
}

/// Computes the rows of a reference that takes `work` operations.
///
/// Of a large reference only every n-th row is computed; the other rows accept any number. n is odd, so that
/// the computed rows reach every row of a tile.
pub(crate) fn sampled_rows(
    rows: usize,
    cols: usize,
    work: usize,
    row: impl Fn(usize) -> Vec<(f64, f64)>,
) -> Vec<(f64, f64)> {
    let row_step = work >> 30 | 1;
    let row_or_any = |i: usize| match i % row_step {
        0 => row(i),
        _ => vec![(0.0, f64::INFINITY); cols],
    };
    (0..rows).flat_map(row_or_any).collect()
}
