//! Random inputs, and the float64 reference.

use super::problem::{PointDistribution, Problem};
use crate::parallel;
use warpline_family::float::FloatType;
use warpline_family::numbers::{Random, element_value};
use warpline_family::tensor::HostTensor;

/// Returns inputs drawn from a seed.
pub(super) fn inputs(p: &Problem, seed: u64) -> Vec<HostTensor> {
    let mut random = Random::new(seed);
    let [value, shapes, starts, locations, weights] = p.input_specs();
    let sides = p.shapes.0.iter().flatten().map(|&side| f64::from(side));
    let level_starts = p.level_starts();
    vec![
        HostTensor::round(value, draw_values(p, &mut random)),
        HostTensor::round(shapes, sides),
        HostTensor::round(starts, level_starts.iter().map(|&n| n as f64)),
        HostTensor::round(locations, draw_locations(p, &mut random)),
        HostTensor::round(weights, draw_weights(p, &mut random)),
    ]
}

/// Random draws per normal number.
const DRAWS_PER_NORMAL: u64 = 2;

/// Returns units of random numbers. All cores draw them, but the numbers are those of one sequential stream:
/// unit `i` starts after `draws_before(i)` draws.
fn draw(
    random: &mut Random,
    [units, unit_len]: [usize; 2],
    draws_before: impl Fn(usize) -> u64 + Sync,
    fill_unit: impl Fn(&mut Random, usize, &mut [f64]) + Sync,
) -> Vec<f64> {
    let mut all = vec![0.0; units * unit_len];
    parallel::fill(&mut all, unit_len, |first, part| {
        let mut random = random.clone();
        random.skip(draws_before(first));
        for (i, numbers) in (first..).zip(part.chunks_mut(unit_len.max(1))) {
            fill_unit(&mut random, i, numbers);
        }
    });
    random.skip(draws_before(units));
    all
}

/// Draws normal values; the border of a halo is zero.
fn draw_values(p: &Problem, random: &mut Random) -> Vec<f64> {
    let is_inside = is_in_map(p);
    let per_pixel = (p.heads * p.channels) as usize;
    let draws_before = |pixel: usize| {
        let count = |pixels: &[bool]| pixels.iter().filter(|&&inside| inside).count();
        let (batches, rest) = (
            pixel / is_inside.len().max(1),
            pixel % is_inside.len().max(1),
        );
        let drawn = batches * count(&is_inside) + count(&is_inside[..rest]);
        DRAWS_PER_NORMAL * (drawn * per_pixel) as u64
    };
    let units = p.batch as usize * is_inside.len();
    draw(
        random,
        [units, per_pixel],
        draws_before,
        |random, pixel, numbers| {
            if is_inside[pixel % is_inside.len()] {
                numbers.fill_with(|| random.normal());
            }
        },
    )
}

/// Returns for each pixel in memory whether it is inside the map, not in the border.
fn is_in_map(p: &Problem) -> Vec<bool> {
    let border = u64::from(p.layout.border() / 2);
    let mut all = Vec::new();
    for &shape in &p.shapes.0 {
        let [height, width] = p.stored_size(shape);
        for y in 0..height {
            let row = y >= border && y < height - border;
            all.extend((0..width).map(|x| row && x >= border && x < width - border));
        }
    }
    all
}

/// Returns the position of a query, x and y in 0…1: its own pixel if there is one query per pixel, else a
/// position on a grid.
fn query_center(p: &Problem, query: u32) -> [f64; 2] {
    if u64::from(p.num_query) == p.total_pixels() {
        let border = f64::from(p.layout.border() / 2);
        let mut rest = u64::from(query);
        for &shape in &p.shapes.0 {
            let [height, width] = p.stored_size(shape);
            if rest < height * width {
                let pixel = [rest % width, rest / width];
                let sides = [shape[1], shape[0]].map(f64::from);
                return [0, 1].map(|i| {
                    let position = (pixel[i] as f64 - border + 0.5) / sides[i];
                    position.clamp(0.0, 1.0)
                });
            }
            rest -= height * width;
        }
    }
    let columns = f64::from(p.num_query).sqrt().ceil().max(1.0) as u32;
    let rows = p.num_query.div_ceil(columns).max(1);
    [(query % columns, columns), (query / columns, rows)]
        .map(|(index, count)| (f64::from(index) + 0.5) / f64::from(count))
}

