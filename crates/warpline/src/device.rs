//! Devices: the CPU simulator and the GPUs, and why one cannot be used.

use crate::error::Error;
use crate::gpu::Gpu;
use serde::Serialize;
use std::sync::Arc;
use warpline_cuda::{Context, CudaError};
use warpline_ir::Target;
use warpline_kernels::Place;

/// What runs kernels: the CPU simulator, or a GPU.
///
/// ```
/// use warpline::Device;
/// assert_eq!(Device::cpu().name(), "cpu");
/// let sentence = Device::parse("gpu").unwrap_err().to_string();
/// assert!(sentence.starts_with("a device is cpu, cuda or cuda:N"));
/// ```
#[derive(Clone, Debug)]
pub struct Device(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Cpu,
    Cuda(Arc<Gpu>),
}

/// What is known of a device without using it.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// `cpu`, `cuda:0`, …; `cuda` for GPUs as a whole where there are none.
    pub name: String,
    /// What it is.
    pub description: String,
    /// Is it a simulator, whose times are no measure of a GPU?
    pub simulator: bool,
    /// Why it cannot be used, if it cannot.
    pub why_not: Option<String>,
    /// What the driver says of a GPU.
    pub gpu: Option<GpuInfo>,
}

/// What the driver says of a GPU.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct GpuInfo {
    /// Compute capability, for example `9.0`.
    pub compute_capability: String,
    /// Streaming multiprocessors.
    pub sms: u32,
    /// Bytes of device memory.
    pub memory_bytes: u64,
    /// Bytes of level-2 cache.
    pub l2_bytes: u64,
    /// Bytes of shared memory that one CTA can have.
    pub shared_bytes: u32,
    /// Bytes per second between the GPU and its memory at the highest clock,
    /// if the driver tells clock and width.
    pub memory_bytes_per_s: Option<f64>,
    /// The CUDA version of the driver.
    pub driver: String,
}

impl Device {
    /// The CPU simulator.
    pub fn cpu() -> Self {
        Self(Kind::Cpu)
    }

    /// The GPU `cuda:ordinal`. Kernels that were brought onto it stay there
    /// while anyone in this process has it open.
    pub fn cuda(ordinal: u32) -> Result<Self, Error> {
        Ok(Self(Kind::Cuda(Gpu::open(ordinal)?)))
    }

    /// The first GPU that our kernels can use, or else the CPU simulator; and
    /// why GPUs were passed over, if any was or none is there.
    pub fn auto() -> (Self, Option<String>) {
        let listed = match warpline_cuda::devices() {
            Ok(listed) => listed,
            Err(e) => return (Self::cpu(), Some(e.to_string())),
        };
        let mut passed_over = Vec::new();
        for info in &listed {
            match Self::cuda(info.ordinal) {
                Ok(device) => return (device, sentence(passed_over)),
                Err(e) => passed_over.push(e.to_string()),
            }
        }
        if listed.is_empty() {
            passed_over.push("the CUDA driver shows no GPU".into());
        }
        (Self::cpu(), sentence(passed_over))
    }

    /// The device of a name: `cpu`, `cuda:N`, or `cuda` for `cuda:0`.
    pub fn parse(name: &str) -> Result<Self, Error> {
        let bad = || Error::DeviceName(name.to_owned());
        match name.split_once(':') {
            None if name == "cpu" => Ok(Self::cpu()),
            None if name == "cuda" => Self::cuda(0),
            Some(("cuda", n)) if n.bytes().all(|b| b.is_ascii_digit()) => {
                Self::cuda(n.parse().map_err(|_| bad())?)
            }
            _ => Err(bad()),
        }
    }

    /// Its name: `cpu`, `cuda:0`.
    pub fn name(&self) -> String {
        self.info().name
    }

    /// What is known of it.
    pub fn info(&self) -> DeviceInfo {
        match &self.0 {
            Kind::Cpu => simulator(),
            Kind::Cuda(open) => gpu(open.context.device()),
        }
    }

    /// Is it the simulator?
    pub fn is_simulator(&self) -> bool {
        matches!(self.0, Kind::Cpu)
    }

