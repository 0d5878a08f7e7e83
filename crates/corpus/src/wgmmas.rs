//! R7 and R14: wgmmas in flight, and their operands.

use crate::bug::{Bug, Built, ExpectedRun, Version};
use crate::case::CorpusCase;
use crate::mark::{Source, this_file};
use crate::ring::Cursor;
use crate::template::LaunchTemplate;
use half::bf16;
use warpline_ir::builder::*;
use warpline_ir::{FaultKind, Kernel, Target};

const SOURCE: Source = this_file!("wgmmas.rs");

pub(crate) const BUGS: &[Bug] = &[
    Bug {
        name: "tilelang-2613",
        reference: "tile-ai/tilelang#2613",
        title: "two warpgroups share an operand, and each waits only for its own wgmmas",
        rule: "R7.release",
        executor: ExpectedRun::Faults(&[FaultKind::Race]),
        build: shared_operand,
    },
    Bug {
        name: "triton-11047",
        reference: "triton-lang/triton#11047",
        title: "a copy overwrites B after the wait of one warpgroup, while the other one still reads B",
        rule: "R7.release",
        executor: ExpectedRun::Faults(&[FaultKind::Race]),
        build: wait_of_one_warpgroup,
    },
    Bug {
        name: "triton-8964",
        reference: "triton-lang/triton#8964",
        title: "an accumulator is read while its wgmmas are in flight",
        rule: "R7.registers",
        executor: ExpectedRun::Faults(&[FaultKind::RegisterInFlight]),
        build: accumulator_in_flight,
    },
    Bug {
        name: "cutlass-1840",
        reference: "NVIDIA/cutlass#1840",
        title: "a wgmma operand has a layout that the hardware cannot read",
        rule: "R14.operand",
        executor: ExpectedRun::Faults(&[FaultKind::Illegal, FaultKind::Operand]),
        build: unswizzled_operand,
    },
];

/// Writes zeros to rows of a 16-wide operand, with two threads per row.
#[track_caller]
fn clear(operand: TileRef<bf16>, row: Reg<u32>) {
    operand.store_as(row, thread_in_role() % 2 * 8, [0u32; 4]);
}

/// Each warpgroup writes half of A, all threads pass a barrier, and both warpgroups multiply with the
/// whole A and wait. The first one to continue overwrites rows that the other one still reads.
fn shared_operand(version: Version) -> Built {
    let kernel = Kernel::build("shared_operand", &Target::default(), |k| {
        let n = k.param::<u32>("n");
        let a = k.tile::<bf16>("a", 64, 16).declare().whole();
        for (half, name) in ["left", "right"].into_iter().enumerate() {
            let b = k.tile::<bf16>(name, 8, 16).declare().whole();
            k.role(name).warpgroups(1).body(|| {
                let row = thread_in_role() / 2;
                if_(row.lt(8u32), || clear(b, row));
                steps(n).each(|_| {
                    if_(row.lt(32u32), || {
                        clear(a, row + 32 * half as u32); // BUG: the other warpgroup still reads A
                    });
                    fence_async();
                    cta_sync();
                    let acc = Acc::new(64, 8);
                    acc.mma(&a, &b);
                    acc.into_frag();
                    if version.is_repaired() {
                        cta_sync();
                    }
                });
            });
        }
    })?;
    Ok(CorpusCase {
        kernel,
        line: SOURCE.marked(),
        launch: LaunchTemplate::with_ctas(1).number(3),
    })
}

/// A wait covers only the wgmmas of its own warpgroup. The first warpgroup loads the next B after its
/// wait, while the second one may still read the old B.
fn wait_of_one_warpgroup(version: Version) -> Built {
    let kernel = Kernel::build("wait_of_one_warpgroup", &Target::default(), |k| {
        let (n, x) = (k.param::<u32>("n"), k.pointer::<bf16>("x"));
        let b = k.tile::<bf16>("b", 8, 16).declare().whole();
        let full = k.barrier("full", 1).arrivals(1).at(0u32);
        for name in ["first", "second"] {
            let a = k.tile::<bf16>(name, 64, 16).declare().whole();
            k.role(name).warpgroups(1).body(|| {
                let cursor = Cursor::new(1, 0);
                clear(a, thread_in_role() / 2);
                fence_async();
                cta_sync();
                steps(n).each(|i| {
                    if name == "first" {
                        elect(|| {
                            bulk_load(b, x.address(i * 128), 256u32, full); // BUG: `second` may still read B
                            full.arrive_expect(256u32);
                        });
                    }
                    full.wait(cursor.parity());
                    let acc = Acc::new(64, 8);
                    acc.mma(&a, &b);
                    acc.into_frag();
                    if version.is_repaired() {
                        cta_sync();
                    }
                    cursor.advance();
                });
            });
        }
    })?;
    Ok(CorpusCase {
        kernel,
        line: SOURCE.marked(),
        launch: LaunchTemplate::with_ctas(1).number(3).buffer(3 * 256),
    })
}

/// A compiler pass that splits wgmmas dropped the wait before the epilogue.
fn accumulator_in_flight(version: Version) -> Built {
    let kernel = Kernel::build("accumulator_in_flight", &Target::default(), |k| {
        let y = k.pointer::<f32>("y");
        let a = k.tile::<bf16>("a", 64, 16).declare().whole();
        let b = k.tile::<bf16>("b", 8, 16).declare().whole();
        k.role("math").warpgroups(1).body(|| {
            let row = thread_in_role() / 2;
            clear(a, row);
            if_(row.lt(8u32), || clear(b, row));
            fence_async();
            cta_sync();
            let acc = Acc::new(64, 8);
            acc.mma(&a, &b);
            if version.is_repaired() {
                acc.wait();
            }
            let mut sums = Vec::new();
            acc.peek(|sum| sums.push(sum));
            for (i, sum) in (0..).zip(sums) {
                y.store(thread_in_role() * 4 + i, sum); // BUG: the wgmmas may still add
            }
            acc.wait();
        });
    })?;
    Ok(CorpusCase {
        kernel,
        line: SOURCE.marked(),
        launch: LaunchTemplate::with_ctas(1).buffer(4 * 4 * 128),
    })
}

/// A reconstruction after rule R14, without the code of the report. A tile without a swizzle has no
/// matrix descriptor.
fn unswizzled_operand(version: Version) -> Built {
    let kernel = Kernel::build("unswizzled_operand", &Target::default(), |k| {
        let a = k.tile::<bf16>("a", 64, 16);
        let a = version.pick(a.clone().unswizzled(), a).declare().whole();
        let b = k.tile::<bf16>("b", 8, 16).declare().whole();
        k.role("math").warpgroups(1).body(|| {
            let row = thread_in_role() / 2;
            clear(a, row);
            if_(row.lt(8u32), || clear(b, row));
            fence_async();
            cta_sync();
            let acc = Acc::new(64, 8);
            acc.mma(&a, &b); // BUG: rows of A are not swizzled
            acc.into_frag();
        });
    })?;
    Ok(CorpusCase {
        kernel,
        line: SOURCE.marked(),
        launch: LaunchTemplate::with_ctas(1),
    })
}