/// Returns the queries of all heads and batches.
fn item_count(p: &Problem) -> usize {
    p.batch as usize * p.num_query as usize * p.heads as usize
}

/// Draws the locations of all points.
fn draw_locations(p: &Problem, random: &mut Random) -> Vec<f64> {
    let numbers_per_item = 2 * p.class().all_points() as usize;
    let draws = match p.locations {
        PointDistribution::Uniform => 1,
        PointDistribution::Grid => DRAWS_PER_NORMAL,
    };
    let draws_before = |item: usize| draws * (item * numbers_per_item) as u64;
    draw(
        random,
        [item_count(p), numbers_per_item],
        draws_before,
        |random, item, numbers| {
            let query = item / p.heads as usize % p.num_query as usize;
            let center = query_center(p, query as u32);
            let levels = numbers.chunks_mut(2 * p.points as usize);
            for (numbers, [height, width]) in levels.zip(&p.shapes.0) {
                let sides = [width, height].map(|&side| f64::from(side));
                for (i, number) in numbers.iter_mut().enumerate() {
                    *number = match p.locations {
                        PointDistribution::Uniform => random.uniform(),
                        PointDistribution::Grid => {
                            center[i % 2] + 3.0 * random.normal() / sides[i % 2]
                        }
                    };
                }
            }
        },
    )
}

/// Draws attention weights, which add up to 1 for every query and head.
fn draw_weights(p: &Problem, random: &mut Random) -> Vec<f64> {
    let points_per_item = p.class().all_points() as usize;
    let draws_before = |item: usize| DRAWS_PER_NORMAL * (item * points_per_item) as u64;
    draw(
        random,
        [item_count(p), points_per_item],
        draws_before,
        |random, _, numbers| {
            numbers.fill_with(|| random.normal().exp());
            let sum: f64 = numbers.iter().sum();
            numbers.iter_mut().for_each(|x| *x /= sum);
        },
    )
}

/// Computes the float64 reference from rounded inputs, with tolerances; batch by batch on all cores.
pub(super) fn reference(p: &Problem, inputs: &[HostTensor]) -> Vec<(f64, f64)> {
    let levels = levels(p, &inputs[1], &inputs[2]);
    let per_batch = inputs[0].data.len() / (p.batch as usize).max(1);
    let per_out = p.num_query as usize * (p.heads * p.channels) as usize;
    let mut out = vec![(0.0, 0.0); p.output_spec().elements()];
    for (b, out) in out.chunks_mut(per_out.max(1)).enumerate() {
        let value = decode(&inputs[0], &inputs[0].data[b * per_batch..][..per_batch]);
        let batch = Batch {
            problem: p,
            levels: &levels,
            rms: root_mean_square(&value),
            value,
            locations: &inputs[3],
            weights: &inputs[4],
        };
        let first = b * p.num_query as usize * p.heads as usize;
        parallel::fill(out, p.channels as usize, |item, part| {
            batch.items(first + item, part);
        });
    }
    out
}

/// A level in memory.
struct ReferenceLevel {
    sides: [f64; 2],
    start: i64,
    /// Pixels of a row.
    stride: i64,
}

fn levels(p: &Problem, shapes: &HostTensor, starts: &HostTensor) -> Vec<ReferenceLevel> {
    let sides: Vec<f64> = shapes.values().collect();
    let level = |(sides, start): (&[f64], f64)| ReferenceLevel {
        sides: [sides[0], sides[1]],
        start: start as i64,
        stride: sides[1] as i64 + i64::from(p.layout.border()),
    };
    sides
        .chunks_exact(2)
        .zip(starts.values())
        .map(level)
        .collect()
}

