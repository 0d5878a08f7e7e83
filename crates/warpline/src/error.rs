//! What can go wrong between a piece of work and its outcome.

use warpline_check::Refusals;
use warpline_cpu::RunError;
use warpline_cuda::CudaError;
use warpline_ir::FaultKind;
use warpline_kernels::FamilyError;
use warpline_ptx::PtxError;
use warpline_translation::Mismatches;

/// Why there is no outcome.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A name that no device has.
    #[error("a device is cpu, cuda or cuda:N (cuda:0 is the first GPU), not {0:?}")]
    DeviceName(String),
    /// The driver, a GPU or a kernel on it.
    #[error(transparent)]
    Cuda(#[from] CudaError),
    /// A problem or config that the family does not serve.
    #[error(transparent)]
    Family(#[from] FamilyError),
    /// A kernel that the checker did not let pass.
    #[error(transparent)]
    Refused(#[from] Refusals),
    /// A kernel that cannot be printed.
    #[error(transparent)]
    Print(#[from] PtxError),
    /// A bug of the printer, found before anything ran.
    #[error(
        "the printed PTX does not say what the program says, which is a bug in Warpline; \
         please report it: {0}"
    )]
    Translation(#[from] Mismatches),
    /// The simulated kernel faulted or hung.
    #[error(transparent)]
    Fault(#[from] Box<RunError>),
    /// The GPU did not finish.
    #[error("kernel {kernel} did not finish on {device} within {seconds} s, so it hangs")]
    Hang {
        /// The first kernel of the plan.
        kernel: String,
        /// The device.
        device: String,
        /// How long it was waited for.
        seconds: u64,
    },
    /// A watchdog build did not finish; who waits for what, line by line.
    #[error("{0}")]
    HangReport(String),
    /// The driver's compiler made something else of a kernel.
    #[error("the driver did not compile kernel {kernel} as it was written:{remarks}")]
    NotAsWritten {
        /// The kernel.
        kernel: String,
        /// What the compiler said, one line each.
        remarks: String,
    },
    /// A launch in a capture needs a kernel that is not on the device.
    #[error(
        "kernel {kernel} is not on the device yet, and it cannot be compiled while a stream is \
         captured: run the op once, or call `Prepared::load`, before the capture"
    )]
    Capture {
        /// The kernel.
        kernel: String,
    },
    /// A launch in a capture needs a workspace that is not there.
    #[error(
        "{op} works in {bytes} bytes that belong to the stream, and they cannot be allocated while \
         it is captured: run the op once on this stream before the capture, or give it a workspace"
    )]
    WorkspaceInCapture {
        /// The op.
        op: &'static str,
        /// Bytes of workspace.
        bytes: u64,
    },
    /// A name that no op has.
    #[error("there is no op {name:?}; the ops are {}", known.join(", "))]
    UnknownOp {
        /// The name.
        name: String,
        /// Those that are there.
        known: Vec<&'static str>,
    },
    /// A name that no parameter of an op has.
    #[error("{op} has no parameter {name:?}; it takes {}", known.join(", "))]
    UnknownParameter {
        /// The op.
        op: &'static str,
        /// The name.
        name: String,
        /// Those that are there.
        known: Vec<&'static str>,
    },
    /// A contender of a measurement after which nothing more can be measured.
    #[error("{name}: {error}")]
    Contender {
        /// Its family and config.
        name: String,
        /// What happened.
        error: Box<Error>,
    },
    /// Kernels can be loaded on a GPU alone.
    #[error("the CPU simulator loads no kernels; a GPU does")]
    NoGpu,
    /// The simulator would take too long to start it unasked.
    #[error(
        "the CPU is a simulator, and this problem would take it about {seconds:.0} s; \
         above {} s that must be asked for with `simulate`",
        crate::estimate::UNASKED_SECONDS
    )]
    TooLong {
        /// The estimate.
        seconds: f64,
    },
    /// The problem does not fit into the memory of this machine.
    #[error(
        "this problem needs about {needed} bytes of host memory for its tensors and the \
         reference, and {available} are available"
    )]
    HostMemory {
        /// Bytes needed.
        needed: u64,
        /// Bytes there are.
        available: u64,
    },
    /// Work of which no config could be tuned.
    #[error("{family} could not be tuned: {why}")]
    NotTuned {
        /// The family.
        family: &'static str,
        /// Why not.
        why: String,
    },
    /// Tuning launches and compiles, which would spoil a capture.
    #[error(
        "{op} cannot be tuned while a stream is captured, as tuning compiles, launches and waits: \
         tune it before the capture, and the captured call takes the winner"
    )]
    TuneInCapture {
        /// The op.
        op: &'static str,
    },
    /// The folder or a file of tuned configs cannot be used as was asked.
    #[error("{0}")]
    Cache(String),
    /// Grid or arguments that the kernel does not take.
    #[error("kernel {kernel} cannot be launched: {why}")]
    Launch {
        /// The kernel.
        kernel: String,
        /// The rule and the value seen.
        why: String,
    },
}

