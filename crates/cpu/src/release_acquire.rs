//! Release and acquire through memory words.
//!
//! A release stores the clock of its lanes with the word that it writes; an acquire joins the clock
//! of the word that it reads. Both must be in each other's scope: in one CTA, or at cluster scope or
//! wider. A relaxed access does neither: a fence before a relaxed write makes it a release, a fence
//! after a relaxed read makes it an acquire.
//!
//! A release to other clusters, through a word of global memory at GPU scope, is stored with the
//! shadow of that memory. An acquire there may return epochs of the own cluster that passed through
//! another cluster.

use crate::clock::{Clock, Threads};
use crate::machine::{WarpMachine, lanes_of};
use crate::warp_clock::{ByLanes, WarpClock};
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

/// Clocks by scope: CTA and cluster.
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

    fn add(&mut self, cta: u32, wide: bool, clock: &Clock) {
        join(&mut self.by_cta[cta as usize], clock);
        if wide {
            join(&mut self.cluster, clock);
        }
    }

    /// Returns the clocks that a thread of a CTA can acquire at a scope.
    fn each(&self, cta: u32, wide: bool) -> impl Iterator<Item = &Clock> {
        let wide = if wide { self.cluster.as_ref() } else { None };
        self.by_cta[cta as usize].iter().chain(wide)
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
        let reach = self.words.entry(word);
        let reach = reach.or_insert_with(|| ScopedClocks::new(self.threads.ctas));
        reach.add(cta, is_wide(scope), clock);
    }

    /// Returns the clocks that a thread of a CTA acquires.
    fn acquired(&self, word: WordAddress, cta: u32, scope: Scope) -> impl Iterator<Item = &Clock> {
        let here = self.words.get(&word).into_iter();
        here.flat_map(move |r| r.each(cta, is_wide(scope)))
    }
}

fn is_wide(scope: Scope) -> bool {
    scope >= Scope::Cluster
}

/// Whether threads of other clusters can take part.
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
    fn fence(&mut self, lanes: Mask, clock: &Arc<WarpClock>) {
        self.0.retain_mut(|(of, _)| {
            *of &= !lanes;
            *of != 0
        });
        self.0.push((lanes, clock.clone()));
    }

    /// Returns the clock that relaxed writes of some lanes release: for each lane, up to its fence.
    fn released(&self, lanes: Mask, threads: &Threads) -> Option<Clock> {
        let mut clock_out = None;
        for (of, clock) in self.0.iter().filter(|(of, _)| of & lanes != 0) {
            let clock_out = clock_out.get_or_insert_with(|| Clock::new(threads));
            clock.publish(of & lanes, clock_out);
        }
        clock_out
    }
}

/// The state of a warp's fences and relaxed accesses.
#[derive(Clone, Default, Debug)]
pub(crate) struct FenceState {
    /// By scope level: the clock before the last fence of that level. Later relaxed writes release
    /// it.
    before: [FenceSnapshots; 3],
    /// The same for fences and writes of shared memory only; their scope is the cluster.
    before_shared: FenceSnapshots,
    /// By scope level: the clocks that relaxed reads found. The next fence of that level acquires
    /// them.
    found: [ByLanes; 3],
    /// The same for reads of shared memory.
    found_shared: ByLanes,
}

impl WarpMachine<'_, '_> {
    /// Applies the release and acquire of a strong access; `word` returns the address of a lane.
    pub(crate) fn order(&mut self, order: MemoryOrder, word: impl Fn(usize) -> WordAddress) {
        let facts = self.env.code.sites[self.site as usize].facts;
        let orders = order.sem != Semantics::Relaxed || self.env.code.fences;
        if self.warp.clock.is_none() || !orders {
            return;
        }
        let mut left = self.warp.active;
        let mut groups: Vec<(WordAddress, Mask)> = Vec::new();
        while left != 0 {
            let first = word(left.trailing_zeros() as usize);
            let same = lanes_of(left).filter(|&l| word(l) == first);
            let same = same.fold(0, |m, l| m | 1 << l);
            groups.push((first, same));
            left &= !same;
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
        let mut release = |scope: Scope, clock_out: &Clock| {
            released.release(word, cta, scope, clock_out);
            if let (Some(global), WordAddress::Global(at), true) =
                (&mut *self.global, word, reaches_other_clusters(word, scope))
            {
                global.release(at, cluster, clock_out);
            }
        };
        if order.sem.releases() {
            let mut clock_out = Clock::new(&self.cluster.threads);
            clock.publish(lanes, &mut clock_out);
            return release(order.scope, &clock_out);
        }
        let Some(fenced) = &self.warp.fenced else {
            return;
        };
        let scopes = SCOPE_LEVELS.map(|s| s.min(order.scope));
        let any = fenced.before.iter().zip(scopes);
        let shared = word
            .is_shared()
            .then_some((&fenced.before_shared, order.scope));
        for (before, scope) in any.chain(shared) {
            if let Some(clock_out) = before.released(lanes, &self.cluster.threads) {
                release(scope, &clock_out);
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
            let far = match word {
                WordAddress::Global(at) if reaches_other_clusters(word, scope) => {
                    global.as_ref().and_then(|g| g.acquired(at))
                }
                _ => None,
            };
            let back = far.and_then(|c| c.other_clusters.of(cluster));
            released.acquired(word, cta, scope).chain(far).chain(back)
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
                let fenced = self.warp.fenced.get_or_insert_default();
                fenced.found[i].add(lanes, c);
                if i == 1 && word.is_shared() {
                    fenced.found_shared.add(lanes, c);
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
        let fenced = self.warp.fenced.get_or_insert_default();
        let levels = scope_levels(order.scope);
        let (before, found) = match shared {
            true => (
                from_mut(&mut fenced.before_shared),
                from_ref(&fenced.found_shared),
            ),
            false => (&mut fenced.before[..levels], &fenced.found[..levels]),
        };
        if order.sem.releases() {
            let then = Arc::new(WarpClock::clone(clock));
            before.iter_mut().for_each(|b| b.fence(lanes, &then));
            clock.now += 1;
        }
        if order.sem.acquires() {
            let found = found.iter().flat_map(|f| f.any(lanes));
            found.for_each(|(of, found)| clock.acquire(of, found));
        }
    }
}
