//! The three interfaces of an op, and the types that they exchange.
//!
//! [`Asm`] prints operands as PTX, [`Machine`] executes one warp on the CPU,
//! and [`Effects`] receives the registers, memory accesses and synchronization
//! of an op. No method of these traits serves a single op.

use crate::job::Job;
use crate::sync::{MemoryOrder, Scope, SyncOp};
use crate::tensor_map::TensorMapValue;
use crate::types::Type;
use crate::value::{BarRef, MemoryAddress, Operand, ParamId, RegId, SharedAddress, View};
use bytemuck::Pod;

/// A set of lanes of a warp, one bit per lane.
pub type Mask = u32;

/// Number of lanes in a warp.
pub const WARP: usize = 32;

/// One value for each lane of a warp.
pub type PerLane<T> = [T; WARP];

/// Up to 16 bytes per lane, the maximum of one generic access.
pub type LaneBytes = [[u8; 16]; WARP];

/// An error found while executing an op. The executor adds the op, role, warp and source line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The kind of fault; tests match on it.
    pub kind: FaultKind,
    /// The message: a predicate whose subject is the op ("has length 0x14; it must be a multiple of 16 bytes").
    pub text: String,
}

impl Fault {
    /// Creates a fault.
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

/// The kind of a [`Fault`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FaultKind {
    /// An access outside its tile, buffer or barrier array.
    OutOfBounds,
    /// An access whose address is not a multiple of its size.
    Misaligned,
    /// A read of uninitialized bytes.
    NeverWritten,
    /// Two conflicting accesses to the same bytes without a happens-before order.
    Race,
    /// Accesses to the same bytes through the generic and the async proxy without a proxy fence between them.
    MissingProxyFence,
    /// An invalid tensor map, or a use that contradicts its declaration.
    TensorMap,
    /// An mbarrier used before its init or after its inval, or with too many arrivals or transaction bytes.
    Barrier,
    /// An `.aligned` op executed by part of a warp, or a uniform operand that differs between lanes.
    Convergence,
    /// A register accessed while a `wgmma` in flight uses it.
    RegisterInFlight,
    /// A `setmaxnreg` that the register pool of the CTA cannot satisfy.
    Registers,
    /// An access to the shared memory of a CTA that has exited.
    PeerExited,
    /// A `trap` instruction.
    Trap,
    /// No warp can make progress.
    Deadlock,
    /// The run reached its step limit.
    Limit,
    /// The launch does not match the kernel.
    Launch,
    /// An op with an unsupported type.
    Illegal,
    /// An operand outside the range of the instruction.
    Operand,
}

/// Whether an op completed or must be retried later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum ExecStatus {
    /// The op completed.
    Completed,
    /// The op waits. It changed no state.
    Blocked,
}

/// The result of executing an op.
pub type Exec = Result<ExecStatus, Fault>;

/// A plain value that a register holds in each lane.
pub trait Lane: Pod + Default {}
impl<T: Pod + Default> Lane for T {}

/// A PTX special register, or a value derived from one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Special {
    /// Thread index in the CTA (`%tid.x`).
    Tid,
    /// Lane index in the warp (`%laneid`).
    LaneId,
    /// Warp index in the CTA, the same in every lane.
    WarpId,
    /// CTA index in the grid (`%ctaid`).
    CtaId(Axis),
    /// Number of CTAs in the grid (`%nctaid`).
    GridDim(Axis),
    /// Rank of the CTA in its cluster (`%cluster_ctarank`).
    ClusterRank,
    /// Number of CTAs in the cluster (`%cluster_nctarank`).
    ClusterSize,
    /// CTA index in its cluster (`%cluster_ctaid`).
    ClusterCtaId(Axis),
    /// Number of CTAs in the cluster along an axis (`%cluster_nctaid`).
    ClusterDim(Axis),
    /// Cluster index in the grid (`%clusterid`).
    ClusterId(Axis),
    /// Number of clusters in the grid (`%nclusterid`).
    GridClusters(Axis),
    /// The SM that runs the CTA (`%smid`).
    SmId,
    /// One more than the highest SM number (`%nsmid`).
    SmCount,
    /// The low 32 bits of the cycle counter of the SM (`%clock`).
    Clock,
    /// The global timer in nanoseconds (`u64`, `%globaltimer`).
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
    /// Returns 0, 1 or 2.
    pub const fn index(self) -> usize {
        self as usize
    }
    /// Returns `x`, `y` or `z`.
    pub const fn name(self) -> &'static str {
        ["x", "y", "z"][self as usize]
    }
}

/// A byte in the shared memory of a CTA of the cluster (`shared::cluster`), with all operands evaluated.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ResolvedAddress {
    /// The CTA's rank in the cluster.
    pub cta: u32,
    /// Byte offset in its shared memory.
    pub byte: u32,
}

