//! Plans: the launches that solve a problem, in order, with symbolic buffers.

use crate::error::FamilyError;
use crate::program::Program;
use crate::tensor::TensorSpec;
use warpline_ir::builder::FastDivisor;
use warpline_ir::{
    Arg, Fault, Kernel, Launch, Param, ParamId, ParamKind, Scalar, TensorMapDecl, TensorMapValue,
    Type,
};

/// A buffer of a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Buffer {
    /// The i-th input.
    Input(usize),
    /// The i-th output.
    Output(usize),
    /// The workspace, which all plans of a stream share. Its first [`ZEROED_BYTES`] bytes are zero
    /// before the first run, and every run must leave them zero. The remaining bytes are
    /// uninitialized.
    Workspace,
}

/// The number of bytes at the start of the workspace that are zero before and after every run.
pub const ZEROED_BYTES: u64 = 64 << 10;

/// An address inside a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Address {
    /// The buffer.
    pub buffer: Buffer,
    /// The offset in bytes.
    pub offset: u64,
}

impl Buffer {
    /// Returns the input buffer with this name.
    pub fn named(inputs: &[TensorSpec], name: &str) -> Result<Self, FamilyError> {
        let index = inputs.iter().position(|spec| spec.name == name);
        index.map(Buffer::Input).ok_or_else(|| {
            let names: Vec<_> = inputs.iter().map(|spec| spec.name).collect();
            FamilyError::Plan(format!(
                "unknown input {name}\nhelp: the inputs are {}",
                names.join(", ")
            ))
        })
    }

    /// Returns the address at an offset in bytes.
    pub fn at(self, offset: u64) -> Address {
        Address {
            buffer: self,
            offset,
        }
    }
}

impl From<Buffer> for Address {
    fn from(buffer: Buffer) -> Self {
        buffer.at(0)
    }
}

/// The run-time part of a tensor map. The kernel parameter has the compiled-in part: element type,
/// box and swizzle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TensorArg {
    /// The address of the first element.
    pub at: Address,
    /// Extents, innermost first.
    pub extents: Vec<u64>,
    /// The strides of dimensions 1, 2, … in bytes; `None` for a dense tensor.
    pub strides: Option<Vec<u64>>,
}

impl TensorArg {
    /// Returns a dense tensor; `extents` are innermost first.
    pub fn dense<T: Copy + Into<u64>>(at: impl Into<Address>, extents: &[T]) -> Self {
        Self {
            at: at.into(),
            extents: extents.iter().map(|&x| x.into()).collect(),
            strides: None,
        }
    }

    /// Returns a tensor with `strides` in bytes for dimensions 1, 2, …; `extents` are innermost
    /// first.
    pub fn strided(at: impl Into<Address>, extents: Vec<u64>, strides: Vec<u64>) -> Self {
        Self {
            at: at.into(),
            extents,
            strides: Some(strides),
        }
    }

    /// Returns the strides in bytes for an element size.
    fn strides(&self, element: usize) -> Vec<u64> {
        let dense = || {
            let outer = self.extents.len().saturating_sub(1);
            let mut bytes = element as u64;
            let stride = |x: &u64| {
                bytes = bytes.saturating_mul(*x);
                bytes
            };
            self.extents[..outer].iter().map(stride).collect()
        };
        self.strides.clone().unwrap_or_else(dense)
    }
}

/// An argument of a launch step.
#[derive(Clone, PartialEq, Debug)]
pub enum PlanArg {
    /// A scalar: its type and bits.
    Scalar(Type, u64),
    /// An address inside a buffer.
    Pointer(Address),
    /// A tensor map of a tensor inside a buffer, with all strides in bytes.
    TensorMap {
        /// The compiled-in part.
        decl: TensorMapDecl,
        /// The address of the first element.
        at: Address,
        /// Extents, innermost first.
        extents: Vec<u64>,
        /// The strides of dimensions 1, 2, … in bytes.
        strides: Vec<u64>,
    },
}

