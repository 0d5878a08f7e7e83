use warpline_ir::ops::arith::Mov;
use warpline_ir::ops::wgmma::{MatrixA, MmaType, Wgmma, WgmmaCommit, WgmmaFence, WgmmaWait};
use warpline_ir::*;
use warpline_testkit::raw::{RawKernel, swizzled, view};

/// A role of one warpgroup with operands of products m64n8k16.
struct Math {
    kit: RawKernel,
    a: TileId,
    b: TileId,
    rounds: RegId,
    flag: RegId,
    line: u32,
}

impl Math {
    fn new() -> Self {
        let mut kit = RawKernel::new(&[("math", 4)]);
        Self {
            a: kit.tile(1, "a", swizzled(64), 1),
            b: kit.tile(1, "b", swizzled(64), 1),
            rounds: kit.value(Type::U32),
            flag: kit.value(Type::Pred),
            kit,
            line: 9,
        }
    }

    /// Accumulators of `n` columns.
    fn sums(&mut self, n: u32) -> Vec<RegId> {
        (0..n / 2).map(|_| self.kit.value(Type::F32)).collect()
    }

    /// Registers of an A operand.
    fn left(&mut self) -> Vec<RegId> {
        (0..4).map(|_| self.kit.value(Type::Bf16x2)).collect()
    }

    /// An op at the next line, the first of which is 10.
    fn at(&mut self, op: impl Into<Op>) -> Stmt {
        self.line += 1;
        self.kit.op(self.line, op)
    }

    fn add(&mut self, op: impl Into<Op>) {
        let stmt = self.at(op);
        self.kit.run(0, stmt);
    }

    fn product(&self, d: &[RegId]) -> Wgmma {
        let n = 2 * d.len() as u32;
        Wgmma {
            a_ty: MmaType::Bf16,
            b_ty: MmaType::Bf16,
            n,
            d: d.to_vec(),
            a: MatrixA::Shared(view(self.a, 64, 16), Major::K),
            b: view(self.b, n, 16),
            b_major: Major::K,
            neg_a: false,
            neg_b: false,
            scale_d: Operand::Imm(1),
        }
    }

    /// As [`product`](Self::product), with A in registers.
    fn product_of(&self, left: &[RegId], d: &[RegId]) -> Wgmma {
        Wgmma {
            a: MatrixA::Regs(left.to_vec()),
            ..self.product(d)
        }
    }

    /// Fence, product and commit, on three lines.
    fn group(&mut self, d: &[RegId]) {
        self.add(WgmmaFence);
        self.add(self.product(d));
        self.add(WgmmaCommit);
    }

    fn end(mut self) -> RawKernel {
        self.add(WgmmaWait { pending: 0 });
        self.kit
    }

    /// A loop over the statements that `body` gives, at the next line.
    fn each(&mut self, to: Operand, body: impl FnOnce(&mut Self) -> Vec<Stmt>) {
        self.line += 1;
        let line = self.line;
        let body = Block(body(self));
        let var = self.kit.reg(Type::U32);
        let kind = StmtKind::For {
            var,
            from: Operand::Imm(0),
            to,
            step: Operand::Imm(1),
            body,
            unroll: None,
        };
        let stmt = self.kit.stmt(line, kind);
        self.kit.run(0, stmt);
    }
}

/// Writes a register.
fn write(dst: RegId, ty: Type) -> Mov {
    Mov {
        ty,
        dst,
        src: Operand::Imm(0),
    }
}

/// The one diagnostic's other line.
#[track_caller]
fn other(kit: RawKernel, code: &str, line: u32) -> Option<u32> {
    let all = kit.diagnostics();
    let seen: Vec<_> = all
        .iter()
        .map(|r| (r.code(), r.at.map(|f| f.line)))
        .collect();
    assert_eq!(seen, [(code, Some(line))], "{all:#?}");
    all[0].labels.first()?.at.map(|f| f.line)
}

#[test]
fn sums_are_touched_after_the_wait_that_covers_them() {
    let kernel = |waited: bool| {
        let mut m = Math::new();
        let d = m.sums(8);
        m.group(&d); // 10, 11, 12
        if waited {
            m.add(WgmmaWait { pending: 0 });
        }
        m.add(write(d[2], Type::F32));
        m.end()
    };
    kernel(true).passes();
    assert_eq!(other(kernel(false), "R7.registers", 13), Some(11));
}

