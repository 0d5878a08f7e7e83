//! The declared bounds of shipped kernels hold for every valid problem: here for those at the
//! edges, one file for each family.

mod dual_gemm;
mod gemm;
mod ms_deform_attn;
mod nvfp4_dual_gemm;
mod softmax;
mod vector_add;

use warpline_kernels::{AnyWork, Bound, Family, Work};
use warpline_testkit::kernel::TARGET;

/// Plans a problem and checks the launch of every step.
fn launches<F: Family>(problem: F::Problem, choice: &F::Choice) -> Result<(), String>
where
    Work<F>: AnyWork,
{
    let target = TARGET;
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
