//! All runs of a pipeline: every interleaving of its roles and of the copies in flight, for every
//! sequence of counts up to a bound.
//!
//! This machine shares no code with the checker. An mbarrier has pending arrivals, pending bytes
//! and a phase bit, and a wait reads only the bit. An access lasts from its start to its end, a
//! copy from its issue to its completion; overlapping accesses race. The machine decides the number
//! of tiles and of steps when a role first needs it, so that it runs a common prefix of two
//! sequences once.

use crate::brute::pipeline::{Act, Part, Pipeline};
use bytemuck::{Pod, Zeroable};
use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// The bounds of the search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    /// The most tiles.
    pub(crate) tiles: u8,
    /// The most steps of a tile.
    pub(crate) steps: u8,
}

/// The kinds of faults.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// No role can continue.
    Hang,
    /// Two accesses overlap, one of them a write.
    Race,
    /// An mbarrier receives more arrivals than its phase expects.
    Overrun,
    /// All roles have ended, and a copy is still in flight.
    Flight,
    /// All roles have ended, and a phase is incomplete.
    Leftover,
}

/// A fault, and one of the shortest schedules that lead to it.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) kind: Kind,
    pub(crate) schedule: Vec<String>,
}

/// The result of the search.
#[derive(Debug)]
pub(crate) struct Found {
    /// One fault of each kind.
    pub(crate) faults: Vec<Fault>,
    pub(crate) states: usize,
}

const ROLES: usize = 4;
const RINGS: usize = 3;
const CTAS: usize = 2;
const STAGES: usize = 3;
const TILES: usize = 5;
const COUNTS: usize = 2;
/// A count that is not decided yet.
const OPEN: u8 = u8::MAX;

/// The state of one role of one CTA.
#[derive(Clone, Copy, Default, Pod, Zeroable)]
#[repr(C)]
struct RoleState {
    pc: u8,
    tile: u8,
    round: u8,
    /// Has the current action started?
    has_started: u8,
    cursors: [RingCursor; RINGS],
}

/// A position in a ring.
#[derive(Clone, Copy, Default, Pod, Zeroable)]
#[repr(C)]
struct RingCursor {
    stage: u8,
    parity: u8,
    tail: u8,
    held: u8,
}

/// An mbarrier.
#[derive(Clone, Copy, Default, Pod, Zeroable)]
#[repr(C)]
struct Bar {
    pending: u8,
    /// The halves of a slot that are expected and not yet copied.
    bytes: i8,
    phase: u8,
}

/// A slot with its mbarriers.
#[derive(Clone, Copy, Default, Pod, Zeroable)]
#[repr(C)]
struct Slot {
    full: Bar,
    empty: Bar,
    /// Copies in flight to the slot, by the issuing CTA.
    in_flight: [u8; CTAS],
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct State {
    /// By CTA and role.
    roles: [RoleState; ROLES],
    /// By CTA, ring and stage.
    slots: [[Slot; STAGES]; RINGS],
    /// By tile: does it exist?
    tiles: [u8; TILES],
    counts: [[u8; COUNTS]; TILES],
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        bytemuck::bytes_of(self) == bytemuck::bytes_of(other)
    }
}

impl Eq for State {}

impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        hasher.write(bytemuck::bytes_of(self));
    }
}

/// A step of the program of a role.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Code {
    Tile { end: u8 },
    Skip { end: u8 },
    Later { end: u8 },
    Steps { count: usize, more: u8, end: u8 },
    Again { to: u8 },
    Next { to: u8 },
    Act(Act),
    End,
}

/// One step of a schedule.
#[derive(Clone, Copy)]
enum Move {
    Start,
    Tiles {
        tile: u8,
        more: bool,
    },
    Count {
        tile: u8,
        count: u8,
        steps: u8,
    },
    Acts {
        cta: u8,
        role: u8,
        act: Act,
        stage: u8,
        ends: bool,
    },
    Completes {
        cta: u8,
        ring: u8,
        stage: u8,
    },
}

/// The state after a move. A fault ends its schedule.
struct Transition {
    state: State,
    by: Move,
    fault: Option<Kind>,
}

