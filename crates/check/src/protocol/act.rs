//! The effects of barriers, fences and commit groups on the state.
//!
//! The result must not depend on the order in which the search runs the warps. Therefore an arrival
//! counts only if the arriving warp has observed the end of the previous phase, and a phase
//! completes only if every warp that waited for the previous phase is known to have observed it.

use super::know::Shared;
use super::lanes::{ALL, ELECTED, LaneSet};
use super::record::{Record, Who};
use super::rules;
use super::runs::ELECTED_LANE;
use super::state::{FIRST, Status, Warp, as_told};
use super::trace::What;
use super::value::Val;
use super::world::{Stop, World};
use crate::diagnostic::{Label, Message};
use crate::symbolic::{Arg, Sym};
use std::collections::BTreeMap;
use warpline_ir::{
    BarRef, Exec, ExecStatus, FenceKind, Machine, Mask, Operand, PerLane, Scope, SyncOp, WARP,
};

/// Some lanes at one mbarrier: bar, lanes, arrivals, bytes, bytes by term.
struct Group {
    bar: usize,
    lanes: LaneSet,
    times: u32,
    bytes: i64,
    terms: Vec<(Sym, i128)>,
}

impl World<'_, '_> {
    pub(super) fn act(&mut self, s: &SyncOp) -> Exec {
        let acted = self.try_act(s);
        acted.map_err(|stop| self.fault(stop))
    }

    fn try_act(&mut self, s: &SyncOp) -> Result<ExecStatus, Stop> {
        let maybe = self.st.warps[self.cur].maybe();
        // Where it is unknown which lanes run a fence, or meet, none does.
        if maybe && matches!(s, SyncOp::Fence(_) | SyncOp::Warp { .. }) {
            return Ok(ExecStatus::Completed);
        }
        if maybe {
            let text = Message::new("synchronizes in a branch, and the checker cannot tell which lanes take it")
                .cause("the condition of the branch does not follow from launch parameters, indices or constants");
            return Err(self.refuse(&rules::UNKNOWN, text));
        }
        match *s {
            SyncOp::Warp { mask } => self.warp_sync(mask),
            SyncOp::Init { bar, count } => self.init(&bar, count),
            SyncOp::Inval { bar } => self.inval(&bar),
            SyncOp::Arrive {
                bar,
                count,
                tx,
                scope,
                drop: leave,
            } => self.arrive(&bar, Some(count), tx, scope, leave),
            SyncOp::ExpectTx { bar, tx } => self.arrive(&bar, None, Some(tx), Scope::Cta, false),
            SyncOp::Wait { bar, parity, scope } => self.wait(&bar, parity, scope),
            SyncOp::Test { .. } => {
                let text = Message::new("tests whether a phase is complete, and continues in both cases")
                    .cause("the checker follows waits; a test that is not repeated until it succeeds may have either result");
                Err(self.refuse(&rules::UNKNOWN, text))
            }
            SyncOp::NamedSync { bar, threads } | SyncOp::NamedReduce { bar, threads, .. } => {
                let cta = self.st.warps[self.cur].cta;
                let m = self.env.named_meeting(cta, bar.index());
                self.come(m, Some(threads), true)
            }
            SyncOp::NamedArrive { bar, threads } => {
                let cta = self.st.warps[self.cur].cta;
                let m = self.env.named_meeting(cta, bar.index());
                self.come(m, Some(threads), false)
            }
            SyncOp::Cta => {
                let m = self.env.cta_meeting(self.st.warps[self.cur].cta);
                self.come(m, None, true)
            }
            SyncOp::ClusterArrive { release } => self.cluster_arrive(release),
            SyncOp::ClusterWait => self.cluster_wait(),
            SyncOp::Fence(f) => {
                self.fence(f);
                Ok(ExecStatus::Completed)
            }
            SyncOp::BulkCommit => {
                let lanes = self.lanes();
                for (lane, groups) in &mut self.st.warps[self.cur].bulk {
                    if issues(lanes, *lane) {
                        groups.push(Vec::new());
                    }
                }
                // Those of the next group are waited for apart.
                self.st.warps[self.cur].epoch += 1;
                Ok(ExecStatus::Completed)
            }
            SyncOp::BulkWait { pending, .. } => {
                self.bulk_wait(pending);
                Ok(ExecStatus::Completed)
            }
            SyncOp::CopyCommit => {
                self.copy_commit();
                Ok(ExecStatus::Completed)
            }
            SyncOp::CopyWait { pending } => {
                self.copy_wait(pending);
                Ok(ExecStatus::Completed)
            }
            SyncOp::CopyArrive { bar, noinc } => self.copy_arrive(&bar, noinc),
            SyncOp::WgmmaFence => Ok(ExecStatus::Completed),
            SyncOp::SetMaxRegs { count, grow } => Ok(self.set_registers(count, grow)),
            SyncOp::WgmmaCommit => {
                self.wgmma_commit();
                Ok(ExecStatus::Completed)
            }
            SyncOp::WgmmaWait { pending } => self.wgmma_wait(pending),
            SyncOp::Exit => {
                self.st.warps[self.cur].status = Status::Done;
                Ok(ExecStatus::Completed)
            }
        }
    }

