//! Plans: the kernels that solve a problem, in order, before any buffer has an address.

use crate::error::FamilyError;
use crate::program::Program;
use crate::tensor::TensorSpec;
use warpline_ir::build::Divisor;
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
    /// The workspace, which the plans of a stream can share. Its first
    /// [`ZEROED`] bytes are zeros before the plan's first run, and each run
    /// leaves zeros there; what is behind them may hold anything.
    Workspace,
}

/// Bytes from the start of a workspace that every run finds zero and leaves zero.
pub const ZEROED: u64 = 64 << 10;

/// A byte of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Address {
    /// The buffer.
    pub buffer: Buffer,
    /// Bytes from its start.
    pub offset: u64,
}

impl Buffer {
    /// Returns the input of that name among the inputs of a problem.
    pub fn named(inputs: &[TensorSpec], name: &str) -> Result<Self, FamilyError> {
        let place = inputs.iter().position(|spec| spec.name == name);
        place.map(Buffer::Input).ok_or_else(|| {
            let names: Vec<_> = inputs.iter().map(|spec| spec.name).collect();
            FamilyError::Plan(format!(
                "there is no input {name}\nhelp: the inputs are {}",
                names.join(", ")
            ))
        })
    }

    /// Returns the address so many bytes behind the start.
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

/// A tensor behind a tensor map. The kernel's parameter has the rest: element type, box, swizzle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TensorArg {
    /// Its first element.
    pub at: Address,
    /// Extents, innermost first.
    pub extents: Vec<u64>,
    /// Bytes between elements of dimensions 1, 2, …; none if there are no gaps.
    pub strides: Option<Vec<u64>>,
}

impl TensorArg {
    /// A tensor without gaps; `extents` innermost first.
    pub fn dense<T: Copy + Into<u64>>(at: impl Into<Address>, extents: &[T]) -> Self {
        Self {
            at: at.into(),
            extents: extents.iter().map(|&x| x.into()).collect(),
            strides: None,
        }
    }

    /// A tensor whose dimensions 1, 2, … are `strides` bytes apart; `extents` innermost first.
    pub fn strided(at: impl Into<Address>, extents: Vec<u64>, strides: Vec<u64>) -> Self {
        Self {
            at: at.into(),
            extents,
            strides: Some(strides),
        }
    }

    /// The strides in bytes, for elements of that size.
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

/// An argument of a step.
#[derive(Clone, PartialEq, Debug)]
pub enum PlanArg {
    /// A number.
    Scalar(Type, u64),
    /// An address inside a buffer.
    Pointer(Address),
    /// A tensor inside a buffer, with all strides in bytes.
    TensorMap {
        /// The compiled-in part.
        decl: TensorMapDecl,
        /// Its first element.
        at: Address,
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
            PlanArg::Pointer(at) | PlanArg::TensorMap { at, .. } => Some(at.buffer),
        }
    }
}

/// An argument before its parameter is known.
enum Given {
    Scalar(Type, u64),
    Pointer(Address),
    Tensor(TensorArg),
}

impl Given {
    /// As messages name its kind.
    fn kind(&self) -> String {
        match self {
            Given::Scalar(ty, _) => format!("a {ty}"),
            Given::Pointer(_) => "a pointer".to_owned(),
            Given::Tensor(t) => format!("a tensor with {} dimensions", t.extents.len()),
        }
    }
}

