//! The machine that ops run on: shared memory, asynchronous engines and registers. Unknown
//! registers read as zero here; [`domain`](super::domain) tracks them.

use super::act::lanes_of;
use super::lanes::{ELECTED, LaneSet, numbered};
use super::record::Who;
use super::rules;
use super::runs::{ANY_LANE, ELECTED_LANE, Run};
use super::touch::Touch;
use super::trace::What;
use super::value::Val;
use super::world::{Stop, World};
use crate::symbolic::{Arg, Node, Sym, TermId, type_range};
use warpline_ir::{
    BarRef, Domain, Exec, Fault, FaultKind, Job, JobCompletion, Lane, LaneBytes, Machine, Mask,
    MemoryAddress, MemoryOrder, Operand, ParamId, ParamKind, PerLane, RegId, ResolvedAddress,
    ResolvedBarrier, SharedAddress, Span, Special, SyncOp, TensorMapValue, TileLayout, Type, View,
    WARP,
};

impl World<'_, '_> {
    /// Where lanes reach: by CTA the lanes that reach into it, and the runs.
    fn lane_runs(
        &mut self,
        lanes: Mask,
        p: &SharedAddress,
        width: usize,
    ) -> Result<Vec<(u32, Mask, Vec<Run>)>, Fault> {
        let unknown = self.val(p.byte).numbers().is_none();
        let mut by_cta: Vec<(u32, Mask, Vec<Run>)> = Vec::new();
        let mut add = |cta: u32, lane: usize, run: Run| match by_cta.iter_mut().find(|c| c.0 == cta)
        {
            Some((_, lanes, runs)) => {
                *lanes |= 1 << lane;
                if !runs.contains(&run) {
                    runs.push(run);
                }
            }
            None => by_cta.push((cta, 1 << lane, vec![run])),
        };
        if unknown {
            // Anywhere in the stages they name, or between bounds; of one lane only if there is
            // only one.
            let each = self.env.kernel.tile(p.tile).layout.stage_bytes();
            let (ranks, stages) = (self.ranks(p.peer)?, self.stages(p.stage)?);
            let one = lanes.count_ones() == 1;
            // The first and the last byte of a stage that an access may reach.
            let (first, last) = match self.val(p.byte) {
                Val::Within(lo, hi) => (lo as u32 + p.offset, hi as u32 + p.offset + width as u32),
                _ => (0, each),
            };
            for lane in lanes_of(lanes) {
                let base = self.stage(p.tile, stages[lane])?;
                let lane_of_run = if one { self.run_lane(lane) } else { ANY_LANE };
                let run = Run {
                    lo: base + first.min(each),
                    hi: base + last.min(each),
                    lane: lane_of_run,
                };
                add(self.rank(ranks[lane])?, lane, run);
            }
            return Ok(by_cta);
        }
        let places = self.resolve_lanes(p, lanes, width)?;
        for lane in lanes_of(lanes) {
            let at = places[lane];
            let run = Run {
                lo: at.byte,
                hi: at.byte + width as u32,
                lane: self.run_lane(lane),
            };
            add(at.cta, lane, run);
        }
        Ok(by_cta)
    }

    /// The lane that a run of an executing lane is of.
    fn run_lane(&self, lane: usize) -> u8 {
        match self.is_elected() {
            true => ELECTED_LANE,
            false => lane as u8,
        }
    }

    /// Where each of some lanes reaches; the others are nowhere.
    pub(super) fn resolve_lanes(
        &mut self,
        place: &SharedAddress,
        lanes: Mask,
        len: usize,
    ) -> Result<PerLane<ResolvedAddress>, Fault> {
        let (ranks, stages) = (self.ranks(place.peer)?, self.stages(place.stage)?);
        let bytes = self.val(place.byte).numbers();
        self.lost |= bytes.is_none();
        let bytes = bytes.unwrap_or([0; WARP]);
        let t = self.env.kernel.tile(place.tile);
        let end = u64::from(t.layout.rows * t.layout.row_bytes());
        let len = if self.length.is_some() { 1 } else { len as u64 };
        let mut at = [ResolvedAddress { cta: 0, byte: 0 }; WARP];
        for lane in lanes_of(lanes) {
            let cta = self.rank(ranks[lane])?;
            let base = self.stage(place.tile, stages[lane])?;
            let byte = bytes[lane] + u64::from(place.offset);
            if byte + len > end {
                return Err(Fault::new(
                    FaultKind::OutOfBounds,
                    format!(
                        "accesses {len} bytes at byte {byte} of tile `{}`, which has {end} bytes",
                        t.name
                    ),
                ));
            }
            let byte = base + byte as u32;
            at[lane] = ResolvedAddress { cta, byte };
        }
        Ok(at)
    }

