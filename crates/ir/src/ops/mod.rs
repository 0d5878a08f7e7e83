//! Ops: each is one PTX instruction, or a short fixed sequence of them.
//!
//! An op is one struct. Its file declares its PTX ([`Instr::asm`]), its CPU
//! semantics ([`Instr::exec`]) with their accuracy, its abstract semantics for
//! the checker ([`Instr::transfer`]), its effects ([`Instr::effects`]) and its
//! legality ([`Instr::legal`]). To add an instruction, add a struct to the file
//! of its group and its name to the list below.

use crate::domain::Domain;
use crate::machine::{Asm, Effects, Exec, Machine, MemoryAccess};
use crate::sync::SyncOp;
use crate::target::Target;
use crate::types::Type;
use crate::value::{Operand, RegId};
use std::fmt;

pub mod arith;
pub mod atomic;
pub mod bits;
pub mod bulk;
pub mod cluster;
pub mod compare;
pub mod control;
pub mod convert;
pub mod copy;
pub mod math;
pub mod matrix;
pub mod mbarrier;
pub mod memory;
pub mod mma;
pub mod policy;
pub mod remote;
pub mod special;
pub mod tensor;
pub mod warp;
pub mod wgmma;

/// The accuracy of the CPU semantics relative to the hardware.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Exactness {
    /// Bit-exact.
    Exact,
    /// Within an error bound.
    Within(&'static str),
    /// The value depends on the machine (clocks, SM numbers).
    Machine,
}

impl fmt::Display for Exactness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Exactness::Exact => "exact",
            Exactness::Within(bound) => bound,
            Exactness::Machine => "machine-dependent value",
        })
    }
}

/// A row of the op table.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct OpInfo {
    /// The name in the text form.
    pub name: &'static str,
    /// The PTX instruction; braces list alternatives and optional parts.
    pub ptx: &'static str,
    /// A description in one sentence.
    pub doc: &'static str,
    /// The accuracy of the CPU semantics.
    pub exactness: Exactness,
}

/// The declaration of an op.
pub trait Instr: Clone {
    /// The row of the op table.
    const INFO: OpInfo;

    /// Returns the name with types and variants, for the text form: `add.f32`.
    fn name(&self) -> String;

    /// Reports the registers, memory accesses and synchronization of the op.
    fn effects(&self, e: &mut dyn Effects);

    /// Prints the PTX.
    fn asm(&self, a: &mut dyn Asm);

    /// Executes the op for the active lanes of a warp.
    fn exec<M: Machine>(&self, m: &mut M) -> Exec;

    /// Computes abstract results from abstract operands: the transfer function.
    ///
    /// By default all results are unknown. A transfer function must contain every
    /// result of [`exec`](Instr::exec); the checker's tests verify this on random
    /// and boundary operands.
    fn transfer<D: Domain>(&self, d: &mut D) {
        let mut results = Results::default();
        self.effects(&mut results);
        for r in results.0 {
            let v = d.unknown();
            d.write(r, v);
        }
    }

    /// Checks the op against its own rules and the target; the error names the violated rule.
    fn legal(&self, _target: &Target) -> Result<(), String> {
        Ok(())
    }

    /// Returns the minimum PTX version.
    fn ptx_version(&self) -> (u32, u32) {
        (8, 0)
    }

    /// Returns the uniformity of the results, given the uniformity of the operands.
    ///
    /// A pure function of the operands keeps the default. Ops that depend on the
    /// lane, exchange values between lanes or read changing memory override it.
    fn uniform(&self, operands: Uniform) -> Uniform {
        operands
    }
}

/// Collects the registers that an op writes.
#[derive(Default)]
struct Results(Vec<RegId>);

impl Effects for Results {
    fn def(&mut self, r: RegId) {
        self.0.push(r);
    }
    fn arg(&mut self, _: Operand, _: Type) {}
    fn access(&mut self, _: &MemoryAccess) {}
    fn sync(&mut self, _: &SyncOp) {}
    fn whole_warp(&mut self) {}
}

/// The threads for which a value is uniform, from few to many.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Uniform {
    /// Lanes may differ.
    Lane,
    /// Uniform across the lanes of a warp.
    Warp,
    /// Uniform across the warps of a warpgroup.
    Warpgroup,
    /// Uniform across the threads of the CTA that execute the statement.
    Cta,
}

