use warpline_ir::ops::arith::Mov;
use warpline_ir::ops::wgmma::{MatrixA, MmaType, Wgmma, WgmmaCommit, WgmmaFence, WgmmaWait};
use warpline_ir::*;
use warpline_testkit::raw::{RawKernel, swizzled, view};

/// A role of one warpgroup with operands for wgmma m64n8k16.
struct MathRole {
    kit: RawKernel,
    a: TileId,
    b: TileId,
    iterations: RegId,
    flag: RegId,
    line: u32,
}

impl MathRole {
    fn new() -> Self {
        let mut kit = RawKernel::new(&[("math", 4)]);
        Self {
            a: kit.tile(1, "a", swizzled(64), 1),
            b: kit.tile(1, "b", swizzled(64), 1),
            iterations: kit.value(Type::U32),
            flag: kit.value(Type::Pred),
            kit,
            line: 9,
        }
    }

    /// Creates accumulators of `n` columns.
    fn accumulators(&mut self, n: u32) -> Vec<RegId> {
        (0..n / 2).map(|_| self.kit.value(Type::F32)).collect()
    }

    /// Creates the registers of an A operand.
    fn a_registers(&mut self) -> Vec<RegId> {
        (0..4).map(|_| self.kit.value(Type::Bf16x2)).collect()
    }

    /// Creates an op at the next line; the first line is 10.
    fn at(&mut self, op: impl Into<Op>) -> Stmt {
        self.line += 1;
        self.kit.op(self.line, op)
    }

    fn add(&mut self, op: impl Into<Op>) {
        let stmt = self.at(op);
        self.kit.run(0, stmt);
    }

