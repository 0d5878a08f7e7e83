//! What a kernel declares: parameters, roles, shared memory, clusters.

use super::global::{Flags, Global};
use super::outbox::{Outbox, Stored};
use super::partial::PartialTiles;
use super::queue::WorkQueue;
use super::raw::{Bar, Map, Named};
use super::reg::{Reg, Value};
use super::ring::{Ring, RingTiles, Stages};
use super::state::{Count, Open, State, Width, error, here, with};
use super::tile::TileDecl;
use super::turn::Turn;
use crate::loc::Frame;
use crate::ops::Op;
use crate::ops::special::ReadParam;
use crate::program::{Block, NamedBarrier, Param, ParamKind, Role, StmtKind};
use crate::target::Target;
use crate::tensor_map::TensorMapDecl;
use crate::types::{Element, Scalar, Type};
use crate::value::{NamedId, ParamId, RegId, RoleId};

/// The kernel being built: where everything shared between roles is declared.
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

    /// A number passed at launch.
    #[track_caller]
    pub fn param<T: Scalar>(self, name: &str) -> Reg<T> {
        let id = declare(name, ParamKind::Scalar(T::TYPE));
        if matches!(T::TYPE, Type::Pred) {
            error(
                "parameter-type",
                format!("parameter {name} is a number, not a predicate"),
            );
        }
        Reg::of(read(id, T::TYPE))
    }

    /// The address of elements in global memory, passed at launch.
    #[track_caller]
    pub fn pointer<T: Element>(self, name: &str) -> Global<T> {
        let id = declare(name, ParamKind::Pointer(T::DTYPE));
        Global::at(Reg::of(read(id, Type::U64)))
    }

    /// A tensor in global memory, seen through a tensor map passed at launch.
    #[track_caller]
    pub fn tensor_map(self, name: &str, decl: TensorMapDecl) -> Map {
        if let Some(rule) = decl.broken_rule() {
            error("tensor-map", format!("tensor map {name}: {rule}"));
        }
        let bytes = decl.bytes();
        Map {
            id: declare(name, ParamKind::TensorMap(decl)),
            bytes,
        }
    }

    /// CTAs of a cluster, by axis.
    #[track_caller]
    pub fn cluster(self, x: u32, y: u32, z: u32) {
        if x == 0 || y == 0 || z == 0 {
            error(
                "cluster-size",
                format!("a cluster has at least one CTA in each axis, not {x}x{y}x{z}"),
            );
            return;
        }
        with(|s| s.cluster = [x, y, z]);
    }

    /// A tile of shared memory outside of any ring.
    #[track_caller]
    pub fn tile<T: Element>(self, name: &str, rows: u32, cols: u32) -> TileDecl<T> {
        TileDecl::new(name, rows, cols)
    }

    /// A ring of slots between roles; `tiles` declares what one slot holds.
    #[track_caller]
    pub fn ring<L: RingTiles>(
        self,
        name: &str,
        stages: u32,
        tiles: impl FnOnce(&Stages) -> L,
    ) -> Ring<L> {
        Ring::new(name, None, stages, tiles)
    }

    /// A ring for each of so many warps: what a warp of one role fills, the
    /// warp of the same number in another reads, and no other warp waits for
    /// either. All are one piece of program, where a ring and two roles for
    /// each would be as many.
    ///
    /// ```
    /// use warpline_ir::{Kernel, Target, build::*};
    ///
    /// // Four warps hand numbers to four others, one to one.
    /// let kernel = Kernel::build("pairs", &Target::SM_90A, |k| {
    ///     let out = k.pointer::<u32>("out");
    ///     let ring = k.ring_per_warp("numbers", 4, 2, |s| s.vector::<u32>(32)).by_threads();
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
        tiles: impl FnOnce(&Stages) -> L,
    ) -> Ring<L> {
        Ring::new(name, Some(warps), stages, tiles)
    }

    /// An ordered hand-over between roles.
    #[track_caller]
    pub fn turn<'a>(self, name: &str, roles: impl AsRef<[&'a str]>) -> Turn {
        Turn::new(name, roles.as_ref())
    }

    /// An array of mbarriers (raw layer). Initialised at the start of the
    /// kernel when [`Bar::count`] says how often; otherwise the author does it.
    #[track_caller]
    pub fn barrier(self, name: &str, len: u32) -> Bar {
        let frame = Frame::caller();
        let id = with(|s| Some(s.barrier(name.to_owned(), len, Count::Manual, frame)));
        Bar {
            id: id.unwrap_or(crate::value::BarId(0)),
            len,
        }
    }

    /// A named barrier (raw layer).
    #[track_caller]
    pub fn named_barrier(self, name: &str) -> Named {
        let frame = Frame::caller();
        let id = with(|s| {
            let loc = s.loc(frame);
            let id = s.named.len() as u32;
            if id >= 15 {
                let text = format!("a CTA has 15 named barriers; {name} is one too many");
                s.error("named-barriers", text, frame, None);
            }
            s.named.push(NamedBarrier {
                name: name.to_owned(),
                id: id + 1,
                loc,
            });
            id
        });
        Named { id: NamedId(id) }
    }

    /// Flags in global memory, by which CTAs wait for each other.
    #[track_caller]
    pub fn flags(self, name: &str) -> Flags {
        Flags::new(self.pointer(name))
    }

    /// Sums of `m` × `n` that one CTA leaves in global memory for another, with their flags.
    ///
    /// Two parameters: the sums under `name`, and the flags under `name` with `_flags` after it.
    #[track_caller]
    pub fn partial_tiles(self, name: &str, m: u32, n: u32) -> PartialTiles {
        let sums = self.pointer(name);
        PartialTiles::new(sums, self.flags(&format!("{name}_flags")), m, n)
    }

    /// A staging tile with copies, from which a role's results go to global memory by TMA.
    #[track_caller]
    pub fn outbox<T: Stored>(self, name: &str, stages: u32, rows: u32, cols: u32) -> Outbox<T> {
        let tile = self.tile(name, rows, cols).stages(stages).declare();
        Outbox::new(name, stages, tile, self.named_barrier(name))
    }

    /// A queue of work items that CTAs take from as they come; roles learn of
    /// an item through a ring of `stages`. In a kernel of clusters
    /// ([`cluster`](Self::cluster) comes first) the CTAs of one take items together.
    #[track_caller]
    pub fn work_queue(self, name: &str, stages: u32) -> WorkQueue {
        WorkQueue::new(self, name, stages)
    }

    /// A role: warps that run one body.
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