    fn warp_sync(&mut self, mask: Operand) -> Result<ExecStatus, Stop> {
        let active = self.active();
        let named = match self.val(mask) {
            Val::Uni(m) => m as Mask,
            _ => active,
        };
        if named & !active != 0 {
            let missing = named & !active;
            let text =
                format!("waits in `warp_sync` for lanes {missing:#010x}, which do not reach it");
            return Err(self.refuse(&rules::WHOLE, text));
        }
        if active == Mask::MAX && !self.st.warps[self.cur].maybe() {
            self.meet();
        }
        Ok(ExecStatus::Completed)
    }

    /// The mbarriers that lanes name, with what each brings.
    fn groups(
        &mut self,
        bar: &BarRef,
        count: Option<Operand>,
        tx: Option<Operand>,
    ) -> Result<Vec<Group>, Stop> {
        let lanes = self.active();
        let mut groups: BTreeMap<usize, Group> = BTreeMap::new();
        let times = match count {
            None => [0; WARP],
            Some(o) => self.known(o, "the number of arrivals")?,
        };
        let bytes = tx.map(|o| self.val(o));
        let known = bytes.as_ref().and_then(Val::numbers);
        if matches!(bytes, Some(Val::Within(..) | Val::Opaque)) {
            let text = Message::new("expects a number of bytes that the checker cannot compute")
                .cause(
                    "the byte count does not follow from launch parameters, indices or constants",
                );
            return Err(self.refuse(&rules::UNKNOWN, text));
        }
        let bars = self.bars_at(bar, lanes)?;
        for lane in lanes_of(lanes) {
            let at = bars[lane];
            let g = groups.entry(at).or_insert(Group {
                bar: at,
                lanes: 0,
                times: 0,
                bytes: 0,
                terms: Vec::new(),
            });
            g.lanes |= self.lane(lane);
            g.times += times[lane] as u32;
            match (&known, &bytes) {
                (Some(n), _) => g.bytes += n[lane] as i64,
                (None, Some(Val::Sym(s))) => g.terms.push((*s, 1)),
                _ => {}
            }
        }
        let mut groups: Vec<Group> = groups.into_values().collect();
        // All lanes together have the elected one among them.
        if let [g] = &mut groups[..] {
            g.lanes = self.lanes();
        }
        Ok(groups)
    }

    /// The CTAs that lanes reach.
    pub(super) fn ctas(&mut self, peer: Option<Operand>) -> Result<PerLane<u64>, Stop> {
        match peer {
            None => Ok([self.st.warps[self.cur].cta.into(); WARP]),
            Some(p) => self.known(p, "the rank of the CTA that it accesses"),
        }
    }

    /// The mbarriers that lanes name; for the others, none.
    fn bars_at(&mut self, bar: &BarRef, lanes: Mask) -> Result<PerLane<usize>, Stop> {
        let ctas = self.ctas(bar.peer)?;
        let indices = self.known(bar.index, "the index of the mbarrier")?;
        let b = self.env.kernel.barrier(bar.bar);
        let first = self.env.first_bar[bar.bar.index()];
        let mut at = [usize::MAX; WARP];
        for lane in lanes_of(lanes) {
            let (cta, index) = (ctas[lane] as u32, indices[lane] as u32);
            if index >= b.len || cta >= self.env.ctas {
                let text = format!(
                    "uses `{}[{index}]` of CTA {cta}; the array has {} mbarriers, and the cluster {} CTAs",
                    b.name, b.len, self.env.ctas
                );
                return Err(self.refuse(&rules::BOUNDS, text));
            }
            at[lane] = (cta * self.env.bars + first + index) as usize;
        }
        Ok(at)
    }

    /// The mbarrier that a lane names.
    pub(super) fn bar_at(&mut self, bar: &BarRef, lane: usize) -> Result<usize, Stop> {
        Ok(self.bars_at(bar, 1 << lane)?[lane])
    }

    /// Refuses an mbarrier whose init these lanes cannot know of.
    pub(super) fn usable(&mut self, bar: usize, lanes: LaneSet) -> Result<(), Stop> {
        let b = &self.st.bars[bar];
        let name = || self.env.bar_name(bar);
        if b.count == 0 {
            let text = format!("uses {} before its initialization", name());
            return Err(self.refuse(&rules::INIT, text));
        }
        let Some(init) = b.init else { return Ok(()) };
        let r = self.st.records.get(init);
        let own = r.warp == self.cur as u32 && lanes & !r.lanes == 0;
        let known = own || self.st.warps[self.cur].know.seen(lanes, init);
        let why = match (own, b.fenced, known) {
            (true, _, _) | (_, true, true) => return Ok(()),
            (_, false, _) => "the initializing thread does not run `fence_mbarrier_init()`",
            (_, _, false) => "no barrier orders the initialization before this use",
        };
        let text = Message::new(format!(
            "uses {} but may not see its initialization",
            name()
        ))
        .label("uses it here")
        .cause(why);
        let side = Label {
            text: format!("{} is initialized here", name()),
            role: None,
            at: self.env.kernel.locs.author(b.made),
        };
        Err(self.refuse_with(&rules::INIT, text, vec![side], Vec::new()))
    }

