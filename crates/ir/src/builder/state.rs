//! The state of the current thread's builder.

use crate::bounds::Limit;
use crate::error::BuildError;
use crate::loc::{Frame, Loc, Locs};
use crate::machine::{Effects, MemoryAccess};
use crate::ops::Op;
use crate::program::{Barrier, Block, NamedBarrier, Param, Role, Stmt, StmtKind, TileInfo};
use crate::sync::SyncOp;
use crate::target::Target;
use crate::types::Type;
use crate::value::{BarId, Operand, RegId, RegInfo, RoleId};
use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, Ordering};

/// The threads that run the code being emitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ActiveThreads {
    /// Every thread of the role.
    Role,
    /// One lane of each warp of the role.
    LanePerWarp,
    /// One thread of the role.
    Thread,
}

/// The arrival count that initializes an mbarrier.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ArrivalCount {
    /// The same count for every mbarrier of the array.
    Fixed(u32),
    /// One count for each mbarrier of the array.
    Each(Vec<u32>),
    /// The author initializes the mbarriers.
    Manual,
}

/// A block of statements that is not closed yet.
pub(crate) struct OpenBlock {
    pub(crate) scope: u32,
    pub(crate) stmts: Vec<Stmt>,
}

/// A kernel that is being built.
pub(crate) struct BuilderState {
    pub(crate) serial: u32,
    pub(crate) name: String,
    pub(crate) target: Target,
    /// Whether role bodies are skipped, so that only declarations are recorded.
    pub(crate) declare_only: bool,
    pub(crate) params: Vec<Param>,
    pub(crate) tiles: Vec<TileInfo>,
    pub(crate) barriers: Vec<Barrier>,
    pub(crate) counts: Vec<ArrivalCount>,
    pub(crate) named: Vec<NamedBarrier>,
    pub(crate) roles: Vec<Role>,
    pub(crate) regs: Vec<RegInfo>,
    pub(crate) scopes: Vec<u32>,
    pub(crate) cluster: [u32; 3],
    pub(crate) limits: Vec<Limit>,
    pub(crate) co_resident: bool,
    /// Whether the CTAs of the cluster access each other's shared memory.
    pub(crate) accesses_peers: bool,
    pub(crate) locs: Locs,
    pub(crate) errors: Vec<BuildError>,
    /// The open blocks, the prologue first.
    pub(crate) blocks: Vec<OpenBlock>,
    pub(crate) next_scope: u32,
    pub(crate) role: Option<RoleId>,
    pub(crate) active: ActiveThreads,
    /// Statements at the start of the role that initialize its ring cursors and turn parities.
    pub(crate) preamble: Vec<Stmt>,
    pub(crate) frames: Vec<Frame>,
    pub(crate) rings: Vec<super::ring::RingState>,
    pub(crate) turns: Vec<super::turn::TurnState>,
    pub(crate) outboxes: Vec<super::outbox::OutboxState>,
    pub(crate) wgmma: super::wgmma_groups::WgmmaTracker,
    /// The prologue barrier, if a role has one.
    pub(crate) prologue_barrier: Option<super::prologue_barrier::PrologueBarrier>,
}

thread_local! {
    static STACK: RefCell<Vec<BuilderState>> = const { RefCell::new(Vec::new()) };
}
static SERIAL: AtomicU32 = AtomicU32::new(1);

/// Closes the builder if the author's closure panics.
pub(crate) struct BuilderGuard(bool);

/// Opens a builder that skips role bodies.
pub(crate) fn declare_only(target: &Target) -> BuilderGuard {
    let open = open("declared", target);
    with(|s| s.declare_only = true);
    open
}

pub(crate) fn open(name: &str, target: &Target) -> BuilderGuard {
    let state = BuilderState {
        serial: SERIAL.fetch_add(1, Ordering::Relaxed),
        name: name.to_owned(),
        target: *target,
        declare_only: false,
        params: Vec::new(),
        tiles: Vec::new(),
        barriers: Vec::new(),
        counts: Vec::new(),
        named: Vec::new(),
        roles: Vec::new(),
        regs: Vec::new(),
        scopes: Vec::new(),
        cluster: [1, 1, 1],
        limits: Vec::new(),
        co_resident: false,
        accesses_peers: false,
        locs: Locs::default(),
        errors: Vec::new(),
        blocks: vec![OpenBlock {
            scope: 0,
            stmts: Vec::new(),
        }],
        next_scope: 1,
        role: None,
        active: ActiveThreads::Role,
        preamble: Vec::new(),
        frames: Vec::new(),
        rings: Vec::new(),
        turns: Vec::new(),
        outboxes: Vec::new(),
        wgmma: super::wgmma_groups::WgmmaTracker::default(),
        prologue_barrier: None,
    };
    STACK.with(|s| s.borrow_mut().push(state));
    BuilderGuard(true)
}

