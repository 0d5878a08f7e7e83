//! The line: weights are decoded by the warpgroups that multiply them.

use super::decode::{SMALLER, pair, scale, selector};
use super::scales::TILE;
use crate::gemm::problem::Class;
use crate::gemm::walk::{Seat, Walk};
use crate::gemm::{Config, forms};
use half::f16;
use warpline_ir::build::*;
use warpline_ir::ops::policy::CacheHint;
use warpline_ir::{BuildErrors, DType, Kernel, TensorMapDecl};

/// Elements of K in a stage.
pub(super) const DEPTH: u32 = 64;

/// Codes of the weights, gate above up for each consumer, and their scales.
type Weights = (Tile<u8>, Tile<u8>);

/// What a lane has of a step's weights: codes, and for each of its rows the
/// word that has the scale.
type Codes = (RegNibbles, Vec<Reg<u32>>);

/// The maps of A in f16, of the codes of each weight, and of C.
pub(super) fn maps(c: &Config) -> [TensorMapDecl; 3] {
    [
        TensorMapDecl::tiled(DType::F16, [DEPTH, c.tile_m]),
        TensorMapDecl::tiled(DType::U8, [DEPTH / 2, c.rows()]),
        TensorMapDecl::tiled(DType::F16, [c.rows(), c.tile_m]),
    ]
}

/// One loads f16 of A, and codes and scales of the weights; consumers decode
/// the weights into the operand on the left, gate above up, and multiply, two
/// of them in turn: one decodes while the products of the other run. Where
/// CTAs of a cluster split the sums of a tile, the first adds them up.
pub(super) fn build(class: &Class, c: &Config, scaled: bool) -> Result<Kernel, BuildErrors> {
    Kernel::build("nvfp4_dual_gemm", |k| {
        let line = &Line::declare(k, class, c, scaled);
        let load = || {
            forms::helper(k, "load", c).body(|| {
                elect(|| {
                    line.prefetch();
                    wait_prerequisites();
                    line.each(true, |seat| {
                        steps(line.share).each(|i| line.load(seat, line.first() + i));
                    });
                });
            });
        };
        let names = &forms::CONSUMERS[..c.consumers as usize];
        let turn = (names.len() == 2).then(|| k.turn("tensor cores", [names[0], names[1]]));
        let compute = || {
            for i in 0..c.consumers {
                consumer(k, line, i, turn);
            }
        };
        forms::line_up(c, load, compute);
    })
}

/// A role that decodes and multiplies 64 rows of each weight.
fn consumer(k: Builder, line: &Line<'_>, i: u32, turn: Option<Turn>) {
    let c = line.config;
    let name = forms::CONSUMERS[i as usize];
    let rings = (1..c.split_k).map(|rank| {
        let name = format!("sums_{name}_{rank}");
        let ring = k.ring(&name, 1, |s| s.tile::<f32>(2 * c.rows(), c.tile_m));
        (rank, ring.across())
    });
    let handed: Vec<_> = rings.collect();
    let outbox = k.outbox::<f16>(name, 1, c.tile_m, c.rows());
    let role = k.role(name).warpgroups(1);
    let role = role.registers_opt(forms::registers(c.math_registers));
    role.body(|| {
        wait_prerequisites();
        let factors = line.factors();
        let lane = Lane::new();
        line.each(false, |seat| {
            let output = seat.n * c.tile_n + i * c.rows();
            let (lane, first) = (lane.of(output), line.first());
            let acc = Acc::new(2 * c.rows(), c.tile_m);
            let codes = line.codes(i, lane, first);
            let last = steps(line.share - 1).fold(codes, |step, codes| {
                let next = || line.codes(i, lane, first + step + 1);
                line.multiply(&acc, &lane.decode(codes), turn, next)
            });
            line.multiply(&acc, &lane.decode(last), turn, || ());
            let sums = acc.finish();
            summed(&handed, sums, |sums| {
                let at = [output, seat.m * c.tile_m];
                outbox.send_transposed(&line.finish(&sums, factors), line.out, at);
            });
        });
    });
}