    fn init(&mut self, bar: &BarRef, count: u32) -> Result<ExecStatus, Stop> {
        for lane in lanes_of(self.active()) {
            let at = self.bar_at(bar, lane)?;
            let name = self.env.bar_name(at);
            if self.st.bars[at].count != 0 {
                let text = Message::new(format!("initializes {name} a second time"))
                    .title("mbarrier initialized twice");
                return Err(self.refuse(&rules::INIT, text));
            }
            if count == 0 || count >= 1 << 20 {
                let text = format!(
                    "initializes {name} for {count} arrivals; the hardware counts 1 to 1048575"
                );
                return Err(self.refuse(&rules::ARRIVALS, text));
            }
            let cta = at as u32 / self.env.bars;
            let record = self.note(Who::Init, self.lane(lane), cta);
            let made = self.loc;
            let b = &mut self.st.bars[at];
            (b.count, b.arrivals, b.init, b.fenced, b.made) =
                (count, count, Some(record), false, made);
        }
        Ok(ExecStatus::Completed)
    }

    fn inval(&mut self, bar: &BarRef) -> Result<ExecStatus, Stop> {
        for lane in lanes_of(self.active()) {
            let at = self.bar_at(bar, lane)?;
            let set = self.lane(lane);
            self.usable(at, set)?;
            self.is_over(at, set)?;
            let b = &mut self.st.bars[at];
            if let Some(init) = b.init.take() {
                self.st.records.get_mut(init).live = false;
            }
            (b.count, b.phase) = (0, FIRST);
            b.loads.clear();
            let nothing = &self.env.nothing;
            (b.came, b.done) = (nothing.clone(), nothing.clone());
            let passed = std::mem::take(&mut b.passed);
            for (i, _) in passed {
                self.st.records.get_mut(i).live = false;
            }
            // Its phases begin anew, and whoever knows of its next init knows that.
            for know in super::merge::holders_mut(&mut self.st) {
                know.phases[at] = FIRST;
            }
        }
        Ok(ExecStatus::Completed)
    }

    /// Refuses to end an mbarrier that somebody may still use.
    fn is_over(&mut self, bar: usize, lanes: LaneSet) -> Result<(), Stop> {
        let (b, know) = (&self.st.bars[bar], &self.st.warps[self.cur].know);
        let name = self.env.bar_name(bar);
        let me = self.cur as u32;
        let unknown = b.passed.iter().find(|(i, _)| {
            let r = self.st.records.get(*i);
            let own = r.warp == me && r.lanes & !lanes == 0;
            !own && !know.seen(lanes, *i)
        });
        let partly = b.arrivals != b.count || b.bytes != 0 || !b.terms.is_empty();
        let waits = |w: &Warp| matches!(w.status, Status::Bar { bar: of, .. } if of == bar);
        let (text, side) = if let Some((i, _)) = unknown {
            let r = self.st.records.get(*i).clone();
            let who = self.who(r.warp);
            let side = Label {
                text: format!("{who} waits here"),
                role: Some(self.role_name(r.warp)),
                at: self.env.kernel.locs.author(r.loc),
            };
            let text = format!("invalidates {name} while {who} may still wait on it");
            (text, vec![side])
        } else if partly || know.phases(lanes, bar) < b.phase {
            (
                format!("invalidates {name} while a phase may be incomplete"),
                Vec::new(),
            )
        } else if let Some(w) = self.st.warps.iter().position(waits) {
            let text = format!(
                "invalidates {name} while {} waits on it",
                self.who(w as u32)
            );
            (text, Vec::new())
        } else {
            return Ok(());
        };
        let text = Message::new(text).title("mbarrier invalidated while in use");
        Err(self.refuse_bar(&rules::INIT, text, bar, side))
    }

    fn arrive(
        &mut self,
        bar: &BarRef,
        count: Option<Operand>,
        tx: Option<Operand>,
        scope: Scope,
        leave: bool,
    ) -> Result<ExecStatus, Stop> {
        for g in self.groups(bar, count, tx)? {
            let lanes = g.lanes;
            let cta = g.bar as u32 / self.env.bars;
            let remote = cta != self.st.warps[self.cur].cta;
            self.reach(lanes, cta)?;
            self.usable(g.bar, lanes)?;
            if count.is_some() {
                self.is_counted(g.bar, lanes)?;
            }
            self.in_phase(g.bar, lanes, "arrives at")?;
            let phase = self.st.bars[g.bar].phase;
            self.trail(What::Arrives {
                bar: g.bar,
                phase,
                times: g.times,
                bytes: g.bytes,
            });
            if count.is_some() {
                let mut came = self.take_came(g.bar);
                // A release to the CTA carries no generic accesses to another.
                match remote && scope == Scope::Cta {
                    true => {
                        let generic = self.st.records.generic();
                        self.tell_weakly(lanes, &mut came, generic);
                    }
                    false => self.tell(lanes, &mut came),
                }
                self.st.bars[g.bar].came = came;
            }
            let b = &mut self.st.bars[g.bar];
            b.bytes += g.bytes;
            for (s, n) in g.terms {
                b.bytes += self.env.terms.add_multiple(Arg::Sym(s), n, &mut b.terms) as i64;
            }
            self.take(g.bar, g.times)?;
            let b = &mut self.st.bars[g.bar];
            if leave {
                b.count -= g.times;
            }
            b.copied |= g.bytes != 0 || !b.terms.is_empty();
            // Who arrives alone, and waits for no bytes, knows that the phase is complete.
            let alone = b.count == g.times && count.is_some() && !b.copied;
            self.turn(g.bar)?;
            if alone && self.st.bars[g.bar].phase == phase + 1 {
                let know = &mut self.st.warps[self.cur].know;
                know.learn(lanes, |know| know.add_phase(g.bar, phase + 1));
            }
        }
        self.st.warps[self.cur].epoch += 1;
        Ok(ExecStatus::Completed)
    }

