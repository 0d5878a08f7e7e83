//! Strong accesses: what is released through words of memory, and acquired there.
//!
//! A release leaves what its lanes did and know with the word it writes; an
//! acquire takes it from the word it reads. Both must be in each other's scope:
//! in one CTA, or at a scope of the cluster or wider. A relaxed access does
//! neither by itself: a fence before a relaxed write makes it a release, a
//! fence after a relaxed read an acquire.
//!
//! What is released to other clusters, through a word of global memory at the
//! scope of the GPU, is kept with the shadow of that memory. What comes back
//! from there may be of the own cluster: it went through a thread of another.

use crate::clock::{Clock, Threads};
use crate::machine::{Lockstep, lanes_of};
use crate::warp_clock::{ByLanes, WarpClock};
use std::collections::HashMap;
use std::slice::{from_mut, from_ref};
use std::sync::Arc;
use warpline_ir::{Mask, MemoryOrder, Scope, Semantics, SharedAt};

/// A word of memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Word {
    /// In global memory.
    Global(u64),
    /// In the shared memory of a CTA.
    Shared(SharedAt),
}

impl Word {
    fn is_shared(self) -> bool {
        matches!(self, Word::Shared(_))
    }
}

/// Something known in one CTA, and in all of the cluster.
#[derive(Clone, Debug)]
struct Reach {
    /// By CTA: what is for its threads alone.
    near: Vec<Option<Clock>>,
    /// What is for all.
    wide: Option<Clock>,
}

fn join(to: &mut Option<Clock>, from: &Clock) {
    match to {
        Some(c) => c.join(from),
        None => *to = Some(from.clone()),
    }
}

impl Reach {
    fn new(ctas: u32) -> Self {
        Self {
            near: vec![None; ctas as usize],
            wide: None,
        }
    }

    fn add(&mut self, cta: u32, wide: bool, clock: &Clock) {
        join(&mut self.near[cta as usize], clock);
        if wide {
            join(&mut self.wide, clock);
        }
    }

    /// What a thread of a CTA can take at a scope.
    fn each(&self, cta: u32, wide: bool) -> impl Iterator<Item = &Clock> {
        let wide = if wide { self.wide.as_ref() } else { None };
        self.near[cta as usize].iter().chain(wide)
    }
}

/// What was released through the words of memory.
#[derive(Debug)]
pub(crate) struct Released {
    threads: Threads,
    words: HashMap<Word, Reach>,
}

impl Released {
    /// Nothing.
    pub(crate) fn new(threads: &Threads) -> Self {
        Self {
            threads: *threads,
            words: HashMap::new(),
        }
    }

    fn release(&mut self, word: Word, cta: u32, scope: Scope, clock: &Clock) {
        let reach = self.words.entry(word);
        let reach = reach.or_insert_with(|| Reach::new(self.threads.ctas));
        reach.add(cta, is_wide(scope), clock);
    }

    /// What a thread of a CTA acquires.
    fn acquired(&self, word: Word, cta: u32, scope: Scope) -> impl Iterator<Item = &Clock> {
        let here = self.words.get(&word).into_iter();
        here.flat_map(move |r| r.each(cta, is_wide(scope)))
    }
}

fn is_wide(scope: Scope) -> bool {
    scope >= Scope::Cluster
}

/// Can threads of other clusters take part?
fn leaves(word: Word, scope: Scope) -> bool {
    scope >= Scope::Gpu && matches!(word, Word::Global(_))
}

/// How far a scope reaches: the CTA, the cluster, the device.
const REACH: [Scope; 3] = [Scope::Cta, Scope::Cluster, Scope::Sys];

fn reach(scope: Scope) -> usize {
    match scope {
        Scope::Cta => 1,
        Scope::Cluster => 2,
        Scope::Gpu | Scope::Sys => 3,
    }
}

/// What a warp's lanes knew and did when they ran their last fences.
#[derive(Clone, Default, Debug)]
struct Before(Vec<(Mask, Arc<WarpClock>)>);

impl Before {
    /// Some lanes run a fence; what it covers is more than their fences before did.
    fn fence(&mut self, lanes: Mask, clock: &Arc<WarpClock>) {
        self.0.retain_mut(|(of, _)| {
            *of &= !lanes;
            *of != 0
        });
        self.0.push((lanes, clock.clone()));
    }

