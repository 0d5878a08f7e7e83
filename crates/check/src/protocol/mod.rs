//! The protocol: no deadlock and no race, for every schedule and every trip count.
//!
//! The search runs the roles of one cluster side by side. For each warp it tracks the events that
//! are ordered before it (happens-before): accesses to shared memory and phases of barriers.
//! `docs/checker.md` shows that one run represents all schedules, and finitely many runs represent
//! all trip counts.
//!
//! | where | what |
//! |---|---|
//! | `slice`, `fold`, `code` | the part of the program that matters, as flat steps |
//! | `value`, `slots`, `lanes` | the values of registers, their storage, and sets of lanes |
//! | `interval` | intervals of values that differ between lanes |
//! | `found` | the launch that leads to a diagnostic |
//! | `launched` | launch parameters as terms |
//! | `groups` | loops of different roles that correspond |
//! | `know`, `bits` | happens-before facts of warps and barriers |
//! | `record`, `runs`, `touch` | accesses, their bytes, and their order |
//! | `act` | barriers, fences, commit groups |
//! | `blame` | moves a refutation from the symptom to the cause |
//! | `exec`, `domain`, `machine`, `step` | ops, their values and memory, and control flow |
//! | `stretch` | synchronization-free regions, cached |
//! | `state`, `world` | the state of the cluster, and the current warp |
//! | `asked` | tests of mbarriers that act as waits |
//! | `explore`, `forget` | the search over decisions; removal of facts that no longer matter |
//! | `canon`, `ahead`, `outcome`, `parity`, `merge` | equality of states, and joined states |
//! | `finish`, `stuck`, `trace`, `rules` | diagnostics in words |

mod act;
mod ahead;
mod asked;
mod bits;
mod blame;
mod canon;
mod code;
mod domain;
mod exec;
mod explore;
mod finish;
mod fold;
mod forget;
mod found;
mod groups;
mod interval;
mod know;
mod lanes;
mod launched;
mod machine;
mod merge;
mod outcome;
mod parity;
mod record;
pub mod rules;
mod runs;
mod slice;
mod slots;
mod state;
mod step;
mod stretch;
mod stuck;
mod touch;
mod trace;
mod value;
mod world;

use crate::assumption::Assumption;
use crate::diagnostic::Diagnostic;
use crate::facts::Facts;
use crate::replay::LaunchValues;
use crate::symbolic::{Node, Terms};
use crate::uniform::Uniformity;
use code::{Kinds, Program};
use know::{Shared, WarpKnow};
use slice::Slice;
use slots::Slots;
use state::{Bar, Env, FIRST, Inside, Meeting, State, Status, Warp};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use value::Held;
use warpline_ir::{
    AccessKind, Kernel, Loc, Mask, MemoryAccess, MemoryRegion, StmtKind, SyncOp, Target, TileInfo,
};

/// The result of a search.
pub(crate) struct SearchResult {
    /// The diagnostics, each with the launch that leads to it; one refutes the kernel.
    pub(crate) diagnostics: Vec<(Diagnostic, LaunchValues)>,
    /// The facts that the search relies on and does not prove.
    pub(crate) assumptions: Vec<Assumption>,
    /// The states that the search reached.
    pub(crate) states: u64,
    /// The steps of warps in the search.
    pub(crate) steps: u64,
}

/// The registers and tiles that the synchronization of a kernel depends on.
pub(crate) struct SyncDependencies {
    /// By register: does synchronization depend on it?
    pub(crate) regs: Vec<bool>,
    /// By tile: does synchronization depend on its words?
    tiles: Vec<bool>,
}

impl SyncDependencies {
    /// Collects the dependencies of a kernel.
    pub(crate) fn of(kernel: &Kernel) -> Self {
        let slice = Slice::of(kernel, &Uniformity::of(kernel));
        Self {
            tiles: followed(&aliases(kernel), &slice),
            regs: slice.regs,
        }
    }

    /// Does an access write to memory that synchronization depends on?
    pub(crate) fn is_written_by(&self, touch: &MemoryAccess) -> bool {
        let writes = touch.access != AccessKind::Read;
        match (slice::tile_of(touch), touch.memory) {
            (Some(tile), _) => writes && self.tiles[tile.index()],
            (None, MemoryRegion::Register(_)) => false,
            (None, _) => writes,
        }
    }
}

/// By tile: are words of it, or of one that shares bytes with it, followed? Then its bytes are
/// more than bytes.
fn followed(aliases: &[Vec<u32>], slice: &Slice) -> Vec<bool> {
    let words = |tiles: &Vec<u32>| tiles.iter().any(|&t| slice.words[t as usize]);
    aliases.iter().map(words).collect()
}

/// Checks the protocol of a kernel that passes all structural rules (`S` codes).
pub(crate) fn check(kernel: &Kernel, target: &Target) -> SearchResult {
    match asked::with_waits(kernel) {
        Some(kernel) => walk(&kernel, target),
        None => walk(kernel, target),
    }
}

