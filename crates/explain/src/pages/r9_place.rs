//! All warps of a warpgroup must execute the same `setmaxnreg`, and ptxas must know the register
//! count at every instruction. In a condition or a loop, the count depends on the path: ptxas then
//! drops every `setmaxnreg` of the kernel and prints only a note. The consumers keep the registers
//! of the launch and spill. A warp that exits before `setmaxnreg` does not execute it at all.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let (n, y) = (k.param::<u32>("n"), k.pointer::<f32>("y"));
    k.role("load").warpgroups(1).body(|| setmaxnreg_dec(24));
    k.role("multiply").warpgroups(2).body(|| {
        if_(n.gt(0u32), || {
            setmaxnreg_inc(240); // 168 or 240 registers after it
            y.store(thread_in_role(), 1.0f32);
        });
    });
}

pub(super) fn repaired(k: Builder) {
    let (n, y) = (k.param::<u32>("n"), k.pointer::<f32>("y"));
    k.role("load").warpgroups(1).body(|| setmaxnreg_dec(24));
    k.role("multiply").warpgroups(2).body(|| {
        setmaxnreg_inc(240);
        if_(n.gt(0u32), || y.store(thread_in_role(), 1.0f32));
    });
}
