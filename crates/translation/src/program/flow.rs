//! Statements as branches and labels.
//!
//! A `for` is a test, the rounds, and the test again; a `while` is its head, a
//! test, the rounds, and a way back; an `if` jumps over what it does not run.
//! Roles stand one after the other, and each warp jumps to its own. Nothing is
//! peeled or unrolled, by the printer or here: ptxas does that, behind this
//! check. A printer that did would have to say so in the program first.

use super::Meant;
use super::op::acts_of;
use super::terms::Terms;
use crate::act::{Act, FROM, Kind, TARGET};
use crate::value::Value;
use warpline_check::Uniformity;
use warpline_ir::{Block, Kernel, Loc, Operand, RegId, RoleId, Stmt, StmtKind, Type, Uniform};

/// The acts of all statements.
pub(super) fn acts(kernel: &Kernel) -> Vec<Meant<'_>> {
    let mut flow = Flow {
        terms: Terms { kernel },
        uniformity: Uniformity::of(kernel),
        meant: Vec::new(),
        at: None,
        role: None,
        elected: false,
        labels: Vec::new(),
        placed: 0,
        branches: Vec::new(),
    };
    flow.block(&kernel.prologue);
    flow.roles(kernel);
    flow.block(&kernel.epilogue);
    flow.say(Act::new(Kind::Return));
    flow.finish()
}

/// A place to jump to, which may be further on.
#[derive(Clone, Copy)]
struct Label(usize);

struct Flow<'a> {
    terms: Terms<'a>,
    uniformity: Uniformity,
    meant: Vec<Meant<'a>>,
    at: Option<Loc>,
    role: Option<RoleId>,
    /// Is one lane of the warp elected already?
    elected: bool,
    /// The number of each label, once it is placed.
    labels: Vec<u64>,
    placed: u64,
    /// Branches, the labels they go to, and how many labels come before them.
    branches: Vec<(usize, Label, u64)>,
}

impl<'a> Flow<'a> {
    fn say(&mut self, act: Act<'a>) {
        self.meant.push(Meant {
            act,
            at: self.at,
            role: self.role,
        });
    }

    fn label(&mut self) -> Label {
        self.labels.push(0);
        Label(self.labels.len() - 1)
    }

    fn place(&mut self, label: Label) {
        self.labels[label.0] = self.placed;
        self.placed += 1;
        self.say(Act::new(Kind::Label));
    }

    fn branch(&mut self, when: Value<'a>, to: Label, whole_warp: bool) {
        self.branches.push((self.meant.len(), to, self.placed));
        let act = Act::new(Kind::Branch)
            .with("condition", when)
            .with(TARGET, Value::Nothing)
            .with("the same way for a whole warp", Value::yes(whole_warp));
        self.say(act);
    }

