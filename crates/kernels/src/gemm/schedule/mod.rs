//! Schedules: which roles a GEMM kernel has, and how they share its tiles.
//!
//! | where | roles |
//! |---|---|
//! | `cooperative` | a producer; consumers that share each tile |
//! | `ping_pong` | a producer; two consumers that take tiles and the tensor cores in turn |
//! | `storer` | as cooperative, and a role that stores |
//! | `double_buffer` | every warpgroup loads and multiplies |
//! | `split_k` | as cooperative; two CTAs of a cluster split K |
//! | `stream_k` | as cooperative; all k-tiles are split evenly across CTAs |
//! | `two_consumer` | a producer; one consumer for the gate, one for up |
//! | `producer` | the role that loads every k-tile of every tile |
//! | `producer_over` | the same where a schedule visits k-tiles in its own way |

mod cooperative;
mod double_buffer;
mod ping_pong;
mod prelude;
mod producer;
mod producer_over;
mod split_k;
mod storer;
mod stream_k;
mod two_consumer;

use super::config::{Area, Config, Schedule};
use super::context::GemmContext;
use super::epilogue::Out;
use super::mainloop::Stage;
use super::problem::{Class, Factor};
use crate::roles as role;
pub(super) use crate::roles::CONSUMERS;
use half::{bf16, f16};
use warpline_family::float::Float;
use warpline_ir::build::*;
use warpline_ir::{E4m3, E5m2, Element};

/// Declares the kernel of a class and a config.
pub(super) fn declare(k: Builder, class: &Class, c: &Config) {
    macro_rules! out {
        ($a:ty, $b:ty) => {
            match class.out {
                Float::F32 => roles::<$a, $b, f32>(k, class, c),
                Float::F16 => roles::<$a, $b, f16>(k, class, c),
                Float::Bf16 => roles::<$a, $b, bf16>(k, class, c),
            }
        };
    }
    match class.factor {
        Factor::Bf16 => out!(bf16, bf16),
        Factor::F16 => out!(f16, f16),
        Factor::E4m3 => out!(E4m3, E4m3),
        Factor::E5m2 => out!(E5m2, E4m3),
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
        Schedule::SplitK { .. } => split_k::roles::<A, B, T>(k, gemm),
        Schedule::StreamK { .. } => stream_k::roles::<A, B, T>(k, gemm),
    }
}

/// The parameter behind which a consumer's partial tiles of stream-K are.
pub(super) fn partials(consumer: &str) -> String {
    format!("partials_{consumer}")
}

/// The ring of split-K through which a consumer gets the accumulators of the second CTA.
fn handed(k: Builder, consumer: &str, [rows, cols]: [u32; 2]) -> Ring<Tile<f32>> {
    let name = format!("handed_{consumer}");
    let ring = k.ring(&name, 1, |s| s.plain::<f32>(rows * cols / 512, 512));
    ring.posted()
}

/// A role that loads or stores.
fn helper(k: Builder, name: &str, c: &Config) -> RoleDecl {
    role::helper(k, name, c.registers.map(|r| r.load))
}

/// Declares producer and consumers; whole warpgroups come first.
fn in_order(c: &Config, producer: impl FnOnce(), consumers: impl FnOnce()) {
    role::in_order(c.registers, producer, consumers);
}

/// A role that multiplies, and its part of a tile.
fn consumer<T: Out>(k: Builder, gemm: &GemmContext<T>, i: u32) -> (RoleDecl, Area) {
    let role = role::consumer(k, i, gemm.config.registers);
    (role, gemm.area(i))
}

/// The ring, whose slots the CTAs of a cluster fill for each other if there is one.
fn multicast<A: Element, B: Element, T: Out>(
    gemm: &GemmContext<T>,
    ab: Stage<A, B>,
) -> Stage<A, B> {
    match gemm.config.cluster().size() {
        1 => ab,
        _ => ab.multicast(),
    }
}
