//! The assumptions of a proof.

use crate::rules::kernel;
use warpline_check::{Assumption, check, examine};
use warpline_ir::builder::*;
use warpline_ir::ops::atomic::AtomicOp;
use warpline_ir::{Kernel, MemoryOrder, Scope, Target};
use warpline_testkit::raw::RawKernel;

fn assumptions(k: &Kernel) -> Vec<Assumption> {
    let checked = check(k.clone(), &Target::SM_90A).unwrap_or_else(|e| panic!("{e}"));
    checked.assumptions().to_vec()
}

fn lines(all: &[Assumption]) -> Vec<(&'static str, u32)> {
    let line = |a: &Assumption| (a.code, a.at.map_or(0, |at| at.line));
    all.iter().map(line).collect()
}

#[test]
fn a_kernel_without_global_memory_assumes_nothing() {
    assert_eq!(assumptions(&RawKernel::one().0), []);
}

#[test]
fn a_written_buffer_assumes_one_writer_per_byte() {
    let mut line = 0;
    let k = kernel(|k| {
        let (x, y) = (k.pointer::<u32>("x"), k.pointer::<u32>("y"));
        k.role("all").body(|| {
            line = line!() + 1;
            y.store(lane_id(), x.load(lane_id()));
        });
    });
    let all = assumptions(&k);
    assert_eq!(lines(&all), [("A.writer", line)]);
    assert!(all[0].text.contains("bytes of y or"), "{}", all[0]);
    // The second check finds the proof and its assumptions in the cache.
    assert_eq!(assumptions(&k), all);
    assert_eq!(examine(&k, &Target::SM_90A).assumptions, all);
}

#[test]
fn flags_and_locks_add_assumptions() {
    let (mut wait, mut raise, mut lock) = (0, 0, 0);
    let k = kernel(|k| {
        let (flags, word) = (k.flags("flags"), k.pointer::<u32>("lock"));
        k.role("all").body(|| {
            raise = line!() + 1;
            flags.signal(cta_id());
            wait = line!() + 1;
            flags.wait(cta_id() ^ 1u32, 1u32);
            elect_lane(|| {
                let order = MemoryOrder::acquire(Scope::Gpu);
                let word = word.atomic_ref(0u32);
                while_(
                    || {
                        lock = line!() + 1;
                        word.atomic(AtomicOp::Exch, 1u32, order).ne(0u32)
                    },
                    || nanosleep(20),
                );
                word.store(0u32, MemoryOrder::release(Scope::Gpu));
            });
        });
    });
    let all = assumptions(&k);
    let expected = [("A.lock", lock), ("A.writer", raise), ("A.flags", wait)];
    assert_eq!(lines(&all), expected);
    let text = examine(&k, &Target::SM_90A).text();
    assert_eq!(text.matches("\nassumes: ").count(), 3, "{text}");
}