impl PlanArg {
    /// Returns the buffer that the argument refers to; `None` for a scalar.
    pub fn buffer(&self) -> Option<Buffer> {
        match self {
            PlanArg::Scalar(..) => None,
            PlanArg::Pointer(at) | PlanArg::TensorMap { at, .. } => Some(at.buffer),
        }
    }
}

/// An argument that is not yet matched to its parameter.
enum UnmatchedArg {
    Scalar(Type, u64),
    Pointer(Address),
    Tensor(TensorArg),
}

impl UnmatchedArg {
    /// Describes the kind in messages.
    fn kind(&self) -> String {
        match self {
            UnmatchedArg::Scalar(ty, _) => format!("a {ty}"),
            UnmatchedArg::Pointer(_) => "a pointer".to_owned(),
            UnmatchedArg::Tensor(t) => format!("a tensor with {} dimensions", t.extents.len()),
        }
    }
}

/// One launch of a plan: a kernel, its grid and its arguments by name.
///
/// [`Plan::new`] rejects a step with a missing, unknown or mistyped argument.
///
/// ```
/// use warpline_family::{Buffer, Plan, LaunchStep};
/// use warpline_ir::{Kernel, Target};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let kernel = Kernel::build("fill", &Target::SM_90A, |k| {
///     let (_n, _out) = (k.param::<u32>("n"), k.pointer::<f32>("out"));
///     k.role("all").body(|| {});
/// })?;
/// let step = LaunchStep::new(kernel, [1, 1, 1]).scalar("n", 7u32);
/// let complete = step.clone().pointer("out", Buffer::Output(0));
/// assert!(Plan::new(vec![complete], 0).is_ok());
///
/// let error = |step| Plan::new(vec![step], 0).unwrap_err().to_string();
/// assert_eq!(
///     error(step.clone()),
///     "kernel fill has no argument for its parameter out: a pointer to f32"
/// );
/// assert_eq!(
///     error(step.clone().scalar("m", 7u32)),
///     "kernel fill has no parameter m\nhelp: its parameters are n, out"
/// );
/// assert_eq!(
///     error(step.scalar("out", 7u64)),
///     "parameter out of kernel fill is a pointer to f32, not a u64"
/// );
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct LaunchStep {
    /// The kernel.
    pub kernel: Program,
    /// The grid size in CTAs.
    pub grid: [u32; 3],
    /// Whether this is a dependent launch (PDL), which may start before the previous step ends. The
    /// kernel must call `wait_prerequisites` before it accesses global memory (rule R16.wait),
    /// except memory that no running step writes (rule R16.pdl-safe).
    pub dependent: bool,
    /// The arguments in the order of the kernel's parameters; `None` if not set yet.
    set_args: Vec<Option<PlanArg>>,
    /// The first error in an argument.
    rejected: Option<String>,
}

/// The launches that solve a problem, in order.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Plan {
    /// The launches, in order.
    pub steps: Vec<LaunchStep>,
    /// The size of the workspace in bytes.
    pub workspace: u64,
}

/// The device addresses of a plan's buffers.
#[derive(Clone, Debug, Default)]
pub struct BufferAddresses {
    /// The addresses of the inputs.
    pub inputs: Vec<u64>,
    /// The addresses of the outputs.
    pub outputs: Vec<u64>,
    /// The address of the workspace.
    pub workspace: u64,
}

/// The sizes of a plan's buffers, if known.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BufferBytes {
    /// The bytes from the address of each input to its end.
    pub inputs: Vec<Option<u64>>,
    /// The bytes from the address of each output to its end.
    pub outputs: Vec<Option<u64>>,
    /// The bytes of the workspace.
    pub workspace: u64,
}

impl BufferBytes {
    fn available(&self, buffer: Buffer) -> Option<u64> {
        match buffer {
            Buffer::Input(i) => *self.inputs.get(i)?,
            Buffer::Output(i) => *self.outputs.get(i)?,
            Buffer::Workspace => Some(self.workspace),
        }
    }
}

