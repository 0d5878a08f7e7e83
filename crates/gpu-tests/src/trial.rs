//! Trials: small kernels that test ops on data.

use crate::tolerance::Tolerance;
use std::fmt::Write as _;
use std::ops::Range;
use warpline_cpu::{GlobalMemory, Options};
use warpline_ir::{Kernel, StmtKind, Target, Type};
use warpline_kernels::{
    AnyWorkload, Buffer, BufferAddresses, Cost, FamilyError, HostTensor, LaunchStep, Plan,
    TensorArg, TensorSpec,
};

/// The bytes of every output buffer of a launch.
pub type OutputBytes = Vec<Vec<u8>>;

/// A kernel that tests ops on data.
pub struct OpTrial {
    /// The name: the op, or a description of several ops. Recorded vectors are stored under it.
    pub name: String,
    /// The tested ops, by their names in the op table.
    pub covers: Vec<&'static str>,
    /// The kernel with its grid and arguments.
    pub step: LaunchStep,
    /// The inputs.
    pub inputs: Vec<Vec<u8>>,
    /// The outputs.
    pub outputs: Vec<TrialOutput>,
}

/// An output buffer of a trial.
pub struct TrialOutput {
    /// The initial bytes.
    pub initial: Vec<u8>,
    /// The size of a block in bytes; the parts repeat in every block.
    pub block: usize,
    /// The size of the corresponding block of the first input in bytes.
    pub from: usize,
    /// The parts of a block; all other bytes must be equal.
    pub parts: Vec<OutputPart>,
}

/// A range of values of one type in an output.
pub struct OutputPart {
    /// The name in messages.
    pub name: String,
    /// The type of a value.
    pub ty: Type,
    /// The bytes in a block.
    pub at: Range<usize>,
    /// The tolerance.
    pub tolerance: Tolerance,
    /// The operand columns in the first input.
    pub from: Vec<Column>,
}

/// A column of a block: `n` consecutive values of each thread, one thread after the other.
#[derive(Clone, Debug)]
pub struct Column {
    /// The register type.
    pub ty: Type,
    /// The number of values per thread.
    pub n: usize,
    /// The offset in a block.
    pub at: usize,
}

impl Column {
    /// Returns the bytes from one thread to the next.
    pub fn stride(&self) -> usize {
        self.n * Column::width(self.ty)
    }

    /// Returns the bytes of a value in memory; a predicate has four.
    pub fn width(ty: Type) -> usize {
        match ty {
            Type::Pred => 4,
            ty => ty.bytes(),
        }
    }
}

