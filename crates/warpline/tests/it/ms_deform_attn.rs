//! Edge cases of deformable attention. Points at pixel centers are exact. Points on and beyond borders,
//! in levels of one pixel, and NaN points match the reference.

use warpline::kernels::ms_deform_attn::{
    Choice, CornerReads, LevelLayout, MsDeformAttn, Problem, Schedule,
};
use warpline::kernels::{AnyWorkload, FloatType, HostTensor, Workload};
use warpline::{Device, RunData, RunOptions, Timing, run};

/// A variant of the kernel: layout, corner reads, resident levels, schedule.
type Variant = (LevelLayout, CornerReads, u32, Schedule);

/// Returns all variants.
fn variants() -> impl Iterator<Item = Variant> {
    let layouts = [LevelLayout::Standard, LevelLayout::Halo].into_iter();
    layouts.flat_map(|layout| {
        let reads = [CornerReads::Pair, CornerReads::Pixel].into_iter();
        let gathered = reads.flat_map(move |reads| {
            let schedules = [
                (0, Schedule::Plain),
                (2, Schedule::Plain),
                (2, Schedule::Specialized),
            ];
            schedules.map(|(resident_levels, schedule)| (layout, reads, resident_levels, schedule))
        });
        gathered.chain([(layout, CornerReads::Box, 0, Schedule::Boxes)])
    })
}

/// Returns the workload of a variant and its random inputs.
fn work(problem: &Problem, variant: Variant) -> (Workload<MsDeformAttn>, Vec<HostTensor>) {
    let (layout, reads, resident_levels, schedule) = variant;
    let problem = Problem {
        layout,
        ..problem.clone()
    };
    let gathers = schedule != Schedule::Boxes;
    let choice = Choice {
        reads: gathers.then_some(reads),
        resident_levels: gathers.then_some(resident_levels),
        schedule: Some(schedule),
        warps: Some(match schedule {
            Schedule::Plain => 2,
            Schedule::Specialized => 8,
            Schedule::Boxes => 4,
        }),
        ..Choice::default()
    };
    let target = Device::cpu().target();
    let work = Workload::new(problem, &choice, &target).unwrap_or_else(|e| panic!("{e}"));
    let inputs = work.draw(3);
    (work, inputs)
}

fn check(work: &dyn AnyWorkload, data: RunData, variant: Variant) {
    let report = run(work, &Device::cpu(), &RunOptions::with_data(data));
    let report = report.unwrap_or_else(|e| panic!("{variant:?}: {e}"));
    assert!(report.passed(), "{variant:?}: {:?}", report.outputs);
}

#[test]
fn integers_at_pixel_centers_are_exact() {
    // Extents are powers of two, so that centers are exact in every type.
    let levels = [[8, 16], [4, 2], [1, 1]];
    for dtype in [FloatType::F16, FloatType::F32] {
        let problem = Problem {
            dtype,
            ..Problem::new(1, 16, 2, 2, &levels)
        };
        for variant in variants() {
            let (work, mut inputs) = work(&problem, variant);
            let pixel = |i: usize, side: u32| (i as u32 % side) as f64 / side as f64;
            let points = inputs[4].spec.elements();
            let point = |i: usize| {
                let [height, width] = levels[i / 2 % 3];
                let half = |side: u32| 0.5 / side as f64;
                [
                    pixel(i * 7, width) + half(width),
                    pixel(i * 5, height) + half(height),
                ]
            };
            let locations: Vec<f64> = (0..points).flat_map(point).collect();
            let integers: Vec<f64> = inputs[0].values().map(|x| (8.0 * x).round()).collect();
            inputs[0] = HostTensor::round(inputs[0].spec.clone(), integers);
            inputs[3] = HostTensor::round(inputs[3].spec.clone(), locations);
            let eighths = (0..points).map(|i| (i % 5) as f64 / 8.0);
            inputs[4] = HostTensor::round(inputs[4].spec.clone(), eighths);
            let exact = work.reference(&inputs).remove(0).into_iter();
            let reference = vec![exact.map(|(x, _)| (x, 0.0)).collect()];
            check(
                &work,
                RunData::new(inputs).with_reference(reference),
                variant,
            );
        }
    }
}

