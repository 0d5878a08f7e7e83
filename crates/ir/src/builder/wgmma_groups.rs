//! Tracks `wgmma` in program order: whether accumulators are initialized, and the order of
//! the committed groups.

use super::state::BuilderState;
use crate::loc::Loc;
use crate::ops::arith::Mov;
use crate::program::{Stmt, StmtKind};
use crate::types::Type;
use crate::value::{Operand, RegId};

/// The accumulators of a kernel, and the wgmma groups in program order.
#[derive(Default)]
pub(crate) struct WgmmaTracker {
    accs: Vec<AccState>,
    groups: Vec<WgmmaGroup>,
}

/// One accumulator.
struct AccState {
    regs: Vec<RegId>,
    /// The scope of the block that created it, and the statement index in that block.
    scope: u32,
    index: usize,
    loc: Loc,
    /// Whether its registers have been written.
    initialized: bool,
}

/// One committed wgmma group.
struct WgmmaGroup {
    acc: u32,
    scope: u32,
}

impl BuilderState {
    fn scope(&self) -> u32 {
        self.blocks.last().map_or(0, |b| b.scope)
    }

    /// Records a new accumulator, not yet initialized.
    pub(super) fn new_acc(&mut self, regs: Vec<RegId>, loc: Loc) -> u32 {
        let index = self.blocks.last().map_or(0, |b| b.stmts.len());
        let state = AccState {
            regs,
            scope: self.scope(),
            index,
            loc,
            initialized: false,
        };
        self.wgmma.accs.push(state);
        self.wgmma.accs.len() as u32 - 1
    }

    /// Returns whether the next `wgmma` may overwrite the accumulator.
    ///
    /// It may if it is the first and in the same block as the accumulator's creation; otherwise
    /// the accumulator is zeroed where it was created.
    pub(super) fn first_wgmma_overwrites(&mut self, acc: u32) -> bool {
        let acc_state = &self.wgmma.accs[acc as usize];
        if !acc_state.initialized && acc_state.scope == self.scope() {
            self.wgmma.accs[acc as usize].initialized = true;
            return true;
        }
        self.zero_acc(acc);
        false
    }

    /// Zeroes the accumulator where it was created, unless it is initialized.
    pub(super) fn zero_acc(&mut self, acc: u32) {
        let acc_state = &mut self.wgmma.accs[acc as usize];
        if std::mem::replace(&mut acc_state.initialized, true) {
            return;
        }
        let (scope, index, loc, n) = (
            acc_state.scope,
            acc_state.index,
            acc_state.loc,
            acc_state.regs.len(),
        );
        let zeros: Vec<Stmt> = acc_state
            .regs
            .iter()
            .map(|&dst| {
                let (ty, src) = (Type::F32, Operand::imm(0.0f32));
                let kind = StmtKind::Op(Mov { ty, dst, src }.into());
                Stmt { kind, loc }
            })
            .collect();
        // The block is closed: `check_use` rejects the use of its registers.
        let Some(block) = self.blocks.iter_mut().find(|b| b.scope == scope) else {
            return;
        };
        block.stmts.splice(index..index, zeros);
        for other in &mut self.wgmma.accs {
            if other.scope == scope && other.index > index {
                other.index += n;
            }
        }
    }

    /// Records a committed wgmma group of an accumulator.
    pub(super) fn record_wgmma_group(&mut self, acc: u32) {
        let scope = self.scope();
        self.wgmma.groups.push(WgmmaGroup { acc, scope });
    }

    /// Returns the number of groups committed so far, in program order.
    pub(super) fn groups(&self) -> usize {
        self.wgmma.groups.len()
    }

    /// Returns the number of groups that were certainly committed after the accumulator's last
    /// group and after all groups that read a slot released with it.
    ///
    /// Only groups of the same block count; a nested block in between makes the result 0.
    pub(super) fn groups_after_last_use(&self, acc: u32) -> u32 {
        let groups = &self.wgmma.groups;
        let later = match groups.iter().rposition(|g| g.acc == acc) {
            Some(last) if self.are_in_this_block(last) => (groups.len() - 1 - last) as u32,
            _ => 0,
        };
        let releases = self.rings.iter().flat_map(|r| &r.deferred_releases);
        let releases = releases.filter(|r| r.acc == acc);
        releases.fold(later, |n, r| n.min(self.groups_since(r.groups_before)))
    }

    /// Returns the number of groups committed after the first `before`, if all are in the current
    /// block, and 0 otherwise.
    pub(super) fn groups_since(&self, before: usize) -> u32 {
        match self.are_in_this_block(before) {
            true => (self.groups() - before) as u32,
            false => 0,
        }
    }