macro_rules! ops {
    ($($group:ident { $($name:ident),* $(,)? })*) => {
        /// Any op.
        #[derive(Clone, PartialEq, Debug)]
        pub enum Op {
            $($(
                #[doc = concat!("See [`", stringify!($group), "::", stringify!($name), "`].")]
                $name($group::$name),
            )*)*
        }

        $($(
            impl From<$group::$name> for Op {
                fn from(o: $group::$name) -> Self { Op::$name(o) }
            }
        )*)*

        impl Op {
            /// See [`Instr::name`].
            pub fn name(&self) -> String { match self { $($(Op::$name(o) => o.name(),)*)* } }
            /// Returns the row of the op table.
            pub fn info(&self) -> OpInfo { match self { $($(Op::$name(_) => $group::$name::INFO,)*)* } }
            /// See [`Instr::effects`].
            pub fn effects(&self, e: &mut dyn Effects) { match self { $($(Op::$name(o) => o.effects(e),)*)* } }
            /// See [`Instr::asm`].
            pub fn asm(&self, a: &mut dyn Asm) { match self { $($(Op::$name(o) => o.asm(a),)*)* } }
            /// See [`Instr::exec`].
            #[inline]
            pub fn exec<M: Machine>(&self, m: &mut M) -> Exec { match self { $($(Op::$name(o) => o.exec(m),)*)* } }
            /// See [`Instr::transfer`].
            pub fn transfer<D: Domain>(&self, d: &mut D) { match self { $($(Op::$name(o) => o.transfer(d),)*)* } }
            /// See [`Instr::legal`].
            pub fn legal(&self, t: &Target) -> Result<(), String> { match self { $($(Op::$name(o) => o.legal(t),)*)* } }
            /// See [`Instr::ptx_version`].
            pub fn ptx_version(&self) -> (u32, u32) { match self { $($(Op::$name(o) => o.ptx_version(),)*)* } }
            /// See [`Instr::uniform`].
            pub fn uniform(&self, operands: Uniform) -> Uniform { match self { $($(Op::$name(o) => o.uniform(operands),)*)* } }
        }

        /// All ops: the group and the row of the table.
        pub const TABLE: &[(&str, OpInfo)] = &[$($((stringify!($group), $group::$name::INFO),)*)*];
    };
}

ops! {
    arith { Mov, Opaque, Add, Sub, Mul, MulHi, MulWide, Mad, MadWide, Fma, Div, Rem, Neg, Abs, Min, Max }
    bits { And, Or, Xor, Not, Shl, Shr, Lop3, Prmt, Bfe, Bfi, Shf, Popc, Clz, Bfind, Brev }
    compare { Setp, Select, PredAnd, PredOr, PredNot }
    convert { Cvt, Pack, Unpack, Bitcast }
    math { Ex2, Lg2, Rcp, Rsqrt, Sqrt, Tanh }
    warp { Shuffle, Vote, Ballot, MatchAny, MatchAll, Redux, WarpSync }
    special { ReadSpecial, ReadParam }
    memory { Load, Store, Prefetch, ApplyPriority, Discard, Fence }
    atomic { Atomic, AtomicReduce, StrongLoad, StrongStore }
    policy { CreatePolicy, CreateRangePolicy }
    copy { CopyAsync, CopyCommit, CopyWait, CopyArrive }
    mbarrier { MbarrierInit, MbarrierInval, MbarrierArrive, MbarrierExpectTx, MbarrierWait, MbarrierTest }
    bulk { BulkLoad, BulkStore, BulkSend, BulkPrefetch, BulkCommit, BulkWait }
    tensor { TensorLoad, TensorStore, TensorPrefetch, TensorPrefetchBox }
    remote { StoreAsync, ReduceAsync }
    wgmma { Wgmma, WgmmaFence, WgmmaCommit, WgmmaWait }
    mma { Mma }
    matrix { LoadMatrix, StoreMatrix, TransposeMatrix }
    cluster { ClusterArrive, ClusterWait }
    control { CtaSync, NamedSync, NamedArrive, NamedReduce, SetMaxRegs, LaunchDependents, WaitPrerequisites, Nanosleep, Exit, Trap }
}

/// Instructions without an op of their own: statements
/// ([`StmtKind`](crate::StmtKind)) and peer addresses.
pub const STATEMENT_INSTRUCTIONS: &[(&str, OpInfo)] = &[
    (
        "flow",
        OpInfo {
            name: "elect",
            ptx: "elect.sync",
            doc: "statement: one elected lane of the warp executes the body",
            exactness: Exactness::Exact,
        },
    ),
    (
        "flow",
        OpInfo {
            name: "if, for, while",
            ptx: "setp, @p bra",
            doc: "statements: lanes or whole warps branch and reconverge",
            exactness: Exactness::Exact,
        },
    ),
    (
        "flow",
        OpInfo {
            name: "peer",
            ptx: "mapa.shared::cluster.u32",
            doc: "maps the address of a tile or mbarrier to another CTA of the cluster, for operands that name a peer",
            exactness: Exactness::Exact,
        },
    ),
];

/// Rejects a type that the instruction does not support.
pub(crate) fn require_type(
    name: &str,
    ty: crate::types::Type,
    legal: &[crate::types::Type],
) -> Result<(), String> {
    if legal.contains(&ty) {
        return Ok(());
    }
    let names: Vec<_> = legal.iter().map(|t| t.name()).collect();
    Err(format!(
        "{name} does not support {ty}; supported types: {}",
        names.join(", ")
    ))
}
