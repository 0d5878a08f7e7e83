//! An operand in global memory: a tensor map, or addresses for a gather.

use super::gather::Gather;
use crate::gemm::access::OperandAccess;
use crate::gemm::config::Config;
use crate::gemm::problem::{Class, Matrix};
use crate::gemm::tile_scheduler::Cluster;
use warpline_family::plan::{Address, LaunchStep, TensorArg};
use warpline_ir::builder::*;
use warpline_ir::ops::policy::CacheHint;
use warpline_ir::{DType, TensorMapDecl};

/// One of the two operands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    A,
    B,
}

impl Side {
    /// Returns the name of the operand.
    pub(super) fn name(self) -> &'static str {
        match self {
            Side::A => "a",
            Side::B => "b",
        }
    }

    /// Returns the access to the operand.
    pub(super) fn access(self, class: &Class) -> OperandAccess {
        match self {
            Side::A => class.a,
            Side::B => class.b,
        }
    }

    /// Returns the element type in shared memory.
    pub(super) fn dtype(self, class: &Class) -> DType {
        let dtype = match self {
            Side::A => class.dtype.a_dtype(),
            Side::B => class.dtype.b_dtype(),
        };
        match dtype {
            DType::F32 => DType::Tf32,
            same => same,
        }
    }

    /// Returns the rows of A or the columns of B in a tile.
    pub(super) fn tile_extent(self, c: &Config) -> u32 {
        match self {
            Side::A => c.tile_m,
            Side::B => c.tile_n,
        }
    }

    /// Returns whether the CTAs of a cluster share the loads of the operand.
    pub(super) fn is_multicast(self, c: &Config) -> bool {
        match self {
            Side::A => c.cluster() == Cluster::Cols,
            Side::B => c.cluster() == Cluster::Rows,
        }
    }

    /// Returns the L2 cache hint: all tiles of the same tile row read A again; B is streamed.
    pub(super) fn cache_hint(self, c: &Config) -> Option<CacheHint> {
        c.cache_hints.then_some(match self {
            Side::A => CacheHint::EvictLast,
            Side::B => CacheHint::EvictFirst,
        })
    }
}

/// The extents of a kernel.
#[derive(Clone, Copy)]
pub(in crate::gemm) struct Extents {
    pub(in crate::gemm) m: Reg<u32>,
    pub(in crate::gemm) n: Reg<u32>,
    pub(in crate::gemm) k: Reg<u32>,
    pub(in crate::gemm) batch: Option<Reg<u32>>,
}

impl Extents {
    /// Returns rows and columns of an operand in the orientation of its tile in shared memory.
    fn of(self, side: Side, k_major: bool) -> [Reg<u32>; 2] {
        let mn = match side {
            Side::A => self.m,
            Side::B => self.n,
        };
        match k_major {
            true => [mn, self.k],
            false => [self.k, mn],
        }
    }
}

/// An operand in global memory.
#[derive(Clone, Copy)]
pub(super) enum Source {
    /// TMA loads boxes.
    Tma(TensorMap),
    /// The producer gathers elements.
    Gather(Gather),
}

impl Source {
    /// Declares the parameters of an operand; TMA loads `boxes` of an element type.
    pub(super) fn declare(
        k: Builder,
        class: &Class,
        (side, name): (Side, &str),
        boxes: impl FnOnce(DType) -> TensorMapDecl,
        extents: Extents,
    ) -> Self {
        let (access, dtype) = (side.access(class), side.dtype(class));
        match access.gather {
            None => Source::Tma(k.tensor_map(name, boxes(dtype))),
            Some(unit) => {
                let batch = extents.batch.filter(|_| !access.is_shared);
                let extents = extents.of(side, access.k_major);
                Source::Gather(Gather::declare(k, name, dtype, unit, extents, batch))
            }
        }
    }

    /// Returns the gather, if these threads run it.
    pub(super) fn gather(&self, by: LoadBy) -> Option<&Gather> {
        match self {
            Source::Gather(gather) if by == LoadBy::AllThreads => Some(gather),
            _ => None,
        }
    }

    /// Returns the source of one of two B operands.
    pub(super) fn of_pair(self) -> Self {
        match self {
            Source::Gather(gather) => Source::Gather(gather.of_pair()),
            tma => tma,
        }
    }

    /// Returns the source of one of two matrices whose rows alternate in blocks of 8.
    pub(super) fn with_interleaved_rows(self) -> Self {
        match self {
            Source::Gather(gather) => Source::Gather(gather.with_interleaved_rows()),
            tma => tma,
        }
    }

    /// Binds the parameters of an operand to a matrix that starts at an address.
    pub(super) fn bind_args(
        step: LaunchStep,
        class: &Class,
        (side, name): (Side, &str),
        (address, matrix): (Address, Matrix),
        k_innermost: bool,
        tensor: impl Fn(Address, Matrix) -> TensorArg,
    ) -> LaunchStep {
        let access = side.access(class);
        match access.gather {
            None => step.tensor(name, tensor(address, matrix)),
            Some(unit) => Gather::bind_args(
                step,
                name,
                unit,
                (address, matrix),
                access.k_major != k_innermost,
                class.batched && !access.is_shared,
            ),
        }
    }
}

/// The threads of the producer that run a load.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::gemm) enum LoadBy {
    /// One elected thread, which issues TMA loads.
    OneThread,
    /// All threads, which gather.
    AllThreads,
}
