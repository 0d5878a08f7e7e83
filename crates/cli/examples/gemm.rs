//! A kernel family of your own with the whole `warpline` command line:
//!
//! ```sh
//! cargo run --release --example gemm -- run gemm --m 200 --n 136 --k 104
//! cargo run --release --example gemm -- emit gemm --ptx
//! ```
//!
//! `C[M, N] = A[M, K] · B[N, K]ᵀ` in bf16 with f32 accumulation: a load role, one
//! consumer warpgroup, a ring between them, and an epilogue through shared memory.
//! This is a teaching kernel; the library has the fast ones.

use half::bf16;
use std::process::ExitCode;
use warpline_family::prelude::*;
use warpline_ir::TensorMapDecl;
use warpline_ir::builder::*;

fn main() -> ExitCode {
    warpline_cli::main(&[&Gemm])
}

struct Gemm;

fields! {
    /// The problem.
    struct Problem {
        /// Rows of A and C
        m: u32 where at_least(1),
        /// Rows of B, columns of C
        n: u32,
        /// Columns of A and B
        k: u32,
    }
}

config! {
    /// A complete config.
    struct Config {
        /// Columns of a tile, 64 or 128
        bn: u32,
        /// Stages of the ring
        stages: u32 where at_least(1),
        /// CTAs of the grid
        ctas: u32,
    }
    /// The config fields that the caller sets; the family selects the rest.
    struct Choice;
}

const BM: u32 = 128;
const BK: u32 = 64;

/// Returns a tensor map with boxes of `rows` rows of 128 bytes.
fn map(rows: u32) -> TensorMapDecl {
    TensorMapDecl::tiled(DType::Bf16, [64, rows])
}

/// The kernel.
fn gemm(k: Builder, c: &Config) {
    let (m, n, kk) = (
        k.param::<u32>("m"),
        k.param::<u32>("n"),
        k.param::<u32>("k"),
    );
    let (a, b) = (k.tensor_map("a", map(BM)), k.tensor_map("b", map(c.bn)));
    let out = k.tensor_map("c", map(BM));
    let ab = k.ring("ab", c.stages, |s| {
        (s.tile::<bf16>(BM, BK), s.tile::<bf16>(c.bn, BK))
    });
    let outbox = k.outbox::<bf16>("c", 1, BM, c.bn);
    let tiles = Rasterization::Grouped(8).tiles(m.div_ceil(BM), n.div_ceil(c.bn));

    k.role("math").warpgroups(1).registers(240).body(|| {
        tiles.each(|tile| {
            let acc = Acc::new(BM, c.bn);
            steps(kk.div_ceil(BK)).each(|_| {
                let slot = ab.wait();
                acc.mma(&slot.0, &slot.1);
                slot.release_after(&acc);
            });
            outbox.store(&acc.into_frag(), out, [tile.n * c.bn, tile.m * BM]);
        });
    });

    k.role("load").warpgroups(1).registers(40).body(|| {
        elect(|| {
            tiles.each(|tile| {
                steps(kk.div_ceil(BK)).each(|ks| {
                    let slot = ab.acquire();
                    slot.load(a, slot.0, [ks * BK, tile.m * BM]);
                    slot.load(b, slot.1, [ks * BK, tile.n * c.bn]);
                    slot.commit();
                });
            });
        });
    });
}

impl Family for Gemm {
    type Problem = Problem;
    type Choice = Choice;
    type Config = Config;

    const NAME: &'static str = "gemm";
    const ABOUT: &'static str = "C = A · Bᵀ in bf16, a teaching kernel";

    fn default_problem(device: DeviceKind) -> Problem {
        match device {
            DeviceKind::Cpu => Problem {
                m: 256,
                n: 256,
                k: 256,
            },
            DeviceKind::Gpu => Problem {
                m: 4096,
                n: 4096,
                k: 4096,
            },
        }
    }

    fn check(p: &Problem) -> Result<(), FamilyError> {
        for (flag, x) in [("--n", p.n), ("--k", p.k)] {
            FieldRule::at_least(1).check_problem(flag, x.into())?;
            // TMA needs a row pitch that is a multiple of 16 bytes.
            FieldRule::multiple_of(8).check_problem(flag, x.into())?;
        }
        Ok(())
    }

