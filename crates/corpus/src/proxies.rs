//! R5: generic and async accesses of the same bytes have a proxy fence between them.

use crate::bug::{Bug, Built, Executor, Form};
use crate::case::Case;
use crate::kit::{BYTES, Cursor, Ring, WORDS};
use crate::mark::{Source, this_file};
use crate::trial::Trial;
use half::bf16;
use warpline_ir::build::*;
use warpline_ir::{FaultKind, Kernel, Target};

const SOURCE: Source = this_file!("proxies.rs");

pub(crate) const BUGS: &[Bug] = &[
    Bug {
        name: "transformer-engine-2695",
        reference: "NVIDIA/TransformerEngine#2695",
        title: "a stage is read, and refilled by TMA without a proxy fence",
        rule: "R5.read",
        executor: Executor::Faults(&[FaultKind::MissingProxyFence]),
        build: refilled_stage,
    },
    Bug {
        name: "deepep-642",
        reference: "deepseek-ai/DeepEP#642",
        title: "a slot is given back after reads that no proxy fence follows",
        rule: "R5.read",
        executor: Executor::Faults(&[FaultKind::MissingProxyFence]),
        build: slot_given_back,
    },
    Bug {
        name: "tilelang-2634",
        reference: "tile-ai/tilelang#2634",
        title: "wgmma reads operands that threads wrote without a proxy fence",
        rule: "R5.write",
        executor: Executor::Faults(&[FaultKind::MissingProxyFence]),
        build: written_operand,
    },
    Bug {
        name: "flashkda-24",
        reference: "MoonshotAI/FlashKDA#24",
        title: "a store epilogue with a barrier and no proxy fence",
        rule: "R5.write",
        executor: Executor::Faults(&[FaultKind::MissingProxyFence]),
        build: store_epilogue,
    },
];

/// All threads read the stage, meet, and one of them has the next one brought.
/// The meeting orders the threads, not the proxies.
fn refilled_stage(form: Form) -> Built {
    let kernel = Kernel::build("refilled_stage", &Target::default(), |k| {
        let (n, x) = (k.param::<u32>("n"), k.pointer::<f32>("x"));
        let stage = k.tile::<f32>("stage", 1, WORDS).plain().declare().whole();
        let full = k.barrier("full", 1).count(1).at(0u32);
        k.role("all").warps(4).body(|| {
            let at = Cursor::new(1, 0);
            steps(n).each(|i| {
                elect(|| {
                    bulk_load(stage, x.address(i * WORDS), BYTES, full); // BUG: over what was read
                    full.arrive_expect(BYTES);
                });
                full.wait(at.parity());
                stage.load(0u32, lane_id());
                if form.is_repaired() {
                    fence_async();
                }
                cta_sync();
                at.advance();
            });
        });
    })?;
    Ok(Case {
        kernel,
        line: SOURCE.marked(),
        trial: Trial::of(1).number(3).buffer(3 * BYTES),
    })
}

/// The same between two roles: the arrival tells the loader that the reads
/// are done, but does not keep its copy behind them.
fn slot_given_back(form: Form) -> Built {
    let kernel = Kernel::build("slot_given_back", &Target::default(), |k| {
        let (n, x) = (k.param::<u32>("n"), k.pointer::<f32>("x"));
        let ring = Ring::new(k, "ring", 2, 1);
        k.role("load").body(|| {
            let at = ring.fills();
            elect(|| steps(n).each(|i| ring.fill(at, x, i)));
        });
        k.role("combine").body(|| {
            let at = ring.reads();
            steps(n).each(|_| {
                ring.full.at(at.stage()).wait(at.parity());
                ring.look(at.stage()); // BUG: a copy may overtake the read
                if form.is_repaired() {
                    fence_async();
                }
                warp_sync();
                elect_lane(|| ring.empty.at(at.stage()).arrive());
                at.advance();
            });
        });
    })?;
    Ok(Case {
        kernel,
        line: SOURCE.marked(),
        trial: Trial::of(1).number(5).buffer(5 * BYTES),
    })
}

/// The compiler put the fence before dense products and forgot the sparse
/// ones. Threads write both operands, meet and multiply.
fn written_operand(form: Form) -> Built {
    let kernel = Kernel::build("written_operand", &Target::default(), |k| {
        let a = k.tile::<bf16>("a", 64, 16).declare().whole();
        let b = k.tile::<bf16>("b", 8, 16).declare().whole();
        k.role("math").warpgroups(1).body(|| {
            let (row, column) = (thread_id() / 2, thread_id() % 2 * 8);
            a.store_as(row, column, [0u32; 4]);
            if_(row.lt(8u32), || b.store_as(row, column, [0u32; 4]));
            if form.is_repaired() {
                fence_async();
            }
            cta_sync();
            let acc = Acc::new(64, 8);
            acc.mma(&a, &b); // BUG: may read what was there before
            acc.finish();
        });
    })?;
    Ok(Case {
        kernel,
        line: SOURCE.marked(),
        trial: Trial::of(1),
    })
}

/// The state is converted into a buffer by all threads; after a barrier one of
/// them has it stored.
fn store_epilogue(form: Form) -> Built {
    let kernel = Kernel::build("store_epilogue", &Target::default(), |k| {
        let y = k.pointer::<f32>("y");
        let state = k.tile::<f32>("state", 4, WORDS).plain().declare().whole();
        k.role("all").warps(4).body(|| {
            state.store(warp_id(), lane_id(), 1.0);
            if form.is_repaired() {
                fence_async();
            }
            cta_sync();
            elect(|| {
                bulk_store(state, y.address(0u32), 4 * BYTES); // BUG: may read what was there
                bulk_commit();
                bulk_wait_read(0);
            });
        });
    })?;
    Ok(Case {
        kernel,
        line: SOURCE.marked(),
        trial: Trial::of(1).buffer(4 * BYTES),
    })
}