/// Converts the bytes of some elements of a tensor.
fn decode(tensor: &HostTensor, bytes: &[u8]) -> Vec<f64> {
    let dtype = tensor.spec.dtype;
    bytes
        .chunks_exact(dtype.bytes())
        .map(|b| element_value(dtype, b))
        .collect()
}

/// Returns one element of a tensor.
fn element(tensor: &HostTensor, index: usize) -> f64 {
    let dtype = tensor.spec.dtype;
    element_value(dtype, &tensor.data[index * dtype.bytes()..])
}

/// The inputs of a batch.
struct Batch<'a> {
    problem: &'a Problem,
    levels: &'a [ReferenceLevel],
    value: Vec<f64>,
    /// Root mean square of the values.
    rms: f64,
    locations: &'a HostTensor,
    weights: &'a HostTensor,
}

impl Batch<'_> {
    /// Computes consecutive items (query and head), from `first` over all batches.
    fn items(&self, first: usize, out: &mut [(f64, f64)]) {
        let channels = self.problem.channels as usize;
        let mut sums = vec![0.0; channels];
        for (item, out) in (first..).zip(out.chunks_mut(channels)) {
            sums.fill(0.0);
            let magnitude = self.rms * self.item(item, &mut sums);
            for (out, &x) in out.iter_mut().zip(&sums) {
                *out = (x, tolerance(self.problem, x, magnitude));
            }
        }
    }

    /// Adds the points of one item to `sums`, and returns the sum of the absolute attention weights.
    fn item(&self, item: usize, sums: &mut [f64]) -> f64 {
        let mut weight_sum = 0.0;
        let [heads, points] = [self.problem.heads, self.problem.points].map(|n| n as usize);
        let border = i64::from(self.problem.layout.border() / 2);
        for (i, level) in self.levels.iter().enumerate() {
            let [height, width] = level.sides;
            for point in 0..points {
                let index = (item * self.levels.len() + i) * points + point;
                let [x, y] = [0, 1].map(|axis| element(self.locations, 2 * index + axis));
                let (h, w) = (y * height - 0.5, x * width - 0.5);
                // A NaN location is outside, too.
                if !(h > -1.0 && w > -1.0 && h < height && w < width) {
                    continue;
                }
                let weight = element(self.weights, index);
                weight_sum += weight.abs();
                for (dy, dx) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                    let (row, col) = (h.floor() as i64 + dy, w.floor() as i64 + dx);
                    // The reference loads the border pixels of a halo, too.
                    let is_stored = |i: i64, side: f64| i >= -border && i < side as i64 + border;
                    if !is_stored(row, height) || !is_stored(col, width) {
                        continue;
                    }
                    let bilinear_weight =
                        (1.0 - (h - row as f64).abs()) * (1.0 - (w - col as f64).abs());
                    let pixel = level.start + (row + border) * level.stride + col + border;
                    let first = (pixel as usize * heads + item % heads) * sums.len();
                    let values = &self.value[first..first + sums.len()];
                    for (sum, v) in sums.iter_mut().zip(values) {
                        *sum += weight * bilinear_weight * v;
                    }
                }
            }
        }
        weight_sum
    }
}

/// Returns the root mean square of finite values.
fn root_mean_square(values: &[f64]) -> f64 {
    let finite = values.iter().filter(|x| x.is_finite());
    let squares: f64 = finite.map(|x| x * x).sum();
    (squares / values.len().max(1) as f64).sqrt()
}

/// Returns the tolerance of a result. Its absolute part is for values of about 1 and weights that add up to 1;
/// it grows with larger values.
fn tolerance(p: &Problem, x: f64, magnitude: f64) -> f64 {
    let magnitude = if magnitude > 1.25 { magnitude } else { 1.0 };
    let (absolute, relative_bits) = match p.dtype {
        FloatType::F16 => (2e-3, 10),
        FloatType::Bf16 => (4e-3, 7),
        FloatType::F32 => (2e-5, 18),
    };
    match x.is_finite() {
        true => absolute * magnitude + x.abs() * 0.5_f64.powi(relative_bits),
        false => 0.0,
    }
}
