//! Random problems: the extents of linear layers, some of them odd, in all element types.

use warpline_kernels::gemm::{ALayout, Activation, OperandLayout, OperandType, Problem};
use warpline_kernels::numbers::Random;
use warpline_kernels::weights::WeightLayout;

/// The maximum number of operations of a problem, so that its measurement is short.
const MAX_FLOPS: f64 = 2.5e12;
/// The maximum size of an operand in bytes.
const MAX_OPERAND_BYTES: u64 = 700 << 20;

/// Random numbers, and the least and the largest M.
struct Source {
    random: Random,
    rows: [f64; 2],
}

impl Source {
    /// Draws from the log-uniform distribution on `min` to `max`.
    fn log_uniform(&mut self, min: f64, max: f64) -> f64 {
        min * (max / min).powf(self.random.uniform())
    }
}

/// A kind of problems and the number of them.
type Kind = (usize, fn(&mut Source) -> Problem);

const KINDS: [Kind; 8] = [
    (360, |source| bf16(source)),
    (70, |source| with_epilogue(source)),
    (130, |source| fp8(source)),
    (130, |source| gated(source)),
    (30, |source| gated_fp8(source)),
    (30, |source| transposed(source)),
    (30, |source| tf32(source)),
    (60, |source| unaligned(source)),
];

/// Draws the problems of a seed, with an M of `rows`. Kinds are mixed, so that a prefix has some of each.
pub fn draw(seed: u64, rows: [u32; 2]) -> Vec<Problem> {
    let mut source = Source {
        random: Random::new(seed),
        rows: rows.map(f64::from),
    };
    let mut all: Vec<(f64, Problem)> = Vec::new();
    for (count, draw) in KINDS {
        for i in 0..count {
            let position = (i as f64 + 0.5) / count as f64;
            all.push((position, draw_valid(&mut source, draw)));
        }
    }
    all.sort_by(|(x, _), (y, _)| x.total_cmp(y));
    all.into_iter().map(|(_, problem)| problem).collect()
}

/// Draws problems until one is small enough.
fn draw_valid(source: &mut Source, draw: fn(&mut Source) -> Problem) -> Problem {
    loop {
        let problem = draw(source);
        let [m, n, k] = [problem.m, problem.n, problem.k].map(u64::from);
        let size = problem.dtype.a_dtype().bytes() as u64;
        let weights = if problem.up.is_some() { 2 * n } else { n };
        let flops = 2.0 * (m * weights) as f64 * k as f64;
        let largest = (m * k).max(weights * k).max(m * n) * size;
        if flops <= MAX_FLOPS && largest <= MAX_OPERAND_BYTES {
            return problem;
        }
    }
}

/// Draws the rows of A: tokens, sometimes a round number.
fn rows(source: &mut Source) -> u32 {
    let [min, max] = source.rows;
    let m = source.log_uniform(min, max) as u32;
    match source.random.below(4) {
        0 => m,
        1 => m.next_multiple_of(8),
        2 => m.next_power_of_two(),
        _ if m > 256 => m.next_multiple_of(64),
        _ => m,
    }
}

/// Draws a dimension of a weight: a multiple of 8, mostly of 64 or 128.
fn width(source: &mut Source, min: f64, max: f64) -> u32 {
    let n = source.log_uniform(min, max) as u32;
    let unit = source.random.pick(&[8, 16, 64, 64, 128, 128, 256]);
    n.next_multiple_of(unit)
}

fn extents(source: &mut Source) -> [u32; 3] {
    let (n, k) = (width(source, 256.0, 32768.0), width(source, 256.0, 20000.0));
    [rows(source), n, k]
}

fn of_type(source: &mut Source, dtype: OperandType) -> Problem {
    let [m, n, k] = extents(source);
    Problem::new(m, n, k, dtype)
}

fn bf16(source: &mut Source) -> Problem {
    of_type(source, OperandType::Bf16)
}

fn with_epilogue(source: &mut Source) -> Problem {
    let problem = bf16(source);
    match source.random.below(4) {
        0 => Problem {
            bias: true,
            ..problem
        },
        1 => Problem {
            bias: true,
            activation: Activation::GeluTanh,
            ..problem
        },
        2 => Problem {
            bias: true,
            activation: Activation::GeluErf,
            ..problem
        },
        _ => Problem {
            bias: true,
            residual: true,
            ..problem
        },
    }
}

fn fp8(source: &mut Source) -> Problem {
    let [m, n, k] = extents(source);
    let (n, k) = (n.next_multiple_of(16), k.next_multiple_of(16));
    Problem {
        scales: true,
        ..Problem::new(m, n, k, OperandType::E4m3)
    }
}

fn gated(source: &mut Source) -> Problem {
    Problem {
        activation: Activation::Silu,
        up: Some(WeightLayout::Separate),
        ..bf16(source)
    }
}

fn gated_fp8(source: &mut Source) -> Problem {
    Problem {
        activation: Activation::Silu,
        up: Some(WeightLayout::Separate),
        ..fp8(source)
    }
}

fn transposed(source: &mut Source) -> Problem {
    let problem = Problem {
        layout: OperandLayout::Kn,
        ..bf16(source)
    };
    let m = problem.m.next_multiple_of(8);
    match source.random.percent(30) {
        true => Problem {
            a_layout: ALayout::Km,
            m,
            ..problem
        },
        false => problem,
    }
}

fn tf32(source: &mut Source) -> Problem {
    let problem = of_type(source, OperandType::F32);
    match source.random.percent(30) {
        true => Problem {
            layout: OperandLayout::Kn,
            ..problem
        },
        false => problem,
    }
}

/// Draws a problem with operands or an output that TMA cannot address.
fn unaligned(source: &mut Source) -> Problem {
    let [m, n, k] = extents(source);
    match source.random.below(4) {
        0 => Problem::new(m, n, k - 1, OperandType::Bf16),
        1 => Problem::new(
            m,
            n,
            k - 2 * source.random.below(3) as u32 - 2,
            OperandType::Bf16,
        ),
        2 => Problem::new(
            m,
            n - 1 - source.random.below(7) as u32,
            k,
            OperandType::Bf16,
        ),
        _ => Problem {
            a_align: Some(2),
            ..Problem::new(m, n, k, OperandType::Bf16)
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpline_family::Family;
    use warpline_kernels::gemm::Gemm;

    #[test]
    fn problems_are_valid_and_follow_from_the_seed() {
        let all = draw(7, [1, 8192]);
        assert_eq!(all.len(), KINDS.iter().map(|(n, _)| n).sum::<usize>());
        for problem in &all {
            Gemm::check(problem).unwrap();
        }
        assert!(all == draw(7, [1, 8192]) && all != draw(8, [1, 8192]));
    }
}
