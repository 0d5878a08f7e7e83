//! Random problems of the documented domain.

use super::bias::BiasStrides;
use super::problem::{AddendType, Corner, ElementType, KeyLens, MAX_DIM, MAX_LEN, Problem};
use super::rows::Strides;
use warpline_family::numbers::Random;

/// The maximum elements of a drawn tensor with dense rows.
const MAX_ELEMENTS: u64 = 1 << 35;

/// Draws any extents, masks and layouts.
pub(super) fn draw(random: &mut Random) -> Problem {
    let kv_heads = random.extent(1..=64) as u32;
    let heads = kv_heads * random.pick(&[1, 2, 4, 7]);
    let batch = random.extent(1..=64) as u32;
    let mut draw_dim = || match random.percent(60) {
        true => random.pick(&[64, 128, 96, 192, 256]),
        false => 8 * random.extent(1..=u64::from(MAX_DIM / 8)) as u32,
    };
    let [dim, dim_v] = [draw_dim(), draw_dim()];
    let max_len = MAX_ELEMENTS / u64::from(dim.max(dim_v)) / u64::from(batch * heads);
    let mut extent = || random.extent(0..=max_len.min(MAX_LEN.into())) as u32;
    let lens = [extent(), extent()];
    let problem = Problem {
        dim_v: random.percent(30).then_some(dim_v),
        kv_heads: random.percent(70).then_some(kv_heads),
        dtype: random.pick(ElementType::ALL),
        causal: random.percent(50),
        corner: random.pick(Corner::ALL),
        window_left: random
            .percent(20)
            .then(|| random.extent(0..=1 << 14) as u32),
        window_right: random
            .percent(20)
            .then(|| random.extent(0..=1 << 14) as u32),
        scale: (random.percent(30)).then(|| random.pick(&[1.0, 0.01, 3e4])),
        softcap: random.percent(10).then(|| random.pick(&[0.1, 50.0])),
        sink: random.percent(10).then(|| random.pick(AddendType::ALL)),
        bias: random.percent(20).then(|| random.pick(AddendType::ALL)),
        lse: random.percent(50),
        ..Problem::new(batch, heads, lens, dim)
    };
    let problem = match random.percent(30) {
        true => with_sequences(problem, random),
        false => problem,
    };
    let mut strides = |[len, heads, dim]: [u32; 3]| {
        let [len, heads, dim] = [len.max(1), heads, dim].map(u64::from);
        let pad = 8 * random.extent(0..=4);
        let (row, head) = match random.percent(50) {
            true => (heads * dim + pad, dim),
            false => (dim + pad, (dim + pad) * len),
        };
        let batch = len * heads * (dim + pad);
        random.percent(40).then_some(Strides { row, head, batch })
    };
    let (queries, keys) = (problem.queries, problem.page.unwrap_or(problem.keys));
    let (kv_heads, dim_v) = (problem.kv_heads(), problem.dim_v());
    let problem = Problem {
        q_strides: strides([queries, heads, dim]),
        k_strides: strides([keys, kv_heads, dim]),
        v_strides: strides([keys, kv_heads, dim_v]),
        o_strides: strides([queries, heads, dim_v]),
        ..problem
    };
    let bias_strides = problem.bias.and_then(|_| bias_strides(&problem, random));
    let problem = Problem {
        bias_strides,
        ..problem
    };
    match problem.check_bias() {
        Ok(()) => problem,
        // The bias is too large.
        Err(_) => Problem {
            bias: None,
            bias_strides: None,
            ..problem
        },
    }
}

/// Returns the problem with packed sequences, lengths of keys or pages.
fn with_sequences(p: Problem, random: &mut Random) -> Problem {
    let mut p = Problem {
        bias: None,
        packed_queries: random.percent(50),
        ..p
    };
    match random.percent(50) {
        true => {
            let page = random.pick(&[8, 16, 24, 64, 256]);
            p.page = Some(page);
            p.max_pages = Some(random.extent(1..=u64::from(MAX_LEN / page)) as u32);
            p.keys = p.keys / page * page;
            p.key_lens = Some(random.pick(KeyLens::ALL));
        }
        false if random.percent(50) => p.packed_keys = true,
        false => p.key_lens = Some(KeyLens::Lengths),
    }
    p
}

/// Draws the strides of a bias: a dense one, or one whose dimensions may be broadcast or padded.
fn bias_strides(p: &Problem, random: &mut Random) -> Option<BiasStrides> {
    let mut next = 1;
    let mut stride = |extent: u32| {
        let stride = if random.percent(40) { 0 } else { next };
        next = stride.max(1) * (u64::from(extent) + random.extent(0..=3));
        stride
    };
    let [key, row, head, batch] = [p.keys, p.queries, p.heads, p.batch].map(&mut stride);
    let strides = BiasStrides {
        key,
        row,
        head,
        batch,
    };
    random.percent(50).then_some(strides)
}
