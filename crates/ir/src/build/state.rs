//! The builder of the current thread.

use crate::bounds::Limit;
use crate::error::BuildError;
use crate::loc::{Frame, Loc, Locs};
use crate::machine::{Effects, Touch};
use crate::ops::Op;
use crate::program::{Barrier, Block, NamedBarrier, Param, Role, Stmt, StmtKind, Tile};
use crate::sync::Sync;
use crate::target::Target;
use crate::types::Type;
use crate::value::{BarId, Operand, RegId, RegInfo, RoleId};
use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, Ordering};

/// Which threads run what is being written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Width {
    /// Every thread of the role.
    Role,
    /// One lane of each warp of the role.
    LanePerWarp,
    /// One thread of the role.
    Thread,
}

/// How often a barrier's init expects arrivals.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Count {
    /// The same for every barrier of the array.
    Fixed(u32),
    /// One number for each barrier of the array.
    Each(Vec<u32>),
    /// The author initialises it himself.
    Manual,
}

/// A block that is being written.
pub(crate) struct Open {
    pub(crate) scope: u32,
    pub(crate) stmts: Vec<Stmt>,
}

/// A kernel that is being written.
pub(crate) struct State {
    pub(crate) serial: u32,
    pub(crate) name: String,
    pub(crate) target: Target,
    /// Are the bodies of roles left out?
    pub(crate) declare_only: bool,
    pub(crate) params: Vec<Param>,
    pub(crate) tiles: Vec<Tile>,
    pub(crate) barriers: Vec<Barrier>,
    pub(crate) counts: Vec<Count>,
    pub(crate) named: Vec<NamedBarrier>,
    pub(crate) roles: Vec<Role>,
    pub(crate) regs: Vec<RegInfo>,
    pub(crate) scopes: Vec<u32>,
    pub(crate) cluster: [u32; 3],
    pub(crate) limits: Vec<Limit>,
    pub(crate) co_resident: bool,
    pub(crate) remote: bool,
    pub(crate) locs: Locs,
    pub(crate) errors: Vec<BuildError>,
    /// Open blocks, the prologue first.
    pub(crate) blocks: Vec<Open>,
    pub(crate) next_scope: u32,
    pub(crate) role: Option<RoleId>,
    pub(crate) width: Width,
    /// Statements that initialise the state a role carries (ring cursors, turns).
    pub(crate) preamble: Vec<Stmt>,
    pub(crate) frames: Vec<Frame>,
    pub(crate) rings: Vec<super::ring::RingState>,
    pub(crate) turns: Vec<super::turn::TurnState>,
    pub(crate) outboxes: Vec<super::outbox::OutboxState>,
    pub(crate) flight: super::flight::Flight,
    /// Where the CTA meets, if in a role.
    pub(crate) meeting: Option<super::meet::Meeting>,
}

thread_local! {
    static STACK: RefCell<Vec<State>> = const { RefCell::new(Vec::new()) };
}
static SERIAL: AtomicU32 = AtomicU32::new(1);

/// Keeps the builder open; drops it if the author's closure panics.
pub(crate) struct OpenBuilder(bool);

/// Opens a builder that leaves out the bodies of roles.
pub(crate) fn declare_only(target: &Target) -> OpenBuilder {
    let open = open("declared", target);
    with(|s| s.declare_only = true);
    open
}

pub(crate) fn open(name: &str, target: &Target) -> OpenBuilder {
    let state = State {
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
        remote: false,
        locs: Locs::default(),
        errors: Vec::new(),
        blocks: vec![Open {
            scope: 0,
            stmts: Vec::new(),
        }],
        next_scope: 1,
        role: None,
        width: Width::Role,
        preamble: Vec::new(),
        frames: Vec::new(),
        rings: Vec::new(),
        turns: Vec::new(),
        outboxes: Vec::new(),
        flight: super::flight::Flight::default(),
        meeting: None,
    };
    STACK.with(|s| s.borrow_mut().push(state));
    OpenBuilder(true)
}

impl OpenBuilder {
    pub(crate) fn close(mut self) -> State {
        self.0 = false;
        STACK
            .with(|s| s.borrow_mut().pop())
            .expect("the builder is open")
    }
}

impl Drop for OpenBuilder {
    fn drop(&mut self) {
        if self.0 {
            STACK.with(|s| s.borrow_mut().pop());
        }
    }
}

/// Runs `f` on the open builder. Outside of any builder there is nothing to
/// write into: `T::default()`.
pub(crate) fn with<T: Default>(f: impl FnOnce(&mut State) -> T) -> T {
    STACK
        .with(|s| s.borrow_mut().last_mut().map(f))
        .unwrap_or_default()
}