    /// Returns whether all groups from `first` are in the current block.
    fn are_in_this_block(&self, first: usize) -> bool {
        let scope = self.scope();
        let tail = self.wgmma.groups.get(first..).unwrap_or_default();
        tail.iter().all(|g| g.scope == scope)
    }
}

#[cfg(test)]
mod tests {
    use crate::builder::*;
    use crate::ops::Op;
    use crate::program::{Block, Kernel, StmtKind};
    use crate::value::{Operand, RegId};
    use half::bf16;

    /// The accumulator operations of a role in order: `a=` overwrites the first accumulator,
    /// `b+` adds to the second, `0a` zeroes it, `w1` waits until one group is in flight, `*` is
    /// an integer multiplication, `{ … }` is a block.
    struct Trace {
        /// The first register of each accumulator.
        accs: Vec<RegId>,
        text: Vec<String>,
    }

    impl Trace {
        fn name(&self, r: RegId) -> Option<char> {
            let i = self.accs.iter().position(|&a| a == r)?;
            Some((b'a' + i as u8) as char)
        }

        fn ops(&mut self, block: &Block, f: &mut impl FnMut(&mut Self, &Op)) {
            for s in &block.0 {
                let inner: Vec<&Block> = match &s.kind {
                    StmtKind::Op(op) => {
                        f(self, op);
                        continue;
                    }
                    StmtKind::If { then, other, .. } => vec![then, other],
                    StmtKind::While { head, body, .. } => vec![head, body],
                    StmtKind::For { body, .. } | StmtKind::Elect { body } => vec![body],
                };
                for block in inner {
                    self.text.push("{".to_owned());
                    self.ops(block, f);
                    self.text.push("}".to_owned());
                }
            }
        }

        fn record(&mut self, op: &Op) {
            let text = match op {
                Op::Mul(m) if m.ty == crate::types::Type::U32 => "*".to_owned(),
                Op::Mov(m) => match self.name(m.dst) {
                    Some(acc) => format!("0{acc}"),
                    None => return,
                },
                Op::Wgmma(m) => {
                    let acc = self.name(m.d[0]).expect("an accumulator of the role");
                    let adds = m.scale_d == Operand::imm(true);
                    format!("{acc}{}", if adds { '+' } else { '=' })
                }
                Op::WgmmaWait(w) => format!("w{}", w.pending),
                _ => return,
            };
            self.text.push(text);
        }
    }

    /// Returns the trace of the role `math`; empty blocks are left out.
    fn trace(body: impl FnOnce(Builder)) -> String {
        let kernel =
            Kernel::build("k", &crate::Target::SM_90A, body).unwrap_or_else(|e| panic!("{e}"));
        let role = kernel.roles.iter().find(|r| r.name == "math");
        let role = &role.expect("a role named math").body;
        let mut trace = Trace {
            accs: Vec::new(),
            text: Vec::new(),
        };
        trace.ops(role, &mut |t, op| {
            if let Op::Wgmma(m) = op {
                t.accs.push(m.d[0]);
            }
        });
        trace.accs.sort();
        trace.accs.dedup();
        trace.text.clear();
        trace.ops(role, &mut Trace::record);
        let mut text = trace.text.join(" ");
        while text.contains("{ }") {
            text = text.replace("{ }", "").replace("  ", " ");
        }
        text.trim().to_owned()
    }

    /// Returns the trace of `body`, which receives a `wgmma` into accumulators of 64 × 8.
    fn math(body: impl FnOnce(&dyn Fn(&Acc), Reg<u32>)) -> String {
        trace(|k| {
            let n = k.param::<u32>("n");
            let a = k.tile::<bf16>("a", 64, 16).declare();
            let b = k.tile::<bf16>("b", 8, 16).declare();
            let mma = |acc: &Acc| acc.mma(&a.whole(), &b.whole());
            k.role("math").warpgroups(1).body(|| body(&mma, n));
        })
    }

    fn acc() -> Acc {
        Acc::new(64, 8)
    }

    #[test]
    fn first_wgmma_in_the_block_overwrites() {
        let text = math(|mma, _| {
            let a = acc();
            mma(&a);
            mma(&a);
            a.into_frag();
        });
        assert_eq!(text, "a= a+ w0");
        // An accumulator that a loop creates is overwritten in every iteration.
        let text = math(|mma, n| {
            steps(n).each(|_| {
                let a = acc();
                mma(&a);
                a.into_frag();
            });
        });
        assert_eq!(text, "{ a= w0 }");
    }

