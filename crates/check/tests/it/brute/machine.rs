//! Every way a line can go: all interleavings of its roles and of the copies in flight, for every
//! sequence of counts up to a bound.
//!
//! Nothing here is shared with the checker. An mbarrier has pending arrivals, bytes and a bit for
//! its phase, and who waits sees the bit alone. An access lasts from its begin to its end, and a
//! copy from its issue until it lands; two that overlap race. How many tiles there are, and how
//! many steps each has, is decided when a role first asks, so that sequences that begin alike are
//! followed once.

use crate::brute::line::{Act, Line, Part};
use bytemuck::{Pod, Zeroable};
use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// What is looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    /// Tiles, at most.
    pub(crate) tiles: u8,
    /// Steps of a tile, at most.
    pub(crate) steps: u8,
}

/// What can go wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Nobody can go on.
    Hang,
    /// Two accesses overlap, one of them a write.
    Race,
    /// A barrier gets more arrivals than its phase has left.
    Overrun,
    /// All have ended, and a copy is still in flight.
    Flight,
    /// All have ended, and a phase has begun that never completes.
    Leftover,
}

/// Something that goes wrong, and one of the shortest ways there.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) kind: Kind,
    pub(crate) schedule: Vec<String>,
}

/// What was found.
#[derive(Debug)]
pub(crate) struct Found {
    /// One of each kind.
    pub(crate) faults: Vec<Fault>,
    pub(crate) states: usize,
}

const ROLES: usize = 4;
const RINGS: usize = 3;
const CTAS: usize = 2;
const STAGES: usize = 3;
const TILES: usize = 5;
const COUNTS: usize = 2;
/// What has not been decided.
const OPEN: u8 = u8::MAX;

/// One role of one CTA.
#[derive(Clone, Copy, Default, Pod, Zeroable)]
#[repr(C)]
struct Runner {
    pc: u8,
    tile: u8,
    round: u8,
    /// Has it begun what it is at?
    begun: u8,
    places: [Place; RINGS],
}

/// A place in a ring.
#[derive(Clone, Copy, Default, Pod, Zeroable)]
#[repr(C)]
struct Place {
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
    /// Halves of a slot that are expected and have not come.
    bytes: i8,
    phase: u8,
}

/// A slot, with its barriers.
#[derive(Clone, Copy, Default, Pod, Zeroable)]
#[repr(C)]
struct Slot {
    full: Bar,
    empty: Bar,
    /// Copies in flight to it, by the CTA that issued them.
    flying: [u8; CTAS],
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct State {
    /// By CTA and role.
    runners: [Runner; ROLES],
    /// By CTA, ring and stage.
    slots: [[Slot; STAGES]; RINGS],
    /// Is there a tile?
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

/// A role's program.
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
    Goes {
        cta: u8,
        role: u8,
        act: Act,
        stage: u8,
        ends: bool,
    },
    Lands {
        cta: u8,
        ring: u8,
        stage: u8,
    },
}

/// What a move makes of a state. A fault is the end of its schedule.
struct Went {
    state: State,
    by: Move,
    fault: Option<Kind>,
}

/// Looks at every state that a line can be in, or until a fault is found that is sought.
pub(crate) fn explore(line: &Line, bound: Bound, sought: impl Fn(Kind) -> bool) -> Found {
    let machine = Machine {
        line,
        bound,
        programs: line.roles.iter().map(program).collect(),
    };
    let mut search = Search::default();
    search.enter(machine.start(), (0, Move::Start));
    let mut next = Vec::new();
    while let Some((state, at)) = search.open.pop_front() {
        if search.faults.iter().any(|f| sought(f.kind)) {
            break;
        }
        machine.moves(&state, &mut next);
        if let Some(kind) = machine.judge_end(&state, next.is_empty()) {
            search.note(line, kind, at, None);
        }
        for went in next.drain(..) {
            match went.fault {
                None => search.enter(went.state, (at, went.by)),
                Some(kind) => search.note(line, kind, at, Some(went.by)),
            }
        }
    }
    Found {
        faults: search.faults,
        states: search.came.len(),
    }
}

/// Flat code for a role.
fn program(role: &crate::brute::line::Role) -> Vec<Code> {
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
    line: &'l Line,
    bound: Bound,
    programs: Vec<Vec<Code>>,
}

impl Machine<'_> {
    fn start(&self) -> State {
        let mut state = State {
            runners: Default::default(),
            slots: Default::default(),
            tiles: [OPEN; TILES],
            counts: [[OPEN; COUNTS]; TILES],
        };
        state.tiles[usize::from(self.bound.tiles).min(TILES - 1)] = 0;
        for cta in 0..self.line.ctas() {
            for (role, r) in self.line.roles.iter().enumerate() {
                for (place, &parity) in state.runners[self.who(cta, role)]
                    .places
                    .iter_mut()
                    .zip(&r.parity)
                {
                    place.parity = parity;
                }
            }
            for (ring, r) in self.line.rings.iter().enumerate() {
                for slot in &mut state.slots[self.which(cta, ring)][..r.stages.into()] {
                    slot.full.pending = r.full;
                    slot.empty.pending = r.empty;
                }
            }
        }
        for (cta, role) in self.all() {
            self.settle(&mut state, cta, role);
        }
        state
    }