/// Pushes the caller's line for the ops a helper emits; popped when dropped.
#[must_use]
pub(crate) struct Here(());

/// Marks the author's line that a multi-op helper stands for.
#[track_caller]
pub(crate) fn here() -> Here {
    let frame = Frame::caller();
    with(|s| s.frames.push(frame));
    Here(())
}

impl Drop for Here {
    fn drop(&mut self) {
        with(|s| {
            s.frames.pop();
        });
    }
}

/// Emits an op at the caller's line.
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

/// A fresh register.
#[track_caller]
pub(crate) fn fresh(ty: Type) -> RegId {
    let frame = Frame::caller();
    STACK.with(|s| {
        s.borrow_mut()
            .last_mut()
            .map_or(RegId(0), |s| s.fresh(ty, frame))
    })
}

/// Records an error at the caller's line.
#[track_caller]
pub(crate) fn error(code: &'static str, text: impl Into<String>) {
    let (frame, text) = (Frame::caller(), text.into());
    with(|s| s.error(code, text, frame, None));
}

/// Writes a nested block: what `f` emits.
pub(crate) fn block<T>(f: impl FnOnce() -> T) -> (Block, T) {
    with(|s| {
        let scope = s.next_scope;
        s.next_scope += 1;
        s.blocks.push(Open {
            scope,
            stmts: Vec::new(),
        });
    });
    let value = f();
    let stmts = with(|s| s.blocks.pop().map(|b| b.stmts).unwrap_or_default());
    (Block(stmts), value)
}

/// Pushes a statement at the caller's line.
#[track_caller]
pub(crate) fn push(kind: StmtKind) {
    let frame = Frame::caller();
    with(|s| {
        let loc = s.loc(frame);
        s.push(kind, loc);
    });
}

impl State {
    /// The location stack of a frame: itself, then what encloses it.
    pub(crate) fn loc(&mut self, frame: Frame) -> Loc {
        let mut stack = vec![frame];
        for &f in self.frames.iter().rev() {
            if stack.last() != Some(&f) {
                stack.push(f);
            }
        }
        self.locs.intern(stack)
    }

    /// The author's frame of a location.
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

    /// A register whose value is computed in the prologue, for every role.
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

    /// A register that a role sets at its start, for state it carries.
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
        // The role's own scope: open for as long as the role is.
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
        let mut used = Used(Vec::new());
        op.effects(&mut used);
        for r in used.0 {
            self.check_use(r, loc);
        }
    }

    /// A register may be used by the role that made it, while its block is open.
    pub(crate) fn check_use(&mut self, r: RegId, loc: Loc) {
        let Some(info) = self.regs.get(r.index()) else {
            return;
        };
        let (role, made) = (info.role, info.loc);
        let here = self.locs.author(loc);
        let there = self.locs.author(made).map(|f| (f, "made here"));
        let (code, text) = if role.is_some() && role != self.role {
            let owner = role.map_or("", |r| self.roles[r.index()].name.as_str());
            let user = self
                .role
                .map_or("the prologue", |r| self.roles[r.index()].name.as_str());
            (
                "register-of-another-role",
                format!(
                    "a register of role {owner} cannot be used in {user}: pass it through a ring, or compute it in both"
                ),
            )
        } else if !self
            .blocks
            .iter()
            .any(|b| b.scope == self.scopes[r.index()])
        {
            (
                "register-out-of-scope",
                "a register made inside a block is used after the block: carry it in a variable"
                    .to_owned(),
            )
        } else {
            return;
        };
        let e = BuildError {
            code,
            text,
            at: here,
            other: there,
        };
        if !self.errors.contains(&e) {
            self.errors.push(e);
        }
    }

    /// The name of the role being written.
    pub(crate) fn role_name(&self) -> String {
        self.role.map_or_else(
            || "the prologue".to_owned(),
            |r| self.roles[r.index()].name.clone(),
        )
    }

    /// Declares an array of mbarriers.
    pub(crate) fn barrier(&mut self, name: String, len: u32, count: Count, frame: Frame) -> BarId {
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

/// Collects the registers an op reads or writes.
struct Used(Vec<RegId>);

impl Used {
    fn operand(&mut self, o: Operand) {
        self.0.extend(o.as_reg());
    }
}

impl Effects for Used {
    fn def(&mut self, r: RegId) {
        self.0.push(r);
    }
    fn arg(&mut self, o: Operand, _: Type) {
        self.operand(o);
    }
    fn touch(&mut self, t: &Touch) {
        t.operands(&mut |o| self.operand(o));
    }
    fn sync(&mut self, s: &Sync) {
        s.operands(&mut |o, _| self.operand(o));
    }
    fn whole_warp(&mut self) {}
}
