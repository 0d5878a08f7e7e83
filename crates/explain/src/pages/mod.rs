//! One file for each code.

use crate::page::{Broken, Example, FoundBy};

/// The broken version of a page. `broken` takes a `Builder`, or it takes a `&mut Kernel` or a
/// `&mut Launch` of the repaired kernel and edits it.
macro_rules! broken {
    ($file:ident) => {
        Broken::Built($file::broken)
    };
    ($file:ident edits_kernel) => {
        Broken::EditedKernel($file::broken)
    };
    ($file:ident edits_launch) => {
        Broken::EditedLaunch($file::broken)
    };
}

macro_rules! pages {
    ($($file:ident $code:literal $found_by:ident $($edits:ident)?;)*) => {
        $(mod $file;)*
        /// Every page, in the order of the codes.
        pub const EXAMPLES: &[Example] = &[$(Example {
            code: $code,
            found_by: FoundBy::$found_by,
            broken: broken!($file $($edits)?),
            repaired: $file::repaired,
            module: None,
            source: include_str!(concat!(stringify!($file), ".rs")),
        }),*];
    };
}

pages! {
    r1_arrivals "R1.arrivals" Checker;
    r1_phase "R1.phase" Checker;
    r2_bytes "R2.bytes" Checker;
    r3_parity "R3.parity" Checker;
    r3_order "R3.order" Checker;
    r4_trips "R4.trips" Checker;
    r5_write "R5.write" Checker;
    r5_read "R5.read" Checker;
    r6_bulk "R6.bulk" Checker;
    r7_release "R7.release" Checker;
    r7_registers "R7.registers" Checker;
    r7_fence "R7.fence" Checker edits_kernel;
    r8_size "R8.size" Checker;
    r8_start "R8.start" Checker edits_kernel;
    r8_exit "R8.exit" Checker edits_kernel;
    r8_scope "R8.scope" Checker;
    r8_agree "R8.agree" Checker;
    r9_count "R9.count" Checker;
    r9_warpgroup "R9.warpgroup" Checker;
    r9_place "R9.place" Checker;
    r9_direction "R9.direction" Checker;
    r9_pool "R9.pool" Checker;
    r10_id "R10.id" Checker edits_kernel;
    r10_unique "R10.unique" Checker edits_kernel;
    r10_threads "R10.threads" Checker;
    r10_same "R10.same" Checker;
    r10_count "R10.count" Checker;
    r10_recycle "R10.recycle" Checker;
    r11_init "R11.init" Checker;
    r12_size "R12.size" Checker;
    r12_tile "R12.tile" Checker edits_kernel;
    r12_align "R12.align" Checker edits_kernel;
    r12_inside "R12.inside" Checker edits_kernel;
    r12_overlap "R12.overlap" Checker edits_kernel;
    r12_alias "R12.alias" Checker;
    r12_bounds "R12.bounds" Checker;
    r13_map "R13.map" Checker edits_kernel;
    r13_mode "R13.mode" Checker;
    r13_coords "R13.coords" Checker;
    r13_reduce "R13.reduce" Checker;
    r13_bytes "R13.bytes" Checker;
    r13_swizzle "R13.swizzle" Checker;
    r13_view "R13.view" Checker;
    r13_launch "R13.launch" Run edits_launch;
    r14_shape "R14.shape" Checker edits_kernel;
    r14_operand "R14.operand" Checker;
    r14_warpgroup "R14.warpgroup" Checker;
    r14_budget "R14.budget" Checker;
    r15_warp "R15.warp" Checker;
    r15_mask "R15.mask" Checker;
    r15_elect "R15.elect" Checker;
    r15_lanes "R15.lanes" Checker;
    r15_late "R15.late" Checker;
    r15_whole "R15.whole" Checker edits_kernel;
    r16_wait "R16.wait" Checker;
    r16_pdl_safe "R16.pdl-safe" Run;
    r17_cycle "R17.cycle" Checker;
    r17_run "R17.run" Checker;
    r17_endless "R17.endless" Checker;
    r17_step "R17.step" Checker;
    r18_resident "R18.resident" Checker;
    r18_raised "R18.raised" Checker;
    r18_cycle "R18.cycle" Checker;
    r18_acquire "R18.acquire" Checker;
    r18_release "R18.release" Checker;
    r18_scope "R18.scope" Checker;
    r18_locks "R18.locks" Checker;
    r18_complete "R18.complete" Checker;
    r18_proxy "R18.proxy" Checker;
    r18_read_only "R18.read-only" Checker;
    r18_writer "R18.writer" Run;
    s_reference "S.reference" Checker;
    s_param "S.param" Checker;
    s_param_name "S.param-name" Checker edits_kernel;
    s_op "S.op" Checker;
    s_role_name "S.role-name" Checker edits_kernel;
    s_role_warps "S.role-warps" Checker edits_kernel;
    s_role_order "S.role-order" Checker edits_kernel;
    s_threads "S.threads" Checker;
    s_stage "S.stage" Checker;
    s_view "S.view" Checker edits_kernel;
    s_place "S.place" Checker;
    s_barrier "S.barrier" Checker;
    s_type "S.type" Checker edits_kernel;
    s_scope "S.scope" Checker edits_kernel;
    s_loop "S.loop" Checker edits_kernel;
    s_defined "S.defined" Checker edits_kernel;
    u_unknown "U.unknown" Checker;
    u_states "U.states" Checker;
    a_writer "A.writer" Assumption;
    a_flags "A.flags" Assumption;
    a_lock "A.lock" Assumption;
    a_alias "A.alias" Assumption;
    a_overflow "A.overflow" Assumption;
    a_ends "A.ends" Assumption;
    a_wrap "A.wrap" Assumption;
    bank_conflicts "bank-conflicts" Linter;
    coalescing "coalescing" Linter;
    divergence "divergence" Linter;
    registers "registers" Linter;
    spills "spills" Linter;
    idle_roles "idle-roles" Linter;
    block_sizes "block-sizes" Linter;
    stages "stages" Linter;
    unused_stages "unused-stages" Linter;
}
