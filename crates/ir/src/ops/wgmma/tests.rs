use super::*;
use crate::job::Job;
use crate::job::fake::{Cta, Rng, view};
use crate::lanes::fake::{arg, ptx, reg};
use crate::layout::{Major, Swizzle, TileLayout, accumulator_at};
use crate::machine::{
    Completion, Effects, FaultKind, Machine, MemoryAccess, MemoryRegion, PerLane, Proxy,
};
use crate::ops::Instr;
use crate::ops::mma::tests::{code, pack_codes, pairs};
use crate::sync::SyncOp;
use crate::types::Type;
use crate::value::{Operand, RegId, View};

/// Returns a small number that fp8 types represent; sums of products of such numbers are exact in f32.
fn random_number(rng: &mut Rng) -> f32 {
    rng.range(-4, 5) as f32 * [0.25, 0.5, 1.0, 2.0][rng.range(0, 4) as usize]
}

const SWIZZLES: [Swizzle; 3] = [Swizzle::B32, Swizzle::B64, Swizzle::B128];
const MAJORS: [Major; 2] = [Major::K, Major::Mn];

/// First accumulator register; those of A start at 300.
const D: u32 = 10;
const A: u32 = 300;

/// A matrix: one row of k for each m or n.
type Matrix = Vec<Vec<f32>>;

/// Returns a tile that contains an operand of `mn` by k, and the view of the operand. The view has an offset in the tile.
fn operand(tile: u32, ty: MmaType, mn: u32, major: Major, swizzle: Swizzle) -> (TileLayout, View) {
    let (k, panel) = (ty.k(), swizzle.span().unwrap() / ty.bytes());
    let (rows, cols, v) = match major {
        // Some rows, and the last columns of a panel: the K of one instruction.
        Major::K => {
            let cols = 2 * panel;
            (mn + 8, cols, view(tile, 8, mn, cols - k, k))
        }
        // Whole panels, or a part of one.
        Major::Mn => {
            let cols = panel + mn.next_multiple_of(panel);
            let col = if mn < panel {
                panel + (panel - mn) / 8 * 8
            } else {
                panel
            };
            (40, cols, view(tile, 24, k, col, mn))
        }
    };
    let layout = TileLayout {
        element_bytes: ty.bytes(),
        rows,
        cols,
        swizzle,
    };
    (layout, v)
}

/// Writes a random operand into its tile.
fn fill(cta: &mut Cta, v: &View, major: Major, ty: MmaType, rng: &mut Rng) -> Matrix {
    let (at, layout) = cta.tiles[v.tile.index()];
    let mn = if major == Major::K { v.rows } else { v.cols };
    let mut write = |i: u32, k: u32| {
        let x = random_number(rng);
        let (row, col) = match major {
            Major::K => (v.row + i, v.col + k),
            Major::Mn => (v.row + k, v.col + i),
        };
        let (byte, size) = ((at + layout.offset(row, col)) as usize, ty.bytes() as usize);
        cta.shared[0][byte..byte + size].copy_from_slice(&code(ty, x).to_le_bytes()[..size]);
        x
    };
    (0..mn)
        .map(|i| (0..ty.k()).map(|k| write(i, k)).collect())
        .collect()
}

fn wgmma_op(n: u32, ty: MmaType, a: MatrixA, b: View, b_major: Major, scale_d: Operand) -> Wgmma {
    Wgmma {
        a_ty: ty,
        b_ty: ty,
        n,
        d: (0..n / 2).map(|i| reg(D + i)).collect(),
        a,
        b,
        b_major,
        neg_a: false,
        neg_b: false,
        scale_d,
    }
}

/// Executes the op in all four warps and compares each accumulator with a float64 product.
fn assert_product(
    cta: &mut Cta,
    op: &Wgmma,
    a: &Matrix,
    b: &Matrix,
    set_a: impl Fn(&mut Cta, u32),
) {
    assert_eq!(op.legal(&Target::SM_90A), Ok(()));
    let accumulates = op.scale_d != Operand::Imm(0);
    let sign = if op.neg_a == op.neg_b { 1.0 } else { -1.0 };
    for warp in 0..4 {
        cta.warp_id = 4 + warp;
        set_a(cta, warp);
        let before = |lane: u32, i: u32| f64::from((lane * 7 + i) % 64) - 20.0;
        for i in 0..op.n / 2 {
            let v: PerLane<f32> = std::array::from_fn(|lane| before(lane as u32, i) as f32);
            cta.set(reg(D + i), &v);
        }
        cta.run(op);
        cta.complete();
        for i in 0..op.n / 2 {
            let got = cta.warp.read::<f32>(D + i);
            for (lane, &got) in got.iter().enumerate() {
                let (row, col) = accumulator_at(warp, lane as u32, i);
                let pairs = a[row as usize].iter().zip(&b[col as usize]);
                let sum: f64 = pairs.map(|(x, y)| f64::from(x * y)).sum();
                let initial = if accumulates {
                    before(lane as u32, i)
                } else {
                    0.0
                };
                assert_eq!(
                    f64::from(got),
                    sign * sum + initial,
                    "{} at {row}, {col}",
                    op.name()
                );
            }
        }
    }
}

