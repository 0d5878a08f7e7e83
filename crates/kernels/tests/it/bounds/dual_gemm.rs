use super::assert_launches;
use super::gemm::EDGES;
use warpline_kernels::dual_gemm::{DualGemm, Problem};

#[test]
fn gated_gemms_with_the_smallest_and_largest_extents() {
    for [m, n, k] in EDGES {
        assert_launches::<DualGemm>(Problem::new(m, n, k));
    }
}