    /// Takes arrivals into the current phase, or refuses those that are too many.
    fn take(&mut self, bar: usize, times: u32) -> Result<(), Stop> {
        let b = &mut self.st.bars[bar];
        if times <= b.arrivals {
            b.arrivals -= times;
            return Ok(());
        }
        let (left, count, phase) = (b.arrivals, b.count, as_told(i64::from(b.phase)));
        let often = match times {
            1 => "once".to_owned(),
            n => format!("{n} times"),
        };
        let text = Message::new(format!(
            "arrives {often} at {}, but phase {phase} expects only {left} more of {count} arrivals",
            self.env.bar_name(bar)
        ))
        .label(format!("arrives {often} here"))
        .cause("more threads arrive in a phase than the mbarrier counts");
        let side = self.made_here(bar);
        Err(self.refuse_bar(&rules::ARRIVALS, text, bar, vec![side]))
    }

    pub(super) fn made_here(&self, bar: usize) -> Label {
        let b = &self.st.bars[bar];
        Label {
            text: match b.count {
                1 => format!("{} is initialized for 1 arrival", self.env.bar_name(bar)),
                n => format!("{} is initialized for {n} arrivals", self.env.bar_name(bar)),
            },
            role: None,
            at: self.env.kernel.locs.author(b.made),
        }
    }

    /// Refuses an arrival at a phase that was complete without it: one more than are counted.
    fn is_counted(&mut self, bar: usize, lanes: LaneSet) -> Result<(), Stop> {
        let (me, meant) = (
            self.cur as u32,
            self.st.warps[self.cur].know.phases(lanes, bar),
        );
        let b = &self.st.bars[bar];
        if meant >= b.phase {
            return Ok(());
        }
        let own = |s: &super::trace::Step| {
            matches!(s.what, What::Arrives { bar: b, phase, .. } if b == bar && phase >= meant)
                && s.warp == me
        };
        if self.st.trail.back().any(own) {
            return Ok(());
        }
        if let Some(stop) = self.second_arrival(bar, meant) {
            return Err(stop);
        }
        let text = Message::new(format!(
            "arrives at {} for phase {}, which {} other arrivals have already completed",
            self.env.bar_name(bar),
            as_told(i64::from(meant)),
            b.count
        ))
        .label("makes one arrival too many here")
        .cause("more threads arrive in a phase than the mbarrier counts");
        let side = self.made_here(bar);
        Err(self.refuse_bar(&rules::ARRIVALS, text, bar, vec![side]))
    }

    /// Refuses an arrival, or bytes, that could fall into an earlier phase.
    pub(super) fn in_phase(&mut self, bar: usize, lanes: LaneSet, verb: &str) -> Result<(), Stop> {
        let phase = self.st.bars[bar].phase;
        if self.st.warps[self.cur].know.phases(lanes, bar) >= phase {
            return Ok(());
        }
        if let Some(stop) = self.second_arrival(bar, phase - 1) {
            return Err(stop);
        }
        let (name, before) = (self.env.bar_name(bar), as_told(i64::from(phase) - 1));
        let text = Message::new(format!(
            "{verb} {name} in phase {} without having observed the end of phase {before}",
            as_told(i64::from(phase))
        ))
        .label(format!("{verb} {name} here"))
        .cause(format!(
            "nothing orders it after the end of phase {before}, so it may count in phase {before} instead"
        ));
        Err(self.refuse_bar(&rules::PHASE, text, bar, Vec::new()))
    }

    /// Completes the phase of an mbarrier if nothing is missing.
    pub(super) fn turn(&mut self, bar: usize) -> Result<(), Stop> {
        let b = &mut self.st.bars[bar];
        if b.arrivals != 0 || b.bytes != 0 || !b.terms.is_empty() {
            return Ok(());
        }
        let before = i64::from(b.phase) - 1;
        let (last, rest): (Vec<_>, Vec<_>) = b.passed.iter().copied().partition(|p| p.1 <= before);
        b.passed = rest;
        b.phase += 1;
        b.copied = false;
        b.loads.clear();
        b.arrivals = b.count;
        b.came.phases[bar] = b.phase;
        // Whoever arrives next knows of this phase, and with it of all it handed on.
        b.done = std::mem::replace(&mut b.came, self.env.nothing.clone());
        for (record, seen) in last {
            let r = self.st.records.get(record).clone();
            if seen == before && !self.st.bars[bar].done.seen.has(record) {
                let (name, who) = (self.env.bar_name(bar), self.who(r.warp));
                let (phase, before) = (as_told(before + 1), as_told(before));
                let wait = match before < 0 {
                    true => "first wait".to_owned(),
                    false => format!("wait for phase {before}"),
                };
                let (rule, passes, why) = match self.goes_on_apart(record) {
                    true => (
                        &rules::LATE,
                        format!("all lanes of {who} have passed their {wait}"),
                        "one lane continued after the wait and arrived without `warp_sync()`, while the other lanes may still be in the wait",
                    ),
                    false => (
                        &rules::PARITY,
                        format!("{who} has passed its {wait}"),
                        "a wait tests only the parity of a phase: a thread that is two phases behind waits for the wrong one",
                    ),
                };
                let text =
                    Message::new(format!("completes phase {phase} of {name} before {passes}"))
                        .label(format!("completes phase {phase} here"))
                        .cause(why);
                let side = Label {
                    text: format!("{who} may still be in its {wait} here"),
                    role: Some(self.role_name(r.warp)),
                    at: self.env.kernel.locs.author(r.loc),
                };
                return Err(self.refuse_bar(rule, text, bar, vec![side]));
            }
            self.st.records.get_mut(record).live = false;
        }
        Ok(())
    }

