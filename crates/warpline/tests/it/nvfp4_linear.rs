//! The NVFP4 linear layer: every code with every scale is exact, in every schedule.
//!
//! Takes about 4 s.

use warpline::kernels::nvfp4::{ScaleLayout, codes, products};
use warpline::kernels::nvfp4_dual_gemm::{Choice, ScheduleKind};
use warpline::kernels::nvfp4_linear::{Nvfp4Linear, Problem};
use warpline::kernels::{AnyWorkload, FloatType, HostTensor, Workload};
use warpline::{Device, RunData, RunOptions, run};

/// The scale with value 1.
const ONE_SCALE: u8 = 0x38;

/// Schedule, consumers, `tile_m` and `tile_k`: K in the order of the codes, K as it is (tiles of 128 tokens
/// or more), and `warps`.
const SCHEDULES: [(ScheduleKind, u32, u32, u32); 4] = [
    (ScheduleKind::Cooperative, 2, 16, 64),
    (ScheduleKind::Cooperative, 2, 16, 256),
    (ScheduleKind::Cooperative, 2, 128, 64),
    (ScheduleKind::Warps, 2, 16, 512),
];

/// Row j of the weight has all codes with scale j; row r of A selects code r. With a
/// K of 256, plain scales are loaded as they are.
#[test]
fn every_code_and_scale_is_exact() {
    let (m, n) = (16usize, 256usize);
    for (k, scale_layout) in [(256, ScaleLayout::Plain), (32, ScaleLayout::Block)] {
        for (schedule, consumers, tile_m, tile_k) in SCHEDULES {
            for dtype in [FloatType::F16, FloatType::Bf16] {
                let problem = Problem {
                    dtype,
                    scale_layout,
                    ..Problem::new(m as u32, n as u32, k as u32)
                };
                let choice = Choice {
                    schedule: Some(schedule),
                    consumers: Some(consumers),
                    tile_m: Some(tile_m),
                    tile_k: Some(tile_k),
                    ..Choice::default()
                };
                let device = Device::cpu();
                let work = Workload::<Nvfp4Linear>::new(problem, &choice, &device.target());
                let work = work.unwrap_or_else(|e| panic!("{e}"));
                // The last 16 elements of K have the same codes, so that lanes of every group are used.
                let first = k - 16;
                let row: Vec<u8> = (0..k)
                    .map(|i| if i < first { 0 } else { (i - first) as u8 })
                    .collect();
                let weight = codes::pack(&row.repeat(n)).unwrap_or_else(|e| panic!("{e}"));
                let plain: Vec<u8> = (0..n)
                    .flat_map(|j| {
                        (0..k / 16).map(move |g| if g == k / 16 - 1 { j as u8 } else { ONE_SCALE })
                    })
                    .collect();
                let scales = scale_layout
                    .arrange(&plain, n, k)
                    .unwrap_or_else(|e| panic!("{e}"));
                let one_hot = (0..m * k).map(|i| f64::from(u8::from(i % k == first + i / k)));
                let specs = AnyWorkload::inputs(&work);
                let a = HostTensor::round(specs[0].clone(), one_hot);
                let coded = specs[1..].iter().zip([weight, scales]);
                let coded = coded.map(|(spec, data)| HostTensor {
                    spec: spec.clone(),
                    data,
                });
                let inputs = std::iter::once(a).chain(coded).collect();
                let exact =
                    (0..m * n).map(|i| (products::product((i / n) as u8, (i % n) as u8), 0.0));
                let data = RunData::new(inputs).with_reference(vec![exact.collect()]);
                let report = run(&work, &device, &RunOptions::with_data(data));
                let report = report.unwrap_or_else(|e| panic!("{e}"));
                assert!(
                    report.passed(),
                    "{schedule:?}, {tile_m} / {tile_k}, {dtype:?}, K {k}, {scale_layout:?}: {:?}",
                    report.outputs
                );
            }
        }
    }
}
