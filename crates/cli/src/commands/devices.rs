//! `warpline devices`.

use crate::display;
use crate::output::CommandOutput;
use crate::report;
use serde_json::{Map, Value, json};
use std::env;
use warpline::DeviceInfo;
use warpline::gpu::{CACHE_FOLDER, CACHE_SWITCH};

/// The environment variables that affect devices and caches.
const VARIABLES: [(&str, &str); 4] = [
    (
        "CUDA_VISIBLE_DEVICES",
        "GPUs that the driver exposes, in this order",
    ),
    (
        CACHE_FOLDER,
        "folder of the disk cache: compiled kernels and tuned configs",
    ),
    (CACHE_SWITCH, "`off` disables the disk cache"),
    (
        "PTXAS",
        "path of ptxas, for `emit --resources` and `check --lint`",
    ),
];

/// Lists devices, usable or with the reason that they are not, and environment variables.
pub(crate) fn devices() -> CommandOutput {
    let devices = warpline::devices();
    let mut table = report::table(["Device", "Description", "Usable"]);
    for device in &devices {
        let usable = device
            .unavailable
            .as_ref()
            .map_or("yes".into(), |why| format!("no: {why}"));
        table.add_row([device.name.clone(), describe(device), usable]);
    }
    let mut variables = report::table(["Variable", "Value", "Meaning"]);
    for (name, about) in VARIABLES {
        variables.add_row([name, value(name).as_deref().unwrap_or("not set"), about]);
    }
    let environment: Map<String, Value> = VARIABLES
        .iter()
        .map(|(name, _)| ((*name).to_owned(), json!(value(name))))
        .collect();
    CommandOutput::new(
        "devices",
        format!("{}\n\n{}\n", table.trim_fmt(), variables.trim_fmt()),
    )
    .field("devices", devices)
    .field("environment", environment)
}

fn value(name: &str) -> Option<String> {
    env::var_os(name).map(|v| v.to_string_lossy().into_owned())
}

fn describe(device: &DeviceInfo) -> String {
    match &device.gpu {
        None => device.description.clone(),
        Some(gpu) => format!(
            "{}: {} SMs, {}, compute capability {}, driver for CUDA {}",
            device.description,
            gpu.sms,
            display::bytes(gpu.memory_bytes),
            gpu.compute_capability,
            gpu.driver
        ),
    }
}
