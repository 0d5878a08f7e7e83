//! Trials on a GPU.

use crate::trial::{Results, Trial};
use anyhow::{Context as _, Result, ensure};
use warpline::cuda::{DeviceBuffer, Context, Stream};
use warpline::{Device, prepare};
use warpline_kernels::BufferAddresses;

/// The first GPU that can run kernels, or a sentence why there is none.
pub fn device() -> Result<Device> {
    let (device, why_not) = Device::auto();
    let none = why_not.unwrap_or_else(|| "the driver finds none".to_owned());
    ensure!(!device.is_simulator(), "no GPU: {none}");
    Ok(device)
}

/// The driver's context on a GPU.
pub fn context(device: &Device) -> Result<&Context> {
    device.context().context("the simulator has no context")
}

/// What comes out of a trial on a GPU. Waits for as long as it takes: the
/// parent of this process does not.
pub fn run(trial: &Trial, device: &Device) -> Result<Results> {
    let context = context(device)?;
    let ready = prepare(trial, &device.target())?.load(device)?;
    let stream = Stream::new(context)?;
    let buffer = |bytes: &Vec<u8>| DeviceBuffer::from_host(context, bytes, &stream);
    let inputs: Vec<DeviceBuffer> = trial.inputs.iter().map(buffer).collect::<Result<_, _>>()?;
    let outputs: Vec<DeviceBuffer> = (trial.outputs.iter())
        .map(|o| buffer(&o.first))
        .collect::<Result<_, _>>()?;
    let addresses = |all: &[DeviceBuffer]| all.iter().map(DeviceBuffer::address).collect();
    let bound = BufferAddresses {
        inputs: addresses(&inputs),
        outputs: addresses(&outputs),
        workspace: 0,
    };
    ready.launch(&stream, &bound)?;
    stream.synchronize()?;
    let read = |buffer: &DeviceBuffer| -> Result<Vec<u8>> {
        let mut bytes = vec![0; buffer.len()];
        buffer.read(0, &mut bytes, &stream)?;
        Ok(bytes)
    };
    outputs.iter().map(read).collect()
}