/// An mbarrier of a CTA of the cluster, with all operands evaluated.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ResolvedBarrier {
    /// The CTA's rank in the cluster.
    pub cta: u32,
    /// Index among all mbarriers of the CTA.
    pub slot: u32,
}

/// One warp of the CPU executor: the interface of [`Instr::exec`](crate::Instr::exec).
pub trait Machine {
    /// Returns the active lanes.
    fn active(&self) -> Mask;

    /// Reads an operand in every lane. `T` has the size of the register.
    fn get<T: Lane>(&mut self, o: Operand) -> PerLane<T>;
    /// Writes the active lanes of a register.
    fn set<T: Lane>(&mut self, r: RegId, v: &PerLane<T>);
    /// Reads a predicate operand, one bit per lane.
    fn pred(&mut self, o: Operand) -> Mask;
    /// Writes the active lanes of a predicate register.
    fn set_pred(&mut self, r: RegId, m: Mask);

    /// Reads a special register.
    fn special(&mut self, s: Special) -> PerLane<u64>;
    /// Returns the bits of a scalar or pointer parameter.
    fn param(&mut self, p: ParamId) -> u64;
    /// Returns the tensor map passed for a parameter.
    fn tensor_map(&mut self, p: ParamId) -> Result<TensorMapValue, Fault>;

    /// Reads `width` bytes (1, 2, 4, 8 or 16, aligned) in each lane of `lanes`,
    /// a subset of the active lanes.
    fn load(&mut self, lanes: Mask, at: &MemoryAddress, width: usize) -> Result<LaneBytes, Fault>;
    /// Writes `width` bytes from each lane of `lanes`, a subset of the active lanes.
    fn store(
        &mut self,
        lanes: Mask,
        at: &MemoryAddress,
        width: usize,
        data: &LaneBytes,
    ) -> Result<(), Fault>;
    /// Atomically replaces a word of `width` bytes (2, 4 or 8) by `f(lane, old)`
    /// for each active lane, lane 0 first, with the given memory order. Returns
    /// the old words.
    fn atomic(
        &mut self,
        at: &MemoryAddress,
        width: usize,
        order: MemoryOrder,
        f: &mut dyn FnMut(usize, u64) -> u64,
    ) -> Result<PerLane<u64>, Fault>;

    /// Evaluates a shared address for one lane and checks `len` bytes against the bounds of the tile.
    fn resolve(
        &mut self,
        address: &SharedAddress,
        lane: usize,
        len: usize,
    ) -> Result<ResolvedAddress, Fault>;
    /// Returns the first byte of a view for one lane, before the swizzle
    /// ([`TileLayout::unswizzled_offset`](crate::layout::TileLayout::unswizzled_offset)), after bounds checks.
    fn resolve_view(&mut self, view: &View, lane: usize) -> Result<ResolvedAddress, Fault>;
    /// Evaluates an mbarrier reference for one lane.
    fn resolve_bar(&mut self, bar: &BarRef, lane: usize) -> Result<ResolvedBarrier, Fault>;
    /// Returns the layout of a tile.
    fn layout(&self, view: &View) -> crate::layout::TileLayout;

    /// Performs a synchronization for the active lanes, or returns [`ExecStatus::Blocked`].
    fn sync(&mut self, s: &SyncOp) -> Exec;
    /// Issues an asynchronous job on behalf of `lanes`, a subset of the active lanes.
    fn submit(&mut self, lanes: Mask, job: Job) -> Result<(), Fault>;
}

/// The PTX printer: the interface of [`Instr::asm`](crate::Instr::asm).
///
/// Methods that return text return a printed operand. Some of them first emit
/// instructions that compute it (an address, a constant in a register).
pub trait Asm {
    /// Emits one instruction, without the semicolon.
    fn emit(&mut self, instruction: String);
    /// Returns the name of a register.
    fn reg(&mut self, r: RegId) -> String;
    /// Prints an operand: the name of a register, or a PTX constant of type `ty`.
    fn operand(&mut self, o: Operand, ty: Type) -> String;
    /// Prints an operand as a register, and moves a constant into a temporary first.
    fn in_reg(&mut self, o: Operand, ty: Type) -> String;
    /// Declares a temporary register.
    fn temp(&mut self, ty: Type) -> String;
    /// Declares a label.
    fn label(&mut self) -> String;
    /// Prints the address of a generic access, without brackets (`%r1+16`).
    fn address(&mut self, at: &MemoryAddress) -> String;
    /// Prints the shared-memory address of the first byte of a view.
    fn view(&mut self, v: &View) -> String;
    /// Prints the `shared::cta` or `shared::cluster` address of an mbarrier.
    fn barrier(&mut self, b: &BarRef) -> String;
    /// Returns the hardware number of a named barrier.
    fn named(&mut self, id: crate::value::NamedId) -> u32;
    /// Prints a parameter: a register with the generic address of a tensor map, or the parameter's name.
    fn param(&mut self, p: ParamId) -> String;
    /// Prints the 64-bit `wgmma` matrix descriptor of a view.
    fn descriptor(&mut self, v: &View, d: crate::layout::WgmmaDescriptor) -> String;
    /// Returns the layout of a tile.
    fn layout(&self, view: &View) -> crate::layout::TileLayout;
}

