//! Errors of preparing, loading, running and tuning workloads.

use warpline_check::Diagnostics;
use warpline_cpu::RunError;
use warpline_cuda::CudaError;
use warpline_ir::FaultKind;
use warpline_kernels::FamilyError;
use warpline_ptx::PtxError;
use warpline_translation::Mismatches;

/// An error of preparing, loading, running or tuning a workload.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The device name is invalid.
    #[error("unknown device {0:?}\nhelp: use cpu, cuda or cuda:N (cuda:0 is the first GPU)")]
    DeviceName(String),
    /// The driver, a GPU or a kernel on it failed.
    #[error(transparent)]
    Cuda(#[from] CudaError),
    /// The family rejected the problem, the config or the input tensors.
    #[error(transparent)]
    Family(#[from] FamilyError),
    /// The checker did not prove the kernel.
    #[error(transparent)]
    NotProved(#[from] Diagnostics),
    /// The kernel cannot be printed as PTX.
    #[error(transparent)]
    Print(#[from] PtxError),
    /// The translation check found a bug in the PTX printer before the kernel was loaded.
    #[error(
        "the printed PTX does not match the kernel, which is a bug in Warpline; please report it: {0}"
    )]
    Translation(#[from] Mismatches),
    /// The kernel faulted or hung on the CPU executor.
    #[error(transparent)]
    Fault(#[from] Box<RunError>),
    /// The GPU did not finish in time.
    #[error("kernel {kernel} hangs: it did not finish on {device} within {seconds} s")]
    Hang {
        /// The first kernel of the plan.
        kernel: String,
        /// The device.
        device: String,
        /// The time limit in seconds.
        seconds: u64,
    },
    /// A watchdog build hung; the report lists the waits of its warps.
    #[error("{0}")]
    HangReport(String),
    /// The driver's compiler serialized or ignored instructions of a kernel.
    #[error("the driver did not compile kernel {kernel} as written:{advisories}")]
    NotAsWritten {
        /// The kernel.
        kernel: String,
        /// The advisories of the compiler, one line each.
        advisories: String,
    },
    /// A launch during stream capture needs a kernel that is not loaded.
    #[error(
        "kernel {kernel} is not loaded and cannot be compiled during stream capture\n\
         help: run the op once, or call `Prepared::load`, before the capture"
    )]
    Capture {
        /// The kernel.
        kernel: String,
    },
    /// A launch during stream capture needs a workspace that is not allocated.
    #[error(
        "{op} needs a workspace of {bytes} bytes, which cannot be allocated during stream capture\n\
         help: run the op once on this stream before the capture, or pass a workspace"
    )]
    WorkspaceInCapture {
        /// The op.
        op: &'static str,
        /// The size of the workspace in bytes.
        bytes: u64,
    },
    /// No op has this name.
    #[error("unknown op {name:?}\nhelp: the ops are {}", known.join(", "))]
    UnknownOp {
        /// The name.
        name: String,
        /// The valid names.
        known: Vec<&'static str>,
    },
    /// No parameter of the op has this name.
    #[error("{op} has no parameter {name:?}\nhelp: its parameters are {}", known.join(", "))]
    UnknownParameter {
        /// The op.
        op: &'static str,
        /// The name.
        name: String,
        /// The valid names.
        known: Vec<&'static str>,
    },
    /// A candidate failed in a way that ends the measurement.
    #[error("{name}: {error}")]
    Measurement {
        /// The family and config of the candidate.
        name: String,
        /// The error.
        error: Box<Error>,
    },
    /// The operation needs a GPU.
    #[error("the CPU executor cannot load kernels\nhelp: use a GPU")]
    NoGpu,
    /// The simulation would exceed the default time limit.
    #[error(
        "running this problem on the CPU executor takes about {seconds:.0} s; the limit is {} s\n\
         help: set `simulate` to run it anyway",
        crate::estimate::DEFAULT_SIMULATION_LIMIT_S
    )]
    TooLong {
        /// The estimated seconds.
        seconds: f64,
    },
    /// The problem does not fit into host memory.
    #[error(
        "this problem needs about {needed} bytes of host memory for its tensors and the \
         reference, but {available} are available"
    )]
    HostMemory {
        /// The needed bytes.
        needed: u64,
        /// The available bytes.
        available: u64,
    },
    /// No candidate could be tuned.
    #[error("{family} could not be tuned: {why}")]
    NotTuned {
        /// The family.
        family: &'static str,
        /// The reason.
        why: String,
    },
    /// Tuning was requested during stream capture.
    #[error(
        "{op} cannot be tuned during stream capture, because tuning compiles and waits\n\
         help: tune it before the capture; the captured call uses the winner"
    )]
    TuneInCapture {
        /// The op.
        op: &'static str,
    },
    /// The cache of tuned configs cannot be read or written.
    #[error("{0}")]
    Cache(String),
    /// The kernel does not accept the grid or the arguments.
    #[error("kernel {kernel} cannot be launched: {why}")]
    Launch {
        /// The kernel.
        kernel: String,
        /// The rule and the actual value.
        why: String,
    },
}