    /// Has one lane gone on from a wait of several, which have not met since, and told others?
    fn goes_on_apart(&self, wait: u32) -> bool {
        let r = self.st.records.get(wait);
        let mut since = self.st.trail.back().take_while(|s| {
            !(s.warp == r.warp && s.loc == r.loc && matches!(s.what, What::Passes { .. }))
        });
        r.lanes.count_ones() > 1
            && self.st.warps[r.warp as usize].apart.contains(&wait)
            && since.any(|s| {
                s.warp == r.warp && matches!(s.what, What::Arrives { .. } | What::Copies { .. })
            })
    }

    fn wait(&mut self, bar: &BarRef, parity: Operand, scope: Scope) -> Result<ExecStatus, Stop> {
        let (active, lanes) = (self.active(), self.lanes());
        let parities = self.known(parity, "the parity of the wait")?;
        let first = active.trailing_zeros() as usize;
        let bars = self.bars_at(bar, active)?;
        let at = bars[first];
        let same = |lane: usize| bars[lane] == at && parities[lane] == parities[first];
        if !lanes_of(active).all(same) {
            let text = Message::new("waits on different mbarriers in different lanes")
                .cause("the checker follows waits of a whole warp on one mbarrier");
            return Err(self.refuse(&rules::UNKNOWN, text));
        }
        let parity = parities[first] as i64;
        if parity > 1 {
            let text = format!("waits for parity {parity}; a parity is 0 or 1");
            return Err(self.refuse(&rules::PARITY, text));
        }
        self.usable(at, lanes)?;
        let known = i64::from(self.st.warps[self.cur].know.phases(lanes, at));
        let phase = if (known - 1).rem_euclid(2) == parity {
            known - 1
        } else {
            known
        };
        let complete = i64::from(self.st.bars[at].phase);
        if complete > phase + 1 {
            // Who waits for the phase after those it has seen waits for the right one.
            let early = (phase == known).then(|| self.early_arrival(at, phase));
            if let Some(stop) = early.flatten() {
                return Err(stop);
            }
            let meant = match as_told(phase) {
                p if p < 0 => "the phase before the first".to_owned(),
                p => format!("phase {p}"),
            };
            let text = Message::new(format!(
                "waits on {} with parity {parity}, which stands for {meant}, but phase {} may be complete",
                self.env.bar_name(at),
                as_told(phase + 1)
            ))
            .label(format!("waits with parity {parity} here"))
            .cause("a wait tests only the parity of a phase: it cannot tell a phase from the one two phases later, so this wait blocks or passes at the wrong time");
            return Err(self.refuse_bar(&rules::PARITY, text, at, Vec::new()));
        }
        if complete <= phase {
            self.st.warps[self.cur].status = Status::Bar { bar: at, phase };
            return Ok(ExecStatus::Blocked);
        }
        // What generic accesses of other CTAs left is seen only by an acquire of the cluster.
        let own = self.st.warps[self.cur].cta;
        let done = self.st.bars[at].done.clone();
        let far = match scope == Scope::Cta && self.env.ctas > 1 {
            true => Some(self.st.records.generic_of_others(own)),
            false => None,
        };
        self.st.warps[self.cur].know.learn(lanes, |know| {
            match &far {
                Some(far) => know.join_weakly(&done, far),
                None => know.join(&done),
            }
            know.add_phase(at, (phase + 1) as u32);
        });
        let mut passed = std::mem::take(&mut self.st.bars[at].passed);
        passed.retain(|&(i, _)| {
            let r = self.st.records.get_mut(i);
            r.live = !(r.warp == self.cur as u32 && r.lanes == lanes);
            r.live
        });
        self.st.bars[at].passed = passed;
        let record = self.note(Who::Passed, lanes, own);
        self.st.bars[at].passed.push((record, phase));
        self.trail(What::Passes { bar: at, phase });
        self.st.warps[self.cur].epoch += 1;
        Ok(ExecStatus::Completed)
    }

