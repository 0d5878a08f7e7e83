//! R9: register budgets with `setmaxnreg`.

use crate::bug::{Bug, Built, ExpectedRun, Version};
use crate::case::CorpusCase;
use crate::mark::{Source, this_file};
use crate::template::LaunchTemplate;
use warpline_ir::builder::*;
use warpline_ir::{FaultKind, Kernel, Target};

const SOURCE: Source = this_file!("registers.rs");

pub(crate) const BUGS: &[Bug] = &[
    Bug {
        name: "registers-32-240-240",
        reference: "seen on an H200",
        title: "budgets of 32, 240 and 240 registers exceed the registers that the CTA starts with",
        rule: "R9.pool",
        executor: ExpectedRun::Faults(&[FaultKind::Deadlock, FaultKind::Registers]),
        build: budgets_exceed_pool,
    },
    Bug {
        name: "cutlass-3406",
        reference: "NVIDIA/cutlass#3406",
        title: "ptxas drops `setmaxnreg` because it does not know the number of registers there",
        rule: "R9.place",
        executor: ExpectedRun::Clean("the executor accepts `setmaxnreg` at any place"),
        build: conditional_setmaxnreg,
    },
    Bug {
        name: "cutlass-2904",
        reference: "NVIDIA/cutlass#2904",
        title: "a fourth warpgroup is added to register budgets for three",
        rule: "R9.pool",
        executor: ExpectedRun::Faults(&[FaultKind::Deadlock, FaultKind::Registers]),
        build: fourth_warpgroup,
    },
    Bug {
        name: "cutlass-2932",
        reference: "NVIDIA/cutlass#2932",
        title: "`setmaxnreg.dec` names more registers than the warpgroup has",
        rule: "R9.direction",
        executor: ExpectedRun::Faults(&[FaultKind::Registers]),
        build: dec_raises_count,
    },
];

/// 384 threads start with 168 registers each. The three warpgroups have 504 together and request 512.
/// ptxas accepts it, and the last warpgroup waits forever.
fn budgets_exceed_pool(version: Version) -> Built {
    let kernel = Kernel::build("budgets_exceed_pool", &Target::default(), |k| {
        k.role("load")
            .warpgroups(1)
            .body(|| setmaxnreg_dec(version.pick(32, 24)));
        k.role("math").warpgroups(2).body(|| {
            setmaxnreg_inc(240); // BUG: eight registers are missing
        });
    })?;
    Ok(CorpusCase {
        kernel,
        line: SOURCE.marked(),
        launch: LaunchTemplate::with_ctas(1),
    })
}

/// ptxas drops every `setmaxnreg` if it does not know the number of registers there, and prints only a
/// note. Kernels here declare their CTAs per SM, so that the number at entry is known; a condition
/// hides it again.
fn conditional_setmaxnreg(version: Version) -> Built {
    let kernel = Kernel::build("conditional_setmaxnreg", &Target::default(), |k| {
        let n = k.param::<u32>("n");
        k.role("load").warpgroups(1).body(|| setmaxnreg_dec(24));
        k.role("math").warpgroups(2).body(|| match version {
            Version::Broken => if_(n.gt(0u32), || setmaxnreg_inc(240)), // BUG: 168 or 240 registers after it
            Version::Repaired => setmaxnreg_inc(240),
        });
    })?;
    Ok(CorpusCase {
        kernel,
        line: SOURCE.marked(),
        launch: LaunchTemplate::with_ctas(1).number(1),
    })
}

/// With 512 threads each starts with 128 registers, not 168. The example behind the report uses 40 and
/// 232.
fn fourth_warpgroup(version: Version) -> Built {
    let kernel = Kernel::build("fourth_warpgroup", &Target::default(), |k| {
        k.role("load").warpgroups(2).body(|| setmaxnreg_dec(40));
        k.role("math").warpgroups(2).body(|| {
            setmaxnreg_inc(version.pick(232, 216)); // BUG: requests 544 of 512
        });
    })?;
    Ok(CorpusCase {
        kernel,
        line: SOURCE.marked(),
        launch: LaunchTemplate::with_ctas(1),
    })
}

/// A reconstruction after rule R9, without the code of the report.
fn dec_raises_count(version: Version) -> Built {
    let kernel = Kernel::build("dec_raises_count", &Target::default(), |k| {
        k.role("load").warpgroups(1).body(|| setmaxnreg_dec(40));
        k.role("math").warpgroups(2).body(|| match version {
            Version::Broken => setmaxnreg_dec(232), // BUG: the warpgroup has 168
            Version::Repaired => setmaxnreg_inc(232),
        });
    })?;
    Ok(CorpusCase {
        kernel,
        line: SOURCE.marked(),
        launch: LaunchTemplate::with_ctas(1),
    })
}
