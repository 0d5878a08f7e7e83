//! The epilogue: a list of ops on the accumulators; then C is rounded once and stored.
//!
//! `C = activation(scale · A·Bᵀ + bias) ∘ up + residual`, and reductions of C. Each op is one file with
//! its device code, its launch argument, its float64 reference and its error bound.
//!
//! | where | what |
//! |---|---|
//! | `scale` | multiplies the accumulators by a launch parameter or by scales in memory |
//! | `bias` | adds a value to each column |
//! | `activation` | applies a function to each value |
//! | `gate` | multiplies gate and up |
//! | `residual` | adds a matrix |
//! | `reduce` | row sums, column sums, amax |
//! | `fold` | the kernels that combine the partial results of a reduction |
//! | `parts` | iteration over the parts of a tile, each as wide as one staging tile |
//! | `store` | stages tiles in shared memory and stores them to C |
//! | `swapped` | the store of swap-AB |
//! | `elements` | matrices that are addressed element by element |
//! | `out` | the element types of C |

mod activation;
pub(super) mod bias;
mod elements;
mod fold;
pub(crate) mod gate;
pub(super) mod out;
mod parts;
pub(super) mod reduce;
pub(super) mod residual;
pub(super) mod scale;
mod store;
mod swapped;

pub(super) use bias::BiasValues;
pub(super) use out::Out;

use super::config::Config;
use super::mainloop::matrix_map;
use super::offset::Offset;
use super::problem::{Activation, Class, Matrix, Problem};
use bias::Bias;
use elements::{GlobalMatrix, stores_elements};
use reduce::{Reduce, ReductionState};
use residual::Residual;
use scale::{Scale, Scales};
use std::ops::Range as Span;
use warpline_family::error::FamilyError;
use warpline_family::plan::{Address, Buffer, LaunchStep, TensorArg};
use warpline_family::tensor::TensorSpec;
use warpline_ir::builder::*;

/// The epilogue of a kernel.
pub(super) struct Epilogue<T: Out> {
    class: Class,
    config: Config,
    m: Reg<u32>,
    n: Reg<u32>,
    /// The tensor map of C; `None` if TMA cannot address C.
    c: Option<TensorMap>,
    /// C for element-wise stores, if it is not stored through the tensor map.
    elements: Option<GlobalMatrix<T>>,
    /// The ops in order of application.
    ops: Vec<Op<T>>,
}

/// An op of the epilogue.
enum Op<T: Out> {
    Scale(Scale),
    Bias(Bias<T>),
    Activation(Activation),
    /// Multiplies by up.
    Gate,
    Residual(Residual<T>),
    Reduce(Reduce),
}

/// The epilogue state of one consumer role, from its first tile to its last.
pub(super) struct EpilogueState {
    consumer: u32,
    /// The scale of each accumulator.
    pub(super) scales: Scales,
    /// The state of each reduction.
    reductions: Vec<ReductionState>,
}

/// Binds the arguments of the epilogue for the columns `cols` of C. The partial results of reductions
/// follow the first `used_bytes` of the workspace.
pub(super) fn bind_args(
    step: LaunchStep,
    p: &Problem,
    c: &Config,
    inputs: &[TensorSpec],
    cols: &Span<u32>,
    used_bytes: u64,
    tensor: impl Fn(Address, Matrix) -> TensorArg,
) -> Result<LaunchStep, FamilyError> {
    let class = p.class();
    let first_byte = u64::from(cols.start) * class.out.dtype().bytes() as u64;
    let out = Matrix {
        cols: cols.len() as u64,
        ..p.c()
    };
    let address = Buffer::Output(0).at(first_byte);
    let mut step = match class.c_by_element {
        false => step.tensor("c", tensor(address, out)),
        true => step,
    };
    if stores_elements(&class, c) {
        step = elements::bind_args(step, "elements", address, p.c(), class.batched);
    }
    step = Scale::bind_args(step, p, inputs)?;
    step = bias::bind_args(step, p, inputs, first_byte)?;
    step = residual::bind_args(step, p, inputs, first_byte)?;
    Ok(reduce::bind_args(step, p, c, used_bytes))
}

/// Declares the ops of a class in order of application.
fn ops<T: Out>(
    k: Builder,
    class: &Class,
    c: &Config,
    extents @ [_, n]: [Reg<u32>; 2],
    batch: Option<Reg<u32>>,
) -> Vec<Op<T>> {
    let enabled = class.epilogue;
    let mut ops = vec![Op::Scale(Scale::declare(k, class))];
    ops.extend(
        enabled
            .bias
            .then(|| Op::Bias(Bias::declare(k, n, enabled.by_element))),
    );
    ops.push(Op::Activation(enabled.activation));
    ops.extend(class.up.map(|_| Op::Gate));
    ops.extend(enabled.residual.then(|| {
        let residual = GlobalMatrix::declare(k, "residual", extents, batch);
        Op::Residual(Residual {
            matrix: residual,
            by_element: enabled.by_element,
        })
    }));
    let reduce = |reduction| Op::Reduce(Reduce::declare(k, reduction, c, extents));
    ops.extend(enabled.reductions().into_iter().map(reduce));
    ops
}

