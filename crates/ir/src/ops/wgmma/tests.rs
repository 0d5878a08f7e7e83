use super::*;
use crate::job::fake::{Cta, Rng, view};
use crate::lanes::fake::{arg, ptx, reg};
use crate::layout::accumulator_at;
use half::{bf16, f16};

/// Small numbers with few bits, so that sums of products are exact in f32.
fn number(rng: &mut Rng) -> f64 {
    rng.range(-32, 33) as f64 / 8.0
}

fn bits(ty: MmaType, x: f64) -> u16 {
    match ty {
        MmaType::Bf16 => bf16::from_f64(x).to_bits(),
        MmaType::F16 => f16::from_f64(x).to_bits(),
    }
}

const SWIZZLES: [Swizzle; 3] = [Swizzle::B32, Swizzle::B64, Swizzle::B128];
const MAJORS: [Major; 2] = [Major::K, Major::Mn];
const NS: [u32; 4] = [8, 64, 176, 256];

/// First accumulator register; those of A start at 300.
const D: u32 = 10;
const A: u32 = 300;

/// A tile in which an operand of `mn` by 16 lies, and the operand's view: not at the tile's start.
fn operand(tile: u32, mn: u32, major: Major, swizzle: Swizzle) -> (TileLayout, View) {
    let panel = swizzle.span().unwrap() / 2;
    let (rows, cols, v) = match major {
        // Some rows and 16 of the columns, the last ones of a panel.
        Major::K => {
            let cols = 2 * panel;
            (mn + 8, cols, view(tile, 8, mn, cols - K as u32, K as u32))
        }
        // Whole panels, or a part of one.
        Major::Mn => {
            let cols = panel + mn.next_multiple_of(panel);
            let col = if mn < panel {
                panel + (panel - mn) / 8 * 8
            } else {
                panel
            };
            (40, cols, view(tile, 24, K as u32, col, mn))
        }
    };
    let layout = TileLayout {
        element: 2,
        rows,
        cols,
        swizzle,
    };
    (layout, v)
}

/// Writes a random operand into its tile; gives it as `[mn][k]`.
fn fill(cta: &mut Cta, v: &View, major: Major, ty: MmaType, rng: &mut Rng) -> Vec<[f64; K]> {
    let (at, layout) = cta.tiles[v.tile.index()];
    let mn = if major == Major::K { v.rows } else { v.cols };
    (0..mn)
        .map(|i| {
            std::array::from_fn(|k| {
                let x = number(rng);
                let (row, col) = match major {
                    Major::K => (v.row + i, v.col + k as u32),
                    Major::Mn => (v.row + k as u32, v.col + i),
                };
                let byte = (at + layout.offset(row, col)) as usize;
                cta.shared[0][byte..byte + 2].copy_from_slice(&bits(ty, x).to_le_bytes());
                x
            })
        })
        .collect()
}

fn product(n: u32, ty: MmaType, a: MatrixA, b: View, b_major: Major, scale_d: Operand) -> Wgmma {
    Wgmma {
        ty,
        n,
        d: (0..n / 2).map(|i| reg(D + i)).collect(),
        a,
        b,
        b_major,
        scale_d,
    }
}

/// Runs the op in all four warps and compares each accumulator with a float64 product.
fn check(cta: &mut Cta, op: &Wgmma, a: &[[f64; K]], b: &[[f64; K]], set_a: impl Fn(&mut Cta, u32)) {
    assert_eq!(op.legal(&Target::SM_90A), Ok(()));
    let adds = op.scale_d != Operand::Imm(0);
    for warp in 0..4 {
        cta.warp_id = 4 + warp;
        set_a(cta, warp);
        let before = |lane: u32, i: u32| f64::from((lane * 7 + i) % 64) - 20.0;
        for i in 0..op.n / 2 {
            let v: Lanes<f32> = std::array::from_fn(|lane| before(lane as u32, i) as f32);
            cta.set(reg(D + i), &v);
        }
        cta.run(op);
        cta.complete();
        for i in 0..op.n / 2 {
            let got = cta.warp.read::<f32>(D + i);
            for (lane, &got) in got.iter().enumerate() {
                let (row, col) = accumulator_at(warp, lane as u32, i);
                let (x, y) = (a[row as usize], b[col as usize]);
                let sum: f64 = x.iter().zip(&y).map(|(x, y)| x * y).sum();
                let was = if adds { before(lane as u32, i) } else { 0.0 };
                assert_eq!(f64::from(got), sum + was, "{} at {row}, {col}", op.name());
            }
        }
    }
}

