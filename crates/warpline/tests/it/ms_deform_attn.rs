//! Deformable attention at its edges: points on pixel centres are exact; those
//! on and beyond borders, in maps of one pixel, and those that are no numbers
//! count as in the reference.

use warpline::kernels::ms_deform_attn::{Choice, Form, Layout, MsDeformAttn, Problem, Reads};
use warpline::kernels::{AnyWork, Float, HostTensor, Work};
use warpline::{Device, RunData, RunOptions, Timing, run};

/// A way in which pixels are read: layout, reads, levels kept, form.
type Way = (Layout, Reads, u32, Form);

/// Every way.
fn ways() -> impl Iterator<Item = Way> {
    let layouts = [Layout::Standard, Layout::Halo].into_iter();
    layouts.flat_map(|layout| {
        let reads = [Reads::Pair, Reads::Pixel].into_iter();
        let gathered = reads.flat_map(move |reads| {
            let kept = [(0, Form::Plain), (2, Form::Plain), (2, Form::Specialized)];
            kept.map(|(held, form)| (layout, reads, held, form))
        });
        gathered.chain([(layout, Reads::Box, 0, Form::Boxes)])
    })
}

/// The work in one of these ways, and its inputs as they are drawn.
fn work(problem: &Problem, way: Way) -> (Work<MsDeformAttn>, Vec<HostTensor>) {
    let (layout, reads, held, form) = way;
    let problem = Problem {
        layout,
        ..problem.clone()
    };
    let gathers = form != Form::Boxes;
    let choice = Choice {
        reads: gathers.then_some(reads),
        held: gathers.then_some(held),
        form: Some(form),
        warps: Some(match form {
            Form::Plain => 2,
            Form::Specialized => 8,
            Form::Boxes => 4,
        }),
        ..Choice::default()
    };
    let target = Device::cpu().target();
    let work = Work::new(problem, &choice, &target).unwrap_or_else(|e| panic!("{e}"));
    let inputs = work.draw(3);
    (work, inputs)
}

fn holds(work: &dyn AnyWork, data: RunData, way: Way) {
    let outcome = run(work, &Device::cpu(), &RunOptions::with_data(data));
    let outcome = outcome.unwrap_or_else(|e| panic!("{way:?}: {e}"));
    assert!(outcome.passed(), "{way:?}: {:?}", outcome.outputs);
}

#[test]
fn integers_at_pixel_centres_come_out_as_they_are() {
    // Sides are powers of two, so that centres are numbers of any type.
    let levels = [[8, 16], [4, 2], [1, 1]];
    for dtype in [Float::F16, Float::F32] {
        let problem = Problem {
            dtype,
            ..Problem::new(1, 16, 2, 2, &levels)
        };
        for way in ways() {
            let (work, mut inputs) = work(&problem, way);
            let centre = |i: usize, side: u32| (i as u32 % side) as f64 / side as f64;
            let points = inputs[4].spec.elements();
            let place = |i: usize| {
                let [height, width] = levels[i / 2 % 3];
                let half = |side: u32| 0.5 / side as f64;
                [
                    centre(i * 7, width) + half(width),
                    centre(i * 5, height) + half(height),
                ]
            };
            let places: Vec<f64> = (0..points).flat_map(place).collect();
            let whole: Vec<f64> = inputs[0].values().map(|x| (8.0 * x).round()).collect();
            inputs[0] = HostTensor::round(inputs[0].spec.clone(), whole);
            inputs[3] = HostTensor::round(inputs[3].spec.clone(), places);
            let eighths = (0..points).map(|i| (i % 5) as f64 / 8.0);
            inputs[4] = HostTensor::round(inputs[4].spec.clone(), eighths);
            let exact = work.reference(&inputs).remove(0).into_iter();
            let answer = vec![exact.map(|(x, _)| (x, 0.0)).collect()];
            holds(&work, RunData::new(inputs).with_reference(answer), way);
        }
    }
}

