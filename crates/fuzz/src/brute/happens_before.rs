//! Happens-before by events: each access is an event, and each event lists its observers.
//!
//! An *observer* is a lane, or a slot that carries happens-before: a barrier or an asynchronous job.

use std::hash::{Hash, Hasher};

/// A set of observers.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct ObserverSet(Vec<u64>);

impl ObserverSet {
    fn new(size: usize) -> Self {
        Self(vec![0; size.div_ceil(64)])
    }
    pub(super) fn contains(&self, i: usize) -> bool {
        self.0[i / 64] >> (i % 64) & 1 == 1
    }
    pub(super) fn add(&mut self, i: usize) {
        self.0[i / 64] |= 1 << (i % 64);
    }
    fn remove(&mut self, i: usize) {
        self.0[i / 64] &= !(1 << (i % 64));
    }
}

/// The kind of an access.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum AccessKind {
    /// By a lane.
    Generic,
    /// By `cp.async`.
    Copy,
    /// By an engine, through the async proxy.
    Async,
    /// The initialization or invalidation of an mbarrier.
    Init,
}

/// An access.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) kind: AccessKind,
    pub(super) write: bool,
    pub(super) atomic: bool,
    /// The lane that performs or issues the access.
    pub(super) lane: usize,
    /// The CTA that owns the memory.
    pub(super) cta: usize,
    visible_to: ObserverSet,
    /// The observers that are ordered after a proxy fence that follows the access.
    fenced_for: ObserverSet,
    /// The number of cells that refer to the event.
    uses: u32,
}

/// The last accesses of a byte or a barrier.
#[derive(Clone, Default, Debug)]
struct Cell {
    write: Option<usize>,
    reads: Vec<usize>,
}

/// The live events, by cell.
#[derive(Clone, Debug)]
pub(super) struct Events {
    size: usize,
    all: Vec<Option<Event>>,
    cells: Vec<Cell>,
    /// The accesses of completed jobs: job, lane, event.
    finished: Vec<(usize, usize, usize)>,
}

/// A conflict between two accesses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum OrderViolation {
    Race,
    Proxy,
}

impl Events {
    /// Creates an empty set of events.
    pub(super) fn new(observers: usize, cells: usize) -> Self {
        Self {
            size: observers,
            all: Vec::new(),
            cells: vec![Cell::default(); cells],
            finished: Vec::new(),
        }
    }

    /// Adds an event. It is visible to its lane unless the access is asynchronous.
    pub(super) fn add(
        &mut self,
        kind: AccessKind,
        write: bool,
        atomic: bool,
        lane: usize,
        cta: usize,
    ) -> usize {
        let mut visible_to = ObserverSet::new(self.size);
        if matches!(kind, AccessKind::Generic | AccessKind::Init) {
            visible_to.add(lane);
        }
        let event = Event {
            kind,
            write,
            atomic,
            lane,
            cta,
            visible_to,
            fenced_for: ObserverSet::new(self.size),
            uses: 0,
        };
        self.all.push(Some(event));
        self.all.len() - 1
    }

    /// Records that an event accesses a cell; fails if the access is not ordered after a conflicting one.
    pub(super) fn touch(&mut self, cell: usize, event: usize) -> Result<(), OrderViolation> {
        let Some(e) = self.all[event].clone() else {
            return Ok(());
        };
        let before = &self.cells[cell];
        for &other in before.write.iter().chain(&before.reads) {
            let Some(o) = &self.all[other] else { continue };
            if other == event || !(e.write || o.write) || e.atomic && o.atomic {
                continue;
            }
            if !o.visible_to.contains(e.lane) {
                return Err(OrderViolation::Race);
            }
            let crosses = e.kind == AccessKind::Async && o.kind != AccessKind::Async;
            if crosses && !o.fenced_for.contains(e.lane) {
                return Err(OrderViolation::Proxy);
            }
        }
        let mut replaced = Vec::new();
        let cell = &mut self.cells[cell];
        if e.write {
            replaced.extend(cell.write.replace(event));
            replaced.append(&mut cell.reads);
        } else {
            let all = &self.all;
            cell.reads.retain(|&r| {
                let is_generic_of_lane =
                    |o: &Event| o.lane == e.lane && o.kind == AccessKind::Generic;
                let is_superseded = r != event
                    && e.kind == AccessKind::Generic
                    && all[r].as_ref().is_some_and(is_generic_of_lane);
                if is_superseded {
                    replaced.push(r);
                }
                !is_superseded && r != event
            });
            cell.reads.push(event);
        }
        if !replaced.contains(&event) {
            self.change_uses(event, 1);
        }
        for g in replaced {
            if g != event {
                self.change_uses(g, -1);
            }
        }
        Ok(())
    }

