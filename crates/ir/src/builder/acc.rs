//! Accumulators of `wgmma`, while the instructions are in flight.

use super::frag::{Frag, FragOwner};
use super::k_order::KOrder;
use super::operand::{OperandA, OperandB};
use super::reg::Reg;
use super::row_vector::RowVector;
use super::state::{ActiveThreads, caller_scope, emit, error, with};
use crate::loc::Frame;
use crate::ops::arith::Mul;
use crate::ops::wgmma::{Wgmma, WgmmaCommit, WgmmaFence, WgmmaWait};
use crate::types::Type;
use crate::value::{Operand, RegId};

/// An accumulator: `m` × `n` f32 values in the registers of one warpgroup.
///
/// No instruction may access it while `wgmma` is in flight. [`into_frag`](Self::into_frag) waits
/// and returns the values; [`wait`](Self::wait) only waits.
#[derive(Debug)]
pub struct Acc {
    id: u32,
    m: u32,
    n: u32,
    regs: Vec<RegId>,
}

impl Acc {
    /// Returns a zero accumulator; `m` is a multiple of 64, `n` a multiple of 8 up to 256.
    ///
    /// If the first `mma` is in the same block, it overwrites the accumulator (`scale-d = 0`).
    /// Otherwise, as before a loop, the builder emits the zeros here.
    #[track_caller]
    pub fn new(m: u32, n: u32) -> Self {
        let _caller = caller_scope();
        if m == 0 || !m.is_multiple_of(64) || n == 0 || !n.is_multiple_of(8) || n > 256 {
            error(
                "accumulator-shape",
                format!(
                    "an accumulator of {m} x {n} is invalid; rows must be a multiple of 64, columns a multiple of 8 up to 256"
                ),
            );
            return Self::new(64, 8);
        }
        let (warps, active) = with(|s| {
            (
                s.role.map_or(0, |r| s.roles[r.index()].warps),
                Some(s.active),
            )
        });
        if warps != 4 || active != Some(ActiveThreads::Role) {
            error(
                "accumulator-role",
                format!(
                    "an accumulator is used in a role of {warps} warps or inside elect; it needs all threads of a role of one warpgroup (4 warps)"
                ),
            );
        }
        let regs: Vec<RegId> = (0..m / 64 * n / 2)
            .map(|_| Reg::<f32>::fresh().id())
            .collect();
        let frame = Frame::caller();
        let id = with(|s| {
            let loc = s.loc(frame);
            s.new_acc(regs.clone(), loc)
        });
        Self { id, m, n, regs }
    }

    pub(super) fn id(&self) -> u32 {
        self.id
    }

    /// Issues `wgmma` for `self += a · bᵀ` over all of K, and commits one wgmma group.
    ///
    /// `a` is m × k: a tile, a [transposed](super::TileRef::t) tile, or a
    /// [`RegOperand`](super::RegOperand). `b` is a tile of n × k, or a transposed tile of
    /// k × n. Both must hold K in the same order.
    #[track_caller]
    pub fn mma<K: KOrder>(&self, a: &impl OperandA<K>, b: &impl OperandB<K>) {
        let _caller = caller_scope();
        let Some((a_ty, b_ty)) = a.mma_type().zip(b.mma_type()) else {
            error(
                "mma-type",
                format!(
                    "wgmma cannot multiply {} by {}; the operand types are bf16, f16, tf32 and fp8",
                    a.dtype(),
                    b.dtype()
                ),
            );
            return;
        };
        let step = a_ty.k();
        let ((m, ka), (n, kb)) = (a.shape(), b.shape());
        if m != self.m || n != self.n || ka != kb || !ka.is_multiple_of(step) {
            error(
                "mma-shape",
                format!(
                    "an accumulator of {} x {} needs operands of {} x k and {} x k with k a multiple of {step}; the operands are {m} x {ka} and {n} x {kb}",
                    self.m, self.n, self.m, self.n,
                ),
            );
            return;
        }
        let overwrites = with(|s| s.first_wgmma_overwrites(self.id));
        emit(WgmmaFence);
        for k in (0..ka).step_by(step as usize) {
            let (b, b_major) = b.part(0, n, k, step);
            for (block, d) in self.regs.chunks((self.n / 2) as usize).enumerate() {
                emit(Wgmma {
                    a_ty,
                    b_ty,
                    n,
                    d: d.to_vec(),
                    a: a.matrix(block as u32 * 64, k, step),
                    b,
                    b_major,
                    scale_d: Operand::imm(!(overwrites && k == 0)),
                    neg_a: false,
                    neg_b: false,
                });
            }
        }
        emit(WgmmaCommit);
        with(|s| s.record_wgmma_group(self.id));
    }

    /// Calls `f` with every register, without a wait (raw layer).
    ///
    /// The hardware forbids the access while `wgmma` is in flight, and the checker refutes it.
    pub fn peek(&self, f: impl FnMut(Reg<f32>)) {
        with(|s| s.zero_acc(self.id));
        self.regs.iter().map(|&r| Reg::of(r)).for_each(f);
    }

    /// Waits for the `wgmma` of this accumulator; later groups of other accumulators stay in
    /// flight.
    #[track_caller]
    pub fn wait(&self) {
        let _caller = caller_scope();
        let pending = with(|s| {
            s.zero_acc(self.id);
            s.groups_after_last_use(self.id)
        });
        emit(WgmmaWait { pending });
        super::slot::release_deferred(self.id);
    }

    /// Multiplies every row by the row vector's value. Call [`wait`](Self::wait) first.
    #[track_caller]
    pub fn rescale(&self, by: &RowVector) {
        let _caller = caller_scope();
        with(|s| s.zero_acc(self.id));
        if !by.check_fragment(FragOwner::Warpgroup, self.m) {
            return;
        }
        for (i, &r) in self.regs.iter().enumerate() {
            emit(Mul {
                ty: Type::F32,
                dst: r,
                a: r.into(),
                b: Operand::Reg(by.value_for(i, self.n).id()),
            });
        }
    }

    /// Waits for the `wgmma` of this accumulator, releases the slots of
    /// [`release_after`](super::Slot::release_after), and returns the values as a fragment.
    #[track_caller]
    pub fn into_frag(self) -> Frag {
        let _caller = caller_scope();
        self.wait();
        let values = self.regs.iter().map(|&r| Reg::of(r)).collect();
        Frag::new(FragOwner::Warpgroup, self.m, self.n, values)
    }
}
