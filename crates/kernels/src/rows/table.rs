//! The test table of every row-wise family.

use super::config::{Choice, Schedule, WeightStorage};
use super::op::RowOp;
use super::problem::Problem;
use warpline_family::family::TestCase;
use warpline_family::field::{FieldKind, Fields};
use warpline_family::float::FloatType;

/// Returns small problems that reach every path.
pub(super) fn cases<K: RowOp>() -> Vec<TestCase<Problem<K::Options>, Choice>> {
    let mut cases = Vec::new();
    let mut add = |rows, cols, dtype, choice: Choice| {
        let problem = Problem::dense(rows, cols, dtype, K::Options::default());
        cases.push(TestCase { problem, choice });
    };
    let schedule = |schedule| Choice {
        schedule: Some(schedule),
        ..Choice::default()
    };

    // Heuristic selection at the lengths where it changes, aligned and not.
    for &dtype in FloatType::ALL {
        for cols in [1, 2, 7, 8, 31, 33, 64, 100, 257, 1000, 1024] {
            add(5, cols, dtype, Choice::default());
        }
    }
    // 0, 1, S - 1, S, S + 1 and 2 S + 1 iterations of one CTA, and a partial block.
    for kind in [
        Schedule::DoubleBuffer,
        Schedule::Specialized,
        Schedule::ThreeRoles,
    ] {
        let stages = if kind == Schedule::DoubleBuffer { 2 } else { 3 };
        for rows in [0, 1, 2, 3, 4, 5, 7, 8, 15] {
            let choice = Choice {
                threads: Some(32),
                block: Some(2),
                stages: Some(stages),
                ctas: Some(1),
                ..schedule(kind)
            };
            add(rows, 520, FloatType::Bf16, choice);
        }
    }
    // Several warps per row, several rows at once, full and partial last units.
    for kind in [
        Schedule::Direct,
        Schedule::DoubleBuffer,
        Schedule::Specialized,
        Schedule::ThreeRoles,
    ] {
        for (threads, block) in [(64, 1), (64, 2), (96, 2), (128, 1)] {
            for cols in [1024, 1528] {
                let choice = Choice {
                    threads: Some(threads),
                    block: Some(block),
                    ctas: Some(2),
                    ..schedule(kind)
                };
                add(7, cols, FloatType::F32, choice);
            }
        }
    }
    // Clusters whose CTAs hold segments that differ by one unit.
    for kind in [
        Schedule::Direct,
        Schedule::DoubleBuffer,
        Schedule::Specialized,
        Schedule::ThreeRoles,
    ] {
        for (cluster, cols) in [(2, 1032), (3, 1032), (4, 4096), (8, 4104)] {
            let choice = Choice {
                threads: Some(64),
                block: Some(2),
                cluster: Some(cluster),
                // Three stages reach the same paths as eight, and large clusters run slowly.
                stages: (kind.has_queue() && cluster > 2).then_some(3),
                ctas: Some(2 * cluster),
                ..schedule(kind)
            };
            add(5, cols, FloatType::F16, choice);
        }
    }
    let sixteen = Choice {
        cluster: Some(16),
        block: Some(2),
        threads: Some(32),
        stages: Some(3),
        ..schedule(Schedule::Specialized)
    };
    add(3, 4096, FloatType::Bf16, sixteen);
    // Weights outside registers.
    for weights in [WeightStorage::Shared, WeightStorage::Global] {
        for cluster in [1, 2] {
            let choice = Choice {
                threads: Some(64),
                block: Some(2),
                cluster: Some(cluster),
                weights: Some(weights),
                ctas: Some(2 * cluster),
                ..schedule(Schedule::Specialized)
            };
            add(5, 1032, FloatType::Bf16, choice.clone());
            add(5, 1032, FloatType::F32, choice);
        }
    }
    // Two-pass, aligned and not, shorter and longer than one step of a pass.
    for cols in [5, 4096, 4099, 40000] {
        add(2, cols, FloatType::Bf16, schedule(Schedule::TwoPass));
    }
    add(2, 20000, FloatType::F32, schedule(Schedule::TwoPass));

    // An address that is not aligned to 16 bytes.
    for cols in [1024, 4096] {
        let choice = Choice {
            vectors: Some(false),
            ..Choice::default()
        };
        add(3, cols, FloatType::Bf16, choice);
    }

    // Strides with and without the alignment that bulk copies need.
    for (x, y, cols) in [
        (1040, 1024, 1024),
        (1024, 1032, 1024),
        (1025, 1027, 1024),
        (70, 68, 65),
    ] {
        let mut problem = Problem::dense(4, cols, FloatType::F16, K::Options::default());
        (problem.matrix.x_stride, problem.matrix.y_stride) = (Some(x), Some(y));
        let choice = Choice::default();
        cases.push(TestCase { problem, choice });
    }
    for options in other_options::<K::Options>() {
        for cols in [64, 1024, 1001] {
            let problem = Problem::dense(3, cols, FloatType::Bf16, options.clone());
            let choice = Choice::default();
            cases.push(TestCase { problem, choice });
        }
    }
    cases
}

/// Returns options that differ from the default: every number is 0.5, which no test confuses with a
/// small eps, and every keyword field takes each of its other keywords.
fn other_options<O: Fields + PartialEq + Default>() -> Vec<O> {
    let with = |base: &O, name: &str, text: &str| {
        let mut options = base.clone();
        options.set(name, text).ok().map(|()| options)
    };
    let fields = O::fields();
    let numbers = fields.iter().filter(|field| field.check("0.5").is_ok());
    let base = numbers.fold(O::default(), |base, field| {
        with(&base, field.name, "0.5").unwrap_or(base)
    });
    let mut all = vec![base.clone()];
    for field in &fields {
        let FieldKind::Keywords(words) = &field.kind else {
            continue;
        };
        for word in words {
            let options = with(&base, field.name, word.name);
            all.extend(options.filter(|o| !all.contains(o)));
        }
    }
    all.retain(|options| *options != O::default());
    all
}
