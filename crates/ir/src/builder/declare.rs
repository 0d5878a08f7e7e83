//! Declarations of a kernel: parameters, roles, shared memory, clusters.

use super::global::{Flags, Global};
use super::outbox::{Outbox, OutboxElement};
use super::partial_tiles::PartialTiles;
use super::raw::{MbarrierArray, NamedBarrierHandle, TensorMap};
use super::reg::{Reg, Value};
use super::ring::{Ring, RingTiles, SlotLayout};
use super::state::{
    ActiveThreads, ArrivalCount, BuilderState, OpenBlock, caller_scope, error, with,
};
use super::tile::TileDecl;
use super::turn::Turn;
use super::work_queue::WorkQueue;
use crate::loc::Frame;
use crate::ops::Op;
use crate::ops::special::ReadParam;
use crate::program::{Block, NamedBarrier, Param, ParamKind, Role, StmtKind};
use crate::target::Target;
use crate::tensor_map::TensorMapDecl;
use crate::types::{Element, Scalar, Type};
use crate::value::{NamedId, ParamId, RegId, RoleId};

/// The kernel being built. Its methods declare parameters, shared memory and roles.
#[derive(Clone, Copy, Debug)]
pub struct Builder(());

impl Builder {
    /// Returns the target that the kernel is built for.
    pub fn target(self) -> Target {
        with(|s| s.target)
    }

    pub(crate) fn new() -> Self {
        Self(())
    }

    /// Declares a scalar launch parameter.
    #[track_caller]
    pub fn param<T: Scalar>(self, name: &str) -> Reg<T> {
        let id = declare_param(name, ParamKind::Scalar(T::TYPE));
        if matches!(T::TYPE, Type::Pred) {
            error(
                "parameter-type",
                format!("parameter {name} has type bool; a launch parameter must be a number"),
            );
        }
        Reg::of(read_param(id, T::TYPE))
    }

    /// Declares a launch parameter that points to elements in global memory.
    #[track_caller]
    pub fn pointer<T: Element>(self, name: &str) -> Global<T> {
        let id = declare_param(name, ParamKind::Pointer(T::DTYPE));
        Global::from_address(Reg::of(read_param(id, Type::U64)))
    }

    /// Declares a tensor-map launch parameter for TMA copies.
    #[track_caller]
    pub fn tensor_map(self, name: &str, decl: TensorMapDecl) -> TensorMap {
        if let Some(rule) = decl.violated_rule() {
            error("tensor-map", format!("tensor map {name}: {rule}"));
        }
        let bytes = decl.bytes();
        TensorMap {
            id: declare_param(name, ParamKind::TensorMap(decl)),
            bytes,
        }
    }

    /// Sets the cluster shape in CTAs.
    #[track_caller]
    pub fn cluster(self, x: u32, y: u32, z: u32) {
        if x == 0 || y == 0 || z == 0 {
            error(
                "cluster-size",
                format!("cluster shape {x}x{y}x{z} is empty; each axis needs at least 1 CTA"),
            );
            return;
        }
        with(|s| s.cluster = [x, y, z]);
    }

    /// Starts the declaration of a shared-memory tile outside of any ring.
    #[track_caller]
    pub fn tile<T: Element>(self, name: &str, rows: u32, cols: u32) -> TileDecl<T> {
        TileDecl::new(name, rows, cols)
    }

    /// Declares a ring (a CUTLASS pipeline) of `stages` slots; `tiles` declares the tiles of
    /// one slot.
    #[track_caller]
    pub fn ring<L: RingTiles>(
        self,
        name: &str,
        stages: u32,
        tiles: impl FnOnce(&SlotLayout) -> L,
    ) -> Ring<L> {
        Ring::new(name, None, stages, tiles)
    }

