//! `setmaxnreg.dec` returns registers to the pool of the CTA, and `setmaxnreg.inc` takes registers
//! from it. PTX defines `dec` only for a lower count and `inc` only for a higher one. The count at
//! the start depends on the threads of the CTA: 168 with 384 threads, 128 with 512. One more role
//! therefore can make a correct `setmaxnreg` wrong. `registers(n)` on a role selects the
//! instruction.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    k.role("load").warpgroups(1).body(|| setmaxnreg_dec(40));
    k.role("multiply").warpgroups(2).body(|| {
        setmaxnreg_dec(232); // the threads have 168 registers
    });
}

pub(super) fn repaired(k: Builder) {
    k.role("load").warpgroups(1).body(|| setmaxnreg_dec(40));
    k.role("multiply").warpgroups(2).body(|| {
        setmaxnreg_inc(232);
    });
}
