//! The state of a cluster during the search.

use super::code::{Program, Waiters};
use super::fold::Fold;
use super::groups::Groups;
use super::know::{Shared, WarpKnow};
use super::lanes::LaneSet;
use super::parity::Parities;
use super::record::Records;
use super::runs::Pairs;
use super::slots::Slots;
use super::stretch::Stretches;
use super::trace::Trail;
use super::value::{Held, Val};
use crate::symbolic::{Decisions, Question, TermId, Terms};
use crate::uniform::Uniformity;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use warpline_ir::{Frame as Source, Kernel, Loc, Mask, ParamId, Type};

/// The number of a barrier's first phase: some room below it, so that all that two states know
/// can be taken together, relative to where each is. It is told as phase 0.
pub(super) const FIRST: u32 = 2;

/// A phase, as it is told.
pub(super) fn as_told(phase: i64) -> i64 {
    phase - i64::from(FIRST)
}

/// What stays the same through a check.
pub(super) struct Env<'k> {
    pub(super) kernel: &'k Kernel,
    pub(super) terms: Terms,
    pub(super) programs: Vec<Program<'k>>,
    pub(super) slots: Slots,
    /// Which threads agree on a register.
    pub(super) uniform: Uniformity,
    /// By register: must its value be a number?
    pub(super) numbers: Vec<bool>,
    /// By register: may it hold a term?
    pub(super) may_be_terms: Vec<bool>,
    /// Numbers computed from a count depend on it modulo this; 0: on all of it.
    pub(super) period: i64,
    /// By register: is it a count and a number more, of which only remainders are used?
    pub(super) sums: Vec<bool>,
    /// By role and slot: is what is there only moved by constants and compared?
    pub(super) stepped_slots: Vec<Vec<bool>>,
    /// By register: is it only moved by constants and compared?
    pub(super) stepped: Vec<bool>,
    /// Registers that a constant is added to or taken from, and those they are moved to.
    pub(super) moved: Vec<bool>,
    /// By register: must a counter be a number, as a place or a barrier follows from it?
    pub(super) exact: Vec<bool>,
    /// Does a role run a part of a count, and then the rest of it?
    pub(super) has_rests: bool,
    /// By register: is it worth to tell cases of it apart?
    pub(super) control: Vec<bool>,
    /// Loops that belong together.
    pub(super) groups: Groups,
    /// Parameters that point to memory that may change while the kernel runs.
    pub(super) written: Vec<ParamId>,
    /// What the proof takes for granted, and where that is needed first.
    pub(super) assumed: RefCell<BTreeMap<(&'static str, String), Option<Source>>>,
    /// By role: the steps that have to do with counts.
    pub(super) counting: Vec<Vec<usize>>,
    /// Barriers and registers whose parities may be turned together.
    pub(super) parities: Parities,
    /// By tile: those it shares bytes with, itself among them.
    pub(super) aliases: Vec<Vec<u32>>,
    /// Registers of each thread at entry, and by role those it grows to, at most.
    pub(super) entry_registers: u32,
    pub(super) grows_to: Vec<u32>,
    /// Counters that are followed by their remainder.
    pub(super) fold: Fold,
    /// By tile: are its words followed?
    pub(super) words: Vec<bool>,
    /// By role and mbarrier array: who of it waits for it?
    pub(super) waits: Vec<Vec<Waiters>>,
    pub(super) stretches: RefCell<Stretches>,
    pub(super) runs: Pairs,
    /// What is known at the start.
    pub(super) nothing: Shared,
    /// By mbarrier array: the number of its first barrier.
    pub(super) first_bar: Vec<u32>,
    /// mbarriers of a CTA.
    pub(super) bars: u32,
    /// CTAs of the cluster.
    pub(super) ctas: u32,
    /// Warps of a CTA.
    pub(super) warps: u32,
}