    /// Declares `warps` independent rings of `stages` slots each: warp `i` of the producer
    /// role fills ring `i`, and warp `i` of the consumer role reads it.
    ///
    /// No other warp waits for the slots of a warp. One role body serves all warps.
    ///
    /// ```
    /// use warpline_ir::{Kernel, Target, builder::*};
    ///
    /// // Four producer warps feed four consumer warps, one to one.
    /// let kernel = Kernel::build("pairs", &Target::SM_90A, |k| {
    ///     let out = k.pointer::<u32>("out");
    ///     let ring = k.ring_per_warp("numbers", 4, 2, |s| s.vector::<u32>(32)).generic_proxy_only();
    ///     k.role("make").warps(4).body(|| {
    ///         steps(8u32).each(|i| {
    ///             let slot = ring.acquire();
    ///             slot.store(0u32, lane_id(), i * lane_id());
    ///             slot.commit();
    ///         });
    ///     });
    ///     k.role("store").warps(4).body(|| {
    ///         steps(8u32).each(|i| {
    ///             let slot = ring.wait();
    ///             let row = i * 4u32 + warp_in_role();
    ///             out.store(row * 32u32 + lane_id(), slot.load(0u32, lane_id()));
    ///             slot.release();
    ///         });
    ///     });
    /// })?;
    /// # Ok::<(), warpline_ir::BuildErrors>(())
    /// ```
    #[track_caller]
    pub fn ring_per_warp<L: RingTiles>(
        self,
        name: &str,
        warps: u32,
        stages: u32,
        tiles: impl FnOnce(&SlotLayout) -> L,
    ) -> Ring<L> {
        Ring::new(name, Some(warps), stages, tiles)
    }

    /// Declares a turn: the roles run their [`hold`](Turn::hold) sections one at a time, in
    /// the order of `roles` (CUTLASS's `OrderedSequenceBarrier`).
    #[track_caller]
    pub fn turn<'a>(self, name: &str, roles: impl AsRef<[&'a str]>) -> Turn {
        Turn::new(name, roles.as_ref())
    }

    /// Declares an array of mbarriers (raw layer). [`MbarrierArray::arrivals`] initializes
    /// them at kernel start; otherwise the author calls [`MbarrierHandle::init`](super::MbarrierHandle::init).
    #[track_caller]
    pub fn barrier(self, name: &str, len: u32) -> MbarrierArray {
        let frame = Frame::caller();
        let id = with(|s| Some(s.barrier(name.to_owned(), len, ArrivalCount::Manual, frame)));
        MbarrierArray {
            id: id.unwrap_or(crate::value::BarId(0)),
            len,
        }
    }

    /// Declares a named barrier (raw layer).
    #[track_caller]
    pub fn named_barrier(self, name: &str) -> NamedBarrierHandle {
        let frame = Frame::caller();
        let id = with(|s| {
            let loc = s.loc(frame);
            let id = s.named.len() as u32;
            if id >= 15 {
                let number = id + 1;
                let text = format!("named barrier {name} is number {number}; a CTA has 15");
                s.error("named-barriers", text, frame, None);
            }
            s.named.push(NamedBarrier {
                name: name.to_owned(),
                id: id + 1,
                loc,
            });
            id
        });
        NamedBarrierHandle { id: NamedId(id) }
    }

    /// Declares flags in global memory that CTAs synchronize with.
    #[track_caller]
    pub fn flags(self, name: &str) -> Flags {
        Flags::new(self.pointer(name))
    }

    /// Declares `m` × `n` partial accumulator tiles in global memory, with a flag for each warp.
    ///
    /// Adds two pointer parameters: `name` for the tiles and `{name}_flags` for the flags.
    #[track_caller]
    pub fn partial_tiles(self, name: &str, m: u32, n: u32) -> PartialTiles {
        let tiles = self.pointer(name);
        PartialTiles::new(tiles, self.flags(&format!("{name}_flags")), m, n)
    }

    /// Declares an outbox: `stages` staging tiles of the epilogue that TMA stores read.
    #[track_caller]
    pub fn outbox<T: OutboxElement>(
        self,
        name: &str,
        stages: u32,
        rows: u32,
        cols: u32,
    ) -> Outbox<T> {
        let tile = self.tile(name, rows, cols).stages(stages).declare();
        Outbox::new(name, stages, tile, self.named_barrier(name))
    }

    /// Declares a dynamic tile scheduler: an atomic counter in global memory, and a ring of
    /// `stages` that broadcasts each item to the roles of a CTA.
    ///
    /// All CTAs of a cluster take the same items; call [`cluster`](Self::cluster) first.
    #[track_caller]
    pub fn work_queue(self, name: &str, stages: u32) -> WorkQueue {
        WorkQueue::new(self, name, stages)
    }

    /// Like [`work_queue`](Self::work_queue), for items with a payload of `PAYLOAD` words. Use it if
    /// one thread computes what all roles need to know about an item, such as the position of a
    /// sequence in packed tensors.
    ///
    /// ```
    /// # use warpline_ir::{Kernel, Target, builder::*};
    /// # Kernel::build("k", &Target::SM_90A, |k| {
    /// let (count, table, out) =
    ///     (k.param::<u32>("count").at_least(1), k.pointer::<u32>("table"), k.pointer::<u32>("out"));
    /// let queue = k.work_queue_with_payload::<1>("queue", 2);
    /// k.role("fetch").body(|| {
    ///     elect(|| queue.fetch_each_with_payload(count, |item| [table.load(item)], |_, _| ()));
    /// });
    /// k.role("store").body(|| queue.each_with_payload(count, |item, [entry]| {
    ///     elect_lane(|| out.store(item, entry));
    /// }));
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn work_queue_with_payload<const PAYLOAD: usize>(
        self,
        name: &str,
        stages: u32,
    ) -> WorkQueue<PAYLOAD> {
        WorkQueue::new(self, name, stages)
    }

    /// Starts the declaration of a role: consecutive warps that run one body.
    #[track_caller]
    pub fn role(self, name: &str) -> RoleDecl {
        RoleDecl {
            name: name.to_owned(),
            warps: 1,
            registers: None,
            frame: Frame::caller(),
        }
    }
}