    fn wgmma(&self, d: &[RegId]) -> Wgmma {
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

    /// Returns a wgmma with A in registers.
    fn wgmma_of_registers(&self, a_registers: &[RegId], d: &[RegId]) -> Wgmma {
        Wgmma {
            a: MatrixA::Regs(a_registers.to_vec()),
            ..self.wgmma(d)
        }
    }

    /// Adds a fence, a wgmma and a commit, on three lines.
    fn group(&mut self, d: &[RegId]) {
        self.add(WgmmaFence);
        self.add(self.wgmma(d));
        self.add(WgmmaCommit);
    }

    fn end(mut self) -> RawKernel {
        self.add(WgmmaWait { pending: 0 });
        self.kit
    }

    /// Adds a loop over the statements of `body`, at the next line.
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

/// Returns an op that writes a register.
fn write(dst: RegId, ty: Type) -> Mov {
    Mov {
        ty,
        dst,
        src: Operand::Imm(0),
    }
}

/// Returns the line of the first label of the only diagnostic.
#[track_caller]
fn second_line(kit: RawKernel, code: &str, line: u32) -> Option<u32> {
    let all = kit.diagnostics();
    let seen: Vec<_> = all
        .iter()
        .map(|r| (r.code(), r.at.map(|f| f.line)))
        .collect();
    assert_eq!(seen, [(code, Some(line))], "{all:#?}");
    all[0].labels.first()?.at.map(|f| f.line)
}

#[test]
fn writing_accumulators_before_the_wait_is_refuted() {
    let kernel = |waited: bool| {
        let mut m = MathRole::new();
        let d = m.accumulators(8);
        m.group(&d); // 10, 11, 12
        if waited {
            m.add(WgmmaWait { pending: 0 });
        }
        m.add(write(d[2], Type::F32));
        m.end()
    };
    kernel(true).passes();
    assert_eq!(second_line(kernel(false), "R7.registers", 13), Some(11));
}

#[test]
fn reading_accumulators_before_the_wait_is_refuted() {
    let mut m = MathRole::new();
    let (d, to) = (m.accumulators(8), m.kit.reg(Type::F32));
    m.group(&d);
    m.add(Mov {
        ty: Type::F32,
        dst: to,
        src: d[0].into(),
    });
    assert_eq!(second_line(m.end(), "R7.registers", 13), Some(11));
}

#[test]
fn a_wait_does_not_cover_an_uncommitted_wgmma() {
    let mut m = MathRole::new();
    let d = m.accumulators(8);
    m.add(WgmmaFence);
    m.add(m.wgmma(&d));
    m.add(WgmmaWait { pending: 0 });
    m.add(write(d[0], Type::F32));
    assert_eq!(second_line(m.kit, "R7.registers", 13), Some(11));
}

#[test]
fn a_wait_leaves_the_youngest_groups_in_flight() {
    let kernel = |pending: u32, touched: usize| {
        let mut m = MathRole::new();
        let all = [m.accumulators(8), m.accumulators(8), m.accumulators(8)];
        all.iter().for_each(|d| m.group(d)); // wgmmas at 11, 14, 17
        m.add(WgmmaWait { pending });
        m.add(write(all[touched][0], Type::F32));
        m.end()
    };
    for pending in 0..=3 {
        for touched in 0..3 {
            if touched < 3usize.saturating_sub(pending as usize) {
                kernel(pending, touched).passes();
            } else {
                let at = second_line(kernel(pending, touched), "R7.registers", 20);
                assert_eq!(at, Some(11 + 3 * touched as u32));
            }
        }
    }
}

#[test]
fn writing_a_registers_in_flight_is_refuted() {
    let kernel = |pending: u32| {
        let mut m = MathRole::new();
        let (d, a_registers) = (m.accumulators(8), m.a_registers());
        m.add(WgmmaFence);
        m.add(m.wgmma_of_registers(&a_registers, &d));
        m.add(WgmmaCommit);
        m.add(WgmmaWait { pending });
        m.add(write(a_registers[3], Type::Bf16x2));
        m.end()
    };
    kernel(0).passes();
    assert_eq!(second_line(kernel(1), "R7.registers", 14), Some(11));
}

#[test]
fn wgmmas_of_one_shape_may_accumulate_without_a_wait() {
    let mut m = MathRole::new();
    let (d, a_registers) = (m.accumulators(8), m.a_registers());
    m.add(WgmmaFence);
    m.add(m.wgmma_of_registers(&a_registers, &d));
    m.add(m.wgmma(&d));
    m.add(WgmmaCommit);
    // No register was accessed since the fence, and wgmma only reads A.
    m.add(m.wgmma_of_registers(&a_registers, &d));
    m.add(WgmmaCommit);
    m.end().passes();
}

#[test]
fn a_wgmma_of_another_shape_needs_a_wait_for_the_accumulators() {
    let kernel = |change: fn(&mut Wgmma, &[RegId])| {
        let mut m = MathRole::new();
        let (wide, a_registers) = (m.accumulators(16), m.a_registers());
        m.add(WgmmaFence);
        m.add(m.wgmma(&wide));
        let mut second = m.wgmma_of_registers(&a_registers, &wide);
        change(&mut second, &wide);
        m.add(second);
        m.add(WgmmaCommit);
        m.end()
    };
    kernel(|_, _| {}).passes();
    let narrow = |p: &mut Wgmma, wide: &[RegId]| {
        (p.d, p.n, p.b.rows) = (wide[..4].to_vec(), 8, 8);
    };
    assert_eq!(second_line(kernel(narrow), "R7.registers", 12), Some(11));
    let swapped = |p: &mut Wgmma, _: &[RegId]| p.d.swap(0, 1);
    assert_eq!(second_line(kernel(swapped), "R7.registers", 12), Some(11));
}

#[test]
fn a_conditional_wait_leaves_wgmmas_in_flight() {
    let kernel = |both: bool| {
        let mut m = MathRole::new();
        let d = m.accumulators(8);
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
    assert_eq!(second_line(kernel(false), "R7.registers", 15), Some(11));
}

#[test]
fn wgmmas_stay_in_flight_into_the_next_iteration() {
    let kernel = |pending: u32| {
        let mut m = MathRole::new();
        let (d, a_registers) = (m.accumulators(8), m.a_registers());
        m.add(WgmmaFence); // 10
        let to = m.iterations.into();
        m.each(to, |m| {
            // Line 11 is the loop.
            let mut body: Vec<_> = (0..4)
                .map(|i| m.at(write(a_registers[i], Type::Bf16x2)))
                .collect();
            body.push(m.at(WgmmaFence));
            body.push(m.at(m.wgmma_of_registers(&a_registers, &d))); // 17
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
fn alternating_accumulators_have_separate_groups() {
    // Two accumulators alternate, with one group in flight: the wait covers the other accumulator.
    let kernel = |pending: u32| {
        let mut m = MathRole::new();
        let (x, y) = (m.accumulators(8), m.accumulators(8));
        let to = m.iterations.into();
        m.each(to, |m| {
            let mut body = Vec::new();
            for (d, done) in [(&x, &y), (&y, &x)] {
                body.push(m.at(WgmmaFence));
                body.push(m.at(m.wgmma(d)));
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
fn a_wait_in_a_loop_counts_if_the_loop_always_runs() {
    let kernel = |to: fn(&MathRole) -> Operand| {
        let mut m = MathRole::new();
        let d = m.accumulators(8);
        m.group(&d);
        let to = to(&m);
        m.each(to, |m| vec![m.at(WgmmaWait { pending: 0 })]);
        m.add(write(d[0], Type::F32)); // 15
        m.end()
    };
    kernel(|_| Operand::Imm(2)).passes();
    assert_eq!(
        second_line(kernel(|m| m.iterations.into()), "R7.registers", 15),
        Some(11)
    );
}

#[test]
fn the_first_wgmma_needs_a_fence() {
    let mut m = MathRole::new();
    let d = m.accumulators(8);
    m.add(m.wgmma(&d));
    m.add(WgmmaCommit);
    assert_eq!(second_line(m.end(), "R7.fence", 10), None);
}

#[test]
fn a_wgmma_after_a_register_access_needs_a_fence() {
    let kernel = |fenced: bool, access: fn(&mut MathRole, RegId)| {
        let mut m = MathRole::new();
        let d = m.accumulators(8);
        m.group(&d);
        m.add(WgmmaWait { pending: 0 });
        access(&mut m, d[1]); // 14
        if fenced {
            m.add(WgmmaFence);
        }
        m.add(m.wgmma(&d));
        m.add(WgmmaCommit);
        m.end()
    };
    let writes = |m: &mut MathRole, r: RegId| m.add(write(r, Type::F32));
    let reads = |m: &mut MathRole, r: RegId| {
        let dst = m.kit.reg(Type::F32);
        m.add(Mov {
            ty: Type::F32,
            dst,
            src: r.into(),
        });
    };
    for access in [writes as fn(&mut MathRole, RegId), reads] {
        kernel(true, access).passes();
        assert_eq!(second_line(kernel(false, access), "R7.fence", 15), Some(14));
    }
}

#[test]
fn wgmmas_that_own_more_registers_than_a_thread_has_are_refuted() {
    let kernel = |waited: bool| {
        let mut m = MathRole::new();
        let all = [m.accumulators(256), m.accumulators(256)];
        m.b = m.kit.tile(1, "wide", swizzled(256), 1);
        for d in &all {
            m.group(d); // wgmmas at 11 and 14, or 15
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