impl Env<'_> {
    /// The number of the CTA's own barrier among its meetings.
    pub(super) fn cta_meeting(&self, cta: u32) -> usize {
        (cta as usize + 1) * (self.kernel.named.len() + 1) - 1
    }

    pub(super) fn named_meeting(&self, cta: u32, named: usize) -> usize {
        cta as usize * (self.kernel.named.len() + 1) + named
    }

    pub(super) fn cluster_meeting(&self) -> usize {
        self.ctas as usize * (self.kernel.named.len() + 1)
    }

    /// Barriers and meetings, in the order of [`Know::phases`].
    pub(super) fn all_barriers(&self) -> usize {
        self.first_meeting() + self.cluster_meeting() + 1
    }

    pub(super) fn first_meeting(&self) -> usize {
        (self.ctas * self.bars) as usize
    }

    /// The array of an mbarrier.
    pub(super) fn array_of(&self, bar: usize) -> usize {
        let slot = bar as u32 % self.bars;
        self.first_bar.iter().rposition(|&f| f <= slot).unwrap_or(0)
    }

    /// An mbarrier as reports name it, `` `ring.full[2]` ``, with its CTA in a cluster.
    pub(super) fn bar_name(&self, bar: usize) -> String {
        let (cta, slot) = (bar as u32 / self.bars, bar as u32 % self.bars);
        let i = self.array_of(bar);
        let b = &self.kernel.barriers[i];
        let index = slot - self.first_bar[i];
        match self.ctas {
            1 => format!("`{}[{index}]`", b.name),
            _ => format!("`{}[{index}]` of CTA {cta}", b.name),
        }
    }

    /// The ring slot that an mbarrier guards, ``slot 2 of ring `in` ``, and whether the mbarrier
    /// marks it full. The builder names the mbarriers of a ring `in.full` and `in.empty`.
    pub(super) fn ring_slot(&self, bar: usize) -> Option<(String, bool)> {
        let (ring, index, is_full) = self.ring_of(bar)?;
        let of = match self.ctas {
            1 => String::new(),
            _ => format!(" of CTA {}", bar as u32 / self.bars),
        };
        Some((format!("slot {index} of ring `{ring}`{of}"), is_full))
    }

    /// The ring and the slot of an mbarrier, and whether it is the full one.
    fn ring_of(&self, bar: usize) -> Option<(&str, u32, bool)> {
        let slot = bar as u32 % self.bars;
        let i = self.array_of(bar);
        let name = &self.kernel.barriers[i].name;
        let (ring, is_full) = match name.strip_suffix(".full") {
            Some(ring) => (ring, true),
            None => (name.strip_suffix(".empty")?, false),
        };
        let other = format!("{ring}.{}", if is_full { "empty" } else { "full" });
        let is_pair = self.kernel.barriers.iter().any(|o| o.name == other);
        is_pair.then(|| (ring, slot - self.first_bar[i], is_full))
    }

    /// Returns whether an mbarrier guards another slot than the one that holds a byte. It does not if
    /// the byte is in no ring.
    pub(super) fn guards_another_slot(&self, bar: usize, tile: u32, byte: u32) -> bool {
        let Some(t) = self.kernel.tiles.get(tile as usize) else {
            return false;
        };
        // The tiles of a slot are `ring.0`, `ring.1` and so on.
        let is_number = |tile: &str| tile.bytes().all(|c| c.is_ascii_digit());
        let ring = match t.name.rsplit_once('.') {
            Some((ring, tile)) if is_number(tile) => ring,
            _ => &t.name,
        };
        let stage = byte.saturating_sub(t.offset) / t.layout.stage_bytes().max(1);
        let full = format!("{ring}.full");
        let is_in_ring = self.kernel.barriers.iter().any(|b| b.name == full);
        let guarded = self.ring_of(bar).map(|(ring, index, _)| (ring, index));
        is_in_ring && guarded != Some((ring, stage))
    }

    /// A meeting's name.
    pub(super) fn meeting_name(&self, i: usize) -> String {
        let each = self.kernel.named.len() + 1;
        if i == self.cluster_meeting() {
            "the cluster barrier".to_owned()
        } else if i % each + 1 == each {
            "the CTA barrier".to_owned()
        } else {
            format!("named barrier `{}`", self.kernel.named[i % each].name)
        }
    }

    /// The tile and stage of a byte.
    pub(super) fn place_name(&self, tile: u32, byte: u32) -> String {
        let Some(t) = self.kernel.tiles.get(tile as usize) else {
            return format!("byte {byte}");
        };
        let at = byte.saturating_sub(t.offset);
        let stage = at / t.layout.stage_bytes().max(1);
        match t.stages {
            1 => format!("`{}`", t.name),
            _ => format!("`{}[{stage}]`", t.name),
        }
    }

    /// The end of the stage that holds a byte.
    pub(super) fn run_end(&self, byte: u32) -> u32 {
        let Some(t) = self.kernel.tiles.get(self.tile_at(byte) as usize) else {
            return byte;
        };
        let each = t.layout.stage_bytes().max(1);
        t.offset + ((byte - t.offset) / each + 1) * each
    }

    /// The tile that holds a byte.
    pub(super) fn tile_at(&self, byte: u32) -> u32 {
        let holds = |t: &warpline_ir::TileInfo| (t.offset..t.offset + t.bytes()).contains(&byte);
        self.kernel
            .tiles
            .iter()
            .position(holds)
            .map_or(u32::MAX, |i| i as u32)
    }
}