#[test]
fn points_on_and_beyond_borders_match_the_reference() {
    let levels = [[6, 5], [2, 1], [1, 3], [1, 1]];
    for &dtype in FloatType::ALL {
        let problem = Problem {
            dtype,
            point_dtype: Some(FloatType::F32),
            ..Problem::new(1, 12, 2, 3, &levels)
        };
        for variant in variants() {
            let (work, mut inputs) = work(&problem, variant);
            let special = |i: usize, side: u32| {
                let side = f64::from(side);
                let all = [
                    0.0,
                    1.0,
                    -0.5 / side,         // one pixel before the first center: exactly -1
                    (side + 0.5) / side, // one pixel after the last center
                    -0.49 / side,
                    (side + 0.49) / side,
                    -3.0,
                    7.5,
                    f64::NAN,
                    f64::INFINITY,
                    f64::NEG_INFINITY,
                    1e30,
                    0.5,
                    0.25 / side,
                    -0.0,
                    1e-8,
                ];
                all[i % all.len()]
            };
            let point = |i: usize| {
                let [height, width] = levels[i / 3 % 4];
                [special(i * 5 + i / 16, width), special(i * 3, height)]
            };
            let points = inputs[4].spec.elements();
            let locations: Vec<f64> = (0..points).flat_map(point).collect();
            inputs[3] = HostTensor::round(inputs[3].spec.clone(), locations);
            check(&work, RunData::new(inputs), variant);
        }
    }
}

#[test]
fn large_values_and_nonzero_borders_match_the_reference() {
    let problem = Problem {
        point_dtype: Some(FloatType::F32),
        ..Problem::new(2, 40, 2, 3, &[[6, 5], [2, 3]])
    };
    for variant in variants() {
        let (work, mut inputs) = work(&problem, variant);
        let elements = inputs[0].spec.elements();
        let large = (0..elements).map(|i| (i * 7919 % 401) as f64 - 200.0);
        inputs[0] = HostTensor::round(inputs[0].spec.clone(), large);
        // Points beyond the outermost centers interpolate with the border.
        let points = inputs[3].spec.elements();
        let locations = (0..points).map(|i| [0.02, 0.98, 0.5, 0.31][i * 13 % 29 % 4]);
        inputs[3] = HostTensor::round(inputs[3].spec.clone(), locations);
        check(&work, RunData::new(inputs), variant);
    }
}

#[test]
fn a_nan_weight_counts_only_for_points_inside_the_level() {
    let problem = Problem::new(1, 4, 2, 2, &[[4, 4], [2, 2]]);
    for variant in variants() {
        let (work, mut inputs) = work(&problem, variant);
        let points = inputs[4].spec.elements();
        // The first point is far outside in the first query and inside in the second.
        let per_query = 2 * 4;
        let point = |i: usize| match i {
            0 => [9.0, 9.0],
            _ => [0.4, 0.6],
        };
        let locations: Vec<f64> = (0..points).flat_map(point).collect();
        let weights = (0..points).map(|i| match i {
            0 => f64::NAN,
            i if i == per_query => f64::NAN,
            _ => 0.25,
        });
        inputs[3] = HostTensor::round(inputs[3].spec.clone(), locations);
        inputs[4] = HostTensor::round(inputs[4].spec.clone(), weights);
        let (finite, nan) = {
            let all = &work.reference(&inputs)[0];
            (all[0].0, all[2 * 32].0)
        };
        assert!(finite.is_finite() && nan.is_nan());
        check(&work, RunData::new(inputs), variant);
    }
}

/// Checks a problem under the random timing of a seed.
fn check_random_timing(problem: Problem, choice: &Choice, seed: u64) {
    let mut options = RunOptions::default();
    (options.seed, options.timing) = (seed, Timing::Random);
    let work = Workload::<MsDeformAttn>::new(problem, choice, &Device::cpu().target());
    let work = work.unwrap_or_else(|e| panic!("{e}"));
    let report = run(&work, &Device::cpu(), &options);
    let report = report.unwrap_or_else(|e| panic!("{choice:?}: {e}"));
    assert!(report.passed(), "{choice:?}: {:?}", report.outputs);
}

#[test]
fn all_producer_counts_and_ring_lengths_pass() {
    for (producers, stages) in [(1, 2), (1, 4), (2, 3), (3, 2), (4, 4)] {
        for (queries, tma_points) in [(1, true), (59, false), (129, true)] {
            let choice = Choice {
                schedule: Some(Schedule::Specialized),
                producers: Some(producers),
                stages: Some(stages),
                tma_points: Some(tma_points),
                warps: Some(8),
                ctas: Some(2),
                ..Choice::default()
            };
            let problem = Problem::new(2, queries, 1, 8, &[[9, 7], [5, 4], [1, 1]]);
            check_random_timing(problem, &choice, producers.into());
        }
    }
}

#[test]
fn boxes_pass_for_all_warp_counts_and_ring_lengths() {
    for (warps, stages) in [(2, 2), (6, 3), (20, 4)] {
        for queries in [1, 2 * warps - 1, 129] {
            let choice = Choice {
                schedule: Some(Schedule::Boxes),
                stages: Some(stages),
                warps: Some(warps),
                ctas: Some(2),
                ..Choice::default()
            };
            let problem = Problem::new(2, queries, 1, 8, &[[9, 7], [5, 4], [1, 1]]);
            check_random_timing(problem, &choice, warps.into());
        }
    }
}
