use super::gemm::EDGES;
use super::kept;
use warpline_kernels::dual_gemm::{DualGemm, Problem};

#[test]
fn gated_products_of_every_side() {
    for [m, n, k] in EDGES {
        kept::<DualGemm>(Problem::new(m, n, k));
    }
}
