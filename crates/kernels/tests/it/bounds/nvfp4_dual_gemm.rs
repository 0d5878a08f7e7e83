use super::kept;
use warpline_kernels::nvfp4_dual_gemm::{Nvfp4DualGemm, Problem};

#[test]
fn gated_products_of_nvfp4_of_every_side() {
    for [m, n, k] in [
        [1, 8, 16],
        [1 << 29, 8, 16],
        [1, 1 << 29, 16],
        [1, 8, 1 << 29],
    ] {
        kept::<Nvfp4DualGemm>(Problem::new(m, n, k));
    }
}