impl BufferAddresses {
    /// Returns a device address.
    ///
    /// # Panics
    /// If there is no input or output with the index of the address.
    pub fn address(&self, at: Address) -> u64 {
        at.offset
            + match at.buffer {
                Buffer::Input(i) => self.inputs[i],
                Buffer::Output(i) => self.outputs[i],
                Buffer::Workspace => self.workspace,
            }
    }
}

impl Plan {
    /// Returns a plan with `workspace` bytes of workspace. Rejects a step with a missing, unknown or
    /// mistyped argument.
    pub fn new(steps: Vec<LaunchStep>, workspace: u64) -> Result<Self, FamilyError> {
        steps.iter().try_for_each(LaunchStep::check)?;
        Ok(Self { steps, workspace })
    }
}

/// Describes the kind of a parameter in messages.
fn describe_param(kind: &ParamKind) -> String {
    match kind {
        ParamKind::Scalar(ty) => format!("a {ty}"),
        ParamKind::Pointer(dtype) => format!("a pointer to {dtype}"),
        ParamKind::TensorMap(decl) => {
            format!("a tensor of {} with {} dimensions", decl.dtype, decl.rank())
        }
    }
}

impl LaunchStep {
    /// Returns a step that starts after the previous step ends.
    pub fn new(kernel: impl Into<Program>, grid: [u32; 3]) -> Self {
        let kernel = kernel.into();
        Self {
            set_args: vec![None; kernel.params.len()],
            kernel,
            grid,
            dependent: false,
            rejected: None,
        }
    }

    /// Returns a launch of another kernel with the same grid and, by parameter name, the same
    /// arguments. Parameters that this kernel does not have remain unset.
    pub fn with_kernel(&self, kernel: impl Into<Program>) -> Self {
        let mut step = LaunchStep::new(kernel, self.grid);
        for (param, arg) in self.kernel.params.iter().zip(&self.set_args) {
            if let Some(id) = step.kernel.find_param(&param.name) {
                step.set_args[id.index()].clone_from(arg);
            }
        }
        step
    }

    /// Sets a scalar.
    pub fn scalar<T: Scalar>(self, name: &str, x: T) -> Self {
        self.bits(name, T::TYPE, x.to_bits())
    }

    /// Sets a scalar from its bits.
    pub fn bits(self, name: &str, ty: Type, bits: u64) -> Self {
        self.set(name, UnmatchedArg::Scalar(ty, bits))
    }

    /// Sets the divisor of a fast division by `n`.
    pub fn divisor(self, name: &str, n: u32) -> Self {
        self.scalar(name, FastDivisor::encode(n))
    }

    /// Sets a pointer.
    pub fn pointer(self, name: &str, at: impl Into<Address>) -> Self {
        self.set(name, UnmatchedArg::Pointer(at.into()))
    }

    /// Sets the pointer with the name of each input and output.
    pub fn pointers(self, inputs: &[TensorSpec], outputs: &[TensorSpec]) -> Self {
        let inputs = (inputs.iter().enumerate()).map(|(i, spec)| (spec, Buffer::Input(i)));
        let outputs = (outputs.iter().enumerate()).map(|(i, spec)| (spec, Buffer::Output(i)));
        let set =
            |step: Self, (spec, buffer): (&TensorSpec, Buffer)| step.pointer(spec.name, buffer);
        inputs.chain(outputs).fold(self, set)
    }

    /// Sets a tensor map.
    pub fn tensor(self, name: &str, tensor: TensorArg) -> Self {
        self.set(name, UnmatchedArg::Tensor(tensor))
    }

    fn set(mut self, name: &str, arg: UnmatchedArg) -> Self {
        let rejected = self.try_set(name, arg).err();
        self.rejected = self.rejected.or(rejected);
        self
    }

