//! What the builder knows of warpgroup products: which sums are zero so far,
//! and which groups were issued after which.

use super::state::State;
use crate::loc::Loc;
use crate::ops::arith::Mov;
use crate::program::{Stmt, StmtKind};
use crate::types::Type;
use crate::value::{Operand, RegId};

/// The accumulators of a kernel, and the groups of products in program order.
#[derive(Default)]
pub(crate) struct Flight {
    sums: Vec<Sums>,
    groups: Vec<Group>,
}

/// One accumulator.
struct Sums {
    regs: Vec<RegId>,
    /// Where it was made: a block, and the place in it.
    scope: u32,
    index: usize,
    loc: Loc,
    /// Its registers hold numbers.
    begun: bool,
}

/// One committed group of products.
struct Group {
    acc: u32,
    scope: u32,
}

impl State {
    fn scope(&self) -> u32 {
        self.blocks.last().map_or(0, |b| b.scope)
    }

    /// A new accumulator: nothing is written yet.
    pub(super) fn new_sums(&mut self, regs: Vec<RegId>, loc: Loc) -> u32 {
        let index = self.blocks.last().map_or(0, |b| b.stmts.len());
        let sums = Sums {
            regs,
            scope: self.scope(),
            index,
            loc,
            begun: false,
        };
        self.flight.sums.push(sums);
        self.flight.sums.len() as u32 - 1
    }

    /// Before a product: may it overwrite? The first product may if nothing
    /// can come between it and the accumulator's birth; otherwise the sums
    /// are set to zero there.
    pub(super) fn product_overwrites(&mut self, acc: u32) -> bool {
        let sums = &self.flight.sums[acc as usize];
        if !sums.begun && sums.scope == self.scope() {
            self.flight.sums[acc as usize].begun = true;
            return true;
        }
        self.zero_sums(acc);
        false
    }

    /// Has the sums start at zero, unless a product wrote them first.
    pub(super) fn zero_sums(&mut self, acc: u32) {
        let sums = &mut self.flight.sums[acc as usize];
        if std::mem::replace(&mut sums.begun, true) {
            return;
        }
        let (scope, index, loc, n) = (sums.scope, sums.index, sums.loc, sums.regs.len());
        let zeros: Vec<Stmt> = sums
            .regs
            .iter()
            .map(|&dst| {
                let (ty, src) = (Type::F32, Operand::imm(0.0f32));
                let kind = StmtKind::Op(Mov { ty, dst, src }.into());
                Stmt { kind, loc }
            })
            .collect();
        // A block that is closed has taken its registers with it: their use is refused elsewhere.
        let Some(block) = self.blocks.iter_mut().find(|b| b.scope == scope) else {
            return;
        };
        block.stmts.splice(index..index, zeros);
        for other in &mut self.flight.sums {
            if other.scope == scope && other.index > index {
                other.index += n;
            }
        }
    }

    /// A group of an accumulator's products was committed.
    pub(super) fn committed(&mut self, acc: u32) {
        let scope = self.scope();
        self.flight.groups.push(Group { acc, scope });
    }

    /// Groups committed so far, in program order.
    pub(super) fn groups(&self) -> usize {
        self.flight.groups.len()
    }

    /// How many groups are surely younger than the accumulator's last, and
    /// than those that read a slot held for it: those written after them in
    /// the same block. Where another block comes between, none.
    pub(super) fn younger_groups(&self, acc: u32) -> u32 {
        let groups = &self.flight.groups;
        let younger = match groups.iter().rposition(|g| g.acc == acc) {
            Some(last) if self.is_straight(last) => (groups.len() - 1 - last) as u32,
            _ => 0,
        };
        let held = self.rings.iter().flat_map(|r| &r.held);
        let held = held.filter(|h| h.acc == acc);
        held.fold(younger, |n, h| n.min(self.groups_since(h.groups)))
    }

    /// How many groups were committed since there were `then`, if all in this very block.
    pub(super) fn groups_since(&self, then: usize) -> u32 {
        match self.is_straight(then) {
            true => (self.groups() - then) as u32,
            false => 0,
        }
    }

    /// Were all groups from `first` on written in the block being written?
    fn is_straight(&self, first: usize) -> bool {
        let scope = self.scope();
        let tail = self.flight.groups.get(first..).unwrap_or_default();
        tail.iter().all(|g| g.scope == scope)
    }
}

#[cfg(test)]
mod tests {
    use crate::build::*;
    use crate::ops::Op;
    use crate::program::{Block, Kernel, StmtKind};
    use crate::value::{Operand, RegId};
    use half::bf16;

