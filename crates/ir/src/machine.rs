//! The three narrow traits that ops are written against, and what passes through them.
//!
//! [`Asm`] turns operands into PTX text, [`Machine`] runs a whole warp on the
//! CPU, [`Effects`] tells a reader what an op touches. They grow no method for
//! one op.

use crate::job::Job;
use crate::sync::{MemoryOrder, Scope, Sync};
use crate::tensor_map::TensorMapValue;
use crate::types::Type;
use crate::value::{At, BarRef, Operand, ParamId, Place, RegId, View};
use bytemuck::Pod;

/// The lanes of a warp, one bit each.
pub type Mask = u32;

/// Lanes of a warp.
pub const WARP: usize = 32;

/// One value per lane.
pub type Lanes<T> = [T; WARP];

/// Up to 16 bytes per lane: what one generic access moves.
pub type LaneBytes = [[u8; 16]; WARP];

/// Something that went wrong while running, in words; the executor adds op, role, warp and line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The kind, stable.
    pub kind: FaultKind,
    /// What happened, with the values seen.
    pub text: String,
}

impl Fault {
    /// A fault of a kind.
    pub fn new(kind: FaultKind, text: impl Into<String>) -> Self {
        Self {
            kind,
            text: text.into(),
        }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Fault {}

/// The kinds of fault.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FaultKind {
    /// An access outside its tile, buffer or barrier array.
    OutOfBounds,
    /// An access whose address is not a multiple of its width.
    Misaligned,
    /// A read of bytes that nothing wrote.
    NeverWritten,
    /// Two accesses to the same bytes with nothing between that orders them.
    Race,
    /// An async read of a generic write that no proxy fence followed, or the reverse.
    MissingProxyFence,
    /// A tensor map that breaks a rule, or is used against its declaration.
    TensorMap,
    /// A barrier used before its init, after its end, or with too many arrivals or bytes.
    Barrier,
    /// A whole-warp op reached by part of a warp, or with different values in its lanes.
    Convergence,
    /// A register touched while a wgmma owns it.
    RegisterInFlight,
    /// A register pool that cannot serve.
    Registers,
    /// An access to a CTA that has left.
    PeerExited,
    /// The program trapped.
    Trap,
    /// Nothing can go on.
    Deadlock,
    /// The run was cut off at its limit of steps.
    Limit,
    /// The launch does not fit the kernel.
    Launch,
    /// An op with a type it does not take.
    Illegal,
    /// An operand outside what the instruction takes.
    Operand,
}

/// Whether an op is done, or must be tried again later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Step {
    /// The op is done.
    Next,
    /// The op waits; nothing has changed.
    Blocked,
}

/// What running an op gives.
pub type Exec = Result<Step, Fault>;

/// A plain value that lanes of a register hold.
pub trait Lane: Pod + Default {}
impl<T: Pod + Default> Lane for T {}

/// Values a thread can ask the machine for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Special {
    /// Thread index in the CTA.
    Tid,
    /// Lane in the warp.
    LaneId,
    /// Warp index in the CTA (the same in every lane).
    WarpId,
    /// CTA index, by axis.
    CtaId(Axis),
    /// CTAs of the grid, by axis.
    GridDim(Axis),
    /// Rank of the CTA in its cluster.
    ClusterRank,
    /// CTAs of the cluster.
    ClusterSize,
    /// Index of the CTA in its cluster, by axis.
    ClusterCtaId(Axis),
    /// CTAs of the cluster, by axis.
    ClusterDim(Axis),
    /// Index of the cluster in the grid, by axis.
    ClusterId(Axis),
    /// Clusters of the grid, by axis.
    GridClusters(Axis),
    /// The SM the CTA runs on.
    SmId,
    /// One more than the highest number of an SM.
    SmCount,
    /// The low 32 bits of the SM's cycle counter.
    Clock,
    /// Nanoseconds (`u64`).
    GlobalTimer,
}

/// An axis of the grid.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Axis {
    /// x.
    X,
    /// y.
    Y,
    /// z.
    Z,
}

impl Axis {
    /// 0, 1, 2.
    pub const fn index(self) -> usize {
        self as usize
    }
    /// `x`, `y`, `z`.
    pub const fn name(self) -> &'static str {
        ["x", "y", "z"][self as usize]
    }
}