#[test]
fn borders_and_what_is_beyond_count_as_in_the_reference() {
    let levels = [[6, 5], [2, 1], [1, 3], [1, 1]];
    for &dtype in Float::ALL {
        let problem = Problem {
            dtype,
            point_dtype: Some(Float::F32),
            ..Problem::new(1, 12, 2, 3, &levels)
        };
        for way in ways() {
            let (work, mut inputs) = work(&problem, way);
            let special = |i: usize, side: u32| {
                let side = f64::from(side);
                let all = [
                    0.0,
                    1.0,
                    -0.5 / side,         // one before the first centre: -1 exactly
                    (side + 0.5) / side, // one behind the last
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
            let place = |i: usize| {
                let [height, width] = levels[i / 3 % 4];
                [special(i * 5 + i / 16, width), special(i * 3, height)]
            };
            let points = inputs[4].spec.elements();
            let places: Vec<f64> = (0..points).flat_map(place).collect();
            inputs[3] = HostTensor::round(inputs[3].spec.clone(), places);
            holds(&work, RunData::new(inputs), way);
        }
    }
}

#[test]
fn values_of_any_size_and_borders_that_are_not_zero_count_as_they_lie() {
    let problem = Problem {
        point_dtype: Some(Float::F32),
        ..Problem::new(2, 40, 2, 3, &[[6, 5], [2, 3]])
    };
    for way in ways() {
        let (work, mut inputs) = work(&problem, way);
        let elements = inputs[0].spec.elements();
        let large = (0..elements).map(|i| (i * 7919 % 401) as f64 - 200.0);
        inputs[0] = HostTensor::round(inputs[0].spec.clone(), large);
        // Points beyond the centres at the border reach it.
        let points = inputs[3].spec.elements();
        let places = (0..points).map(|i| [0.02, 0.98, 0.5, 0.31][i * 13 % 29 % 4]);
        inputs[3] = HostTensor::round(inputs[3].spec.clone(), places);
        holds(&work, RunData::new(inputs), way);
    }
}

#[test]
fn a_weight_that_is_no_number_counts_inside_alone() {
    let problem = Problem::new(1, 4, 2, 2, &[[4, 4], [2, 2]]);
    for way in ways() {
        let (work, mut inputs) = work(&problem, way);
        let points = inputs[4].spec.elements();
        // The first query's first point is far outside, the second's inside.
        let per_query = 2 * 4;
        let place = |i: usize| match i {
            0 => [9.0, 9.0],
            _ => [0.4, 0.6],
        };
        let places: Vec<f64> = (0..points).flat_map(place).collect();
        let weights = (0..points).map(|i| match i {
            0 => f64::NAN,
            i if i == per_query => f64::NAN,
            _ => 0.25,
        });
        inputs[3] = HostTensor::round(inputs[3].spec.clone(), places);
        inputs[4] = HostTensor::round(inputs[4].spec.clone(), weights);
        let (good, bad) = {
            let all = &work.reference(&inputs)[0];
            (all[0].0, all[2 * 32].0)
        };
        assert!(good.is_finite() && bad.is_nan());
        holds(&work, RunData::new(inputs), way);
    }
}

/// Runs a form on a problem with timings drawn from a seed.
fn drawn(problem: Problem, choice: &Choice, seed: u64) {
    let mut options = RunOptions::default();
    (options.seed, options.timing) = (seed, Timing::Random);
    let work = Work::<MsDeformAttn>::new(problem, choice, &Device::cpu().target());
    let work = work.unwrap_or_else(|e| panic!("{e}"));
    let outcome = run(&work, &Device::cpu(), &options);
    let outcome = outcome.unwrap_or_else(|e| panic!("{choice:?}: {e}"));
    assert!(outcome.passed(), "{choice:?}: {:?}", outcome.outputs);
}

#[test]
fn producers_of_every_ratio_and_rings_of_every_length_are_right() {
    for (producers, stages) in [(1, 2), (1, 4), (2, 3), (3, 2), (4, 4)] {
        for (queries, copied) in [(1, true), (59, false), (129, true)] {
            let choice = Choice {
                form: Some(Form::Specialized),
                producers: Some(producers),
                stages: Some(stages),
                copied: Some(copied),
                warps: Some(8),
                ctas: Some(2),
                ..Choice::default()
            };
            let problem = Problem::new(2, queries, 1, 8, &[[9, 7], [5, 4], [1, 1]]);
            drawn(problem, &choice, producers.into());
        }
    }
}

#[test]
fn boxes_of_every_number_of_warps_and_length_of_rings_are_right() {
    for (warps, stages) in [(2, 2), (6, 3), (20, 4)] {
        for queries in [1, 2 * warps - 1, 129] {
            let choice = Choice {
                form: Some(Form::Boxes),
                stages: Some(stages),
                warps: Some(warps),
                ctas: Some(2),
                ..Choice::default()
            };
            let problem = Problem::new(2, queries, 1, 8, &[[9, 7], [5, 4], [1, 1]]);
            drawn(problem, &choice, warps.into());
        }
    }
}
