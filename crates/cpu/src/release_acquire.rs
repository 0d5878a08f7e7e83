//! Release and acquire through memory words.
//!
//! A release stores the clock of its lanes with the word that it writes; an acquire joins the clock
//! of the word that it reads. Each must be in the scope of the other: in one CTA, or at cluster scope
//! or wider. A fence before a relaxed write makes it a release; a fence after a relaxed read makes it
//! an acquire.
//!
//! A release to other clusters, through a word of global memory at GPU scope, is stored with the
//! shadow of that memory. An acquire there may return epochs of the own cluster that passed through
//! another cluster.

use crate::clock::{Clock, Threads};
use crate::machine::{WarpMachine, lanes_of};
use crate::warp_clock::{ClocksByLanes, WarpClock};
use std::collections::HashMap;
use std::slice::{from_mut, from_ref};
use std::sync::Arc;
use warpline_ir::{Mask, MemoryOrder, ResolvedAddress, Scope, Semantics};

/// The address of a memory word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum WordAddress {
    /// In global memory.
    Global(u64),
    /// In the shared memory of a CTA.
    Shared(ResolvedAddress),
}

impl WordAddress {
    fn is_shared(self) -> bool {
        matches!(self, WordAddress::Shared(_))
    }
}

/// The clocks released through one word, by scope.
#[derive(Clone, Debug)]
struct ScopedClocks {
    /// By CTA: the clock for its threads.
    by_cta: Vec<Option<Clock>>,
    /// The clock for the whole cluster.
    cluster: Option<Clock>,
}

fn join(to: &mut Option<Clock>, from: &Clock) {
    match to {
        Some(c) => c.join(from),
        None => *to = Some(from.clone()),
    }
}

impl ScopedClocks {
    fn new(ctas: u32) -> Self {
        Self {
            by_cta: vec![None; ctas as usize],
            cluster: None,
        }
    }

    fn add(&mut self, cta: u32, cluster_scope: bool, clock: &Clock) {
        join(&mut self.by_cta[cta as usize], clock);
        if cluster_scope {
            join(&mut self.cluster, clock);
        }
    }

    /// Returns the clocks that a thread of a CTA can acquire at a scope.
    fn visible_clocks(&self, cta: u32, cluster_scope: bool) -> impl Iterator<Item = &Clock> {
        let cluster_scope = if cluster_scope {
            self.cluster.as_ref()
        } else {
            None
        };
        self.by_cta[cta as usize].iter().chain(cluster_scope)
    }
}

/// The clocks released through memory words.
#[derive(Debug)]
pub(crate) struct Released {
    threads: Threads,
    words: HashMap<WordAddress, ScopedClocks>,
}

impl Released {
    /// Creates an empty table.
    pub(crate) fn new(threads: &Threads) -> Self {
        Self {
            threads: *threads,
            words: HashMap::new(),
        }
    }

    fn release(&mut self, word: WordAddress, cta: u32, scope: Scope, clock: &Clock) {
        let clocks = self.words.entry(word);
        let clocks = clocks.or_insert_with(|| ScopedClocks::new(self.threads.ctas));
        clocks.add(cta, includes_cluster(scope), clock);
    }

    /// Returns the clocks that a thread of a CTA acquires.
    fn acquired(&self, word: WordAddress, cta: u32, scope: Scope) -> impl Iterator<Item = &Clock> {
        let here = self.words.get(&word).into_iter();
        here.flat_map(move |r| r.visible_clocks(cta, includes_cluster(scope)))
    }
}

fn includes_cluster(scope: Scope) -> bool {
    scope >= Scope::Cluster
}

/// Whether threads of other clusters can release or acquire through a word at a scope.
fn reaches_other_clusters(word: WordAddress, scope: Scope) -> bool {
    scope >= Scope::Gpu && matches!(word, WordAddress::Global(_))
}

/// The scope levels: CTA, cluster, device.
const SCOPE_LEVELS: [Scope; 3] = [Scope::Cta, Scope::Cluster, Scope::Sys];

fn scope_levels(scope: Scope) -> usize {
    match scope {
        Scope::Cta => 1,
        Scope::Cluster => 2,
        Scope::Gpu | Scope::Sys => 3,
    }
}

/// Snapshots of a warp's clock at the last fences of its lanes.
#[derive(Clone, Default, Debug)]
struct FenceSnapshots(Vec<(Mask, Arc<WarpClock>)>);

impl FenceSnapshots {
    /// Records a fence of some lanes; it supersedes their earlier fences.
    fn record(&mut self, lanes: Mask, clock: &Arc<WarpClock>) {
        self.0.retain_mut(|(of, _)| {
            *of &= !lanes;
            *of != 0
        });
        self.0.push((lanes, clock.clone()));
    }

    /// Returns the clock that relaxed writes of some lanes release: for each lane, its clock at its
    /// last fence.
    fn released(&self, lanes: Mask, threads: &Threads) -> Option<Clock> {
        let mut published = None;
        for (of, clock) in self.0.iter().filter(|(of, _)| of & lanes != 0) {
            let published = published.get_or_insert_with(|| Clock::new(threads));
            clock.publish(of & lanes, published);
        }
        published
    }
}

/// The state of a warp's fences and relaxed accesses.
#[derive(Clone, Default, Debug)]
pub(crate) struct FenceState {
    /// By scope level: the clock before the last fence of that level. Later relaxed writes release
    /// it.
    before: [FenceSnapshots; 3],
    /// The clock before the last fence of shared memory only, whose scope is the cluster.
    before_shared: FenceSnapshots,
    /// By scope level: the clocks that relaxed reads found. The next fence of that level acquires
    /// them.
    observed: [ClocksByLanes; 3],
    /// The clocks that relaxed reads of shared memory found, at cluster scope.
    observed_shared: ClocksByLanes,
}

