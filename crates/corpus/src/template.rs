//! Launches of corpus kernels: a grid, and arguments without addresses.

use warpline_ir::{Arg, Launch, TensorMapDecl, TensorMapValue};

/// A launch whose buffers have no addresses yet.
#[derive(Clone, PartialEq, Debug)]
pub struct LaunchTemplate {
    /// CTAs, by axis.
    pub grid: [u32; 3],
    /// Arguments, in the order of the kernel's parameters.
    pub args: Vec<TemplateArg>,
}

/// An argument.
#[derive(Clone, PartialEq, Debug)]
pub enum TemplateArg {
    /// A number.
    Number(u32),
    /// A zeroed buffer of this many bytes.
    Buffer(usize),
    /// A tensor in a buffer of this many bytes; its base is an offset into the buffer.
    Tensor(TensorMapValue, usize),
    /// A tensor without a buffer, passed unchanged.
    TensorWithoutBuffer(TensorMapValue),
}

impl LaunchTemplate {
    /// Creates a launch of CTAs along x.
    pub(crate) fn with_ctas(ctas: u32) -> Self {
        Self {
            grid: [ctas, 1, 1],
            args: Vec::new(),
        }
    }

    pub(crate) fn number(mut self, x: u32) -> Self {
        self.args.push(TemplateArg::Number(x));
        self
    }

    pub(crate) fn buffer(mut self, bytes: u32) -> Self {
        self.args.push(TemplateArg::Buffer(bytes as usize));
        self
    }

    /// Adds a tensor of rows with this stride in bytes.
    pub(crate) fn rows(mut self, decl: TensorMapDecl, extents: [u64; 2], stride: u64) -> Self {
        let bytes = (extents[1] * stride) as usize;
        let map = TensorMapValue {
            decl,
            base: 0,
            extents: extents.into(),
            strides: vec![stride],
        };
        self.args.push(TemplateArg::Tensor(map, bytes));
        self
    }

    pub(crate) fn tensor_without_buffer(mut self, map: TensorMapValue) -> Self {
        self.args.push(TemplateArg::TensorWithoutBuffer(map));
        self
    }

    /// Returns the launch; `alloc` allocates zeroed bytes and returns their address.
    pub fn instantiate(&self, alloc: &mut dyn FnMut(usize) -> u64) -> Launch {
        let mut arg = |arg: &TemplateArg| match arg {
            TemplateArg::Number(x) => Arg::scalar(*x),
            TemplateArg::Buffer(bytes) => Arg::Pointer(alloc(*bytes)),
            TemplateArg::Tensor(map, bytes) => Arg::TensorMap(TensorMapValue {
                base: map.base + alloc(*bytes),
                ..map.clone()
            }),
            TemplateArg::TensorWithoutBuffer(map) => Arg::TensorMap(map.clone()),
        };
        Launch {
            grid: self.grid,
            args: self.args.iter().map(&mut arg).collect(),
        }
    }
}
