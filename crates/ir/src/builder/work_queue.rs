//! Work queues: a dynamic tile scheduler over an atomic counter.

use super::declare::Builder;
use super::flow::{if_, while_};
use super::global::Global;
use super::raw::{MbarrierArray, store_async};
use super::reg::{Reg, Value, Var};
use super::ring::Ring;
use super::state::{caller_scope, with};
use super::tile::Tile;
use super::warp::{cluster_id, cluster_rank, cta_id, grid_clusters, grid_ctas};
use crate::ops::atomic::AtomicOp;
use crate::sync::{MemoryOrder, Scope};

/// A dynamic tile scheduler: CTAs (or clusters) take work items from an atomic counter.
///
/// One role fetches items from the counter in global memory and broadcasts them through a
/// ring; all other roles read the ring, so all see the same sequence. The first item of a
/// CTA or cluster is its own index; the rest come from the counter. The queue adds a
/// pointer parameter to two words: the counter, and the number of CTAs or clusters that are
/// done. They are zero before the first launch, and the last CTA resets them.
///
/// An item can have a *payload*: `PAYLOAD` words that the fetching thread computes, for example
/// from a table in global memory, and that all roles receive with the item.
#[derive(Clone, Copy, Debug)]
pub struct WorkQueue<const PAYLOAD: usize = 0> {
    words: Global<u32>,
    ring: Ring<Tile<u32>>,
    /// The queue between the fetching threads of a cluster.
    cluster: Option<ClusterQueue>,
}

/// Items that the fetching thread of CTA 0 of a cluster sends to the fetching threads of
/// all its CTAs.
///
/// These threads store nothing to global memory, so their cluster-scope release is cheap.
/// The other roles read the item from the ring of their own CTA.
#[derive(Clone, Copy, Debug)]
struct ClusterQueue {
    items: Tile<u32>,
    /// In every CTA: the item has arrived.
    full: MbarrierArray,
    /// In CTA 0: all CTAs of the cluster have read the item.
    empty: MbarrierArray,
    size: u32,
}

impl WorkQueue {
    /// Fetches items below `count` and runs `body` for each; called by one thread of the
    /// fetching role.
    ///
    /// The next fetch is issued before `body` runs.
    #[track_caller]
    pub fn fetch_each(self, count: impl Value<u32>, body: impl FnOnce(Reg<u32>)) {
        let _caller = caller_scope();
        self.fetch_each_with_payload(count, |_| [], |item, _| body(item));
    }

    /// Runs `body` for each item that the fetching role took; called by all other roles.
    #[track_caller]
    pub fn each(self, count: impl Value<u32>, body: impl FnOnce(Reg<u32>)) {
        let _caller = caller_scope();
        self.each_with_payload(count, |item, _| body(item));
    }
}

impl<const PAYLOAD: usize> WorkQueue<PAYLOAD> {
    #[track_caller]
    pub(crate) fn new(k: Builder, name: &str, stages: u32) -> Self {
        let size = with(|s| s.cluster.iter().product());
        let cluster = || ClusterQueue {
            items: k
                .tile(&format!("{name}_items"), 1, 4)
                .unswizzled()
                .stages(STAGES)
                .declare(),
            full: k
                .barrier(&format!("{name}_cluster_full"), STAGES)
                .arrivals(1),
            empty: k
                .barrier(&format!("{name}_cluster_empty"), STAGES)
                .arrivals(size),
            size,
        };
        Self {
            words: k.pointer(name),
            cluster: (size > 1).then(cluster),
            ring: k
                .ring(name, stages, |s| s.vector::<u32>(4 * slot_vectors(PAYLOAD)))
                .broadcast(),
        }
    }

