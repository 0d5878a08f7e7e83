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
}
