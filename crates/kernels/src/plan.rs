//! Plans: the kernels that solve a problem, in order, before any buffer has an address.

use crate::program::Program;
use warpline_ir::{Arg, Fault, Kernel, Launch, ParamId, TensorMapDecl, TensorMapValue, Type};

/// A buffer of a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Buffer {
    /// The i-th input.
    Input(usize),
    /// The i-th output.
    Output(usize),
    /// The workspace, which the plans of a stream can share. Its first
    /// [`ZEROED`] bytes are zeros before the plan's first run, and each run
    /// leaves zeros there; what is behind them may hold anything.
    Workspace,
}

/// Bytes from the start of a workspace that every run finds zero and leaves zero.
pub const ZEROED: u64 = 64 << 10;

/// An argument of a step.
#[derive(Clone, PartialEq, Debug)]
pub enum PlanArg {
    /// A number.
    Scalar(Type, u64),
    /// An address inside a buffer.
    Pointer(Buffer, u64),
    /// A tensor inside a buffer.
    TensorMap {
        /// The compiled-in part.
        decl: TensorMapDecl,
        /// Where it lies.
        buffer: Buffer,
        /// Bytes from the start of the buffer.
        offset: u64,
        /// Extents, innermost first.
        extents: Vec<u64>,
        /// Bytes between elements of dimensions 1, 2, ….
        strides: Vec<u64>,
    },
}

impl PlanArg {
    /// The buffer behind it, unless it is a number.
    pub fn buffer(&self) -> Option<Buffer> {
        match self {
            PlanArg::Scalar(..) => None,
            PlanArg::Pointer(buffer, _) | PlanArg::TensorMap { buffer, .. } => Some(*buffer),
        }
    }

    /// A dense tensor from the start of a buffer; `extents` innermost first.
    pub fn dense(decl: TensorMapDecl, buffer: Buffer, extents: &[u64]) -> Self {
        let mut bytes = decl.dtype.bytes() as u64;
        let outer = extents.len().saturating_sub(1);
        let stride = |x: &u64| {
            bytes *= x;
            bytes
        };
        PlanArg::TensorMap {
            strides: extents[..outer].iter().map(stride).collect(),
            extents: extents.to_vec(),
            decl,
            buffer,
            offset: 0,
        }
    }
}

/// One kernel of a plan.
#[derive(Clone, Debug)]
pub struct Step {
    /// The kernel.
    pub kernel: Program,
    /// CTAs, by axis.
    pub grid: [u32; 3],
    /// Arguments, in the order of the kernel's parameters.
    pub args: Vec<PlanArg>,
    /// May a GPU start it before the step before it has ended? The kernel
    /// then waits for that itself, by `wait_prerequisites` before it touches
    /// global memory (rule R16.wait) other than what the steps that may still
    /// run leave alone (rule R16.settled).
    pub dependent: bool,
}

/// The kernels that solve a problem, in order.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The kernels.
    pub steps: Vec<Step>,
    /// Bytes of workspace.
    pub workspace: u64,
}

/// The addresses of a plan's buffers on a device.
#[derive(Clone, Debug, Default)]
pub struct Bound {
    /// Addresses of the inputs.
    pub inputs: Vec<u64>,
    /// Addresses of the outputs.
    pub outputs: Vec<u64>,
    /// Address of the workspace.
    pub workspace: u64,
}

/// The bytes of a plan's buffers, where they are known.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BufferBytes {
    /// Bytes of the inputs, from their addresses on.
    pub inputs: Vec<Option<u64>>,
    /// Bytes of the outputs, from their addresses on.
    pub outputs: Vec<Option<u64>>,
    /// Bytes of the workspace.
    pub workspace: u64,
}

impl BufferBytes {
    fn of(&self, buffer: Buffer) -> Option<u64> {
        match buffer {
            Buffer::Input(i) => *self.inputs.get(i)?,
            Buffer::Output(i) => *self.outputs.get(i)?,
            Buffer::Workspace => Some(self.workspace),
        }
    }
}

impl Bound {
    fn address(&self, b: Buffer) -> u64 {
        match b {
            Buffer::Input(i) => self.inputs[i],
            Buffer::Output(i) => self.outputs[i],
            Buffer::Workspace => self.workspace,
        }
    }
}

impl Step {
    /// A kernel that starts when the step before it has ended.
    pub fn new(kernel: impl Into<Program>, grid: [u32; 3], args: Vec<PlanArg>) -> Self {
        Self {
            kernel: kernel.into(),
            grid,
            args,
            dependent: false,
        }
    }

    /// The kernel as a value of its own.
    pub fn into_kernel(self) -> Kernel {
        Kernel::clone(&self.kernel)
    }

    /// Lets a GPU start it early: see [`dependent`](Self::dependent).
    pub fn dependent(mut self) -> Self {
        self.dependent = true;
        self
    }

    /// Checks the extents that the kernel declares for its pointers against the plan's buffers.
    pub fn check_extents(&self, bytes: &BufferBytes) -> Result<(), Fault> {
        let value = |p: ParamId| match self.args.get(p.index())? {
            PlanArg::Scalar(ty, bits) => ty.int_value(*bits),
            _ => None,
        };
        let room = |p: ParamId| match self.args.get(p.index())? {
            PlanArg::Pointer(buffer, offset) => Some(bytes.of(*buffer)?.saturating_sub(*offset)),
            _ => None,
        };
        self.kernel.check_extents(value, room)
    }

    /// The launch of this step on buffers that have addresses.
    pub fn launch(&self, bound: &Bound) -> Launch {
        let arg = |a: &PlanArg| match a {
            PlanArg::Scalar(ty, bits) => Arg::Scalar(*ty, *bits),
            PlanArg::Pointer(b, offset) => Arg::Pointer(bound.address(*b) + offset),
            PlanArg::TensorMap {
                decl,
                buffer,
                offset,
                extents,
                strides,
            } => Arg::TensorMap(TensorMapValue {
                decl: decl.clone(),
                base: bound.address(*buffer) + offset,
                extents: extents.clone(),
                strides: strides.clone(),
            }),
        };
        Launch {
            grid: self.grid,
            args: self.args.iter().map(arg).collect(),
        }
    }
}
