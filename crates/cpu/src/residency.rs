//! The number of resident CTAs.

use crate::compile::Code;
use warpline_ir::{Kernel, Target};

/// Limits of an SM: resident threads, resident CTAs, and the reserved shared memory per CTA.
const THREADS: u32 = 2048;
const CTAS: u32 = 32;
const RESERVED: u32 = 1024;

/// Returns the CTAs per SM, limited by threads, shared memory and registers.
///
/// Registers count only if a role sets a budget. A kernel that runs `setmaxnreg` has the registers of
/// the entry.
pub(crate) fn ctas_per_sm(kernel: &Kernel, code: &Code<'_>, target: &Target) -> u32 {
    let threads = kernel.threads().max(1);
    let shared = target.shared_bytes + RESERVED;
    let registers = kernel.roles.iter().filter_map(|r| r.registers).max();
    let registers = match registers {
        _ if code.moves_registers => target.entry_registers(threads),
        Some(r) => r.next_multiple_of(8),
        None => 0,
    };
    let by_registers = match registers {
        0 => CTAS,
        r => target.registers / (r * threads),
    };
    let by_shared = shared / (kernel.shared_bytes + RESERVED);
    (THREADS / threads)
        .min(by_shared)
        .min(by_registers)
        .clamp(1, CTAS)
}

/// Returns how many clusters are resident at once. The CTAs of a cluster may be on different SMs.
pub(crate) fn clusters(kernel: &Kernel, code: &Code<'_>, target: &Target) -> u64 {
    let ctas = u64::from(target.sms) * u64::from(ctas_per_sm(kernel, code, target));
    (ctas / u64::from(kernel.cluster_size())).max(1)
}
