//! R11: an mbarrier is used after its initialization is visible.

use crate::bug::{Bug, Built, ExpectedRun, Version};
use crate::case::CorpusCase;
use crate::mark::{Source, this_file};
use crate::template::LaunchTemplate;
use warpline_ir::builder::*;
use warpline_ir::{FaultKind, Kernel, Target};

const SOURCE: Source = this_file!("init.rs");

pub(crate) const BUGS: &[Bug] = &[Bug {
    name: "fuser-1552",
    reference: "NVIDIA/Fuser#1552",
    title: "threads arrive at an mbarrier while another thread initializes it",
    rule: "R11.init",
    executor: ExpectedRun::Faults(&[FaultKind::Barrier]),
    build: arrival_before_init,
}];

/// One thread initializes the mbarrier, and the others do not wait for it.
fn arrival_before_init(version: Version) -> Built {
    let kernel = Kernel::build("arrival_before_init", &Target::default(), |k| {
        let done = k.barrier("done", 1).at(0u32);
        k.role("all").warps(4).body(|| {
            elect(|| {
                done.init(128);
                fence_mbarrier_init();
            });
            if version.is_repaired() {
                cta_sync();
            }
            done.arrive(); // BUG: may not be initialized yet
            done.wait(0u32);
        });
    })?;
    Ok(CorpusCase {
        kernel,
        line: SOURCE.marked(),
        launch: LaunchTemplate::with_ctas(1),
    })
}
