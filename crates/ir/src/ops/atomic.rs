//! Strong accesses of the PTX memory model: atomics, reductions, and loads and stores with a memory order.
//!
//! Strong accesses of threads in each other's scope do not race. A release
//! publishes all events ordered before it, through the word it writes; an
//! acquire that reads this word is ordered after them. A relaxed access does
//! neither.

mod atom;
mod op;
mod reduce;
mod strong;

pub use atom::Atomic;
pub use op::AtomicOp;
pub use reduce::AtomicReduce;
pub use strong::{StrongLoad, StrongStore};

use crate::machine::{
    AccessKind, Completion, Effects, Machine, MemoryAccess, MemoryRegion, PerLane, Proxy,
};
use crate::sync::{MemoryOrder, Semantics};
use crate::types::Type;
use crate::value::{MemoryAddress, Operand, RegId};

/// Reads a word of every lane, zero-extended.
fn get_word<M: Machine>(m: &mut M, o: Operand, ty: Type) -> PerLane<u64> {
    match ty.bytes() {
        8 => m.get::<u64>(o),
        2 => m.get::<u16>(o).map(u64::from),
        _ => m.get::<u32>(o).map(u64::from),
    }
}

/// Writes a word to the active lanes of a register.
fn set_word<M: Machine>(m: &mut M, r: RegId, ty: Type, v: &PerLane<u64>) {
    match ty.bytes() {
        8 => m.set(r, v),
        2 => m.set(r, &v.map(|x| x as u16)),
        _ => m.set(r, &v.map(|x| x as u32)),
    }
}

/// Reports a strong access and its memory order.
fn strong_access(e: &mut dyn Effects, at: MemoryAddress, bytes: usize, order: MemoryOrder) {
    if order.sem.releases() {
        e.orders(order.scope);
    }
    e.access(&MemoryAccess {
        memory: MemoryRegion::PerLane(at, bytes as u32),
        access: AccessKind::Atomic,
        proxy: Proxy::Generic,
        completion: Completion::Now,
        multicast: None,
    });
    if order.sem.acquires() {
        e.orders(order.scope);
    }
}

/// Returns the address of word `n` of an access; only global accesses have several words.
fn word_address(at: MemoryAddress, ty: Type, n: usize) -> MemoryAddress {
    match at {
        MemoryAddress::Global { addr, offset } => MemoryAddress::Global {
            addr,
            offset: offset.wrapping_add((n * ty.bytes()) as i32),
        },
        shared => shared,
    }
}

/// Rejects a vector that an atomic access does not support.
fn legal_words(op: AtomicOp, ty: Type, at: &MemoryAddress, n: usize) -> Result<(), String> {
    let global = matches!(at, MemoryAddress::Global { .. });
    let is_vector_add = op == AtomicOp::Add && ty.is_float() && global;
    if n == 1 || is_vector_add && [2, 4, 8].contains(&n) && n * ty.bytes() <= 16 {
        return Ok(());
    }
    Err(format!(
        "cannot update {n} words of {ty} at once in {} memory; only float additions in global memory take 2, 4 or 8 words, of at most 16 bytes",
        if global { "global" } else { "shared" }
    ))
}

/// Returns the minimum PTX version for `n` words.
fn words_ptx_version(n: usize) -> (u32, u32) {
    if n > 1 { (8, 1) } else { (8, 0) }
}

/// Rejects semantics that the instruction does not support.
fn legal_order(name: &str, order: MemoryOrder, legal: &[Semantics]) -> Result<(), String> {
    if legal.contains(&order.sem) {
        return Ok(());
    }
    let names: Vec<_> = legal.iter().map(|s| s.ptx()).collect();
    Err(format!(
        "{name} does not support {}; supported: {}",
        order.sem.ptx(),
        names.join(", ")
    ))
}

#[cfg(test)]
mod tests;
