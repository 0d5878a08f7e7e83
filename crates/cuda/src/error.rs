//! Errors of the CUDA driver, each with a stable code and a message.

use crate::device::ComputeCapability;
use crate::driver::DriverVersion;
use crate::ffi;

/// An error of the CUDA driver, or a request that Warpline rejects before it reaches the driver.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CudaError {
    /// The driver library is missing or cannot be loaded.
    #[error("no CUDA driver found: cannot load {library} ({reason})")]
    NoDriver {
        /// The requested library.
        library: String,
        /// The loader's message.
        reason: String,
    },

    /// The library lacks a function that Warpline requires.
    #[error("the CUDA driver library {library} has no function {symbol}")]
    MissingSymbol {
        /// The library that was loaded.
        library: String,
        /// The missing function.
        symbol: &'static str,
    },

    /// The driver does not support PTX 8.0 and tensor maps.
    #[error(
        "the CUDA driver supports CUDA {seen}; Warpline requires {} or newer (PTX 8.0, tensor maps)\nhelp: update the NVIDIA driver",
        DriverVersion::REQUIRED
    )]
    DriverTooOld {
        /// The CUDA version the driver reports.
        seen: DriverVersion,
    },

    /// No device has this ordinal.
    #[error("device cuda:{ordinal} does not exist; available: {}", available_devices(*count))]
    NoSuchDevice {
        /// The requested ordinal.
        ordinal: u32,
        /// The number of devices.
        count: u32,
    },

    /// The device cannot run Warpline's kernels.
    #[error(
        "cuda:{ordinal} ({name}) has compute capability {seen}; Warpline's kernels require {} (sm_90a: wgmma, TMA, clusters)",
        ComputeCapability::REQUIRED
    )]
    UnsupportedDevice {
        /// The device's ordinal.
        ordinal: u32,
        /// The device's name.
        name: String,
        /// Its compute capability.
        seen: ComputeCapability,
    },

    /// A driver function returned an error that has no variant of its own.
    #[error("{call} failed: {name} ({result}), {text}")]
    DriverCall {
        /// The function, without the `_v2` suffix.
        call: &'static str,
        /// The `CUresult`.
        result: i32,
        /// Its name, such as `CUDA_ERROR_ILLEGAL_ADDRESS`.
        name: String,
        /// The driver's description.
        text: String,
    },

    /// The driver's compiler or loader rejected a module.
    #[error("the driver rejected the module: {name}{}{}", if log.is_empty() { "" } else { "\n" }, log.trim_end())]
    JitRejected {
        /// The result's name, such as `CUDA_ERROR_INVALID_PTX`.
        name: String,
        /// The error log of the compiler; may be empty.
        log: String,
    },

    /// An allocation did not fit.
    #[error(
        "out of memory on cuda:{ordinal}: {requested} bytes requested, {free} of {total} bytes free"
    )]
    OutOfMemory {
        /// The device's ordinal.
        ordinal: u32,
        /// Requested bytes.
        requested: u64,
        /// Free bytes at the time of the request.
        free: u64,
        /// Total bytes of device memory.
        total: u64,
    },

    /// An argument breaks a rule that Warpline checks before it calls the driver.
    #[error("{what}: {why}")]
    BadArgument {
        /// The request: `launch of scale`, `tensor map`.
        what: String,
        /// The value and the rule that it breaks.
        why: String,
    },
}

impl CudaError {
    /// Returns a stable code for programs; the message is for people.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoDriver { .. } => "cuda-no-driver",
            Self::MissingSymbol { .. } => "cuda-missing-symbol",
            Self::DriverTooOld { .. } => "cuda-driver-too-old",
            Self::NoSuchDevice { .. } => "cuda-no-such-device",
            Self::UnsupportedDevice { .. } => "cuda-unsupported-device",
            Self::DriverCall { .. } if self.is_fault() => "cuda-device-fault",
            Self::DriverCall { result, .. } if *result == ffi::CUDA_ERROR_OUT_OF_MEMORY => {
                "cuda-out-of-memory"
            }
            Self::DriverCall { .. } => "cuda-driver-call",
            Self::JitRejected { .. } => "cuda-jit-rejected",
            Self::OutOfMemory { .. } => "cuda-out-of-memory",
            Self::BadArgument { .. } => "cuda-bad-argument",
        }
    }

    /// Returns whether a kernel or the device failed at run time. The context is then lost: every
    /// later call on that device in this process fails too.
    pub fn is_fault(&self) -> bool {
        matches!(self, Self::DriverCall { result, .. } if ffi::FAULTS.contains(result))
    }

    pub(crate) fn bad_argument(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::BadArgument {
            what: what.into(),
            why: why.into(),
        }
    }
}

/// Describes the available devices: `1 CUDA device (cuda:0)`, or `none`.
fn available_devices(count: u32) -> String {
    match count {
        0 => "none".into(),
        1 => "1 CUDA device (cuda:0)".into(),
        2 => "2 CUDA devices (cuda:0, cuda:1)".into(),
        n => format!("{n} CUDA devices (cuda:0 to cuda:{})", n - 1),
    }
}