    fn change_uses(&mut self, event: usize, by: i32) {
        let Some(e) = &mut self.all[event] else {
            return;
        };
        e.uses = e.uses.saturating_add_signed(by);
        if e.uses == 0 && by < 0 {
            self.all[event] = None;
        }
    }

    /// Returns whether the cell was written.
    pub(super) fn is_written(&self, cell: usize) -> bool {
        self.cells[cell].write.is_some()
    }

    /// Makes every event that is visible to `from` visible to `to`.
    pub(super) fn acquire(&mut self, to: usize, from: usize) {
        self.acquire_if(to, from, |_| true);
    }

    /// Makes the events that are visible to `from` and satisfy `f` visible to `to`.
    pub(super) fn acquire_if(&mut self, to: usize, from: usize, f: impl Fn(&Event) -> bool) {
        for e in self.all.iter_mut().flatten() {
            if f(e) {
                if e.visible_to.contains(from) {
                    e.visible_to.add(to);
                }
                if e.fenced_for.contains(from) {
                    e.fenced_for.add(to);
                }
            }
        }
    }

    /// Makes the mbarriers that `from` initialized and fenced visible to `to`.
    pub(super) fn acquire_inits(&mut self, to: usize, from: usize) {
        self.acquire_if(to, from, |e| {
            e.kind == AccessKind::Init && e.fenced_for.contains(from)
        });
    }

    /// Fences the mbarriers that the lane initialized.
    pub(super) fn fence_inits(&mut self, lane: usize) {
        for e in self.all.iter_mut().flatten() {
            if e.kind == AccessKind::Init && e.lane == lane {
                e.fenced_for.add(lane);
            }
        }
    }

    /// Removes an observer from every event.
    pub(super) fn clear(&mut self, observer: usize) {
        for e in self.all.iter_mut().flatten() {
            e.visible_to.remove(observer);
            e.fenced_for.remove(observer);
        }
    }

    /// Makes one event visible to an observer.
    pub(super) fn publish(&mut self, observer: usize, event: usize) {
        if let Some(e) = &mut self.all[event] {
            e.visible_to.add(observer);
        }
    }

    /// Records the accesses of a completed job, by lane.
    pub(super) fn finish(&mut self, job: usize, events: Vec<(usize, usize)>) {
        self.finished
            .extend(events.into_iter().map(|(lane, e)| (job, lane, e)));
    }

    /// Returns the accesses of one lane by a completed job.
    pub(super) fn finished(&self, job: usize, lane: usize) -> impl Iterator<Item = usize> {
        let finished = self.finished.iter();
        finished
            .filter(move |f| f.0 == job && f.1 == lane)
            .map(|f| f.2)
    }

    /// Runs a proxy fence of a lane, for the memory of one CTA or of all.
    pub(super) fn fence(&mut self, lane: usize, own: Option<usize>) {
        for e in self.all.iter_mut().flatten() {
            let is_fenced = e.lane == lane || e.kind == AccessKind::Copy;
            if is_fenced && e.visible_to.contains(lane) && own.is_none_or(|cta| e.cta == cta) {
                e.fenced_for.add(lane);
            }
        }
    }
}

impl Hash for Events {
    fn hash<H: Hasher>(&self, h: &mut H) {
        for cell in &self.cells {
            cell.write.is_some().hash(h);
            for &i in cell.write.iter().chain(&cell.reads) {
                if let Some(e) = &self.all[i] {
                    (e.kind, e.atomic, e.lane, &e.visible_to, &e.fenced_for).hash(h);
                }
            }
        }
    }
}