/// Visits every state of a pipeline, or stops at a fault for which `sought` returns true.
pub(crate) fn explore(pipeline: &Pipeline, bound: Bound, sought: impl Fn(Kind) -> bool) -> Found {
    let machine = Machine {
        pipeline,
        bound,
        programs: pipeline.roles.iter().map(program).collect(),
    };
    let mut search = Search::default();
    search.add_state(machine.start(), (0, Move::Start));
    let mut next = Vec::new();
    while let Some((state, at)) = search.open.pop_front() {
        if search.faults.iter().any(|f| sought(f.kind)) {
            break;
        }
        machine.moves(&state, &mut next);
        if let Some(kind) = machine.end_fault(&state, next.is_empty()) {
            search.add_fault(pipeline, kind, at, None);
        }
        for transition in next.drain(..) {
            match transition.fault {
                None => search.add_state(transition.state, (at, transition.by)),
                Some(kind) => search.add_fault(pipeline, kind, at, Some(transition.by)),
            }
        }
    }
    Found {
        faults: search.faults,
        states: search.reached_by.len(),
    }
}

/// Returns the program of a role as flat code.
fn program(role: &crate::brute::pipeline::Role) -> Vec<Code> {
    let mut code = vec![Code::Tile { end: 0 }];
    if role.skips {
        code.push(Code::Skip { end: 0 });
    }
    for part in &role.tile {
        match part {
            Part::Once(acts) => code.extend(acts.iter().map(|&a| Code::Act(a))),
            Part::Later(acts) => {
                let end = code.len() + acts.len() + 1;
                code.push(Code::Later { end: end as u8 });
                code.extend(acts.iter().map(|&a| Code::Act(a)));
            }
            Part::Steps {
                count,
                more,
                later,
                acts,
            } => {
                if *later {
                    let end = code.len() + acts.len() + 3;
                    code.push(Code::Later { end: end as u8 });
                }
                let to = code.len() as u8;
                let end = to + acts.len() as u8 + 2;
                let (count, more) = (*count, *more);
                code.push(Code::Steps { count, more, end });
                code.extend(acts.iter().map(|&a| Code::Act(a)));
                code.push(Code::Again { to });
            }
        }
    }
    let end = code.len() as u8;
    code.push(Code::Next { to: 0 });
    code[0] = Code::Tile { end: end + 1 };
    if role.skips {
        code[1] = Code::Skip { end };
    }
    code.extend(role.last.iter().map(|&a| Code::Act(a)));
    code.push(Code::End);
    code
}

struct Machine<'l> {
    pipeline: &'l Pipeline,
    bound: Bound,
    programs: Vec<Vec<Code>>,
}

