//! The bias: a value that is added to each score.
//!
//! Consumers load it from global memory while the tensor cores multiply Q and K. Any dimension can be
//! broadcast: its stride is 0.

use super::problem::{AddendType, Problem};
use half::{bf16, f16};
use serde_json::Value as Json;
use warpline_family::error::FamilyError;
use warpline_family::field::{FieldKind, FieldValue};
use warpline_family::op::TensorView;
use warpline_family::plan::{Address, LaunchStep};
use warpline_family::tensor::TensorSpec;
use warpline_ir::builder::*;
use warpline_ir::{Bf16x2, F16x2};

/// The strides of keys, queries, heads and batches of a bias, in elements; 0 broadcasts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BiasStrides {
    /// From one key to the next.
    pub key: u64,
    /// From one query to the next.
    pub row: u64,
    /// From one head to the next.
    pub head: u64,
    /// From one batch to the next.
    pub batch: u64,
}

impl BiasStrides {
    fn all(self) -> [u64; 4] {
        [self.key, self.row, self.head, self.batch]
    }
}

impl FieldValue for BiasStrides {
    fn kind() -> FieldKind {
        FieldKind::Number {
            unit: "KEY,ROW,HEAD,BATCH",
        }
    }
    fn read(text: &str) -> Result<Self, String> {
        let numbers: Option<Vec<u64>> = text.split(',').map(|x| x.trim().parse().ok()).collect();
        match numbers.as_deref() {
            Some(&[key, row, head, batch]) => Ok(Self {
                key,
                row,
                head,
                batch,
            }),
            _ => Err("four whole numbers with commas: key, row, head and batch".to_owned()),
        }
    }
    fn json(&self) -> Json {
        let [key, row, head, batch] = self.all();
        format!("{key},{row},{head},{batch}").into()
    }
}

/// The part of a bias that is compiled in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct BiasClass {
    ty: AddendType,
    /// Whether the biases of two neighboring keys are loaded at once.
    pairs: bool,
}

impl BiasClass {
    /// Returns the registers that hold the bias of `keys` keys and two queries.
    pub(super) fn registers(self, keys: u32) -> u32 {
        match (self.ty, self.pairs) {
            (AddendType::Bf16 | AddendType::F16, true) => keys / 4,
            _ => keys / 2,
        }
    }
}

/// The maximum number of elements of a bias.
const MAX_ELEMENTS: u64 = 1 << 38;

impl Problem {
    fn bias_extents(&self) -> [u64; 4] {
        [self.keys, self.queries, self.heads, self.batch].map(u64::from)
    }

    /// Returns the strides of the bias.
    pub(super) fn bias_strides(&self) -> BiasStrides {
        let [keys, queries, heads, _] = self.bias_extents();
        self.bias_strides.unwrap_or(BiasStrides {
            key: 1,
            row: keys,
            head: queries * keys,
            batch: heads.saturating_mul(queries * keys),
        })
    }

    fn bias_elements(&self) -> u64 {
        let extents = self.bias_extents();
        if extents.contains(&0) {
            return 0;
        }
        let strides = self.bias_strides().all();
        let reach = extents.iter().zip(strides);
        reach.fold(1, |sum, (extent, stride)| {
            (extent - 1).saturating_mul(stride).saturating_add(sum)
        })
    }

    /// Returns the index of the bias of a key, query, head and batch.
    pub(super) fn bias_index(&self, at: [usize; 4]) -> usize {
        let strides = self.bias_strides().all();
        at.iter().zip(strides).map(|(i, by)| i * by as usize).sum()
    }

    pub(super) fn bias_class(&self) -> Option<BiasClass> {
        let BiasStrides {
            key,
            row,
            head,
            batch,
        } = self.bias_strides();
        let is_even = |n: &u64| n.is_multiple_of(2);
        let keys = u64::from(self.keys);
        self.bias.map(|ty| BiasClass {
            ty,
            pairs: key == 1 && [keys, row, head, batch].iter().all(is_even),
        })
    }

    /// Returns whether the kernel loads the biases of two keys at once.
    pub(super) fn loads_pairs_of_biases(&self) -> bool {
        self.bias_class().is_some_and(|class| class.pairs)
    }

    /// Returns the bias as a tensor of `[batch, heads, queries, keys]`; a broadcast dimension has length 1.
    pub(super) fn bias_view(&self) -> Option<TensorView> {
        let (extents, strides) = (self.bias_extents(), self.bias_strides().all());
        let shape = [3, 2, 1, 0].map(|i| if strides[i] == 0 { 1 } else { extents[i] });
        self.bias.map(|ty| TensorView {
            strides: [3, 2, 1, 0].map(|i| strides[i] as i64).to_vec(),
            ..TensorView::dense(ty.dtype(), &shape, 0)
        })
    }

    /// Returns the tensor of the bias.
    pub(super) fn bias_spec(&self) -> Option<TensorSpec> {
        let is_dense = self.bias_strides.is_none();
        let [keys, queries, heads, batch] = self.bias_extents();
        self.bias.map(|ty| match is_dense {
            true => TensorSpec::new("bias", ty.dtype(), &[batch, heads, queries, keys]),
            false => TensorSpec::new("bias", ty.dtype(), &[self.bias_elements()]),
        })
    }

    pub(super) fn check_bias(&self) -> Result<(), FamilyError> {
        if self.bias.is_none() && self.bias_strides.is_some() {
            return Err(FamilyError::Problem(
                "--bias-strides needs --bias with the element type of the bias".into(),
            ));
        }
        if self.bias.is_some() && self.bias_elements() > MAX_ELEMENTS {
            return Err(FamilyError::Problem(format!(
                "bias has more than {MAX_ELEMENTS} elements"
            )));
        }
        Ok(())
    }
}