/// One kernel of a plan, and its arguments by name.
///
/// [`Plan::new`] rejects a step with a missing, unknown or mistyped argument.
///
/// ```
/// use warpline_family::{Buffer, Plan, Step};
/// use warpline_ir::{Kernel, Target};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let kernel = Kernel::build("fill", &Target::SM_90A, |k| {
///     let (_n, _out) = (k.param::<u32>("n"), k.pointer::<f32>("out"));
///     k.role("all").body(|| {});
/// })?;
/// let step = Step::new(kernel, [1, 1, 1]).scalar("n", 7u32);
/// let whole = step.clone().pointer("out", Buffer::Output(0));
/// assert!(Plan::new(vec![whole], 0).is_ok());
///
/// let said = |step| Plan::new(vec![step], 0).unwrap_err().to_string();
/// assert_eq!(
///     said(step.clone()),
///     "kernel fill has no argument for its parameter out: a pointer to f32"
/// );
/// assert_eq!(
///     said(step.clone().scalar("m", 7u32)),
///     "kernel fill has no parameter m\nhelp: its parameters are n, out"
/// );
/// assert_eq!(
///     said(step.scalar("out", 7u64)),
///     "parameter out of kernel fill is a pointer to f32, not a u64"
/// );
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Step {
    /// The kernel.
    pub kernel: Program,
    /// CTAs, by axis.
    pub grid: [u32; 3],
    /// May a GPU start it before the step before it has ended? The kernel
    /// then waits for that itself, by `wait_prerequisites` before it touches
    /// global memory (rule R16.wait) other than what the steps that may still
    /// run leave alone (rule R16.settled).
    pub dependent: bool,
    /// Arguments, in the order of the kernel's parameters, as far as they were given.
    given: Vec<Option<PlanArg>>,
    /// What is wrong with the arguments that were given.
    rejected: Option<String>,
}

/// The kernels that solve a problem, in order.
#[derive(Clone, Debug)]
#[non_exhaustive]
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
    fn address(&self, at: Address) -> u64 {
        at.offset
            + match at.buffer {
                Buffer::Input(i) => self.inputs[i],
                Buffer::Output(i) => self.outputs[i],
                Buffer::Workspace => self.workspace,
            }
    }
}

impl Plan {
    /// A plan of steps whose arguments are complete, with so many bytes of workspace.
    pub fn new(steps: Vec<Step>, workspace: u64) -> Result<Self, FamilyError> {
        steps.iter().try_for_each(Step::check)?;
        Ok(Self { steps, workspace })
    }
}

/// A parameter as messages name its kind.
fn expected(kind: &ParamKind) -> String {
    match kind {
        ParamKind::Scalar(ty) => format!("a {ty}"),
        ParamKind::Pointer(dtype) => format!("a pointer to {dtype}"),
        ParamKind::TensorMap(decl) => {
            format!("a tensor of {} with {} dimensions", decl.dtype, decl.rank())
        }
    }
}

impl Step {
    /// A kernel that starts when the step before it has ended.
    pub fn new(kernel: impl Into<Program>, grid: [u32; 3]) -> Self {
        let kernel = kernel.into();
        Self {
            given: vec![None; kernel.params.len()],
            kernel,
            grid,
            dependent: false,
            rejected: None,
        }
    }

    /// The launch of another kernel with the same grid and arguments, which it takes by the same
    /// names; those of its parameters that this kernel does not have are still to be given.
    pub fn of_kernel(&self, kernel: impl Into<Program>) -> Self {
        let mut step = Step::new(kernel, self.grid);
        for (param, arg) in self.kernel.params.iter().zip(&self.given) {
            if let Some(id) = step.kernel.find_param(&param.name) {
                step.given[id.index()].clone_from(arg);
            }
        }
        step
    }

    /// Gives a number.
    pub fn scalar<T: Scalar>(self, name: &str, x: T) -> Self {
        self.bits(name, T::TYPE, x.to_bits())
    }

    /// Gives the bits of a number of a type.
    pub fn bits(self, name: &str, ty: Type, bits: u64) -> Self {
        self.give(name, Given::Scalar(ty, bits))
    }

    /// Gives the divisor of a fast division by `n`.
    pub fn divisor(self, name: &str, n: u32) -> Self {
        self.scalar(name, Divisor::word(n))
    }

    /// Gives an address.
    pub fn pointer(self, name: &str, at: impl Into<Address>) -> Self {
        self.give(name, Given::Pointer(at.into()))
    }

    /// Gives every input and output to the pointer of its name.
    pub fn pointers(self, inputs: &[TensorSpec], outputs: &[TensorSpec]) -> Self {
        let inputs = (inputs.iter().enumerate()).map(|(i, spec)| (spec, Buffer::Input(i)));
        let outputs = (outputs.iter().enumerate()).map(|(i, spec)| (spec, Buffer::Output(i)));
        let give =
            |step: Self, (spec, buffer): (&TensorSpec, Buffer)| step.pointer(spec.name, buffer);
        inputs.chain(outputs).fold(self, give)
    }

