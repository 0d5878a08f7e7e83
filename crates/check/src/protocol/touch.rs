//! Accesses to shared memory: checks that each is ordered after the accesses that it conflicts
//! with.

use super::bits::Bits;
use super::know::Shared;
use super::lanes::{ELECTED, LaneSet};
use super::record::{Record, Who};
use super::rules;
use super::runs::{ANY_LANE, ELECTED_LANE, Run, Runs};
use super::state::FIRST;
use super::trace::{Step, What};
use super::world::{Stop, World};
use crate::diagnostic::{Label, Message, Rule, TraceEvent, role_name};
use warpline_ir::Loc;

/// An access about to be made.
#[derive(Clone)]
pub(super) struct Touch {
    pub(super) who: Who,
    /// The lanes that make or issue it.
    pub(super) lanes: LaneSet,
    pub(super) runs: Runs,
    pub(super) write: bool,
    pub(super) atomic: bool,
    pub(super) bulk: bool,
    pub(super) cta: u32,
    pub(super) tile: u32,
}

impl World<'_, '_> {
    /// Judges an access and notes it; gives its record.
    pub(super) fn touch(&mut self, mut t: Touch) -> Result<u32, Stop> {
        t.runs = self.env.runs.hold(&t.runs);
        if let Some(kept) = &mut self.kept {
            kept.push((t.clone(), self.loc));
        }
        if t.runs.is_empty() {
            return Ok(u32::MAX);
        }
        self.judge(&t)?;
        self.supersede(&t);
        let epoch = self.st.warps[self.cur].epoch;
        let found = self.same(&t, epoch);
        if let Some(i) = found {
            let runs = &self.st.records.get(i).runs;
            let runs = self.env.runs.and(runs, &t.runs);
            self.st.records.widen(i, runs);
            self.st.records.get_mut(i).lanes |= t.lanes;
            return Ok(i);
        }
        self.trail(What::Touches {
            tile: t.tile,
            byte: t.runs.start(),
            how: verb(t.who, t.write),
            cta: t.cta,
        });
        let i = self.st.records.add(
            Record {
                who: t.who,
                warp: self.cur as u32,
                lanes: t.lanes,
                loc: self.loc,
                write: t.write,
                atomic: t.atomic,
                bulk: t.bulk,
                cta: t.cta,
                tile: t.tile,
                runs: t.runs,
                epoch,
                made: 0,
                live: true,
                settled: false,
            },
            self.cur as u32 / self.env.warps,
        );
        match t.who {
            Who::Lanes => self.st.warps[self.cur].apart.push(i),
            Who::Load { bar, .. } => self.st.bars[bar as usize].loads.push(i),
            _ => {}
        }
        Ok(i)
    }

    /// A record that an access is added to: nobody knows of the one without the other.
    fn same(&self, t: &Touch, epoch: u32) -> Option<u32> {
        let kind =
            |r: &Record| (r.who, r.write, r.atomic, r.bulk) == (t.who, t.write, t.atomic, t.bulk);
        // Whoever copies: a phase counts the bytes of all. Only who is told of it wants to know.
        if let Who::Load { bar, .. } = t.who
            && !self.st.trail.is_on()
        {
            let mut loads = self.st.bars[bar as usize].loads.iter().copied();
            return loads.find(|&i| {
                let r = self.st.records.get(i);
                r.live && kind(r) && (r.cta, r.tile) == (t.cta, t.tile)
            });
        }
        let same =
            |r: &Record| kind(r) && r.epoch == epoch && (t.who == Who::Lanes || r.lanes == t.lanes);
        let mut own = self.st.records.made_in(t.cta, t.tile, self.cur as u32);
        own.find(|(_, r)| same(r)).map(|r| r.0)
    }

    /// Records that may have bytes in common with an access.
    fn around(&self, t: &Touch) -> impl Iterator<Item = (u32, &Record)> {
        let tiles = self.env.aliases[t.tile as usize].iter();
        tiles.flat_map(move |&tile| self.st.records.near(t.cta, tile, &t.runs))
    }