    /// What relaxed writes of some lanes release: of each what came before its own fence.
    fn released(&self, lanes: Mask, threads: &Threads) -> Option<Clock> {
        let mut told = None;
        for (of, clock) in self.0.iter().filter(|(of, _)| of & lanes != 0) {
            let told = told.get_or_insert_with(|| Clock::new(threads));
            clock.tell(of & lanes, told);
        }
        told
    }
}

/// What fences make of a warp's relaxed accesses.
#[derive(Clone, Default, Debug)]
pub(crate) struct Fenced {
    /// By reach, what came before the last fence that goes so far: later
    /// relaxed writes of these lanes release it.
    before: [Before; 3],
    /// The same for fences of shared memory alone, and writes there; they are wide.
    before_shared: Before,
    /// By reach, what relaxed reads of these lanes have found: the next fence
    /// that goes so far acquires it.
    found: [ByLanes; 3],
    /// What they have found in shared memory.
    found_shared: ByLanes,
}

impl Lockstep<'_, '_> {
    /// Orders what a strong access orders. `word` is where a lane's access goes.
    pub(crate) fn order(&mut self, order: MemoryOrder, word: impl Fn(usize) -> Word) {
        let facts = self.env.code.sites[self.site as usize].facts;
        let orders = order.sem != Semantics::Relaxed || self.env.code.fences;
        if self.warp.clock.is_none() || !orders {
            return;
        }
        let mut left = self.warp.active;
        let mut groups: Vec<(Word, Mask)> = Vec::new();
        while left != 0 {
            let first = word(left.trailing_zeros() as usize);
            let same = lanes_of(left).filter(|&l| word(l) == first);
            let same = same.fold(0, |m, l| m | 1 << l);
            groups.push((first, same));
            left &= !same;
        }
        if facts.only_writes {
            // Of the values that lanes store in one word the last one stays.
            let last = |m: Mask| 1 << (31 - m.leading_zeros());
            groups.iter_mut().for_each(|g| g.1 = last(g.1));
        }
        // Lanes of one instruction follow one another: what one releases, the next may acquire.
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

    fn release_word(&mut self, order: MemoryOrder, word: Word, lanes: Mask) {
        let (Some(released), Some(clock)) = (&mut self.cluster.released, &self.warp.clock) else {
            return;
        };
        let (cta, cluster) = (self.warp.cta, self.cluster.index);
        let mut release = |scope: Scope, told: &Clock| {
            released.release(word, cta, scope, told);
            if let (Some(global), Word::Global(at), true) =
                (&mut *self.global, word, leaves(word, scope))
            {
                global.release(at, cluster, told);
            }
        };
        if order.sem.releases() {
            let mut told = Clock::new(&self.cluster.threads);
            clock.tell(lanes, &mut told);
            return release(order.scope, &told);
        }
        let Some(fenced) = &self.warp.fenced else {
            return;
        };
        let scopes = REACH.map(|s| s.min(order.scope));
        let any = fenced.before.iter().zip(scopes);
        let shared = word
            .is_shared()
            .then_some((&fenced.before_shared, order.scope));
        for (before, scope) in any.chain(shared) {
            if let Some(told) = before.released(lanes, &self.cluster.threads) {
                release(scope, &told);
            }
        }
    }

    fn acquire_word(&mut self, order: MemoryOrder, word: Word, lanes: Mask) {
        let (Some(released), Some(clock)) = (&self.cluster.released, &mut self.warp.clock) else {
            return;
        };
        let (cta, cluster) = (self.warp.cta, self.cluster.index);
        let global = &*self.global;
        let acquired = |scope: Scope| {
            let far = match word {
                Word::Global(at) if leaves(word, scope) => {
                    global.as_ref().and_then(|g| g.acquired(at))
                }
                _ => None,
            };
            let back = far.and_then(|c| c.far.of(cluster));
            released.acquired(word, cta, scope).chain(far).chain(back)
        };
        if order.sem.acquires() {
            for c in acquired(order.scope) {
                clock.acquire(lanes, c);
            }
            return;
        }
        let scopes = REACH.map(|s| s.min(order.scope));
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

    /// A fence of the active lanes, of all memory or of shared memory alone.
    pub(crate) fn fence_order(&mut self, order: MemoryOrder, shared: bool) {
        let lanes = self.warp.active;
        let Some(clock) = &mut self.warp.clock else {
            return;
        };
        let fenced = self.warp.fenced.get_or_insert_default();
        let reach = reach(order.scope);
        let (before, found) = match shared {
            true => (
                from_mut(&mut fenced.before_shared),
                from_ref(&fenced.found_shared),
            ),
            false => (&mut fenced.before[..reach], &fenced.found[..reach]),
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
