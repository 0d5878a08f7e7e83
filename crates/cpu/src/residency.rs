//! The number of resident CTAs.

use crate::compile::Code;
use warpline_ir::{Kernel, Target};

const MAX_THREADS_PER_SM: u32 = 2048;
const MAX_CTAS_PER_SM: u32 = 32;
/// The shared memory that the system reserves for each CTA.
const RESERVED_SHARED_BYTES: u32 = 1024;

/// Returns the CTAs per SM, limited by threads, shared memory and registers.
///
/// Registers count only if a role sets a budget. A kernel that runs `setmaxnreg` holds the registers
/// of its entry.
pub(crate) fn ctas_per_sm(kernel: &Kernel, code: &Code<'_>, target: &Target) -> u32 {
    let threads = kernel.threads().max(1);
    let shared = target.shared_bytes + RESERVED_SHARED_BYTES;
    let registers = kernel.roles.iter().filter_map(|r| r.registers).max();
    let registers = match registers {
        _ if code.runs_setmaxnreg => target.entry_registers(threads),
        Some(r) => r.next_multiple_of(8),
        None => 0,
    };
    let by_registers = match registers {
        0 => MAX_CTAS_PER_SM,
        r => target.registers / (r * threads),
    };
    let by_shared = shared / (kernel.shared_bytes + RESERVED_SHARED_BYTES);
    (MAX_THREADS_PER_SM / threads)
        .min(by_shared)
        .min(by_registers)
        .clamp(1, MAX_CTAS_PER_SM)
}

/// Returns how many clusters are resident at once. The CTAs of a cluster may be on different SMs.
pub(crate) fn clusters(kernel: &Kernel, code: &Code<'_>, target: &Target) -> u64 {
    let ctas = u64::from(target.sms) * u64::from(ctas_per_sm(kernel, code, target));
    (ctas / u64::from(kernel.cluster_size())).max(1)
}
