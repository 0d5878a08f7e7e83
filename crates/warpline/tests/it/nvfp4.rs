//! NVFP4 kernels: every code with every scale is exact.

use warpline::kernels::gemm::Activation;
use warpline::kernels::nvfp4::{ScaleLayout, codes, products};
use warpline::kernels::nvfp4_dual_gemm::{Choice, Nvfp4DualGemm, Problem, ScheduleKind};
use warpline::kernels::{AnyWorkload, HostTensor, Workload};
use warpline::{Device, RunData, RunOptions, run};

/// The code and the scale with value 1.
const ONE_CODE: u8 = 2;
const ONE_SCALE: u8 = 0x38;

/// All ways to decode weights: schedule, consumers and `tile_k`.
const SCHEDULES: [(ScheduleKind, u32, u32); 5] = [
    (ScheduleKind::Cooperative, 1, 64),
    (ScheduleKind::Cooperative, 2, 128),
    (ScheduleKind::Cooperative, 2, 256),
    (ScheduleKind::Dequantizer, 2, 64),
    (ScheduleKind::Warps, 2, 512),
];

/// Packs codes of rows of 32; `code` takes the row and the column.
fn packed(rows: usize, code: impl Fn(usize, usize) -> u8) -> Vec<u8> {
    let all: Vec<u8> = (0..rows * 32).map(|i| code(i / 32, i % 32)).collect();
    codes::pack(&all).unwrap_or_else(|e| panic!("{e}"))
}

/// Orders codes and scales of A, gate and up as the plan's inputs.
fn plan_inputs([a, gate, up]: [Vec<u8>; 3], scales: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let [a_scales, gate_scales, up_scales] = scales.try_into().unwrap_or_else(|_| panic!("three"));
    vec![a, gate, gate_scales, up, up_scales, a_scales]
}

/// Returns the workload of a problem with a schedule.
fn work(
    problem: Problem,
    (schedule, consumers, tile_k): (ScheduleKind, u32, u32),
    device: &Device,
) -> Workload<Nvfp4DualGemm> {
    let choice = Choice {
        schedule: Some(schedule),
        consumers: Some(consumers),
        tile_k: Some(tile_k),
        ..Choice::default()
    };
    Workload::new(problem, &choice, &device.target()).unwrap_or_else(|e| panic!("{e}"))
}

/// Runs all schedules with codes of A, gate and up. `first_scale` returns the scale of the
/// first 16 elements of each row; the other scales are 1. The gate's accumulator must be 1.
fn check(
    [m, n]: [usize; 2],
    data: [Vec<u8>; 3],
    first_scale: [&dyn Fn(usize) -> u8; 3],
    exact: impl Fn(usize, usize) -> f64,
) {
    for scale_layout in [ScaleLayout::Plain, ScaleLayout::Block] {
        for (schedule, consumers, tile_k) in SCHEDULES {
            let problem = Problem {
                gate: Activation::None,
                scale_layout,
                ..Problem::new(m as u32, n as u32, 32)
            };
            let device = Device::cpu();
            let work = work(problem, (schedule, consumers, tile_k), &device);
            let scales = [m, n, n]
                .into_iter()
                .zip(first_scale)
                .map(|(rows, first_scale)| {
                    let plain: Vec<u8> = (0..rows)
                        .flat_map(|i| [first_scale(i), ONE_SCALE])
                        .collect();
                    scale_layout
                        .arrange(&plain, rows, 32)
                        .unwrap_or_else(|e| panic!("{e}"))
                });
            let specs = AnyWorkload::inputs(&work).into_iter();
            let tensors = specs.zip(plan_inputs(data.clone(), scales.collect()));
            let inputs = tensors.map(|(spec, data)| HostTensor { spec, data });
            let exact = (0..m * n).map(|i| (exact(i / n, i % n), 0.0)).collect();
            let data = RunData::new(inputs.collect()).with_reference(vec![exact]);
            let report = run(&work, &device, &RunOptions::with_data(data));
            let report = report.unwrap_or_else(|e| panic!("{e}"));
            assert!(
                report.passed(),
                "{schedule:?}, {scale_layout:?}, {consumers} / {tile_k}: {:?}",
                report.outputs
            );
        }
    }
}

#[test]
fn every_code_and_scale_of_a_weight_is_exact() {
    // Row j of the weight has all codes with scale j; row r of A selects code r.
    let a = packed(16, |row, k| if row == k { ONE_CODE } else { 0 });
    let up = packed(256, |_, k| if k < 16 { k as u8 } else { 0 });
    let gate = packed(256, |_, k| if k < 16 { ONE_CODE } else { 0 });
    let (one, row_scale) = (|_| ONE_SCALE, |row: usize| row as u8);
    check(
        [16, 256],
        [a, gate, up],
        [&one, &one, &row_scale],
        |r, j| products::product(r as u8, j as u8),
    );
}

#[test]
fn every_code_and_scale_of_a_is_exact() {
    // Row i of A has all codes with scale i, followed by a 1 for the gate.
    let gate_code = |k: usize| if k == 16 { ONE_CODE } else { 0 };
    let a = packed(256, |_, k| if k < 16 { k as u8 } else { gate_code(k) });
    let up = packed(16, |row, k| if row == k { ONE_CODE } else { 0 });
    let gate = packed(16, |_, k| gate_code(k));
    let (one, row_scale) = (|_| ONE_SCALE, |row: usize| row as u8);
    check(
        [256, 16],
        [a, gate, up],
        [&row_scale, &one, &one],
        |i, r| products::product(r as u8, i as u8),
    );
}

#[test]
fn full_range_codes_are_within_the_tolerance() {
    // All codes, scales of every exponent up to 448, and tensor scales that map the outputs to
    // the range of f16.
    for (schedule, consumers, tile_k) in SCHEDULES {
        let problem = Problem {
            scale_layout: ScaleLayout::Block,
            scales: true,
            ..Problem::new(40, 72, 608)
        };
        let device = Device::cpu();
        let work = work(problem, (schedule, consumers, tile_k), &device);
        let mut state = 1u64;
        let mut random = move || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
            (state >> 56) as u8
        };
        let inputs: Vec<_> = work
            .draw(0)
            .into_iter()
            .map(|mut tensor| {
                match tensor.spec.name {
                    "a" | "gate" | "up" => tensor.data.fill_with(&mut random),
                    // 0x7e is 448, and 0x7f is NaN.
                    name if name.ends_with("_scales") => {
                        tensor.data.fill_with(|| (random() & 0x7f).min(0x7e));
                    }
                    "scale_gate" => tensor = HostTensor::round(tensor.spec, [2f64.powi(-21)]),
                    _ => tensor = HostTensor::round(tensor.spec, [2f64.powi(-11)]),
                }
                tensor
            })
            .collect();
        let exact = &work.reference(&inputs)[0];
        let finite = exact.iter().filter(|(x, _)| x.is_finite() && *x != 0.0);
        assert!(finite.count() * 20 >= exact.len() * 19, "{exact:?}");
        let options = RunOptions::with_data(RunData::new(inputs));
        let report = run(&work, &device, &options);
        let report = report.unwrap_or_else(|e| panic!("{e}"));
        assert!(
            report.passed(),
            "{schedule:?}, {tile_k}: {:?}",
            report.outputs
        );
    }
}
