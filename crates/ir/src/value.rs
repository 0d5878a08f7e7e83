//! The nouns of a program: registers, operands, and references into shared memory.

use crate::types::{Scalar, Type};
use std::fmt;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
        pub struct $name(pub u32);
        impl $name {
            /// Its index in the kernel's list.
            pub const fn index(self) -> usize { self.0 as usize }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    )*};
}
ids! {
    /// A virtual register of a kernel.
    RegId "%";
    /// A declared shared-memory tile.
    TileId "tile";
    /// A declared array of mbarriers.
    BarId "bar";
    /// A declared named barrier.
    NamedId "named";
    /// A launch parameter.
    ParamId "param";
    /// A role.
    RoleId "role";
}

/// What an op reads: a register, or a constant.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operand {
    /// A register.
    Reg(RegId),
    /// A constant: its bits, zero-extended.
    Imm(u64),
}

impl Operand {
    /// A constant of a Rust type.
    pub fn imm<T: Scalar>(x: T) -> Self {
        Operand::Imm(x.to_bits())
    }

    /// The constant, if it is one.
    pub fn as_imm(self) -> Option<u64> {
        match self {
            Operand::Imm(x) => Some(x),
            Operand::Reg(_) => None,
        }
    }

    /// The register, if it is one.
    pub fn as_reg(self) -> Option<RegId> {
        match self {
            Operand::Reg(r) => Some(r),
            Operand::Imm(_) => None,
        }
    }
}

impl From<RegId> for Operand {
    fn from(r: RegId) -> Self {
        Operand::Reg(r)
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operand::Reg(r) => write!(f, "{r}"),
            Operand::Imm(x) => write!(f, "{x}"),
        }
    }
}

/// A byte of a declared tile, lane by lane: what a generic shared-memory access names.
///
/// The address is `tile base + stage · stage bytes + byte + offset`, in the
/// CTA itself or in the CTA of the cluster whose rank is `peer`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Place {
    /// The tile.
    pub tile: TileId,
    /// Which stage of it (`u32`).
    pub stage: Operand,
    /// Bytes from the start of the stage, swizzle applied (`u32`).
    pub byte: Operand,
    /// Constant bytes on top.
    pub offset: u32,
    /// The rank in the cluster of the CTA that is meant (`u32`); `None`: this CTA.
    pub peer: Option<Operand>,
}

/// A rectangle of a declared tile: what bulk copies and matrix ops name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct View {
    /// The tile.
    pub tile: TileId,
    /// Which stage of it (`u32`, the same in every lane).
    pub stage: Operand,
    /// First row.
    pub row: u32,
    /// Number of rows.
    pub rows: u32,
    /// First column.
    pub col: u32,
    /// Number of columns.
    pub cols: u32,
    /// The rank in the cluster of the CTA that is meant; `None`: this CTA.
    pub peer: Option<Operand>,
}

/// One mbarrier of a declared array.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BarRef {
    /// The array.
    pub bar: BarId,
    /// Which one (`u32`).
    pub index: Operand,
    /// The rank in the cluster of the CTA that is meant; `None`: this CTA.
    pub peer: Option<Operand>,
}

impl Place {
    /// Every operand inside it.
    pub fn operands(&self, each: &mut dyn FnMut(Operand)) {
        each(self.stage);
        each(self.byte);
        self.peer.into_iter().for_each(each);
    }
}

impl View {
    /// Every operand inside it.
    pub fn operands(&self, each: &mut dyn FnMut(Operand)) {
        each(self.stage);
        self.peer.into_iter().for_each(each);
    }
}

impl BarRef {
    /// Every operand inside it.
    pub fn operands(&self, each: &mut dyn FnMut(Operand)) {
        each(self.index);
        self.peer.into_iter().for_each(each);
    }
}

/// Where a generic memory access goes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum At {
    /// A declared shared tile.
    Shared(Place),
    /// Global memory at `addr + offset` (`addr` is `u64`).
    Global {
        /// The address register.
        addr: Operand,
        /// Constant bytes on top.
        offset: i32,
    },
}

/// What a virtual register is.
#[derive(Clone, Debug)]
pub struct RegInfo {
    /// Its type.
    pub ty: Type,
    /// The role that made it; `None`: the prologue, so that every role may use it.
    pub role: Option<RoleId>,
    /// Where it was made.
    pub loc: crate::loc::Loc,
}