/// An mbarrier.
#[derive(Clone, Debug)]
pub(super) struct Bar {
    /// The arrivals a phase expects; 0: it has no init yet.
    pub(super) count: u32,
    /// Arrivals that the phase lacks.
    pub(super) arrivals: u32,
    /// Bytes that the phase lacks.
    pub(super) bytes: i64,
    /// Bytes that a launch decides: each expected so often more than delivered.
    pub(super) terms: BTreeMap<TermId, i128>,
    /// Do copies count in the current phase?
    pub(super) copied: bool,
    /// Phases that are complete.
    pub(super) phase: u32,
    /// The record of its init, and whether a fence followed.
    pub(super) init: Option<u32>,
    pub(super) fenced: bool,
    /// Where it was made.
    pub(super) made: Loc,
    pub(super) came: Shared,
    pub(super) done: Shared,
    /// Copies that it counts in the current phase.
    pub(super) loads: Vec<u32>,
    /// Waits that saw a phase complete: their records, and the phase.
    pub(super) passed: Vec<(u32, i64)>,
}

/// A barrier of threads.
#[derive(Clone, Debug)]
pub(super) struct Meeting {
    /// Threads that came, and that are expected; 0: nobody came yet.
    pub(super) came: u32,
    pub(super) expected: u32,
    /// Meetings that are over.
    pub(super) over: u32,
    pub(super) know: Shared,
    pub(super) done: Shared,
    /// The last that came.
    pub(super) last: Loc,
}

/// A statement that a warp is inside of.
#[derive(Clone, Debug)]
pub(super) enum Frame {
    If {
        saved: Mask,
        /// Lanes that have yet to run the other side.
        other: Mask,
        end: u32,
        /// Is it unknown which lanes run it?
        maybe: bool,
    },
    Elect {
        saved: Mask,
        end: u32,
    },
    Loop {
        saved: Mask,
        end: u32,
        /// The counter, if it has one.
        var: Option<warpline_ir::RegId>,
        rounds: Rounds,
        /// Is it unknown which lanes run it?
        maybe: bool,
    },
}

/// How a loop is counted.
#[derive(Clone, Debug)]
pub(super) enum Rounds {
    /// The numbers are known.
    Known,
    /// It goes on while `round < of + off`.
    Term {
        of: TermId,
        off: i128,
        round: u32,
        inside: Inside,
    },
    /// A `while`.
    While {
        of: TermId,
        round: u32,
        inside: Inside,
    },
    /// Nobody knows; it is run once.
    Once,
}

/// Inside a round: which round it is, and the loops over a count that it has run so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Inside {
    pub(super) round: TermId,
    pub(super) loops: Vec<LoopsRun>,
}

/// Loops over a count with barriers of a group that have been run, or begun: the last is the
/// `n`-th.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LoopsRun {
    pub(super) count: TermId,
    pub(super) group: u32,
    pub(super) n: u32,
}

impl Inside {
    /// Begins a loop; gives its number among those over the same count and group.
    pub(super) fn begin(&mut self, count: TermId, group: u32) -> u32 {
        let same = |l: &&mut LoopsRun| (l.count, l.group) == (count, group);
        match self.loops.iter_mut().find(same) {
            Some(l) => {
                l.n += 1;
                l.n
            }
            None => {
                self.loops.push(LoopsRun { count, group, n: 0 });
                0
            }
        }
    }
}