/// Checks every type, swizzle and legal major dimension, with both operands in shared memory.
fn check_every_layout(n: u32, signs: &[(bool, bool)]) {
    let mut rng = Rng(u64::from(n) + 5);
    for (a_ty, b_ty) in pairs() {
        let majors = MAJORS.into_iter().flat_map(|a| MAJORS.map(|b| (a, b)));
        let legal = |m: &(Major, Major)| a_ty.bytes() == 2 || *m == (Major::K, Major::K);
        for (a_major, b_major) in majors.filter(legal) {
            for swizzle in SWIZZLES {
                let (a_tile, a_view) = operand(0, a_ty, 64, a_major, swizzle);
                let (b_tile, b_view) = operand(1, b_ty, n, b_major, swizzle);
                let mut cta = Cta::new(1, 0).tile(0, a_tile).tile(32 << 10, b_tile);
                cta.shared[0] = vec![0xff; 160 << 10];
                let a = fill(&mut cta, &a_view, a_major, a_ty, &mut rng);
                let b = fill(&mut cta, &b_view, b_major, b_ty, &mut rng);
                for (i, &(neg_a, neg_b)) in signs.iter().enumerate() {
                    let a_op = MatrixA::Shared(a_view, a_major);
                    let scale_d = Operand::Imm(i as u64 % 2);
                    let op = Wgmma {
                        b_ty,
                        neg_a,
                        neg_b,
                        ..wgmma_op(n, a_ty, a_op, b_view, b_major, scale_d)
                    };
                    assert_product(&mut cta, &op, &a, &b, |_, _| {});
                }
            }
        }
    }
}

#[test]
fn wgmma_equals_a_float64_product_for_every_type_swizzle_and_major() {
    for n in [8, 24, 64] {
        check_every_layout(n, &[(false, false), (false, false)]);
    }
}

#[test]
fn wgmma_equals_a_float64_product_for_wide_tiles() {
    for n in [176, 256] {
        check_every_layout(n, &[(false, false)]);
    }
}

#[test]
fn wgmma_negates_either_operand() {
    check_every_layout(16, &[(true, false), (false, true), (true, true)]);
}

#[test]
fn wgmma_reads_a_from_registers() {
    let mut rng = Rng(9);
    for (a_ty, b_ty) in pairs() {
        let (n, swizzle) = (40, Swizzle::B128);
        let (tile, b_view) = operand(0, b_ty, n, Major::K, swizzle);
        let mut cta = Cta::new(1, 0).tile(0, tile);
        let b = fill(&mut cta, &b_view, Major::K, b_ty, &mut rng);
        let a: Matrix = (0..64)
            .map(|_| (0..a_ty.k()).map(|_| random_number(&mut rng)).collect())
            .collect();
        let regs = MatrixA::Regs((0..4).map(|i| reg(A + i)).collect());
        let op = Wgmma {
            b_ty,
            ..wgmma_op(n, a_ty, regs, b_view, Major::K, Operand::Imm(1))
        };
        assert_product(&mut cta, &op, &a, &b, |cta, warp| {
            // PTX ISA: rows g and g + 8 alternate, then the second half of K; adjacent elements are packed.
            let per_reg = 4 / a_ty.bytes() as usize;
            for i in 0..4 {
                let v: PerLane<u32> = std::array::from_fn(|lane| {
                    let row = 16 * warp as usize + lane / 4 + [0, 8, 0, 8][i];
                    let k = per_reg * (lane % 4 + [0, 0, 4, 4][i]);
                    pack_codes(a_ty, a[row][k..k + per_reg].iter().map(|&x| code(a_ty, x)))
                });
                cta.set(reg(A + i as u32), &v);
            }
        });
    }
}

