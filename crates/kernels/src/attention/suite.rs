//! The benchmark: 16384 tokens of a model of width 2048, in batches of equal and of different lengths; 64 heads
//! that share 8 heads of K and V; and decoding from a cache with pages.

use super::problem::{KeyLens, Problem};

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
    let packed = [64, 128].map(|dim| Problem {
        packed_queries: true,
        packed_keys: true,
        ..Problem::new(8, 2048 / dim, [16384, 16384], dim)
    });
    let problems = of_width_2048.chain(grouped).chain(packed).flat_map(causal);
    let decoding = [1, 4, 16, 64].map(decoding);
    let problems = problems.chain(decoding);
    problems.map(|problem| ("attention", problem)).collect()
}

/// Returns the problem of one new token for each sequence of a batch, with 8192 keys each.
fn decoding(batch: u32) -> Problem {
    let (page, pages) = (64, 128);
    Problem {
        kv_heads: Some(8),
        key_lens: Some(KeyLens::Lengths),
        page: Some(page),
        max_pages: Some(pages),
        ..Problem::new(batch, 32, [1, batch * pages * page], 128)
    }
}