impl OpTrial {
    /// Creates a trial without arguments.
    pub fn new(name: impl Into<String>, covers: &[&'static str], kernel: Kernel) -> Self {
        let grid = kernel.cluster;
        Self {
            name: name.into(),
            covers: covers.to_vec(),
            step: LaunchStep::new(kernel, grid),
            inputs: vec![],
            outputs: vec![],
        }
    }

    /// Sets the number of CTAs along x.
    pub fn ctas(mut self, ctas: u32) -> Self {
        self.step.grid[0] = ctas;
        self
    }

    /// Passes the address of these values as the next argument.
    pub fn input<T: bytemuck::NoUninit>(mut self, values: &[T]) -> Self {
        let buffer = self.push_input(values);
        self.bind_next(|step, name| step.pointer(name, buffer))
    }

    /// Passes a tensor map over these values as the next argument; `extents` starts with the innermost.
    pub fn input_map<T: bytemuck::NoUninit>(mut self, extents: &[u64], values: &[T]) -> Self {
        let buffer = self.push_input(values);
        self.bind_next(|step, name| step.tensor(name, TensorArg::dense(buffer, extents)))
    }

    /// Passes the address of an output of `count` values as the next argument; its initial bits are ones.
    pub fn output(self, name: &str, ty: Type, count: usize) -> Self {
        let bytes = count * Column::width(ty);
        self.in_out(name, ty, &vec![0xffu8; bytes])
    }

    /// Passes the address of an output with initial values as the next argument.
    pub fn in_out<T: bytemuck::NoUninit>(mut self, name: &str, ty: Type, initial: &[T]) -> Self {
        let buffer = self.push_output(name, ty, initial);
        self.bind_next(|step, name| step.pointer(name, buffer))
    }

    /// Passes a tensor map over an output with initial values as the next argument.
    pub fn in_out_map<T: bytemuck::NoUninit>(
        mut self,
        name: &str,
        ty: Type,
        extents: &[u64],
        initial: &[T],
    ) -> Self {
        let buffer = self.push_output(name, ty, initial);
        self.bind_next(|step, name| step.tensor(name, TensorArg::dense(buffer, extents)))
    }

    /// Passes the bits of a scalar as the next argument.
    pub fn bits(self, ty: Type, bits: u64) -> Self {
        self.bind_next(|step, name| step.bits(name, ty, bits))
    }

    /// Binds the argument of the first parameter that has none.
    fn bind_next(mut self, bind: impl FnOnce(LaunchStep, &str) -> LaunchStep) -> Self {
        let name = self.step.missing_param().map(ToOwned::to_owned);
        self.step = bind(self.step, &name.unwrap_or_default());
        self
    }

    /// Sets the tolerance of the last output.
    pub fn tolerance(mut self, tolerance: Tolerance) -> Self {
        if let Some(part) = self.outputs.last_mut().and_then(|o| o.parts.last_mut()) {
            part.tolerance = tolerance;
        }
        self
    }

    fn push_input<T: bytemuck::NoUninit>(&mut self, values: &[T]) -> Buffer {
        self.inputs.push(bytemuck::cast_slice(values).to_vec());
        Buffer::Input(self.inputs.len() - 1)
    }

    fn push_output<T: bytemuck::NoUninit>(
        &mut self,
        name: &str,
        ty: Type,
        initial: &[T],
    ) -> Buffer {
        let initial: Vec<u8> = bytemuck::cast_slice(initial).to_vec();
        let part = OutputPart {
            name: name.to_owned(),
            ty,
            at: 0..initial.len(),
            tolerance: Tolerance::Exact,
            from: vec![],
        };
        self.outputs.push(TrialOutput {
            block: initial.len(),
            from: 0,
            initial,
            parts: vec![part],
        });
        Buffer::Output(self.outputs.len() - 1)
    }

    /// Returns the names of all ops of the kernel.
    pub fn ops(&self) -> Vec<&'static str> {
        let mut names = vec![];
        self.step.kernel.each_stmt(&mut |_, s| {
            if let StmtKind::Op(op) = &s.kind {
                names.push(op.info().name);
            }
        });
        names
    }

    /// Runs the trial on the CPU and returns the outputs.
    pub fn run_on_cpu(&self, options: &Options) -> Result<OutputBytes, String> {
        self.run_on_cpu_with(&self.inputs, options)
    }

    /// Runs the trial on the CPU with other inputs.
    pub fn run_on_cpu_with(
        &self,
        inputs: &[Vec<u8>],
        options: &Options,
    ) -> Result<OutputBytes, String> {
        let mut memory = GlobalMemory::new();
        let addresses = BufferAddresses {
            inputs: (inputs.iter().enumerate())
                .map(|(i, bytes)| memory.alloc_from(bytes, format!("input {i}")))
                .collect(),
            outputs: (self.outputs.iter().enumerate())
                .map(|(i, o)| memory.alloc_from(&o.initial, format!("output {i}")))
                .collect(),
            workspace: 0,
        };
        let launch = self.step.launch(&addresses);
        warpline_cpu::run(&self.step.kernel, &launch, &memory, options)
            .map_err(|e| e.to_string())?;
        let read_output =
            |(output, address): (&TrialOutput, &u64)| memory.read(*address, output.initial.len());
        self.outputs
            .iter()
            .zip(&addresses.outputs)
            .map(read_output)
            .collect::<Result<_, _>>()
            .map_err(|fault| fault.to_string())
    }

    /// Compares outputs with the expected ones; the error lists the first differences.
    pub fn compare(
        &self,
        inputs: &[Vec<u8>],
        expected: &OutputBytes,
        got: &OutputBytes,
    ) -> Result<(), String> {
        let mut mismatches = Mismatches::default();
        for ((output, expected), got) in self.outputs.iter().zip(expected).zip(got) {
            if expected.len() != got.len() {
                return Err(format!(
                    "the output has {} bytes, expected {}",
                    got.len(),
                    expected.len()
                ));
            }
            output.compare(inputs, expected, got, &mut mismatches);
        }
        mismatches.into_result()
    }
}