    #[test]
    fn accumulator_first_used_in_a_nested_block_is_zeroed_at_creation() {
        let text = math(|mma, n| {
            let a = acc();
            let _ = n * 3;
            steps(n).each(|_| mma(&a));
            mma(&a);
            a.into_frag();
        });
        assert_eq!(text, "0a * { a+ } a+ w0");
        let text = math(|mma, n| {
            steps(n).each(|i| {
                let a = acc();
                if_(i.lt(3u32), || mma(&a));
                a.into_frag();
            });
        });
        assert_eq!(text, "{ 0a { a+ } w0 }");
    }

    /// Zeroing one accumulator does not shift the creation point of another.
    #[test]
    fn every_accumulator_is_zeroed_at_its_own_creation() {
        for is_reversed in [false, true] {
            let text = math(|mma, n| {
                let a = acc();
                let _ = n * 2;
                let (b, c) = (acc(), acc());
                let _ = n * 3;
                let order = if is_reversed {
                    [&c, &b, &a]
                } else {
                    [&a, &b, &c]
                };
                for x in order {
                    if_(n.lt(7u32), || mma(x));
                }
            });
            let blocks = if is_reversed {
                "{ c+ } { b+ } { a+ }"
            } else {
                "{ a+ } { b+ } { c+ }"
            };
            // Two accumulators that are created together may be zeroed in either order.
            let text = text.replace("0c 0b", "0b 0c");
            assert_eq!(text, format!("0a * 0b 0c * {blocks}"));
        }
    }

    #[test]
    fn wait_leaves_later_groups_in_flight() {
        let text = math(|mma, _| {
            let (a, b) = (acc(), acc());
            mma(&a);
            mma(&b);
            mma(&b);
            a.wait();
            b.wait();
        });
        assert_eq!(text, "a= b= b+ w2 w0");
    }

    #[test]
    fn wait_across_blocks_waits_for_all_groups() {
        // A later group that may not have run.
        let text = math(|mma, n| {
            let (a, b) = (acc(), acc());
            mma(&a);
            if_(n.lt(3u32), || mma(&b));
            a.wait();
            mma(&b);
        });
        assert_eq!(text, "0b a= { b+ } w0 b+");
        // A wait in a nested block.
        let text = math(|mma, n| {
            let (a, b) = (acc(), acc());
            mma(&a);
            mma(&b);
            if_(n.lt(3u32), || a.wait());
        });
        assert_eq!(text, "a= b= { w0 }");
        // Groups of the previous iteration.
        let text = math(|mma, n| {
            let a = acc();
            let _ = n * 2;
            let b = acc();
            steps(n).each(|_| {
                a.wait();
                mma(&a);
                mma(&b);
            });
        });
        assert_eq!(text, "0a * 0b { w0 a+ b+ }");
    }

    /// Returns the trace of a role that reads a ring of A and B.
    fn math_with_ring(body: impl FnOnce(Ring<(Tile<bf16>, Tile<bf16>)>, Reg<u32>)) -> String {
        trace(|k| {
            let n = k.param::<u32>("n");
            let ring = k.ring("ab", 2, |s| (s.tile(64, 16), s.tile(8, 16)));
            k.role("load").body(|| elect(|| ring.acquire().commit()));
            k.role("math").warpgroups(1).body(|| body(ring, n));
        })
    }

    #[test]
    fn release_after_leaves_the_groups_of_its_k_tile_in_flight() {
        for accs in [1, 2, 3] {
            let text = math_with_ring(|ring, n| {
                let all: Vec<Acc> = (0..accs).map(|_| acc()).collect();
                steps(n).each(|_| {
                    let slot = ring.wait();
                    all.iter().for_each(|a| a.mma(&slot.0, &slot.1));
                    slot.release_after(&all[0]);
                });
            });
            assert!(text.contains(&format!("+ w{accs} }}")), "{text}");
        }
        // A group that may not have run forces a wait for all.
        let text = math_with_ring(|ring, n| {
            let (a, b) = (acc(), acc());
            let slot = ring.wait();
            a.mma(&slot.0, &slot.1);
            if_(n.lt(2u32), || b.mma(&slot.0, &slot.1));
            slot.release_after(&a);
        });
        assert!(text.ends_with("a= { b+ } w0"), "{text}");
    }

    /// The wgmmas of another accumulator may read the slot as well.
    #[test]
    fn deferred_slot_is_released_after_all_its_readers() {
        let text = math_with_ring(|ring, _| {
            let (a, b, c) = (acc(), acc(), acc());
            let slot = ring.wait();
            a.mma(&slot.0, &slot.1);
            b.mma(&slot.0, &slot.1);
            slot.release_after(&a);
            let next = ring.wait();
            c.mma(&next.0, &next.1);
            a.wait();
            c.wait();
            next.release();
        });
        assert_eq!(text, "a= b= w2 c= w1 w0");
    }
}
