//! Control flow: loops, branches, and elected lanes.

use super::reg::{Int, Reg, Value, Var};
use super::state::{ActiveThreads, block, caller_scope, emit, error, push, with};
use crate::ops::compare::Select;
use crate::program::{Block, StmtKind};
use crate::types::Scalar;
use crate::value::Operand;

/// A counted loop.
#[derive(Clone, Copy, Debug)]
#[must_use = "a range does nothing until `each` or `fold`"]
pub struct Range<T: Scalar> {
    from: Operand,
    to: Operand,
    step: Operand,
    unroll: Option<u32>,
    ty: std::marker::PhantomData<fn() -> T>,
}

/// Returns the loop `0..n`.
#[track_caller]
pub fn steps(n: impl Value<u32>) -> Range<u32> {
    range(0u32, n)
}

/// Returns the loop `from..to`.
#[track_caller]
pub fn range<T: Int>(from: impl Value<T>, to: impl Value<T>) -> Range<T> {
    Range {
        from: from.operand(),
        to: to.operand(),
        step: Operand::Imm(1),
        unroll: None,
        ty: std::marker::PhantomData,
    }
}

impl<T: Int> Range<T> {
    /// Sets the step; the default is 1.
    #[track_caller]
    pub fn step_by(mut self, step: impl Value<T>) -> Self {
        self.step = step.operand();
        if self.step == Operand::Imm(0) {
            error("loop-step", "the step of a loop is 0; it must be positive");
        }
        self
    }

    /// Sets the unroll limit for ptxas. A limit of 1 emits `.pragma "nounroll"`; ptxas ignores
    /// other limits.
    pub fn unroll(mut self, times: u32) -> Self {
        self.unroll = Some(times);
        self
    }

    /// Emits the loop: `body` runs once to emit the code of an iteration.
    #[track_caller]
    pub fn each(self, body: impl FnOnce(Reg<T>)) {
        if T::TYPE.bytes() != 4 {
            error(
                "loop-type",
                format!("a loop counter has type {}; use u32 or i32", T::TYPE),
            );
        }
        let var = Reg::<T>::fresh();
        let body = {
            let _caller = caller_scope();
            block(|| body(var)).0
        };
        push(StmtKind::For {
            var: var.id(),
            from: self.from,
            to: self.to,
            step: self.step,
            body,
            unroll: self.unroll,
        });
    }

    /// Emits the loop and carries values from one iteration to the next.
    ///
    /// ```
    /// use warpline_ir::{Kernel, Target, builder::*};
    /// # Kernel::build("k", &Target::SM_90A, |k| k.role("all").warps(1).body(|| {
    /// let sum = steps(10u32).fold(0u32.reg(), |i, sum| sum + i);
    /// # let _ = sum; })).unwrap();
    /// ```
    #[track_caller]
    pub fn fold<C: Carry>(self, first: C, body: impl FnOnce(Reg<T>, C) -> C) -> C {
        let vars = first.open();
        self.each(|i| C::store(&vars, body(i, C::load(&vars))));
        C::load(&vars)
    }
}

/// A value that a loop can carry: registers, and tuples, arrays and vectors of them.
pub trait Carry {
    /// The variables that hold the value.
    type Vars;
    /// Creates the variables and stores the initial value.
    fn open(self) -> Self::Vars;
    /// Returns the current value.
    fn load(vars: &Self::Vars) -> Self;
    /// Sets the value for the next iteration.
    fn store(vars: &Self::Vars, value: Self);
}

impl<T: Scalar> Carry for Reg<T> {
    type Vars = Var<T>;
    #[track_caller]
    fn open(self) -> Var<T> {
        Var::new(self)
    }
    #[track_caller]
    fn load(vars: &Var<T>) -> Self {
        vars.get()
    }
    #[track_caller]
    fn store(vars: &Var<T>, value: Self) {
        vars.set(value);
    }
}

impl<C: Carry> Carry for Vec<C> {
    type Vars = Vec<C::Vars>;
    fn open(self) -> Self::Vars {
        self.into_iter().map(C::open).collect()
    }
    fn load(vars: &Self::Vars) -> Self {
        vars.iter().map(C::load).collect()
    }
    fn store(vars: &Self::Vars, value: Self) {
        for (v, x) in vars.iter().zip(value) {
            C::store(v, x);
        }
    }
}

impl<C: Carry, const N: usize> Carry for [C; N] {
    type Vars = [C::Vars; N];
    fn open(self) -> Self::Vars {
        self.map(C::open)
    }
    fn load(vars: &Self::Vars) -> Self {
        std::array::from_fn(|i| C::load(&vars[i]))
    }
    fn store(vars: &Self::Vars, value: Self) {
        for (v, x) in vars.iter().zip(value) {
            C::store(v, x);
        }
    }
}

