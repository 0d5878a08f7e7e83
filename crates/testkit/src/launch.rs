//! Buffers and arguments of a launch on the executor.

use bytemuck::Pod;
use warpline_cpu::{GlobalMemory, Options, RunError, Stats, run};
use warpline_ir::{Arg, Kernel, Launch, TensorMapDecl, TensorMapValue};

/// The buffers and arguments of a launch, in the order of the kernel's parameters.
#[derive(Default)]
pub struct Setup {
    /// The memory that holds the buffers.
    pub memory: GlobalMemory,
    /// The arguments.
    pub args: Vec<Arg>,
    /// The addresses of the buffers, in the order in which they were added.
    pub addresses: Vec<u64>,
}

impl Setup {
    /// Creates a launch without arguments.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a buffer with values, passed as a pointer.
    pub fn input<T: Pod>(mut self, name: &str, values: &[T]) -> Self {
        let at = self.memory.alloc_from(bytemuck::cast_slice(values), name);
        self.pointer(at)
    }

    /// Adds an unwritten buffer, passed as a pointer.
    pub fn output(mut self, name: &str, bytes: usize) -> Self {
        let at = self.memory.alloc(bytes, name);
        self.pointer(at)
    }

    /// Adds a scalar.
    pub fn scalar(mut self, x: u32) -> Self {
        self.args.push(Arg::scalar(x));
        self
    }

    /// Adds a tensor map over a buffer with contents.
    pub fn map(mut self, name: &str, decl: &TensorMapDecl, bytes: &[u8], extents: &[u64]) -> Self {
        let at = self.memory.alloc_from(bytes, name);
        self.tensor_map(at, decl, extents)
    }

    /// Adds a tensor map over an unwritten buffer.
    pub fn map_output(mut self, name: &str, decl: &TensorMapDecl, extents: &[u64]) -> Self {
        let bytes = extents.iter().product::<u64>() as usize * decl.dtype.bytes();
        let at = self.memory.alloc(bytes, name);
        self.tensor_map(at, decl, extents)
    }

    /// Runs a kernel with a grid along x.
    pub fn run(
        &self,
        kernel: &Kernel,
        ctas: u32,
        options: &Options,
    ) -> Result<Stats, Box<RunError>> {
        self.run_grid(kernel, [ctas, 1, 1], options)
    }

    /// Runs a kernel with a grid of any shape.
    pub fn run_grid(
        &self,
        kernel: &Kernel,
        grid: [u32; 3],
        options: &Options,
    ) -> Result<Stats, Box<RunError>> {
        let launch = Launch {
            grid,
            args: self.args.clone(),
        };
        run(kernel, &launch, &self.memory, options)
    }

    /// Returns the values of the `i`th buffer; panics if some of its bytes are unwritten.
    #[track_caller]
    pub fn values<T: Pod>(&self, i: usize) -> Vec<T> {
        let at = self.addresses[i];
        let bytes = self
            .memory
            .buffer_len(at)
            .map(|len| self.memory.read(at, len));
        match bytes {
            Some(Ok(bytes)) => bytes
                .chunks_exact(size_of::<T>())
                .map(bytemuck::pod_read_unaligned)
                .collect(),
            Some(Err(fault)) => panic!("buffer {i}: {}", fault.text),
            None => panic!("buffer {i} is not at {at:#x}"),
        }
    }

    fn pointer(mut self, at: u64) -> Self {
        self.addresses.push(at);
        self.args.push(Arg::Pointer(at));
        self
    }

    fn tensor_map(mut self, at: u64, decl: &TensorMapDecl, extents: &[u64]) -> Self {
        self.addresses.push(at);
        let value = TensorMapValue::dense(decl.clone(), at, extents);
        self.args.push(Arg::TensorMap(value));
        self
    }
}
