//! Random problems of the documented domain.

use super::problem::{Corner, ElementType, MAX_DIM, MAX_LEN, Problem, Strides};
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
        scale: (random.percent(30)).then(|| random.pick(&[1.0, 0.01, 3e4])),
        lse: random.percent(50),
        ..Problem::new(batch, heads, lens, dim)
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
    let (queries, keys) = (problem.queries, problem.keys);
    let (kv_heads, dim_v) = (problem.kv_heads(), problem.dim_v());
    Problem {
        q_strides: strides([queries, heads, dim]),
        k_strides: strides([keys, kv_heads, dim]),
        v_strides: strides([keys, kv_heads, dim_v]),
        o_strides: strides([queries, heads, dim_v]),
        ..problem
    }
}