    fn generic(
        &mut self,
        lanes: Mask,
        p: &SharedAddress,
        width: usize,
        write: bool,
        atomic: bool,
    ) -> Result<(), Fault> {
        for (cta, there, runs) in self.lane_runs(lanes, p, width)? {
            let set = match there == self.active() {
                true => self.lanes(),
                false => numbered(there),
            };
            let reached = self.reach(set, cta);
            reached.map_err(|s| self.fault(s))?;
            let touched = self.touch(Touch {
                who: Who::Lanes,
                lanes: set,
                runs: runs.into_iter().collect(),
                write,
                atomic,
                bulk: false,
                cta,
                tile: p.tile.0,
            });
            touched.map_err(|s| self.fault(s))?;
        }
        Ok(())
    }

    /// Forgets followed words that are overwritten.
    fn forget(&mut self, cta: u32, lo: u32, hi: u32) {
        let gone: Vec<_> = self
            .st
            .words
            .range((cta, lo.saturating_sub(7))..(cta, hi))
            .filter(|((_, byte), (_, ty))| byte + ty.bytes() as u32 > lo)
            .map(|w| *w.0)
            .collect();
        for w in gone {
            self.st.words.remove(&w);
        }
        let (all, ends) = (&mut self.st.copied, |c: &(u32, TermId)| c.0);
        let gone: Vec<_> = all
            .range((cta, 0)..(cta, hi))
            .filter(|(_, c)| ends(c) > lo)
            .map(|c| *c.0)
            .collect();
        for c in gone {
            all.remove(&c);
        }
    }

    /// Bytes of a followed tile are what a copy leaves there: unknown, but the same for all who
    /// read them.
    fn copied(&mut self, cta: u32, lo: u32, hi: u32) {
        let tile = self.env.tile_at(lo) as usize;
        if self.env.words.get(tile).copied().unwrap_or(false) {
            let copy = self.fresh(type_range(Type::Pred)).term;
            self.st.copied.insert((cta, lo), (hi, copy));
        }
    }

    /// The word that one copy left at a byte.
    fn copied_word(&mut self, cta: u32, byte: u32, width: u32, ty: Type) -> Option<Val> {
        let before = self.st.copied.range((cta, 0)..=(cta, byte));
        let (&(_, lo), &(end, copy)) = before.last()?;
        if end < byte + width || !ty.is_int() {
            return None;
        }
        let at = Arg::Num(i128::from(byte - lo));
        let term = self.env.terms.add(Node::Copied(copy, at, ty));
        Some(Val::Sym(Sym { term, off: 0 }))
    }