#[test]
fn it_is_the_float64_product_for_every_swizzle_major_and_width() {
    let mut rng = Rng(5);
    for (i, &n) in NS.iter().enumerate() {
        for (j, &swizzle) in SWIZZLES.iter().enumerate() {
            for (a_major, b_major) in MAJORS.into_iter().flat_map(|a| MAJORS.map(|b| (a, b))) {
                // Every combination meets both types and both kinds of sum somewhere.
                let ty = if (i + j).is_multiple_of(2) {
                    MmaType::Bf16
                } else {
                    MmaType::F16
                };
                let (a_tile, a_view) = operand(0, 64, a_major, swizzle);
                let (b_tile, b_view) = operand(1, n, b_major, swizzle);
                let mut cta = Cta::new(1, 0).tile(0, a_tile).tile(16 << 10, b_tile);
                cta.shared[0] = vec![0xff; 128 << 10];
                let a = fill(&mut cta, &a_view, a_major, ty, &mut rng);
                let b = fill(&mut cta, &b_view, b_major, ty, &mut rng);
                for scale_d in [0, 1] {
                    let a_op = MatrixA::Shared(a_view, a_major);
                    let op = product(n, ty, a_op, b_view, b_major, Operand::Imm(scale_d));
                    check(&mut cta, &op, &a, &b, |_, _| {});
                }
            }
        }
    }
}

#[test]
fn a_may_come_from_registers() {
    let mut rng = Rng(9);
    for ty in [MmaType::Bf16, MmaType::F16] {
        let (tile, b_view) = operand(0, 64, Major::K, Swizzle::B128);
        let mut cta = Cta::new(1, 0).tile(0, tile);
        let b = fill(&mut cta, &b_view, Major::K, ty, &mut rng);
        let a: Vec<[f64; K]> = (0..64)
            .map(|_| std::array::from_fn(|_| number(&mut rng)))
            .collect();
        let regs = MatrixA::Regs((0..4).map(|i| reg(A + i)).collect());
        let op = product(64, ty, regs, b_view, Major::K, Operand::Imm(1));
        check(&mut cta, &op, &a, &b, |cta, warp| {
            // PTX ISA, register fragment of A of m64k16: a0,a1 row g; a2,a3 row g+8; a4… k+8.
            for i in 0..4 {
                let v: Lanes<u32> = std::array::from_fn(|lane| {
                    let row = 16 * warp as usize + lane / 4 + [0, 8, 0, 8][i];
                    let k = 2 * (lane % 4) + [0, 0, 8, 8][i];
                    let half = |k: usize| u32::from(bits(ty, a[row][k]));
                    half(k) | half(k + 1) << 16
                });
                cta.set(reg(A + i as u32), &v);
            }
        });
    }
}

#[test]
fn operands_are_read_when_the_job_completes() {
    let (tile, v) = operand(0, 64, Major::K, Swizzle::B64);
    let mut cta = Cta::new(1, 0).tile(0, tile);
    let a_op = MatrixA::Shared(v, Major::K);
    cta.run(&product(
        64,
        MmaType::F16,
        a_op,
        v,
        Major::K,
        Operand::Imm(0),
    ));
    cta.shared[0].fill(0);
    cta.complete();
    assert_eq!(cta.warp.read::<f32>(D + 31), [0.0; 32]);
}

#[test]
fn a_job_names_its_registers() {
    let (tile, v) = operand(0, 8, Major::K, Swizzle::B64);
    let mut cta = Cta::new(1, 0).tile(0, tile);
    let regs = MatrixA::Regs((0..4).map(|i| reg(A + i)).collect());
    cta.run(&product(
        8,
        MmaType::F16,
        regs,
        v,
        Major::K,
        Operand::Imm(0),
    ));
    let Job::Wgmma(job) = &cta.jobs[0] else {
        panic!("not a product");
    };
    let mut all = Vec::new();
    job.registers(&mut |r| all.push(r.0));
    assert_eq!(all, [D, D + 1, D + 2, D + 3, A, A + 1, A + 2, A + 3]);
}

#[test]
fn faults_name_the_rule_and_the_value() {
    let (tile, v) = operand(0, 64, Major::K, Swizzle::B128);
    let op = |v| {
        product(
            64,
            MmaType::F16,
            MatrixA::Shared(v, Major::K),
            v,
            Major::K,
            arg(1),
        )
    };
    let mut cta = Cta::new(1, 0).tile(0, tile);
    cta.warp = cta.warp.clone().with_pred(1, 1);
    let f = cta.fault(&op(v));
    assert_eq!(f.kind, FaultKind::Convergence);
    assert!(f.text.contains("lanes 0x00000001 alone"), "{}", f.text);

    let mut cta = Cta::new(1, 0).tile(0, tile);
    let f = cta.fault(&op(View { row: 3, ..v }));
    assert!(f.text.contains("not at row 3 of it"), "{}", f.text);
    cta.tiles[0].1.swizzle = Swizzle::None;
    let f = cta.fault(&op(v));
    assert!(f.text.contains("not plain of 2-byte ones"), "{}", f.text);

    let mut cta = Cta::new(1, 0).tile(0, tile);
    cta.warp.active = 7;
    let f = cta.fault(&op(v));
    assert_eq!(f.kind, FaultKind::Convergence);
    assert!(f.text.contains("not by lanes 0x00000007"), "{}", f.text);

    let mut cta = Cta::new(1, 0).tile(0, tile);
    cta.warp = cta.warp.clone().with(2, &[0u32, 1]);
    let f = cta.fault(&op(View { stage: arg(2), ..v }));
    assert!(
        f.text.contains("not 0 in one and 1 in another"),
        "{}",
        f.text
    );
}

