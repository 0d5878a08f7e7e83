//! R7 and R14: warpgroup products, what they read, and what they take.

use crate::bug::{Bug, Built, Executor, Form};
use crate::case::Case;
use crate::kit::Cursor;
use crate::mark::{Source, this_file};
use crate::trial::Trial;
use half::bf16;
use warpline_ir::build::*;
use warpline_ir::{FaultKind, Kernel, Target};

const SOURCE: Source = this_file!("products.rs");

pub(crate) const BUGS: &[Bug] = &[
    Bug {
        name: "tilelang-2613",
        reference: "tile-ai/tilelang#2613",
        title: "two warpgroups share an operand, and each waits for its own products alone",
        rule: "R7.release",
        executor: Executor::Faults(&[FaultKind::Race]),
        build: shared_operand,
    },
    Bug {
        name: "triton-11047",
        reference: "triton-lang/triton#11047",
        title: "one warpgroup's wait lets a copy overwrite what the other one still multiplies",
        rule: "R7.release",
        executor: Executor::Faults(&[FaultKind::Race]),
        build: wait_of_one,
    },
    Bug {
        name: "triton-8964",
        reference: "triton-lang/triton#8964",
        title: "an accumulator is read while its products are in flight",
        rule: "R7.registers",
        executor: Executor::Faults(&[FaultKind::RegisterInFlight]),
        build: early_sums,
    },
    Bug {
        name: "cutlass-1840",
        reference: "NVIDIA/cutlass#1840",
        title: "wgmma is given an operand in a layout that it does not read",
        rule: "R14.operand",
        executor: Executor::Faults(&[FaultKind::Illegal, FaultKind::Operand]),
        build: plain_operand,
    },
];

/// Writes zeros to rows of an operand 16 wide: two threads for each row, from the role's first on.
#[track_caller]
fn clear(operand: TileRef<bf16>, row: Reg<u32>) {
    operand.store_as(row, thread_in_role() % 2 * 8, [0u32; 4]);
}

/// Each warpgroup copies half of A, all meet, both multiply the whole of A and
/// wait. The first to go round copies into what the other one still reads.
fn shared_operand(form: Form) -> Built {
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
                        clear(a, row + 32 * half as u32); // BUG: the other warpgroup multiplies
                    });
                    fence_async();
                    cta_sync();
                    let acc = Acc::new(64, 8);
                    acc.mma(&a, &b);
                    acc.finish();
                    if form.is_repaired() {
                        cta_sync();
                    }
                });
            });
        }
    })?;
    Ok(Case {
        kernel,
        line: SOURCE.marked(),
        trial: Trial::of(1).number(3),
    })
}

/// A wait covers the products of its own warpgroup. The first warpgroup has
/// the next B brought after its wait; the second may still read the old one.
fn wait_of_one(form: Form) -> Built {
    let kernel = Kernel::build("wait_of_one", &Target::default(), |k| {
        let (n, x) = (k.param::<u32>("n"), k.pointer::<bf16>("x"));
        let b = k.tile::<bf16>("b", 8, 16).declare().whole();
        let full = k.barrier("full", 1).count(1).at(0u32);
        for name in ["first", "second"] {
            let a = k.tile::<bf16>(name, 64, 16).declare().whole();
            k.role(name).warpgroups(1).body(|| {
                let at = Cursor::new(1, 0);
                clear(a, thread_in_role() / 2);
                fence_async();
                cta_sync();
                steps(n).each(|i| {
                    if name == "first" {
                        elect(|| {
                            bulk_load(b, x.address(i * 128), 256u32, full); // BUG: too early
                            full.arrive_expect(256u32);
                        });
                    }
                    full.wait(at.parity());
                    let acc = Acc::new(64, 8);
                    acc.mma(&a, &b);
                    acc.finish();
                    if form.is_repaired() {
                        cta_sync();
                    }
                    at.advance();
                });
            });
        }
    })?;
    Ok(Case {
        kernel,
        line: SOURCE.marked(),
        trial: Trial::of(1).number(3).buffer(3 * 256),
    })
}

/// A pass that splits products skipped the wait that the epilogue needs.
fn early_sums(form: Form) -> Built {
    let kernel = Kernel::build("early_sums", &Target::default(), |k| {
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
            if form.is_repaired() {
                acc.wait();
            }
            let mut sums = Vec::new();
            acc.peek(|sum| sums.push(sum));
            for (i, sum) in (0..).zip(sums) {
                y.store(thread_in_role() * 4 + i, sum); // BUG: the products may still add
            }
            acc.wait();
        });
    })?;
    Ok(Case {
        kernel,
        line: SOURCE.marked(),
        trial: Trial::of(1).buffer(4 * 4 * 128),
    })
}

/// The report was not found; this is what rule R14 says of operands. A tile of
/// plain rows has no descriptor here: wgmma reads swizzled ones.
fn plain_operand(form: Form) -> Built {
    let kernel = Kernel::build("plain_operand", &Target::default(), |k| {
        let a = k.tile::<bf16>("a", 64, 16);
        let a = form.pick(a.clone().plain(), a).declare().whole();
        let b = k.tile::<bf16>("b", 8, 16).declare().whole();
        k.role("math").warpgroups(1).body(|| {
            let row = thread_in_role() / 2;
            clear(a, row);
            if_(row.lt(8u32), || clear(b, row));
            fence_async();
            cta_sync();
            let acc = Acc::new(64, 8);
            acc.mma(&a, &b); // BUG: rows of A are not swizzled
            acc.finish();
        });
    })?;
    Ok(Case {
        kernel,
        line: SOURCE.marked(),
        trial: Trial::of(1),
    })
}
