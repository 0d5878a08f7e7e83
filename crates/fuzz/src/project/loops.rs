//! Loops over a count in every form. All forms visit the items in ascending order.

use crate::plan::LoopForm;
use warpline_ir::builder::*;

/// Emits a loop that runs `body` for the items `0..n`; some forms emit the body twice. `first` is the
/// length of the first part of [`LoopForm::First`].
pub(super) fn emit_loop(n: Reg<u32>, form: LoopForm, first: u32, body: &dyn Fn(Reg<u32>)) {
    match form {
        LoopForm::Up => steps(n).each(body),
        LoopForm::Down => {
            let left = Var::new(n);
            while_(
                || left.get().ne(0u32),
                || {
                    body(n - left.get());
                    left.set(left.get() - 1);
                },
            );
        }
        LoopForm::First => {
            let least = n.min(first);
            steps(least).each(body);
            range(least, n).each(body);
        }
        LoopForm::Halves => {
            let half = n / 2;
            steps(half).each(body);
            steps(n - half).each(|i| body(half + i));
        }
        LoopForm::FromOne => range(1u32, n + 1).each(|i| body(i - 1)),
        LoopForm::FromMinusOne => {
            let end = n.bitcast::<i32>() - 1;
            range(-1, end).each(|i| body((i + 1).bitcast()));
        }
        LoopForm::While => {
            let i = Var::new(0u32);
            while_(
                || i.get().lt(n),
                || {
                    body(i.get());
                    i.set(i.get() + 1);
                },
            );
        }
    }
}
