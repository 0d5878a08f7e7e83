//! Happens-before by events: each access is an event, and each event lists who has been told of it.
//!
//! *Knowers* are lanes, and places that keep what was handed on: barriers, and jobs in flight.

use std::hash::{Hash, Hasher};

/// A set of knowers.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Knowers(Vec<u64>);

impl Knowers {
    fn new(size: usize) -> Self {
        Self(vec![0; size.div_ceil(64)])
    }
    pub(super) fn has(&self, i: usize) -> bool {
        self.0[i / 64] >> (i % 64) & 1 == 1
    }
    pub(super) fn add(&mut self, i: usize) {
        self.0[i / 64] |= 1 << (i % 64);
    }
    fn remove(&mut self, i: usize) {
        self.0[i / 64] &= !(1 << (i % 64));
    }
}

/// The kinds of access.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Kind {
    /// By a lane itself.
    Generic,
    /// By a lane's `cp.async`.
    Copy,
    /// By an engine, through the async proxy.
    Async,
    /// The making or ending of an mbarrier.
    Init,
}

/// One access.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) kind: Kind,
    pub(super) write: bool,
    pub(super) atomic: bool,
    /// The lane that made or issued it.
    pub(super) lane: usize,
    /// The CTA whose memory it touched.
    pub(super) cta: usize,
    known: Knowers,
    /// Those who know of a proxy fence behind it.
    fenced: Knowers,
    /// Cells that name it.
    uses: u32,
}

/// The last accesses of a byte or a barrier.
#[derive(Clone, Default, Debug)]
struct Cell {
    write: Option<usize>,
    reads: Vec<usize>,
}

/// All events that still count, by cell.
#[derive(Clone, Debug)]
pub(super) struct Events {
    size: usize,
    all: Vec<Option<Event>>,
    cells: Vec<Cell>,
    /// Accesses of work that is done, by job and lane.
    finished: Vec<(usize, usize, usize)>,
}

/// An access that is not ordered after another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unordered {
    Race,
    Proxy,
}

impl Events {
    /// No events, of so many knowers and cells.
    pub(super) fn new(knowers: usize, cells: usize) -> Self {
        Self {
            size: knowers,
            all: Vec::new(),
            cells: vec![Cell::default(); cells],
            finished: Vec::new(),
        }
    }

    /// A new event, known to its lane unless an engine makes it.
    pub(super) fn add(
        &mut self,
        kind: Kind,
        write: bool,
        atomic: bool,
        lane: usize,
        cta: usize,
    ) -> usize {
        let mut known = Knowers::new(self.size);
        if matches!(kind, Kind::Generic | Kind::Init) {
            known.add(lane);
        }
        let event = Event {
            kind,
            write,
            atomic,
            lane,
            cta,
            known,
            fenced: Knowers::new(self.size),
            uses: 0,
        };
        self.all.push(Some(event));
        self.all.len() - 1
    }

    /// Notes that an event touches a cell; says what it is not ordered after.
    pub(super) fn touch(&mut self, cell: usize, event: usize) -> Result<(), Unordered> {
        let Some(e) = self.all[event].clone() else {
            return Ok(());
        };
        let before = &self.cells[cell];
        for &other in before.write.iter().chain(&before.reads) {
            let Some(o) = &self.all[other] else { continue };
            if other == event || !(e.write || o.write) || e.atomic && o.atomic {
                continue;
            }
            if !o.known.has(e.lane) {
                return Err(Unordered::Race);
            }
            let crosses = e.kind == Kind::Async && o.kind != Kind::Async;
            if crosses && !o.fenced.has(e.lane) {
                return Err(Unordered::Proxy);
            }
        }
        let mut gone = Vec::new();
        let cell = &mut self.cells[cell];
        if e.write {
            gone.extend(cell.write.replace(event));
            gone.append(&mut cell.reads);
        } else {
            let all = &self.all;
            cell.reads.retain(|&r| {
                let plain = |o: &Event| o.lane == e.lane && o.kind == Kind::Generic;
                let same =
                    r != event && e.kind == Kind::Generic && all[r].as_ref().is_some_and(plain);
                if same {
                    gone.push(r);
                }
                !same && r != event
            });
            cell.reads.push(event);
        }
        if !gone.contains(&event) {
            self.used(event, 1);
        }
        for g in gone {
            if g != event {
                self.used(g, -1);
            }
        }
        Ok(())
    }

    fn used(&mut self, event: usize, by: i32) {
        let Some(e) = &mut self.all[event] else {
            return;
        };
        e.uses = e.uses.saturating_add_signed(by);
        if e.uses == 0 && by < 0 {
            self.all[event] = None;
        }
    }

    /// Was the cell written by someone who is done with it or known to a lane?
    pub(super) fn is_written(&self, cell: usize) -> bool {
        self.cells[cell].write.is_some()
    }

    /// `to` is told of everything that `from` knows.
    pub(super) fn learn(&mut self, to: usize, from: usize) {
        self.learn_if(to, from, |_| true);
    }

    /// `to` is told of events that `from` knows and that satisfy `f`.
    pub(super) fn learn_if(&mut self, to: usize, from: usize, f: impl Fn(&Event) -> bool) {
        for e in self.all.iter_mut().flatten() {
            if f(e) {
                if e.known.has(from) {
                    e.known.add(to);
                }
                if e.fenced.has(from) {
                    e.fenced.add(to);
                }
            }
        }
    }

    /// `to` is told of the barriers that `from` made and fenced.
    pub(super) fn learn_inits(&mut self, to: usize, from: usize) {
        self.learn_if(to, from, |e| e.kind == Kind::Init && e.fenced.has(from));
    }

    /// A lane fences the barriers it has made.
    pub(super) fn fence_inits(&mut self, lane: usize) {
        for e in self.all.iter_mut().flatten() {
            if e.kind == Kind::Init && e.lane == lane {
                e.fenced.add(lane);
            }
        }
    }

    /// A knower forgets everything.
    pub(super) fn clear(&mut self, knower: usize) {
        for e in self.all.iter_mut().flatten() {
            e.known.remove(knower);
            e.fenced.remove(knower);
        }
    }

    /// A knower is told of one event.
    pub(super) fn tell(&mut self, knower: usize, event: usize) {
        if let Some(e) = &mut self.all[event] {
            e.known.add(knower);
        }
    }

    /// Notes that a job is done, with its accesses by lane.
    pub(super) fn finish(&mut self, job: usize, events: Vec<(usize, usize)>) {
        self.finished
            .extend(events.into_iter().map(|(lane, e)| (job, lane, e)));
    }

    /// The accesses of a job that is done, of one lane.
    pub(super) fn finished(&self, job: usize, lane: usize) -> impl Iterator<Item = usize> {
        let of = self.finished.iter();
        of.filter(move |f| f.0 == job && f.1 == lane).map(|f| f.2)
    }

    /// A lane runs a proxy fence, for the memory of its own CTA or of all.
    pub(super) fn fence(&mut self, lane: usize, own: Option<usize>) {
        for e in self.all.iter_mut().flatten() {
            let mine = e.lane == lane || e.kind == Kind::Copy;
            if mine && e.known.has(lane) && own.is_none_or(|cta| e.cta == cta) {
                e.fenced.add(lane);
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
                    (e.kind, e.atomic, e.lane, &e.known, &e.fenced).hash(h);
                }
            }
        }
    }
}
