//! Work queues: items that CTAs, or clusters, take as they come to them.

use super::declare::Builder;
use super::flow::{if_, while_};
use super::global::Global;
use super::raw::{Bar, store_async};
use super::reg::{Reg, Value, Var};
use super::ring::Ring;
use super::state::{here, with};
use super::tile::Tile;
use super::warp::{cluster_id, cluster_rank, cta_id, grid_clusters, grid_ctas};
use crate::ops::atomic::AtomicOp;
use crate::sync::{MemoryOrder, Scope};

/// A queue of work items, taken as CTAs come to them; the CTAs of a cluster take them together.
///
/// The role that fetches takes numbers from a counter in global memory and
/// passes them on through a ring; every other role learns of an item only
/// there, so all see the same sequence. The first item of a CTA, or of a
/// cluster, is the one of its own index; the rest come from the counter. Two words lie at the pointer that the queue adds to
/// the parameters: the counter, and how many CTAs or clusters are through.
/// They are zero before the first launch, and the last one makes them so again.
#[derive(Clone, Copy, Debug)]
pub struct WorkQueue {
    words: Global<u32>,
    ring: Ring<Tile<u32>>,
    /// Where the fetching threads of a cluster tell each other.
    cluster: Option<Shared>,
}

/// What the fetching thread of a cluster's first CTA tells those of the others.
///
/// These threads store nothing to global memory, so a release to the cluster
/// costs them little; the other roles learn of an item inside their CTA.
#[derive(Clone, Copy, Debug)]
struct Shared {
    items: Tile<u32>,
    /// In every CTA: the item has come.
    full: Bar,
    /// In the first CTA: all of the cluster have read it.
    empty: Bar,
    size: u32,
}

impl WorkQueue {
    #[track_caller]
    pub(crate) fn new(k: Builder, name: &str, stages: u32) -> Self {
        let size = with(|s| s.cluster.iter().product());
        let shared = || Shared {
            items: k
                .tile(&format!("{name}_items"), 1, 4)
                .plain()
                .stages(STAGES)
                .declare(),
            full: k.barrier(&format!("{name}_told"), STAGES).count(1),
            empty: k.barrier(&format!("{name}_heard"), STAGES).count(size),
            size,
        };
        Self {
            words: k.pointer(name),
            cluster: (size > 1).then(shared),
            ring: k.ring(name, stages, |s| s.vector::<u32>(4)).shared(),
        }
    }

    /// In the fetching role, by one thread: takes items below `count` and runs `body` for each.
    ///
    /// The next item is asked for before `body` works on this one.
    #[track_caller]
    pub fn fetch_each(self, count: impl Value<u32>, body: impl FnOnce(Reg<u32>)) {
        let _at = here();
        let count = count.reg();
        // The first items, one for each CTA or cluster, are not the counter's.
        let after = |next: Var<u32>, all: Reg<u32>| {
            next.set(self.words.fetch_add(0u32, 1u32) + all);
        };
        let tell = |item| {
            let slot = self.ring.acquire();
            slot.store(0u32, 0u32, item);
            slot.commit();
        };
        let Some(shared) = self.cluster else {
            let (next, all) = (Var::new(cta_id()), grid_ctas());
            each_until(count, body, || {
                let item = next.get();
                tell(item);
                after(next, all);
                item
            });
            self.leave(all);
            return;
        };
        let first = cluster_rank().eq(0u32);
        let (next, all) = (Var::new(cluster_id()), grid_clusters());
        let turn = Var::new(0u32);
        each_until(count, body, || {
            let place = shared.place(turn.get());
            turn.set((turn.get() + 1) % (2 * STAGES));
            if_(first, || {
                shared.send(place, next.get());
                after(next, all);
            });
            let item = shared.receive(place);
            tell(item);
            item
        });
        if_(first, || self.leave(all));
    }

    /// In any other role: runs `body` for each item the fetching role took.
    #[track_caller]
    pub fn each(self, count: impl Value<u32>, body: impl FnOnce(Reg<u32>)) {
        let _at = here();
        each_until(count.reg(), body, || {
            let slot = self.ring.wait();
            let item = slot.load(0u32, 0u32);
            slot.release();
            item
        });
    }

    /// Says that this CTA or cluster takes no more; the last of `all` clears the words.
    #[track_caller]
    fn leave(self, all: Reg<u32>) {
        let order = MemoryOrder::acq_rel(Scope::Gpu);
        let before = self.words.word(1u32).atomic(AtomicOp::Add, 1u32, order);
        if_(before.eq(all - 1), || {
            self.words.store(0u32, 0u32);
            self.words.store(1u32, 0u32);
        });
    }
}

/// Items on their way through a cluster.
const STAGES: u32 = 2;

/// Runs `body` for each item that `next` gives below `count`.
#[track_caller]
fn each_until(count: Reg<u32>, body: impl FnOnce(Reg<u32>), next: impl FnOnce() -> Reg<u32>) {
    let more = Var::new(true);
    while_(
        || more.get(),
        || {
            let item = next();
            let good = item.lt(count);
            more.set(good);
            if_(good, || body(item));
        },
    );
}

/// A place in a cluster's queue, and the parity of its barriers.
#[derive(Clone, Copy)]
struct Place {
    stage: Reg<u32>,
    parity: Reg<u32>,
}

impl Shared {
    #[track_caller]
    fn place(self, turn: Reg<u32>) -> Place {
        Place {
            stage: turn % STAGES,
            parity: (turn / STAGES) & 1u32,
        }
    }

    /// Tells every CTA of the cluster an item, once all have read what was in its place.
    #[track_caller]
    fn send(self, at: Place, item: Reg<u32>) {
        self.empty.at(at.stage).wait_cluster(at.parity ^ 1u32);
        for rank in 0..self.size {
            let (to, bar) = (self.items.stage(at.stage), self.full.at(at.stage));
            store_async(to.peer(rank), 0u32, 0u32, [item], bar.peer(rank));
        }
    }

    /// The item that comes to this place, which is free again.
    #[track_caller]
    fn receive(self, at: Place) -> Reg<u32> {
        let full = self.full.at(at.stage);
        full.arrive_expect(4u32);
        full.wait_cluster(at.parity);
        let item = self.items.stage(at.stage).load(0u32, 0u32);
        self.empty.at(at.stage).peer(0u32).arrive_cluster();
        item
    }
}
