//! Bulk copies of a run of bytes, and the groups in which stores complete.
//!
//! Each active lane issues a copy of its own; usually one elected lane does.
//! Addresses and lengths are multiples of 16 bytes. Shared memory of a peer is
//! reached by its rank: the printer forms the address (`mapa`).

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
pub use reduce::{Reduce, Reduction};
pub use send::BulkSend;
pub use store::BulkStore;

use super::cluster::legal_cluster;
pub use super::policy::CacheHint;
pub(super) use super::policy::{hint_asm, hint_effects, hint_name};
use crate::lanes::lanes_of;
use crate::machine::{
    Access, Asm, BarAt, Completion, Fault, FaultKind, Machine, Memory, Proxy, SharedAt, Special,
    Touch,
};
use crate::target::Target;
use crate::types::Type;
use crate::value::Operand;

/// The mask's suffix and operand in PTX.
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

/// Refuses a target without bulk copies, or without clusters to multicast in.
pub(in crate::ops) fn legal_copy(target: &Target, multicast: bool) -> Result<(), String> {
    if !target.features.tma {
        return Err(format!("{} has no bulk copies", target.name));
    }
    if multicast {
        legal_cluster(target)
    } else {
        Ok(())
    }
}

/// A touch by a bulk engine.
pub(in crate::ops) fn touch(memory: Memory, access: Access, completion: Completion) -> Touch {
    Touch {
        memory,
        access,
        proxy: Proxy::Bulk,
        completion,
        multicast: None,
    }
}

/// Refuses a value that is not a multiple of what the engine moves.
pub(in crate::ops) fn aligned(what: &str, value: u64, to: u64) -> Result<(), Fault> {
    if value.is_multiple_of(to) {
        return Ok(());
    }
    Err(Fault::new(
        FaultKind::Misaligned,
        format!("{what} is a multiple of {to} bytes, not {value:#x}"),
    ))
}

/// Where a lane's copy arrives: shared memory and barrier of each receiver.
pub(in crate::ops) fn receivers<M: Machine>(
    m: &mut M,
    dst: SharedAt,
    bar: BarAt,
    mask: Option<u32>,
) -> Result<Vec<(SharedAt, BarAt)>, Fault> {
    if dst.cta != bar.cta {
        return Err(Fault::new(
            FaultKind::Operand,
            format!(
                "a copy and its barrier are in one CTA, not in those of rank {} and {}",
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
                "a multicast mask names some of the {size} CTAs of the cluster; {mask:#x} does not"
            ),
        ));
    }
    let to = |cta| (SharedAt { cta, ..dst }, BarAt { cta, ..bar });
    Ok(lanes_of(mask).map(|rank| to(rank as u32)).collect())
}

/// The alignment rules of the shared side of a bulk copy, and of its length.
fn check_run(shared: SharedAt, bytes: u32) -> Result<(), Fault> {
    aligned("the shared address of a bulk copy", shared.byte.into(), 16)?;
    aligned("the length of a bulk copy", bytes.into(), 16)
}

/// The alignment rule of the global side of a bulk copy.
fn check_global(address: u64) -> Result<(), Fault> {
    aligned("the global address of a bulk copy", address, 16)
}

#[cfg(test)]
mod tests;
