use crate::rules::kernel;
use warpline_check::rules::{dependent_launch, pdl_unsafe, written_params};
use warpline_ir::builder::*;
use warpline_ir::ops::memory::PrefetchLevel;
use warpline_ir::{Kernel, MemoryOrder, ParamId, Scope, Target};
use warpline_testkit::verdict::violations;

/// A kernel with one role that copies a vector by `body`.
fn copy(body: impl FnOnce(Global<u32>, Global<u32>)) -> Kernel {
    kernel(|k| {
        let (x, y) = (k.pointer::<u32>("x"), k.pointer::<u32>("y"));
        k.role("all").body(|| body(x, y));
    })
}

fn early_access_lines(kernel: &Kernel) -> Vec<u32> {
    let all = dependent_launch(kernel, &Target::SM_90A);
    assert!(all.iter().all(|r| r.code() == "R16.wait"));
    all.iter().filter_map(|r| Some(r.at?.line)).collect()
}

#[test]
fn a_wait_before_all_accesses_passes() {
    let k = copy(|x, y| {
        x.prefetch(lane_id(), PrefetchLevel::L2);
        wait_prerequisites();
        y.store(lane_id(), x.load(lane_id()));
    });
    assert_eq!(violations(&k), []);
    assert!(early_access_lines(&k).is_empty());
}

#[test]
fn a_read_before_the_wait_is_refuted() {
    let mut line = 0;
    let k = copy(|x, y| {
        line = line!() + 1;
        let value = x.load(lane_id());
        wait_prerequisites();
        y.store(lane_id(), value);
    });
    assert_eq!(violations(&k), [("R16.wait", line, None)]);
}

#[test]
fn pdl_safe_memory_may_be_read_but_not_written_before_the_wait() {
    let k = copy(|x, y| {
        let value = x.pdl_safe().load(lane_id());
        wait_prerequisites();
        y.store(lane_id(), value);
    });
    assert_eq!(violations(&k), []);
    assert_eq!(written_params(&k, &Target::SM_90A), [ParamId(1)]);
    assert_eq!(pdl_unsafe(&k, &[ParamId(1)]), []);
    assert_eq!(pdl_unsafe(&k, &[ParamId(0)])[0].code(), "R16.pdl-safe");
    let mut line = 0;
    let k = copy(|x, _| {
        line = line!() + 1;
        x.pdl_safe().store(lane_id(), 1u32);
        wait_prerequisites();
    });
    assert_eq!(violations(&k), [("R16.wait", line, None)]);
}

#[test]
fn a_strong_load_is_no_write() {
    let relaxed = MemoryOrder::relaxed(Scope::Gpu);
    let k = copy(|x, y| {
        wait_prerequisites();
        y.store(lane_id(), x.atomic_ref(lane_id()).load(relaxed));
    });
    assert_eq!(written_params(&k, &Target::SM_90A), [ParamId(1)]);
}

#[test]
fn a_write_after_a_conditional_wait_is_refuted() {
    let mut line = 0;
    let k = copy(|_, y| {
        if_(lane_id().lt(3u32), wait_prerequisites);
        line = line!() + 1;
        y.store(lane_id(), 1u32);
    });
    assert_eq!(violations(&k), [("R16.wait", line, None)]);
    let k = copy(|_, y| {
        if_else(lane_id().lt(3u32), wait_prerequisites, wait_prerequisites);
        y.store(lane_id(), 1u32);
    });
    assert_eq!(violations(&k), []);
}

#[test]
fn a_wait_of_one_lane_covers_only_that_lane() {
    let k = copy(|_, y| {
        elect_lane(wait_prerequisites);
        elect_lane(|| y.store(0u32, 1u32));
    });
    assert_eq!(violations(&k), []);
    let mut line = 0;
    let k = copy(|_, y| {
        elect_lane(wait_prerequisites);
        line = line!() + 1;
        y.store(lane_id(), 1u32);
    });
    assert_eq!(violations(&k), [("R16.wait", line, None)]);
}

#[test]
fn every_role_needs_its_own_wait() {
    let mut line = 0;
    let k = kernel(|k| {
        let (x, y) = (k.pointer::<u32>("x"), k.pointer::<u32>("y"));
        k.role("first").body(|| {
            wait_prerequisites();
            x.store(lane_id(), 1u32);
        });
        k.role("second").body(|| {
            line = line!() + 1;
            y.store(lane_id(), 2u32);
        });
    });
    assert_eq!(violations(&k), [("R16.wait", line, None)]);
}

#[test]
fn a_kernel_without_a_wait_is_checked_only_as_a_dependent_launch() {
    let mut line = 0;
    let k = copy(|x, y| {
        line = line!() + 1;
        y.store(lane_id(), x.load(lane_id()));
    });
    assert_eq!(violations(&k), []);
    assert_eq!(early_access_lines(&k), [line]);
    let idle = kernel(|k| k.role("all").body(|| {}));
    assert!(early_access_lines(&idle).is_empty());
}