    /// Gives a tensor.
    pub fn tensor(self, name: &str, tensor: TensorArg) -> Self {
        self.give(name, Given::Tensor(tensor))
    }

    fn give(mut self, name: &str, given: Given) -> Self {
        let rejected = self.put(name, given).err();
        self.rejected = self.rejected.or(rejected);
        self
    }

    fn put(&mut self, name: &str, given: Given) -> Result<(), String> {
        let kernel = &self.kernel.name;
        let Some(id) = self.kernel.find_param(name) else {
            let names: Vec<_> = self.kernel.params.iter().map(|p| p.name.as_str()).collect();
            return Err(format!(
                "kernel {kernel} has no parameter {name}\nhelp: its parameters are {}",
                names.join(", ")
            ));
        };
        let arg = match (&self.kernel.param(id).kind, given) {
            (ParamKind::Scalar(ty), Given::Scalar(given, bits)) if *ty == given => {
                PlanArg::Scalar(given, bits)
            }
            (ParamKind::Pointer(_), Given::Pointer(at)) => PlanArg::Pointer(at),
            (ParamKind::TensorMap(decl), Given::Tensor(t)) if t.extents.len() == decl.rank() => {
                PlanArg::TensorMap {
                    decl: decl.clone(),
                    at: t.at,
                    strides: t.strides(decl.dtype.bytes()),
                    extents: t.extents,
                }
            }
            (kind, given) => {
                return Err(format!(
                    "parameter {name} of kernel {kernel} is {}, not {}",
                    expected(kind),
                    given.kind()
                ));
            }
        };
        match self.given[id.index()].replace(arg) {
            None => Ok(()),
            Some(_) => Err(format!(
                "parameter {name} of kernel {kernel} is given twice"
            )),
        }
    }

    fn first_missing(&self) -> Option<&Param> {
        let mut params = self.kernel.params.iter().zip(&self.given);
        let (param, _) = params.find(|(_, arg)| arg.is_none())?;
        Some(param)
    }

    /// The first parameter that has no argument yet.
    pub fn missing(&self) -> Option<&str> {
        self.first_missing().map(|param| param.name.as_str())
    }

    /// Rejects arguments that are missing, unknown or mistyped.
    fn check(&self) -> Result<(), FamilyError> {
        let missing = self.first_missing().map(|param| {
            format!(
                "kernel {} has no argument for its parameter {}: {}",
                self.kernel.name,
                param.name,
                expected(&param.kind)
            )
        });
        match self.rejected.clone().or(missing) {
            None => Ok(()),
            Some(text) => Err(FamilyError::Plan(text)),
        }
    }

    /// Arguments, in the order of the kernel's parameters.
    pub fn args(&self) -> impl Iterator<Item = &PlanArg> {
        self.given.iter().flatten()
    }

    /// The argument of a parameter.
    pub fn arg(&self, p: ParamId) -> Option<&PlanArg> {
        self.given.get(p.index())?.as_ref()
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
        let value = |p: ParamId| match self.arg(p)? {
            PlanArg::Scalar(ty, bits) => ty.int_value(*bits),
            _ => None,
        };
        let room = |p: ParamId| match self.arg(p)? {
            PlanArg::Pointer(at) => Some(bytes.of(at.buffer)?.saturating_sub(at.offset)),
            _ => None,
        };
        self.kernel.check_extents(value, room)
    }

    /// The launch of this step on buffers that have addresses.
    pub fn launch(&self, bound: &Bound) -> Launch {
        let arg = |a: &PlanArg| match a {
            PlanArg::Scalar(ty, bits) => Arg::Scalar(*ty, *bits),
            PlanArg::Pointer(at) => Arg::Pointer(bound.address(*at)),
            PlanArg::TensorMap {
                decl,
                at,
                extents,
                strides,
            } => Arg::TensorMap(TensorMapValue {
                decl: decl.clone(),
                base: bound.address(*at),
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