/// The kind of a memory access.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AccessKind {
    /// A read.
    Read,
    /// A write.
    Write,
    /// An atomic read-modify-write.
    Atomic,
}

/// The path of an access to memory, and its timing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Proxy {
    /// The thread accesses memory through the generic proxy when the op executes.
    Generic,
    /// The TMA unit accesses memory asynchronously through the async proxy.
    Bulk,
    /// The tensor cores access memory asynchronously through the async proxy.
    Wgmma,
    /// An asynchronous access to the shared memory of a peer through the generic proxy (`st.async`).
    Remote,
}

/// The completion mechanism of an access.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Completion {
    /// The access completes with the op.
    Now,
    /// An mbarrier counts the written bytes (`mbarrier::complete_tx::bytes`).
    Bytes(BarRef),
    /// The bulk async-group of the thread (`bulk_group`).
    BulkGroup,
    /// The `cp.async` group of the thread.
    CopyGroup,
    /// The wgmma-group of the warpgroup.
    WgmmaGroup,
}

/// The memory that an op accesses.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum MemoryRegion {
    /// One address per lane; size in bytes.
    PerLane(MemoryAddress, u32),
    /// A rectangle of a tile.
    View(View),
    /// The tensor of a tensor map parameter.
    Tensor(ParamId),
    /// Consecutive bytes of global memory: address and length.
    Global(Operand, Operand),
    /// Consecutive bytes of shared memory: address and length.
    Shared(SharedAddress, Operand),
    /// Rows of 8×8 matrices: 16 bytes at the address of each of the first lanes; number of lanes.
    MatrixRows(SharedAddress, u32),
    /// A register that an asynchronous job reads or writes after the op.
    Register(RegId),
}

/// One memory access of an op.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MemoryAccess {
    /// The accessed memory.
    pub memory: MemoryRegion,
    /// Read, write or atomic.
    pub access: AccessKind,
    /// The proxy.
    pub proxy: Proxy,
    /// The completion mechanism.
    pub completion: Completion,
    /// The CTAs that receive a multicast copy, each with its own mbarrier
    /// (`u32`, bit r = rank r); `None`: the CTA that the address names.
    pub multicast: Option<Operand>,
}

/// Receives the effects of an op. An op calls these methods in the order of its printed operands.
pub trait Effects {
    /// The op writes a register.
    fn def(&mut self, r: RegId);
    /// The op reads an operand of type `ty`.
    fn arg(&mut self, o: Operand, ty: Type);
    /// The op accesses memory.
    fn access(&mut self, t: &MemoryAccess);
    /// The op synchronizes.
    fn sync(&mut self, s: &SyncOp);
    /// All lanes of the warp must execute the op together (`.aligned`).
    fn whole_warp(&mut self);
    /// All four warps of the warpgroup must execute the op.
    fn whole_warpgroup(&mut self) {
        self.whole_warp();
    }
    /// The op releases or acquires at a scope.
    fn orders(&mut self, _scope: Scope) {}
}

impl MemoryAccess {
    /// Calls `each` with every operand of the access.
    pub fn operands(&self, each: &mut dyn FnMut(Operand)) {
        match &self.memory {
            MemoryRegion::PerLane(MemoryAddress::Shared(p), _) => p.operands(each),
            MemoryRegion::PerLane(MemoryAddress::Global { addr, .. }, _) => each(*addr),
            MemoryRegion::View(v) => v.operands(each),
            MemoryRegion::Tensor(_) => {}
            MemoryRegion::Global(addr, bytes) => {
                each(*addr);
                each(*bytes);
            }
            MemoryRegion::Shared(p, bytes) => {
                p.operands(each);
                each(*bytes);
            }
            MemoryRegion::MatrixRows(p, _) => p.operands(each),
            MemoryRegion::Register(r) if self.access != AccessKind::Write => each(Operand::Reg(*r)),
            MemoryRegion::Register(_) => {}
        }
        self.multicast.iter().copied().for_each(&mut *each);
        if let Completion::Bytes(bar) = &self.completion {
            bar.operands(each);
        }
    }
}
