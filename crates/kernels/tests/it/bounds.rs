//! The declared bounds of shipped kernels hold for every valid problem: here for those at the edges.

use warpline_ir::Target;
use warpline_kernels::dual_gemm::{self, DualGemm};
use warpline_kernels::gemm::{self, Factor, Gemm};
use warpline_kernels::ms_deform_attn::{self, MsDeformAttn};
use warpline_kernels::nvfp4_dual_gemm::{self, Nvfp4DualGemm};
use warpline_kernels::softmax::{self, Softmax};
use warpline_kernels::vector_add::{self, VectorAdd};
use warpline_kernels::{AnyWork, Bound, Family, Float, Work, rows};

/// Plans a problem and checks the launch of every step.
fn launches<F: Family>(problem: F::Problem, choice: &F::Choice) -> Result<(), String>
where
    Work<F>: AnyWork,
{
    let target = Target::SM_90A;
    let work = Work::<F>::new(problem, choice, &target).map_err(|e| e.to_string())?;
    let plan = work.plan(&target).map_err(|e| e.to_string())?;
    let bound = Bound {
        inputs: vec![1 << 20; 12],
        outputs: vec![1 << 20; 2],
        workspace: 1 << 20,
    };
    for step in &plan.steps {
        let launch = step.launch(&bound).check(&step.kernel);
        launch.map_err(|fault| format!("{}: {}", step.kernel.name, fault.text))?;
    }
    Ok(())
}

fn kept<F: Family>(problem: F::Problem)
where
    Work<F>: AnyWork,
{
    let name = format!("{problem:?}");
    if let Err(text) = launches::<F>(problem, &F::Choice::default()) {
        panic!("{name}: {text}");
    }
}

#[test]
fn rows_of_every_length() {
    let most = u64::from(u32::MAX / 2);
    let lengths = (1..70).chain([1000, 4095, 4096, 4104, 20092, 65536, 131072, 262144, most]);
    for cols in lengths {
        for rows in [0, 1, 5, (1 << 40) / cols] {
            for dtype in [Float::F32, Float::Bf16] {
                let problem = |stride: Option<i64>| {
                    let mut problem =
                        rows::Problem::dense(rows.min(most), cols, dtype, softmax::Options {});
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

#[test]
fn vectors_up_to_the_longest() {
    for n in [0, 1, 17, 1 << 20, (1 << 40) - 1, 1 << 40] {
        for dtype in [Float::F32, Float::F16] {
            kept::<VectorAdd>(vector_add::Problem { n, dtype });
        }
    }
    let choice = vector_add::Choice {
        warps: Some(1),
        ..Default::default()
    };
    let longest = vector_add::Problem {
        n: 1 << 40,
        dtype: Float::F32,
    };
    let text = launches::<VectorAdd>(longest, &choice).unwrap_err();
    assert!(text.ends_with("choose a larger --tile"), "{text}");
}

#[test]
fn products_of_every_side() {
    let most = 1 << 30;
    for [m, n, k] in [
        [1, 8, 0],
        [1, 8, 8],
        [most, 8, 8],
        [1, most, 8],
        [1, 8, most],
        [1 << 18, 1 << 18, 64],
    ] {
        for dtype in [Factor::Bf16, Factor::F16] {
            kept::<Gemm>(gemm::Problem::new(m, n, k, dtype));
        }
        kept::<DualGemm>(dual_gemm::Problem::new(m, n.max(8), k));
    }
    for [m, n, k] in [
        [1, 8, 16],
        [1 << 29, 8, 16],
        [1, 1 << 29, 16],
        [1, 8, 1 << 29],
    ] {
        kept::<Nvfp4DualGemm>(nvfp4_dual_gemm::Problem::new(m, n, k));
    }
    let batched = gemm::Problem {
        batch: Some(1 << 20),
        residual: true,
        ..gemm::Problem::new(64, 64, 64, Factor::Bf16)
    };
    kept::<Gemm>(batched);
}

#[test]
fn strides_that_no_register_holds_are_rejected_early() {
    let wide = |out, residual| gemm::Problem {
        out: Some(out),
        residual,
        c_stride: Some(1 << 33),
        ..gemm::Problem::new(1, 16, 16, Factor::Bf16)
    };
    kept::<Gemm>(wide(Float::Bf16, false));
    for (out, residual) in [(Float::F32, false), (Float::Bf16, true)] {
        let text = launches::<Gemm>(wide(out, residual), &Default::default()).unwrap_err();
        assert!(
            text.contains("-stride is at most 4294967295, not 8589934592"),
            "{text}"
        );
    }
}

#[test]
fn deformable_attention_of_every_extent() {
    let level = |height, width| [[height, width]];
    let problem = |batch, queries, heads, height, width| {
        ms_deform_attn::Problem::new(batch, queries, heads, 4, &level(height, width))
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
        let outcome = launches::<MsDeformAttn>(p.clone(), &Default::default());
        if let Err(text) = outcome {
            // The grid may refuse to count so many parts; a kernel refuses no launch.
            assert!(
                text.contains("a grid counts less than 2147483648"),
                "{p:?}: {text}"
            );
        }
    }
}
