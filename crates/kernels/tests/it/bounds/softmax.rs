use super::assert_legal_launches;
use warpline_kernels::softmax::{Softmax, SoftmaxOptions};
use warpline_kernels::{FloatType, rows};

#[test]
fn softmax_of_short_and_long_rows_keeps_the_declared_bounds() {
    let max_extent = u64::from(u32::MAX / 2);
    let lengths = (1..70).chain([
        1000, 4095, 4096, 4104, 20092, 65536, 131072, 262144, max_extent,
    ]);
    for cols in lengths {
        for rows in [0, 1, 5, (1 << 40) / cols] {
            for dtype in [FloatType::F32, FloatType::Bf16] {
                let problem = |stride: Option<i64>| {
                    let mut problem =
                        rows::Problem::dense(rows.min(max_extent), cols, dtype, SoftmaxOptions {});
                    problem.matrix.x_stride = stride;
                    problem
                };
                assert_legal_launches::<Softmax>(problem(None));
                if rows <= 5 {
                    assert_legal_launches::<Softmax>(problem(Some(i64::from(u32::MAX))));
                    assert_legal_launches::<Softmax>(problem(Some(i64::from(u32::MAX) - 15)));
                }
            }
        }
    }
}
