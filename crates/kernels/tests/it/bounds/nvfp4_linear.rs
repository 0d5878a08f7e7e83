use super::assert_legal_launches;
use warpline_kernels::nvfp4_linear::{Nvfp4Linear, Problem};

#[test]
fn the_smallest_and_largest_nvfp4_layers_keep_the_declared_bounds() {
    for [m, n, k] in [
        [1, 8, 16],
        [1 << 29, 8, 16],
        [1, 1 << 29, 16],
        [1, 8, 1 << 29],
    ] {
        let problem = Problem {
            bias: true,
            ..Problem::new(m, n, k)
        };
        assert_legal_launches::<Nvfp4Linear>(problem);
    }
}
