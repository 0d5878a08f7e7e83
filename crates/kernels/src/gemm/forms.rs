//! The program of each form.

use super::config::{Area, Config, Form, HANDED};
use super::parts::{LAST, Line, Out, Stage, Taken};
use super::problem::{Class, Sums};
use crate::roles;
use warpline_ir::build::*;
use warpline_ir::{BuildErrors, Element, Kernel, Target};

/// The consumers' names.
pub(crate) const CONSUMERS: [&str; 4] = ["first", "second", "third", "fourth"];

/// The parameter behind which a consumer's partial tiles of stream-K are.
pub(super) fn partials(consumer: &str) -> String {
    format!("partials_{consumer}")
}

/// The kernel of a class and a config.
pub(super) fn build<A: Element, B: Element, T: Out>(
    class: &Class,
    c: &Config,
    target: &Target,
) -> Result<Kernel, BuildErrors> {
    let name = match class.up {
        None => "gemm",
        Some(_) => "dual_gemm",
    };
    Kernel::build(name, target, |k| match (c.form, c.split_k, c.stream_k) {
        (Form::DoubleBuffer, ..) => double_buffer::<A, B, T>(k, class, c),
        (Form::PingPong, ..) => ping_pong::<A, B, T>(k, class, c),
        (Form::Storer, ..) => storer::<A, B, T>(k, class, c),
        (Form::TwoConsumer, ..) => two_consumer::<A, B, T>(k, class, c),
        (Form::Cooperative, _, true) => stream_k::<A, B, T>(k, class, c),
        (Form::Cooperative, 2.., _) => split_k::<A, B, T>(k, class, c),
        // What is for weights of NVFP4 is refused before.
        (Form::Cooperative | Form::Dequantiser | Form::Warps, ..) => {
            cooperative::<A, B, T>(k, class, c)
        }
    })
}

/// Registers that a role asks for; 0 stands for what it has.
pub(crate) fn registers(n: u32) -> Option<u32> {
    (n > 0).then_some(n)
}

/// A role that loads or stores.
pub(crate) fn helper(k: Builder, name: &str, c: &Config) -> RoleDecl {
    roles::helper(k, name, registers(c.load_registers))
}

/// Declares who loads and who computes: whole warpgroups come first.
pub(crate) fn line_up(c: &Config, load: impl FnOnce(), compute: impl FnOnce()) {
    match registers(c.load_registers) {
        Some(_) => {
            load();
            compute();
        }
        None => {
            compute();
            load();
        }
    }
}

/// Steps of its first tile that a loader brings before the CTA meets.
const EARLY: u32 = 2;

/// The role that brings every step of every tile.
fn loader<A: Element, B: Element, T: Out>(k: Builder, line: &Line<T>, ab: Stage<A, B>) {
    let c = &line.config;
    let load = helper(k, "load", c);
    let bring = |at, i| {
        let slot = ab.acquire();
        line.load(&slot, at, i);
        slot.commit();
    };
    load.body(|| {
        let early = match line.walk.knows_first() {
            true => EARLY.min(c.stages),
            false => 0,
        };
        if early > 0 {
            elect(|| {
                line.walk.first(|seat| {
                    let at = line.at(seat);
                    for i in 0..early {
                        if_(line.depth.gt(i), || bring(at, i.reg()));
                    }
                });
            });
            meet();
        }
        elect(|| {
            line.prefetch();
            let from = Var::new(early);
            line.walk.fetch(|seat| {
                let at = line.at(seat);
                range(from.get(), line.depth).each(|i| bring(at, i));
                from.set(0u32);
            });
        });
    });
}

/// A role that computes, and what it has of a tile.
fn consumer<T: Out>(k: Builder, line: &Line<T>, i: u32) -> (RoleDecl, Area) {
    let role = k.role(CONSUMERS[i as usize]).warpgroups(1);
    let role = role.registers_opt(registers(line.config.math_registers));
    (role, line.area(i))
}

/// One loads; the others share each tile, and end it one after the other.
fn cooperative<A: Element, B: Element, T: Out>(k: Builder, class: &Class, c: &Config) {
    let line = &Line::<T>::declare(k, class, c);
    let ab = shared(line, line.ring::<A, B>(k).shared());
    let consumers = &CONSUMERS[..c.consumers as usize];
    // Who is ahead needs slots that who is behind still holds.
    let ends = consumers.len() > 1 && c.stages > LAST && class.sums == Sums::Fast;
    let ends = ends.then(|| k.turn("ends", consumers));
    let compute = || {
        for (i, name) in (0..).zip(consumers) {
            let outbox = line.outbox(k, name);
            let (role, area) = consumer(k, line, i);
            role.body(|| {
                let factors = line.factors();
                line.walk.each(|seat| {
                    let at = line.at(seat).plus(area.first, 0);
                    let bias = line.bias(at);
                    let taken = match ends {
                        None => Taken::Freely(steps(line.depth)),
                        Some(turn) => Taken::LastInTurn(turn, line.depth),
                    };
                    let sums = line.sums(ab, taken, &area);
                    line.send(&sums, outbox, at, factors, bias);
                });
            });
        }
    };
    line_up(c, || loader(k, line, ab), compute);
}

