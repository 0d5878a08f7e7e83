use super::{assert_legal_launches, check_launches};
use warpline_kernels::FloatType;
use warpline_kernels::vector_add::{Choice, Problem, VectorAdd};

#[test]
fn vectors_up_to_the_maximum_length_keep_the_declared_bounds() {
    for n in [0, 1, 17, 1 << 20, (1 << 40) - 1, 1 << 40] {
        for dtype in [FloatType::F32, FloatType::F16] {
            assert_legal_launches::<VectorAdd>(Problem { n, dtype });
        }
    }
    let choice = Choice {
        warps: Some(1),
        ..Default::default()
    };
    let longest = Problem {
        n: 1 << 40,
        dtype: FloatType::F32,
    };
    let text = check_launches::<VectorAdd>(longest, &choice).unwrap_err();
    assert!(text.ends_with("help: use a larger --tile"), "{text}");
}