    fn config(p: &Problem, choice: &Choice, target: &Target) -> Result<Config, FamilyError> {
        let (bn, stages) = (choice.bn.unwrap_or(128), choice.stages.unwrap_or(3));
        if bn == 0 || !bn.is_multiple_of(64) || bn > 128 {
            return Err(FamilyError::Config(format!(
                "--bn must be 64 or 128, not {bn}"
            )));
        }
        let tiles = p.m.div_ceil(BM).saturating_mul(p.n.div_ceil(bn));
        let config = Config {
            bn,
            stages,
            ctas: choice.ctas.unwrap_or(tiles.min(target.sms)),
        };
        let description = format!("{stages} stages of {BM} x {bn}");
        resources(&description, target, |k| gemm(k, &config))?;
        Ok(config)
    }

    fn choices(_: &Problem) -> Vec<Choice> {
        let choice = |(bn, stages)| Choice {
            bn: Some(bn),
            stages: Some(stages),
            ctas: None,
        };
        [(128, 4), (64, 6)].map(choice).into()
    }

    fn plan(p: &Problem, c: &Config, target: &Target) -> Result<Plan, FamilyError> {
        let kernel = Kernel::build("gemm", target, |k| gemm(k, c))?;
        let dense = |buffer: Buffer, rows, cols| TensorArg::dense(buffer, &[cols, rows]);
        let step = LaunchStep::new(kernel, [c.ctas, 1, 1])
            .scalar("m", p.m)
            .scalar("n", p.n)
            .scalar("k", p.k)
            .tensor("a", dense(Buffer::Input(0), p.m, p.k))
            .tensor("b", dense(Buffer::Input(1), p.n, p.k))
            .tensor("c", dense(Buffer::Output(0), p.m, p.n));
        Plan::new(vec![step], 0)
    }

    fn flops(p: &Problem) -> f64 {
        2.0 * [p.m, p.n, p.k].map(f64::from).iter().product::<f64>()
    }

    fn inputs(p: &Problem) -> Vec<TensorSpec> {
        let matrix = |name, rows: u32| TensorSpec::new(name, DType::Bf16, &[rows, p.k]);
        vec![matrix("a", p.m), matrix("b", p.n)]
    }

    fn outputs(p: &Problem) -> Vec<TensorSpec> {
        vec![TensorSpec::new("c", DType::Bf16, &[p.m, p.n])]
    }

    fn reference(p: &Problem, inputs: &[HostTensor]) -> Vec<Vec<(f64, f64)>> {
        let [a, b] = [0, 1].map(|i| inputs[i].values().collect::<Vec<f64>>());
        let (n, k) = (p.n as usize, p.k as usize);
        let element = |i: usize| {
            let (x, y) = (&a[i / n * k..][..k], &b[i % n * k..][..k]);
            let (mut sum, mut magnitude) = (0.0, 0.0);
            for (x, y) in x.iter().zip(y) {
                sum += x * y;
                magnitude += (x * y).abs();
            }
            let tolerance = half_ulp(DType::Bf16, sum) * 1.01 + 2f64.powi(-20) * magnitude;
            (sum, tolerance)
        };
        vec![(0..p.m as usize * n).map(element).collect()]
    }

    fn cases() -> Vec<TestCase<Problem, Choice>> {
        let shapes = [[128, 64, 64], [200, 136, 104], [8, 8, 8], [300, 72, 448]];
        let case = |[m, n, k]: [u32; 3]| TestCase {
            problem: Problem { m, n, k },
            choice: Choice::default(),
        };
        shapes.map(case).into()
    }
}

/// The example passes on the CPU executor under every timing, and assembles without spills.
#[test]
fn cases_pass_and_assemble() {
    use warpline::{Device, RunOptions, Timing, prepare, run};
    use warpline_kernels::AnyFamily;
    let device = Device::cpu();
    let ptxas = warpline_ptx::ptxas::Ptxas::find().unwrap_or_else(|e| panic!("{e}"));
    for work in AnyFamily::cases(&Gemm, &device.target()) {
        let work = work.expect("every test case is valid");
        for timing in Timing::ALL {
            let mut options = RunOptions::default();
            options.timing = timing;
            let outcome = run(work.as_ref(), &device, &options).unwrap_or_else(|e| panic!("{e}"));
            assert!(
                outcome.passed(),
                "{} under {timing}: {:?}",
                work.problem(),
                outcome.outputs
            );
        }
        let prepared = prepare(work.as_ref(), &device.target()).expect("checked");
        let ptx =
            warpline_ptx::print(&prepared.steps[0].kernel, &device.target()).expect("printed");
        let out = ptxas
            .assemble(&ptx.text, "sm_90a")
            .unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(out.report.errors().count(), 0);
        let spilled: u32 = out.report.kernels.iter().map(|e| e.spill_store_bytes).sum();
        assert_eq!(spilled, 0);
    }
}