/// The bias in memory.
#[derive(Clone, Copy)]
pub(super) struct Bias {
    values: Values,
    pairs: bool,
    /// The strides of keys, queries, heads and batches.
    strides: [Reg<u64>; 4],
    /// The last key whose bias, or pair of biases, is loaded.
    last_key: Reg<u32>,
    last_query: Reg<u32>,
}

/// Values in global memory that are widened to f32.
#[derive(Clone, Copy)]
pub(super) enum Values {
    F32(Global<f32>),
    Bf16(Global<bf16>),
    F16(Global<f16>),
}

/// One value, or two neighboring ones, as loaded.
#[derive(Clone, Copy)]
enum Loaded {
    F32([Reg<f32>; 2]),
    Bf16(Reg<Bf16x2>),
    F16(Reg<F16x2>),
}

/// The biases of the scores that a thread holds.
pub(super) struct BiasPart(Vec<Loaded>);

/// The names of the strides' parameters.
const STRIDES: [&str; 4] = ["bias_key", "bias_row", "bias_head", "bias_batch"];

impl Values {
    pub(super) fn declare(k: Builder, name: &str, ty: AddendType) -> Self {
        match ty {
            AddendType::F32 => Self::F32(k.pointer(name)),
            AddendType::Bf16 => Self::Bf16(k.pointer(name)),
            AddendType::F16 => Self::F16(k.pointer(name)),
        }
    }

    pub(super) fn load(self, i: impl ElementIndex) -> Reg<f32> {
        match self {
            Self::F32(values) => values.load(i),
            Self::Bf16(values) => values.load(i).cast(),
            Self::F16(values) => values.load(i).cast(),
        }
    }

    fn load_pair(self, i: impl ElementIndex) -> Loaded {
        match self {
            Self::F32(values) => Loaded::F32(values.load_vec(i)),
            Self::Bf16(values) => {
                let [pair] = values.load_as(i);
                Loaded::Bf16(pair)
            }
            Self::F16(values) => {
                let [pair] = values.load_as(i);
                Loaded::F16(pair)
            }
        }
    }

    fn offset(self, i: Reg<u64>) -> Self {
        match self {
            Self::F32(values) => Self::F32(values.offset(i)),
            Self::Bf16(values) => Self::Bf16(values.offset(i)),
            Self::F16(values) => Self::F16(values.offset(i)),
        }
    }
}

impl Loaded {
    fn widen(self) -> [Reg<f32>; 2] {
        match self {
            Self::F32(pair) => pair,
            Self::Bf16(pair) => pair.widen(),
            Self::F16(pair) => pair.widen(),
        }
    }
}

impl Bias {
    pub(super) fn declare(k: Builder, class: BiasClass, [queries, keys]: [Reg<u32>; 2]) -> Self {
        let step = if class.pairs { 2 } else { 1 };
        Self {
            values: Values::declare(k, "bias", class.ty),
            pairs: class.pairs,
            strides: STRIDES.map(|name| k.param(name)),
            // Without keys, the masked block loads the first ones of a row of zeros.
            last_key: keys.max(step) - step,
            last_query: queries - 1,
        }
    }

    /// Binds the parameters; `zeros` replaces a bias without elements.
    pub(super) fn bind(
        mut step: LaunchStep,
        p: &Problem,
        bias: Address,
        zeros: Address,
    ) -> LaunchStep {
        let is_empty = p.bias_elements() == 0;
        for (name, stride) in STRIDES.into_iter().zip(p.bias_strides().all()) {
            step = step.scalar(name, if is_empty { 0 } else { stride });
        }
        step.pointer("bias", if is_empty { zeros } else { bias })
    }

    /// Loads the biases of 64 queries from `query` on and `keys` keys from `key` on, for the scores that
    /// a thread holds. Keys and queries beyond the last ones have the bias of the last ones.
    pub(super) fn load(
        &self,
        [batch, head]: [Reg<u32>; 2],
        query: Reg<u32>,
        (key, keys): (Reg<u32>, u32),
    ) -> BiasPart {
        let [by_key, by_row, by_head, by_batch] = self.strides;
        let at = |i: Reg<u32>, stride: Reg<u64>| i.cast::<u64>() * stride;
        let first = at(batch, by_batch) + at(head, by_head);
        let mut loaded = Vec::new();
        Frag::zeros(super::context::ROWS, keys).each_pair(|cell, _| {
            let query = (query + cell.row).min(self.last_query);
            let values = self.values.offset(first + at(query, by_row));
            let key = |i: u32| (key + cell.col + i).min(self.last_key);
            loaded.push(match self.pairs {
                true => values.load_pair(key(0)),
                false => Loaded::F32([0, 1].map(|i| values.load(at(key(i), by_key)))),
            });
        });
        BiasPart(loaded)
    }
}

impl BiasPart {
    /// Returns `scale · scores + log₂ e · bias`.
    pub(super) fn add(&self, scores: Frag, scale: Reg<f32>) -> Frag {
        let mut loaded = self.0.iter();
        scores.map_pairs(|_, scores| {
            let Some(biases) = loaded.next() else {
                return scores;
            };
            let [x, y] = biases.widen();
            [(scores[0], x), (scores[1], y)]
                .map(|(score, bias)| score.fma(scale, bias * std::f32::consts::LOG2_E))
        })
    }
}
