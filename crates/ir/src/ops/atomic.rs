//! Strong accesses: atomics, reductions, and loads and stores that order what is around them.
//!
//! Strong accesses of threads in each other's scope do not race. A release
//! hands on what its thread did and knows, through the word it writes; an
//! acquire takes it from the word it reads; a relaxed access does neither.

mod atom;
mod op;
mod reduce;
mod strong;

pub use atom::Atomic;
pub use op::AtomicOp;
pub use reduce::Reduce;
pub use strong::{StrongLoad, StrongStore};

use crate::machine::{Access, Completion, Effects, Lanes, Machine, Memory, Proxy, Touch};
use crate::sync::{MemoryOrder, Semantics};
use crate::types::Type;
use crate::value::{At, Operand, RegId};

/// A word in every lane, zero-extended.
fn words<M: Machine>(m: &mut M, o: Operand, ty: Type) -> Lanes<u64> {
    match ty.bytes() {
        8 => m.get::<u64>(o),
        2 => m.get::<u16>(o).map(u64::from),
        _ => m.get::<u32>(o).map(u64::from),
    }
}

/// Writes a word to the active lanes of a register.
fn set_words<M: Machine>(m: &mut M, r: RegId, ty: Type, v: &Lanes<u64>) {
    match ty.bytes() {
        8 => m.set(r, v),
        2 => m.set(r, &v.map(|x| x as u16)),
        _ => m.set(r, &v.map(|x| x as u32)),
    }
}

/// One strong access of some bytes, and the order it gives.
fn touch(e: &mut dyn Effects, at: At, bytes: usize, order: MemoryOrder) {
    if order.sem.releases() {
        e.orders(order.scope);
    }
    e.touch(&Touch {
        memory: Memory::At(at, bytes as u32),
        access: Access::Atomic,
        proxy: Proxy::Generic,
        completion: Completion::Now,
        multicast: None,
    });
    if order.sem.acquires() {
        e.orders(order.scope);
    }
}

/// The `n`th word from a place on; several are in global memory.
fn nth(at: At, ty: Type, n: usize) -> At {
    match at {
        At::Global { addr, offset } => At::Global {
            addr,
            offset: offset.wrapping_add((n * ty.bytes()) as i32),
        },
        shared => shared,
    }
}

/// Refuses a number of words that are not changed together.
fn legal_words(op: AtomicOp, ty: Type, at: &At, n: usize) -> Result<(), String> {
    let global = matches!(at, At::Global { .. });
    let several = op == AtomicOp::Add && ty.is_float() && global;
    if n == 1 || several && [2, 4, 8].contains(&n) && n * ty.bytes() <= 16 {
        return Ok(());
    }
    Err(format!(
        "one word is changed, or 2, 4 or 8 floats of up to 16 bytes are added to in global memory, not {n} of {ty}{}",
        if global { "" } else { " in shared memory" }
    ))
}

/// The PTX version that has so many words.
fn words_since(n: usize) -> (u32, u32) {
    if n > 1 { (8, 1) } else { (8, 0) }
}

/// Refuses semantics that an instruction does not have.
fn legal_order(name: &str, order: MemoryOrder, legal: &[Semantics]) -> Result<(), String> {
    if legal.contains(&order.sem) {
        return Ok(());
    }
    let names: Vec<_> = legal.iter().map(|s| s.ptx()).collect();
    Err(format!(
        "{name} is {}, not {}",
        names.join(" or "),
        order.sem.ptx()
    ))
}

#[cfg(test)]
mod tests;
