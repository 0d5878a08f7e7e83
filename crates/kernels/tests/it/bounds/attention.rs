use super::assert_legal_launches;
use warpline_kernels::attention::{Attention, Corner, Problem};

#[test]
fn the_smallest_and_largest_attention_keeps_the_declared_bounds() {
    for ([batch, heads], kv_heads, lens) in [
        ([1, 1], 1, [1, 0]),
        ([1, 1], 1, [1 << 24, 1 << 24]),
        ([1, 1 << 20], 1, [1, 1]),
        ([1 << 20, 1], 1, [64, 1]),
        ([1, 1 << 20], 1 << 20, [1, 4096]),
        ([3, 21], 7, [100_001, 5]),
    ] {
        for corner in [Corner::BottomRight, Corner::TopLeft] {
            assert_legal_launches::<Attention>(Problem {
                kv_heads: Some(kv_heads),
                causal: true,
                lse: true,
                corner,
                ..Problem::new(batch, heads, lens, 64)
            });
        }
    }
}
