//! Hardware semantics of values: signs, widths, conversions and votes. Two roles that interpret one
//! value differently are refuted; two roles that agree are proved.

use crate::rules::kernel;
use warpline_ir::Kernel;
use warpline_ir::builder::*;
use warpline_testkit::verdict::{proved, violations};

/// The parameters and the memory from which roles compute their trip counts.
struct Values {
    n: Reg<u32>,
    signed: Reg<i32>,
    other: Reg<i32>,
    wide: Reg<u64>,
    pages: Global<i32>,
    counts: Tile<u32>,
}

type Role<'r> = &'r dyn Fn(&Values, &dyn Fn());

/// One role fills the slots of a ring, another releases them. The first one also writes a count to
/// shared memory.
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
fn assert_different(give: Role<'_>, take: Role<'_>) {
    assert!(
        !violations(&ring(give, take)).is_empty(),
        "proved, though the roles differ"
    );
    proved(&ring(give, give));
    proved(&ring(take, take));
}

#[test]
fn skipping_negative_pages_in_one_role_is_refuted() {
    let skips: Role<'_> = &|v, step| {
        steps(v.n).each(|i| {
            let page = v.pages.load(i);
            if_(page.ge(0i32), step);
        });
    };
    let takes_all: Role<'_> = &|v, step| steps(v.n).each(|_| step());
    assert_different(skips, takes_all);
}

#[test]
fn negative_constants_compare_as_signed() {
    assert_different(&|v, step| if_(v.signed.gt(-1i32), step), &|_, step| step());
    assert_different(
        &|v, step| range(0i32, v.signed).each(|_| step()),
        &|v, step| range(-1i32, v.signed).each(|_| step()),
    );
}

#[test]
fn a_cast_to_16_bits_changes_the_value() {
    assert_different(&|v, step| steps(v.n).each(|_| step()), &|v, step| {
        steps(v.n.cast::<u16>().cast::<u32>()).each(|_| step())
    });
}

#[test]
fn a_cast_through_f32_changes_the_value() {
    assert_different(&|v, step| steps(v.n).each(|_| step()), &|v, step| {
        steps(v.n.cast::<f32>().cast::<u32>()).each(|_| step())
    });
}

#[test]
fn a_partial_load_of_a_word_changes_the_value() {
    assert_different(
        &|v, step| steps(v.counts.whole().load(0u32, 0u32)).each(|_| step()),
        &|v, step| {
            let [half] = v.counts.whole().load_at_byte::<u16, 1>(0u32.reg());
            steps(half.cast::<u32>()).each(|_| step());
        },
    );
}

#[test]
fn a_negative_difference_is_large_as_unsigned() {
    assert_different(
        &|v, step| if_((v.signed - v.other).bitcast::<u32>().lt(10u32), step),
        &|v, step| if_((v.signed - v.other).lt(10i32), step),
    );
}

#[test]
fn values_of_64_bits_are_not_truncated() {
    let far: Role<'_> = &|v, step| if_(v.wide.gt(1u64 << 33), step);
    assert!(!violations(&ring(&|_, _| {}, far)).is_empty());
    proved(&ring(far, far));
    assert_different(
        &|v, step| steps(v.wide.cast::<u32>().min(5u32)).each(|_| step()),
        &|v, step| steps(v.wide.min(5u64).cast::<u32>()).each(|_| step()),
    );
}

#[test]
fn lanes_agree_is_also_true_if_all_lanes_are_false() {
    assert_different(&|v, step| if_(v.n.gt(3u32), step), &|v, step| {
        if_(lanes_agree(v.n.gt(3u32)), step)
    });
    proved(&ring(
        &|v, step| if_(all_lanes(v.n.gt(3u32)), step),
        &|v, step| if_(any_lane(v.n.gt(3u32)), step),
    ));
}

#[test]
fn a_shuffle_from_one_lane_is_warp_uniform() {
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
    assert!(!violations(&ring(other, &|v, step| steps(v.n).each(|_| step()))).is_empty());
}

#[test]
fn a_variable_keeps_its_value_over_an_empty_loop() {
    let sets: Role<'_> = &|v, step| {
        let flag = Var::new(0u32);
        range(lane_id(), v.n)
            .step_by(32u32)
            .each(|_| flag.set(1u32));
        let any = any_lane(flag.get().eq(1u32));
        if_(any, step);
    };
    assert!(!violations(&ring(sets, &|_, step| step())).is_empty());
    let counts: Role<'_> = &|v, step| if_(v.n.gt(0u32), step);
    proved(&ring(counts, counts));
}
