use super::{assert_legal_launches, check_launches};
use warpline_kernels::ms_deform_attn::{MsDeformAttn, Problem};

const POINTS: u32 = 4;

fn one_level(batch: u32, queries: u32, heads: u32, height: u32, width: u32) -> Problem {
    Problem::new(batch, queries, heads, POINTS, &[[height, width]])
}

#[test]
fn the_smallest_and_largest_deformable_attentions_keep_the_declared_bounds() {
    for problem in [
        one_level(0, 0, 1, 1, 1),
        one_level(0, 5, 1, 1, 1),
        one_level(3, 0, 2, 7, 5),
        one_level(1, 1, 1, 1, 1),
        one_level(1, (1 << 31) - 1, 1, 3, 3),
        one_level(1, 1, 1, 1 << 11, 1 << 11),
        one_level(1, 1, 1 << 20, 1, 1),
        one_level((1 << 31) - 1, 1, 1, 1, 1),
    ] {
        assert_legal_launches::<MsDeformAttn>(problem);
    }
}

#[test]
fn more_items_than_31_bits_can_count_are_rejected() {
    let problem = one_level(1 << 16, 1 << 15, 1, 1, 1);
    let text = check_launches::<MsDeformAttn>(problem, &Default::default()).unwrap_err();
    let rule = "batch · queries · heads must be less than 2147483648, not 2147483648";
    assert!(text.contains(rule), "{text}");
}