impl Error {
    /// A stable code, for tools.
    pub fn code(&self) -> &'static str {
        match self {
            Error::DeviceName(_) => "bad-device-name",
            Error::Cuda(e) => e.code(),
            Error::Family(e) => e.code(),
            Error::Refused(_) => "refused",
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
            Error::Contender { error, .. } => error.code(),
            Error::NoGpu => "no-gpu",
            Error::TooLong { .. } => "too-long",
            Error::HostMemory { .. } => "host-memory",
            Error::NotTuned { .. } => "not-tuned",
            Error::TuneInCapture { .. } => "tune-in-capture",
            Error::Cache(_) => "cache",
            Error::Launch { .. } => "bad-launch",
        }
    }

    /// Is the device lost to this process: a fault, or a kernel that does not end?
    pub fn is_lost(&self) -> bool {
        match self {
            Error::Cuda(e) => e.is_fault(),
            Error::Contender { error, .. } => error.is_lost(),
            Error::Hang { .. } | Error::HangReport(_) => true,
            _ => false,
        }
    }

    /// The exit code of a command that ends with this error: 1 refused or
    /// wrong, 2 bad input or no such device, 3 device fault or hang.
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
                FamilyError::Problem(_) | FamilyError::Config(_) | FamilyError::Data(_),
            ) => 2,
            Error::Family(_)
            | Error::Refused(_)
            | Error::Print(_)
            | Error::Translation(_)
            | Error::NotAsWritten { .. }
            | Error::Capture { .. }
            | Error::WorkspaceInCapture { .. }
            | Error::NotTuned { .. }
            | Error::TuneInCapture { .. }
            | Error::Launch { .. } => 1,
            Error::Contender { error, .. } => error.exit_code(),
            Error::Fault(e) if e.kind == FaultKind::Launch => 1,
            Error::Fault(_) | Error::Hang { .. } | Error::HangReport(_) => 3,
            Error::Cuda(e) => match e {
                CudaError::DriverCall { .. } => 3,
                CudaError::JitRefused { .. } | CudaError::BadArgument { .. } => 1,
                _ => 2,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_tell_bad_input_refusal_and_fault_apart() {
        let config = Error::Family(FamilyError::Config("no".into()));
        assert_eq!((config.code(), config.exit_code()), ("bad-config", 2));
        let none = Error::Cuda(CudaError::NoSuchDevice {
            ordinal: 9,
            count: 1,
        });
        assert_eq!((none.code(), none.exit_code()), ("cuda-no-such-device", 2));
        let refused = Error::Refused(Refusals {
            kernel: "k".into(),
            refusals: vec![],
        });
        assert_eq!((refused.code(), refused.exit_code()), ("refused", 1));
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
        assert!(hang.is_lost() && !none.is_lost());
        let named = Error::Contender {
            name: "softmax {}".into(),
            error: Box::new(hang),
        };
        assert_eq!((named.code(), named.exit_code()), ("hang", 3));
        assert!(named.is_lost() && named.to_string().starts_with("softmax {}: kernel k"));
    }
}