#[test]
fn operands_are_read_when_the_job_completes() {
    let (tile, v) = operand(0, MmaType::F16, 64, Major::K, Swizzle::B64);
    let mut cta = Cta::new(1, 0).tile(0, tile);
    let a_op = MatrixA::Shared(v, Major::K);
    cta.run(&wgmma_op(
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
fn a_job_reports_its_registers() {
    let (tile, v) = operand(0, MmaType::F16, 8, Major::K, Swizzle::B64);
    let mut cta = Cta::new(1, 0).tile(0, tile);
    let regs = MatrixA::Regs((0..4).map(|i| reg(A + i)).collect());
    cta.run(&wgmma_op(
        8,
        MmaType::F16,
        regs,
        v,
        Major::K,
        Operand::Imm(0),
    ));
    let Job::Wgmma(job) = &cta.jobs[0] else {
        panic!("not a wgmma job");
    };
    let mut all = Vec::new();
    job.registers(&mut |r| all.push(r.0));
    assert_eq!(all, [D, D + 1, D + 2, D + 3, A, A + 1, A + 2, A + 3]);
}

#[test]
fn faults_name_the_rule_and_the_value() {
    let (tile, v) = operand(0, MmaType::F16, 64, Major::K, Swizzle::B128);
    let op = |v| {
        wgmma_op(
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
    assert!(
        f.text.contains("set only in lanes 0x00000001"),
        "{}",
        f.text
    );

    let mut cta = Cta::new(1, 0).tile(0, tile);
    let f = cta.fault(&op(View { row: 3, ..v }));
    assert!(
        f.text.contains("at row 3 of a swizzle pattern"),
        "{}",
        f.text
    );
    cta.tiles[0].1.swizzle = Swizzle::None;
    let f = cta.fault(&op(v));
    assert!(
        f.text.contains("an unswizzled tile with 2-byte elements"),
        "{}",
        f.text
    );
    (cta.tiles[0].1.swizzle, cta.tiles[0].1.element_bytes) = (Swizzle::B128, 4);
    let f = cta.fault(&op(v));
    assert!(
        f.text
            .contains("the tile must be swizzled and have 2-byte elements"),
        "{}",
        f.text
    );

    let mut cta = Cta::new(1, 0).tile(0, tile);
    cta.warp.active = 7;
    let f = cta.fault(&op(v));
    assert_eq!(f.kind, FaultKind::Convergence);
    assert!(
        f.text.contains("executed by lanes 0x00000007 only"),
        "{}",
        f.text
    );

    let mut cta = Cta::new(1, 0).tile(0, tile);
    cta.warp = cta.warp.clone().with(2, &[0u32, 1]);
    let f = cta.fault(&op(View { stage: arg(2), ..v }));
    assert!(
        f.text.contains("differs between lanes: 0 and 1"),
        "{}",
        f.text
    );
}

#[test]
fn unsupported_shapes_types_and_majors_are_rejected() {
    let t = Target::SM_90A;
    let (_, v) = operand(0, MmaType::F16, 64, Major::K, Swizzle::B128);
    let op = wgmma_op(
        64,
        MmaType::F16,
        MatrixA::Shared(v, Major::K),
        v,
        Major::K,
        Operand::Imm(1),
    );
    let assert_rejected = |op: Wgmma, text: &str| {
        let why = op.legal(&t).unwrap_err();
        assert!(why.contains(text), "{why}");
    };
    assert_eq!(op.legal(&t), Ok(()));
    assert_rejected(
        Wgmma {
            n: 12,
            ..op.clone()
        },
        "n = 12",
    );
    assert_rejected(
        Wgmma {
            n: 264,
            ..op.clone()
        },
        "n = 264",
    );
    assert_rejected(
        Wgmma {
            n: 72,
            ..op.clone()
        },
        "32 accumulator registers per lane; it needs 36",
    );
    assert_rejected(
        Wgmma {
            b: view(0, 0, 32, 0, 16),
            ..op.clone()
        },
        "32×16; it must be 64×16",
    );
    assert_rejected(
        Wgmma {
            b_major: Major::Mn,
            ..op.clone()
        },
        "64×16; it must be 16×64",
    );
    assert_rejected(
        Wgmma {
            b_ty: MmaType::Bf16,
            ..op.clone()
        },
        "does not support f16 with bf16",
    );
    let (_, v) = operand(0, MmaType::E4m3, 64, Major::K, Swizzle::B128);
    let fp8 = wgmma_op(
        64,
        MmaType::E4m3,
        MatrixA::Shared(v, Major::Mn),
        v,
        Major::K,
        Operand::Imm(1),
    );
    assert_rejected(
        fp8.clone(),
        "A of a wgmma of e4m3 is MN-major; only 16-bit types support MN-major",
    );
    assert_rejected(
        Wgmma {
            a: MatrixA::Shared(View { cols: 16, ..v }, Major::K),
            ..fp8
        },
        "64×16; it must be 64×32",
    );
    assert_rejected(
        Wgmma {
            a: MatrixA::Regs(vec![reg(1)]),
            ..op.clone()
        },
        "1 registers per lane; it needs 4",
    );
    let mut without_wgmma = t;
    without_wgmma.features.wgmma = false;
    assert!(op.legal(&without_wgmma).is_err());
}

#[test]
fn effects_report_asynchronous_accesses_to_the_accumulators() {
    #[derive(Default)]
    struct EffectLog(Vec<String>);
    impl Effects for EffectLog {
        fn def(&mut self, r: RegId) {
            self.0.push(format!("def {r}"));
        }
        fn arg(&mut self, o: Operand, ty: Type) {
            self.0.push(format!("arg {o} {ty}"));
        }
        fn access(&mut self, t: &MemoryAccess) {
            assert_eq!(
                (t.proxy, t.completion),
                (Proxy::Wgmma, Completion::WgmmaGroup)
            );
            let region = match t.memory {
                MemoryRegion::Register(r) => r.to_string(),
                MemoryRegion::View(v) => v.tile.to_string(),
                other => format!("{other:?}"),
            };
            self.0.push(format!("{:?} {region}", t.access));
        }
        fn sync(&mut self, s: &SyncOp) {
            self.0.push(format!("{s:?}"));
        }
        fn whole_warp(&mut self) {
            self.0.push("whole".into());
        }
    }
    let regs = MatrixA::Regs(vec![reg(1), reg(2), reg(3), reg(4)]);
    let op = Wgmma {
        d: vec![reg(10)],
        ..wgmma_op(
            8,
            MmaType::Bf16,
            regs,
            view(7, 0, 8, 0, 16),
            Major::K,
            arg(5),
        )
    };
    let mut log = EffectLog::default();
    op.effects(&mut log);
    assert_eq!(log.0[..3], ["whole", "def %10", "Atomic %10"]);
    assert_eq!(log.0[3..5], ["arg %1 bf16x2", "Read %1"]);
    assert_eq!(log.0[11..], ["Read tile7", "arg %5 pred"]);
}

#[test]
fn wgmma_and_group_ops_print_their_operands() {
    let v = view(0, 0, 8, 0, 16);
    let d = "{%10, %11, %12, %13}";
    let shared = |a, b, scale| wgmma_op(8, MmaType::Bf16, MatrixA::Shared(v, a), v, b, scale);
    assert_eq!(
        ptx(&shared(Major::K, Major::Mn, arg(5))),
        [format!(
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {d}, descriptor, descriptor, %5, 1, 1, 0, 1"
        )]
    );
    let regs = MatrixA::Regs(vec![reg(1), reg(2), reg(3), reg(4)]);
    assert_eq!(
        ptx(&wgmma_op(
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
    // Other types have no transpose operands; negated operands.
    let tf32 = Wgmma {
        neg_a: true,
        ..wgmma_op(
            8,
            MmaType::Tf32,
            MatrixA::Shared(v, Major::K),
            v,
            Major::K,
            arg(5),
        )
    };
    assert_eq!(
        ptx(&tf32),
        [format!(
            "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {d}, descriptor, descriptor, %5, -1, 1"
        )]
    );
    let fp8 = Wgmma {
        a_ty: MmaType::E4m3,
        b_ty: MmaType::E5m2,
        a: MatrixA::Regs(vec![reg(1), reg(2), reg(3), reg(4)]),
        neg_a: false,
        neg_b: true,
        ..tf32
    };
    assert_eq!(
        ptx(&fp8),
        [format!(
            "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e5m2 {d}, {{%1, %2, %3, %4}}, descriptor, %5, 1, -1"
        )]
    );
    assert_eq!(fp8.name(), "wgmma.m64n8k32.e4m3.e5m2.regs.k.neg");
    assert_eq!(ptx(&WgmmaFence), ["wgmma.fence.sync.aligned"]);
    assert_eq!(ptx(&WgmmaCommit), ["wgmma.commit_group.sync.aligned"]);
    assert_eq!(
        ptx(&WgmmaWait { pending: 1 }),
        ["wgmma.wait_group.sync.aligned 1"]
    );
}