macro_rules! carry_tuple {
    ($($t:ident $i:tt),*) => {
        impl<$($t: Carry),*> Carry for ($($t,)*) {
            type Vars = ($($t::Vars,)*);
            #[track_caller]
            fn open(self) -> Self::Vars { ($(self.$i.open(),)*) }
            #[track_caller]
            fn load(vars: &Self::Vars) -> Self { ($($t::load(&vars.$i),)*) }
            #[track_caller]
            fn store(vars: &Self::Vars, value: Self) { $($t::store(&vars.$i, value.$i);)* }
        }
    };
}
carry_tuple!(A 0, B 1);
carry_tuple!(A 0, B 1, C 2);
carry_tuple!(A 0, B 1, C 2, D 3);

/// Emits a loop that runs `body` while `cond` is true.
#[track_caller]
pub fn while_(cond: impl FnOnce() -> Reg<bool>, body: impl FnOnce()) {
    let (head, cond, body) = {
        let _caller = caller_scope();
        let (head, cond) = block(cond);
        let (body, ()) = block(body);
        (head, cond, body)
    };
    push(StmtKind::While {
        head,
        cond: cond.id(),
        body,
    });
}

/// Emits a branch: `then` runs in the lanes where `cond` is true.
#[track_caller]
pub fn if_(cond: Reg<bool>, then: impl FnOnce()) {
    branch(cond, then, || {});
}

/// Emits a branch: `then` runs in the lanes where `cond` is true, `other` in the rest.
#[track_caller]
pub fn if_else(cond: Reg<bool>, then: impl FnOnce(), other: impl FnOnce()) {
    branch(cond, then, other);
}

#[track_caller]
fn branch(cond: Reg<bool>, then: impl FnOnce(), other: impl FnOnce()) {
    let Operand::Reg(id) = cond.operand() else {
        return;
    };
    let (then, other) = {
        let _caller = caller_scope();
        (block(then).0, block(other).0)
    };
    let frame = crate::loc::Frame::caller();
    with(|s| {
        let loc = s.loc(frame);
        s.check_use(id, loc);
        s.push(
            StmtKind::If {
                cond: id,
                then,
                other,
            },
            loc,
        );
    });
}

/// Selects `a` in the lanes where `cond` is true and `b` in the rest (`selp`).
#[track_caller]
pub fn select<T: Scalar>(cond: Reg<bool>, a: impl Value<T>, b: impl Value<T>) -> Reg<T> {
    let dst = Reg::fresh();
    emit(Select {
        ty: T::TYPE,
        dst: dst.id(),
        cond: cond.operand(),
        a: a.operand(),
        b: b.operand(),
    });
    dst
}

/// Runs `body` in one thread of the role: an elected lane of its first warp (`elect.sync`).
#[track_caller]
pub fn elect<T>(body: impl FnOnce() -> T) -> T {
    let _caller = caller_scope();
    let warps = with(|s| s.role.map_or(1, |r| s.roles[r.index()].warps));
    if warps == 1 {
        return emit_elect(ActiveThreads::Thread, body);
    }
    let first = super::warp_in_role().eq(0u32);
    let (then, value) = block(|| emit_elect(ActiveThreads::Thread, body));
    push(StmtKind::If {
        cond: first.id(),
        then,
        other: Block::default(),
    });
    value
}

/// Runs `body` in one elected lane of each warp of the role (`elect.sync`).
#[track_caller]
pub fn elect_lane<T>(body: impl FnOnce() -> T) -> T {
    let _caller = caller_scope();
    let active = with(|s| match s.role.map(|r| s.roles[r.index()].warps) {
        Some(1) => Some(ActiveThreads::Thread),
        _ => Some(ActiveThreads::LanePerWarp),
    });
    emit_elect(active.unwrap_or(ActiveThreads::LanePerWarp), body)
}

#[track_caller]
fn emit_elect<T>(active: ActiveThreads, body: impl FnOnce() -> T) -> T {
    let outer = with(|s| {
        let outer = s.active;
        if outer != ActiveThreads::Role {
            let frame = crate::loc::Frame::caller();
            s.error(
                "elect-inside-elect",
                "elect is called inside elect; one lane is already elected".to_owned(),
                frame,
                None,
            );
        }
        s.active = active;
        Some(outer)
    });
    let (body, value) = block(body);
    with(|s| s.active = outer.unwrap_or(ActiveThreads::Role));
    push(StmtKind::Elect { body });
    value
}
