//! Values as the machine has them: signs, widths, conversions and votes. Each wrong kernel, in
//! which two roles read one value differently, stands beside its repaired twin.

use crate::rules::kernel;
use warpline_ir::Kernel;
use warpline_ir::builder::*;
use warpline_testkit::verdict::{breaches, proved};

/// What a role does with the declared memory and parameters: the number of steps it takes.
struct Values {
    n: Reg<u32>,
    signed: Reg<i32>,
    other: Reg<i32>,
    wide: Reg<u64>,
    pages: Global<i32>,
    counts: Tile<u32>,
}

type Role<'r> = &'r dyn Fn(&Values, &dyn Fn());

/// One role gives slots of a ring, another takes them; a third leaves a count in shared memory.
fn ring(give: Role<'_>, take: Role<'_>) -> Kernel {
    kernel(|k| {
        let n = k.param::<u32>("n");
        let [signed, other] = ["signed", "other"].map(|p| k.param::<i32>(p));
        let wide = k.param::<u64>("wide");
        let pages = k.pointer::<i32>("pages");
        let counts = k.tile::<u32>("counts", 1, 4).unswizzled().declare();
        let values = Values {
            n,
            signed,
            other,
            wide,
            pages,
            counts,
        };
        let [full, empty] = ["full", "empty"].map(|b| k.barrier(b, 1).arrivals(1));
        k.role("give").warps(1).body(|| {
            counts.whole().store(0u32, 0u32, n);
            cta_sync();
            let parity = Var::new(1u32);
            give(&values, &|| {
                elect(|| {
                    empty.at(0u32).wait(parity.get());
                    full.at(0u32).arrive();
                    parity.set(parity.get() ^ 1u32);
                });
            });
        });
        k.role("take").warps(1).body(|| {
            cta_sync();
            let parity = Var::new(0u32);
            take(&values, &|| {
                elect(|| {
                    full.at(0u32).wait(parity.get());
                    empty.at(0u32).arrive();
                    parity.set(parity.get() ^ 1u32);
                });
            });
        });
    })
}

#[track_caller]
fn differ(give: Role<'_>, take: Role<'_>) {
    assert!(
        !breaches(&ring(give, take)).is_empty(),
        "proved, though the roles differ"
    );
    proved(&ring(give, give));
    proved(&ring(take, take));
}

#[test]
fn pages_below_zero_are_skipped_by_both_or_by_none() {
    let skips: Role<'_> = &|v, step| {
        steps(v.n).each(|i| {
            let page = v.pages.load(i);
            if_(page.ge(0i32), step);
        });
    };
    let takes_all: Role<'_> = &|v, step| steps(v.n).each(|_| step());
    differ(skips, takes_all);
}

#[test]
fn constants_below_zero_are_below_zero() {
    differ(&|v, step| if_(v.signed.gt(-1i32), step), &|_, step| step());
    differ(
        &|v, step| range(0i32, v.signed).each(|_| step()),
        &|v, step| range(-1i32, v.signed).each(|_| step()),
    );
}

#[test]
fn a_number_cut_to_16_bits_is_another() {
    differ(&|v, step| steps(v.n).each(|_| step()), &|v, step| {
        steps(v.n.cast::<u16>().cast::<u32>()).each(|_| step())
    });
}

#[test]
fn a_number_through_f32_is_another() {
    differ(&|v, step| steps(v.n).each(|_| step()), &|v, step| {
        steps(v.n.cast::<f32>().cast::<u32>()).each(|_| step())
    });
}

#[test]
fn half_a_word_is_another_number() {
    differ(
        &|v, step| steps(v.counts.whole().load(0u32, 0u32)).each(|_| step()),
        &|v, step| {
            let [half] = v.counts.whole().load_at_byte::<u16, 1>(0u32.reg());
            steps(half.cast::<u32>()).each(|_| step());
        },
    );
}

#[test]
fn a_difference_below_zero_is_large_without_a_sign() {
    differ(
        &|v, step| if_((v.signed - v.other).bitcast::<u32>().lt(10u32), step),
        &|v, step| if_((v.signed - v.other).lt(10i32), step),
    );
}

#[test]
fn numbers_of_64_bits_go_beyond_32() {
    let far: Role<'_> = &|v, step| if_(v.wide.gt(1u64 << 33), step);
    assert!(!breaches(&ring(&|_, _| {}, far)).is_empty());
    proved(&ring(far, far));
    differ(
        &|v, step| steps(v.wide.cast::<u32>().min(5u32)).each(|_| step()),
        &|v, step| steps(v.wide.min(5u64).cast::<u32>()).each(|_| step()),
    );
}

#[test]
fn lanes_that_agree_may_agree_on_no() {
    differ(&|v, step| if_(v.n.gt(3u32), step), &|v, step| {
        if_(lanes_agree(v.n.gt(3u32)), step)
    });
    proved(&ring(
        &|v, step| if_(all_lanes(v.n.gt(3u32)), step),
        &|v, step| if_(any_lane(v.n.gt(3u32)), step),
    ));
}

#[test]
fn an_item_broadcast_by_a_shuffle_is_the_same_for_all_lanes() {
    let broadcast: Role<'_> = &|v, step| {
        let item = Var::new(0u32);
        if_(lane_id().eq(0u32), || item.set(v.n));
        let item = shuffle_from(item.get(), 0u32);
        steps(item).each(|_| step());
    };
    proved(&ring(broadcast, &|v, step| steps(v.n).each(|_| step())));
    let other: Role<'_> = &|v, step| {
        let item = Var::new(0u32);
        if_(lane_id().eq(0u32), || item.set(v.n));
        let item = shuffle_from(item.get(), 1u32);
        steps(item).each(|_| step());
    };
    assert!(!breaches(&ring(other, &|v, step| steps(v.n).each(|_| step()))).is_empty());
}

#[test]
fn a_variable_keeps_its_value_if_a_loop_runs_no_iteration() {
    let sets: Role<'_> = &|v, step| {
        let flag = Var::new(0u32);
        range(lane_id(), v.n)
            .step_by(32u32)
            .each(|_| flag.set(1u32));
        let any = any_lane(flag.get().eq(1u32));
        if_(any, step);
    };
    assert!(!breaches(&ring(sets, &|_, step| step())).is_empty());
    let counts: Role<'_> = &|v, step| if_(v.n.gt(0u32), step);
    proved(&ring(counts, counts));
}