#[test]
fn sums_are_read_after_the_wait_that_covers_them() {
    let mut m = Math::new();
    let (d, to) = (m.sums(8), m.kit.reg(Type::F32));
    m.group(&d);
    m.add(Mov {
        ty: Type::F32,
        dst: to,
        src: d[0].into(),
    });
    assert_eq!(other(m.end(), "R7.registers", 13), Some(11));
}

#[test]
fn a_product_that_is_not_committed_is_covered_by_no_wait() {
    let mut m = Math::new();
    let d = m.sums(8);
    m.add(WgmmaFence);
    m.add(m.product(&d));
    m.add(WgmmaWait { pending: 0 });
    m.add(write(d[0], Type::F32));
    assert_eq!(other(m.kit, "R7.registers", 13), Some(11));
}

#[test]
fn a_wait_leaves_the_youngest_groups_open() {
    let kernel = |pending: u32, touched: usize| {
        let mut m = Math::new();
        let all = [m.sums(8), m.sums(8), m.sums(8)];
        all.iter().for_each(|d| m.group(d)); // products at 11, 14, 17
        m.add(WgmmaWait { pending });
        m.add(write(all[touched][0], Type::F32));
        m.end()
    };
    for pending in 0..=3 {
        for touched in 0..3 {
            if touched < 3usize.saturating_sub(pending as usize) {
                kernel(pending, touched).passes();
            } else {
                let at = other(kernel(pending, touched), "R7.registers", 20);
                assert_eq!(at, Some(11 + 3 * touched as u32));
            }
        }
    }
}

#[test]
fn registers_of_a_are_untouched_in_flight() {
    let kernel = |pending: u32| {
        let mut m = Math::new();
        let (d, left) = (m.sums(8), m.left());
        m.add(WgmmaFence);
        m.add(m.product_of(&left, &d));
        m.add(WgmmaCommit);
        m.add(WgmmaWait { pending });
        m.add(write(left[3], Type::Bf16x2));
        m.end()
    };
    kernel(0).passes();
    assert_eq!(other(kernel(1), "R7.registers", 14), Some(11));
}

#[test]
fn products_of_one_shape_add_up_without_a_wait() {
    let mut m = Math::new();
    let (d, left) = (m.sums(8), m.left());
    m.add(WgmmaFence);
    m.add(m.product_of(&left, &d));
    m.add(m.product(&d));
    m.add(WgmmaCommit);
    // Nothing was touched since the fence, and A is only read.
    m.add(m.product_of(&left, &d));
    m.add(WgmmaCommit);
    m.end().passes();
}

#[test]
fn products_of_another_shape_wait_for_their_sums() {
    let kernel = |change: fn(&mut Wgmma, &[RegId])| {
        let mut m = Math::new();
        let (wide, left) = (m.sums(16), m.left());
        m.add(WgmmaFence);
        m.add(m.product(&wide));
        let mut second = m.product_of(&left, &wide);
        change(&mut second, &wide);
        m.add(second);
        m.add(WgmmaCommit);
        m.end()
    };
    kernel(|_, _| {}).passes();
    let narrow = |p: &mut Wgmma, wide: &[RegId]| {
        (p.d, p.n, p.b.rows) = (wide[..4].to_vec(), 8, 8);
    };
    assert_eq!(other(kernel(narrow), "R7.registers", 12), Some(11));
    let swapped = |p: &mut Wgmma, _: &[RegId]| p.d.swap(0, 1);
    assert_eq!(other(kernel(swapped), "R7.registers", 12), Some(11));
}

#[test]
fn a_branch_that_may_skip_the_wait_leaves_its_products_open() {
    let kernel = |both: bool| {
        let mut m = Math::new();
        let d = m.sums(8);
        m.group(&d);
        let then = Block(vec![m.at(WgmmaWait { pending: 0 })]); // 13
        let wait = m.at(WgmmaWait { pending: 0 });
        let other = Block(if both { vec![wait] } else { vec![] });
        let cond = m.flag;
        let stmt = m.kit.stmt(13, StmtKind::If { cond, then, other });
        m.kit.run(0, stmt);
        m.add(write(d[0], Type::F32)); // 15
        m.end()
    };
    kernel(true).passes();
    assert_eq!(other(kernel(false), "R7.registers", 15), Some(11));
}

