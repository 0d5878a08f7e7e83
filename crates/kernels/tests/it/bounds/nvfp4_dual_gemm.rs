use super::assert_launches;
use warpline_kernels::nvfp4_dual_gemm::{Nvfp4DualGemm, Problem};

#[test]
fn nvfp4_gated_gemms_with_the_smallest_and_largest_extents() {
    for [m, n, k] in [
        [1, 8, 16],
        [1 << 29, 8, 16],
        [1, 1 << 29, 16],
        [1, 8, 1 << 29],
    ] {
        assert_launches::<Nvfp4DualGemm>(Problem::new(m, n, k));
    }
}
