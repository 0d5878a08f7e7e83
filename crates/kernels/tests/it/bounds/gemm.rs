use super::{assert_legal_launches, check_launches};
use warpline_kernels::FloatType;
use warpline_kernels::gemm::{Gemm, OperandType, Problem};

/// Smallest and largest extents.
pub(super) const EDGES: [[u32; 3]; 6] = [
    [1, 8, 0],
    [1, 8, 8],
    [1 << 30, 8, 8],
    [1, 1 << 30, 8],
    [1, 8, 1 << 30],
    [1 << 18, 1 << 18, 64],
];

#[test]
fn the_smallest_and_largest_gemms_keep_the_declared_bounds() {
    for [m, n, k] in EDGES {
        for dtype in [OperandType::Bf16, OperandType::F16] {
            assert_legal_launches::<Gemm>(Problem::new(m, n, k, dtype));
        }
    }
    let batched = Problem {
        batch: Some(1 << 20),
        residual: true,
        ..Problem::new(64, 64, 64, OperandType::Bf16)
    };
    assert_legal_launches::<Gemm>(batched);
}

#[test]
fn row_strides_above_32_bits_are_rejected_where_elements_are_addressed() {
    let wide = |out, residual| Problem {
        out: Some(out),
        residual,
        c_stride: Some(1 << 33),
        ..Problem::new(1, 16, 16, OperandType::Bf16)
    };
    assert_legal_launches::<Gemm>(wide(FloatType::Bf16, false));
    for (out, residual) in [(FloatType::F32, false), (FloatType::Bf16, true)] {
        let text = check_launches::<Gemm>(wide(out, residual), &Default::default()).unwrap_err();
        assert!(
            text.contains(
                "-stride is 8589934592; it must be at most 4294967295 (the kernel addresses "
            ),
            "{text}"
        );
    }
}