impl Map {
    /// States that the grids before leave the tensor alone: a kernel that
    /// starts early reads it before [`wait_prerequisites`](super::wait_prerequisites).
    ///
    /// A plan is refused in which a step that may still run writes there.
    #[track_caller]
    pub fn settled(self) -> Self {
        with(|s| {
            if let Some(param) = s.params.get_mut(self.id.index()) {
                param.settled = true;
            }
        });
        self
    }
}

impl<T: Element> Global<T> {
    /// As [`Map::settled`], of the memory behind a pointer.
    ///
    /// ```
    /// use warpline_ir::{Kernel, Target, build::*};
    ///
    /// let kernel = Kernel::build("early", &Target::SM_90A, |k| {
    ///     let (weight, y) = (k.pointer::<f32>("weight").settled(), k.pointer::<f32>("y"));
    ///     k.role("all").body(|| {
    ///         let w = weight.load(lane_id());
    ///         wait_prerequisites();
    ///         y.store(lane_id(), y.load(lane_id()) * w);
    ///     });
    /// })?;
    /// assert!(kernel.params[0].settled && !kernel.params[1].settled);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn settled(self) -> Self {
        let frame = Frame::caller();
        let reg = self.address(0).operand().as_reg();
        with(|s| match reg.and_then(|reg| read_into(s, reg)) {
            Some(p) => s.params[p.index()].settled = true,
            None => {
                let text = "only a pointer that is a launch parameter is settled";
                s.error("settled", text.to_owned(), frame, None);
            }
        });
        self
    }
}

/// Declares a parameter.
#[track_caller]
fn declare(name: &str, kind: ParamKind) -> ParamId {
    let frame = Frame::caller();
    let id = with(|s| {
        let loc = s.loc(frame);
        let fine = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !fine {
            let text =
                format!("a parameter's name is a letter, then letters, digits or _; not {name:?}");
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

/// The parameter that the prologue reads into a register.
pub(super) fn read_into(s: &State, reg: RegId) -> Option<ParamId> {
    s.blocks[0].stmts.iter().find_map(|x| match &x.kind {
        StmtKind::Op(Op::ReadParam(read)) if read.dst == reg => Some(read.param),
        _ => None,
    })
}

/// Reads a parameter, in the prologue.
#[track_caller]
fn read(param: ParamId, ty: Type) -> RegId {
    let frame = Frame::caller();
    let id = with(|s| Some(s.in_prologue(ty, frame, |dst| ReadParam { dst, param, ty }.into())));
    id.unwrap_or(RegId(0))
}

/// A role that is being declared.
#[derive(Clone, Debug)]
#[must_use = "a role is nothing without its body"]
pub struct RoleDecl {
    name: String,
    warps: u32,
    registers: Option<u32>,
    frame: Frame,
}

impl RoleDecl {
    /// Its warps.
    pub fn warps(mut self, n: u32) -> Self {
        self.warps = n;
        self
    }

    /// Its warps, four at a time.
    pub fn warpgroups(mut self, n: u32) -> Self {
        self.warps = 4 * n;
        self
    }

    /// Registers per thread: the role gives up or takes registers at its start.
    pub fn registers(mut self, n: u32) -> Self {
        self.registers = Some(n);
        self
    }

    /// As [`registers`](Self::registers), if asked for.
    pub fn registers_opt(mut self, n: Option<u32>) -> Self {
        self.registers = n;
        self
    }

    /// What it runs.
    #[track_caller]
    pub fn body(self, body: impl FnOnce()) {
        let _at = here();
        let frame = self.frame;
        let ok = with(|s| {
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
                let other = s.locs.author(r.loc).map(|f| (f, "the first"));
                let text = format!("two roles are named {}", self.name);
                s.error("role-name", text, frame, other);
            }
            if self.warps == 0 {
                let text = format!("role {} has at least one warp, not 0", self.name);
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
            s.blocks.push(Open {
                scope,
                stmts: Vec::new(),
            });
            true
        });
        if !ok {
            return;
        }
        body();
        super::outbox::drain();
        with(|s| {
            let stmts = s.blocks.pop().map(|b| b.stmts).unwrap_or_default();
            let mut all = std::mem::take(&mut s.preamble);
            if let Some(m) = &mut s.meeting
                && Some(m.role) == s.role
            {
                m.at += all.len();
            }
            all.extend(stmts);
            if let Some(r) = s.role.take() {
                s.roles[r.index()].body = Block(all);
            }
            s.width = Width::Role;
        });
    }
}
