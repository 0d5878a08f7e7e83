//! The float64 reference.

use super::problem::{ElementType, Problem};
use crate::parallel;
use warpline_family::numbers::{add_row, dot, half_ulp};
use warpline_family::tensor::{HostTensor, UNTOUCHED};

/// The scores that the reference computes at most; above it, it skips rows.
const MAX_SCORES: u64 = 1 << 27;

/// Returns the value and tolerance of each element of O and of the logarithms.
pub(super) fn reference(p: &Problem, inputs: &[HostTensor]) -> Vec<Vec<(f64, f64)>> {
    let values: Vec<Vec<f64>> = inputs.iter().map(|x| x.values().collect()).collect();
    let rows = p.rows();
    let (heads, queries, dim) = (p.heads as usize, p.queries as usize, p.dim_v() as usize);
    let group = p.heads.checked_div(p.kv_heads()).unwrap_or(1).max(1) as usize;
    let all = p.batch as usize * heads * queries;
    let scores = all as u64 * u64::from(p.keys.max(1)) * u64::from(p.dim);
    let step = (scores / MAX_SCORES) as usize | 1;
    // One row of O and its logarithm after the other.
    let mut results = vec![(0.0, f64::INFINITY); all * (dim + 1)];
    parallel::fill(&mut results, dim + 1, |first, part| {
        for (i, result) in part.chunks_mut(dim + 1).enumerate() {
            let i = first + i;
            let (row, head, batch) = (i % queries, i / queries % heads, i / queries / heads);
            if i % step == 0 || p.visible_keys(row as u32) == 0 {
                let q = &values[0][rows[0].index([row, head, batch])..][..p.dim as usize];
                let key = |x: usize, j| {
                    &values[x][rows[x].index([j, head / group, batch])..][..rows[x].dim as usize]
                };
                row_of(p, row as u32, q, &key, result);
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

/// Computes a row of O and its logarithm.
///
/// P is rounded to 16 bits (half an ulp of its value), the exponents to f32, and the sums to f32.
fn row_of<'a>(
    p: &Problem,
    query: u32,
    q: &[f64],
    row: &dyn Fn(usize, usize) -> &'a [f64],
    result: &mut [(f64, f64)],
) {
    let visible = p.visible_keys(query) as usize;
    let score = |j| dot(row(1, j), q).0 * p.scale();
    let scores: Vec<f64> = (0..visible).map(score).collect();
    let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let dim = p.dim_v() as usize;
    if visible == 0 {
        result.fill((0.0, 0.0));
        result[dim] = (f64::NEG_INFINITY, 0.0);
        return;
    }
    let exponentials: Vec<f64> = scores.iter().map(|s| (s - max).exp()).collect();
    let sum: f64 = exponentials.iter().sum();
    // Half an ulp of a probability, and of one below the least normal number.
    let [rounding, underflow] = match p.dtype {
        ElementType::F16 => [-11, -25].map(|e| 2f64.powi(e)),
        ElementType::Bf16 => [2f64.powi(-8), 0.0],
    };
    // The error of an exponent: of the score, and of its product with the scale.
    let magnitude = scores.iter().fold(max.abs(), |m, s| m.max(s.abs()));
    let exponent = magnitude * 2f64.powi(-21) + 2f64.powi(-21);
    let mut values = vec![(0.0, 0.0); dim];
    for (j, x) in exponentials.iter().enumerate() {
        let error = (x * (rounding + exponent) + underflow) / sum;
        add_row(&mut values, row(2, j), x / sum, error);
    }
    for (out, (y, error)) in result.iter_mut().zip(values) {
        *out = (y, error + half_ulp(p.dtype.dtype(), y) * 1.01);
    }
    result[dim] = (
        max + sum.ln(),
        exponent * 2.0 + sum.ln().abs() * 2f64.powi(-21),
    );
}