    fn judge(&mut self, t: &Touch) -> Result<(), Stop> {
        let me = self.cur as u32;
        let know = &self.st.warps[self.cur].know;
        // Of all that it conflicts with, the first that was made.
        let mut found: Option<(u64, u32, u32, &'static Rule)> = None;
        for (i, r) in self.around(t) {
            if found.is_some_and(|f| f.0 < r.made) {
                continue;
            }
            let hits = (t.write || r.write) && !(t.atomic && r.atomic);
            // Most is known to all lanes.
            let fenced = !t.bulk || r.bulk || know.all.fenced.has(i);
            if !hits || know.all.seen.has(i) && fenced || !self.env.runs.meet(&r.runs, &t.runs) {
                continue;
            }
            let own = r.warp == me
                && (r.who == Who::Lanes
                    || r.who == Who::Copy && self.st.warps[self.cur].apart.contains(&i));
            // A lane knows of its own accesses; a job that one lane issues, of that lane's; and a
            // product, which the whole warp issues together, of those of the warp.
            let knows = |lane: u8, mine: u8| {
                let same = own
                    && match t.who {
                        Who::Product => true,
                        _ if mine == ANY_LANE => lane != ANY_LANE && t.lanes == set_of(lane, 0),
                        _ => lane == mine,
                    };
                same || know.seen(set_of(mine, t.lanes), i)
            };
            if let Some(x) = r.runs.overlap(&t.runs, |x, y| !knows(x.lane, y.lane)) {
                found = Some((r.made, i, x.lo, self.unordered(r, t, i)));
                continue;
            }
            if t.bulk && !r.bulk {
                let fencing = r.warp == me && self.st.warps[self.cur].fencing.contains(&i);
                let unfenced = |x: &Run, y: &Run| {
                    let own = match t.who {
                        Who::Product => true,
                        _ => x.lane == y.lane && x.lane != ANY_LANE,
                    };
                    !(fencing && own || know.fenced(set_of(y.lane, t.lanes), i))
                };
                if let Some(x) = r.runs.overlap(&t.runs, unfenced) {
                    let rule = if r.write {
                        &rules::PROXY_WRITE
                    } else {
                        &rules::PROXY_READ
                    };
                    found = Some((r.made, i, x.lo, rule));
                }
            }
        }
        match found {
            None => Ok(()),
            Some((_, i, byte, rule)) => Err(self.conflict(t, i, byte, rule)),
        }
    }

    /// The rule that two unordered accesses break.
    fn unordered(&self, r: &Record, t: &Touch, i: u32) -> &'static Rule {
        let know = &self.st.warps[self.cur].know;
        let remote = r.warp / self.env.warps != self.cur as u32 / self.env.warps;
        match r.who {
            _ if remote && know.weak(t.lanes, i) => &rules::SCOPE,
            Who::Store if t.write => &rules::BULK,
            Who::Product if t.write => &rules::RELEASE,
            _ if r.tile != t.tile => &rules::ALIAS,
            Who::Lanes if r.warp == self.cur as u32 => &rules::LANES,
            _ if remote && self.is_before_start(t) => &rules::START,
            _ => &rules::ORDER,
        }
    }

    fn is_before_start(&self, t: &Touch) -> bool {
        let meeting = self.env.first_meeting() + self.env.cluster_meeting();
        self.st.warps[self.cur].know.phases(t.lanes, meeting) <= FIRST
    }