/// A ring whose slots the CTAs of a cluster fill for each other, where there is one.
fn shared<A: Element, B: Element, T>(line: &Line<T>, ab: Stage<A, B>) -> Stage<A, B> {
    match line.config.cluster.size() {
        1 => ab,
        _ => ab.multicast(),
    }
}

/// One loads; two take tiles in turn: while one multiplies, the other sends.
fn ping_pong<A: Element, B: Element, T: Out>(k: Builder, class: &Class, c: &Config) {
    let line = &Line::<T>::declare(k, class, c);
    let ab = shared(line, line.ring::<A, B>(k).dealt());
    let turn = k.turn("tensor cores", [CONSUMERS[0], CONSUMERS[1]]);
    loader(k, line, ab);
    for i in 0..2 {
        let outbox = line.outbox(k, CONSUMERS[i as usize]);
        let (role, area) = consumer(k, line, i);
        role.body(|| {
            let factors = line.factors();
            let skip = || ab.skip(line.depth);
            line.walk.dealt(i, skip, |seat| {
                let at = line.at(seat);
                let bias = line.bias(at);
                let sums = line.sums(ab, Taken::InTurn(turn, steps(line.depth)), &area);
                line.send(&sums, outbox, at, factors, bias);
            });
        });
    }
}

/// One loads; the first of two consumers multiplies by the gate and hands
/// what its function gives to the second, which multiplies by the other factor.
fn two_consumer<A: Element, B: Element, T: Out>(k: Builder, class: &Class, c: &Config) {
    let line = &Line::<T>::declare(k, class, c);
    let ab = shared(line, line.ring::<A, B>(k).shared());
    let [width, stages] = HANDED;
    let gates = k.ring("gates", stages, |s| s.tile::<f32>(c.tile_m, width));
    let outbox = line.outbox(k, CONSUMERS[1]);
    loader(k, line, ab);
    let (role, area) = consumer(k, line, 0);
    role.body(|| {
        let [factor, _] = line.factors();
        line.walk.each(|_| {
            let sums = line.sums(ab, Taken::Freely(steps(line.depth)), &area);
            for col in (0..c.tile_n).step_by(width as usize) {
                let part = line.gate(sums.slice(col..col + width), factor);
                let slot = gates.acquire();
                part.store(&slot.tiles());
                slot.commit();
            }
        });
    });
    let (role, area) = consumer(k, line, 1);
    role.body(|| {
        let [_, factor] = line.factors();
        line.walk.each(|seat| {
            let at = line.at(seat);
            let sums = line.sums(ab, Taken::Freely(steps(line.depth)), &area);
            line.each_part(&[sums], at, line.bias(at), |part, at, _| {
                line.send_part(outbox, &part[0], at, |some, _| {
                    let slot = gates.wait();
                    let gate = Frag::load(&slot.tiles());
                    slot.release();
                    line.scaled(some, factor).zip(&gate, |x, y| x * y)
                });
            });
        });
    });
}

/// One loads, some compute, one stores.
fn storer<A: Element, B: Element, T: Out>(k: Builder, class: &Class, c: &Config) {
    let line = &Line::<T>::declare(k, class, c);
    let ab = shared(line, line.ring::<A, B>(k).shared());
    let [width, stages] = line.staging;
    let rings: Vec<Ring<Tile<T>>> = (0..c.consumers)
        .map(|i| k.ring(&format!("out{i}"), stages, |s| s.tile(c.rows(), width)))
        .collect();
    loader(k, line, ab);
    for i in 0..c.consumers {
        let out = rings[i as usize];
        let (role, area) = consumer(k, line, i);
        role.body(|| {
            let factors = line.factors();
            line.walk.each(|seat| {
                let at = line.at(seat).plus(area.first, 0);
                let bias = line.bias(at);
                let sums = line.sums(ab, Taken::Freely(steps(line.depth)), &area);
                line.each_part(&line.totals(&sums), at, bias, |part, at, bias| {
                    let part = line.finish(&part, at, factors, bias);
                    let slot = out.acquire();
                    T::store(&part, &slot.tiles());
                    slot.commit();
                });
            });
        });
    }
    let store = helper(k, "store", c);
    store.body(|| {
        elect(|| {
            line.walk.each(|seat| {
                let at = line.at(seat);
                for col in (0..c.tile_n).step_by(width as usize) {
                    for (i, &out) in (0..).zip(&rings) {
                        let at = at.plus(i * c.rows(), col);
                        let slot = out.wait();
                        match at.batch {
                            None => line.c.store(slot.tiles(), [at.col, at.row]),
                            Some(z) => line.c.store(slot.tiles(), [at.col, at.row, z]),
                        }
                        bulk_commit();
                        bulk_wait_read(0);
                        slot.release();
                    }
                }
            });
        });
    });
}