#[test]
fn legality() {
    let t = Target::SM_90A;
    let (_, v) = operand(0, 64, Major::K, Swizzle::B128);
    let op = product(
        64,
        MmaType::F16,
        MatrixA::Shared(v, Major::K),
        v,
        Major::K,
        Operand::Imm(1),
    );
    let says = |op: Wgmma, text: &str| {
        let why = op.legal(&t).unwrap_err();
        assert!(why.contains(text), "{why}");
    };
    assert_eq!(op.legal(&t), Ok(()));
    says(
        Wgmma {
            n: 12,
            ..op.clone()
        },
        "not 12",
    );
    says(
        Wgmma {
            n: 264,
            ..op.clone()
        },
        "not 264",
    );
    says(
        Wgmma {
            n: 72,
            ..op.clone()
        },
        "36 accumulators per lane, not 32",
    );
    says(
        Wgmma {
            b: view(0, 0, 32, 0, 16),
            ..op.clone()
        },
        "64×16, not 32×16",
    );
    says(
        Wgmma {
            b_major: Major::Mn,
            ..op.clone()
        },
        "16×64, not 64×16",
    );
    says(
        Wgmma {
            a: MatrixA::Regs(vec![reg(1)]),
            ..op.clone()
        },
        "4 registers per lane, not 1",
    );
    let mut old = t;
    old.features.wgmma = false;
    assert!(op.legal(&old).is_err());
}

#[test]
fn effects_own_the_accumulators_until_the_group_is_done() {
    #[derive(Default)]
    struct Seen(Vec<String>);
    impl Effects for Seen {
        fn def(&mut self, r: RegId) {
            self.0.push(format!("def {r}"));
        }
        fn arg(&mut self, o: Operand, ty: Type) {
            self.0.push(format!("arg {o} {ty}"));
        }
        fn touch(&mut self, t: &Touch) {
            assert_eq!(
                (t.proxy, t.completion),
                (Proxy::Wgmma, Completion::WgmmaGroup)
            );
            let what = match t.memory {
                Memory::Register(r) => r.to_string(),
                Memory::View(v) => v.tile.to_string(),
                other => format!("{other:?}"),
            };
            self.0.push(format!("{:?} {what}", t.access));
        }
        fn sync(&mut self, s: &Sync) {
            self.0.push(format!("{s:?}"));
        }
        fn whole_warp(&mut self) {
            self.0.push("whole".into());
        }
    }
    let regs = MatrixA::Regs(vec![reg(1), reg(2), reg(3), reg(4)]);
    let op = Wgmma {
        d: vec![reg(10)],
        ..product(
            8,
            MmaType::Bf16,
            regs,
            view(7, 0, 8, 0, 16),
            Major::K,
            arg(5),
        )
    };
    let mut seen = Seen::default();
    op.effects(&mut seen);
    assert_eq!(seen.0[..3], ["whole", "def %10", "Atomic %10"]);
    assert_eq!(seen.0[3..5], ["arg %1 bf16x2", "Read %1"]);
    assert_eq!(seen.0[11..], ["Read tile7", "arg %5 pred"]);
}

#[test]
fn ptx_of_products_and_groups() {
    let v = view(0, 0, 8, 0, 16);
    let d = "{%10, %11, %12, %13}";
    let shared = |a, b, scale| product(8, MmaType::Bf16, MatrixA::Shared(v, a), v, b, scale);
    assert_eq!(
        ptx(&shared(Major::K, Major::Mn, arg(5))),
        [format!(
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {d}, descriptor, descriptor, %5, 1, 1, 0, 1"
        )]
    );
    let regs = MatrixA::Regs(vec![reg(1), reg(2), reg(3), reg(4)]);
    assert_eq!(
        ptx(&product(
            8,
            MmaType::F16,
            regs,
            v,
            Major::K,
            Operand::Imm(0)
        )),
        [format!(
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {d}, {{%1, %2, %3, %4}}, descriptor, 0, 1, 1, 0"
        )]
    );
    assert_eq!(ptx(&WgmmaFence), ["wgmma.fence.sync.aligned"]);
    assert_eq!(ptx(&WgmmaCommit), ["wgmma.commit_group.sync.aligned"]);
    assert_eq!(
        ptx(&WgmmaWait { pending: 1 }),
        ["wgmma.wait_group.sync.aligned 1"]
    );
}