    fn issue(&mut self, job: &Job) -> Result<(), Stop> {
        let lanes = self.lanes();
        let mut reads: Vec<(u32, Run)> = Vec::new();
        let mut writes: Vec<(u32, Run)> = Vec::new();
        let run = |s: Span| match s {
            Span::Shared(at, len) => Some((
                at.cta,
                Run {
                    lo: at.byte,
                    hi: at.byte + len,
                    lane: ANY_LANE,
                },
            )),
            Span::Global(..) => None,
        };
        job.reads(&mut |s| reads.extend(run(s)));
        job.writes(&mut |s| writes.extend(run(s)));
        if let Some(length) = self.length {
            let most = self.most_bytes(length)?;
            for (_, r) in reads.iter_mut().chain(&mut writes) {
                self.fits(length, most, r.lo)?;
                r.hi = r.lo + most;
            }
            reads.retain(|(_, r)| r.lo < r.hi);
            writes.retain(|(_, r)| r.lo < r.hi);
        }
        if let Job::Copy(copy) = job {
            // Each lane writes its own bytes.
            writes.clear();
            copy.each_write(&mut |lane, at, len| {
                writes.push((
                    at.cta,
                    Run {
                        lo: at.byte,
                        hi: at.byte + len,
                        lane: self.run_lane(lane),
                    },
                ));
            });
        }
        let done = job.completion();
        let (who, issuer) = match done {
            JobCompletion::Bytes(bar) => {
                let bar = bar.cta * self.env.bars + bar.slot;
                let phase = self.st.bars[bar as usize].phase;
                (Who::Load { bar, phase }, lanes)
            }
            JobCompletion::BulkGroup { lane } => (Who::Store, self.lane(lane as usize)),
            JobCompletion::WgmmaGroup => (Who::Product, lanes),
            JobCompletion::CopyGroup { .. } => (Who::Copy, lanes),
            JobCompletion::None => return Ok(()),
        };
        let counted = matches!(done, JobCompletion::Bytes(_) | JobCompletion::WgmmaGroup);
        if self.st.warps[self.cur].maybe() && counted {
            let text = crate::diagnostic::Message::new(
                "issues a copy or a wgmma in a branch, and the checker cannot tell which lanes take it",
            )
            .cause("the condition of the branch does not follow from launch parameters, indices or constants");
            return Err(self.refuse(&rules::UNKNOWN, text));
        }
        let bytes: u32 = writes.iter().map(|w| w.1.hi - w.1.lo).sum();
        let mut records = Vec::new();
        for (list, write) in [(reads, false), (writes, true)] {
            let mut by: Vec<(u32, u32, Vec<Run>)> = Vec::new();
            for (cta, run) in list {
                let tile = self.env.tile_at(run.lo);
                match by.iter_mut().find(|b| (b.0, b.1) == (cta, tile)) {
                    Some(b) => b.2.push(run),
                    None => by.push((cta, tile, vec![run])),
                }
            }
            for (cta, tile, runs) in by {
                self.reach(issuer, cta)?;
                if write {
                    let (lo, hi) = (runs[0].lo, runs.iter().map(|r| r.hi).max().unwrap_or(0));
                    self.forget(cta, lo, hi);
                    if !job.is_reduction() && self.length.is_none() {
                        runs.iter().for_each(|r| self.copied(cta, r.lo, r.hi));
                    }
                }
                let i = self.touch(Touch {
                    who,
                    lanes: issuer,
                    runs: runs.into_iter().collect(),
                    write,
                    atomic: write && job.is_reduction(),
                    bulk: job.is_async_proxy(),
                    cta,
                    tile,
                })?;
                if i != u32::MAX {
                    records.push(i);
                }
            }
        }
        self.issued(done, issuer, &records, bytes)
    }

    /// The most bytes that a copy may have whose length the launch decides: a multiple of 16.
    fn most_bytes(&mut self, length: Sym) -> Result<u32, Stop> {
        let (terms, d) = (&self.env.terms, &self.st.decided);
        let seen = terms.substituted(d, Arg::Sym(length), &|t| self.counted_as(t));
        let range = terms.range(d, seen).and(terms.range(d, Arg::Sym(length)));
        let aligned = match seen {
            Arg::Sym(s) => terms
                .residue(d, s.term, 16)
                .is_some_and(|r| (r + s.off) % 16 == 0),
            _ => range.lo % 16 == 0,
        };
        let name = self.name(Arg::Sym(length));
        if !aligned {
            let text = format!("copies `{name}` bytes, which may not be a multiple of 16");
            let mut stop = self.refuse(&rules::UNKNOWN, text);
            let help = "declare the parameters that the length follows from with `multiple_of`";
            stop.diagnostic.help = Some(help.to_owned());
            return Err(stop);
        }
        match u32::try_from(range.hi) {
            Ok(most) if range.lo >= 0 => Ok(most),
            _ => {
                let text = format!("copies `{name}` bytes, for which no upper bound is known");
                let mut stop = self.refuse(&rules::UNKNOWN, text);
                let help = "declare the parameters that the length follows from with `at_most`";
                stop.diagnostic.help = Some(help.to_owned());
                Err(stop)
            }
        }
    }

