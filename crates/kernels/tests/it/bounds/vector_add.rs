use super::{kept, launches};
use warpline_kernels::Float;
use warpline_kernels::vector_add::{Choice, Problem, VectorAdd};

#[test]
fn vectors_up_to_the_longest() {
    for n in [0, 1, 17, 1 << 20, (1 << 40) - 1, 1 << 40] {
        for dtype in [Float::F32, Float::F16] {
            kept::<VectorAdd>(Problem { n, dtype });
        }
    }
    let choice = Choice {
        warps: Some(1),
        ..Default::default()
    };
    let longest = Problem {
        n: 1 << 40,
        dtype: Float::F32,
    };
    let text = launches::<VectorAdd>(longest, &choice).unwrap_err();
    assert!(text.ends_with("choose a larger --tile"), "{text}");
}
