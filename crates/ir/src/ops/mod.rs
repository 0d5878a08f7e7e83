//! Ops: one PTX instruction, or a fixed little sequence, declared once.
//!
//! An op is one struct. Beside it, in the same file: its PTX spelling
//! ([`Instr::asm`]), its meaning on the CPU ([`Instr::exec`]) with the
//! exactness it promises, its meaning for the checker ([`Instr::transfer`]),
//! what it touches ([`Instr::effects`]) and where it is legal
//! ([`Instr::legal`]). To add an instruction is to add a struct to a
//! group's file and its name to the list below.

use crate::domain::Domain;
use crate::machine::{Asm, Effects, Exec, Machine, Touch};
use crate::sync::Sync;
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

/// How close the CPU meaning is to the hardware's.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Exactness {
    /// Bit for bit.
    Exact,
    /// Within a stated bound.
    Within(&'static str),
    /// The value is the machine's own (clocks, SM numbers).
    Machine,
}

impl fmt::Display for Exactness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Exactness::Exact => "exact",
            Exactness::Within(bound) => bound,
            Exactness::Machine => "the machine's own value",
        })
    }
}

/// What the op table says of an op.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Info {
    /// The op's name in the text form.
    pub name: &'static str,
    /// The PTX instruction, with its choices in braces.
    pub ptx: &'static str,
    /// What it does, in one sentence.
    pub doc: &'static str,
    /// How close the CPU comes.
    pub exactness: Exactness,
}

/// What every op says of itself.
pub trait Instr: Clone {
    /// Its row of the op table.
    const INFO: Info;

    /// Its name with types and variants, for the text form: `add.f32`.
    fn name(&self) -> String;

    /// Registers, memory and synchronisation it touches.
    fn effects(&self, e: &mut dyn Effects);

    /// Its PTX.
    fn asm(&self, a: &mut dyn Asm);

    /// Its meaning for the active lanes of a warp.
    fn exec<M: Machine>(&self, m: &mut M) -> Exec;

    /// Its meaning where operands are only partly known: the transfer function of the op.
    ///
    /// The default is that nothing is known of its results. Whatever an op
    /// declares here must hold for everything [`exec`](Instr::exec) does; the
    /// checker's tests try it on random and boundary operands.
    fn transfer<D: Domain>(&self, d: &mut D) {
        let mut results = Results::default();
        self.effects(&mut results);
        for r in results.0 {
            let v = d.unknown();
            d.write(r, v);
        }
    }

    /// Why a target cannot run it, as a sentence.
    fn legal(&self, _target: &Target) -> Result<(), String> {
        Ok(())
    }

    /// The PTX version it needs at least.
    fn ptx_version(&self) -> (u32, u32) {
        (8, 0)
    }

    /// Which threads agree on its results, if all agree on its operands as far as `operands`.
    ///
    /// A function of its operands alone keeps the default; an op that reads
    /// the lane, moves values between lanes or races says what it gives.
    fn uniform(&self, operands: Uniform) -> Uniform {
        operands
    }
}

/// The registers that an op writes.
#[derive(Default)]
struct Results(Vec<RegId>);

impl Effects for Results {
    fn def(&mut self, r: RegId) {
        self.0.push(r);
    }
    fn arg(&mut self, _: Operand, _: Type) {}
    fn touch(&mut self, _: &Touch) {}
    fn sync(&mut self, _: &Sync) {}
    fn whole_warp(&mut self) {}
}

/// Threads that agree on a value, from few to many.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Uniform {
    /// Each lane may have its own.
    Lane,
    /// The lanes of a warp agree.
    Warp,
    /// The warps of a warpgroup agree.
    Warpgroup,
    /// The threads of the CTA that run the statement agree.
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
            /// The op's row of the op table.
            pub fn info(&self) -> Info { match self { $($(Op::$name(_) => $group::$name::INFO,)*)* } }
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

        /// Every op there is: its group and its row of the table.
        pub const TABLE: &[(&str, Info)] = &[$($((stringify!($group), $group::$name::INFO),)*)*];
    };
}

ops! {
    arith { Mov, Add, Sub, Mul, MulHi, MulWide, Mad, MadWide, Fma, Div, Rem, Neg, Abs, Min, Max }
    bits { And, Or, Xor, Not, Shl, Shr, Lop3, Prmt, Bfe, Bfi, Shf, Popc, Clz, Bfind, Brev }
    compare { Setp, Select, PredAnd, PredOr, PredNot }
    convert { Cvt, Pack, Unpack, Bitcast }
    math { Ex2, Lg2, Rcp, Rsqrt, Sqrt, Tanh }
    warp { Shuffle, Vote, Ballot, MatchAny, MatchAll, Redux, WarpSync }
    special { ReadSpecial, ReadParam }
    memory { Load, Store, Prefetch, ApplyPriority, Discard, Fence }
    atomic { Atomic, Reduce, StrongLoad, StrongStore }
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
    control { CtaSync, NamedSync, NamedArrive, NamedTally, SetMaxRegs, LaunchDependents, WaitPrerequisites, Nanosleep, Exit, Trap }
}

/// What is no op of its own, but an instruction all the same: statements
/// ([`StmtKind`](crate::StmtKind)), and the addresses of a peer.
pub const IMPLIED: &[(&str, Info)] = &[
    (
        "flow",
        Info {
            name: "elect",
            ptx: "elect.sync",
            doc: "a statement: one lane of the warp runs the body",
            exactness: Exactness::Exact,
        },
    ),
    (
        "flow",
        Info {
            name: "if, for, while",
            ptx: "setp, @p bra",
            doc: "statements: lanes or whole warps branch and meet again",
            exactness: Exactness::Exact,
        },
    ),
    (
        "flow",
        Info {
            name: "peer",
            ptx: "mapa.shared::cluster.u32",
            doc: "the address of a tile or mbarrier in another CTA of the cluster, formed wherever an operand names a peer",
            exactness: Exactness::Exact,
        },
    ),
];

/// Refuses a type an instruction does not have.
pub(crate) fn only(
    name: &str,
    ty: crate::types::Type,
    legal: &[crate::types::Type],
) -> Result<(), String> {
    if legal.contains(&ty) {
        return Ok(());
    }
    let names: Vec<_> = legal.iter().map(|t| t.name()).collect();
    Err(format!("{name} takes {}, not {ty}", names.join(", ")))
}
