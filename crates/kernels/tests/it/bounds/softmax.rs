use super::kept;
use warpline_kernels::softmax::{Options, Softmax};
use warpline_kernels::{Float, rows};

#[test]
fn rows_of_every_length() {
    let most = u64::from(u32::MAX / 2);
    let lengths = (1..70).chain([1000, 4095, 4096, 4104, 20092, 65536, 131072, 262144, most]);
    for cols in lengths {
        for rows in [0, 1, 5, (1 << 40) / cols] {
            for dtype in [Float::F32, Float::Bf16] {
                let problem = |stride: Option<i64>| {
                    let mut problem = rows::Problem::dense(rows.min(most), cols, dtype, Options {});
                    problem.matrix.x_stride = stride;
                    problem
                };
                kept::<Softmax>(problem(None));
                if rows <= 5 {
                    kept::<Softmax>(problem(Some(i64::from(u32::MAX))));
                    kept::<Softmax>(problem(Some(i64::from(u32::MAX) - 15)));
                }
            }
        }
    }
}