/// Has `f` go on with the sums of a tile: in the first CTA of a cluster, which
/// is handed those of the others through its rings.
#[track_caller]
fn summed(handed: &[(u32, Ring<Tile<f32>>)], sums: Frag, f: impl FnOnce(Frag)) {
    if handed.is_empty() {
        f(sums);
        return;
    }
    let rank = cluster_rank();
    if_else(
        rank.eq(0u32),
        || {
            let all = handed.iter().fold(sums.clone(), |all, (from, ring)| {
                let slot = ring.wait();
                let more = Frag::load(&slot.tiles());
                slot.release_to(*from);
                all.zip(&more, |x, y| x + y)
            });
            f(all);
        },
        || {
            for (from, ring) in handed {
                if_(rank.eq(*from), || {
                    let slot = ring.acquire_at(0u32);
                    sums.store(&slot.tiles());
                    slot.commit();
                });
            }
        },
    );
}

/// What a lane of a consumer picks of the scales of a stage.
#[derive(Clone, Copy)]
struct Lane {
    /// Which of four groups of 16 of K is its own.
    group: Reg<u32>,
    /// Picks the scale of that group.
    pick: Reg<u32>,
    /// The byte of the scales of its first row of 64.
    place: Reg<u32>,
}

impl Lane {
    #[track_caller]
    fn new() -> Self {
        let lane = lane_id();
        let group = lane & 3u32;
        let row = (warp_in_role() & 3u32) * 16u32 + (lane >> 2u32);
        Self {
            group,
            pick: selector(group),
            place: ((row & 31u32) << 4u32) + (row >> 5u32) * 4u32,
        }
    }

    /// Weights as an operand.
    #[track_caller]
    fn decode(self, (codes, scales): Codes) -> RegOperand<f16, Nibbles> {
        let scales: Vec<_> = scales
            .into_iter()
            .map(|four| scale(four, self.pick))
            .collect();
        codes.decode(|word, i, group| {
            pair(word, i) * scales[2 * group.block as usize + usize::from(group.below)]
        })
    }

    /// For 64 rows from a row on: the first or the last of 128, which lie together.
    #[track_caller]
    fn of(self, first: Reg<u32>) -> Self {
        let place = self.place + ((first >> 5u32) & 2u32) * 4u32;
        Self { place, ..self }
    }
}

/// The parameters of the line, and how it is solved.
struct Line<'a> {
    class: &'a Class,
    config: &'a Config,
    /// Groups of 16 of K.
    groups: Reg<u32>,
    /// Steps of K, and those of one CTA of as many as split them.
    depth: Reg<u32>,
    share: Reg<u32>,
    x: Map,
    weights: [Map; 2],
    out: Map,
    walk: Walk,
    scales: [Global<u8>; 2],
    numbers: Option<[Global<f32>; 3]>,
    x_ring: Ring<Tile<f16>>,
    weight_ring: Ring<Weights>,
}

impl<'a> Line<'a> {
    /// Declares the parameters, in the order in which a launch gives them.
    fn declare(k: Builder, class: &'a Class, c: &'a Config, scaled: bool) -> Self {
        if c.split_k > 1 {
            k.cluster(c.split_k, 1, 1);
        }
        let groups = k.param::<u32>("groups").at_least(1);
        let depth = groups.div_ceil(4u32);
        let [x, codes, out] = maps(c);
        let weights = |s: &Stages| (s.tile(2 * c.tile_n, DEPTH / 2), s.vector(2 * TILE));
        Self {
            class,
            config: c,
            groups,
            depth,
            share: depth.div_ceil(c.split_k),
            x: k.tensor_map("x", x),
            weights: ["gate", "up"].map(|name| k.tensor_map(name, codes.clone())),
            out: k.tensor_map("c", out),
            walk: Walk::declare(k, class, c),
            scales: ["gate_scales", "up_scales"].map(|name| k.pointer(name)),
            numbers: scaled
                .then(|| ["scale_a", "scale_gate", "scale_up"].map(|name| k.pointer(name))),
            x_ring: k.ring("x", c.stages, |s| s.tile(c.tile_m, DEPTH)).shared(),
            weight_ring: k.ring("weights", c.stages, weights).shared(),
        }
    }

    /// Before the first copy.
    #[track_caller]
    fn prefetch(&self) {
        for map in [self.x, self.weights[0], self.weights[1], self.out] {
            map.prefetch();
        }
    }