/// A byte of the shared memory of one CTA of the cluster, resolved.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SharedAt {
    /// The CTA's rank in the cluster.
    pub cta: u32,
    /// Bytes from the start of its shared memory.
    pub byte: u32,
}

/// An mbarrier of one CTA of the cluster, resolved.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BarAt {
    /// The CTA's rank in the cluster.
    pub cta: u32,
    /// Its index among all mbarriers of the CTA.
    pub slot: u32,
}

/// One warp of the CPU executor, as ops see it.
pub trait Machine {
    /// The lanes that execute now.
    fn active(&self) -> Mask;

    /// The operand in every lane. The lane type's size is the register's.
    fn get<T: Lane>(&mut self, o: Operand) -> Lanes<T>;
    /// Writes the active lanes of a register.
    fn set<T: Lane>(&mut self, r: RegId, v: &Lanes<T>);
    /// A predicate operand, one bit per lane.
    fn pred(&mut self, o: Operand) -> Mask;
    /// Writes the active lanes of a predicate register.
    fn set_pred(&mut self, r: RegId, m: Mask);

    /// A special register.
    fn special(&mut self, s: Special) -> Lanes<u64>;
    /// The bits of a scalar or pointer parameter.
    fn param(&mut self, p: ParamId) -> u64;
    /// The tensor map passed for a parameter.
    fn tensor_map(&mut self, p: ParamId) -> Result<TensorMapValue, Fault>;

    /// Reads `width` bytes (1, 2, 4, 8 or 16; aligned) in each lane of
    /// `lanes`, which are active.
    fn load(&mut self, lanes: Mask, at: &At, width: usize) -> Result<LaneBytes, Fault>;
    /// Writes `width` bytes from each lane of `lanes`, which are active.
    fn store(&mut self, lanes: Mask, at: &At, width: usize, data: &LaneBytes) -> Result<(), Fault>;
    /// Replaces a word of `width` bytes (2, 4 or 8) in every active lane, lane 0
    /// first, by `f(lane, old)`; gives the old words. Orders what it says.
    fn atomic(
        &mut self,
        at: &At,
        width: usize,
        order: MemoryOrder,
        f: &mut dyn FnMut(usize, u64) -> u64,
    ) -> Result<Lanes<u64>, Fault>;

    /// Where a place is for one lane, after bounds checks for `len` bytes.
    fn resolve(&mut self, place: &Place, lane: usize, len: usize) -> Result<SharedAt, Fault>;
    /// Where the first byte of a view is for one lane, before the swizzle
    /// ([`TileLayout::linear`](crate::layout::TileLayout::linear)), after bounds checks.
    fn resolve_view(&mut self, view: &View, lane: usize) -> Result<SharedAt, Fault>;
    /// Which barrier a reference means for one lane.
    fn resolve_bar(&mut self, bar: &BarRef, lane: usize) -> Result<BarAt, Fault>;
    /// The layout of a tile.
    fn layout(&self, view: &View) -> crate::layout::TileLayout;

    /// Performs an act of synchronisation for the active lanes, or says that it must wait.
    fn sync(&mut self, s: &Sync) -> Exec;
    /// Hands work of some of the active lanes to an asynchronous engine.
    fn submit(&mut self, lanes: Mask, job: Job) -> Result<(), Fault>;
}

/// A PTX instruction writer, as ops see it.
///
/// Methods that return text give an operand ready to print; some write
/// instructions of their own first (an address, a constant in a register).
pub trait Asm {
    /// Writes one instruction (without the semicolon).
    fn emit(&mut self, instruction: String);
    /// The name of a register.
    fn reg(&mut self, r: RegId) -> String;
    /// An operand of a type: a register's name, or a constant as PTX spells it.
    fn operand(&mut self, o: Operand, ty: Type) -> String;
    /// An operand that must be a register, of a type.
    fn in_reg(&mut self, o: Operand, ty: Type) -> String;
    /// A fresh register of a type.
    fn temp(&mut self, ty: Type) -> String;
    /// A fresh label.
    fn label(&mut self) -> String;
    /// The address of a generic access, without brackets (`%r1+16`).
    fn address(&mut self, at: &At) -> String;
    /// The shared-memory address of the first byte of a view.
    fn view(&mut self, v: &View) -> String;
    /// The `shared::cluster` or `shared::cta` address of an mbarrier.
    fn barrier(&mut self, b: &BarRef) -> String;
    /// The number of a named barrier.
    fn named(&mut self, id: crate::value::NamedId) -> u32;
    /// A parameter: a register with the generic address of a tensor map, the name of any other.
    fn param(&mut self, p: ParamId) -> String;
    /// The 64-bit wgmma descriptor of a view.
    fn descriptor(&mut self, v: &View, d: crate::layout::Descriptor) -> String;
    /// The layout of a tile.
    fn layout(&self, view: &View) -> crate::layout::TileLayout;
}

