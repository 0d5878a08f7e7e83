//! For authors of kernels: check, emit; and what is on this machine.

use crate::errors::{exception, input};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::json;
use warpline::bench::sensors::{self as gpu, Sensors};
use warpline::{Device, Prepared, prepare_exactly};
use warpline_ir::Kernel;
use warpline_kernels::{AnyFamily, AnyWork, Place, registry};

/// Proves every kernel of a problem; gives JSON, or raises what the checker says.
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
    let answer = json!({
        "family": work.family(),
        "problem": work.problem(),
        "config": work.config(),
        "kernels": kernels,
    });
    Ok(answer.to_string())
}

/// The kernels of a problem as text: PTX, or the program (`what="ir"`).
#[pyfunction]
pub(crate) fn emit(
    py: Python<'_>,
    family: &str,
    what: &str,
    flags: &Bound<'_, PyDict>,
) -> PyResult<String> {
    if !["ptx", "ir"].contains(&what) {
        return Err(input(
            py,
            format!("what to emit is \"ptx\" or \"ir\", not {what:?}"),
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
) -> PyResult<(Box<dyn AnyWork>, Prepared)> {
    let target = Device::cpu().target();
    let known = registry();
    let Some(found) = known.iter().find(|f| f.name() == family) else {
        let names: Vec<_> = known.iter().map(|f| f.name()).collect();
        let text = format!(
            "there is no family {family:?}; the families are {}",
            names.join(", ")
        );
        return Err(input(py, text));
    };
    let words = words(*found, flags)?;
    let command = found.flags(
        clap::Command::new("warpline").no_binary_name(true),
        Place::Cpu,
    );
    let matches = command.try_get_matches_from(words).map_err(|e| {
        let text = e.to_string();
        let text = text.trim_start_matches("error: ");
        let text = text.split("\n\n").next().unwrap_or_default();
        let words: Vec<_> = text.split_whitespace().collect();
        input(py, words.join(" "))
    })?;
    let work = found
        .parse(&matches, Place::Cpu, &target)
        .map_err(|e| exception(py, &e.into()))?;
    let prepared = py
        .detach(|| prepare_exactly(work.as_ref(), &target))
        .map_err(|e| exception(py, &e))?;
    Ok((work, prepared))
}

/// `x_stride=4` as `--x-stride=4`.
fn words(family: &dyn AnyFamily, flags: &Bound<'_, PyDict>) -> PyResult<Vec<String>> {
    let command = family.flags(clap::Command::new("warpline"), Place::Cpu);
    let known: Vec<_> = command
        .get_arguments()
        .map(|a| a.get_id().to_string())
        .collect();
    let mut words = Vec::new();
    for (name, value) in flags {
        let name: String = name.extract()?;
        if !known.contains(&name) {
            let family = family.name();
            let text = format!("{family} has no {name:?}; it takes {}", known.join(", "));
            return Err(input(flags.py(), text));
        }
        let value = match value.extract::<bool>() {
            Ok(flag) => flag.to_string(),
            Err(_) => value.str()?.to_string(),
        };
        words.push(format!("--{}={value}", name.replace('_', "-")));
    }
    Ok(words)
}

/// Every family, with its default problem, as JSON.
#[pyfunction]
pub(crate) fn families() -> String {
    let family = |f: &&dyn AnyFamily| {
        json!({
            "name": f.name(),
            "about": f.about(),
            "problem": f.default_problem(Place::Cpu),
        })
    };
    serde_json::Value::from_iter(registry().iter().map(family)).to_string()
}

/// What can run kernels here, and why the rest cannot, as JSON.
#[pyfunction]
pub(crate) fn devices() -> String {
    json!(warpline::devices()).to_string()
}

/// The version of the NVIDIA driver; none where there is no driver.
#[pyfunction]
pub(crate) fn driver_version() -> Option<String> {
    let cuda = || {
        warpline::cuda::Driver::load()
            .ok()
            .map(|d| format!("CUDA {}", d.version()))
    };
    gpu::driver_version().or_else(cuda)
}

/// Clocks and power of a GPU now.
#[pyfunction]
pub(crate) fn sensors(py: Python<'_>, ordinal: u32) -> PyResult<Bound<'_, PyDict>> {
    let listed = warpline::cuda::devices().unwrap_or_default();
    let info = listed.iter().find(|d| d.ordinal == ordinal);
    let reading = Sensors::of(info.and_then(|d| d.pci.as_deref())).read();
    let answer = PyDict::new(py);
    answer.set_item("sm_mhz", reading.sm_mhz)?;
    answer.set_item("memory_mhz", reading.memory_mhz)?;
    answer.set_item("watts", reading.watts)?;
    Ok(answer)
}
