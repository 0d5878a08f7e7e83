//! The epilogue: a list of ops on the accumulators, after which C is rounded once and stored.
//!
//! `C = activation(scale · A·Bᵀ + bias) ∘ up + residual`, and reductions of it. Each op is one file:
//! its device code, its launch argument, its float64 meaning and its error bound.
//!
//! | where | what |
//! |---|---|
//! | `scale` | multiplies the accumulators: a launch number, numbers in memory |
//! | `bias` | adds a value to each column |
//! | `activation` | a function of each value |
//! | `gate` | multiplies gate and up |
//! | `residual` | adds a matrix |
//! | `reduce` | sums of rows and columns, the greatest magnitude |
//! | `fold` | the kernels that add up partial results of a reduction |
//! | `parts` | the parts of a tile, each as wide as a copy to C |
//! | `store` | stages tiles in shared memory and stores them to C |
//! | `elements` | a matrix that is addressed element by element |
//! | `out` | the types of C |

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

pub(super) use bias::BiasValues;
pub(super) use out::Out;

use super::config::Config;
use super::mainloop::boxes;
use super::offset::Offset;
use super::problem::{Activation, Class, Matrix, Problem};
use bias::Bias;
use elements::{Elements, is_by_elements};
use reduce::{Carried, Reduce};
use residual::Residual;
use scale::{Scale, Scales};
use std::ops::Range as Span;
use warpline_family::error::FamilyError;
use warpline_family::plan::{Address, Buffer, Step, TensorArg};
use warpline_family::tensor::TensorSpec;
use warpline_ir::build::*;

/// The epilogue of a kernel.
pub(super) struct Epilogue<T: Out> {
    class: Class,
    config: Config,
    m: Reg<u32>,
    n: Reg<u32>,
    /// C as tiles.
    pub(super) c: Map,
    /// C by elements, if it is not stored as tiles.
    elements: Option<Elements<T>>,
    /// The ops, in the order in which they are applied.
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

/// What a consumer's role keeps for the epilogue while it runs.
pub(super) struct Run {
    consumer: u32,
    /// The scale of each accumulator.
    pub(super) scales: Scales,
    /// What is carried for each reduction.
    carried: Vec<Carried>,
}

/// Binds the arguments of the epilogue, for some columns of C; partial results of reductions lie
/// behind `used` bytes of the workspace.
pub(super) fn bind_args(
    step: Step,
    p: &Problem,
    c: &Config,
    inputs: &[TensorSpec],
    cols: &Span<u32>,
    used: u64,
    tensor: impl Fn(Address, Matrix) -> TensorArg,
) -> Result<Step, FamilyError> {
    let class = p.class();
    // Bytes before the first column.
    let before = u64::from(cols.start) * class.out.dtype().bytes() as u64;
    let out = Matrix {
        cols: cols.len() as u64,
        ..p.c()
    };
    let at = Buffer::Output(0).at(before);
    let mut step = step.tensor("c", tensor(at, out));
    if is_by_elements(&class, c) {
        step = elements::bind_args(step, "elements", at, p.c(), class.batched);
    }
    step = Scale::bind_args(step, p, inputs)?;
    step = bias::bind_args(step, p, inputs, before)?;
    step = residual::bind_args(step, p, inputs, before)?;
    Ok(reduce::bind_args(step, p, c, used))
}

/// The ops of a class, in the order in which they are applied.
fn ops<T: Out>(
    k: Builder,
    class: &Class,
    c: &Config,
    sides @ [_, n]: [Reg<u32>; 2],
    batch: Option<Reg<u32>>,
) -> Vec<Op<T>> {
    let has = class.epilogue;
    let mut ops = vec![Op::Scale(Scale::declare(k, class))];
    ops.extend(has.bias.then(|| Op::Bias(Bias::declare(k, n))));
    ops.push(Op::Activation(has.activation));
    ops.extend(class.up.map(|_| Op::Gate));
    ops.extend(has.residual.then(|| {
        let residual = Elements::declare(k, "residual", sides, batch);
        Op::Residual(Residual(residual))
    }));
    let reduce = |reduction| Op::Reduce(Reduce::declare(k, reduction, c, sides));
    ops.extend(has.reductions().into_iter().map(reduce));
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
        let out = match c.swap_ab() {
            false => boxes(class, dtype, c.staging.width, c.rows()),
            true => boxes(
                class,
                dtype,
                c.rows().min(128 / dtype.bytes() as u32),
                c.tile_m,
            ),
        };
        let elements = || Elements::declare(k, "elements", [m, n], batch);
        Self {
            class: *class,
            config: *c,
            m,
            n,
            c: k.tensor_map("c", out),
            elements: is_by_elements(class, c).then(elements),
            ops: ops(k, class, c, [m, n], batch),
        }
    }