impl TensorMap {
    /// Declares the tensor PDL-safe: no earlier kernel of the plan writes it, so a dependent
    /// launch may read it before [`wait_prerequisites`](super::wait_prerequisites).
    ///
    /// Preparation rejects a plan in which a kernel that may still run writes it.
    #[track_caller]
    pub fn pdl_safe(self) -> Self {
        with(|s| {
            if let Some(param) = s.params.get_mut(self.id.index()) {
                param.pdl_safe = true;
            }
        });
        self
    }
}

impl<T: Element> Global<T> {
    /// Declares the memory behind this pointer PDL-safe, as [`TensorMap::pdl_safe`] does for a tensor.
    ///
    /// ```
    /// use warpline_ir::{Kernel, Target, builder::*};
    ///
    /// let kernel = Kernel::build("early", &Target::SM_90A, |k| {
    ///     let (weight, y) = (k.pointer::<f32>("weight").pdl_safe(), k.pointer::<f32>("y"));
    ///     k.role("all").body(|| {
    ///         let w = weight.load(lane_id());
    ///         wait_prerequisites();
    ///         y.store(lane_id(), y.load(lane_id()) * w);
    ///     });
    /// })?;
    /// assert!(kernel.params[0].pdl_safe && !kernel.params[1].pdl_safe);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn pdl_safe(self) -> Self {
        let frame = Frame::caller();
        let reg = self.address(0).operand().as_reg();
        with(|s| match reg.and_then(|reg| param_of_register(s, reg)) {
            Some(p) => s.params[p.index()].pdl_safe = true,
            None => {
                let text =
                    "pdl_safe() needs a pointer that is a launch parameter, not a computed address";
                s.error("pdl-safe", text.to_owned(), frame, None);
            }
        });
        self
    }
}

/// Declares a parameter.
#[track_caller]
fn declare_param(name: &str, kind: ParamKind) -> ParamId {
    let frame = Frame::caller();
    let id = with(|s| {
        let loc = s.loc(frame);
        let is_valid = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !is_valid {
            let text = format!(
                "parameter name {name:?} is invalid; use a letter, then letters, digits or _"
            );
            s.error("parameter-name", text, frame, None);
        }
        if s.params.iter().any(|p| p.name == name) {
            let text = format!("two parameters are named {name}");
            s.error("parameter-name", text, frame, None);
        }
        s.params.push(Param::new(name, kind, loc));
        Some(s.params.len() as u32 - 1)
    });
    ParamId(id.unwrap_or(0))
}

