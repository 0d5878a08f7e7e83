//! A trial: a small kernel that shows what an op does, on data.

use crate::rule::Rule;
use std::fmt::Write as _;
use std::ops::Range;
use warpline_cpu::{GlobalMemory, Options};
use warpline_ir::{Kernel, StmtKind, Target, Type};
use warpline_kernels::{
    AnyWorkload, BufferAddresses, Buffer, Cost, FamilyError, HostTensor, Plan, LaunchStep, TensorArg, TensorSpec,
};

/// The bytes of every buffer a launch has written, in order.
pub type Results = Vec<Vec<u8>>;

/// A kernel that shows ops on data.
pub struct Trial {
    /// Its name: that of the op it shows, or of what several do together.
    pub name: String,
    /// The ops it shows, as the op table names them.
    pub shows: Vec<&'static str>,
    /// The kernel, its grid and its arguments.
    pub step: LaunchStep,
    /// What goes in.
    pub inputs: Vec<Vec<u8>>,
    /// What comes out.
    pub outputs: Vec<Output>,
}

/// A buffer that a trial writes.
pub struct Output {
    /// What it holds before.
    pub first: Vec<u8>,
    /// Bytes after which the parts repeat.
    pub block: usize,
    /// Bytes of the first input that a block is made of.
    pub from: usize,
    /// What its bytes are; those of no part must agree bit for bit.
    pub parts: Vec<Part>,
}

/// Values of one kind in an output.
pub struct Part {
    /// What they are, in messages.
    pub name: String,
    /// The type of each.
    pub ty: Type,
    /// Their bytes in a block.
    pub at: Range<usize>,
    /// How close they must be.
    pub rule: Rule,
    /// The columns of the first input that each is made of.
    pub from: Vec<Column>,
}

/// Values of each thread of a block: those of a thread side by side, one thread after the other.
#[derive(Clone, Debug)]
pub struct Column {
    /// Their type in a register.
    pub ty: Type,
    /// How many a thread has.
    pub n: usize,
    /// Its first byte in a block.
    pub at: usize,
}

impl Column {
    /// Bytes from one thread to the next.
    pub fn stride(&self) -> usize {
        self.n * Column::width(self.ty)
    }

    /// Bytes of a value in memory; a predicate is a word.
    pub fn width(ty: Type) -> usize {
        match ty {
            Type::Pred => 4,
            ty => ty.bytes(),
        }
    }
}

impl Trial {
    /// A trial of a kernel that takes no arguments yet.
    pub fn new(name: impl Into<String>, shows: &[&'static str], kernel: Kernel) -> Self {
        let grid = kernel.cluster;
        Self {
            name: name.into(),
            shows: shows.to_vec(),
            step: LaunchStep::new(kernel, grid),
            inputs: vec![],
            outputs: vec![],
        }
    }

    /// CTAs along x.
    pub fn ctas(mut self, ctas: u32) -> Self {
        self.step.grid[0] = ctas;
        self
    }

    /// The next argument is the address of these bytes.
    pub fn input<T: bytemuck::NoUninit>(mut self, values: &[T]) -> Self {
        let buffer = self.push_input(values);
        self.next(|step, name| step.pointer(name, buffer))
    }

    /// The next argument is a tensor map over these bytes; `extents` innermost first.
    pub fn input_map<T: bytemuck::NoUninit>(mut self, extents: &[u64], values: &[T]) -> Self {
        let buffer = self.push_input(values);
        self.next(|step, name| step.tensor(name, TensorArg::dense(buffer, extents)))
    }

    /// The next argument is the address of `count` values that hold all ones before.
    pub fn output(self, name: &str, ty: Type, count: usize) -> Self {
        let bytes = count * Column::width(ty);
        self.changed(name, ty, &vec![0xffu8; bytes])
    }

    /// The next argument is the address of values that are there before.
    pub fn changed<T: bytemuck::NoUninit>(mut self, name: &str, ty: Type, first: &[T]) -> Self {
        let buffer = self.push_output(name, ty, first);
        self.next(|step, name| step.pointer(name, buffer))
    }

    /// The next argument is a tensor map over values that are there before.
    pub fn changed_map<T: bytemuck::NoUninit>(
        mut self,
        name: &str,
        ty: Type,
        extents: &[u64],
        first: &[T],
    ) -> Self {
        let buffer = self.push_output(name, ty, first);
        self.next(|step, name| step.tensor(name, TensorArg::dense(buffer, extents)))
    }

    /// The next argument is a number, given by its bits.
    pub fn bits(self, ty: Type, bits: u64) -> Self {
        self.next(|step, name| step.bits(name, ty, bits))
    }

    /// Gives an argument to the first parameter that has none yet.
    fn next(mut self, give: impl FnOnce(LaunchStep, &str) -> LaunchStep) -> Self {
        let name = self.step.missing_param().map(ToOwned::to_owned);
        self.step = give(self.step, &name.unwrap_or_default());
        self
    }

    /// How close the values of the last output must be.
    pub fn within(mut self, rule: Rule) -> Self {
        if let Some(part) = self.outputs.last_mut().and_then(|o| o.parts.last_mut()) {
            part.rule = rule;
        }
        self
    }

    fn push_input<T: bytemuck::NoUninit>(&mut self, values: &[T]) -> Buffer {
        self.inputs.push(bytemuck::cast_slice(values).to_vec());
        Buffer::Input(self.inputs.len() - 1)
    }

    fn push_output<T: bytemuck::NoUninit>(&mut self, name: &str, ty: Type, first: &[T]) -> Buffer {
        let first: Vec<u8> = bytemuck::cast_slice(first).to_vec();
        let part = Part {
            name: name.to_owned(),
            ty,
            at: 0..first.len(),
            rule: Rule::Exact,
            from: vec![],
        };
        self.outputs.push(Output {
            block: first.len(),
            from: 0,
            first,
            parts: vec![part],
        });
        Buffer::Output(self.outputs.len() - 1)
    }

    /// The ops in its kernel, by their names in the table.
    pub fn ops(&self) -> Vec<&'static str> {
        let mut names = vec![];
        self.step.kernel.each_stmt(&mut |_, s| {
            if let StmtKind::Op(op) = &s.kind {
                names.push(op.info().name);
            }
        });
        names
    }