#[test]
fn a_round_meets_the_products_of_the_round_before() {
    let kernel = |pending: u32| {
        let mut m = Math::new();
        let (d, left) = (m.sums(8), m.left());
        m.add(WgmmaFence); // 10
        let to = m.rounds.into();
        m.each(to, |m| {
            // Line 11 is the loop.
            let mut body: Vec<_> = (0..4).map(|i| m.at(write(left[i], Type::Bf16x2))).collect();
            body.push(m.at(WgmmaFence));
            body.push(m.at(m.product_of(&left, &d))); // 17
            body.push(m.at(WgmmaCommit));
            body.push(m.at(WgmmaWait { pending }));
            body
        });
        m.end()
    };
    kernel(0).passes();
    let all = kernel(1).diagnostics();
    let lines: Vec<_> = all.iter().map(|r| r.at.map_or(0, |f| f.line)).collect();
    assert_eq!(lines, [12, 13, 14, 15], "{all:#?}");
    for r in &all {
        assert_eq!(r.code(), "R7.registers");
        assert_eq!(r.labels[0].at.map(|f| f.line), Some(17));
    }
}

#[test]
fn groups_that_add_up_over_rounds_stay_apart() {
    // Two accumulators in turn, one group in flight: what the wait covers is one round old.
    let kernel = |pending: u32| {
        let mut m = Math::new();
        let (x, y) = (m.sums(8), m.sums(8));
        let to = m.rounds.into();
        m.each(to, |m| {
            let mut body = Vec::new();
            for (d, done) in [(&x, &y), (&y, &x)] {
                body.push(m.at(WgmmaFence));
                body.push(m.at(m.product(d)));
                body.push(m.at(WgmmaCommit));
                body.push(m.at(WgmmaWait { pending }));
                body.push(m.at(write(done[0], Type::F32)));
            }
            body
        });
        m.end()
    };
    kernel(1).passes();
    let lines: Vec<_> = kernel(2)
        .diagnostics()
        .iter()
        .map(|r| r.at.map_or(0, |f| f.line))
        .collect();
    assert_eq!(lines, [20, 15]);
}

#[test]
fn a_loop_that_surely_runs_is_left_with_what_its_rounds_leave() {
    let kernel = |to: fn(&Math) -> Operand| {
        let mut m = Math::new();
        let d = m.sums(8);
        m.group(&d);
        let to = to(&m);
        m.each(to, |m| vec![m.at(WgmmaWait { pending: 0 })]);
        m.add(write(d[0], Type::F32)); // 15
        m.end()
    };
    kernel(|_| Operand::Imm(2)).passes();
    assert_eq!(
        other(kernel(|m| m.rounds.into()), "R7.registers", 15),
        Some(11)
    );
}

#[test]
fn a_fence_comes_before_the_first_product() {
    let mut m = Math::new();
    let d = m.sums(8);
    m.add(m.product(&d));
    m.add(WgmmaCommit);
    assert_eq!(other(m.end(), "R7.fence", 10), None);
}

#[test]
fn a_fence_comes_between_an_access_and_the_product() {
    let kernel = |fenced: bool, access: fn(&mut Math, RegId)| {
        let mut m = Math::new();
        let d = m.sums(8);
        m.group(&d);
        m.add(WgmmaWait { pending: 0 });
        access(&mut m, d[1]); // 14
        if fenced {
            m.add(WgmmaFence);
        }
        m.add(m.product(&d));
        m.add(WgmmaCommit);
        m.end()
    };
    let writes = |m: &mut Math, r: RegId| m.add(write(r, Type::F32));
    let reads = |m: &mut Math, r: RegId| {
        let dst = m.kit.reg(Type::F32);
        m.add(Mov {
            ty: Type::F32,
            dst,
            src: r.into(),
        });
    };
    for access in [writes as fn(&mut Math, RegId), reads] {
        kernel(true, access).passes();
        assert_eq!(other(kernel(false, access), "R7.fence", 15), Some(14));
    }
}

#[test]
fn products_own_no_more_registers_than_a_thread_has() {
    let kernel = |waited: bool| {
        let mut m = Math::new();
        let all = [m.sums(256), m.sums(256)];
        m.b = m.kit.tile(1, "wide", swizzled(256), 1);
        for d in &all {
            m.group(d); // products at 11 and 14, or 15
            if waited {
                m.add(WgmmaWait { pending: 0 });
            }
        }
        m.end()
    };
    kernel(true).passes();
    let text = kernel(false).refuted("R14.budget", 14);
    assert!(
        text.contains("own 256 registers of each thread here, and a thread has 248"),
        "{text}"
    );
}
