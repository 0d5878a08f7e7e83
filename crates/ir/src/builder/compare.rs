//! Comparisons of registers, and predicate logic.

use super::reg::{Compare, Reg, Value};
use super::state::emit;
use crate::ops::compare::{Cmp, PredAnd, PredNot, PredOr, Setp};
use std::ops;

impl ops::Not for Reg<bool> {
    type Output = Reg<bool>;
    #[track_caller]
    fn not(self) -> Reg<bool> {
        let dst = Reg::fresh();
        emit(PredNot {
            dst: dst.id(),
            a: self.operand(),
        });
        dst
    }
}

impl ops::BitAnd for Reg<bool> {
    type Output = Reg<bool>;
    #[track_caller]
    fn bitand(self, b: Reg<bool>) -> Reg<bool> {
        let dst = Reg::fresh();
        emit(PredAnd {
            dst: dst.id(),
            a: self.operand(),
            b: b.operand(),
        });
        dst
    }
}

impl ops::BitOr for Reg<bool> {
    type Output = Reg<bool>;
    #[track_caller]
    fn bitor(self, b: Reg<bool>) -> Reg<bool> {
        let dst = Reg::fresh();
        emit(PredOr {
            dst: dst.id(),
            a: self.operand(),
            b: b.operand(),
        });
        dst
    }
}

macro_rules! comparison {
    ($($(#[$doc:meta])* $name:ident = $cmp:ident;)*) => {
        #[allow(clippy::should_implement_trait)] // a register has no `bool` to return
        impl<T: Compare> Reg<T> {$(
            $(#[$doc])*
            #[track_caller]
            pub fn $name(self, b: impl Value<T>) -> Reg<bool> {
                let dst = Reg::fresh();
                emit(Setp { cmp: Cmp::$cmp, ty: T::TYPE, dst: dst.id(), a: self.operand(), b: b.operand() });
                dst
            }
        )*}
    };
}
comparison! {
    /// Returns `self == b`.
    eq = Eq;
    /// Returns `self != b`.
    ne = Ne;
    /// Returns `self < b`.
    lt = Lt;
    /// Returns `self <= b`.
    le = Le;
    /// Returns `self > b`.
    gt = Gt;
    /// Returns `self >= b`.
    ge = Ge;
}