    /// What comes out on the CPU.
    pub fn on_the_cpu(&self, options: &Options) -> Result<Results, String> {
        self.on_the_cpu_from(&self.inputs, options)
    }

    /// What comes out on the CPU of other inputs.
    pub fn on_the_cpu_from(
        &self,
        inputs: &[Vec<u8>],
        options: &Options,
    ) -> Result<Results, String> {
        let mut memory = GlobalMemory::new();
        let bound = BufferAddresses {
            inputs: (inputs.iter().enumerate())
                .map(|(i, bytes)| memory.alloc_from(bytes, format!("input {i}")))
                .collect(),
            outputs: (self.outputs.iter().enumerate())
                .map(|(i, o)| memory.alloc_from(&o.first, format!("output {i}")))
                .collect(),
            workspace: 0,
        };
        let launch = self.step.launch(&bound);
        warpline_cpu::run(&self.step.kernel, &launch, &memory, options)
            .map_err(|e| e.to_string())?;
        let read = |(output, at): (&Output, &u64)| memory.read(*at, output.first.len());
        self.outputs
            .iter()
            .zip(&bound.outputs)
            .map(read)
            .collect::<Result<_, _>>()
            .map_err(|fault| fault.to_string())
    }

    /// Compares what came out with what was expected; a message names the first few differences.
    pub fn compare(
        &self,
        inputs: &[Vec<u8>],
        expected: &Results,
        got: &Results,
    ) -> Result<(), String> {
        let mut wrong = Wrong::default();
        for ((output, expected), got) in self.outputs.iter().zip(expected).zip(got) {
            if expected.len() != got.len() {
                return Err(format!(
                    "{} bytes came out, not {}",
                    got.len(),
                    expected.len()
                ));
            }
            output.compare(inputs, expected, got, &mut wrong);
        }
        wrong.verdict()
    }
}

/// Differences: how many, and the first few in words.
#[derive(Default)]
struct Wrong {
    count: usize,
    text: String,
}

impl Wrong {
    /// Differences that are told.
    const TOLD: usize = 6;

    fn add(&mut self, tell: impl FnOnce() -> String) {
        if self.count < Self::TOLD {
            let _ = write!(self.text, "\n  {}", tell());
        }
        self.count += 1;
    }

    fn verdict(self) -> Result<(), String> {
        match self.count {
            0 => Ok(()),
            n => Err(format!("{n} values differ:{}", self.text)),
        }
    }
}

impl Output {
    fn compare(&self, inputs: &[Vec<u8>], expected: &[u8], got: &[u8], wrong: &mut Wrong) {
        let blocks = expected.chunks(self.block.max(1));
        for (b, (expected, got)) in blocks.zip(got.chunks(self.block.max(1))).enumerate() {
            let mut told = vec![false; expected.len()];
            for part in &self.parts {
                told[part.at.clone()].fill(true);
                let width = Column::width(part.ty);
                let values = expected[part.at.clone()].chunks_exact(width);
                let values = values.zip(got[part.at.clone()].chunks_exact(width));
                for (i, (want, have)) in values.enumerate() {
                    let (want, have) = (word(want), word(have));
                    if !part.rule.holds(part.ty, i, want, have) {
                        wrong.add(|| {
                            let from = part.operands(inputs, b * self.from, i);
                            let hex = |x: u64| format!("{x:#0w$x}", w = 2 + 2 * width);
                            format!(
                                "{}, value {i} of block {b}{from}: {}, and {} on the CPU",
                                part.name,
                                hex(have),
                                hex(want)
                            )
                        });
                    }
                }
            }
            for i in (0..expected.len()).filter(|&i| !told[i] && expected[i] != got[i]) {
                wrong.add(|| format!("byte {i} of block {b} is {:#04x}", got[i]));
            }
        }
    }
}

impl Part {
    /// The operands of a value, in words; `block` is where its block of inputs starts.
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

/// Up to eight bytes as a number.
fn word(bytes: &[u8]) -> u64 {
    let mut w = [0; 8];
    w[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(w)
}

/// A trial is prepared and loaded as any work is; its inputs and comparison are its own.
impl AnyWorkload for Trial {
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