    /// Runs `body` for each tile, as the role that loads or as another.
    #[track_caller]
    fn each(&self, loads: bool, body: impl FnOnce(Seat)) {
        match (self.config.split_k, loads) {
            (1, true) => self.walk.fetch(body),
            (1, false) => self.walk.each(body),
            _ => self.walk.split(body),
        }
    }

    /// The first of the steps of K that are this CTA's.
    #[track_caller]
    fn first(&self) -> Reg<u32> {
        match self.config.split_k {
            1 => 0u32.reg(),
            _ => cluster_rank() * self.share,
        }
    }

    /// Brings a step of a tile. Behind K come zeros, and scales that are not used.
    #[track_caller]
    fn load(&self, seat: Seat, step: Reg<u32>) {
        let c = self.config;
        let (token, output) = (seat.m * c.tile_m, seat.n * c.tile_n);
        let slot = self.weight_ring.acquire();
        let forget = c.hints.then_some(CacheHint::EvictFirst);
        for part in 0..c.tile_n / c.rows() {
            for (j, map) in (0..).zip(self.weights) {
                let row = (2 * part + j) * c.rows();
                let to = slot.0.slice(row..row + c.rows(), 0..DEPTH / 2);
                let at = [step * (DEPTH / 2), output + part * c.rows()];
                slot.load_with(map, to, at, None, forget);
            }
        }
        let tile = step.min(self.depth - 1).cast::<u64>();
        let tile = (output >> 7u32).mul_wide(self.depth) + tile;
        for (j, from) in (0..).zip(self.scales) {
            let to = slot.1.slice(0..1, j * TILE..(j + 1) * TILE);
            slot.load_bytes(to, from.address(tile * u64::from(TILE)), TILE);
        }
        slot.commit();
        let slot = self.x_ring.acquire();
        slot.load(self.x, slot.tiles(), [step * DEPTH, token]);
        slot.commit();
    }

    /// A consumer's weights of a step, as they are.
    #[track_caller]
    fn codes(&self, consumer: u32, lane: Lane, step: Reg<u32>) -> Codes {
        let rows = 2 * self.config.rows();
        let rows = consumer * rows..(consumer + 1) * rows;
        let slot = self.weight_ring.wait();
        let codes = RegNibbles::load(&slot.0.slice(rows, 0..DEPTH / 2));
        // Behind K codes are zero, and scales are what they are: also NaN.
        let inside = (step * 4u32 + lane.group).lt(self.groups);
        let at = |block: u32, down: u32| lane.place + (block * TILE + down * 16);
        let scales = [at(0, 0), at(0, 8), at(1, 0), at(1, 8)].map(|at| {
            let [four] = slot.1.load_as::<u32, 1>(0u32, at);
            select(inside, four, 0u32)
        });
        slot.release();
        (codes, scales.to_vec())
    }

    /// Multiplies a step's weights with A; beside the products, `f` runs.
    #[track_caller]
    fn multiply<R>(
        &self,
        acc: &Acc,
        weights: &RegOperand<f16, Nibbles>,
        turn: Option<Turn>,
        f: impl FnOnce() -> R,
    ) -> R {
        let x = self.x_ring.wait();
        let products = || acc.mma(weights, &x.in_order::<Nibbles>());
        match turn {
            Some(turn) => turn.hold(products),
            None => products(),
        }
        let beside = f();
        acc.wait();
        x.release();
        beside
    }

    /// What multiplies the sums of each weight, once for a role.
    #[track_caller]
    fn factors(&self) -> [Reg<f32>; 2] {
        match self.numbers {
            None => [SMALLER.reg(); 2],
            Some([a, gate, up]) => {
                let a = a.load(0u32) * SMALLER;
                [gate, up].map(|weight| a * weight.load(0u32))
            }
        }
    }

    /// What becomes of sums, those of the gate above the others.
    #[track_caller]
    fn finish(&self, sums: &Frag, factors: [Reg<f32>; 2]) -> Frag {
        let activation = self.class.activation();
        let (gate, up) = sums.split_rows(self.config.rows());
        let gate = gate.map(|x| activation.apply(x * factors[0]));
        gate.zip(&up, |x, y| x * (y * factors[1]))
    }
}