impl BuilderGuard {
    pub(crate) fn close(mut self) -> BuilderState {
        self.0 = false;
        STACK
            .with(|s| s.borrow_mut().pop())
            .expect("the builder is open")
    }
}

impl Drop for BuilderGuard {
    fn drop(&mut self) {
        if self.0 {
            STACK.with(|s| s.borrow_mut().pop());
        }
    }
}

/// Runs `f` on the open builder; returns `T::default()` if none is open.
pub(crate) fn with<T: Default>(f: impl FnOnce(&mut BuilderState) -> T) -> T {
    STACK
        .with(|s| s.borrow_mut().last_mut().map(f))
        .unwrap_or_default()
}

/// The guard of [`caller_scope`].
#[must_use]
pub(crate) struct CallerScope(());

/// Pushes the caller's source line onto the location stack until the guard drops.
#[track_caller]
pub(crate) fn caller_scope() -> CallerScope {
    let frame = Frame::caller();
    with(|s| s.frames.push(frame));
    CallerScope(())
}

impl Drop for CallerScope {
    fn drop(&mut self) {
        with(|s| {
            s.frames.pop();
        });
    }
}

/// Emits an op with the caller's source line.
#[track_caller]
pub(crate) fn emit(op: impl Into<Op>) {
    let frame = Frame::caller();
    let op = op.into();
    with(|s| {
        let loc = s.loc(frame);
        s.check_operands(&op, loc);
        s.push(StmtKind::Op(op), loc);
    });
}

/// Creates a register.
#[track_caller]
pub(crate) fn fresh(ty: Type) -> RegId {
    let frame = Frame::caller();
    STACK.with(|s| {
        s.borrow_mut()
            .last_mut()
            .map_or(RegId(0), |s| s.fresh(ty, frame))
    })
}

/// Records an error at the caller's source line.
#[track_caller]
pub(crate) fn error(code: &'static str, text: impl Into<String>) {
    let (frame, text) = (Frame::caller(), text.into());
    with(|s| s.error(code, text, frame, None));
}

/// Collects the statements that `f` emits into a block.
pub(crate) fn block<T>(f: impl FnOnce() -> T) -> (Block, T) {
    with(|s| {
        let scope = s.next_scope;
        s.next_scope += 1;
        s.blocks.push(OpenBlock {
            scope,
            stmts: Vec::new(),
        });
    });
    let value = f();
    let stmts = with(|s| s.blocks.pop().map(|b| b.stmts).unwrap_or_default());
    (Block(stmts), value)
}

/// Appends a statement with the caller's source line.
#[track_caller]
pub(crate) fn push(kind: StmtKind) {
    let frame = Frame::caller();
    with(|s| {
        let loc = s.loc(frame);
        s.push(kind, loc);
    });
}

impl BuilderState {
    /// Interns the location stack of a frame: the frame, then its enclosing callers.
    pub(crate) fn loc(&mut self, frame: Frame) -> Loc {
        let mut stack = vec![frame];
        for &f in self.frames.iter().rev() {
            if stack.last() != Some(&f) {
                stack.push(f);
            }
        }
        self.locs.intern(&stack)
    }

    /// Returns the innermost frame outside of this crate.
    pub(crate) fn author(&self, frame: Frame) -> Frame {
        if !frame.is_internal() {
            return frame;
        }
        let author = self.frames.iter().rev().find(|f| !f.is_internal());
        author.copied().unwrap_or(frame)
    }