/// The number of differences, and a description of the first ones.
#[derive(Default)]
struct Mismatches {
    count: usize,
    text: String,
}

impl Mismatches {
    /// The maximum number of described differences.
    const MAX_DESCRIBED: usize = 6;

    fn add(&mut self, describe: impl FnOnce() -> String) {
        if self.count < Self::MAX_DESCRIBED {
            let _ = write!(self.text, "\n  {}", describe());
        }
        self.count += 1;
    }

    fn into_result(self) -> Result<(), String> {
        match self.count {
            0 => Ok(()),
            n => Err(format!("{n} values differ:{}", self.text)),
        }
    }
}

impl TrialOutput {
    fn compare(
        &self,
        inputs: &[Vec<u8>],
        expected: &[u8],
        got: &[u8],
        mismatches: &mut Mismatches,
    ) {
        let blocks = expected.chunks(self.block.max(1));
        for (b, (expected, got)) in blocks.zip(got.chunks(self.block.max(1))).enumerate() {
            let mut compared = vec![false; expected.len()];
            for part in &self.parts {
                compared[part.at.clone()].fill(true);
                let width = Column::width(part.ty);
                let values = expected[part.at.clone()].chunks_exact(width);
                let values = values.zip(got[part.at.clone()].chunks_exact(width));
                for (i, (expected, got)) in values.enumerate() {
                    let (expected, got) = (word(expected), word(got));
                    if !part.tolerance.holds(part.ty, i, expected, got) {
                        mismatches.add(|| {
                            let from = part.operands(inputs, b * self.from, i);
                            let hex = |x: u64| format!("{x:#0w$x}", w = 2 + 2 * width);
                            format!(
                                "{}, value {i} of block {b}{from}: {}, expected {}",
                                part.name,
                                hex(got),
                                hex(expected)
                            )
                        });
                    }
                }
            }
            for i in (0..expected.len()).filter(|&i| !compared[i] && expected[i] != got[i]) {
                mismatches.add(|| format!("byte {i} of block {b} is {:#04x}", got[i]));
            }
        }
    }
}

impl OutputPart {
    /// Returns the operands of a value as text; `block` is the offset of its input block.
    fn operands(&self, inputs: &[Vec<u8>], block: usize, i: usize) -> String {
        let Some(input) = inputs.first().filter(|_| !self.from.is_empty()) else {
            return String::new();
        };
        let value = |c: &Column| {
            let width = Column::width(c.ty);
            let at = block + c.at + i * c.stride();
            format!("{:#x}", input.get(at..at + width).map_or(0, word))
        };
        let values: Vec<String> = self.from.iter().map(value).collect();
        format!(" of ({})", values.join(", "))
    }
}

/// Returns up to eight bytes as a number.
fn word(bytes: &[u8]) -> u64 {
    let mut w = [0; 8];
    w[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(w)
}

/// A trial is prepared and loaded like a workload; it has its own inputs and comparison.
impl AnyWorkload for OpTrial {
    fn family(&self) -> &'static str {
        "ops"
    }
    fn problem(&self) -> serde_json::Value {
        serde_json::json!({ "op": self.name })
    }
    fn config(&self) -> serde_json::Value {
        serde_json::json!({})
    }
    fn plan(&self, _: &Target) -> Result<Plan, FamilyError> {
        Plan::new(vec![self.step.clone()], 0)
    }
    fn cost(&self) -> Cost {
        let bytes = self.inputs.iter().map(Vec::len).sum::<usize>();
        Cost {
            flops: 0.0,
            bytes: bytes as f64,
        }
    }
    fn inputs(&self) -> Vec<TensorSpec> {
        vec![]
    }
    fn outputs(&self) -> Vec<TensorSpec> {
        vec![]
    }
    fn reference(&self, _: &[HostTensor]) -> Vec<Vec<(f64, f64)>> {
        vec![]
    }
}
