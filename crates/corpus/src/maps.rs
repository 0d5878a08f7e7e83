//! R13: tensor maps that the driver accepts.

use crate::bug::{Bug, Built, ExpectedRun, Version};
use crate::case::CorpusCase;
use crate::mark::{Source, this_file};
use crate::template::LaunchTemplate;
use warpline_ir::builder::*;
use warpline_ir::{DType, FaultKind, Kernel, ParamKind, Target, TensorMapDecl, TensorMapValue};

const SOURCE: Source = this_file!("maps.rs");

pub(crate) const BUGS: &[Bug] = &[
    Bug {
        name: "vllm-13961",
        reference: "vllm-project/vllm#13961",
        title: "a tensor map that the driver rejects with an error number only",
        rule: "R13.map",
        executor: ExpectedRun::Faults(&[FaultKind::TensorMap]),
        build: wide_box,
    },
    Bug {
        name: "cutlass-947",
        reference: "NVIDIA/cutlass#947",
        title: "a tensor map for a matrix without an address",
        rule: "R13.launch",
        executor: ExpectedRun::Faults(&[FaultKind::TensorMap]),
        build: no_matrix,
    },
    Bug {
        name: "tilelang-460",
        reference: "tile-ai/tilelang#460",
        title: "a row stride that is not a multiple of 16 bytes",
        rule: "R13.launch",
        executor: ExpectedRun::Faults(&[FaultKind::TensorMap]),
        build: odd_rows,
    },
];

/// Declares boxes of 8 rows of 64 bytes.
fn boxes() -> TensorMapDecl {
    TensorMapDecl::tiled(DType::F32, [16, 8])
}

/// The report shows many tensor maps and an unspecific driver error. Here one extent of a box is 512.
/// The builder rejects that at once, so the kernel is changed afterwards.
fn wide_box(version: Version) -> Built {
    let mut kernel = Kernel::build("wide_box", &Target::default(), |k| {
        let x = k.tensor_map("x", boxes()); // BUG: its boxes have 512 rows
        let tile = k.tile::<f32>("tile", 8, 16).declare().whole();
        let full = k.barrier("full", 1).arrivals(1).at(0u32);
        k.role("load").body(|| {
            elect(|| {
                x.load(tile, [0u32; 2], full);
                full.arrive_expect(x.bytes());
            });
            full.wait(0u32);
        });
    })?;
    let decl = version.pick(TensorMapDecl::tiled(DType::F32, [16, 512]), boxes());
    kernel.params[0].kind = ParamKind::TensorMap(decl.clone());
    Ok(CorpusCase {
        kernel,
        line: SOURCE.marked(),
        launch: LaunchTemplate::of(1).rows(decl, [16, 512], 64),
    })
}

/// D = A·B without a C: the tensor map of C exists with address 0.
fn no_matrix(version: Version) -> Built {
    let kernel = Kernel::build("no_matrix", &Target::default(), |k| {
        let c = k.tensor_map("c", boxes()); // BUG: there is no C
        let tile = k.tile::<f32>("tile", 8, 16).declare().whole();
        let full = k.barrier("full", 1).arrivals(1).at(0u32);
        k.role("load").body(|| {
            elect(|| {
                c.load(tile, [0u32; 2], full);
                full.arrive_expect(c.bytes());
            });
            full.wait(0u32);
        });
    })?;
    Ok(CorpusCase {
        kernel,
        line: SOURCE.marked(),
        launch: match version {
            Version::Broken => {
                LaunchTemplate::of(1).nowhere(TensorMapValue::dense(boxes(), 0, &[16, 8]))
            }
            Version::Repaired => LaunchTemplate::of(1).rows(boxes(), [16, 8], 64),
        },
    })
}

/// A row of 15 elements has 60 bytes; in the repaired version the stride is 64 bytes.
fn odd_rows(version: Version) -> Built {
    let kernel = Kernel::build("odd_rows", &Target::default(), |k| {
        let x = k.tensor_map("x", boxes()); // BUG: its rows are 60 bytes apart
        let tile = k.tile::<f32>("tile", 8, 16).declare().whole();
        let full = k.barrier("full", 1).arrivals(1).at(0u32);
        k.role("load").body(|| {
            elect(|| {
                x.load(tile, [0u32; 2], full);
                full.arrive_expect(x.bytes());
            });
            full.wait(0u32);
        });
    })?;
    Ok(CorpusCase {
        kernel,
        line: SOURCE.marked(),
        launch: LaunchTemplate::of(1).rows(boxes(), [15, 8], version.pick(60, 64)),
    })
}
