//! Runs trials on a GPU.

use crate::trial::{OpTrial, OutputBytes};
use anyhow::{Context as _, Result, ensure};
use warpline::cuda::{Context, DeviceBuffer, Stream};
use warpline::{Device, prepare};
use warpline_kernels::BufferAddresses;

/// Opens the first usable GPU.
pub fn device() -> Result<Device> {
    let (device, reason) = Device::auto();
    let reason = reason.unwrap_or_else(|| "the driver finds none".to_owned());
    ensure!(!device.is_cpu(), "no GPU: {reason}");
    Ok(device)
}

/// Returns the CUDA context of a GPU.
pub fn context(device: &Device) -> Result<&Context> {
    device
        .context()
        .context("the CPU executor has no CUDA context")
}

/// Runs a trial on a GPU and returns its outputs. There is no time limit here; the parent process has one.
pub fn run(trial: &OpTrial, device: &Device) -> Result<OutputBytes> {
    let context = context(device)?;
    let plan = prepare(trial, &device.target())?.load(device)?;
    let stream = Stream::new(context)?;
    let buffer = |bytes: &Vec<u8>| DeviceBuffer::from_host(context, bytes, &stream);
    let inputs: Vec<DeviceBuffer> = trial.inputs.iter().map(buffer).collect::<Result<_, _>>()?;
    let outputs: Vec<DeviceBuffer> = (trial.outputs.iter())
        .map(|o| buffer(&o.initial))
        .collect::<Result<_, _>>()?;
    let addresses_of = |all: &[DeviceBuffer]| all.iter().map(DeviceBuffer::address).collect();
    let addresses = BufferAddresses {
        inputs: addresses_of(&inputs),
        outputs: addresses_of(&outputs),
        workspace: 0,
    };
    plan.launch(&stream, &addresses)?;
    stream.synchronize()?;
    let read = |buffer: &DeviceBuffer| -> Result<Vec<u8>> {
        let mut bytes = vec![0; buffer.len()];
        buffer.read(0, &mut bytes, &stream)?;
        Ok(bytes)
    };
    outputs.iter().map(read).collect()
}