impl Error {
    /// Returns a stable code for tools.
    pub fn code(&self) -> &'static str {
        match self {
            Error::DeviceName(_) => "bad-device-name",
            Error::Cuda(e) => e.code(),
            Error::Family(e) => e.code(),
            Error::NotProved(_) => "not-proved",
            Error::Print(e) => e.code(),
            Error::Translation(_) => "ptx-mismatch",
            Error::Fault(e) if e.kind == FaultKind::Deadlock => "deadlock",
            Error::Fault(e) if e.kind == FaultKind::Launch => "bad-launch",
            Error::Fault(_) => "fault",
            Error::Hang { .. } | Error::HangReport(_) => "hang",
            Error::NotAsWritten { .. } => "jit-advisory",
            Error::Capture { .. } => "jit-in-capture",
            Error::WorkspaceInCapture { .. } => "workspace-in-capture",
            Error::UnknownOp { .. } => "unknown-op",
            Error::UnknownParameter { .. } => "unknown-parameter",
            Error::Measurement { error, .. } => error.code(),
            Error::NoGpu => "no-gpu",
            Error::TooLong { .. } => "too-long",
            Error::HostMemory { .. } => "host-memory",
            Error::NotTuned { .. } => "not-tuned",
            Error::TuneInCapture { .. } => "tune-in-capture",
            Error::Cache(_) => "cache",
            Error::Launch { .. } => "bad-launch",
        }
    }

    /// Returns whether this process has lost the device: a fault, or a kernel that hangs.
    pub fn is_device_lost(&self) -> bool {
        match self {
            Error::Cuda(e) => e.is_fault(),
            Error::Measurement { error, .. } => error.is_device_lost(),
            Error::Hang { .. } | Error::HangReport(_) => true,
            _ => false,
        }
    }

    /// Returns the exit code for this error: 1 not proved or failed, 2 bad input or no such device, 3
    /// device fault or hang.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::DeviceName(_)
            | Error::UnknownOp { .. }
            | Error::UnknownParameter { .. }
            | Error::NoGpu
            | Error::TooLong { .. }
            | Error::HostMemory { .. }
            | Error::Cache(_)
            | Error::Family(
                FamilyError::Problem(_)
                | FamilyError::Unsupported(_)
                | FamilyError::Layout(_)
                | FamilyError::Config(_)
                | FamilyError::Data(_),
            ) => 2,
            Error::Family(_)
            | Error::NotProved(_)
            | Error::Print(_)
            | Error::Translation(_)
            | Error::NotAsWritten { .. }
            | Error::Capture { .. }
            | Error::WorkspaceInCapture { .. }
            | Error::NotTuned { .. }
            | Error::TuneInCapture { .. }
            | Error::Launch { .. } => 1,
            Error::Measurement { error, .. } => error.exit_code(),
            Error::Fault(e) if e.kind == FaultKind::Launch => 1,
            Error::Fault(_) | Error::Hang { .. } | Error::HangReport(_) => 3,
            Error::Cuda(e) => match e {
                CudaError::DriverCall { .. } => 3,
                CudaError::JitRejected { .. } | CudaError::BadArgument { .. } => 1,
                _ => 2,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_distinguish_bad_input_failure_and_fault() {
        let config = Error::Family(FamilyError::Config("no".into()));
        assert_eq!((config.code(), config.exit_code()), ("bad-config", 2));
        let none = Error::Cuda(CudaError::NoSuchDevice {
            ordinal: 9,
            count: 1,
        });
        assert_eq!((none.code(), none.exit_code()), ("cuda-no-such-device", 2));
        let not_proved = Error::NotProved(Diagnostics {
            kernel: "k".into(),
            diagnostics: vec![],
        });
        assert_eq!(
            (not_proved.code(), not_proved.exit_code()),
            ("not-proved", 1)
        );
        let misprint = Error::Translation(Mismatches {
            kernel: "k".into(),
            list: vec![],
        });
        assert_eq!((misprint.code(), misprint.exit_code()), ("ptx-mismatch", 1));
        assert!(misprint.to_string().contains("please report it: kernel k"));
        let hang = Error::Hang {
            kernel: "k".into(),
            device: "cuda:0".into(),
            seconds: 60,
        };
        assert_eq!((hang.code(), hang.exit_code()), ("hang", 3));
        assert!(hang.is_device_lost() && !none.is_device_lost());
        let named = Error::Measurement {
            name: "softmax {}".into(),
            error: Box::new(hang),
        };
        assert_eq!((named.code(), named.exit_code()), ("hang", 3));
        assert!(named.is_device_lost() && named.to_string().starts_with("softmax {}: kernel k"));
    }
}
