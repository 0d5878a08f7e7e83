//! The float64 reference.

use super::problem::{ElementType, Problem};
use super::sequence_values::SequenceTables;
use crate::parallel;
use std::ops::Range;
use warpline_family::numbers::{add_row, dot, half_ulp};
use warpline_family::tensor::{HostTensor, UNTOUCHED};

/// The products that the reference computes at most; above it, it skips rows.
const MAX_PRODUCTS: u64 = 1 << 27;

/// Returns the value and tolerance of each element of O and of the logarithms.
pub(super) fn reference(p: &Problem, inputs: &[HostTensor]) -> Vec<Vec<(f64, f64)>> {
    let values: Vec<Vec<f64>> = inputs.iter().map(|x| x.values().collect()).collect();
    let specs = p.inputs();
    let named = |name: &str| {
        let input = specs.iter().position(|spec| spec.name == name);
        input.map(|i| &values[i])
    };
    let (sinks, biases) = (named("sink"), named("bias"));
    let rows = p.rows();
    let (heads, queries, dim) = (p.heads as usize, p.queries as usize, p.dim_v() as usize);
    let group = p.heads.checked_div(p.kv_heads()).unwrap_or(1).max(1) as usize;
    let all = rows[3].rows() as usize;
    let [_, keys] = p.typical_extents();
    let products = all as u64 * u64::from(keys.max(1)) * u64::from(p.dim);
    let step = (products / MAX_PRODUCTS) as usize | 1;
    let tables = SequenceTables::read(p, inputs);
    // One row of O and its logarithm after the other.
    let mut results = vec![(0.0, f64::INFINITY); all * (dim + 1)];
    parallel::fill(&mut results, dim + 1, |first, part| {
        for (i, result) in part.chunks_mut(dim + 1).enumerate() {
            let i = first + i;
            let (row, head, batch) = (i % queries, i / queries % heads, i / queries / heads);
            let Some((sequence, query)) = tables.query(p, row, batch) else {
                result.fill(UNTOUCHED);
                continue;
            };
            let extents = [sequence.queries, sequence.keys].map(|x| x as u32);
            let visible = p.mask(extents).visible(query, extents[1]);
            if i % step == 0 || visible.is_empty() {
                let q = &values[0][rows[0].index([row, head, batch])..][..p.dim as usize];
                let key = |x: usize, j| {
                    let [row, outer] = tables.key(p, sequence, j);
                    &values[x][rows[x].index([row, head / group, outer])..][..rows[x].dim as usize]
                };
                let row = Row {
                    visible,
                    q,
                    key: &key,
                    bias: &|j| biases.map_or(0.0, |bias| bias[p.bias_index([j, row, head, batch])]),
                    sink: sinks.map(|sink| sink[head]),
                };
                row_of(p, &row, result);
            }
        }
    });
    let mut o = vec![UNTOUCHED; rows[3].elements() as usize];
    let mut lse = Vec::new();
    for (i, result) in results.chunks(dim + 1).enumerate() {
        let at = [i % queries, i / queries % heads, i / queries / heads];
        o[rows[3].index(at)..][..dim].copy_from_slice(&result[..dim]);
        lse.push(result[dim]);
    }
    match p.lse {
        true => vec![o, lse],
        false => vec![o],
    }
}

/// A query and what it attends to.
struct Row<'a> {
    /// The keys that it sees.
    visible: Range<u32>,
    q: &'a [f64],
    /// Returns row `j` of K (1) or V (2).
    key: &'a dyn Fn(usize, usize) -> &'a [f64],
    bias: &'a dyn Fn(usize) -> f64,
    sink: Option<f64>,
}

/// Computes a row of O and its logarithm.
///
/// P is rounded to 16 bits (half an ulp of its value), the exponents to f32, and the sums to f32.
fn row_of(p: &Problem, row: &Row<'_>, result: &mut [(f64, f64)]) {
    let visible = row.visible.clone();
    let capped = |score: f64| match p.softcap {
        None => score,
        Some(cap) => f64::from(cap) * (score / f64::from(cap)).tanh(),
    };
    let product = |j: u32| dot((row.key)(1, j as usize), row.q).0 * p.scale();
    let products: Vec<f64> = visible.clone().map(product).collect();
    let score = |(j, &s): (u32, &f64)| capped(s) + (row.bias)(j as usize);
    let scores: Vec<f64> = visible.clone().zip(&products).map(score).collect();
    let max = scores.iter().copied().chain(row.sink);
    let max = max.fold(f64::NEG_INFINITY, f64::max);
    let dim = p.dim_v() as usize;
    if max == f64::NEG_INFINITY {
        result.fill((0.0, 0.0));
        result[dim] = (f64::NEG_INFINITY, 0.0);
        return;
    }
    let exponentials: Vec<f64> = scores.iter().map(|s| (s - max).exp()).collect();
    let sink = row.sink.map_or(0.0, |sink| (sink - max).exp());
    let sum = exponentials.iter().sum::<f64>() + sink;
    // Half an ulp of a probability, and of one below the least normal number.
    let [rounding, underflow] = match p.dtype {
        ElementType::F16 => [-11, -25].map(|e| 2f64.powi(e)),
        ElementType::Bf16 => [2f64.powi(-8), 0.0],
    };
    // The error of an exponent: of the product, of its part with the bias, and of the scale. tanh has the
    // absolute error of some rounding steps near 1.
    let largest = |m: f64, x: &f64| if x.is_finite() { m.max(x.abs()) } else { m };
    let magnitude = products.iter().chain(&scores).chain(&row.sink);
    let magnitude = magnitude.fold(0.0, largest);
    let softcap = p.softcap.map_or(0.0, |cap| f64::from(cap) * 2f64.powi(-21));
    let exponent = magnitude * 2f64.powi(-21) + 2f64.powi(-21) + softcap;
    let mut values = vec![(0.0, 0.0); dim];
    for (j, x) in visible.zip(&exponentials) {
        let error = (x * (rounding + exponent) + underflow) / sum;
        add_row(&mut values, (row.key)(2, j as usize), x / sum, error);
    }
    for (out, (y, error)) in result.iter_mut().zip(values) {
        *out = (y, error + half_ulp(p.dtype.dtype(), y) * 1.01);
    }
    result[dim] = (
        max + sum.ln(),
        exponent * 2.0 + sum.ln().abs() * 2f64.powi(-21),
    );
}