impl Machine<'_> {
    fn start(&self) -> State {
        let mut state = State {
            roles: Default::default(),
            slots: Default::default(),
            tiles: [OPEN; TILES],
            counts: [[OPEN; COUNTS]; TILES],
        };
        state.tiles[usize::from(self.bound.tiles).min(TILES - 1)] = 0;
        for cta in 0..self.pipeline.ctas() {
            for (role, r) in self.pipeline.roles.iter().enumerate() {
                for (cursor, &parity) in state.roles[self.role_index(cta, role)]
                    .cursors
                    .iter_mut()
                    .zip(&r.parity)
                {
                    cursor.parity = parity;
                }
            }
            for (ring, r) in self.pipeline.rings.iter().enumerate() {
                for slot in &mut state.slots[self.ring_index(cta, ring)][..r.stages.into()] {
                    slot.full.pending = r.full;
                    slot.empty.pending = r.empty;
                }
            }
        }
        for (cta, role) in self.all_roles() {
            self.advance_role(&mut state, cta, role);
        }
        state
    }

    /// Returns the index of a role of a CTA.
    fn role_index(&self, cta: usize, role: usize) -> usize {
        cta * self.pipeline.roles.len() + role
    }

    /// Returns the index of a ring of a CTA.
    fn ring_index(&self, cta: usize, ring: usize) -> usize {
        cta * self.pipeline.rings.len() + ring
    }

    /// Returns all roles of all CTAs.
    fn all_roles(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let roles = self.pipeline.roles.len();
        (0..self.pipeline.ctas()).flat_map(move |cta| (0..roles).map(move |role| (cta, role)))
    }

    /// Adds all moves that are possible next.
    fn moves(&self, state: &State, next: &mut Vec<Transition>) {
        for (cta, role) in self.all_roles() {
            let r = state.roles[self.role_index(cta, role)];
            match self.programs[role][usize::from(r.pc)] {
                Code::End => {}
                Code::Act(act) if needed_count(Code::Act(act)).is_none() => {
                    next.extend(self.act(state, cta, role, act))
                }
                Code::Tile { .. } => {
                    for more in [false, true] {
                        let tile = r.tile;
                        let decide = |s: &mut State| s.tiles[usize::from(tile)] = more.into();
                        next.push(self.decided(state, Move::Tiles { tile, more }, decide));
                    }
                }
                code => {
                    let Some(count) = needed_count(code) else {
                        continue;
                    };
                    for steps in 0..=self.bound.steps {
                        let (tile, of) = (r.tile, count as u8);
                        let by = Move::Count {
                            tile,
                            count: of,
                            steps,
                        };
                        let decide = |s: &mut State| s.counts[usize::from(tile)][count] = steps;
                        next.push(self.decided(state, by, decide));
                    }
                }
            }
        }
        for cta in 0..self.pipeline.ctas() {
            for (ring, r) in self.pipeline.rings.iter().enumerate() {
                for stage in 0..r.stages {
                    let slot = state.slots[self.ring_index(cta, ring)][usize::from(stage)];
                    for from in (0..CTAS).filter(|&c| slot.in_flight[c] > 0) {
                        next.push(self.land(state, cta, ring, stage, from));
                    }
                }
            }
        }
    }

    /// Makes a decision and lets the roles that needed it continue.
    fn decided(&self, state: &State, by: Move, decide: impl FnOnce(&mut State)) -> Transition {
        let mut state = *state;
        decide(&mut state);
        for (cta, role) in self.all_roles() {
            self.advance_role(&mut state, cta, role);
        }
        self.clear_passed_counts(&mut state);
        Transition {
            state,
            by,
            fault: None,
        }
    }

    /// Completes a copy.
    fn land(&self, state: &State, cta: usize, ring: usize, stage: u8, from: usize) -> Transition {
        let mut state = *state;
        let r = &self.pipeline.rings[ring];
        let slot = &mut state.slots[self.ring_index(cta, ring)][usize::from(stage)];
        slot.in_flight[from] -= 1;
        slot.full.bytes -= if self.pipeline.pair { 1 } else { 2 };
        slot.full.complete_phase(r.full);
        Transition {
            state,
            by: Move::Completes {
                cta: cta as u8,
                ring: ring as u8,
                stage,
            },
            fault: None,
        }
    }

    /// Runs the next action of a role; returns `None` while the role waits.
    fn act(&self, state: &State, cta: usize, role: usize, act: Act) -> Option<Transition> {
        let ring = act.ring();
        let shape = &self.pipeline.rings[ring];
        let was = state.roles[self.role_index(cta, role)];
        let (cursor, has_started) = (was.cursors[ring], was.has_started == 1);
        let at = match act {
            Act::Release { .. } | Act::Drain(_) => cursor.tail,
            _ => cursor.stage,
        };
        let mut state = *state;
        let mut fault = None;
        let mut is_done = true;
        let role_state = &mut state.roles[self.role_index(cta, role)];
        match act {
            Act::AwaitEmpty(_) | Act::AwaitFull(_) => {
                let slot = &state.slots[self.ring_index(cta, ring)][usize::from(at)];
                let bar = match act {
                    Act::AwaitFull(_) => slot.full,
                    _ => slot.empty,
                };
                if bar.phase == cursor.parity {
                    return None;
                }
            }
            Act::Read(_) | Act::Write(_) => {
                is_done = has_started;
                role_state.has_started = u8::from(!has_started);
                if !is_done && self.conflicts(&state, (cta, role), ring, at, act) {
                    fault = Some(Kind::Race);
                }
            }
            Act::Copy(_) => {
                for to in 0..self.pipeline.ctas() {
                    if self.is_touched(&state, (to, usize::MAX), ring, at)
                        || state.slots[self.ring_index(to, ring)][usize::from(at)].in_flight[cta]
                            > 0
                    {
                        fault = Some(Kind::Race);
                    }
                    let in_flight =
                        &mut state.slots[self.ring_index(to, ring)][usize::from(at)].in_flight[cta];
                    *in_flight = in_flight.saturating_add(1);
                }
            }
            Act::Commit(_) => {
                let bar = &mut state.slots[self.ring_index(cta, ring)][usize::from(at)].full;
                bar.bytes += shape.expects as i8;
                fault = bar.arrive(shape.full);
            }
            Act::Release { .. } | Act::Drain(_) => {
                // The first arrival is in the own CTA, the second in the peer.
                is_done = has_started || !self.pipeline.pair;
                role_state.has_started = u8::from(!is_done);
                let to = if has_started { 1 - cta } else { cta };
                if is_done {
                    let cursor = &mut role_state.cursors[ring];
                    cursor.tail = (at + 1) % shape.stages;
                    cursor.held -= u8::from(matches!(act, Act::Drain(_)));
                }
                let bar = &mut state.slots[self.ring_index(to, ring)][usize::from(at)].empty;
                fault = bar.arrive(shape.empty);
            }
            Act::Drop(_) | Act::Advance(_) | Act::Pass { .. } | Act::Restart(_) => {}
        }
        if is_done {
            let role_state = &mut state.roles[self.role_index(cta, role)];
            role_state.pc += u8::from(!matches!(act, Act::Drain(_)));
            self.advance_role(&mut state, cta, role);
            self.clear_passed_counts(&mut state);
        }
        let by = Move::Acts {
            cta: cta as u8,
            role: role as u8,
            act,
            stage: at,
            ends: has_started,
        };
        Some(Transition { state, by, fault })
    }

    /// Does an access overlap with a conflicting access at its start?
    fn conflicts(
        &self,
        state: &State,
        me: (usize, usize),
        ring: usize,
        stage: u8,
        act: Act,
    ) -> bool {
        let in_flight =
            state.slots[self.ring_index(me.0, ring)][usize::from(stage)].in_flight != [0; CTAS];
        let others = (0..self.pipeline.roles.len()).filter(|&r| r != me.1);
        in_flight
            || others
                .filter_map(|r| self.access_of(state, (me.0, r), ring, stage))
                .any(|other| matches!(act, Act::Write(_)) || matches!(other, Act::Write(_)))
    }

    /// Is another role in the middle of an access to a slot?
    fn is_touched(&self, state: &State, me: (usize, usize), ring: usize, stage: u8) -> bool {
        (0..self.pipeline.roles.len())
            .filter(|&r| r != me.1)
            .any(|r| self.access_of(state, (me.0, r), ring, stage).is_some())
    }

    /// Returns the access to a slot that a role is in the middle of.
    fn access_of(&self, state: &State, who: (usize, usize), ring: usize, stage: u8) -> Option<Act> {
        let r = &state.roles[self.role_index(who.0, who.1)];
        match self.programs[who.1][usize::from(r.pc)] {
            Code::Act(a @ (Act::Read(of) | Act::Write(of))) => {
                (r.has_started == 1 && of == ring && r.cursors[ring].stage == stage).then_some(a)
            }
            _ => None,
        }
    }

    /// Advances a role to its next action that other roles can observe, or to an open decision.
    fn advance_role(&self, state: &mut State, cta: usize, role: usize) {
        let (tiles, counts) = (state.tiles, state.counts);
        let r = &mut state.roles[self.role_index(cta, role)];
        if r.has_started == 1 {
            return;
        }
        loop {
            let tile = usize::from(r.tile);
            r.pc = match self.programs[role][usize::from(r.pc)] {
                Code::Tile { end } => match tiles[tile] {
                    OPEN => return,
                    0 => end,
                    _ => r.pc + 1,
                },
                Code::Skip { end } => match counts[tile][0] {
                    OPEN => return,
                    0 => end,
                    _ => r.pc + 1,
                },
                Code::Later { end } if tile == 0 => end,
                Code::Later { .. } => r.pc + 1,
                Code::Steps { count, more, end } => match counts[tile][count] {
                    OPEN => return,
                    n if r.round < n + more => r.pc + 1,
                    _ => {
                        r.round = 0;
                        end
                    }
                },
                Code::Again { to } => {
                    r.round += 1;
                    to
                }
                Code::Next { to } => {
                    r.tile += 1;
                    to
                }
                Code::Act(act) => {
                    let ring = act.ring();
                    let (cursor, shape) = (&mut r.cursors[ring], &self.pipeline.rings[ring]);
                    match act {
                        Act::Release { late, .. } if cursor.held < late => cursor.held += 1,
                        Act::Drain(_) if cursor.held == 0 => {}
                        Act::Drop(_) => (cursor.held, cursor.tail) = (0, cursor.stage),
                        Act::Advance(_) => {
                            cursor.parity ^= u8::from(cursor.stage + 1 == shape.stages);
                            cursor.stage = (cursor.stage + 1) % shape.stages;
                        }
                        Act::Pass { count, .. } => {
                            let n = counts[tile][count];
                            if n == OPEN {
                                return;
                            }
                            let to = cursor.stage + n;
                            cursor.parity ^= (to / shape.stages) & 1;
                            cursor.stage = to % shape.stages;
                            cursor.tail = cursor.stage;
                        }
                        Act::Restart(_) => {
                            let parity = self.pipeline.roles[role].parity[ring];
                            *cursor = RingCursor {
                                parity,
                                ..RingCursor::default()
                            };
                        }
                        _ => return,
                    }
                    r.pc + 1
                }
                Code::End => return,
            };
        }
    }

    /// Clears the counts of tiles that all roles have passed.
    fn clear_passed_counts(&self, state: &mut State) {
        let first = |(cta, role): (usize, usize)| {
            let r = &state.roles[self.role_index(cta, role)];
            match self.programs[role][usize::from(r.pc)] {
                Code::End => TILES,
                _ => usize::from(r.tile),
            }
        };
        let first = self.all_roles().map(first).min().unwrap_or(0);
        state.counts[..first].fill([0; COUNTS]);
    }

    /// Returns the fault of a state in which all roles have ended, or that has no next move.
    fn end_fault(&self, state: &State, stuck: bool) -> Option<Kind> {
        let ended = |(cta, role): (usize, usize)| {
            let pc = state.roles[self.role_index(cta, role)].pc;
            self.programs[role][usize::from(pc)] == Code::End
        };
        if !self.all_roles().all(ended) {
            return stuck.then_some(Kind::Hang);
        }
        if !stuck {
            return Some(Kind::Flight);
        }
        let partly = |bar: Bar, count: u8| bar.pending != count || bar.bytes != 0;
        let rings = (0..self.pipeline.ctas()).flat_map(|_| &self.pipeline.rings);
        let mut slots = rings
            .zip(&state.slots)
            .flat_map(|(r, slots)| slots[..r.stages.into()].iter().map(move |s| (r, s)));
        slots
            .any(|(r, s)| partly(s.full, r.full) || partly(s.empty, r.empty))
            .then_some(Kind::Leftover)
    }
}

