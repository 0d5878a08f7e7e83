//! Points that are drawn, and the float64 reference.

use super::problem::{Locations, Problem};
use crate::float::Float;
use crate::numbers::Random;
use crate::tensor::HostTensor;

/// Inputs drawn from a seed.
pub(super) fn inputs(p: &Problem, seed: u64) -> Vec<HostTensor> {
    let mut random = Random::new(seed);
    let [value, shapes, starts, locations, weights] = p.specs();
    let pixels = inside(p);
    let per_pixel = (p.heads * p.channels) as usize;
    let values = (0..p.batch).flat_map(|_| pixels.iter());
    // The border of a halo is zero.
    let values: Vec<f64> = values
        .flat_map(|&inside| std::iter::repeat_n(inside, per_pixel))
        .map(|inside| if inside { random.normal() } else { 0.0 })
        .collect();
    let sides = p.shapes.0.iter().flatten().map(|&side| f64::from(side));
    let firsts = p.starts();
    let points = draw(p, &mut random);
    let softmaxed = (0..weights.elements() / p.class().all_points().max(1) as usize)
        .flat_map(|_| softmax(p.class().all_points(), &mut random))
        .collect::<Vec<f64>>();
    vec![
        HostTensor::round(value, values),
        HostTensor::round(shapes, sides),
        HostTensor::round(starts, firsts.iter().map(|&n| n as f64)),
        HostTensor::round(locations, points),
        HostTensor::round(weights, softmaxed),
    ]
}

/// Of each pixel in memory: is it one of the map, and not of a border?
fn inside(p: &Problem) -> Vec<bool> {
    let border = u64::from(p.layout.border() / 2);
    let mut all = Vec::new();
    for &shape in &p.shapes.0 {
        let [height, width] = p.stored(shape);
        for y in 0..height {
            let row = y >= border && y < height - border;
            all.extend((0..width).map(|x| row && x >= border && x < width - border));
        }
    }
    all
}

/// Where a query is itself, x and y in 0…1: at its own pixel, where there is a
/// query for each; else in rows over the map.
fn place(p: &Problem, query: u32) -> [f64; 2] {
    if u64::from(p.num_query) == p.spatial() {
        let border = f64::from(p.layout.border() / 2);
        let mut rest = u64::from(query);
        for &shape in &p.shapes.0 {
            let [height, width] = p.stored(shape);
            if rest < height * width {
                let pixel = [rest % width, rest / width];
                let sides = [shape[1], shape[0]].map(f64::from);
                return [0, 1].map(|i| {
                    let at = (pixel[i] as f64 - border + 0.5) / sides[i];
                    at.clamp(0.0, 1.0)
                });
            }
            rest -= height * width;
        }
    }
    let columns = f64::from(p.num_query).sqrt().ceil().max(1.0) as u32;
    let rows = p.num_query.div_ceil(columns).max(1);
    [(query % columns, columns), (query / columns, rows)]
        .map(|(at, of)| (f64::from(at) + 0.5) / f64::from(of))
}

/// The places of all points.
fn draw(p: &Problem, random: &mut Random) -> Vec<f64> {
    let mut all = Vec::with_capacity(p.specs()[3].elements());
    for _ in 0..p.batch {
        for query in 0..p.num_query {
            let own = place(p, query);
            for _ in 0..p.heads {
                for [height, width] in &p.shapes.0 {
                    for _ in 0..p.points {
                        let sides = [width, height].map(|&side| f64::from(side));
                        all.extend([0, 1].map(|i| match p.locations {
                            Locations::Uniform => random.uniform(),
                            Locations::Grid => own[i] + 3.0 * random.normal() / sides[i],
                        }));
                    }
                }
            }
        }
    }
    all
}

/// Weights of the points of a query, which add up to 1.
fn softmax(points: u32, random: &mut Random) -> Vec<f64> {
    let powers: Vec<f64> = (0..points).map(|_| random.normal().exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.iter().map(|x| x / sum).collect()
}

/// The float64 reference from rounded inputs, and the bounds.
pub(super) fn reference(p: &Problem, inputs: &[HostTensor]) -> Vec<(f64, f64)> {
    let of = |i: usize| inputs[i].values().collect::<Vec<f64>>();
    let (value, locations, weights) = (of(0), of(3), of(4));
    let (shapes, starts) = (of(1), of(2));
    let [heads, channels, points] = [p.heads, p.channels, p.points].map(|n| n as usize);
    let levels = shapes.len() / 2;
    let (spatial, queries) = (p.spatial() as usize, p.num_query as usize);
    let border = (p.layout.border() / 2) as i64;
    let mut out = Vec::with_capacity(p.out().elements());
    let mut sums = vec![0.0; channels];
    for b in 0..p.batch as usize {
        for item in 0..queries * heads {
            let head = item % heads;
            sums.fill(0.0);
            for point in 0..levels * points {
                let level = point / points;
                let at = (b * queries * heads + item) * levels * points + point;
                let (height, width) = (shapes[2 * level], shapes[2 * level + 1]);
                let (x, y) = (locations[2 * at], locations[2 * at + 1]);
                let (h, w) = (y * height - 0.5, x * width - 0.5);
                // What is not a number is not inside either.
                if !(h > -1.0 && w > -1.0 && h < height && w < width) {
                    continue;
                }
                for (dy, dx) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                    let (row, col) = (h.floor() as i64 + dy, w.floor() as i64 + dx);
                    let outside = row < 0 || col < 0;
                    if outside || row >= height as i64 || col >= width as i64 {
                        continue;
                    }
                    let share = (1.0 - (h - row as f64).abs()) * (1.0 - (w - col as f64).abs());
                    let stride = width as i64 + 2 * border;
                    let pixel = starts[level] as i64 + (row + border) * stride + col + border;
                    let first = ((b * spatial + pixel as usize) * heads + head) * channels;
                    for (sum, v) in sums.iter_mut().zip(&value[first..first + channels]) {
                        *sum += weights[at] * share * v;
                    }
                }
            }
            out.extend(sums.iter().map(|&x| (x, bound(p, x))));
        }
    }
    out
}

/// How far a result may be off, where values are about 1 and weights add up to 1.
fn bound(p: &Problem, x: f64) -> f64 {
    let (least, of) = match p.dtype {
        Float::F16 => (2e-3, 10),
        Float::Bf16 => (4e-3, 7),
        Float::F32 => (2e-5, 18),
    };
    match x.is_finite() {
        true => least + x.abs() * 0.5_f64.powi(of),
        false => 0.0,
    }
}
