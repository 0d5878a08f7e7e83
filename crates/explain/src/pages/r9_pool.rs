//! The register file of a CTA has a fixed size: the registers per thread at the start, times the
//! threads. `setmaxnreg.inc` waits until the pool has enough free registers. If the budgets of all
//! roles exceed the pool, the last warpgroup waits forever. ptxas does not check the sum, so the
//! kernel compiles and hangs at its start.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    // 3 warpgroups start with 168 registers per thread: the budgets may add up to 504.
    k.role("load").warpgroups(1).registers(32).body(|| {}); // 32 + 240 + 240 = 512
    k.role("multiply").warpgroups(2).registers(240).body(|| {});
}

pub(super) fn repaired(k: Builder) {
    // 3 warpgroups start with 168 registers per thread: the budgets may add up to 504.
    k.role("load").warpgroups(1).registers(24).body(|| {});
    k.role("multiply").warpgroups(2).registers(240).body(|| {});
}