    /// Comes to a meeting, and waits for its end if asked to.
    fn come(
        &mut self,
        meeting: usize,
        threads: Option<u32>,
        waits: bool,
    ) -> Result<ExecStatus, Stop> {
        self.whole()?;
        if let Status::Meeting { meeting: m, number } = self.st.warps[self.cur].status
            && m == meeting
        {
            if self.st.meetings[meeting].over == number {
                return Ok(ExecStatus::Blocked);
            }
            self.leave_meeting(meeting, number);
            return Ok(ExecStatus::Completed);
        }
        let number = self.st.meetings[meeting].over;
        let known = self.st.warps[self.cur].know.all.phases[self.env.first_meeting() + meeting];
        if let Some(threads) = threads
            && known < number
        {
            if let Some(stop) = self.uncounted(meeting, threads) {
                return Err(stop);
            }
            let text = Message::new(format!(
                "arrives at {} before it has observed the end of the previous use",
                self.env.meeting_name(meeting)
            ))
            .label("arrives here")
            .cause("warps of the previous use may still wait there, and would count this arrival as theirs");
            let last = Label {
                text: "the previous arrival".to_owned(),
                role: None,
                at: self.env.kernel.locs.author(self.st.meetings[meeting].last),
            };
            let trace = self.meeting_trace(meeting);
            return Err(self.refuse_with(&rules::RECYCLE, text, vec![last], trace));
        }
        self.trail(What::Comes { meeting, number });
        let live = self.live_threads(meeting);
        let expected = threads.unwrap_or(live);
        let loc = self.loc;
        self.tell_meeting(meeting);
        let m = &mut self.st.meetings[meeting];
        let (was, last) = (m.expected, m.last);
        if threads.is_some() && m.came > 0 && was != expected || m.came + 32 > expected {
            let text = Message::new(format!(
                "arrives at {} with a count of {expected} threads, where {} of {} threads have arrived",
                self.env.meeting_name(meeting),
                m.came,
                was.max(1)
            ))
            .label(format!("arrives with a count of {expected} here"));
            let side = Label {
                text: "the previous arrival".to_owned(),
                role: None,
                at: self.env.kernel.locs.author(last),
            };
            return Err(self.refuse_with(&rules::COUNT, text, vec![side], Vec::new()));
        }
        m.came += 32;
        (m.expected, m.last) = (expected, loc);
        self.st.warps[self.cur].epoch += 1;
        self.end_meeting(meeting);
        if !waits {
            return Ok(ExecStatus::Completed);
        }
        if self.st.meetings[meeting].over > number {
            self.leave_meeting(meeting, number);
            return Ok(ExecStatus::Completed);
        }
        self.st.warps[self.cur].status = Status::Meeting { meeting, number };
        Ok(ExecStatus::Blocked)
    }

    fn whole(&mut self) -> Result<(), Stop> {
        let active = self.active();
        if active == Mask::MAX {
            return Ok(());
        }
        let text =
            format!("reaches a barrier with lanes {active:#010x} only; whole warps must reach it");
        Err(self.refuse(&rules::WHOLE, text))
    }

    /// Threads of the CTA or cluster that have not ended.
    fn live_threads(&self, meeting: usize) -> u32 {
        let warps = match meeting == self.env.cluster_meeting() {
            true => 0..self.st.warps.len(),
            false => self.warps_of(self.st.warps[self.cur].cta),
        };
        let live = warps.filter(|&w| self.st.warps[w].status != Status::Done);
        32 * live.count() as u32
    }

    /// Ends a meeting if all are there.
    pub(super) fn end_meeting(&mut self, meeting: usize) {
        let m = &mut self.st.meetings[meeting];
        if m.came == 0 || m.came < m.expected {
            return;
        }
        m.came = 0;
        m.over += 1;
        let i = self.env.first_meeting() + meeting;
        m.know.phases[i] = m.over;
        m.done = std::mem::replace(&mut m.know, self.env.nothing.clone());
    }

    /// What has come to an mbarrier, to be given back with more.
    pub(super) fn take_came(&mut self, bar: usize) -> Shared {
        std::mem::replace(&mut self.st.bars[bar].came, self.env.nothing.clone())
    }

    /// The warp hands on what it knows at a meeting.
    fn tell_meeting(&mut self, meeting: usize) {
        let nothing = self.env.nothing.clone();
        let mut know = std::mem::replace(&mut self.st.meetings[meeting].know, nothing);
        self.tell(ALL, &mut know);
        self.st.meetings[meeting].know = know;
    }

    /// Without a release the warp hands on the mbarriers that it has made and
    /// fenced, which is what `fence.mbarrier_init.release.cluster` is for.
    fn tell_inits(&mut self, meeting: usize) {
        let me = self.cur as u32;
        let fenced = self.st.bars.iter().filter(|b| b.fenced);
        let own = fenced.filter_map(|b| b.init.filter(|&i| self.st.records.get(i).warp == me));
        let own: Vec<u32> = own.collect();
        let know = &mut self.st.meetings[meeting].know;
        own.into_iter().for_each(|i| know.seen.add(i));
    }

    fn leave_meeting(&mut self, meeting: usize, number: u32) {
        let done = self.st.meetings[meeting].done.clone();
        self.st.warps[self.cur].know.all.join(&done);
        self.st.warps[self.cur].status = Status::Ready;
        self.trail(What::Leaves { meeting, number });
        self.meet();
    }

    fn cluster_arrive(&mut self, release: bool) -> Result<ExecStatus, Stop> {
        self.whole()?;
        let meeting = self.env.cluster_meeting();
        if self.st.warps[self.cur].at_cluster.is_some() {
            let text = "arrives at the cluster barrier twice without a wait in between";
            return Err(self.refuse(&rules::AGREE, text));
        }
        let expected = self.live_threads(meeting);
        let number = self.st.meetings[meeting].over;
        self.trail(What::Comes { meeting, number });
        let loc = self.loc;
        match release {
            true => self.tell_meeting(meeting),
            false => self.tell_inits(meeting),
        }
        let m = &mut self.st.meetings[meeting];
        m.came += 32;
        (m.expected, m.last) = (expected, loc);
        self.st.warps[self.cur].at_cluster = Some(number);
        self.st.warps[self.cur].epoch += 1;
        self.end_meeting(meeting);
        Ok(ExecStatus::Completed)
    }

