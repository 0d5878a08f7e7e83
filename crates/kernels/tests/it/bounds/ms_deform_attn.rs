use super::check_launches;
use warpline_kernels::ms_deform_attn::{MsDeformAttn, Problem};

#[test]
fn the_smallest_and_largest_deformable_attentions_keep_the_declared_bounds() {
    let level = |height, width| [[height, width]];
    let problem = |batch, queries, heads, height, width| {
        Problem::new(batch, queries, heads, 4, &level(height, width))
    };
    for p in [
        problem(0, 0, 1, 1, 1),
        problem(0, 5, 1, 1, 1),
        problem(3, 0, 2, 7, 5),
        problem(1, 1, 1, 1, 1),
        problem(1, (1 << 31) - 1, 1, 3, 3),
        problem(1, 1, 1, 1 << 11, 1 << 11),
        problem(1, 1, 1 << 20, 1, 1),
        problem((1 << 31) - 1, 1, 1, 1, 1),
    ] {
        let outcome = check_launches::<MsDeformAttn>(p.clone(), &Default::default());
        if let Err(text) = outcome {
            // Only the grid size may be rejected; the kernel accepts every launch.
            assert!(
                text.contains("a grid counts less than 2147483648"),
                "{p:?}: {text}"
            );
        }
    }
}
