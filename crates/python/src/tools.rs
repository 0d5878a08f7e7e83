//! Tools for kernel authors: check, emit, families, devices.

use crate::errors::{exception, input_error};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::json;
use warpline::bench::sensors::{self as gpu, Sensors};
use warpline::{Device, Prepared, prepare_selected};
use warpline_ir::Kernel;
use warpline_kernels::{AnyFamily, AnyWorkload, DeviceKind, Request, registry};

/// Proves every kernel of a problem; returns JSON, or raises the checker's report.
#[pyfunction]
pub(crate) fn check(py: Python<'_>, family: &str, flags: &Bound<'_, PyDict>) -> PyResult<String> {
    let (work, prepared) = prepared(py, family, flags)?;
    let kernel = |step: &warpline::PreparedStep| {
        json!({
            "kernel": step.kernel.name,
            "hash": &*step.hash,
            "proved": step.kernel.is_proved(),
            "grid": step.grid(),
        })
    };
    let kernels: Vec<_> = prepared.steps.iter().map(kernel).collect();
    let output = json!({
        "family": work.family(),
        "problem": work.problem(),
        "config": work.config(),
        "kernels": kernels,
    });
    Ok(output.to_string())
}

/// Returns the kernels of a problem as text: PTX, or Warpline's IR (`what="ir"`).
#[pyfunction]
pub(crate) fn emit(
    py: Python<'_>,
    family: &str,
    what: &str,
    flags: &Bound<'_, PyDict>,
) -> PyResult<String> {
    if !["ptx", "ir"].contains(&what) {
        return Err(input_error(
            py,
            format!("what must be \"ptx\" or \"ir\", not {what:?}"),
        ));
    }
    let (_, prepared) = prepared(py, family, flags)?;
    let target = Device::cpu().target();
    let mut text = String::new();
    for step in &prepared.steps {
        if what == "ir" {
            text += &Kernel::to_string(&step.kernel);
        } else {
            text += &step.ptx(&target).map_err(|e| exception(py, &e))?.text;
        }
    }
    Ok(text)
}

fn prepared(
    py: Python<'_>,
    family: &str,
    flags: &Bound<'_, PyDict>,
) -> PyResult<(Box<dyn AnyWorkload>, Prepared)> {
    let target = Device::cpu().target();
    let known = registry();
    let Some(found) = known.iter().find(|f| f.name() == family) else {
        let names: Vec<_> = known.iter().map(|f| f.name()).collect();
        let text = format!(
            "unknown family {family:?}; the families are: {}",
            names.join(", ")
        );
        return Err(input_error(py, text));
    };
    let request = request(*found, flags)?;
    let work = found
        .workload(&request, DeviceKind::Cpu, None, &target)
        .map_err(|e| exception(py, &e.into()))?;
    let prepared = py
        .detach(|| prepare_selected(work.as_ref(), &target))
        .map_err(|e| exception(py, &e))?;
    Ok((work, prepared))
}

/// Converts keyword arguments to a request: `x_stride=4`.
fn request(family: &dyn AnyFamily, flags: &Bound<'_, PyDict>) -> PyResult<Request> {
    let fields = family.fields(DeviceKind::Cpu);
    let known: Vec<_> = fields.iter().map(|field| field.name).collect();
    let mut request = Request::default();
    for (name, value) in flags {
        let name: String = name.extract()?;
        if !known.contains(&name.as_str()) {
            let family = family.name();
            let text = format!(
                "{family} has no field {name:?}; its fields are: {}",
                known.join(", ")
            );
            return Err(input_error(flags.py(), text));
        }
        let value = match value.extract::<bool>() {
            Ok(flag) => flag.to_string(),
            Err(_) => value.str()?.to_string(),
        };
        request = request.with(&name, value);
    }
    Ok(request)
}

/// Returns every family with its default problem as JSON.
#[pyfunction]
pub(crate) fn families() -> String {
    let family = |f: &&dyn AnyFamily| {
        json!({
            "name": f.name(),
            "about": f.about(),
            "problem": f.default_problem(DeviceKind::Cpu),
        })
    };
    serde_json::Value::from_iter(registry().iter().map(family)).to_string()
}

/// Returns the devices of this machine as JSON, usable or with the reason that they are not.
#[pyfunction]
pub(crate) fn devices() -> String {
    json!(warpline::devices()).to_string()
}

/// Returns the version of the NVIDIA driver; none without a driver.
#[pyfunction]
pub(crate) fn driver_version() -> Option<String> {
    let cuda = || {
        warpline::cuda::Driver::load()
            .ok()
            .map(|d| format!("CUDA {}", d.version()))
    };
    gpu::driver_version().or_else(cuda)
}

/// Returns the current clocks and power of a GPU.
#[pyfunction]
pub(crate) fn sensors(py: Python<'_>, ordinal: u32) -> PyResult<Bound<'_, PyDict>> {
    let listed = warpline::cuda::devices().unwrap_or_default();
    let info = listed.iter().find(|d| d.ordinal == ordinal);
    let reading = Sensors::for_gpu(info.and_then(|d| d.pci.as_deref())).read();
    let output = PyDict::new(py);
    output.set_item("sm_mhz", reading.sm_mhz)?;
    output.set_item("memory_mhz", reading.memory_mhz)?;
    output.set_item("watts", reading.watts)?;
    Ok(output)
}
