//! Devices: the CPU executor and the GPUs.

use crate::error::Error;
use crate::gpu::Gpu;
use serde::Serialize;
use std::sync::Arc;
use warpline_cuda::{Context, CudaError};
use warpline_ir::Target;
use warpline_kernels::DeviceKind;

/// A device that runs kernels: the CPU executor or a GPU.
///
/// ```
/// use warpline::Device;
/// assert_eq!(Device::cpu().name(), "cpu");
/// let error = Device::parse("gpu").unwrap_err().to_string();
/// assert!(error.starts_with("unknown device \"gpu\""));
/// ```
#[derive(Clone, Debug)]
pub struct Device(Inner);

#[derive(Clone, Debug)]
enum Inner {
    Cpu,
    Cuda(Arc<Gpu>),
}

/// A description of a device.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// The name: `cpu`, `cuda:0`, …; `cuda` if no GPU is available.
    pub name: String,
    /// The model name, or a description.
    pub description: String,
    /// Whether this is the CPU executor. Its times are not GPU times.
    pub is_cpu: bool,
    /// The reason why the device is unavailable, if it is.
    pub unavailable: Option<String>,
    /// The properties of a GPU.
    pub gpu: Option<GpuInfo>,
}

/// The properties of a GPU, as reported by the driver.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct GpuInfo {
    /// The compute capability, such as `9.0`.
    pub compute_capability: String,
    /// The number of SMs.
    pub sms: u32,
    /// The device memory in bytes.
    pub memory_bytes: u64,
    /// The L2 cache in bytes.
    pub l2_bytes: u64,
    /// The maximum shared memory of a CTA in bytes.
    pub shared_bytes: u32,
    /// The peak memory bandwidth in bytes per second, if the driver reports clock and bus width.
    pub memory_bytes_per_s: Option<f64>,
    /// The CUDA version of the driver.
    pub driver: String,
}

impl Device {
    /// Returns the CPU executor.
    pub fn cpu() -> Self {
        Self(Inner::Cpu)
    }

    /// Opens the GPU `cuda:ordinal`. Its loaded kernels stay loaded while any handle in this process
    /// is open.
    pub fn cuda(ordinal: u32) -> Result<Self, Error> {
        Ok(Self(Inner::Cuda(Gpu::open(ordinal)?)))
    }

    /// Returns the first supported GPU, or else the CPU executor. Also returns the reasons why GPUs
    /// were skipped, or why none exists.
    pub fn auto() -> (Self, Option<String>) {
        let listed = match warpline_cuda::devices() {
            Ok(listed) => listed,
            Err(e) => return (Self::cpu(), Some(e.to_string())),
        };
        let mut skipped = Vec::new();
        for info in &listed {
            match Self::cuda(info.ordinal) {
                Ok(device) => return (device, join_reasons(skipped)),
                Err(e) => skipped.push(e.to_string()),
            }
        }
        if listed.is_empty() {
            skipped.push("the CUDA driver reports no GPU".into());
        }
        (Self::cpu(), join_reasons(skipped))
    }

    /// Opens a device by name: `cpu`, `cuda:N`, or `cuda` for `cuda:0`.
    pub fn parse(name: &str) -> Result<Self, Error> {
        let invalid = || Error::DeviceName(name.to_owned());
        match name.split_once(':') {
            None if name == "cpu" => Ok(Self::cpu()),
            None if name == "cuda" => Self::cuda(0),
            Some(("cuda", n)) if n.bytes().all(|b| b.is_ascii_digit()) => {
                Self::cuda(n.parse().map_err(|_| invalid())?)
            }
            _ => Err(invalid()),
        }
    }

    /// Returns the name: `cpu`, `cuda:0`.
    pub fn name(&self) -> String {
        self.info().name
    }

    /// Describes the device.
    pub fn info(&self) -> DeviceInfo {
        match &self.0 {
            Inner::Cpu => cpu_executor_info(),
            Inner::Cuda(gpu) => gpu_info(gpu.context.device()),
        }
    }

    /// Returns whether this is the CPU executor.
    pub fn is_cpu(&self) -> bool {
        matches!(self.0, Inner::Cpu)
    }

    /// Returns the kind of device, which determines default problem sizes.
    pub fn kind(&self) -> DeviceKind {
        match self.0 {
            Inner::Cpu => DeviceKind::Cpu,
            Inner::Cuda(_) => DeviceKind::Gpu,
        }
    }

