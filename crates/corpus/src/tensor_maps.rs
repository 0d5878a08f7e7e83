//! R13: tensor maps that the driver accepts.

use crate::bug::{Bug, Built, ExpectedRun, Version};
use crate::case::CorpusCase;
use crate::mark::{Source, this_file};
use crate::template::LaunchTemplate;
use warpline_ir::builder::*;
use warpline_ir::{DType, FaultKind, Kernel, ParamKind, Target, TensorMapDecl, TensorMapValue};

const SOURCE: Source = this_file!("tensor_maps.rs");

pub(crate) const BUGS: &[Bug] = &[
    Bug {
        name: "vllm-13961",
        reference: "vllm-project/vllm#13961",
        title: "the box of a tensor map has 512 rows, and the driver returns only an error number",
        rule: "R13.map",
        executor: ExpectedRun::Faults(&[FaultKind::TensorMap]),
        build: box_with_512_rows,
    },
    Bug {
        name: "cutlass-947",
        reference: "NVIDIA/cutlass#947",
        title: "the tensor map of an absent matrix has a null address",
        rule: "R13.launch",
        executor: ExpectedRun::Faults(&[FaultKind::TensorMap]),
        build: null_address,
    },
    Bug {
        name: "tilelang-460",
        reference: "tile-ai/tilelang#460",
        title: "a row stride that is not a multiple of 16 bytes",
        rule: "R13.launch",
        executor: ExpectedRun::Faults(&[FaultKind::TensorMap]),
        build: unaligned_row_stride,
    },
];

/// Declares boxes of 8 rows of 64 bytes.
fn boxes() -> TensorMapDecl {
    TensorMapDecl::tiled(DType::F32, [16, 8])
}

/// The report shows many tensor maps and an unspecific driver error. Here one extent of a box is 512.
/// The builder rejects such a box, so this function edits the kernel after the build.
fn box_with_512_rows(version: Version) -> Built {
    let mut kernel = Kernel::build("box_with_512_rows", &Target::default(), |k| {
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
        launch: LaunchTemplate::with_ctas(1).rows(decl, [16, 512], 64),
    })
}

/// A GEMM without an input C still has a tensor map for C, with address 0.
fn null_address(version: Version) -> Built {
    let kernel = Kernel::build("null_address", &Target::default(), |k| {
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
            Version::Broken => LaunchTemplate::with_ctas(1)
                .tensor_without_buffer(TensorMapValue::dense(boxes(), 0, &[16, 8])),
            Version::Repaired => LaunchTemplate::with_ctas(1).rows(boxes(), [16, 8], 64),
        },
    })
}

/// A row of 15 elements has 60 bytes. The repaired version pads the stride to 64 bytes.
fn unaligned_row_stride(version: Version) -> Built {
    let kernel = Kernel::build("unaligned_row_stride", &Target::default(), |k| {
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
        launch: LaunchTemplate::with_ctas(1).rows(boxes(), [15, 8], version.pick(60, 64)),
    })
}
