//! The test table of every family over rows.

use super::config::{Choice, Form, Weights};
use super::op::RowOp;
use super::problem::Problem;
use warpline_family::family::Case;
use warpline_family::field::{Fields, Kind};
use warpline_family::float::Float;

/// Small problems that reach every path.
pub(super) fn cases<K: RowOp>() -> Vec<Case<Problem<K::Options>, Choice>> {
    let mut cases = Vec::new();
    let mut add = |rows, cols, dtype, choice: Choice| {
        let problem = Problem::dense(rows, cols, dtype, K::Options::default());
        cases.push(Case { problem, choice });
    };
    let form = |form| Choice {
        form: Some(form),
        ..Choice::default()
    };

    // The rule, at the lengths where it changes its mind, aligned and not.
    for &dtype in Float::ALL {
        for cols in [1, 2, 7, 8, 31, 33, 64, 100, 257, 1000, 1024] {
            add(5, cols, dtype, Choice::default());
        }
    }
    // Trips 0, 1, S - 1, S, S + 1, 2 S + 1 of one CTA, and a block that is not full.
    for f in [Form::DoubleBuffer, Form::Specialized, Form::ThreeRoles] {
        let stages = if f == Form::DoubleBuffer { 2 } else { 3 };
        for rows in [0, 1, 2, 3, 4, 5, 7, 8, 15] {
            let choice = Choice {
                threads: Some(32),
                block: Some(2),
                stages: Some(stages),
                ctas: Some(1),
                ..form(f)
            };
            add(rows, 520, Float::Bf16, choice);
        }
    }
    // Several warps to a row, several rows at once, whole and ragged.
    for f in [
        Form::Direct,
        Form::DoubleBuffer,
        Form::Specialized,
        Form::ThreeRoles,
    ] {
        for (threads, block) in [(64, 1), (64, 2), (96, 2), (128, 1)] {
            for cols in [1024, 1528] {
                let choice = Choice {
                    threads: Some(threads),
                    block: Some(block),
                    ctas: Some(2),
                    ..form(f)
                };
                add(7, cols, Float::F32, choice);
            }
        }
    }
    // Clusters, whose CTAs hold parts that differ by one unit.
    for f in [
        Form::Direct,
        Form::DoubleBuffer,
        Form::Specialized,
        Form::ThreeRoles,
    ] {
        for (cluster, cols) in [(2, 1032), (3, 1032), (4, 4096), (8, 4104)] {
            let choice = Choice {
                threads: Some(64),
                block: Some(2),
                cluster: Some(cluster),
                // Three show what eight do, and large clusters are long to run.
                stages: (f.has_queue() && cluster > 2).then_some(3),
                ctas: Some(2 * cluster),
                ..form(f)
            };
            add(5, cols, Float::F16, choice);
        }
    }
    let sixteen = Choice {
        cluster: Some(16),
        block: Some(2),
        threads: Some(32),
        stages: Some(3),
        ..form(Form::Specialized)
    };
    add(3, 4096, Float::Bf16, sixteen);
    // Weights that are not in registers.
    for weights in [Weights::Shared, Weights::Global] {
        for cluster in [1, 2] {
            let choice = Choice {
                threads: Some(64),
                block: Some(2),
                cluster: Some(cluster),
                weights: Some(weights),
                ctas: Some(2 * cluster),
                ..form(Form::Specialized)
            };
            add(5, 1032, Float::Bf16, choice.clone());
            add(5, 1032, Float::F32, choice);
        }
    }
    // Two sweeps, aligned and not, shorter and longer than one step of a sweep.
    for cols in [5, 4096, 4099, 40000] {
        add(2, cols, Float::Bf16, form(Form::TwoSweeps));
    }
    add(2, 20000, Float::F32, form(Form::TwoSweeps));

    // An address that is not on 16 bytes.
    for cols in [1024, 4096] {
        let choice = Choice {
            vectors: Some(false),
            ..Choice::default()
        };
        add(3, cols, Float::Bf16, choice);
    }

    // Strides, with and without the alignment that bulk copies need.
    for (x, y, cols) in [
        (1040, 1024, 1024),
        (1024, 1032, 1024),
        (1025, 1027, 1024),
        (70, 68, 65),
    ] {
        let mut problem = Problem::dense(4, cols, Float::F16, K::Options::default());
        (problem.matrix.x_stride, problem.matrix.y_stride) = (Some(x), Some(y));
        let choice = Choice::default();
        cases.push(Case { problem, choice });
    }
    for options in other_options::<K::Options>() {
        for cols in [64, 1024, 1001] {
            let problem = Problem::dense(3, cols, Float::Bf16, options.clone());
            let choice = Choice::default();
            cases.push(Case { problem, choice });
        }
    }
    cases
}

/// Options that differ from the default: every number is 0.5, which no test confuses with a small
/// eps, and every field of words has each of its other words.
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
        let Kind::Words(words) = &field.kind else {
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