    /// The number of a role of a CTA.
    fn who(&self, cta: usize, role: usize) -> usize {
        cta * self.line.roles.len() + role
    }

    /// The number of a ring of a CTA.
    fn which(&self, cta: usize, ring: usize) -> usize {
        cta * self.line.rings.len() + ring
    }

    /// All roles of all CTAs.
    fn all(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let roles = self.line.roles.len();
        (0..self.line.ctas()).flat_map(move |cta| (0..roles).map(move |role| (cta, role)))
    }

    /// All that can happen next.
    fn moves(&self, state: &State, next: &mut Vec<Went>) {
        for (cta, role) in self.all() {
            let r = state.runners[self.who(cta, role)];
            match self.programs[role][usize::from(r.pc)] {
                Code::End => {}
                Code::Act(act) if counted(Code::Act(act)).is_none() => {
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
                    let Some(count) = counted(code) else { continue };
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
        for cta in 0..self.line.ctas() {
            for (ring, r) in self.line.rings.iter().enumerate() {
                for stage in 0..r.stages {
                    let slot = state.slots[self.which(cta, ring)][usize::from(stage)];
                    for from in (0..CTAS).filter(|&c| slot.flying[c] > 0) {
                        next.push(self.land(state, cta, ring, stage, from));
                    }
                }
            }
        }
    }

    /// A decision, and all roles that waited for it gone on.
    fn decided(&self, state: &State, by: Move, decide: impl FnOnce(&mut State)) -> Went {
        let mut state = *state;
        decide(&mut state);
        for (cta, role) in self.all() {
            self.settle(&mut state, cta, role);
        }
        self.retire(&mut state);
        Went {
            state,
            by,
            fault: None,
        }
    }

    /// A copy lands: its bytes are there.
    fn land(&self, state: &State, cta: usize, ring: usize, stage: u8, from: usize) -> Went {
        let mut state = *state;
        let r = &self.line.rings[ring];
        let slot = &mut state.slots[self.which(cta, ring)][usize::from(stage)];
        slot.flying[from] -= 1;
        slot.full.bytes -= if self.line.pair { 1 } else { 2 };
        slot.full.turn(r.full);
        Went {
            state,
            by: Move::Lands {
                cta: cta as u8,
                ring: ring as u8,
                stage,
            },
            fault: None,
        }
    }

    /// What a role's next act makes of a state; nothing while it waits.
    fn act(&self, state: &State, cta: usize, role: usize, act: Act) -> Option<Went> {
        let ring = act.ring();
        let made = &self.line.rings[ring];
        let was = state.runners[self.who(cta, role)];
        let (place, begun) = (was.places[ring], was.begun == 1);
        let at = match act {
            Act::Release { .. } | Act::Drain(_) => place.tail,
            _ => place.stage,
        };
        let mut state = *state;
        let mut fault = None;
        let mut over = true;
        let runner = &mut state.runners[self.who(cta, role)];
        match act {
            Act::AwaitEmpty(_) | Act::AwaitFull(_) => {
                let slot = &state.slots[self.which(cta, ring)][usize::from(at)];
                let bar = match act {
                    Act::AwaitFull(_) => slot.full,
                    _ => slot.empty,
                };
                if bar.phase == place.parity {
                    return None;
                }
            }
            Act::Read(_) | Act::Write(_) => {
                over = begun;
                runner.begun = u8::from(!begun);
                if !over && self.conflicts(&state, (cta, role), ring, at, act) {
                    fault = Some(Kind::Race);
                }
            }
            Act::Copy(_) => {
                for to in 0..self.line.ctas() {
                    if self.is_touched(&state, (to, usize::MAX), ring, at)
                        || state.slots[self.which(to, ring)][usize::from(at)].flying[cta] > 0
                    {
                        fault = Some(Kind::Race);
                    }
                    let flying =
                        &mut state.slots[self.which(to, ring)][usize::from(at)].flying[cta];
                    *flying = flying.saturating_add(1);
                }
            }
            Act::Commit(_) => {
                let bar = &mut state.slots[self.which(cta, ring)][usize::from(at)].full;
                bar.bytes += made.expects as i8;
                fault = bar.arrive(made.full);
            }
            Act::Release { .. } | Act::Drain(_) => {
                // Its own CTA first, then the other.
                over = begun || !self.line.pair;
                runner.begun = u8::from(!over);
                let to = if begun { 1 - cta } else { cta };
                if over {
                    let place = &mut runner.places[ring];
                    place.tail = (at + 1) % made.stages;
                    place.held -= u8::from(matches!(act, Act::Drain(_)));
                }
                let bar = &mut state.slots[self.which(to, ring)][usize::from(at)].empty;
                fault = bar.arrive(made.empty);
            }
            Act::Drop(_) | Act::Advance(_) | Act::Pass { .. } | Act::Restart(_) => {}
        }
        if over {
            let runner = &mut state.runners[self.who(cta, role)];
            runner.pc += u8::from(!matches!(act, Act::Drain(_)));
            self.settle(&mut state, cta, role);
            self.retire(&mut state);
        }
        let by = Move::Goes {
            cta: cta as u8,
            role: role as u8,
            act,
            stage: at,
            ends: begun,
        };
        Some(Went { state, by, fault })
    }

    /// Does an access that begins overlap with one that it conflicts with?
    fn conflicts(
        &self,
        state: &State,
        me: (usize, usize),
        ring: usize,
        stage: u8,
        act: Act,
    ) -> bool {
        let flying = state.slots[self.which(me.0, ring)][usize::from(stage)].flying != [0; CTAS];
        let others = (0..self.line.roles.len()).filter(|&r| r != me.1);
        flying
            || others
                .filter_map(|r| self.touches(state, (me.0, r), ring, stage))
                .any(|other| matches!(act, Act::Write(_)) || matches!(other, Act::Write(_)))
    }

    /// Is a role in the middle of an access to a slot?
    fn is_touched(&self, state: &State, me: (usize, usize), ring: usize, stage: u8) -> bool {
        (0..self.line.roles.len())
            .filter(|&r| r != me.1)
            .any(|r| self.touches(state, (me.0, r), ring, stage).is_some())
    }

    /// The access to a slot that a role is in the middle of.
    fn touches(&self, state: &State, who: (usize, usize), ring: usize, stage: u8) -> Option<Act> {
        let r = &state.runners[self.who(who.0, who.1)];
        match self.programs[who.1][usize::from(r.pc)] {
            Code::Act(a @ (Act::Read(of) | Act::Write(of))) => {
                (r.begun == 1 && of == ring && r.places[ring].stage == stage).then_some(a)
            }
            _ => None,
        }
    }

    /// Takes a role past all that is its own affair, up to what others see, or what is undecided.
    fn settle(&self, state: &mut State, cta: usize, role: usize) {
        let (tiles, counts) = (state.tiles, state.counts);
        let r = &mut state.runners[self.who(cta, role)];
        if r.begun == 1 {
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
                    let (place, made) = (&mut r.places[ring], &self.line.rings[ring]);
                    match act {
                        Act::Release { late, .. } if place.held < late => place.held += 1,
                        Act::Drain(_) if place.held == 0 => {}
                        Act::Drop(_) => (place.held, place.tail) = (0, place.stage),
                        Act::Advance(_) => {
                            place.parity ^= u8::from(place.stage + 1 == made.stages);
                            place.stage = (place.stage + 1) % made.stages;
                        }
                        Act::Pass { count, .. } => {
                            let n = counts[tile][count];
                            if n == OPEN {
                                return;
                            }
                            let to = place.stage + n;
                            place.parity ^= (to / made.stages) & 1;
                            place.stage = to % made.stages;
                            place.tail = place.stage;
                        }
                        Act::Restart(_) => {
                            let parity = self.line.roles[role].parity[ring];
                            *place = Place {
                                parity,
                                ..Place::default()
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

    /// Forgets the counts of tiles that all roles are done with.
    fn retire(&self, state: &mut State) {
        let first = |(cta, role): (usize, usize)| {
            let r = &state.runners[self.who(cta, role)];
            match self.programs[role][usize::from(r.pc)] {
                Code::End => TILES,
                _ => usize::from(r.tile),
            }
        };
        let first = self.all().map(first).min().unwrap_or(0);
        state.counts[..first].fill([0; COUNTS]);
    }

    /// What is wrong with a state in which all have ended, or that nothing follows.
    fn judge_end(&self, state: &State, stuck: bool) -> Option<Kind> {
        let ended = |(cta, role): (usize, usize)| {
            let pc = state.runners[self.who(cta, role)].pc;
            self.programs[role][usize::from(pc)] == Code::End
        };
        if !self.all().all(ended) {
            return stuck.then_some(Kind::Hang);
        }
        if !stuck {
            return Some(Kind::Flight);
        }
        let partly = |bar: Bar, count: u8| bar.pending != count || bar.bytes != 0;
        let rings = (0..self.line.ctas()).flat_map(|_| &self.line.rings);
        let mut slots = rings
            .zip(&state.slots)
            .flat_map(|(r, slots)| slots[..r.stages.into()].iter().map(move |s| (r, s)));
        slots
            .any(|(r, s)| partly(s.full, r.full) || partly(s.empty, r.empty))
            .then_some(Kind::Leftover)
    }
}

/// The count that a role asks for.
fn counted(code: Code) -> Option<usize> {
    match code {
        Code::Skip { .. } => Some(0),
        Code::Steps { count, .. } | Code::Act(Act::Pass { count, .. }) => Some(count),
        _ => None,
    }
}

impl Bar {
    /// One arrival.
    fn arrive(&mut self, count: u8) -> Option<Kind> {
        if self.pending == 0 {
            return Some(Kind::Overrun);
        }
        self.pending -= 1;
        self.turn(count);
        None
    }

    /// The phase ends if nothing is missing.
    fn turn(&mut self, count: u8) {
        if self.pending == 0 && self.bytes == 0 {
            self.pending = count;
            self.phase ^= 1;
        }
    }
}

/// States, and how each was come to first.
#[derive(Default)]
struct Search {
    known: HashSet<State, BuildHasherDefault<Mix>>,
    came: Vec<(u32, Move)>,
    open: VecDeque<(State, u32)>,
    faults: Vec<Fault>,
}

impl Search {
    /// Notes a state if it is new.
    fn enter(&mut self, state: State, from: (u32, Move)) {
        if self.known.insert(state) {
            self.open.push_back((state, self.came.len() as u32));
            self.came.push(from);
        }
    }

    /// Notes what goes wrong at a state, or on the way from it.
    fn note(&mut self, line: &Line, kind: Kind, at: u32, by: Option<Move>) {
        if self.faults.iter().any(|f| f.kind == kind) {
            return;
        }
        let mut schedule: Vec<_> = by.iter().map(|m| m.told(line)).collect();
        let mut at = at;
        while at != 0 {
            let (from, by) = self.came[at as usize];
            schedule.push(by.told(line));
            at = from;
        }
        schedule.reverse();
        self.faults.push(Fault { kind, schedule });
    }
}

impl Move {
    fn told(self, line: &Line) -> String {
        match self {
            Move::Start => String::new(),
            Move::Tiles { tile, more: true } => format!("there is a tile {tile}"),
            Move::Tiles { tile, .. } => format!("there is no tile {tile}"),
            Move::Count { tile, count, steps } => {
                format!("count {count} of tile {tile} is {steps}")
            }
            Move::Goes {
                cta,
                role,
                act,
                stage,
                ends,
            } => {
                let name = line.roles[usize::from(role)].name;
                let ends = if ends { ", second half" } else { "" };
                format!("{name}.{cta}: {act:?} at stage {stage}{ends}")
            }
            Move::Lands { cta, ring, stage } => {
                format!("a copy lands in ring {ring}, stage {stage} of CTA {cta}")
            }
        }
    }
}

/// Mixes bytes into a hash: fast, and good enough for states.
#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
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