    fn conflict(&mut self, t: &Touch, i: u32, byte: u32, rule: &'static Rule) -> Stop {
        let r = self.st.records.get(i).clone();
        let (place, old_place) = (
            self.env.place_name(t.tile, byte),
            self.env.place_name(r.tile, byte),
        );
        let it = match place == old_place {
            true => "it".to_owned(),
            false => format!("{old_place}, which shares its bytes"),
        };
        let them = match self.role_name(r.warp) == self.role_name(self.cur as u32) {
            true if r.warp == self.cur as u32 => "a thread of the same warp".to_owned(),
            true => self.who(r.warp),
            false if self.env.ctas > 1 => self.who(r.warp),
            false => role_name(&self.role_name(r.warp)),
        };
        let verb = match (t.who, t.write, r.write) {
            (Who::Lanes, true, false) => "overwrites",
            (Who::Load { .. }, true, false) => "issues a copy that overwrites",
            _ => verb(t.who, t.write),
        };
        let race = match (r.write, t.write) {
            (true, true) => "write-after-write race",
            (true, false) => "read-after-write race",
            _ => "write-after-read race",
        };
        let access = if r.write { "write" } else { "read" };
        let headline = match rule.code {
            "R5.write" | "R5.read" => {
                let did = if r.write { "wrote" } else { "read" };
                let other = match place == old_place {
                    true => String::new(),
                    false => format!(" as {old_place}"),
                };
                format!(
                    "{verb} {place}, which {them} {did}{other} without a `fence.proxy.async` afterwards"
                )
            }
            "R15.lanes" => {
                format!("{verb} {place} while other lanes of the same warp may still {access} {it}")
            }
            _ => format!("{verb} {place} while {}", may_still(&r, &them, &it)),
        };
        let cause = match rule.code {
            "R5.write" | "R5.read" => format!(
                "barriers do not order a generic {access} before an async access; the thread that made the {access} must run `fence.proxy.async` before it hands the bytes over"
            ),
            "R8.scope" => "the arrival or the wait that orders the two accesses has CTA scope, which does not publish generic accesses to another CTA".to_owned(),
            "R15.lanes" => "no `warp_sync()` separates the two accesses".to_owned(),
            "R6.bulk" => "no `bulk_wait_read` of the thread that issued the store is ordered before the overwrite".to_owned(),
            "R7.release" => "no wait that covers the wgmma is ordered before the overwrite".to_owned(),
            _ => match r.who {
                Who::Load { .. } => "this thread does not wait for the copy to complete".to_owned(),
                Who::Copy => "no wait for the cp.async is ordered before this access".to_owned(),
                Who::Product => "no wait for the wgmma is ordered before this access".to_owned(),
                _ => "no barrier orders the two accesses".to_owned(),
            },
        };
        let message = Message::new(headline)
            .label(format!("{verb} {place} here"))
            .cause(cause);
        let message = match rule.code {
            "R3.order" | "R6.bulk" | "R7.release" => message.title(race),
            _ => message,
        };
        let label = Label {
            text: format!(
                "{} {} {old_place} here",
                self.who(r.warp),
                self::verb(r.who, r.write)
            ),
            role: Some(self.role_name(r.warp)),
            at: self.env.kernel.locs.author(r.loc),
        };
        let mut labels = vec![label];
        if rule.code == rules::SCOPE.code {
            labels.extend(self.handed_on(&r));
        }
        let mut trace = self.race_trace(&r, t.tile, byte);
        trace.push(TraceEvent {
            who: self.who(self.cur as u32),
            what: format!("{verb} {place}"),
            at: self.env.kernel.locs.author(self.loc),
        });
        self.refuse_with(rule, message, labels, trace)
    }

    /// The arrival that published an access, and the wait by which this warp acquired it: one of
    /// the two has too narrow a scope.
    fn handed_on(&self, r: &Record) -> Vec<Label> {
        let last = |is: &dyn Fn(&Step) -> bool, what: &str| {
            let step = self.st.trail.back().find(|s| is(s))?;
            Some(Label {
                text: format!("{} {what} here", self.who(step.warp)),
                role: Some(self.role_name(step.warp)),
                at: self.env.kernel.locs.author(step.loc),
            })
        };
        let me = self.cur as u32;
        let gave = |s: &Step| s.warp == r.warp && matches!(s.what, What::Arrives { .. });
        let took = |s: &Step| s.warp == me && matches!(s.what, What::Passes { .. });
        let labels = [last(&gave, "releases it"), last(&took, "acquires it")];
        labels.into_iter().flatten().collect()
    }

    /// Forgets what later accesses are ordered after in any case, if they are ordered after this
    /// one: also where it is unknown whether this one takes place, as they must be all the same.
    fn supersede(&mut self, t: &Touch) {
        let me = self.cur as u32;
        let know = &self.st.warps[self.cur].know;
        let mut gone = Vec::new();
        for (i, r) in self.around(t) {
            if t.atomic != r.atomic {
                continue;
            }
            let mine = r.warp == me && r.who == t.who;
            let over = match (t.write, t.atomic) {
                (true, false) => true,
                (_, true) => mine,
                (false, false) => mine && !r.write,
            };
            if over && self.env.runs.meet(&r.runs, &t.runs) {
                // A read, or an atomic, stands for those that its lanes know of: of others, for
                // those of the same lane.
                let known = t.write && !t.atomic || know.seen(t.lanes, i);
                gone.push((i, known));
            }
        }
        for (i, known) in gone {
            let r = self.st.records.get_mut(i);
            r.runs = match known {
                true => self.env.runs.without(&r.runs, &t.runs),
                false => self.env.runs.without_own(&r.runs, &t.runs),
            };
            r.live = !r.runs.is_empty();
        }
    }

