//! `setmaxnreg` encodes the new register count of a thread as a multiple of 8 from 24 to 256. ptxas
//! rejects other numbers.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    k.role("load").warpgroups(1).registers(30).body(|| {}); // not a multiple of 8
    k.role("multiply").warpgroups(2).registers(232).body(|| {});
}

pub(super) fn repaired(k: Builder) {
    k.role("load").warpgroups(1).registers(32).body(|| {});
    k.role("multiply").warpgroups(2).registers(232).body(|| {});
}