/// Returns the count that a step depends on.
fn needed_count(code: Code) -> Option<usize> {
    match code {
        Code::Skip { .. } => Some(0),
        Code::Steps { count, .. } | Code::Act(Act::Pass { count, .. }) => Some(count),
        _ => None,
    }
}

impl Bar {
    /// Counts one arrival.
    fn arrive(&mut self, count: u8) -> Option<Kind> {
        if self.pending == 0 {
            return Some(Kind::Overrun);
        }
        self.pending -= 1;
        self.complete_phase(count);
        None
    }

    /// Completes the phase if no arrivals and no bytes are pending.
    fn complete_phase(&mut self, count: u8) {
        if self.pending == 0 && self.bytes == 0 {
            self.pending = count;
            self.phase ^= 1;
        }
    }
}

/// The visited states, each with the move that led to it first.
#[derive(Default)]
struct Search {
    known: HashSet<State, BuildHasherDefault<StateHasher>>,
    reached_by: Vec<(u32, Move)>,
    open: VecDeque<(State, u32)>,
    faults: Vec<Fault>,
}

impl Search {
    /// Adds a state if it is new.
    fn add_state(&mut self, state: State, from: (u32, Move)) {
        if self.known.insert(state) {
            self.open.push_back((state, self.reached_by.len() as u32));
            self.reached_by.push(from);
        }
    }