/// How an op touches memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Access {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Reads and writes in one step.
    Atomic,
}

/// Through which proxy, and when.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Proxy {
    /// By the thread itself, when the op runs.
    Generic,
    /// By a bulk copy engine, some time after.
    Bulk,
    /// By the tensor cores, some time after.
    Wgmma,
    /// By the thread itself, in a peer, some time after.
    Remote,
}

/// How an asynchronous access tells that it is done.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Completion {
    /// When the op is.
    Now,
    /// By the bytes of the memory written, on an mbarrier.
    Bytes(BarRef),
    /// By the thread's bulk group.
    BulkGroup,
    /// By the thread's group of `cp.async` copies.
    CopyGroup,
    /// By the warpgroup's wgmma group.
    WgmmaGroup,
}

/// What memory an op touches.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Memory {
    /// A generic access of some bytes per lane.
    At(At, u32),
    /// A rectangle of a tile.
    View(View),
    /// The tensor behind a parameter.
    Tensor(ParamId),
    /// The global bytes from an address on; length in bytes.
    Global(Operand, Operand),
    /// The shared bytes from a place on; length in bytes.
    Run(Place, Operand),
    /// 16 bytes at the place of each of the first lanes, as many as said: rows of 8×8 matrices.
    Rows(Place, u32),
    /// A register that an engine reads or writes after the op has passed.
    Register(RegId),
}

/// One access of an op.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Touch {
    /// What.
    pub memory: Memory,
    /// How.
    pub access: Access,
    /// Through which proxy.
    pub proxy: Proxy,
    /// When it is done.
    pub completion: Completion,
    /// The CTAs of the cluster in which it happens, each with its own barrier
    /// (`u32`, bit r = rank r); `None`: in the one that is named.
    pub multicast: Option<Operand>,
}

/// A reader of what ops do. An op calls these in the order in which its operands print.
pub trait Effects {
    /// The op writes a register.
    fn def(&mut self, r: RegId);
    /// The op reads an operand of a type.
    fn arg(&mut self, o: Operand, ty: Type);
    /// The op touches memory.
    fn touch(&mut self, t: &Touch);
    /// The op synchronises.
    fn sync(&mut self, s: &Sync);
    /// The op must be reached by whole warps (`.aligned`).
    fn whole_warp(&mut self);
    /// The op must be reached by all four warps of a warpgroup.
    fn whole_warpgroup(&mut self) {
        self.whole_warp();
    }
    /// The op has the scope of a release or acquire on global memory.
    fn orders(&mut self, _scope: Scope) {}
}

impl Touch {
    /// Every operand inside it.
    pub fn operands(&self, each: &mut dyn FnMut(Operand)) {
        match &self.memory {
            Memory::At(At::Shared(p), _) => p.operands(each),
            Memory::At(At::Global { addr, .. }, _) => each(*addr),
            Memory::View(v) => v.operands(each),
            Memory::Tensor(_) => {}
            Memory::Global(addr, bytes) => {
                each(*addr);
                each(*bytes);
            }
            Memory::Run(p, bytes) => {
                p.operands(each);
                each(*bytes);
            }
            Memory::Rows(p, _) => p.operands(each),
            Memory::Register(r) if self.access != Access::Write => each(Operand::Reg(*r)),
            Memory::Register(_) => {}
        }
        self.multicast.iter().copied().for_each(&mut *each);
        if let Completion::Bytes(bar) = &self.completion {
            bar.operands(each);
        }
    }
}
