//! The workloads that a family declares: test cases, candidates and benchmarks.

use crate::erased::{AnyFamily, Workloads};
use crate::family::DeviceKind;
use crate::request::Request;
use warpline_ir::Target;

/// Returns all workloads of a family: the test table, the candidates for both default problems and
/// the benchmark problems. Many of them share a kernel.
pub fn workloads(family: &dyn AnyFamily, target: &Target) -> Workloads {
    let mut all: Vec<_> = family.cases(target).into_iter().collect::<Result<_, _>>()?;
    for device in [DeviceKind::Gpu, DeviceKind::Cpu] {
        all.extend(candidates(family, device, target)?);
    }
    all.extend(bench_workloads(family, target)?);
    Ok(all)
}

/// Returns the candidates for the default problem of a device kind, most promising first.
pub fn candidates(family: &dyn AnyFamily, device: DeviceKind, target: &Target) -> Workloads {
    family.candidates(&Request::default(), device, target)
}

/// Returns the benchmark workloads of all suites.
pub fn bench_workloads(family: &dyn AnyFamily, target: &Target) -> Workloads {
    let mut all = vec![];
    for suite in family.suites() {
        all.extend(family.bench(suite, target)?);
    }
    Ok(all)
}