impl<T: Out> Epilogue<T> {
    /// Declares the parameters.
    pub(super) fn declare(
        k: Builder,
        class: &Class,
        c: &Config,
        [m, n]: [Reg<u32>; 2],
        batch: Option<Reg<u32>>,
    ) -> Self {
        let dtype = class.out.dtype();
        let [width, rows] = match c.swap_ab() {
            false => [c.staging.width, c.rows()],
            true => [c.rows().min(128 / dtype.bytes() as u32), c.staging.width],
        };
        let map = || k.tensor_map("c", matrix_map(class.batched, dtype, width, rows));
        let elements = || GlobalMatrix::declare(k, "elements", [m, n], batch);
        Self {
            class: *class,
            config: *c,
            m,
            n,
            c: (!class.c_by_element).then(map),
            elements: stores_elements(class, c).then(elements),
            ops: ops(k, class, c, [m, n], batch),
        }
    }

    /// Returns the reductions.
    fn reductions(&self) -> impl Iterator<Item = &Reduce> {
        self.ops.iter().filter_map(|op| match op {
            Op::Reduce(reduce) => Some(reduce),
            _ => None,
        })
    }

    /// Returns the initial state of a consumer role; loads the scales.
    #[track_caller]
    pub(super) fn begin(&self, consumer: u32) -> EpilogueState {
        let scales = self.ops.iter().find_map(|op| match op {
            Op::Scale(scale) => Some(scale.load()),
            _ => None,
        });
        EpilogueState {
            consumer,
            scales: scales.unwrap_or_default(),
            reductions: self.reductions().map(Reduce::begin).collect(),
        }
    }

    /// Stores the reductions that a consumer role carried through all its tiles.
    #[track_caller]
    pub(super) fn end(&self, state: &EpilogueState) {
        for (reduce, reduction) in self.reductions().zip(&state.reductions) {
            reduce.end(state.consumer, reduction);
        }
    }

    /// Loads the bias of the first part of a tile. The caller issues it before the mainloop, which hides
    /// the latency.
    #[track_caller]
    pub(super) fn prefetch(&self, offset: Offset) -> BiasValues<T> {
        let bias = self.ops.iter().find_map(|op| match op {
            Op::Bias(bias) => Some(bias),
            _ => None,
        });
        match (bias, self.config.swap_ab()) {
            (None, _) => BiasValues::None,
            (Some(bias), true) => bias.rows(offset, self.config.rows()),
            (Some(bias), false) => bias.cols(offset, self.config.staging.width),
        }
    }

    /// Applies all ops to the accumulators: one fragment, or gate and up.
    #[track_caller]
    pub(super) fn apply(
        &self,
        accumulators: &[Frag],
        offset: Offset,
        state: &EpilogueState,
        mut bias: BiasValues<T>,
    ) -> Frag {
        let [first, second] = state.scales;
        let mut states = state.reductions.iter();
        let x = accumulators[0].clone();
        self.ops.iter().fold(x, |x, op| match op {
            Op::Scale(_) => scale::apply(x, first),
            Op::Bias(_) => std::mem::replace(&mut bias, BiasValues::None).apply(x),
            Op::Activation(activation) => x.map(|x| activation.apply(x)),
            Op::Gate => gate::apply(x, &scale::apply(accumulators[1].clone(), second)),
            Op::Residual(r) => r.apply(x, offset, [self.m, self.n], self.config.swap_ab()),
            Op::Reduce(reduce) => {
                if let Some(state) = states.next() {
                    reduce.accumulate(&self.zero_out_of_bounds(x.clone(), offset), offset, state);
                }
                x
            }
        })
    }

    /// Replaces out-of-bounds values by zeros.
    #[track_caller]
    fn zero_out_of_bounds(&self, x: Frag, offset: Offset) -> Frag {
        let [rows, cols] = match self.config.swap_ab() {
            false => [self.m, self.n],
            true => [self.n, self.m],
        };
        x.mask(
            |cell| (offset.row + cell.row).lt(rows) & (offset.col + cell.col).lt(cols),
            0.0f32,
        )
    }

    /// Applies the ops of the gate: scale and activation.
    #[track_caller]
    pub(super) fn gate(&self, x: Frag, scale: Option<Reg<f32>>) -> Frag {
        let activation = self.class.epilogue.activation;
        scale::apply(x, scale).map(|x| activation.apply(x))
    }
}
