//! R13: what the driver takes as a tensor map.

use crate::bug::{Bug, Built, Executor, Form};
use crate::case::Case;
use crate::mark::{Source, this_file};
use crate::trial::Trial;
use warpline_ir::build::*;
use warpline_ir::{DType, FaultKind, Kernel, ParamKind, Target, TensorMapDecl, TensorMapValue};

const SOURCE: Source = this_file!("maps.rs");

pub(crate) const BUGS: &[Bug] = &[
    Bug {
        name: "vllm-13961",
        reference: "vllm-project/vllm#13961",
        title: "a tensor map that the driver refuses with a number",
        rule: "R13.map",
        executor: Executor::Faults(&[FaultKind::TensorMap]),
        build: wide_box,
    },
    Bug {
        name: "cutlass-947",
        reference: "NVIDIA/cutlass#947",
        title: "a tensor map for a matrix that is not there",
        rule: "R13.launch",
        executor: Executor::Faults(&[FaultKind::TensorMap]),
        build: no_matrix,
    },
    Bug {
        name: "tilelang-460",
        reference: "tile-ai/tilelang#460",
        title: "rows that are no multiple of 16 bytes apart",
        rule: "R13.launch",
        executor: Executor::Faults(&[FaultKind::TensorMap]),
        build: odd_rows,
    },
];

/// Boxes of 8 rows of 64 bytes.
fn boxes() -> TensorMapDecl {
    TensorMapDecl::tiled(DType::F32, [16, 8])
}

/// The report shows many maps and a driver error that is not about them. What
/// rule R13 says of maps, it says in a sentence: here a side of a box is 512.
/// The builder would refuse it at once, so the kernel is changed afterwards.
fn wide_box(form: Form) -> Built {
    let mut kernel = Kernel::build("wide_box", &Target::default(), |k| {
        let x = k.tensor_map("x", boxes()); // BUG: its boxes will have 512 rows
        let tile = k.tile::<f32>("tile", 8, 16).declare().whole();
        let full = k.barrier("full", 1).count(1).at(0u32);
        k.role("load").body(|| {
            elect(|| {
                x.load(tile, [0u32; 2], full);
                full.arrive_expect(x.bytes());
            });
            full.wait(0u32);
        });
    })?;
    let decl = form.pick(TensorMapDecl::tiled(DType::F32, [16, 512]), boxes());
    kernel.params[0].kind = ParamKind::TensorMap(decl.clone());
    Ok(Case {
        kernel,
        line: SOURCE.marked(),
        trial: Trial::of(1).rows(decl, [16, 512], 64),
    })
}

/// D = A·B without a C: its map was made all the same, with address 0.
fn no_matrix(form: Form) -> Built {
    let kernel = Kernel::build("no_matrix", &Target::default(), |k| {
        let c = k.tensor_map("c", boxes()); // BUG: there is no C
        let tile = k.tile::<f32>("tile", 8, 16).declare().whole();
        let full = k.barrier("full", 1).count(1).at(0u32);
        k.role("load").body(|| {
            elect(|| {
                c.load(tile, [0u32; 2], full);
                full.arrive_expect(c.bytes());
            });
            full.wait(0u32);
        });
    })?;
    Ok(Case {
        kernel,
        line: SOURCE.marked(),
        trial: match form {
            Form::Broken => Trial::of(1).nowhere(TensorMapValue::dense(boxes(), 0, &[16, 8])),
            Form::Repaired => Trial::of(1).rows(boxes(), [16, 8], 64),
        },
    })
}

/// A row of 15 elements is 60 bytes; repaired, rows start 64 bytes apart.
fn odd_rows(form: Form) -> Built {
    let kernel = Kernel::build("odd_rows", &Target::default(), |k| {
        let x = k.tensor_map("x", boxes()); // BUG: its rows are 60 bytes apart
        let tile = k.tile::<f32>("tile", 8, 16).declare().whole();
        let full = k.barrier("full", 1).count(1).at(0u32);
        k.role("load").body(|| {
            elect(|| {
                x.load(tile, [0u32; 2], full);
                full.arrive_expect(x.bytes());
            });
            full.wait(0u32);
        });
    })?;
    Ok(Case {
        kernel,
        line: SOURCE.marked(),
        trial: Trial::of(1).rows(boxes(), [15, 8], form.pick(60, 64)),
    })
}
