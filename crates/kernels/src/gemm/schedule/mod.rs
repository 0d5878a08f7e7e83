//! Schedules: the roles of a GEMM kernel and their share of a tile.
//!
//! | where | roles |
//! |---|---|
//! | `cooperative` | a producer; consumers that share each tile |
//! | `ping_pong` | a producer; two consumers with tiles of their own that take turns at the tensor cores |
//! | `storer` | cooperative, with a role that stores the output |
//! | `double_buffer` | no roles: every warpgroup loads and multiplies |
//! | `split_k` | cooperative; each CTA of a cluster computes a part of K |
//! | `split_k_in_memory` | as `split_k`, for any number of CTAs, which exchange accumulators through global memory |
//! | `part_of_k` | the k-tiles of a CTA of such a group |
//! | `stream_k` | cooperative; all k-tiles are split evenly across CTAs |
//! | `two_consumer` | a producer; one consumer for the gate, one for up |
//! | `producer` | the role that loads every k-tile of every tile |
//! | `producer_over` | the producer of schedules with their own order of k-tiles |

mod cooperative;
mod double_buffer;
mod part_of_k;
mod ping_pong;
mod prelude;
mod producer;
mod producer_over;
mod split_k;
mod split_k_in_memory;
mod storer;
mod stream_k;
mod two_consumer;

use super::config::{Config, Exchange, Schedule, TileRegion};
use super::context::GemmContext;
use super::epilogue::Out;
use super::mainloop::{AbRing, gather};
use super::problem::{Class, OperandType};
use crate::roles;
pub(super) use crate::roles::CONSUMERS;
use half::{bf16, f16};
use warpline_family::float::FloatType;
use warpline_ir::builder::*;
use warpline_ir::{E4m3, E5m2, Element, Tf32};

/// Declares the kernel of a class and a config.
pub(super) fn declare(k: Builder, class: &Class, c: &Config) {
    macro_rules! out {
        ($a:ty, $b:ty) => {
            match class.out {
                FloatType::F32 => roles::<$a, $b, f32>(k, class, c),
                FloatType::F16 => roles::<$a, $b, f16>(k, class, c),
                FloatType::Bf16 => roles::<$a, $b, bf16>(k, class, c),
            }
        };
    }
    match class.dtype {
        OperandType::Bf16 => out!(bf16, bf16),
        OperandType::F16 => out!(f16, f16),
        OperandType::E4m3 => out!(E4m3, E4m3),
        OperandType::E5m2 => out!(E5m2, E4m3),
        OperandType::F32 => out!(Tf32, Tf32),
    }
}

/// Declares the roles of a schedule.
fn roles<A: Element, B: Element, T: Out>(k: Builder, class: &Class, c: &Config) {
    let gemm = &GemmContext::<T>::declare(k, class, c);
    match c.schedule {
        Schedule::DoubleBuffer { .. } => double_buffer::roles::<A, B, T>(k, gemm),
        Schedule::Cooperative { .. } => cooperative::roles::<A, B, T>(k, gemm),
        Schedule::PingPong { .. } => ping_pong::roles::<A, B, T>(k, gemm),
        Schedule::Storer { .. } => storer::roles::<A, B, T>(k, gemm),
        Schedule::TwoConsumer { .. } => two_consumer::roles::<A, B, T>(k, gemm),
        Schedule::SplitK { exchange, .. } => match exchange {
            Exchange::Cluster => split_k::roles::<A, B, T>(k, gemm),
            Exchange::Memory => split_k_in_memory::roles::<A, B, T>(k, gemm),
        },
        Schedule::StreamK { .. } => stream_k::roles::<A, B, T>(k, gemm),
    }
}

/// Returns the parameter name of a consumer's partial tiles.
pub(super) fn partials_name(consumer: &str) -> String {
    format!("partials_{consumer}")
}

/// Declares the split-K rings that carry accumulators to a consumer of the first CTA: one for each other
/// CTA, with its rank.
fn exchange_rings(
    k: Builder,
    consumer: &str,
    parts: u32,
    [rows, cols]: [u32; 2],
) -> impl Iterator<Item = (u32, Ring<Tile<f32>>)> {
    (1..parts).map(move |rank| {
        let name = match parts {
            2 => format!("exchange_{consumer}"),
            _ => format!("exchange{rank}_{consumer}"),
        };
        let ring = k.ring(&name, 1, |s| s.unswizzled::<f32>(rows * cols / 512, 512));
        (rank, ring.async_stores())
    })
}

/// Sends the accumulators of the CTA of that rank to the first CTA.
#[track_caller]
fn send(rank: Reg<u32>, rings: &[(u32, Ring<Tile<f32>>)], acc: &Frag) {
    let send_on = |ring: Ring<Tile<f32>>| {
        let slot = ring.acquire_remote(0u32);
        acc.store_async_thread_major(&slot);
        slot.commit();
    };
    match rings {
        [(_, ring)] => send_on(*ring),
        _ => rings
            .iter()
            .for_each(|&(own, ring)| if_(rank.eq(own), || send_on(ring))),
    }
}

/// Declares a role that loads or stores.
fn copy_role(k: Builder, name: &str, c: &Config) -> RoleDecl {
    roles::copy_role(k, name, c.registers.map(|r| r.load))
}

/// Declares the role of the producer.
fn producer_role<T: Out>(k: Builder, gemm: &GemmContext<T>) -> RoleDecl {
    match gemm.class.gathers() {
        false => copy_role(k, "load", &gemm.config),
        true => gather::role(k, "gather", gemm.config.registers.map(|r| r.load)),
    }
}

/// Runs `body` in the threads that load: one thread, or all threads of a producer that gathers.
#[track_caller]
fn in_producer_threads<T: Out>(gemm: &GemmContext<T>, body: impl FnOnce()) {
    match gemm.class.gathers() {
        false => elect(body),
        true => body(),
    }
}

/// Prefetches the tensor map of C in one thread of the producer.
#[track_caller]
fn prefetch_map<T: Out>(gemm: &GemmContext<T>) {
    match gemm.class.gathers() {
        false => gemm.epilogue.prefetch_map(),
        true => elect(|| gemm.epilogue.prefetch_map()),
    }
}

/// Declares the producer and the consumers; roles of whole warpgroups come first.
fn declare_roles(c: &Config, producer: impl FnOnce(), consumers: impl FnOnce()) {
    roles::declare_roles(c.registers, producer, consumers);
}

/// Declares a consumer role; also returns its region of a tile.
fn consumer<T: Out>(k: Builder, gemm: &GemmContext<T>, i: u32) -> (RoleDecl, TileRegion) {
    let role = roles::consumer(k, i, gemm.config.registers);
    (role, gemm.region(i))
}

/// Makes the ring multicast if the kernel has a cluster: its CTAs fill each other's slots.
fn multicast<A: Element, B: Element, T: Out>(
    gemm: &GemmContext<T>,
    ab: AbRing<A, B>,
) -> AbRing<A, B> {
    match gemm.config.cluster().size() {
        1 => ab,
        _ => ab.multicast(),
    }
}
