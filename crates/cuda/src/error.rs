//! What can go wrong, each with a stable code and a sentence.

use crate::device::ComputeCapability;
use crate::driver::DriverVersion;
use crate::ffi;

/// Why a request to the CUDA driver was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CudaError {
    /// The driver library is not on this machine, or cannot be loaded.
    #[error("there is no CUDA driver on this machine: {library} could not be loaded ({reason})")]
    NoDriver {
        /// The library asked for.
        library: String,
        /// The loader's words.
        reason: String,
    },

    /// The library lacks a function that every driver we can use has.
    #[error("the CUDA driver {library} has no function {symbol}")]
    MissingSymbol {
        /// The library that was loaded.
        library: String,
        /// The function looked for.
        symbol: &'static str,
    },

    /// The driver is older than PTX 8.0 and tensor maps.
    #[error(
        "the CUDA driver is too old: it supports CUDA {seen}, and Warpline needs {} or newer (PTX 8.0, tensor maps)",
        DriverVersion::NEEDED
    )]
    DriverTooOld {
        /// The CUDA version the driver reports.
        seen: DriverVersion,
    },

    /// The ordinal names no device.
    #[error("there is no device cuda:{ordinal}: this machine has {}", list(*count))]
    NoSuchDevice {
        /// The ordinal asked for.
        ordinal: u32,
        /// How many devices the driver shows.
        count: u32,
    },

    /// The device is there, and cannot run our kernels.
    #[error(
        "cuda:{ordinal} ({name}) cannot be used: its compute capability is {seen}, and Warpline's kernels need {} (sm_90a: wgmma, TMA, clusters)",
        ComputeCapability::NEEDED
    )]
    UnsuitableDevice {
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
        /// The function, without its `_v2`.
        call: &'static str,
        /// The `CUresult`.
        result: i32,
        /// Its name, such as `CUDA_ERROR_ILLEGAL_ADDRESS`.
        name: String,
        /// The driver's description.
        text: String,
    },

    /// The driver's compiler or loader refused a module.
    #[error("the driver refused the module: {name}{}{}", if log.is_empty() { "" } else { "\n" }, log.trim_end())]
    JitRefused {
        /// The result's name, such as `CUDA_ERROR_INVALID_PTX`.
        name: String,
        /// The error log of the compiler; may be empty.
        log: String,
    },

    /// An allocation did not fit.
    #[error(
        "out of memory on cuda:{ordinal}: {asked} bytes were asked for, {free} of {total} are free"
    )]
    OutOfMemory {
        /// The device's ordinal.
        ordinal: u32,
        /// Bytes asked for.
        asked: u64,
        /// Bytes free at the time.
        free: u64,
        /// Bytes of the device.
        total: u64,
    },

    /// An argument breaks a rule that we know before asking the driver.
    #[error("{what}: {why}")]
    BadArgument {
        /// What was being asked for: `launch of scale`, `tensor map`.
        what: String,
        /// The rule and the value seen.
        why: String,
    },
}

impl CudaError {
    /// A stable code for programs; the sentence is for people.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoDriver { .. } => "cuda-no-driver",
            Self::MissingSymbol { .. } => "cuda-missing-symbol",
            Self::DriverTooOld { .. } => "cuda-driver-too-old",
            Self::NoSuchDevice { .. } => "cuda-no-such-device",
            Self::UnsuitableDevice { .. } => "cuda-unsuitable-device",
            Self::DriverCall { .. } if self.is_fault() => "cuda-device-fault",
            Self::DriverCall { result, .. } if *result == ffi::CUDA_ERROR_OUT_OF_MEMORY => {
                "cuda-out-of-memory"
            }
            Self::DriverCall { .. } => "cuda-driver-call",
            Self::JitRefused { .. } => "cuda-jit-refused",
            Self::OutOfMemory { .. } => "cuda-out-of-memory",
            Self::BadArgument { .. } => "cuda-bad-argument",
        }
    }

    /// Whether a kernel or the device failed while running. The context is
    /// lost then: every later call in this process on that device fails too.
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

/// `1 CUDA device (cuda:0)`, or `none`.
fn list(count: u32) -> String {
    match count {
        0 => "none".into(),
        1 => "1 CUDA device (cuda:0)".into(),
        2 => "2 CUDA devices (cuda:0, cuda:1)".into(),
        n => format!("{n} CUDA devices (cuda:0 to cuda:{})", n - 1),
    }
}