    /// Refuses a copy that may reach beyond the stage of its tile.
    fn fits(&mut self, length: Sym, most: u32, byte: u32) -> Result<(), Stop> {
        let room = self.env.run_end(byte).saturating_sub(byte);
        if most <= room {
            return Ok(());
        }
        let tile = self.env.tile_at(byte);
        let text = format!(
            "copies `{}` bytes, which may be {most}, to {}, which has room for {room} bytes",
            self.name(Arg::Sym(length)),
            self.env.place_name(tile, byte)
        );
        let mut stop = self.refuse(&rules::UNKNOWN, text);
        let help = "declare the parameters that the length follows from with a smaller `at_most`, or copy less";
        stop.diagnostic.help = Some(help.to_owned());
        Err(stop)
    }

    /// Notes who is told of a job.
    fn issued(
        &mut self,
        done: JobCompletion,
        issuer: LaneSet,
        records: &[u32],
        bytes: u32,
    ) -> Result<(), Stop> {
        let warp = &mut self.st.warps[self.cur];
        match done {
            JobCompletion::Bytes(bar) => {
                let at = (bar.cta * self.env.bars + bar.slot) as usize;
                self.usable(at, issuer)?;
                self.in_phase(at, issuer, "issues a copy that counts its bytes at")?;
                let mut came = self.take_came(at);
                // They show that all before is over, but not what was written.
                self.tell_weakly(issuer, &mut came, self.st.records.written());
                records.iter().for_each(|&i| came.add(i));
                let (tile, byte) = records
                    .iter()
                    .map(|&i| self.st.records.get(i))
                    .find(|r| r.write)
                    .map_or((u32::MAX, 0), |r| (r.tile, r.runs.start()));
                let phase = self.st.bars[at].phase;
                self.trail(What::Copies {
                    bar: at,
                    phase,
                    tile,
                    byte,
                });
                let length = self.length;
                let b = &mut self.st.bars[at];
                (b.copied, b.came) = (true, came);
                match length {
                    Some(s) => {
                        b.bytes +=
                            self.env.terms.add_multiple(Arg::Sym(s), -1, &mut b.terms) as i64;
                    }
                    None => b.bytes -= i64::from(bytes),
                }
                // What lanes touch from here on is not handed on with this.
                let warp = &mut self.st.warps[self.cur];
                let touched = |&i: &u32| self.st.records.get(i).who == Who::Lanes;
                warp.epoch += u32::from(warp.apart.iter().any(touched));
                self.turn(at)
            }
            JobCompletion::BulkGroup { lane } => {
                let lane = match issuer {
                    ELECTED => u32::from(ELECTED_LANE),
                    _ => lane,
                };
                let groups = match warp.bulk.iter_mut().find(|b| b.0 == lane) {
                    Some(b) => &mut b.1,
                    None => {
                        warp.bulk.push((lane, vec![Vec::new()]));
                        let last = warp.bulk.len() - 1;
                        &mut warp.bulk[last].1
                    }
                };
                if let Some(open) = groups.last_mut() {
                    open.extend(records);
                }
                Ok(())
            }
            JobCompletion::CopyGroup { .. } => {
                warp.copying.extend(records);
                Ok(())
            }
            JobCompletion::WgmmaGroup => {
                self.open(records);
                Ok(())
            }
            JobCompletion::None => Ok(()),
        }
    }

    /// Adds records of products to the group that is open.
    pub(super) fn open(&mut self, records: &[u32]) {
        let open = &mut self.st.warps[self.cur].open;
        for &i in records {
            if !open.contains(&i) {
                open.push(i);
            }
        }
    }

    /// The CTAs that lanes reach.
    fn ranks(&mut self, peer: Option<Operand>) -> Result<PerLane<u64>, Fault> {
        self.ctas(peer).map_err(|s| self.fault(s))
    }

    fn rank(&self, rank: u64) -> Result<u32, Fault> {
        let rank = rank as u32;
        if rank < self.env.ctas {
            return Ok(rank);
        }
        let size = self.env.ctas;
        Err(Fault::new(
            FaultKind::OutOfBounds,
            format!("names the CTA of rank {rank} in a cluster of {size} CTAs"),
        ))
    }

