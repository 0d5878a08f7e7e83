//! The benchmark: 16384 tokens of a model of width 2048, and 64 heads that share 8 heads of K and V.

use super::problem::Problem;

/// Batches and the length of each sequence.
const SEQUENCES: [(u32, u32); 6] = [
    (32, 512),
    (16, 1024),
    (8, 2048),
    (4, 4096),
    (2, 8192),
    (1, 16384),
];

/// Returns the problems of the suite `attention`.
pub(super) fn problems() -> Vec<(&'static str, Problem)> {
    let causal = |problem: Problem| [false, true].map(|causal| Problem { causal, ..problem });
    let of_width_2048 = [64, 128, 256].into_iter().flat_map(|dim| {
        SEQUENCES.map(|(batch, len)| Problem::new(batch, 2048 / dim, [len, len], dim))
    });
    let grouped = [2048, 8192].map(|len| Problem {
        kv_heads: Some(8),
        ..Problem::new(1, 64, [len, len], 128)
    });
    let problems = of_width_2048.chain(grouped).flat_map(causal);
    problems.map(|problem| ("attention", problem)).collect()
}