    /// The reductions.
    fn reductions(&self) -> impl Iterator<Item = &Reduce> {
        self.ops.iter().filter_map(|op| match op {
            Op::Reduce(reduce) => Some(reduce),
            _ => None,
        })
    }

    /// Begins the role of a consumer: loads the scales.
    #[track_caller]
    pub(super) fn begin(&self, consumer: u32) -> Run {
        let scales = self.ops.iter().find_map(|op| match op {
            Op::Scale(scale) => Some(scale.load()),
            _ => None,
        });
        Run {
            consumer,
            scales: scales.unwrap_or_default(),
            carried: self.reductions().map(Reduce::begin).collect(),
        }
    }

    /// Ends the role of a consumer.
    #[track_caller]
    pub(super) fn end(&self, run: &Run) {
        for (reduce, carried) in self.reductions().zip(&run.carried) {
            reduce.end(run.consumer, carried);
        }
    }

    /// Loads the bias that the first part of a tile needs, before the mainloop: nothing waits for
    /// it then.
    #[track_caller]
    pub(super) fn prefetch(&self, at: Offset) -> BiasValues<T> {
        let bias = self.ops.iter().find_map(|op| match op {
            Op::Bias(bias) => Some(bias),
            _ => None,
        });
        match (bias, self.config.swap_ab()) {
            (None, _) => BiasValues::None,
            (Some(bias), true) => bias.rows(at, self.config.rows()),
            (Some(bias), false) => bias.cols(at, self.config.staging.width),
        }
    }

    /// Applies all ops to accumulators, those of gate and up if there are two.
    #[track_caller]
    pub(super) fn apply(
        &self,
        accumulators: &[Frag],
        at: Offset,
        run: &Run,
        mut bias: BiasValues<T>,
    ) -> Frag {
        let [first, second] = run.scales;
        let mut carried = run.carried.iter();
        let x = accumulators[0].clone();
        self.ops.iter().fold(x, |x, op| match op {
            Op::Scale(_) => scale::apply(x, first),
            Op::Bias(_) => std::mem::replace(&mut bias, BiasValues::None).apply(x),
            Op::Activation(activation) => x.map(|x| activation.apply(x)),
            Op::Gate => gate::apply(x, &scale::apply(accumulators[1].clone(), second)),
            Op::Residual(r) => r.apply(x, at, [self.m, self.n], self.config.swap_ab()),
            Op::Reduce(reduce) => {
                if let Some(carried) = carried.next() {
                    reduce.take(&self.inside(x.clone(), at), at, carried);
                }
                x
            }
        })
    }

    /// The values of C, and zeros outside of it.
    #[track_caller]
    fn inside(&self, x: Frag, at: Offset) -> Frag {
        let [rows, cols] = match self.config.swap_ab() {
            false => [self.m, self.n],
            true => [self.n, self.m],
        };
        x.keep(
            |cell| (at.row + cell.row).lt(rows) & (at.col + cell.col).lt(cols),
            0.0f32,
        )
    }

    /// Applies the ops of a gate alone: scale and activation.
    #[track_caller]
    pub(super) fn gate(&self, x: Frag, scale: Option<Reg<f32>>) -> Frag {
        let activation = self.class.epilogue.activation;
        scale::apply(x, scale).map(|x| activation.apply(x))
    }
}