    /// All acts, now that every label has its place.
    fn finish(mut self) -> Vec<Meant<'a>> {
        for (branch, to, before) in self.branches {
            let distance = self.labels[to.0].wrapping_sub(before);
            self.meant[branch].act.facts[1].1 = Value::Number(distance);
        }
        self.meant
    }

    fn roles(&mut self, kernel: &'a Kernel) {
        let end = self.label();
        let mut roles = kernel.roles.iter().enumerate().peekable();
        while let Some((i, role)) = roles.next() {
            let more = roles.peek().is_some();
            let next = self.label();
            (self.at, self.role) = (Some(role.loc), Some(RoleId(i as u32)));
            if more {
                let last = role.first_warp + role.warps;
                let later = Value::Made("setp.ge.u32", vec![warp(), last.into()]);
                self.branch(later, next, true);
            }
            self.block(&role.body);
            if more {
                self.branch(Value::Name("always"), end, true);
                self.place(next);
            }
        }
        if kernel.roles.len() > 1 {
            self.place(end);
        }
        self.role = None;
    }

    fn block(&mut self, block: &'a Block) {
        for stmt in &block.0 {
            self.at = Some(stmt.loc);
            match &stmt.kind {
                StmtKind::Op(op) => {
                    for act in acts_of(self.terms, op) {
                        self.say(act);
                    }
                }
                StmtKind::If { cond, then, other } => self.choose(*cond, then, other),
                StmtKind::For {
                    var,
                    from,
                    to,
                    step,
                    body,
                    unroll,
                } => self.count(stmt, *var, [*from, *to, *step], body, *unroll),
                StmtKind::While { head, cond, body } => self.repeat(stmt, head, *cond, body),
                StmtKind::Elect { body } => self.elect(body),
            }
        }
    }

    /// Do the lanes of a warp agree?
    fn agreed(&self, uniform: Uniform) -> bool {
        uniform >= Uniform::Warp
    }

    fn choose(&mut self, cond: RegId, then: &'a Block, other: &'a Block) {
        let (otherwise, end) = (self.label(), self.label());
        let agreed = self.agreed(self.uniformity.reg(cond));
        let no = not(self.terms.reg(cond));
        if other.0.is_empty() {
            self.branch(no, end, agreed);
            self.block(then);
        } else {
            self.branch(no, otherwise, agreed);
            self.block(then);
            self.branch(Value::Name("always"), end, true);
            self.place(otherwise);
            self.block(other);
        }
        self.place(end);
    }

    fn count(
        &mut self,
        stmt: &'a Stmt,
        var: RegId,
        [from, to, step]: [Operand; 3],
        body: &'a Block,
        unroll: Option<u32>,
    ) {
        let (again, end) = (self.label(), self.label());
        let agreed = self.agreed(self.uniformity.inside(stmt));
        let ty = self.terms.kernel.ty(var);
        let value = |o| self.terms.operand(o, ty);
        let (from, to, step) = (value(from), value(to), value(step));
        let var = self.terms.reg(var);
        let below = match ty {
            Type::I32 => "setp.lt.s32",
            _ => "setp.lt.u32",
        };
        let go = Value::Made(below, vec![var.clone(), to]);
        self.say(set(var.clone(), vec![from]));
        self.branch(not(go.clone()), end, agreed);
        self.place(again);
        if unroll == Some(1) {
            self.say(Act::new(Kind::NoUnroll));
        }
        self.block(body);
        self.at = Some(stmt.loc);
        self.say(set(var.clone(), vec![var, step]));
        self.branch(go, again, agreed);
        self.place(end);
    }

    fn repeat(&mut self, stmt: &'a Stmt, head: &'a Block, cond: RegId, body: &'a Block) {
        let (again, end) = (self.label(), self.label());
        let agreed = self.agreed(self.uniformity.reg(cond));
        self.place(again);
        self.block(head);
        self.at = Some(stmt.loc);
        self.branch(not(self.terms.reg(cond)), end, agreed);
        self.block(body);
        self.at = Some(stmt.loc);
        self.branch(Value::Name("always"), again, true);
        self.place(end);
    }

    fn elect(&mut self, body: &'a Block) {
        // One lane of one lane is that lane.
        if self.elected {
            return self.block(body);
        }
        let all = Value::Number(u32::MAX.into());
        let end = self.label();
        self.say(Act::new(Kind::Elect).with("lanes", all.clone()));
        self.branch(not(Value::Made("elect.sync", vec![all])), end, false);
        self.elected = true;
        self.block(body);
        self.elected = false;
        self.place(end);
    }
}

/// A register gets a value.
pub(super) fn set<'a>(register: Value<'a>, from: Vec<Value<'a>>) -> Act<'a> {
    Act::new(Kind::Set)
        .with("register", register)
        .with(FROM, Value::List(from))
}

fn not(value: Value<'_>) -> Value<'_> {
    Value::Made("not", vec![value])
}

/// The warp in its CTA, by the first lane of each warp.
fn warp<'a>() -> Value<'a> {
    let warp = Value::Made("shr.u32", vec![Value::Name("%tid.x"), Value::Number(5)]);
    let all = Value::Number(u32::MAX.into());
    let lanes = vec![warp, Value::Number(0), Value::Number(31), all];
    Value::Made("shfl.sync.idx.b32", lanes)
}
