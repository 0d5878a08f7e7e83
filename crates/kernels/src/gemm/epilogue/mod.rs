//! The epilogue: `C = activation(scale · A·Bᵀ + bias) ∘ up + residual`, rounded once and stored.
//!
//! Each op is one file: its device code, its launch argument, its float64
//! meaning and its error bound.
//!
//! | where | what |
//! |---|---|
//! | `scale` | multiplies the accumulators: a launch number, numbers in memory |
//! | `bias` | adds a value to each column |
//! | `activation` | a function of each value |
//! | `gate` | multiplies gate and up |
//! | `residual` | adds a matrix |
//! | `store` | stages tiles in shared memory and stores them to C |
//! | `elements` | a matrix that is addressed element by element |
//! | `out` | the types of C |

mod activation;
pub(super) mod bias;
mod elements;
pub(crate) mod gate;
pub(super) mod out;
pub(super) mod residual;
pub(super) mod scale;
mod store;

pub(super) use bias::BiasValues;
pub(super) use out::Out;
pub(super) use scale::Scales;
pub(super) use store::is_by_elements;

use super::config::Config;
use super::mainloop::boxes;
use super::offset::Offset;
use super::problem::{Class, Matrix, Problem};
use bias::Bias;
use elements::Elements;
use residual::Residual;
use scale::Scale;
use std::ops::Range as Span;
use warpline_family::error::FamilyError;
use warpline_family::plan::{Address, Buffer, Step, TensorArg};
use warpline_family::tensor::TensorSpec;
use warpline_ir::build::*;

/// The epilogue of a kernel.
pub(super) struct Epilogue<T: Out> {
    class: Class,
    config: Config,
    /// The staging tiles of one consumer: columns of a part, and stages.
    pub(super) staging: [u32; 2],
    m: Reg<u32>,
    n: Reg<u32>,
    /// C as tiles.
    pub(super) c: Map,
    /// C by elements, if it is not stored as tiles.
    elements: Option<Elements<T>>,
    scale: Scale,
    bias: Option<Bias<T>>,
    residual: Option<Residual<T>>,
}

/// Binds the arguments of the epilogue, for some columns of C.
pub(super) fn bind_args(
    step: Step,
    p: &Problem,
    c: &Config,
    inputs: &[TensorSpec],
    cols: &Span<u32>,
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
    residual::bind_args(step, p, inputs, before)
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
        let (ops, dtype) = (class.epilogue, class.out.dtype());
        let staging = c.outbox(class, &k.target());
        let out = match c.swap {
            false => boxes(class, dtype, staging[0], c.rows()),
            true => boxes(
                class,
                dtype,
                c.rows().min(128 / dtype.bytes() as u32),
                c.tile_m,
            ),
        };
        let elements = |name: &str| Elements::declare(k, name, [m, n], batch);
        Self {
            class: *class,
            config: *c,
            staging,
            m,
            n,
            c: k.tensor_map("c", out),
            elements: is_by_elements(class, c).then(|| elements("elements")),
            scale: Scale::declare(k, class),
            bias: ops.bias.then(|| Bias::declare(k, n)),
            residual: ops.residual.then(|| Residual(elements("residual"))),
        }
    }

    /// Loads the scales, once for a role.
    #[track_caller]
    pub(super) fn scales(&self) -> Scales {
        self.scale.load()
    }

    /// Loads the bias that the first part of a tile needs, before the mainloop: nothing waits for
    /// it then.
    #[track_caller]
    pub(super) fn prefetch(&self, at: Offset) -> BiasValues<T> {
        let Some(bias) = self.bias else {
            return BiasValues::None;
        };
        match self.config.swap {
            true => bias.rows(at, self.config.rows()),
            false => bias.cols(at, self.staging[0]),
        }
    }

    /// Applies all ops to accumulators, those of gate and up if there are two.
    #[track_caller]
    pub(super) fn apply(
        &self,
        accumulators: &[Frag],
        at: Offset,
        scales: Scales,
        bias: BiasValues<T>,
    ) -> Frag {
        let mut scaled = (accumulators.iter().zip(scales)).map(|(x, s)| scale::apply(x.clone(), s));
        let x = scaled.next().unwrap_or_else(|| Frag::zeros(64, 8));
        let x = bias.apply(x);
        let activation = self.class.epilogue.activation;
        let mut x = x.map(|x| activation.apply(x));
        if let Some(up) = scaled.next() {
            x = gate::apply(x, &up);
        }
        match &self.residual {
            None => x,
            Some(residual) => residual.apply(x, at, [self.m, self.n], self.config.swap),
        }
    }

    /// Applies the ops of a gate alone: scale and activation.
    #[track_caller]
    pub(super) fn gate(&self, x: Frag, scale: Option<Reg<f32>>) -> Frag {
        let activation = self.class.epilogue.activation;
        scale::apply(x, scale).map(|x| activation.apply(x))
    }
}
