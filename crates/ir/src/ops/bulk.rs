//! Bulk copies of consecutive bytes (`cp.async.bulk`), and bulk async-groups.
//!
//! Each active lane issues its own copy; usually one elected lane does.
//! Addresses and lengths are multiples of 16 bytes. An operand names shared
//! memory of a peer by its rank; the printer computes the address (`mapa`).

mod groups;
mod job;
mod load;
mod prefetch;
mod reduce;
mod send;
mod store;

pub use groups::{BulkCommit, BulkWait};
pub use job::BulkJob;
pub use load::BulkLoad;
pub use prefetch::BulkPrefetch;
pub(in crate::ops) use reduce::ReduceInto;
pub use reduce::{BulkReduce, Reduction};
pub use send::BulkSend;
pub use store::BulkStore;

use super::cluster::legal_cluster;
pub use super::policy::CacheHint;
pub(super) use super::policy::{hint_asm, hint_effects, hint_name};
use crate::lanes::lanes_of;
use crate::machine::{
    AccessKind, Asm, Completion, Fault, FaultKind, Machine, MemoryAccess, MemoryRegion, Proxy,
    ResolvedAddress, ResolvedBarrier, Special,
};
use crate::target::Target;
use crate::types::Type;
use crate::value::Operand;

/// Returns the PTX suffix and operand of a multicast mask.
pub(in crate::ops) fn multicast_asm(
    a: &mut dyn Asm,
    mask: Option<Operand>,
) -> (&'static str, String) {
    match mask {
        None => ("", String::new()),
        Some(mask) => {
            let (wide, narrow) = (a.in_reg(mask, Type::U32), a.temp(Type::U16));
            a.emit(format!("cvt.u16.u32 {narrow}, {wide}"));
            (".multicast::cluster", format!(", {narrow}"))
        }
    }
}

/// Rejects a target without bulk copies, or without clusters for a multicast.
pub(in crate::ops) fn legal_copy(target: &Target, multicast: bool) -> Result<(), String> {
    if !target.features.tma {
        return Err(format!(
            "{} does not support bulk copies (TMA)",
            target.name
        ));
    }
    if multicast {
        legal_cluster(target)
    } else {
        Ok(())
    }
}

/// Returns an access by the TMA unit.
pub(in crate::ops) fn async_access(
    memory: MemoryRegion,
    access: AccessKind,
    completion: Completion,
) -> MemoryAccess {
    MemoryAccess {
        memory,
        access,
        proxy: Proxy::Bulk,
        completion,
        multicast: None,
    }
}

/// Checks the alignment of an address or length.
pub(in crate::ops) fn check_aligned(what: &str, value: u64, to: u64) -> Result<(), Fault> {
    if value.is_multiple_of(to) {
        return Ok(());
    }
    Err(Fault::new(
        FaultKind::Misaligned,
        format!("has {what} {value:#x}; it must be a multiple of {to} bytes"),
    ))
}

/// Returns the destination and the mbarrier in each CTA that receives a lane's copy.
pub(in crate::ops) fn receivers<M: Machine>(
    m: &mut M,
    dst: ResolvedAddress,
    bar: ResolvedBarrier,
    mask: Option<u32>,
) -> Result<Vec<(ResolvedAddress, ResolvedBarrier)>, Fault> {
    if dst.cta != bar.cta {
        return Err(Fault::new(
            FaultKind::Operand,
            format!(
                "has its destination in the CTA of rank {} but its mbarrier in the CTA of rank {}; both must be in the same CTA",
                dst.cta, bar.cta
            ),
        ));
    }
    let Some(mask) = mask else {
        return Ok(vec![(dst, bar)]);
    };
    let size = m.special(Special::ClusterSize)[0];
    if mask == 0 || size < 16 && mask >> size != 0 || mask >> 16 != 0 {
        return Err(Fault::new(
            FaultKind::Operand,
            format!(
                "has multicast mask {mask:#x}; it must name at least one CTA, and only ranks below the cluster size {size}"
            ),
        ));
    }
    let receiver_in = |cta| {
        (
            ResolvedAddress { cta, ..dst },
            ResolvedBarrier { cta, ..bar },
        )
    };
    Ok(lanes_of(mask)
        .map(|rank| receiver_in(rank as u32))
        .collect())
}

/// Checks the alignment of the shared address and of the length of a bulk copy.
fn check_shared(shared: ResolvedAddress, bytes: u32) -> Result<(), Fault> {
    check_aligned("shared address", shared.byte.into(), 16)?;
    check_aligned("length", bytes.into(), 16)
}

/// Checks the alignment of the global address of a bulk copy.
fn check_global(address: u64) -> Result<(), Fault> {
    check_aligned("global address", address, 16)
}

#[cfg(test)]
mod tests;
