//! Accumulators of warpgroup products, while the products are in flight.

use super::frag::{Frag, Team};
use super::korder::KOrder;
use super::operand::{Left, Right};
use super::reg::Reg;
use super::rows::Rows;
use super::state::{Width, emit, error, here, with};
use crate::loc::Frame;
use crate::ops::arith::Mul;
use crate::ops::wgmma::{Wgmma, WgmmaCommit, WgmmaFence, WgmmaWait};
use crate::types::Type;
use crate::value::{Operand, RegId};

/// An accumulator: `m` × `n` sums in the registers of one warpgroup.
///
/// While products are in flight nothing may touch it: [`finish`](Self::finish)
/// waits for them and gives the numbers, [`wait`](Self::wait) only waits.
#[derive(Debug)]
pub struct Acc {
    id: u32,
    m: u32,
    n: u32,
    regs: Vec<RegId>,
}

impl Acc {
    /// An accumulator of zeros: `m` a multiple of 64, `n` a multiple of 8 up to 256.
    ///
    /// Zeros cost nothing where the first product is in the same block: it
    /// overwrites.
    #[track_caller]
    pub fn new(m: u32, n: u32) -> Self {
        let _at = here();
        if m == 0 || !m.is_multiple_of(64) || n == 0 || !n.is_multiple_of(8) || n > 256 {
            error(
                "accumulator-shape",
                format!(
                    "an accumulator has a multiple of 64 rows and a multiple of 8 columns up to 256, not {m} x {n}"
                ),
            );
            return Self::new(64, 8);
        }
        let (warps, width) = with(|s| {
            (
                s.role.map_or(0, |r| s.roles[r.index()].warps),
                Some(s.width),
            )
        });
        if warps != 4 || width != Some(Width::Role) {
            error(
                "accumulator-role",
                format!(
                    "an accumulator belongs to a role of one whole warpgroup (4 warps), not of {warps} warps or one lane"
                ),
            );
        }
        let regs: Vec<RegId> = (0..m / 64 * n / 2)
            .map(|_| Reg::<f32>::fresh().id())
            .collect();
        let frame = Frame::caller();
        let id = with(|s| {
            let loc = s.loc(frame);
            s.new_sums(regs.clone(), loc)
        });
        Self { id, m, n, regs }
    }

    pub(super) fn id(&self) -> u32 {
        self.id
    }

    /// Adds `a · b` and closes the group of products.
    ///
    /// `a` is m × k: a tile, a [transposed](super::TileRef::t) tile, or a
    /// [`RegOperand`](super::RegOperand). `b` is a tile of n × k, or a
    /// transposed one of k × n. Both have K in the same order.
    #[track_caller]
    pub fn mma<K: KOrder>(&self, a: &impl Left<K>, b: &impl Right<K>) {
        let _at = here();
        let Some((a_ty, b_ty)) = a.mma_type().zip(b.mma_type()) else {
            error(
                "mma-type",
                format!(
                    "wgmma multiplies bf16, f16, tf32 or fp8, not {} with {}",
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
                    "a product into {} x {} needs operands of {} x k and {} x k, k a multiple of {step}; not {m} x {ka} and {n} x {kb}",
                    self.m, self.n, self.m, self.n,
                ),
            );
            return;
        }
        let overwrites = with(|s| s.product_overwrites(self.id));
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
        with(|s| s.committed(self.id));
    }

    /// Lends every register as it is, products in flight or not (raw layer):
    /// what the hardware forbids before a wait, and the checker refuses.
    pub fn peek(&self, f: impl FnMut(Reg<f32>)) {
        with(|s| s.zero_sums(self.id));
        self.regs.iter().map(|&r| Reg::of(r)).for_each(f);
    }

    /// Waits for its products; younger ones of other accumulators stay in flight.
    #[track_caller]
    pub fn wait(&self) {
        let _at = here();
        let pending = with(|s| {
            s.zero_sums(self.id);
            s.younger_groups(self.id)
        });
        emit(WgmmaWait { pending });
        super::slot::release_held(self.id);
    }

    /// Multiplies every row by its own number. The products must be done: [`wait`](Self::wait).
    #[track_caller]
    pub fn rescale(&self, by: &Rows) {
        let _at = here();
        with(|s| s.zero_sums(self.id));
        if !by.fit(Team::Warpgroup, self.m) {
            return;
        }
        for (i, &r) in self.regs.iter().enumerate() {
            emit(Mul {
                ty: Type::F32,
                dst: r,
                a: r.into(),
                b: Operand::Reg(by.of_value(i, self.n).id()),
            });
        }
    }

    /// Waits for its products, releases the slots that waited for them, and gives the numbers.
    #[track_caller]
    pub fn finish(self) -> Frag {
        let _at = here();
        self.wait();
        let values = self.regs.iter().map(|&r| Reg::of(r)).collect();
        Frag::new(Team::Warpgroup, self.m, self.n, values)
    }
}