    fn cluster_wait(&mut self) -> Result<ExecStatus, Stop> {
        self.whole()?;
        let meeting = self.env.cluster_meeting();
        let Some(number) = self.st.warps[self.cur].at_cluster else {
            let text = "waits at the cluster barrier without having arrived";
            return Err(self.refuse(&rules::AGREE, text));
        };
        if self.st.meetings[meeting].over == number {
            self.st.warps[self.cur].status = Status::Meeting { meeting, number };
            return Ok(ExecStatus::Blocked);
        }
        self.st.warps[self.cur].at_cluster = None;
        self.leave_meeting(meeting, number);
        Ok(ExecStatus::Completed)
    }

    fn fence(&mut self, f: FenceKind) {
        let lanes = self.lanes();
        let me = self.cur as u32;
        match f {
            f if f.is_proxy_shared() => {
                let know = &self.st.warps[self.cur].know;
                let mut fenced = Vec::new();
                let records = &self.st.records;
                // `.shared::cta` is about the memory of the CTA alone.
                let cta = self.st.warps[self.cur].cta;
                let here = |r: &Record| f != FenceKind::ProxyAsyncShared || r.cta == cta;
                let own = |r: &Record| !r.bulk && r.lanes & !lanes == 0 && here(r);
                // Of what one lane did that lane knows; of what several did, each knows its own.
                let one = |r: &Record| r.lanes.is_power_of_two();
                let apart = &self.st.warps[self.cur].apart;
                let over = |i: u32, r: &Record| r.who != Who::Copy || apart.contains(&i);
                let (alone, several): (Vec<_>, Vec<_>) = (records.by(me))
                    .filter(|&(i, r)| own(r) && over(i, r))
                    .partition(|(_, r)| one(r));
                fenced.extend(alone.into_iter().map(|r| r.0));
                let several: Vec<u32> = several.into_iter().map(|r| r.0).collect();
                let known = |i: u32, r: &Record| know.seen(lanes, i) && here(r);
                let copies = records.copies().filter(|&(i, r)| known(i, r));
                fenced.extend(copies.map(|r| r.0));
                let warp = &mut self.st.warps[self.cur];
                warp.know.learn(lanes, |know| {
                    fenced.iter().for_each(|&i| know.fenced.add(i))
                });
                let fencing = &mut warp.fencing;
                let known = |i: &u32| fencing.contains(i) || warp.know.all.fenced.has(*i);
                let new: Vec<u32> = several.into_iter().filter(|i| !known(i)).collect();
                fencing.extend(new);
                self.st.warps[self.cur].epoch += 1;
                self.trail(What::Fences);
            }
            FenceKind::MbarrierInit => {
                for b in &mut self.st.bars {
                    let own = b.init.is_some_and(|i| {
                        let r = self.st.records.get(i);
                        r.warp == me && r.lanes & !lanes == 0
                    });
                    b.fenced |= own;
                }
            }
            _ => {}
        }
    }

    fn bulk_wait(&mut self, pending: u32) {
        let lanes = self.lanes();
        let mut done: Vec<(u32, Vec<u32>)> = Vec::new();
        for (lane, groups) in &mut self.st.warps[self.cur].bulk {
            if !issues(lanes, *lane) {
                continue;
            }
            // The last is open, and no group yet.
            let closed = groups.len().saturating_sub(1);
            let covered = closed.saturating_sub(pending as usize);
            let records = groups.drain(..covered).flatten().collect();
            done.push((*lane, records));
        }
        for (lane, records) in done {
            let set = match lane == u32::from(ELECTED_LANE) {
                true => ELECTED,
                false => 1 << lane,
            };
            self.learn(set, &records);
        }
        self.st.warps[self.cur].epoch += 1;
        self.trail(What::Waits {
            what: "bulk stores",
        });
    }

    /// Closes a group of what the lanes have copied.
    fn copy_commit(&mut self) {
        let lanes = self.lanes();
        let records = &self.st.records;
        let warp = &mut self.st.warps[self.cur];
        let own = |i: &u32| records.get(*i).lanes & !lanes == 0;
        let (closed, open) = warp.copying.iter().copied().partition(own);
        warp.copying = open;
        warp.copies.push((lanes, closed));
        // Those of the next group are waited for apart.
        warp.epoch += 1;
    }

    /// The lanes wait for their own groups, but for some of the last.
    fn copy_wait(&mut self, pending: Option<u32>) {
        let lanes = self.lanes();
        let records = &self.st.records;
        let warp = &mut self.st.warps[self.cur];
        let mut done: Vec<u32> = Vec::new();
        // A group is covered if enough others of all its lanes came after it.
        let later = |groups: &[(LaneSet, Vec<u32>)], at: usize| {
            let (set, _) = groups[at];
            groups[at + 1..].iter().filter(|g| set & !g.0 == 0).count()
        };
        let covered: Vec<bool> = (0..warp.copies.len())
            .map(|at| {
                let mine = warp.copies[at].0 & !lanes == 0;
                let enough = pending.is_none_or(|n| later(&warp.copies, at) >= n as usize);
                mine && enough
            })
            .collect();
        for (at, (_, group)) in warp.copies.iter_mut().enumerate() {
            if covered[at] {
                done.append(group);
            }
        }
        let mut covered = covered.into_iter();
        warp.copies.retain(|_| !covered.next().unwrap_or(false));
        if pending.is_none() {
            let own = |i: &u32| records.get(*i).lanes & !lanes == 0;
            let (closed, open): (Vec<u32>, Vec<u32>) = warp.copying.iter().copied().partition(own);
            done.extend(closed);
            warp.copying = open;
        }
        // Each lane knows of its own copies: the record keeps the lanes apart until they meet.
        warp.apart.extend(done);
        warp.epoch += 1;
        self.trail(What::Waits { what: "copies" });
    }