    /// Notes something that has no bytes: a wait, an init, a reach into a CTA.
    pub(super) fn note(&mut self, who: Who, lanes: LaneSet, cta: u32) -> u32 {
        let i = self.st.records.add(
            Record {
                who,
                warp: self.cur as u32,
                lanes,
                loc: self.loc,
                write: false,
                atomic: false,
                bulk: false,
                cta,
                tile: u32::MAX,
                runs: Runs::default(),
                epoch: 0,
                made: 0,
                live: true,
                settled: false,
            },
            self.cur as u32 / self.env.warps,
        );
        self.st.warps[self.cur].apart.push(i);
        i
    }

    /// The lanes of a warp meet.
    pub(super) fn meet(&mut self) {
        let warp = &mut self.st.warps[self.cur];
        warp.know.meet();
        warp.epoch += 1;
        for i in std::mem::take(&mut warp.fencing) {
            warp.know.all.fenced.add(i);
        }
        for i in std::mem::take(&mut warp.apart) {
            let r = self.st.records.get_mut(i);
            if r.live && r.warp == self.cur as u32 {
                r.runs = self.env.runs.met(&r.runs);
                warp.know.all.add(i);
            }
        }
    }

    /// What some lanes did since they last met.
    fn apart(&self, lanes: LaneSet) -> impl Iterator<Item = u32> {
        let apart = self.st.warps[self.cur].apart.iter().copied();
        apart.filter(move |&i| {
            let r = self.st.records.get(i);
            r.live && r.lanes & !lanes == 0
        })
    }

    /// What some lanes did and fenced since they last met.
    fn fencing(&self, lanes: LaneSet) -> impl Iterator<Item = u32> {
        let fencing = self.st.warps[self.cur].fencing.iter().copied();
        fencing.filter(move |&i| self.st.records.get(i).lanes & !lanes == 0)
    }

    /// Some lanes hand on what they know and what they did.
    pub(super) fn tell(&self, lanes: LaneSet, to: &mut Shared) {
        for know in self.st.warps[self.cur].know.told(lanes) {
            to.join(know);
        }
        self.apart(lanes).for_each(|i| to.add(i));
        self.fencing(lanes).for_each(|i| to.fenced.add(i));
    }

    /// As [`tell`](Self::tell), where the order does not carry the data of some records.
    pub(super) fn tell_weakly(&self, lanes: LaneSet, to: &mut Shared, without: &Bits) {
        for know in self.st.warps[self.cur].know.told(lanes) {
            to.join_weakly(know, without);
        }
        for i in self.apart(lanes) {
            match without.has(i) {
                true => to.weak.add(i),
                false => to.add(i),
            }
        }
        self.fencing(lanes).for_each(|i| to.fenced.add(i));
    }

    pub(super) fn trail(&mut self, what: What) {
        let (warp, loc): (u32, Loc) = (self.cur as u32, self.loc);
        self.st.trail.push(Step { warp, loc, what });
    }
}

/// The lanes that a run is of; of no one in particular, it is of all who made the access.
fn set_of(lane: u8, all: LaneSet) -> LaneSet {
    match lane {
        ANY_LANE => all,
        ELECTED_LANE => ELECTED,
        lane => 1 << lane,
    }
}

/// An earlier access that may still run: ``a bulk store issued by role `store` may still read it``.
fn may_still(r: &Record, them: &str, it: &str) -> String {
    let does = if r.write { "write" } else { "read" };
    let by = match r.who {
        Who::Load { .. } => format!("a copy issued by {them}"),
        Who::Store if r.write => format!("a bulk copy issued by {them}"),
        Who::Store => format!("a bulk store issued by {them}"),
        Who::Product => format!("a wgmma issued by {them}"),
        Who::Copy => format!("a cp.async issued by {them}"),
        _ => them.to_owned(),
    };
    format!("{by} may still {does} {it}")
}

/// The verb phrase of an access, which its place follows.
pub(super) fn verb(who: Who, write: bool) -> &'static str {
    match (who, write) {
        (Who::Lanes, true) => "writes",
        (Who::Lanes, false) => "reads",
        (Who::Load { .. }, true) => "issues a copy that writes",
        (Who::Load { .. }, false) => "issues a copy that reads",
        (Who::Store, true) => "issues a bulk copy that writes",
        (Who::Store, false) => "issues a bulk store that reads",
        (Who::Product, _) => "issues a wgmma that reads",
        (Who::Copy, true) => "issues a cp.async that writes",
        (Who::Copy, false) => "issues a cp.async that reads",
        _ => "accesses",
    }
}
