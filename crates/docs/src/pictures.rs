//! Diagrams of example kernels, drawn from the kernels themselves.

use crate::Generated;
use anyhow::{Context, Result};
use warpline_diagram::Diagram;
use warpline_ir::builder::*;
use warpline_ir::{Kernel, Target};

/// Returns the diagrams of the gallery and of the README's kernel.
pub fn pictures() -> Result<Vec<Generated>> {
    let target = Target::default();
    let mut files = vec![picture("double", &double(&target)?)];
    for example in warpline_gallery::examples() {
        let Some(workload) = example.probe.cases.last() else {
            continue;
        };
        let plan = workload.plan(&target)?;
        let step = plan
            .steps
            .first()
            .with_context(|| format!("{} has no kernel", example.name))?;
        files.push(picture(&format!("gallery/{}", example.name), &step.kernel));
    }
    Ok(files)
}

fn picture(name: &str, kernel: &Kernel) -> Generated {
    Generated {
        path: format!("docs/img/{name}.svg").into(),
        text: Diagram::of(kernel).svg(),
    }
}

/// Builds the kernel of the README.
fn double(target: &Target) -> Result<Kernel> {
    const TILE: u32 = 1024;
    let kernel = Kernel::build("double", target, |k| {
        let (tiles, x, y) = (
            k.param::<u32>("tiles"),
            k.pointer::<f32>("x"),
            k.pointer::<f32>("y"),
        );
        let input = k.ring("in", 3, |s| s.vector::<f32>(TILE));
        let output = k.ring("out", 3, |s| s.vector::<f32>(TILE));
        let my_tiles = || range(cta_id(), tiles).step_by(grid_ctas());
        k.role("compute").warps(8).body(|| {
            my_tiles().each(|_| {
                let (from, to) = (input.wait(), output.acquire());
                let i = thread_in_role() * 4;
                to.store_vec(0u32, i, from.load_vec::<4>(0u32, i).map(|v| v + v));
                from.release();
                to.commit();
            });
        });
        k.role("load").body(|| {
            elect(|| {
                my_tiles().each(|t| {
                    let slot = input.acquire();
                    slot.load_bytes(*slot, x.address(t * TILE), TILE * 4);
                    slot.commit();
                });
            });
        });
        k.role("store").body(|| {
            elect(|| {
                my_tiles().each(|t| {
                    let slot = output.wait();
                    bulk_store(slot.tiles(), y.address(t * TILE), TILE * 4);
                    bulk_commit();
                    bulk_wait_read(0);
                    slot.release();
                });
            });
        });
    });
    Ok(kernel?)
}
