use super::assert_legal_launches;
use super::gemm::EDGES;
use warpline_kernels::dual_gemm::{DualGemm, Problem};

#[test]
fn the_smallest_and_largest_gated_gemms_keep_the_declared_bounds() {
    for [m, n, k] in EDGES {
        assert_legal_launches::<DualGemm>(Problem::new(m, n, k));
    }
}