fn walk(kernel: &Kernel, target: &Target) -> SearchResult {
    let uniform = Uniformity::of(kernel);
    let slice = Slice::of(kernel, &uniform);
    let mut slots = Slots::new(kernel, &slice);
    let mut kinds = Kinds::default();
    let aliases = aliases(kernel);
    let followed = followed(&aliases, &slice);
    let mut programs: Vec<_> = (0..kernel.roles.len())
        .map(|r| Program::of(kernel, r, &slice, &slots, &followed, &mut kinds))
        .collect();
    slots.order(&mut programs);
    let waits = programs
        .iter()
        .map(|p| p.waits(kernel.barriers.len()))
        .collect();
    let mut bars = 0;
    let first_bar: Vec<u32> = kernel
        .barriers
        .iter()
        .map(|b| {
            bars += b.len;
            bars - b.len
        })
        .collect();
    let fold = fold::Fold::of(kernel, &slice);
    let parities = parity::Parities::of(kernel, &programs, &slots, &first_bar);
    let has_rests = programs.iter().any(Program::has_rests);
    let groups = groups::Groups::of(kernel, &programs);
    let stepped_slots = programs
        .iter()
        .map(|p| p.stepped(&slice.stepped, &slots))
        .collect();
    let exact = (0..kernel.regs.len())
        .map(|r| slice.numbers[r] || slice.places[r] || fold.is_counter(r))
        .collect();
    let mut env = Env {
        kernel,
        terms: Terms::default(),
        programs,
        slots,
        uniform,
        numbers: slice.numbers,
        may_be_terms: slice.terms,
        period: slice.period,
        sums: slice.sums,
        parities,
        stepped_slots,
        stepped: slice.stepped,
        moved: slice.moved,
        exact,
        control: slice.control,
        has_rests,
        groups,
        written: crate::rules::changing_params(kernel, target),
        assumed: RefCell::default(),
        entry_registers: target.entry_registers(kernel.threads()),
        grows_to: grows_to(kernel),
        counting: Vec::new(),
        aliases,
        fold,
        words: followed,
        waits,
        stretches: RefCell::default(),
        runs: runs::Pairs::default(),
        nothing: Shared::default(),
        first_bar,
        bars,
        ctas: kernel.cluster_size(),
        warps: kernel.warps(),
    };
    env.terms.has_partial_loops.set(env.has_rests);
    env.nothing = Shared::new(env.all_barriers());
    env.counting = ahead::counting(&env);
    let explored = explore::explore(&env, start(&env));
    SearchResult {
        diagnostics: explored.diagnostics,
        assumptions: assumptions(&env),
        states: explored.states,
        steps: explored.steps,
    }
}

/// What the walk took for granted, each fact once.
fn assumptions(env: &Env<'_>) -> Vec<Assumption> {
    let assumed = env.assumed.borrow();
    let of = |((code, text), at): (&(&'static str, String), &Option<_>)| Assumption {
        code,
        text: text.clone(),
        at: *at,
    };
    assumed.iter().map(of).collect()
}

/// By role: the registers that its threads grow to, at most; 0 if they do not.
fn grows_to(kernel: &Kernel) -> Vec<u32> {
    let mut most = vec![0; kernel.roles.len()];
    kernel.each_stmt(&mut |role, s| {
        let StmtKind::Op(op) = &s.kind else { return };
        for sync in Facts::of(op).syncs {
            if let SyncOp::SetMaxRegs { count, grow: true } = sync {
                let of = |i: usize| role.is_none_or(|r| r.index() == i);
                for (_, m) in most.iter_mut().enumerate().filter(|(i, _)| of(*i)) {
                    *m = count.max(*m);
                }
            }
        }
    });
    most
}

/// By tile: those it shares bytes with.
fn aliases(kernel: &Kernel) -> Vec<Vec<u32>> {
    let range = |t: &TileInfo| t.offset..t.offset + t.bytes();
    let meets =
        |a: &TileInfo, b: &TileInfo| range(a).start < range(b).end && range(b).start < range(a).end;
    let of = |a: &TileInfo| {
        let tiles = (0..).zip(&kernel.tiles);
        tiles.filter(|(_, b)| meets(a, b)).map(|t| t.0).collect()
    };
    kernel.tiles.iter().map(of).collect()
}

/// Before the first statement.
fn start(env: &Env<'_>) -> State {
    let outside = env.terms.add(Node::Outside);
    let warp = |i: u32| {
        let index = i % env.warps;
        Warp {
            cta: i / env.warps,
            index,
            role: env.kernel.role_of_warp(index).0,
            pc: 0,
            active: Mask::MAX,
            frames: Vec::new(),
            regs: Rc::new(vec![Held::default(); env.slots.kept as usize]),
            spilled: Vec::new(),
            status: Status::Ready,
            know: WarpKnow::new(&env.nothing),
            apart: Vec::new(),
            fencing: Vec::new(),
            epoch: 0,
            bulk: Vec::new(),
            copies: Vec::new(),
            copying: Vec::new(),
            registers: env.entry_registers,
            open: Vec::new(),
            commits: 0,
            waited: 0,
            at_cluster: None,
            root: Inside {
                round: outside,
                loops: Vec::new(),
            },
        }
    };
    let bar = || Bar {
        count: 0,
        arrivals: 0,
        bytes: 0,
        copied: false,
        terms: BTreeMap::new(),
        phase: FIRST,
        init: None,
        fenced: false,
        made: Loc::default(),
        came: env.nothing.clone(),
        done: env.nothing.clone(),
        loads: Vec::new(),
        passed: Vec::new(),
    };
    let meeting = || Meeting {
        came: 0,
        expected: 0,
        over: FIRST,
        know: env.nothing.clone(),
        done: env.nothing.clone(),
        last: Loc::default(),
    };
    State {
        warps: (0..env.ctas * env.warps).map(warp).collect(),
        bars: (0..env.ctas * env.bars).map(|_| bar()).collect(),
        meetings: (0..=env.cluster_meeting()).map(|_| meeting()).collect(),
        records: record::Records::default(),
        products: vec![Vec::new(); (env.ctas * env.warps.div_ceil(4)) as usize],
        words: BTreeMap::new(),
        copied: BTreeMap::new(),
        decided: launched::limits(&env.terms, env.kernel),
        trail: trace::Trail::default(),
        fresh: 0,
        blunt: false,
    }
}
