use super::assert_legal_launches;
use warpline_kernels::nvfp4_dual_gemm::{Nvfp4DualGemm, Problem};

#[test]
fn the_smallest_and_largest_nvfp4_gated_gemms_keep_the_declared_bounds() {
    for [m, n, k] in [
        [1, 8, 16],
        [1 << 29, 8, 16],
        [1, 1 << 29, 16],
        [1, 8, 1 << 29],
    ] {
        assert_legal_launches::<Nvfp4DualGemm>(Problem::new(m, n, k));
    }
}