    /// Adds a fault at a state, or at a move from it.
    fn add_fault(&mut self, pipeline: &Pipeline, kind: Kind, at: u32, by: Option<Move>) {
        if self.faults.iter().any(|f| f.kind == kind) {
            return;
        }
        let mut schedule: Vec<_> = by.iter().map(|m| m.text(pipeline)).collect();
        let mut at = at;
        while at != 0 {
            let (from, by) = self.reached_by[at as usize];
            schedule.push(by.text(pipeline));
            at = from;
        }
        schedule.reverse();
        self.faults.push(Fault { kind, schedule });
    }
}

impl Move {
    fn text(self, pipeline: &Pipeline) -> String {
        match self {
            Move::Start => String::new(),
            Move::Tiles { tile, more: true } => format!("there is a tile {tile}"),
            Move::Tiles { tile, .. } => format!("there is no tile {tile}"),
            Move::Count { tile, count, steps } => {
                format!("count {count} of tile {tile} is {steps}")
            }
            Move::Acts {
                cta,
                role,
                act,
                stage,
                ends,
            } => {
                let name = pipeline.roles[usize::from(role)].name;
                let ends = if ends { ", second half" } else { "" };
                format!("{name}.{cta}: {act:?} at stage {stage}{ends}")
            }
            Move::Completes { cta, ring, stage } => {
                format!("a copy completes in ring {ring}, stage {stage} of CTA {cta}")
            }
        }
    }
}

/// A fast hash of bytes.
#[derive(Default)]
struct StateHasher(u64);

impl Hasher for StateHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let word = chunk.iter().fold(0, |w, &b| w << 8 | u64::from(b));
            self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
        }
        self.0 ^= self.0 >> 32;
    }
}
