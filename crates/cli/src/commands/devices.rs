//! `warpline devices`.

use crate::answer::Answer;
use crate::report;
use crate::words;
use serde_json::{Map, Value, json};
use std::env;
use warpline::DeviceInfo;
use warpline::gpu::{CACHE_FOLDER, CACHE_SWITCH};

/// The environment variables that change what runs here.
const VARIABLES: [(&str, &str); 4] = [
    (
        "CUDA_VISIBLE_DEVICES",
        "which GPUs the driver shows, and in which order",
    ),
    (
        CACHE_FOLDER,
        "where compiled kernels and tuned configs are kept for the next process",
    ),
    (CACHE_SWITCH, "`off` keeps none"),
    ("PTXAS", "the ptxas that `emit --resources` uses"),
];

/// What can run here, and why not.
pub(crate) fn devices() -> Answer {
    let devices = warpline::devices();
    let mut table = report::table(["Device", "What it is", "Can be used"]);
    for device in &devices {
        let usable = device
            .why_not
            .as_ref()
            .map_or("yes".into(), |why| format!("no: {why}"));
        table.add_row([device.name.clone(), describe(device), usable]);
    }
    let mut variables = report::table(["Variable", "Value", "What it says"]);
    for (name, about) in VARIABLES {
        variables.add_row([name, value(name).as_deref().unwrap_or("not set"), about]);
    }
    let environment: Map<String, Value> = VARIABLES
        .iter()
        .map(|(name, _)| ((*name).to_owned(), json!(value(name))))
        .collect();
    Answer::new(
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
            words::bytes(gpu.memory_bytes),
            gpu.compute_capability,
            gpu.driver
        ),
    }
}
