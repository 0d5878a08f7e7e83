use super::{kept, launches};
use warpline_kernels::Float;
use warpline_kernels::gemm::{Factor, Gemm, Problem};

/// Extents at the edges.
pub(super) const EDGES: [[u32; 3]; 6] = [
    [1, 8, 0],
    [1, 8, 8],
    [1 << 30, 8, 8],
    [1, 1 << 30, 8],
    [1, 8, 1 << 30],
    [1 << 18, 1 << 18, 64],
];

#[test]
fn products_of_every_side() {
    for [m, n, k] in EDGES {
        for dtype in [Factor::Bf16, Factor::F16] {
            kept::<Gemm>(Problem::new(m, n, k, dtype));
        }
    }
    let batched = Problem {
        batch: Some(1 << 20),
        residual: true,
        ..Problem::new(64, 64, 64, Factor::Bf16)
    };
    kept::<Gemm>(batched);
}

#[test]
fn strides_that_no_register_holds_are_rejected_early() {
    let wide = |out, residual| Problem {
        out: Some(out),
        residual,
        c_stride: Some(1 << 33),
        ..Problem::new(1, 16, 16, Factor::Bf16)
    };
    kept::<Gemm>(wide(Float::Bf16, false));
    for (out, residual) in [(Float::F32, false), (Float::Bf16, true)] {
        let text = launches::<Gemm>(wide(out, residual), &Default::default()).unwrap_err();
        assert!(
            text.contains("-stride is at most 4294967295, not 8589934592"),
            "{text}"
        );
    }
}
