//! A `wgmma` in flight owns its accumulator registers, and the registers of an A operand. The
//! hardware does not interlock: an instruction that reads them gets a partial sum, and a write to
//! them is lost. The registers are free again after a `wgmma.wait_group` that covers the
//! instruction. `into_frag` waits and returns the values; `peek` of the raw layer returns the
//! registers without a wait.

use half::bf16;
use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let (x, y) = (k.pointer::<bf16>("x"), k.pointer::<f32>("y"));
    let a = k.tile::<bf16>("a", 64, 16).declare().whole();
    let b = k.tile::<bf16>("b", 8, 16).declare().whole();
    let full = k.barrier("full", 1).arrivals(1).at(0u32);
    k.role("multiply").warpgroups(1).body(|| {
        elect(|| {
            full.arrive_expect(2304u32);
            bulk_load(a, x.address(0u32), 2048u32, full);
            bulk_load(b, x.address(1024u32), 256u32, full);
        });
        full.wait(0u32);
        let acc = Acc::new(64, 8);
        acc.mma(&a, &b);
        let mut sums = Vec::new();
        acc.peek(|sum| sums.push(sum));
        y.store(thread_in_role(), sums[0]); // the wgmma may still add to the register
        acc.wait();
    });
}

pub(super) fn repaired(k: Builder) {
    let (x, y) = (k.pointer::<bf16>("x"), k.pointer::<f32>("y"));
    let a = k.tile::<bf16>("a", 64, 16).declare().whole();
    let b = k.tile::<bf16>("b", 8, 16).declare().whole();
    let full = k.barrier("full", 1).arrivals(1).at(0u32);
    k.role("multiply").warpgroups(1).body(|| {
        elect(|| {
            full.arrive_expect(2304u32);
            bulk_load(a, x.address(0u32), 2048u32, full);
            bulk_load(b, x.address(1024u32), 256u32, full);
        });
        full.wait(0u32);
        let acc = Acc::new(64, 8);
        acc.mma(&a, &b);
        acc.wait();
        let mut sums = Vec::new();
        acc.peek(|sum| sums.push(sum));
        y.store(thread_in_role(), sums[0]);
    });
}