    pub(crate) fn error(
        &mut self,
        code: &'static str,
        text: String,
        frame: Frame,
        other: Option<(Frame, &'static str)>,
    ) {
        let at = Some(self.author(frame));
        let e = BuildError {
            code,
            text,
            at,
            other,
        };
        if !self.errors.contains(&e) {
            self.errors.push(e);
        }
    }

    pub(crate) fn fresh(&mut self, ty: Type, frame: Frame) -> RegId {
        let loc = self.loc(frame);
        let scope = self.blocks.last().map_or(0, |b| b.scope);
        let id = RegId(self.regs.len() as u32);
        self.regs.push(RegInfo {
            ty,
            role: self.role,
            loc,
        });
        self.scopes.push(scope);
        id
    }

    pub(crate) fn push(&mut self, kind: StmtKind, loc: Loc) {
        if let Some(b) = self.blocks.last_mut() {
            b.stmts.push(Stmt { kind, loc });
        }
    }

    /// Creates a register that the prologue computes for every role.
    pub(crate) fn in_prologue(
        &mut self,
        ty: Type,
        frame: Frame,
        op: impl FnOnce(RegId) -> Op,
    ) -> RegId {
        let loc = self.loc(frame);
        let id = RegId(self.regs.len() as u32);
        self.regs.push(RegInfo {
            ty,
            role: None,
            loc,
        });
        self.scopes.push(0);
        let kind = StmtKind::Op(op(id));
        self.blocks[0].stmts.push(Stmt { kind, loc });
        id
    }

    /// Creates a register that the role initializes at its start.
    pub(crate) fn in_preamble(
        &mut self,
        ty: Type,
        frame: Frame,
        op: impl FnOnce(RegId) -> Op,
    ) -> RegId {
        let loc = self.loc(frame);
        let id = RegId(self.regs.len() as u32);
        self.regs.push(RegInfo {
            ty,
            role: self.role,
            loc,
        });
        // The scope of the role body.
        self.scopes.push(self.blocks.get(1).map_or(0, |b| b.scope));
        let kind = StmtKind::Op(op(id));
        if self.role.is_some() {
            self.preamble.push(Stmt { kind, loc });
        } else {
            self.blocks[0].stmts.push(Stmt { kind, loc });
        }
        id
    }

    fn check_operands(&mut self, op: &Op, loc: Loc) {
        let mut registers = RegisterUses(Vec::new());
        op.effects(&mut registers);
        for r in registers.0 {
            self.check_use(r, loc);
        }
    }

    /// Checks that the role that defined a register uses it, while its block is open.
    pub(crate) fn check_use(&mut self, r: RegId, loc: Loc) {
        let Some(info) = self.regs.get(r.index()) else {
            return;
        };
        let (role, defined_at) = (info.role, info.loc);
        let used = self.locs.author(loc);
        let defined = self.locs.author(defined_at).map(|f| (f, "defined here"));
        let (code, text) = if role.is_some() && role != self.role {
            let owner = role.map_or("", |r| self.roles[r.index()].name.as_str());
            let user = self
                .role
                .map_or("the prologue", |r| self.roles[r.index()].name.as_str());
            (
                "register-of-another-role",
                format!(
                    "{user} uses a register of role {owner}; roles do not share registers\nhelp: pass the value through a ring, or compute it in both roles"
                ),
            )
        } else if !self
            .blocks
            .iter()
            .any(|b| b.scope == self.scopes[r.index()])
        {
            (
                "register-out-of-scope",
                "a register of a closed block is used\nhelp: carry the value in a Var".to_owned(),
            )
        } else {
            return;
        };
        let e = BuildError {
            code,
            text,
            at: used,
            other: defined,
        };
        if !self.errors.contains(&e) {
            self.errors.push(e);
        }
    }

    /// Returns the name of the current role.
    pub(crate) fn role_name(&self) -> String {
        self.role.map_or_else(
            || "the prologue".to_owned(),
            |r| self.roles[r.index()].name.clone(),
        )
    }

    /// Declares an array of mbarriers.
    pub(crate) fn barrier(
        &mut self,
        name: String,
        len: u32,
        count: ArrivalCount,
        frame: Frame,
    ) -> BarId {
        let loc = self.loc(frame);
        let id = BarId(self.barriers.len() as u32);
        self.barriers.push(Barrier {
            name,
            len,
            offset: 0,
            loc,
        });
        self.counts.push(count);
        id
    }
}

/// Collects the registers that an op reads or writes.
struct RegisterUses(Vec<RegId>);

impl RegisterUses {
    fn operand(&mut self, o: Operand) {
        self.0.extend(o.as_reg());
    }
}

impl Effects for RegisterUses {
    fn def(&mut self, r: RegId) {
        self.0.push(r);
    }
    fn arg(&mut self, o: Operand, _: Type) {
        self.operand(o);
    }
    fn access(&mut self, t: &MemoryAccess) {
        t.operands(&mut |o| self.operand(o));
    }
    fn sync(&mut self, s: &SyncOp) {
        s.operands(&mut |o, _| self.operand(o));
    }
    fn whole_warp(&mut self) {}
}