    /// Like [`fetch_each`](WorkQueue::fetch_each), for items with a payload: `payload` computes its words,
    /// and `body` receives them too. `count` is at least 1.
    #[track_caller]
    pub fn fetch_each_with_payload(
        self,
        count: impl Value<u32>,
        payload: impl FnOnce(Reg<u32>) -> [Reg<u32>; PAYLOAD],
        body: impl FnOnce(Reg<u32>, [Reg<u32>; PAYLOAD]),
    ) {
        let _caller = caller_scope();
        let count = count.reg();
        // Each of the `users` (CTAs or clusters) takes its first item without the counter.
        let fetch_next = |next: Var<u32>, users: Reg<u32>| {
            next.set(self.words.fetch_add(0u32, 1u32) + users);
        };
        let broadcast = |item: Reg<u32>| {
            // The item that ends the loop has the payload of the last valid one.
            let payload = payload(if PAYLOAD == 0 {
                item
            } else {
                item.min(count - 1)
            });
            let slot = self.ring.acquire();
            slot.store(0u32, 0u32, item);
            for (i, word) in (1u32..).zip(payload) {
                slot.store(0u32, i, word);
            }
            slot.commit();
            (item, payload)
        };
        let Some(cluster) = self.cluster else {
            let (next, users) = (Var::new(cta_id()), grid_ctas());
            each_until(count, body, || {
                let item = broadcast(next.get());
                fetch_next(next, users);
                item
            });
            self.finish(users);
            return;
        };
        let is_first_cta = cluster_rank().eq(0u32);
        let (next, users) = (Var::new(cluster_id()), grid_clusters());
        let position = Var::new(0u32);
        each_until(count, body, || {
            let stage = cluster.stage(position.get());
            position.set((position.get() + 1) % (2 * STAGES));
            if_(is_first_cta, || {
                cluster.send(stage, next.get());
                fetch_next(next, users);
            });
            broadcast(cluster.receive(stage))
        });
        if_(is_first_cta, || self.finish(users));
    }

    /// Like [`each`](WorkQueue::each), for items with a payload.
    #[track_caller]
    pub fn each_with_payload(
        self,
        count: impl Value<u32>,
        body: impl FnOnce(Reg<u32>, [Reg<u32>; PAYLOAD]),
    ) {
        let _caller = caller_scope();
        each_until(count.reg(), body, || {
            let slot = self.ring.wait();
            let item = slot.load(0u32, 0u32);
            let payload = std::array::from_fn(|i| slot.load(0u32, 1 + i as u32));
            slot.release();
            (item, payload)
        });
    }

    /// Counts this CTA or cluster as done; the last of `users` resets both words.
    #[track_caller]
    fn finish(self, users: Reg<u32>) {
        let order = MemoryOrder::acq_rel(Scope::Gpu);
        let finished_before = self
            .words
            .atomic_ref(1u32)
            .atomic(AtomicOp::Add, 1u32, order);
        if_(finished_before.eq(users - 1), || {
            self.words.store(0u32, 0u32);
            self.words.store(1u32, 0u32);
        });
    }
}

/// Items in flight within a cluster.
const STAGES: u32 = 2;

/// Returns the 16-byte vectors that hold an item and its payload.
fn slot_vectors(payload: usize) -> u32 {
    (1 + payload as u32).div_ceil(4)
}

/// Runs `body` for each item of `next` until one is not below `count`.
#[track_caller]
fn each_until<const PAYLOAD: usize>(
    count: Reg<u32>,
    body: impl FnOnce(Reg<u32>, [Reg<u32>; PAYLOAD]),
    next: impl FnOnce() -> (Reg<u32>, [Reg<u32>; PAYLOAD]),
) {
    let has_more = Var::new(true);
    while_(
        || has_more.get(),
        || {
            let (item, payload) = next();
            let is_valid = item.lt(count);
            has_more.set(is_valid);
            if_(is_valid, || body(item, payload));
        },
    );
}

/// A stage of a cluster's queue, and the parity of its barriers.
#[derive(Clone, Copy)]
struct QueueStage {
    stage: Reg<u32>,
    parity: Reg<u32>,
}

impl ClusterQueue {
    #[track_caller]
    fn stage(self, position: Reg<u32>) -> QueueStage {
        QueueStage {
            stage: position % STAGES,
            parity: (position / STAGES) & 1u32,
        }
    }

    /// Sends an item to every CTA of the cluster, after all have read the stage's previous item.
    #[track_caller]
    fn send(self, at: QueueStage, item: Reg<u32>) {
        self.empty.at(at.stage).wait_cluster(at.parity ^ 1u32);
        for rank in 0..self.size {
            let (to, bar) = (self.items.stage(at.stage), self.full.at(at.stage));
            store_async(to.peer(rank), 0u32, 0u32, [item], bar.peer(rank));
        }
    }

    /// Waits for the item of a stage, and frees the stage.
    #[track_caller]
    fn receive(self, at: QueueStage) -> Reg<u32> {
        let full = self.full.at(at.stage);
        full.arrive_expect(4u32);
        full.wait_cluster(at.parity);
        let item = self.items.stage(at.stage).load(0u32, 0u32);
        self.empty.at(at.stage).peer(0u32).arrive_cluster();
        item
    }
}
