//! Registers, operands, and references to shared memory.

use crate::types::{Scalar, Type};
use std::fmt;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
        pub struct $name(pub u32);
        impl $name {
            /// Returns the index in the kernel's list.
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
    /// A tile in shared memory.
    TileId "tile";
    /// An array of mbarriers.
    BarId "bar";
    /// A named barrier.
    NamedId "named";
    /// A launch parameter.
    ParamId "param";
    /// A role.
    RoleId "role";
}

/// An operand of an op: a register or a constant.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operand {
    /// A register.
    Reg(RegId),
    /// A constant, as zero-extended bits.
    Imm(u64),
}

impl Operand {
    /// Returns a constant operand.
    pub fn imm<T: Scalar>(x: T) -> Self {
        Operand::Imm(x.to_bits())
    }

    /// Returns the constant, or `None` for a register.
    pub fn as_imm(self) -> Option<u64> {
        match self {
            Operand::Imm(x) => Some(x),
            Operand::Reg(_) => None,
        }
    }

    /// Returns the register, or `None` for a constant.
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

/// The address of a generic shared-memory access: a byte in a tile, one for each lane.
///
/// The address is `tile base + stage · stage bytes + byte + offset`, in this CTA or in the
/// CTA with cluster rank `peer`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SharedAddress {
    /// The tile.
    pub tile: TileId,
    /// The stage (`u32`).
    pub stage: Operand,
    /// The swizzled byte offset in the stage (`u32`).
    pub byte: Operand,
    /// A constant byte offset that is added.
    pub offset: u32,
    /// The cluster rank of the CTA (`u32`); `None` is this CTA.
    pub peer: Option<Operand>,
}

/// A rectangle of a tile: an operand of TMA copies and matrix instructions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct View {
    /// The tile.
    pub tile: TileId,
    /// The stage (`u32`, uniform across the warp).
    pub stage: Operand,
    /// The first row.
    pub row: u32,
    /// The number of rows.
    pub rows: u32,
    /// The first column.
    pub col: u32,
    /// The number of columns.
    pub cols: u32,
    /// The cluster rank of the CTA; `None` is this CTA.
    pub peer: Option<Operand>,
}

/// One mbarrier of an array.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BarRef {
    /// The array.
    pub bar: BarId,
    /// The index in the array (`u32`).
    pub index: Operand,
    /// The cluster rank of the CTA; `None` is this CTA.
    pub peer: Option<Operand>,
}

impl SharedAddress {
    /// Calls `each` for every operand.
    pub fn operands(&self, each: &mut dyn FnMut(Operand)) {
        each(self.stage);
        each(self.byte);
        self.peer.into_iter().for_each(each);
    }
}

impl View {
    /// Calls `each` for every operand.
    pub fn operands(&self, each: &mut dyn FnMut(Operand)) {
        each(self.stage);
        self.peer.into_iter().for_each(each);
    }
}

impl BarRef {
    /// Calls `each` for every operand.
    pub fn operands(&self, each: &mut dyn FnMut(Operand)) {
        each(self.index);
        self.peer.into_iter().for_each(each);
    }
}

/// The address of a generic memory access.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MemoryAddress {
    /// A byte of a tile in shared memory.
    Shared(SharedAddress),
    /// Global memory at `addr + offset` (`addr` is `u64`).
    Global {
        /// The address register.
        addr: Operand,
        /// A constant byte offset that is added.
        offset: i32,
    },
}

/// The description of a virtual register.
#[derive(Clone, Debug)]
pub struct RegInfo {
    /// The type.
    pub ty: Type,
    /// The role that defines it; `None` is the prologue, whose registers every role may use.
    pub role: Option<RoleId>,
    /// The source location of its definition.
    pub loc: crate::loc::Loc,
}
