//! R9: registers that warpgroups give to each other.

use crate::bug::{Bug, Built, Executor, Form};
use crate::case::Case;
use crate::mark::{Source, this_file};
use crate::trial::Trial;
use warpline_ir::build::*;
use warpline_ir::{FaultKind, Kernel, Target};

const SOURCE: Source = this_file!("registers.rs");

pub(crate) const BUGS: &[Bug] = &[
    Bug {
        name: "registers-32-240-240",
        reference: "seen on an H200",
        title: "32, 240 and 240 registers: 65,536 in all, and more than the CTA enters with",
        rule: "R9.pool",
        executor: Executor::Faults(&[FaultKind::Deadlock, FaultKind::Registers]),
        build: eight_too_many,
    },
    Bug {
        name: "cutlass-3406",
        reference: "NVIDIA/cutlass#3406",
        title: "setmaxnreg where the number of registers is not known, and so dropped by ptxas",
        rule: "R9.place",
        executor: Executor::Blind("registers move here wherever setmaxnreg stands"),
        build: hidden_count,
    },
    Bug {
        name: "cutlass-2904",
        reference: "NVIDIA/cutlass#2904",
        title: "a fourth warpgroup joins budgets that were made for three",
        rule: "R9.pool",
        executor: Executor::Faults(&[FaultKind::Deadlock, FaultKind::Registers]),
        build: fourth_warpgroup,
    },
    Bug {
        name: "cutlass-2932",
        reference: "NVIDIA/cutlass#2932",
        title: "registers are given back up to a number that is higher than what is held",
        rule: "R9.direction",
        executor: Executor::Faults(&[FaultKind::Registers]),
        build: wrong_way,
    },
];

/// 384 threads enter with 168 registers each: three warpgroups share 504, and
/// these ask for 512. ptxas lets it pass; the last to ask waits for ever.
fn eight_too_many(form: Form) -> Built {
    let kernel = Kernel::build("eight_too_many", &Target::default(), |k| {
        k.role("load")
            .warpgroups(1)
            .body(|| give_registers(form.pick(32, 24)));
        k.role("math").warpgroups(2).body(|| {
            take_registers(240); // BUG: eight are missing
        });
    })?;
    Ok(Case {
        kernel,
        line: SOURCE.marked(),
        trial: Trial::of(1),
    })
}

/// ptxas drops every setmaxnreg if it cannot tell how many registers there
/// are, and says so in a note that nobody sees. Kernels here state their CTAs
/// per SM, so that the number at entry is known; a condition hides it again.
fn hidden_count(form: Form) -> Built {
    let kernel = Kernel::build("hidden_count", &Target::default(), |k| {
        let n = k.param::<u32>("n");
        k.role("load").warpgroups(1).body(|| give_registers(24));
        k.role("math").warpgroups(2).body(|| match form {
            Form::Broken => if_(n.gt(0u32), || take_registers(240)), // BUG: after it, 168 or 240
            Form::Repaired => take_registers(240),
        });
    })?;
    Ok(Case {
        kernel,
        line: SOURCE.marked(),
        trial: Trial::of(1).number(1),
    })
}

/// With 512 threads each enters with 128 registers, not with 168. The example
/// that the report starts from has 40 and 232.
fn fourth_warpgroup(form: Form) -> Built {
    let kernel = Kernel::build("fourth_warpgroup", &Target::default(), |k| {
        k.role("load").warpgroups(2).body(|| give_registers(40));
        k.role("math").warpgroups(2).body(|| {
            take_registers(form.pick(232, 216)); // BUG: 544 of 512
        });
    })?;
    Ok(Case {
        kernel,
        line: SOURCE.marked(),
        trial: Trial::of(1),
    })
}

/// The report was not found; this is what rule R9 says of directions.
fn wrong_way(form: Form) -> Built {
    let kernel = Kernel::build("wrong_way", &Target::default(), |k| {
        k.role("load").warpgroups(1).body(|| give_registers(40));
        k.role("math").warpgroups(2).body(|| match form {
            Form::Broken => give_registers(232), // BUG: it has 168
            Form::Repaired => take_registers(232),
        });
    })?;
    Ok(Case {
        kernel,
        line: SOURCE.marked(),
        trial: Trial::of(1),
    })
}
