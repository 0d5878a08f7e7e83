//! R5: a proxy fence separates generic and async accesses to the same bytes.

use crate::bug::{Bug, Built, ExpectedRun, Version};
use crate::case::CorpusCase;
use crate::mark::{Source, this_file};
use crate::ring::{BYTES, Cursor, Ring, WORDS};
use crate::template::LaunchTemplate;
use half::bf16;
use warpline_ir::builder::*;
use warpline_ir::{FaultKind, Kernel, Target};

const SOURCE: Source = this_file!("proxies.rs");

pub(crate) const BUGS: &[Bug] = &[
    Bug {
        name: "transformer-engine-2695",
        reference: "NVIDIA/TransformerEngine#2695",
        title: "a stage is read, and refilled by TMA without a proxy fence",
        rule: "R5.read",
        executor: ExpectedRun::Faults(&[FaultKind::MissingProxyFence]),
        build: refill_without_proxy_fence,
    },
    Bug {
        name: "deepep-642",
        reference: "deepseek-ai/DeepEP#642",
        title: "a slot is released after reads without a proxy fence",
        rule: "R5.read",
        executor: ExpectedRun::Faults(&[FaultKind::MissingProxyFence]),
        build: release_without_proxy_fence,
    },
    Bug {
        name: "tilelang-2634",
        reference: "tile-ai/tilelang#2634",
        title: "wgmma reads operands that threads wrote without a proxy fence",
        rule: "R5.write",
        executor: ExpectedRun::Faults(&[FaultKind::MissingProxyFence]),
        build: operand_without_proxy_fence,
    },
    Bug {
        name: "flashkda-24",
        reference: "MoonshotAI/FlashKDA#24",
        title: "an epilogue with a barrier but without a proxy fence before its bulk store",
        rule: "R5.write",
        executor: ExpectedRun::Faults(&[FaultKind::MissingProxyFence]),
        build: bulk_store_without_proxy_fence,
    },
];

/// All threads read the stage and pass a barrier, and one of them loads the next stage. The barrier
/// orders the threads, not the proxies.
fn refill_without_proxy_fence(version: Version) -> Built {
    let kernel = Kernel::build("refill_without_proxy_fence", &Target::default(), |k| {
        let (n, x) = (k.param::<u32>("n"), k.pointer::<f32>("x"));
        let stage = k
            .tile::<f32>("stage", 1, WORDS)
            .unswizzled()
            .declare()
            .whole();
        let full = k.barrier("full", 1).arrivals(1).at(0u32);
        k.role("all").warps(4).body(|| {
            let cursor = Cursor::new(1, 0);
            steps(n).each(|i| {
                elect(|| {
                    bulk_load(stage, x.address(i * WORDS), BYTES, full); // BUG: overwrites bytes that were read
                    full.arrive_expect(BYTES);
                });
                full.wait(cursor.parity());
                stage.load(0u32, lane_id());
                if version.is_repaired() {
                    fence_async();
                }
                cta_sync();
                cursor.advance();
            });
        });
    })?;
    Ok(CorpusCase {
        kernel,
        line: SOURCE.marked(),
        launch: LaunchTemplate::with_ctas(1).number(3).buffer(3 * BYTES),
    })
}

/// The arrival of the consumer orders its reads before the wait of the producer, but not before the
/// async copy of the producer.
fn release_without_proxy_fence(version: Version) -> Built {
    let kernel = Kernel::build("release_without_proxy_fence", &Target::default(), |k| {
        let (n, x) = (k.param::<u32>("n"), k.pointer::<f32>("x"));
        let ring = Ring::new(k, "ring", 2, 1);
        k.role("load").body(|| {
            let cursor = ring.producer_cursor();
            elect(|| steps(n).each(|i| ring.fill(cursor, x, i)));
        });
        k.role("combine").body(|| {
            let cursor = ring.consumer_cursor();
            steps(n).each(|_| {
                ring.full.at(cursor.stage()).wait(cursor.parity());
                ring.read_slot(cursor.stage()); // BUG: a copy may overtake the read
                if version.is_repaired() {
                    fence_async();
                }
                warp_sync();
                elect_lane(|| ring.empty.at(cursor.stage()).arrive());
                cursor.advance();
            });
        });
    })?;
    Ok(CorpusCase {
        kernel,
        line: SOURCE.marked(),
        launch: LaunchTemplate::with_ctas(1).number(5).buffer(5 * BYTES),
    })
}

/// The compiler inserted the fence before dense wgmmas but not before sparse ones. Threads write both
/// operands, pass a barrier and issue the wgmma.
fn operand_without_proxy_fence(version: Version) -> Built {
    let kernel = Kernel::build("operand_without_proxy_fence", &Target::default(), |k| {
        let a = k.tile::<bf16>("a", 64, 16).declare().whole();
        let b = k.tile::<bf16>("b", 8, 16).declare().whole();
        k.role("math").warpgroups(1).body(|| {
            let (row, column) = (thread_id() / 2, thread_id() % 2 * 8);
            a.store_as(row, column, [0u32; 4]);
            if_(row.lt(8u32), || b.store_as(row, column, [0u32; 4]));
            if version.is_repaired() {
                fence_async();
            }
            cta_sync();
            let acc = Acc::new(64, 8);
            acc.mma(&a, &b); // BUG: may read old bytes
            acc.into_frag();
        });
    })?;
    Ok(CorpusCase {
        kernel,
        line: SOURCE.marked(),
        launch: LaunchTemplate::with_ctas(1),
    })
}

/// All threads convert the state into a buffer; after a barrier one of them issues the store.
fn bulk_store_without_proxy_fence(version: Version) -> Built {
    let kernel = Kernel::build("bulk_store_without_proxy_fence", &Target::default(), |k| {
        let y = k.pointer::<f32>("y");
        let state = k
            .tile::<f32>("state", 4, WORDS)
            .unswizzled()
            .declare()
            .whole();
        k.role("all").warps(4).body(|| {
            state.store(warp_id(), lane_id(), 1.0);
            if version.is_repaired() {
                fence_async();
            }
            cta_sync();
            elect(|| {
                bulk_store(state, y.address(0u32), 4 * BYTES); // BUG: may read old bytes
                bulk_commit();
                bulk_wait_read(0);
            });
        });
    })?;
    Ok(CorpusCase {
        kernel,
        line: SOURCE.marked(),
        launch: LaunchTemplate::with_ctas(1).buffer(4 * BYTES),
    })
}