    /// Moves registers between warps. Growing waits until the pool serves all who grow, whatever
    /// the order in which they ask.
    fn set_registers(&mut self, count: u32, grow: bool) -> ExecStatus {
        if grow {
            let cta = self.st.warps[self.cur].cta;
            // PTX does not say that a warp that has exited returns its registers to the pool.
            let held = |w: &Warp| match w.status {
                Status::Done => w.registers,
                _ => w.registers.max(self.env.grows_to[w.role as usize]),
            };
            let warps = self.warps_of(cta);
            let all: u32 = warps.map(|w| held(&self.st.warps[w])).sum();
            if all > self.env.warps * self.env.entry_registers {
                self.st.warps[self.cur].status = Status::Registers;
                return ExecStatus::Blocked;
            }
        }
        self.st.warps[self.cur].registers = count;
        ExecStatus::Completed
    }

    fn copy_arrive(&mut self, bar: &BarRef, counted: bool) -> Result<ExecStatus, Stop> {
        let warp = &self.st.warps[self.cur];
        let groups = warp.copies.iter().flat_map(|c| &c.1);
        let copies: Vec<u32> = groups.chain(&warp.copying).copied().collect();
        for mut g in self.groups(bar, None, None)? {
            g.times = (g.lanes as Mask).count_ones().max(1);
            self.usable(g.bar, g.lanes)?;
            self.in_phase(g.bar, g.lanes, "arrives after its cp.async copies at")?;
            let mut came = self.take_came(g.bar);
            self.tell(g.lanes, &mut came);
            for &i in &copies {
                let r = self.st.records.get(i);
                if r.live && r.lanes & !g.lanes == 0 {
                    came.add(i);
                }
            }
            let phase = self.st.bars[g.bar].phase;
            self.trail(What::Arrives {
                bar: g.bar,
                phase,
                times: g.times,
                bytes: 0,
            });
            let b = &mut self.st.bars[g.bar];
            b.came = came;
            if !counted {
                b.arrivals += g.times;
            }
            self.take(g.bar, g.times)?;
            self.turn(g.bar)?;
        }
        self.st.warps[self.cur].epoch += 1;
        Ok(ExecStatus::Completed)
    }

    /// The warpgroup of the warp.
    pub(super) fn group(&self) -> usize {
        let w = &self.st.warps[self.cur];
        (w.cta * self.env.warps.div_ceil(4) + w.index / 4) as usize
    }

    fn wgmma_commit(&mut self) {
        let group = self.group();
        let warp = &mut self.st.warps[self.cur];
        let open = std::mem::take(&mut warp.open);
        warp.commits += 1;
        warp.epoch += 1;
        let number = warp.commits;
        let list = &mut self.st.products[group];
        match list.iter_mut().find(|g| g.0 == number) {
            Some(g) => g.1.extend(open),
            None => list.push((number, open)),
        }
    }

    fn wgmma_wait(&mut self, pending: u32) -> Result<ExecStatus, Stop> {
        let group = self.group();
        let covered = self.st.warps[self.cur].commits.saturating_sub(pending);
        let start = self.cur - self.st.warps[self.cur].index as usize % 4;
        let end = (start + 4).min(self.warps_of(self.st.warps[self.cur].cta).end);
        let behind = |w: usize| {
            let w = &self.st.warps[w];
            w.commits < covered && w.status != Status::Done
        };
        if (start..end).any(behind) {
            self.st.warps[self.cur].status = Status::Products;
            return Ok(ExecStatus::Blocked);
        }
        let records: Vec<u32> = self.st.products[group]
            .iter()
            .filter(|g| g.0 <= covered)
            .flat_map(|g| g.1.iter().copied())
            .collect();
        self.learn(ALL, &records);
        let warp = &mut self.st.warps[self.cur];
        warp.waited = warp.waited.max(covered);
        warp.epoch += 1;
        let all = (start..end)
            .filter(|&w| self.st.warps[w].status != Status::Done)
            .map(|w| self.st.warps[w].waited)
            .min();
        if let Some(all) = all {
            self.st.products[group].retain(|g| g.0 > all);
        }
        self.trail(What::Waits { what: "wgmmas" });
        Ok(ExecStatus::Completed)
    }
}

/// Is a lane, as bulk groups are kept by, in a set?
fn issues(lanes: LaneSet, lane: u32) -> bool {
    match lane == u32::from(ELECTED_LANE) {
        true => lanes & ELECTED != 0,
        false => lanes >> lane & 1 == 1,
    }
}

/// The lanes of a mask.
pub(super) fn lanes_of(mask: Mask) -> impl Iterator<Item = usize> {
    (0..WARP).filter(move |l| mask >> l & 1 == 1)
}