    /// The stages of a tile that lanes mean.
    fn stages(&mut self, stage: Operand) -> Result<PerLane<u64>, Fault> {
        let known = self.known(stage, "the stage index of a tile");
        known.map_err(|s| self.fault(s))
    }

    /// Where a stage of a tile begins.
    fn stage(&self, tile: warpline_ir::TileId, stage: u64) -> Result<u32, Fault> {
        let stage = stage as u32;
        let t = self.env.kernel.tile(tile);
        if stage < t.stages {
            return Ok(t.offset + stage * t.layout.stage_bytes());
        }
        Err(Fault::new(
            FaultKind::OutOfBounds,
            format!(
                "names stage {stage} of tile `{}`, which has {} stages",
                t.name, t.stages
            ),
        ))
    }
}

/// The low bytes of a number.
fn narrow<T: Lane>(x: u64) -> T {
    bytemuck::pod_read_unaligned(&x.to_le_bytes()[..size_of::<T>()])
}

impl Machine for World<'_, '_> {
    fn active(&self) -> Mask {
        self.st.warps[self.cur].active
    }

    fn get<T: Lane>(&mut self, o: Operand) -> PerLane<T> {
        match self.val(o) {
            Val::Uni(x) => [narrow(x); WARP],
            Val::Lanes(x) => std::array::from_fn(|l| narrow(x[l])),
            // The length of a copy that a launch decides: all that may be.
            Val::Sym(s) if self.length == Some(s) => [narrow(u64::from(MOST)); WARP],
            _ => [T::default(); WARP],
        }
    }