/// Every warpgroup brings its part of the next stage, then computes its rows of this one.
fn double_buffer<A: Element, B: Element, T: Out>(k: Builder, class: &Class, c: &Config) {
    let line = &Line::<T>::declare(k, class, c);
    let ab = line.ring::<A, B>(k).joint().shared();
    for i in 0..c.consumers {
        let outbox = line.outbox(k, CONSUMERS[i as usize]);
        let (role, area) = consumer(k, line, i);
        role.body(|| {
            let factors = line.factors();
            elect(|| line.prefetch());
            line.walk.each(|seat| {
                let at = line.at(seat);
                let bias = line.bias(at.plus(area.first, 0));
                let acc = line.acc(&area);
                let multiply = || {
                    let slot = ab.wait();
                    line.multiply(&acc, *slot, &area);
                    acc.wait();
                    slot.release();
                };
                let fetched = Var::new(false);
                steps(line.depth).each(|step| {
                    elect(|| {
                        let slot = ab.acquire();
                        line.load_part(&slot, at, step, i, c.consumers);
                        slot.commit();
                    });
                    if_(fetched.get(), multiply);
                    fetched.set(true);
                });
                if_(fetched.get(), multiply);
                let at = at.plus(area.first, 0);
                line.send(&acc.finish(), outbox, at, factors, bias);
            });
        });
    }
}

/// As [`cooperative`], with steps of K dealt to the CTAs: tiles that several
/// share meet through memory.
fn stream_k<A: Element, B: Element, T: Out>(k: Builder, class: &Class, c: &Config) {
    let line = &Line::<T>::declare(k, class, c);
    let ab = line.ring::<A, B>(k).shared();
    let stream = line.walk.tiles().stream(line.depth);
    let seat = |share: Share| super::walk::Seat {
        m: share.tile.m,
        n: share.tile.n,
        batch: None,
    };
    // A sum over nothing has one step that is none.
    let these = |share: Share| range(share.from, share.to.min(line.depth));
    let load = || {
        helper(k, "load", c).body(|| {
            elect(|| {
                line.prefetch();
                stream.each(|share| {
                    let at = line.at(seat(share));
                    these(share).each(|i| {
                        let slot = ab.acquire();
                        line.load(&slot, at, i);
                        slot.commit();
                    });
                });
            });
        });
    };
    let compute = || {
        for i in 0..c.consumers {
            let [tall, wide] = line.area(i).sides();
            let partials = k.partial_tiles(&partials(CONSUMERS[i as usize]), tall, wide);
            let outbox = line.outbox(k, CONSUMERS[i as usize]);
            let (role, area) = consumer(k, line, i);
            role.body(|| {
                let factors = line.factors();
                stream.each(|share| {
                    let sums = line.sums(ab, Taken::Freely(these(share)), &area);
                    if_else(
                        share.finishes(),
                        || {
                            let add = |cta, sums| partials.add(cta, sums);
                            let sums = share.others().fold(sums.clone(), add);
                            let at = line.at(seat(share)).plus(area.first, 0);
                            line.send(&sums, outbox, at, factors, line.bias(at));
                        },
                        || partials.give(share.place(), &sums),
                    );
                });
            });
        }
    };
    line_up(c, load, compute);
}

/// As [`cooperative`], with two CTAs of a cluster that each take half of K:
/// the second hands its sums to the first.
fn split_k<A: Element, B: Element, T: Out>(k: Builder, class: &Class, c: &Config) {
    let line = &Line::<T>::declare(k, class, c);
    let ab = line.ring::<A, B>(k).shared();
    let rank = cluster_rank();
    // What the second half has more than the first is behind K, and zero.
    let half = line.depth.div_ceil(c.split_k);
    let load = || {
        helper(k, "load", c).body(|| {
            elect(|| {
                line.prefetch();
                line.walk.split(|seat| {
                    let at = line.at(seat);
                    steps(half).each(|i| {
                        let slot = ab.acquire();
                        line.load(&slot, at, rank * half + i);
                        slot.commit();
                    });
                });
            });
        });
    };
    let compute = || {
        for i in 0..c.consumers {
            let name = format!("sums_{}", CONSUMERS[i as usize]);
            let [tall, wide] = line.area(i).sides();
            let handed = k.ring(&name, 1, |s| s.plain::<f32>(tall * wide / 512, 512));
            let handed = handed.posted();
            let outbox = line.outbox(k, CONSUMERS[i as usize]);
            let (role, area) = consumer(k, line, i);
            role.body(|| {
                let factors = line.factors();
                line.walk.split(|seat| {
                    let sums = line.sums(ab, Taken::Freely(steps(half)), &area);
                    if_else(
                        rank.eq(0u32),
                        || {
                            let slot = handed.wait();
                            let more = sums.load_lanes(&slot.tiles());
                            let sums = sums.clone().zip(&more, |x, y| x + y);
                            let at = line.at(seat).plus(area.first, 0);
                            line.send(&sums, outbox, at, factors, line.bias(at));
                            // Only then, as it waits for all that was stored.
                            slot.release_to(1u32);
                        },
                        || {
                            let slot = handed.acquire_at(0u32);
                            sums.post_lanes(&slot);
                            slot.commit();
                        },
                    );
                });
            });
        }
    };
    line_up(c, load, compute);
}