impl WarpMachine<'_, '_> {
    /// Applies the release and acquire of a strong access; `word` returns the address of a lane.
    pub(crate) fn apply_order(&mut self, order: MemoryOrder, word: impl Fn(usize) -> WordAddress) {
        let facts = self.env.code.sites[self.site as usize].facts;
        let orders = order.sem != Semantics::Relaxed || self.env.code.has_order_fences;
        if self.warp.clock.is_none() || !orders {
            return;
        }
        let mut remaining = self.warp.active;
        let mut groups: Vec<(WordAddress, Mask)> = Vec::new();
        while remaining != 0 {
            let first = word(remaining.trailing_zeros() as usize);
            let same = lanes_of(remaining).filter(|&l| word(l) == first);
            let same = same.fold(0, |m, l| m | 1 << l);
            groups.push((first, same));
            remaining &= !same;
        }
        if facts.only_writes {
            // If several lanes store to one word, the last value remains.
            let last = |m: Mask| 1 << (31 - m.leading_zeros());
            groups.iter_mut().for_each(|g| g.1 = last(g.1));
        }
        // Lanes of one instruction run in sequence: a lane may acquire the release of an earlier one.
        if !facts.only_reads {
            groups
                .iter()
                .for_each(|&(word, lanes)| self.release_word(order, word, lanes));
        }
        if let (Some(c), true) = (&mut self.warp.clock, order.sem.releases()) {
            c.now += 1;
        }
        if !facts.only_writes {
            groups
                .iter()
                .for_each(|&(word, lanes)| self.acquire_word(order, word, lanes));
        }
    }

    fn release_word(&mut self, order: MemoryOrder, word: WordAddress, lanes: Mask) {
        let (Some(released), Some(clock)) = (&mut self.cluster.released, &self.warp.clock) else {
            return;
        };
        let (cta, cluster) = (self.warp.cta, self.cluster.index);
        let mut release = |scope: Scope, published: &Clock| {
            released.release(word, cta, scope, published);
            if let (Some(global), WordAddress::Global(at), true) =
                (&mut *self.global, word, reaches_other_clusters(word, scope))
            {
                global.release(at, cluster, published);
            }
        };
        if order.sem.releases() {
            let mut published = Clock::new(&self.cluster.threads);
            clock.publish(lanes, &mut published);
            return release(order.scope, &published);
        }
        let Some(fence_state) = &self.warp.fence_state else {
            return;
        };
        let scopes = SCOPE_LEVELS.map(|s| s.min(order.scope));
        let by_level = fence_state.before.iter().zip(scopes);
        let shared = word
            .is_shared()
            .then_some((&fence_state.before_shared, order.scope));
        for (before, scope) in by_level.chain(shared) {
            if let Some(published) = before.released(lanes, &self.cluster.threads) {
                release(scope, &published);
            }
        }
    }

    fn acquire_word(&mut self, order: MemoryOrder, word: WordAddress, lanes: Mask) {
        let (Some(released), Some(clock)) = (&self.cluster.released, &mut self.warp.clock) else {
            return;
        };
        let (cta, cluster) = (self.warp.cta, self.cluster.index);
        let global = &*self.global;
        let acquired = |scope: Scope| {
            let from_other_clusters = match word {
                WordAddress::Global(at) if reaches_other_clusters(word, scope) => {
                    global.as_ref().and_then(|g| g.acquired(at))
                }
                _ => None,
            };
            let returned = from_other_clusters.and_then(|c| c.other_clusters.clock_of(cluster));
            released
                .acquired(word, cta, scope)
                .chain(from_other_clusters)
                .chain(returned)
        };
        if order.sem.acquires() {
            for c in acquired(order.scope) {
                clock.acquire(lanes, c);
            }
            return;
        }
        let scopes = SCOPE_LEVELS.map(|s| s.min(order.scope));
        for (i, scope) in scopes.into_iter().enumerate() {
            for c in acquired(scope) {
                let fence_state = self.warp.fence_state.get_or_insert_default();
                fence_state.observed[i].add(lanes, c);
                if i == 1 && word.is_shared() {
                    fence_state.observed_shared.add(lanes, c);
                }
            }
        }
    }

    /// Runs a fence of the active lanes, for all memory or for shared memory only.
    pub(crate) fn fence_order(&mut self, order: MemoryOrder, shared: bool) {
        let lanes = self.warp.active;
        let Some(clock) = &mut self.warp.clock else {
            return;
        };
        let fence_state = self.warp.fence_state.get_or_insert_default();
        let levels = scope_levels(order.scope);
        let (before, observed) = match shared {
            true => (
                from_mut(&mut fence_state.before_shared),
                from_ref(&fence_state.observed_shared),
            ),
            false => (
                &mut fence_state.before[..levels],
                &fence_state.observed[..levels],
            ),
        };
        if order.sem.releases() {
            let snapshot = Arc::new(WarpClock::clone(clock));
            before.iter_mut().for_each(|b| b.record(lanes, &snapshot));
            clock.now += 1;
        }
        if order.sem.acquires() {
            let observed = observed.iter().flat_map(|f| f.overlapping(lanes));
            observed.for_each(|(of, observed)| clock.acquire(of, observed));
        }
    }
}
