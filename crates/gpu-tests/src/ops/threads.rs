//! Warp ops, special registers and parameters.

use crate::columns::Columns;
use crate::trial::OpTrial;
use half::{bf16, f16};
use warpline_ir::builder::*;
use warpline_ir::ops::matrix::TransposeMatrix;
use warpline_ir::ops::warp::*;
use warpline_ir::*;

const ALL: Operand = Operand::Imm(ALL_LANES as u64);

pub(crate) fn columns() -> Vec<Columns> {
    let mut shuffle = Columns::new("shuffle");
    for ty in Type::ALL {
        let (dst, src, lane) = (shuffle.reg(ty), shuffle.arg(ty), shuffle.arg(Type::U32));
        if ty != Type::Pred {
            shuffle.form(Shuffle {
                mode: ShuffleMode::Idx,
                ty,
                dst,
                src,
                lane,
                clamp: 31,
                mask: ALL,
            });
        }
    }
    let ty = Type::U32;
    for mode in [
        ShuffleMode::Idx,
        ShuffleMode::Up,
        ShuffleMode::Down,
        ShuffleMode::Bfly,
    ] {
        for clamp in [0, 31, 0x1c1f, 0x1c00, 0x100f, 0x0307] {
            let (dst, src, lane) = (shuffle.reg(ty), shuffle.arg(ty), shuffle.arg(ty));
            shuffle.form(Shuffle {
                mode,
                ty,
                dst,
                src,
                lane,
                clamp,
                mask: ALL,
            });
        }
    }
    let (mut vote, mut ballot) = (Columns::new("vote"), Columns::new("ballot"));
    for mode in [VoteMode::All, VoteMode::Any, VoteMode::Uniform] {
        for src in vote.register_and_constant(Type::Pred) {
            let dst = vote.reg(Type::Pred);
            vote.form(Vote {
                mode,
                dst,
                src,
                mask: ALL,
            });
        }
    }
    for src in ballot.register_and_constant(Type::Pred) {
        let dst = ballot.reg(Type::U32);
        ballot.form(Ballot {
            dst,
            src,
            mask: ALL,
        });
    }
    let [mut any, mut all, mut redux] = ["match_any", "match_all", "redux"].map(Columns::new);
    for ty in Type::ALL {
        let (dst, src) = (any.reg(Type::U32), any.arg(ty));
        any.form(MatchAny {
            ty,
            dst,
            src,
            mask: ALL,
        });
        for src in all.register_and_constant(ty) {
            let (dst, pred) = (all.reg(Type::U32), all.reg(Type::Pred));
            all.form(MatchAll {
                ty,
                dst,
                all: pred,
                src,
                mask: ALL,
            });
        }
        for mode in ReduxMode::ALL {
            let (dst, src) = (redux.reg(ty), redux.arg(ty));
            redux.form(Redux {
                mode,
                ty,
                dst,
                src,
                mask: ALL,
            });
        }
    }
    let mut transpose = Columns::new("transpose_matrix");
    for ty in [Type::U32, Type::F16x2, Type::Bf16x2] {
        let (dst, src) = (transpose.reg(ty), transpose.arg(ty));
        transpose.form(TransposeMatrix { ty, dst, src });
    }
    vec![shuffle, vote, ballot, any, all, redux, transpose]
}

pub(crate) fn trials() -> Vec<OpTrial> {
    vec![warp_sync_trial(), special(), param()]
}

/// Each lane repeatedly reads a word that another lane wrote.
fn warp_sync_trial() -> OpTrial {
    let kernel = super::kernel("warp_sync", |k| {
        let (x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
        let t = k.tile::<u32>("t", 1, 32).unswizzled().declare();
        k.role("all").warps(1).body(|| {
            steps(16).each(|i| {
                let at = i * 32 + lane_id();
                t.whole().store(0u32, lane_id(), x.load(at));
                warp_sync();
                let other = t.whole().load(0u32, (lane_id() + i) & 31);
                warp_sync();
                out.store(at, other);
            });
        });
    });
    OpTrial::new("warp_sync", &["warp_sync"], kernel)
        .input(&super::words(512, 1))
        .output("out", Type::U32, 512)
}

/// Every special register; machine-dependent ones are tested for properties that hold on any machine.
fn special() -> OpTrial {
    let kernel = super::kernel("special", |k| {
        k.cluster(2, 2, 1);
        let out = k.pointer::<u32>("out");
        k.role("all").warps(2).body(|| {
            let to_word = |x: Reg<bool>| select(x, 1u32, 0u32);
            let (before, clock_before) = (global_timer(), clock());
            let values = [
                thread_id(),
                lane_id(),
                warp_id(),
                cta_id(),
                cta_id_y(),
                cta_id_z(),
                grid_ctas(),
                grid_ctas_along(Axis::Y),
                grid_ctas_along(Axis::Z),
                cluster_rank(),
                cluster_size(),
                cluster_cta_id(Axis::X),
                cluster_cta_id(Axis::Y),
                cluster_dim(Axis::X),
                cluster_dim(Axis::Y),
                cluster_id_along(Axis::X),
                cluster_id_along(Axis::Y),
                cluster_id_along(Axis::Z),
                grid_clusters_along(Axis::X),
                grid_clusters_along(Axis::Y),
                grid_clusters_along(Axis::Z),
                // The SM ID is below the SM count, and clocks do not decrease.
                to_word(sm_id().lt(sm_count())),
                to_word((clock() - clock_before).lt(1u32 << 31)),
                to_word(global_timer().ge(before)),
            ];
            let cta = (cta_id_z() * 2 + cta_id_y()) * 2 + cta_id();
            for (i, value) in (0u32..).zip(values) {
                out.store((cta * 24 + i) * 64 + thread_id(), value);
            }
        });
    });
    let mut trial = OpTrial::new("special", &["special"], kernel);
    trial.step.grid = [2, 2, 2];
    trial.output("registers", Type::U32, 8 * 24 * 64)
}

/// A scalar parameter of every type, and an address.
fn param() -> OpTrial {
    macro_rules! each {
        ($k:ident, $out:ident, $($t:ty),*) => {{
            let mut params: Vec<Box<dyn Fn()>> = vec![];
            $(
                let x = $k.param::<$t>(&format!("x{}", params.len()));
                let at = params.len() as u32 * 8;
                params.push(Box::new(move || $out.store_as::<$t, 1>(at, [x])));
            )*
            params
        }};
    }
    // All types but predicates, in the order of the list below.
    let types = &Type::ALL[1..];
    let kernel = super::kernel("param", |k| {
        let out = k.pointer::<u8>("out");
        let stores = each!(
            k, out, u8, u16, u32, i32, u64, i64, f32, f16, bf16, Tf32, F16x2, Bf16x2, E4m3x2,
            E5m2x2, E4m3x4, E5m2x4
        );
        k.role("all")
            .warps(1)
            .body(|| elect(|| stores.iter().for_each(|store| store())));
    });
    let trial = OpTrial::new("param", &["param"], kernel);
    let mut trial = trial.output("values", Type::U64, types.len());
    let drawn = crate::data::columns(types, 2, 5);
    for (&ty, values) in types.iter().zip(drawn) {
        trial = trial.bits(ty, values[1]);
    }
    trial
}
