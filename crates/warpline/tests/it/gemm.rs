//! GEMM prologues and tails on the CPU executor: producers that issue the first loads before the prologue
//! barrier, and consumers that take turns at the last k-tiles. Also fused reductions.

use warpline::kernels::gemm::{Choice, Gemm, OperandType, Problem, ScheduleKind};
use warpline::kernels::{AnyWorkload, FloatType, HostTensor, Workload};
use warpline::{Device, RunData, RunOptions, Timing, run};
use warpline_testkit::full::few_or;

/// Checks a GEMM with more tiles than CTAs and `k_tiles` k-tiles under all timings.
fn check(schedule: ScheduleKind, consumers: u32, stages: u32, k_tiles: u32) {
    let device = Device::cpu();
    let choice = Choice {
        schedule: Some(schedule),
        tile_m: Some(64 * consumers.min(2)),
        tile_n: Some(32),
        consumers: Some(consumers),
        stages: Some(stages),
        ctas: Some(2),
        ..Choice::default()
    };
    // The last k-tile is partial.
    let problem = Problem::new(136, 72, (64 * k_tiles).saturating_sub(8), OperandType::Bf16);
    let work = Workload::<Gemm>::new(problem, &choice, &device.target()).unwrap();
    for (timing, seed) in [
        (Timing::Eager, 1),
        (Timing::Late, 1),
        (Timing::Random, 1),
        (Timing::Random, 2),
    ] {
        let mut options = RunOptions::default();
        (options.timing, options.seed) = (timing, seed);
        let case =
            format!("{schedule:?}, {consumers} consumers, {stages} stages, {k_tiles} k-tiles");
        match run(&work, &device, &options) {
            Ok(report) => assert!(report.passed(), "{case}, {timing}: {:?}", report.outputs),
            Err(e) => panic!("{case}, {timing}: {e}"),
        }
    }
}

/// Up to three k-tiles are exclusive; more than three stages leave room for that.
#[test]
fn consumers_take_turns_at_the_last_k_tiles() {
    let all = [(2, 3), (1, 4), (2, 4), (2, 5)];
    for (consumers, stages) in all.into_iter().take(few_or(2, 4)) {
        for k_tiles in [0, 1, 2, 3, 4, stages + 1, 2 * stages + 1] {
            check(ScheduleKind::Cooperative, consumers, stages, k_tiles);
        }
    }
}

/// Up to two k-tiles are loaded early.
#[test]
fn the_first_loads_are_issued_before_the_prologue_barrier() {
    for schedule in [ScheduleKind::PingPong, ScheduleKind::Storer] {
        for stages in [2, 3] {
            for k_tiles in [0, 1, 2, 3] {
                check(schedule, 2, stages, k_tiles);
            }
        }
    }
}

/// Checks the reductions of a GEMM with K = 16. The fourth row of A is `special`. Returns the expected
/// row sums, column sums and absolute maximum.
fn check_reductions(special: f64, swap_ab: bool) -> [Vec<f64>; 3] {
    let device = Device::cpu();
    let choice = Choice {
        schedule: Some(ScheduleKind::Cooperative),
        swap_ab: Some(swap_ab),
        tile_m: Some(if swap_ab { 16 } else { 64 }),
        tile_n: Some(64),
        consumers: Some(1),
        ctas: Some(2),
        ..Choice::default()
    };
    let problem = Problem {
        row_sums: true,
        col_sums: true,
        amax: true,
        out: Some(FloatType::F32),
        ..Problem::new(20, 72, 16, OperandType::Bf16)
    };
    let work = Workload::<Gemm>::new(problem, &choice, &device.target()).unwrap();
    // The rows of A are 0, 1, 2, … times 1/16; the fourth is special.
    let row = |i: usize| if i == 3 { special } else { i as f64 };
    let values = [
        (0..20 * 16).map(|i| row(i / 16) / 16.0).collect::<Vec<_>>(),
        vec![1.0; 72 * 16],
    ];
    let specs = AnyWorkload::inputs(&work).into_iter().zip(values);
    let inputs = specs.map(|(spec, values)| HostTensor::round(spec, values));
    let sum: f64 = (0..20).map(row).sum();
    let max = (0..20).map(|i| row(i).abs()).fold(0.0, |x: f64, y| {
        if x.is_nan() || y.is_nan() {
            f64::NAN
        } else {
            x.max(y)
        }
    });
    let expected = [
        (0..20).map(|i| 72.0 * row(i)).collect(),
        vec![sum; 72],
        vec![max],
    ];
    let exact = |values: &Vec<f64>| values.iter().map(|&x| (x, 0.0)).collect::<Vec<_>>();
    let c = (0..20).flat_map(|i| vec![(row(i), 0.0); 72]).collect();
    let reference = [c].into_iter().chain(expected.iter().map(exact));
    let data = RunData::new(inputs.collect()).with_reference(reference.collect());
    let report = run(&work, &device, &RunOptions::with_data(data)).unwrap();
    assert!(
        report.passed(),
        "{special}, swap-AB {swap_ab}: {:?}",
        report.outputs
    );
    expected
}

#[test]
fn reductions_are_exact_and_propagate_nan_and_infinity() {
    for swap_ab in [false, true] {
        let [rows, cols, max] = check_reductions(-40.0, swap_ab);
        assert_eq!((rows[3], cols[0], max[0]), (-2880.0, 147.0, 40.0));
        let [rows, cols, max] = check_reductions(f64::INFINITY, swap_ab);
        assert!(rows[3].is_infinite() && cols[0].is_infinite() && max[0].is_infinite());
        let [rows, _, max] = check_reductions(f64::NAN, swap_ab);
        assert!(rows[3].is_nan() && max[0].is_nan() && rows[4] == 288.0);
    }
}