    fn set<T: Lane>(&mut self, r: RegId, v: &PerLane<T>) {
        if self.env.slots.of(r).is_none() {
            return;
        }
        let wide: PerLane<u64> = std::array::from_fn(|l| {
            let mut bytes = [0; 8];
            bytes[..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&v[l]));
            u64::from_le_bytes(bytes)
        });
        let val = Val::of(&wide, self.active());
        self.put(r, val);
    }

    fn pred(&mut self, o: Operand) -> Mask {
        match self.val(o) {
            Val::Uni(0) => 0,
            Val::Uni(_) => Mask::MAX,
            Val::Lanes(x) => (0..WARP).fold(0, |m, l| m | Mask::from(x[l] != 0) << l),
            _ => 0,
        }
    }

    fn set_pred(&mut self, r: RegId, m: Mask) {
        let bits: PerLane<u64> = std::array::from_fn(|l| u64::from(m >> l & 1));
        let val = Val::of(&bits, self.active());
        self.put(r, val);
    }

    fn special(&mut self, s: Special) -> PerLane<u64> {
        let w = &self.st.warps[self.cur];
        let side = |a: usize| self.env.kernel.cluster[a];
        let all = |x: u32| [u64::from(x); WARP];
        match s {
            Special::Tid => std::array::from_fn(|l| u64::from(w.index) * 32 + l as u64),
            Special::LaneId => std::array::from_fn(|l| l as u64),
            Special::WarpId => all(w.index),
            Special::ClusterRank => all(w.cta),
            Special::ClusterSize => all(self.env.ctas),
            Special::ClusterDim(a) => all(side(a.index())),
            Special::ClusterCtaId(a) => {
                let before: u32 = (0..a.index()).map(side).product();
                all(w.cta / before.max(1) % side(a.index()))
            }
            _ => all(0),
        }
    }

    fn param(&mut self, _: ParamId) -> u64 {
        0
    }

    fn tensor_map(&mut self, p: ParamId) -> Result<TensorMapValue, Fault> {
        let ParamKind::TensorMap(decl) = &self.env.kernel.param(p).kind else {
            return Err(Fault::new(
                FaultKind::TensorMap,
                format!("{p} is no tensor map"),
            ));
        };
        let rank = decl.rank();
        let row = 1u64 << 20;
        Ok(TensorMapValue {
            decl: decl.clone(),
            base: 1 << 40,
            extents: vec![1 << 16; rank],
            strides: (1..rank as u64).map(|i| row * i).collect(),
        })
    }

    fn load(&mut self, lanes: Mask, at: &MemoryAddress, width: usize) -> Result<LaneBytes, Fault> {
        let out = [[0; 16]; WARP];
        let MemoryAddress::Shared(p) = at else {
            return Ok(out);
        };
        self.generic(lanes, p, width, false, false)?;
        if !self.env.words[p.tile.index()] || self.val(p.byte).numbers().is_none() {
            return Ok(out);
        }
        // A word that is followed, where all lanes read the same.
        let mut found: Option<(Val, Type)> = None;
        let places = self.resolve_lanes(p, lanes, width)?;
        for at in lanes_of(lanes).map(|l| places[l]) {
            let word = self.st.words.get(&(at.cta, at.byte)).cloned();
            // The low bits of a wider word are what a conversion leaves.
            let word = match (word, self.reading) {
                (Some((val, from)), Some(to))
                    if from.bytes() > width
                        && to.bytes() == width
                        && from.is_int()
                        && to.is_int() =>
                {
                    Some((self.convert(from, to, val), to))
                }
                (word, _) => word.filter(|w| w.1.bytes() == width),
            };
            let word = match (word, self.reading) {
                (None, Some(ty)) if ty.bytes() == width => self
                    .copied_word(at.cta, at.byte, width as u32, ty)
                    .map(|val| (val, ty)),
                (word, _) => word,
            };
            match (&found, word) {
                (_, None) => return Ok(out),
                (None, word) => found = word,
                (Some(a), Some(b)) if *a == b => {}
                _ => return Ok(out),
            }
        }
        self.loaded = found;
        Ok(out)
    }

    fn store(
        &mut self,
        lanes: Mask,
        at: &MemoryAddress,
        width: usize,
        _: &LaneBytes,
    ) -> Result<(), Fault> {
        let MemoryAddress::Shared(p) = at else {
            return Ok(());
        };
        self.generic(lanes, p, width, true, false)?;
        for (cta, _, runs) in self.lane_runs(lanes, p, width)? {
            for r in &runs {
                self.forget(cta, r.lo, r.hi);
            }
        }
        Ok(())
    }

    fn atomic(
        &mut self,
        at: &MemoryAddress,
        width: usize,
        _: MemoryOrder,
        _: &mut dyn FnMut(usize, u64) -> u64,
    ) -> Result<PerLane<u64>, Fault> {
        if let MemoryAddress::Shared(p) = at {
            self.generic(self.active(), p, width, true, true)?;
            for (cta, _, runs) in self.lane_runs(self.active(), p, width)? {
                runs.iter().for_each(|r| self.forget(cta, r.lo, r.hi));
            }
        }
        Ok([0; WARP])
    }

    fn resolve(
        &mut self,
        place: &SharedAddress,
        lane: usize,
        len: usize,
    ) -> Result<ResolvedAddress, Fault> {
        Ok(self.resolve_lanes(place, 1 << lane, len)?[lane])
    }

    fn resolve_view(&mut self, view: &View, lane: usize) -> Result<ResolvedAddress, Fault> {
        let rank = self.ranks(view.peer)?[lane];
        let cta = self.rank(rank)?;
        let stage = self.stages(view.stage)?[lane];
        let base = self.stage(view.tile, stage)?;
        let layout = self.env.kernel.tile(view.tile).layout;
        Ok(ResolvedAddress {
            cta,
            byte: base + layout.unswizzled_offset(view.row, view.col),
        })
    }

    fn resolve_bar(&mut self, bar: &BarRef, lane: usize) -> Result<ResolvedBarrier, Fault> {
        let at = self.bar_at(bar, lane);
        let at = at.map_err(|s| self.fault(s))? as u32;
        Ok(ResolvedBarrier {
            cta: at / self.env.bars,
            slot: at % self.env.bars,
        })
    }

    fn layout(&self, view: &View) -> TileLayout {
        self.env.kernel.layout(view)
    }

    fn sync(&mut self, s: &SyncOp) -> Exec {
        self.act(s)
    }

    fn submit(&mut self, _: Mask, job: Job) -> Result<(), Fault> {
        let issued = self.issue(&job);
        issued.map_err(|s| self.fault(s))
    }
}

/// The bytes that a copy of unknown length is taken for.
const MOST: u32 = 16;
