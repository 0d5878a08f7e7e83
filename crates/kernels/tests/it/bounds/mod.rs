//! The declared bounds of shipped kernels hold for valid problems at the edges of their extents; one
//! file per family.

mod attention;
mod dual_gemm;
mod gemm;
mod ms_deform_attn;
mod nvfp4_dual_gemm;
mod nvfp4_linear;
mod softmax;
mod vector_add;

use warpline_kernels::{AnyWorkload, BufferAddresses, Family, Workload};
use warpline_testkit::kernel::TARGET;

/// Plans a problem and checks the declared bounds of every launch.
fn check_launches<F: Family>(problem: F::Problem, choice: &F::Choice) -> Result<(), String>
where
    Workload<F>: AnyWorkload,
{
    let target = TARGET;
    let work = Workload::<F>::new(problem, choice, &target).map_err(|e| e.to_string())?;
    let plan = work.plan(&target).map_err(|e| e.to_string())?;
    let bound = BufferAddresses {
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

/// Checks that the launches of a problem keep the declared bounds.
fn assert_legal_launches<F: Family>(problem: F::Problem)
where
    Workload<F>: AnyWorkload,
{
    let name = format!("{problem:?}");
    if let Err(text) = check_launches::<F>(problem, &F::Choice::default()) {
        panic!("{name}: {text}");
    }
}