/// Why a warp does not go on.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Status {
    Ready,
    /// It waits for a phase of an mbarrier.
    Bar {
        bar: usize,
        phase: i64,
    },
    /// It waits at a meeting that it has come to.
    Meeting {
        meeting: usize,
        number: u32,
    },
    /// It waits for the other warps of its warpgroup to issue a product.
    Products,
    /// It waits for registers that other warps give back.
    Registers,
    /// What it does next must be decided.
    Asks(Question),
    Done,
}

/// One warp.
#[derive(Clone, Debug)]
pub(super) struct Warp {
    pub(super) cta: u32,
    /// In the CTA.
    pub(super) index: u32,
    pub(super) role: u32,
    pub(super) pc: u32,
    pub(super) active: Mask,
    pub(super) frames: Vec<Frame>,
    pub(super) regs: Rc<Vec<Held>>,
    /// Places that are not kept, but that it needs where it stopped.
    pub(super) spilled: Vec<(u32, Held)>,
    pub(super) status: Status,
    pub(super) know: WarpKnow,
    /// Its own accesses since its lanes last met.
    pub(super) apart: Vec<u32>,
    /// Its own accesses that the lanes who made them have fenced since they last met: each lane
    /// knows of its own alone.
    pub(super) fencing: Vec<u32>,
    /// Changes whenever it passes on or takes in what is known.
    pub(super) epoch: u32,
    /// Bulk groups: the lane, the records; the last is open.
    pub(super) bulk: Vec<(u32, Vec<Vec<u32>>)>,
    /// Groups of copies of its lanes that no wait has covered, oldest first: whose they are.
    pub(super) copies: Vec<(LaneSet, Vec<u32>)>,
    /// Copies of its lanes that are in no group yet.
    pub(super) copying: Vec<u32>,
    /// Registers of each of its threads, where roles move them.
    pub(super) registers: u32,
    /// Products since the last commit, and groups committed.
    pub(super) open: Vec<u32>,
    pub(super) commits: u32,
    pub(super) waited: u32,
    /// At the cluster's barrier: the meeting it has arrived at.
    pub(super) at_cluster: Option<u32>,
    /// Outside of all loops.
    pub(super) root: Inside,
}

impl Warp {
    /// What it holds in a place, where it stopped.
    pub(super) fn held(&self, slot: u32) -> Option<&Held> {
        let spilled = || self.spilled.iter().find(|s| s.0 == slot);
        self.regs
            .get(slot as usize)
            .or_else(|| spilled().map(|s| &s.1))
    }

    /// Is it unknown which lanes run what it does now?
    pub(super) fn maybe(&self) -> bool {
        self.frames.iter().any(|f| {
            matches!(
                f,
                Frame::If { maybe: true, .. } | Frame::Loop { maybe: true, .. }
            )
        })
    }

    /// The rounds of the loops it is in, outermost first.
    pub(super) fn rounds(&self) -> Vec<u32> {
        let round = |f: &Frame| match f {
            Frame::Loop {
                rounds: Rounds::Term { round, .. } | Rounds::While { round, .. },
                ..
            } => Some(*round),
            _ => None,
        };
        self.frames.iter().filter_map(round).collect()
    }

    /// The round it is in.
    pub(super) fn inside(&mut self) -> &mut Inside {
        let found = self.frames.iter_mut().rev().find_map(|f| match f {
            Frame::Loop {
                rounds: Rounds::Term { inside, .. } | Rounds::While { inside, .. },
                ..
            } => Some(inside),
            _ => None,
        });
        found.unwrap_or(&mut self.root)
    }
}

/// A cluster in the middle of the walk.
#[derive(Clone, Default)]
pub(super) struct State {
    pub(super) warps: Vec<Warp>,
    pub(super) bars: Vec<Bar>,
    pub(super) meetings: Vec<Meeting>,
    pub(super) records: Records,
    /// By warpgroup: committed groups that not all its warps have waited for.
    pub(super) products: Vec<Vec<(u32, Vec<u32>)>>,
    /// Words of shared memory that are followed.
    pub(super) words: BTreeMap<(u32, u32), (Val, Type)>,
    /// Runs of bytes that copies left, by CTA and first byte: the end, and which copy it was.
    pub(super) copied: BTreeMap<(u32, u32), (u32, TermId)>,
    pub(super) decided: Decisions,
    pub(super) trail: Trail,
    /// Values that anything could be, so far.
    pub(super) fresh: u32,
    /// Are loops in which nothing synchronizes run once, wherever they reach?
    pub(super) blunt: bool,
}
