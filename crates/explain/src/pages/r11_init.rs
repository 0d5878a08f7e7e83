//! An mbarrier is a word in shared memory, and `mbarrier.init` is an ordinary write to it. A thread
//! that arrives before the initialization is visible works on an undefined word: the arrival is
//! lost, or the kernel hangs or faults. After the initialization, `fence.mbarrier_init` and a
//! barrier of all users make it visible, also to TMA. The builder emits all three for mbarriers
//! that are declared with `arrivals(n)`, and for rings.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let done = k.barrier("done", 1).at(0u32);
    k.role("all").warps(4).body(|| {
        elect(|| {
            done.init(128);
            fence_mbarrier_init();
        });
        done.arrive(); // other warps may arrive before the init
        done.wait(0u32);
    });
}

pub(super) fn repaired(k: Builder) {
    let done = k.barrier("done", 1).at(0u32);
    k.role("all").warps(4).body(|| {
        elect(|| {
            done.init(128);
            fence_mbarrier_init();
        });
        cta_sync();
        done.arrive();
        done.wait(0u32);
    });
}