    fn try_set(&mut self, name: &str, arg: UnmatchedArg) -> Result<(), String> {
        let kernel = &self.kernel.name;
        let Some(id) = self.kernel.find_param(name) else {
            let names: Vec<_> = self.kernel.params.iter().map(|p| p.name.as_str()).collect();
            return Err(format!(
                "kernel {kernel} has no parameter {name}\nhelp: its parameters are {}",
                names.join(", ")
            ));
        };
        let arg = match (&self.kernel.param(id).kind, arg) {
            (ParamKind::Scalar(ty), UnmatchedArg::Scalar(arg_ty, bits)) if *ty == arg_ty => {
                PlanArg::Scalar(arg_ty, bits)
            }
            (ParamKind::Pointer(_), UnmatchedArg::Pointer(at)) => PlanArg::Pointer(at),
            (ParamKind::TensorMap(decl), UnmatchedArg::Tensor(t))
                if t.extents.len() == decl.rank() =>
            {
                PlanArg::TensorMap {
                    decl: decl.clone(),
                    at: t.at,
                    strides: t.strides(decl.dtype.bytes()),
                    extents: t.extents,
                }
            }
            (kind, arg) => {
                return Err(format!(
                    "parameter {name} of kernel {kernel} is {}, not {}",
                    describe_param(kind),
                    arg.kind()
                ));
            }
        };
        match self.set_args[id.index()].replace(arg) {
            None => Ok(()),
            Some(_) => Err(format!("parameter {name} of kernel {kernel} is set twice")),
        }
    }

    fn first_missing(&self) -> Option<&Param> {
        let mut params = self.kernel.params.iter().zip(&self.set_args);
        let (param, _) = params.find(|(_, arg)| arg.is_none())?;
        Some(param)
    }

    /// Returns the name of the first parameter without an argument.
    pub fn missing_param(&self) -> Option<&str> {
        self.first_missing().map(|param| param.name.as_str())
    }

    /// Rejects missing, unknown and mistyped arguments.
    fn check(&self) -> Result<(), FamilyError> {
        let missing = self.first_missing().map(|param| {
            format!(
                "kernel {} has no argument for its parameter {}: {}",
                self.kernel.name,
                param.name,
                describe_param(&param.kind)
            )
        });
        match self.rejected.clone().or(missing) {
            None => Ok(()),
            Some(text) => Err(FamilyError::Plan(text)),
        }
    }

    /// Iterates over the arguments in the order of the kernel's parameters.
    pub fn args(&self) -> impl Iterator<Item = &PlanArg> {
        self.set_args.iter().flatten()
    }

    /// Returns the argument of a parameter.
    pub fn arg(&self, p: ParamId) -> Option<&PlanArg> {
        self.set_args.get(p.index())?.as_ref()
    }

    /// Returns a copy of the kernel.
    pub fn into_kernel(self) -> Kernel {
        Kernel::clone(&self.kernel)
    }

    /// Makes this a dependent launch: see [`dependent`](Self::dependent).
    pub fn dependent(mut self) -> Self {
        self.dependent = true;
        self
    }

    /// Checks that the buffers are as large as the extents that the kernel declares for its pointers.
    pub fn check_extents(&self, bytes: &BufferBytes) -> Result<(), Fault> {
        let value = |p: ParamId| match self.arg(p)? {
            PlanArg::Scalar(ty, bits) => ty.int_value(*bits),
            _ => None,
        };
        let available = |p: ParamId| match self.arg(p)? {
            PlanArg::Pointer(at) => Some(bytes.available(at.buffer)?.saturating_sub(at.offset)),
            _ => None,
        };
        self.kernel.check_extents(value, available)
    }

    /// Returns the launch of this step for given buffer addresses.
    pub fn launch(&self, addresses: &BufferAddresses) -> Launch {
        let arg = |a: &PlanArg| match a {
            PlanArg::Scalar(ty, bits) => Arg::Scalar(*ty, *bits),
            PlanArg::Pointer(at) => Arg::Pointer(addresses.address(*at)),
            PlanArg::TensorMap {
                decl,
                at,
                extents,
                strides,
            } => Arg::TensorMap(TensorMapValue {
                decl: decl.clone(),
                base: addresses.address(*at),
                extents: extents.clone(),
                strides: strides.clone(),
            }),
        };
        Launch {
            grid: self.grid,
            args: self.args().map(arg).collect(),
        }
    }
}