/// Returns the parameter that the prologue reads into a register.
pub(super) fn param_of_register(s: &BuilderState, reg: RegId) -> Option<ParamId> {
    s.blocks[0].stmts.iter().find_map(|x| match &x.kind {
        StmtKind::Op(Op::ReadParam(read)) if read.dst == reg => Some(read.param),
        _ => None,
    })
}

/// Reads a parameter in the prologue.
#[track_caller]
fn read_param(param: ParamId, ty: Type) -> RegId {
    let frame = Frame::caller();
    let id = with(|s| Some(s.in_prologue(ty, frame, |dst| ReadParam { dst, param, ty }.into())));
    id.unwrap_or(RegId(0))
}

/// A role declaration, completed by [`body`](Self::body).
#[derive(Clone, Debug)]
#[must_use = "a role exists once `body` is called"]
pub struct RoleDecl {
    name: String,
    warps: u32,
    registers: Option<u32>,
    frame: Frame,
}

impl RoleDecl {
    /// Sets the number of warps; the default is 1.
    pub fn warps(mut self, n: u32) -> Self {
        self.warps = n;
        self
    }

    /// Sets the number of warpgroups of four warps.
    pub fn warpgroups(mut self, n: u32) -> Self {
        self.warps = 4 * n;
        self
    }

    /// Sets the register budget per thread (`setmaxnreg` at the start of the role).
    pub fn registers(mut self, n: u32) -> Self {
        self.registers = Some(n);
        self
    }

    /// Sets the register budget per thread; `None` keeps the launch default.
    pub fn registers_opt(mut self, n: Option<u32>) -> Self {
        self.registers = n;
        self
    }

    /// Builds the role: `body` emits the code that its warps run.
    #[track_caller]
    pub fn body(self, body: impl FnOnce()) {
        let _caller = caller_scope();
        let frame = self.frame;
        let runs_body = with(|s| {
            if let Some(r) = s.role {
                let text = format!(
                    "role {} is declared inside role {}",
                    self.name,
                    s.roles[r.index()].name
                );
                s.error("role-inside-role", text, frame, None);
                return false;
            }
            if let Some(r) = s.roles.iter().find(|r| r.name == self.name) {
                let other = s.locs.author(r.loc).map(|f| (f, "first declaration"));
                let text = format!("two roles are named {}", self.name);
                s.error("role-name", text, frame, other);
            }
            if self.warps == 0 {
                let text = format!("role {} has 0 warps; a role needs at least 1", self.name);
                s.error("role-warps", text, frame, None);
            }
            let loc = s.loc(frame);
            let first_warp = s.roles.iter().map(|r| r.warps).sum();
            let id = RoleId(s.roles.len() as u32);
            s.roles.push(Role {
                name: self.name.clone(),
                first_warp,
                warps: self.warps,
                registers: self.registers,
                body: Block::default(),
                loc,
            });
            if s.declare_only {
                return false;
            }
            s.role = Some(id);
            let scope = s.next_scope;
            s.next_scope += 1;
            s.blocks.push(OpenBlock {
                scope,
                stmts: Vec::new(),
            });
            true
        });
        if !runs_body {
            return;
        }
        body();
        super::outbox::drain();
        with(|s| {
            let stmts = s.blocks.pop().map(|b| b.stmts).unwrap_or_default();
            let mut all = std::mem::take(&mut s.preamble);
            if let Some(barrier) = &mut s.prologue_barrier
                && Some(barrier.role) == s.role
            {
                barrier.index += all.len();
            }
            all.extend(stmts);
            if let Some(r) = s.role.take() {
                s.roles[r.index()].body = Block(all);
            }
            s.active = ActiveThreads::Role;
        });
    }
}