    /// What a role does with accumulators, in order: `a=` overwrites the first
    /// one, `b+` adds to the second, `0a` sets it to zero, `w1` waits until one
    /// group is in flight, `*` is a product of integers, `{` a block `}`.
    struct Trace {
        /// The first register of each accumulator.
        accs: Vec<RegId>,
        said: Vec<String>,
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
                    self.said.push("{".to_owned());
                    self.ops(block, f);
                    self.said.push("}".to_owned());
                }
            }
        }

        fn say(&mut self, op: &Op) {
            let text = match op {
                Op::Mul(m) if m.ty == crate::types::Type::U32 => "*".to_owned(),
                Op::Mov(m) => match self.name(m.dst) {
                    Some(acc) => format!("0{acc}"),
                    None => return,
                },
                Op::Wgmma(m) => {
                    let acc = self.name(m.d[0]).expect("all were collected");
                    let adds = m.scale_d == Operand::imm(true);
                    format!("{acc}{}", if adds { '+' } else { '=' })
                }
                Op::WgmmaWait(w) => format!("w{}", w.pending),
                _ => return,
            };
            self.said.push(text);
        }
    }

    /// The trace of a role of one warpgroup; blocks without a word are left out.
    fn trace(body: impl FnOnce(Builder)) -> String {
        let kernel =
            Kernel::build("k", &crate::Target::SM_90A, body).unwrap_or_else(|e| panic!("{e}"));
        let role = kernel.roles.iter().find(|r| r.name == "math");
        let role = &role.expect("a role of products").body;
        let mut trace = Trace {
            accs: Vec::new(),
            said: Vec::new(),
        };
        trace.ops(role, &mut |t, op| {
            if let Op::Wgmma(m) = op {
                t.accs.push(m.d[0]);
            }
        });
        trace.accs.sort();
        trace.accs.dedup();
        trace.said.clear();
        trace.ops(role, &mut Trace::say);
        let mut text = trace.said.join(" ");
        while text.contains("{ }") {
            text = text.replace("{ }", "").replace("  ", " ");
        }
        text.trim().to_owned()
    }

    /// The trace of `body`, which is given operands of products into 64 × 8.
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
    fn the_first_product_of_a_block_overwrites() {
        let text = math(|mma, _| {
            let a = acc();
            mma(&a);
            mma(&a);
            a.finish();
        });
        assert_eq!(text, "a= a+ w0");
        // In every round of a loop that it is born in.
        let text = math(|mma, n| {
            steps(n).each(|_| {
                let a = acc();
                mma(&a);
                a.finish();
            });
        });
        assert_eq!(text, "{ a= w0 }");
    }

    #[test]
    fn sums_that_begin_further_in_are_zero_at_birth() {
        let text = math(|mma, n| {
            let a = acc();
            let _ = n * 3;
            steps(n).each(|_| mma(&a));
            mma(&a);
            a.finish();
        });
        assert_eq!(text, "0a * { a+ } a+ w0");
        let text = math(|mma, n| {
            steps(n).each(|i| {
                let a = acc();
                if_(i.lt(3u32), || mma(&a));
                a.finish();
            });
        });
        assert_eq!(text, "{ 0a { a+ } w0 }");
    }

    /// Zeros of one do not move the birth of another, whichever is needed first.
    #[test]
    fn every_accumulator_is_zero_at_its_own_birth() {
        for flipped in [false, true] {
            let text = math(|mma, n| {
                let a = acc();
                let _ = n * 2;
                let (b, c) = (acc(), acc());
                let _ = n * 3;
                let order = if flipped { [&c, &b, &a] } else { [&a, &b, &c] };
                for x in order {
                    if_(n.lt(7u32), || mma(x));
                }
            });
            let blocks = if flipped {
                "{ c+ } { b+ } { a+ }"
            } else {
                "{ a+ } { b+ } { c+ }"
            };
            // Two that are born together may be set in either order.
            let text = text.replace("0c 0b", "0b 0c");
            assert_eq!(text, format!("0a * 0b 0c * {blocks}"));
        }
    }

    #[test]
    fn a_wait_leaves_what_is_surely_younger() {
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
    fn a_wait_across_blocks_leaves_nothing() {
        // Younger products that may not have run,
        let text = math(|mma, n| {
            let (a, b) = (acc(), acc());
            mma(&a);
            if_(n.lt(3u32), || mma(&b));
            a.wait();
            mma(&b);
        });
        assert_eq!(text, "0b a= { b+ } w0 b+");
        // a wait further in,
        let text = math(|mma, n| {
            let (a, b) = (acc(), acc());
            mma(&a);
            mma(&b);
            if_(n.lt(3u32), || a.wait());
        });
        assert_eq!(text, "a= b= { w0 }");
        // and products of the round before.
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

    /// The trace of a role that reads a ring of A and B.
    fn line(body: impl FnOnce(Ring<(Tile<bf16>, Tile<bf16>)>, Reg<u32>)) -> String {
        trace(|k| {
            let n = k.param::<u32>("n");
            let ring = k.ring("ab", 2, |s| (s.tile(64, 16), s.tile(8, 16)));
            k.role("load").body(|| elect(|| ring.acquire().commit()));
            k.role("math").warpgroups(1).body(|| body(ring, n));
        })
    }

    #[test]
    fn a_late_release_leaves_the_groups_of_its_step() {
        for accs in [1, 2, 3] {
            let text = line(|ring, n| {
                let all: Vec<Acc> = (0..accs).map(|_| acc()).collect();
                steps(n).each(|_| {
                    let slot = ring.wait();
                    all.iter().for_each(|a| a.mma(&slot.0, &slot.1));
                    slot.release_after(&all[0]);
                });
            });
            assert!(text.contains(&format!("+ w{accs} }}")), "{text}");
        }
        // Where one may not have run, nothing is left.
        let text = line(|ring, n| {
            let (a, b) = (acc(), acc());
            let slot = ring.wait();
            a.mma(&slot.0, &slot.1);
            if_(n.lt(2u32), || b.mma(&slot.0, &slot.1));
            slot.release_after(&a);
        });
        assert!(text.ends_with("a= { b+ } w0"), "{text}");
    }

    /// The products of another accumulator may read the slot too.
    #[test]
    fn a_slot_that_is_held_is_released_after_all_that_read_it() {
        let text = line(|ring, _| {
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