    /// Where its problems are solved: default sizes depend on it.
    pub fn place(&self) -> Place {
        match self.0 {
            Kind::Cpu => Place::Cpu,
            Kind::Cuda(_) => Place::Gpu,
        }
    }

    /// The target that kernels for it are built and checked for.
    pub fn target(&self) -> Target {
        match &self.0 {
            Kind::Cpu => Target::default(),
            Kind::Cuda(open) => open.target,
        }
    }

    /// The driver's context, of a GPU: streams and buffers are made in it.
    pub fn context(&self) -> Option<&Context> {
        self.gpu().map(|gpu| &gpu.context)
    }

    /// Its kernels, of a GPU.
    pub(crate) fn gpu(&self) -> Option<&Gpu> {
        match &self.0 {
            Kind::Cpu => None,
            Kind::Cuda(gpu) => Some(gpu),
        }
    }
}

/// Everything that can run kernels here, and what cannot, with its reason.
///
/// The simulator is always there. A machine without a driver or a GPU has one
/// entry `cuda` that says so.
pub fn devices() -> Vec<DeviceInfo> {
    let mut all = vec![simulator()];
    let none = |why: String| DeviceInfo {
        name: "cuda".into(),
        description: "NVIDIA GPUs".into(),
        simulator: false,
        why_not: Some(why),
        gpu: None,
    };
    match warpline_cuda::devices() {
        Err(e) => all.push(none(e.to_string())),
        Ok(list) if list.is_empty() => all.push(none("the CUDA driver shows no GPU".into())),
        Ok(list) => all.extend(list.iter().map(gpu)),
    }
    all
}

fn simulator() -> DeviceInfo {
    let Target { name, sms, .. } = Target::default();
    DeviceInfo {
        name: "cpu".into(),
        description: format!("CPU simulator of {name} with {sms} SMs"),
        simulator: true,
        why_not: None,
        gpu: None,
    }
}

fn gpu(info: &warpline_cuda::DeviceInfo) -> DeviceInfo {
    // Two transfers per clock.
    let rate = info.memory_clock_khz.zip(info.memory_bus_bits);
    let memory_bytes_per_s =
        rate.map(|(khz, bits)| f64::from(khz) * 1e3 * 2.0 * f64::from(bits) / 8.0);
    DeviceInfo {
        name: format!("cuda:{}", info.ordinal),
        description: info.name.clone(),
        simulator: false,
        why_not: info.usable().err().map(|e: CudaError| e.to_string()),
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

fn sentence(reasons: Vec<String>) -> Option<String> {
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(name: &str) -> &'static str {
        Device::parse(name).map_or_else(|e| e.code(), |_| "good")
    }

    #[test]
    fn a_name_that_is_none_is_refused_with_the_rule() {
        let near = [
            "", "gpu", "CPU", "cpu:0", "cuda:", "cuda:-1", "cuda:x", "cuda:0x1", "cuda: 1",
        ];
        for name in near.into_iter().chain(["cuda:99999999999"]) {
            assert_eq!(code(name), "bad-device-name", "{name:?}");
        }
        let said = Device::parse("gpu").unwrap_err().to_string();
        assert_eq!(
            said,
            "a device is cpu, cuda or cuda:N (cuda:0 is the first GPU), not \"gpu\""
        );
    }

    #[test]
    fn the_simulator_is_always_there_and_says_what_it_is() {
        let cpu = Device::parse("cpu").unwrap();
        assert!(cpu.is_simulator() && cpu.context().is_none());
        assert_eq!(cpu.place(), Place::Cpu);
        assert_eq!(cpu.target(), Target::SM_90A);
        let listed = devices();
        assert_eq!(listed[0], cpu.info());
        assert!(listed[0].simulator && listed[0].why_not.is_none());
        assert!(
            listed.len() > 1,
            "GPUs are listed, or the reason why there are none"
        );
    }

    #[test]
    fn what_auto_takes_can_be_used_and_the_cpu_comes_with_a_reason() {
        let (device, reason) = Device::auto();
        assert!(device.info().why_not.is_none());
        assert!(!device.is_simulator() || reason.is_some());
    }
}