    /// Returns the target for which kernels are built and checked.
    pub fn target(&self) -> Target {
        match &self.0 {
            Inner::Cpu => Target::default(),
            Inner::Cuda(gpu) => gpu.target,
        }
    }

    /// Returns the CUDA context of a GPU, for streams and buffers.
    pub fn context(&self) -> Option<&Context> {
        self.gpu().map(|gpu| &gpu.context)
    }

    /// Returns the GPU state; `None` for the CPU executor.
    pub(crate) fn gpu(&self) -> Option<&Gpu> {
        match &self.0 {
            Inner::Cpu => None,
            Inner::Cuda(gpu) => Some(gpu),
        }
    }
}

/// Lists all devices, including unavailable ones with their reasons.
///
/// The CPU executor is always listed. A machine without a driver or a GPU has one entry `cuda` with
/// the reason.
pub fn devices() -> Vec<DeviceInfo> {
    let mut all = vec![cpu_executor_info()];
    let unavailable = |why: String| DeviceInfo {
        name: "cuda".into(),
        description: "NVIDIA GPUs".into(),
        is_cpu: false,
        unavailable: Some(why),
        gpu: None,
    };
    match warpline_cuda::devices() {
        Err(e) => all.push(unavailable(e.to_string())),
        Ok(list) if list.is_empty() => {
            all.push(unavailable("the CUDA driver reports no GPU".into()))
        }
        Ok(list) => all.extend(list.iter().map(gpu_info)),
    }
    all
}

fn cpu_executor_info() -> DeviceInfo {
    let Target { name, sms, .. } = Target::default();
    DeviceInfo {
        name: "cpu".into(),
        description: format!("CPU executor of {name} with {sms} SMs"),
        is_cpu: true,
        unavailable: None,
        gpu: None,
    }
}

fn gpu_info(info: &warpline_cuda::CudaDeviceInfo) -> DeviceInfo {
    // The memory transfers twice per clock.
    let rate = info.memory_clock_khz.zip(info.memory_bus_bits);
    let memory_bytes_per_s =
        rate.map(|(khz, bits)| f64::from(khz) * 1e3 * 2.0 * f64::from(bits) / 8.0);
    DeviceInfo {
        name: format!("cuda:{}", info.ordinal),
        description: info.name.clone(),
        is_cpu: false,
        unavailable: info
            .check_supported()
            .err()
            .map(|e: CudaError| e.to_string()),
        gpu: Some(GpuInfo {
            compute_capability: info.compute_capability.to_string(),
            sms: info.sms,
            memory_bytes: info.memory_bytes,
            l2_bytes: info.l2_bytes,
            shared_bytes: info.shared_bytes_per_block,
            memory_bytes_per_s,
            driver: info.driver.to_string(),
        }),
    }
}

fn join_reasons(reasons: Vec<String>) -> Option<String> {
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(name: &str) -> &'static str {
        Device::parse(name).map_or_else(|e| e.code(), |_| "ok")
    }

    #[test]
    fn an_invalid_name_is_rejected_with_the_valid_names() {
        let invalid = [
            "", "gpu", "CPU", "cpu:0", "cuda:", "cuda:-1", "cuda:x", "cuda:0x1", "cuda: 1",
        ];
        for name in invalid.into_iter().chain(["cuda:99999999999"]) {
            assert_eq!(code(name), "bad-device-name", "{name:?}");
        }
        let error = Device::parse("gpu").unwrap_err().to_string();
        assert_eq!(
            error,
            "unknown device \"gpu\"\nhelp: use cpu, cuda or cuda:N (cuda:0 is the first GPU)"
        );
    }

    #[test]
    fn the_cpu_executor_is_always_listed() {
        let cpu = Device::parse("cpu").unwrap();
        assert!(cpu.is_cpu() && cpu.context().is_none());
        assert_eq!(cpu.kind(), DeviceKind::Cpu);
        assert_eq!(cpu.target(), Target::SM_90A);
        let listed = devices();
        assert_eq!(listed[0], cpu.info());
        assert!(listed[0].is_cpu && listed[0].unavailable.is_none());
        assert!(listed.len() > 1, "GPUs or the reason why none is available");
    }

    #[test]
    fn auto_returns_an_available_device_and_a_reason_for_the_cpu() {
        let (device, reason) = Device::auto();
        assert!(device.info().unavailable.is_none());
        assert!(!device.is_cpu() || reason.is_some());
    }
}
