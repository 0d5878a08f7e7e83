//! How a kernel of the corpus can be run: a grid, and arguments without addresses.

use warpline_ir::{Arg, Launch, TensorMapDecl, TensorMapValue};

/// A launch whose buffers have no addresses yet.
#[derive(Clone, PartialEq, Debug)]
pub struct Trial {
    /// CTAs, by axis.
    pub grid: [u32; 3],
    /// Arguments, in the order of the kernel's parameters.
    pub given: Vec<Given>,
}

/// An argument.
#[derive(Clone, PartialEq, Debug)]
pub enum Given {
    /// A number.
    Number(u32),
    /// A buffer of so many bytes, all zero.
    Buffer(usize),
    /// A tensor in a buffer of so many bytes; its base is counted from there.
    Tensor(TensorMapValue, usize),
    /// A tensor that has no buffer, as it is.
    Nowhere(TensorMapValue),
}

impl Trial {
    /// A launch of some CTAs along x.
    pub(crate) fn of(ctas: u32) -> Self {
        Self {
            grid: [ctas, 1, 1],
            given: Vec::new(),
        }
    }

    pub(crate) fn number(mut self, x: u32) -> Self {
        self.given.push(Given::Number(x));
        self
    }

    pub(crate) fn buffer(mut self, bytes: u32) -> Self {
        self.given.push(Given::Buffer(bytes as usize));
        self
    }

    /// A tensor of rows, with the bytes from one row to the next.
    pub(crate) fn rows(mut self, decl: TensorMapDecl, extents: [u64; 2], stride: u64) -> Self {
        let bytes = (extents[1] * stride) as usize;
        let map = TensorMapValue {
            decl,
            base: 0,
            extents: extents.into(),
            strides: vec![stride],
        };
        self.given.push(Given::Tensor(map, bytes));
        self
    }

    pub(crate) fn nowhere(mut self, map: TensorMapValue) -> Self {
        self.given.push(Given::Nowhere(map));
        self
    }

    /// The launch; `alloc` gives the address of so many bytes of zeros.
    pub fn launch(&self, alloc: &mut dyn FnMut(usize) -> u64) -> Launch {
        let mut arg = |given: &Given| match given {
            Given::Number(x) => Arg::scalar(*x),
            Given::Buffer(bytes) => Arg::Pointer(alloc(*bytes)),
            Given::Tensor(map, bytes) => Arg::TensorMap(TensorMapValue {
                base: map.base + alloc(*bytes),
                ..map.clone()
            }),
            Given::Nowhere(map) => Arg::TensorMap(map.clone()),
        };
        Launch {
            grid: self.grid,
            args: self.given.iter().map(&mut arg).collect(),
        }
    }
}
