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

mod cooperative;
mod double_buffer;
mod ping_pong;
mod prelude;
mod producer;
mod split_k;
mod storer;
mod stream_k;
mod two_consumer;

use super::config::{Area, Config, Form};
use super::context::GemmContext;
use super::epilogue::Out;
use super::mainloop::Stage;
use super::problem::Class;
use crate::roles;
pub(super) use crate::roles::CONSUMERS;
use warpline_ir::build::*;
use warpline_ir::{BuildErrors, Element, Kernel, Target};

/// Builds the kernel of a class and a config.
pub(super) fn build<A: Element, B: Element, T: Out>(
    class: &Class,
    c: &Config,
    target: &Target,
) -> Result<Kernel, BuildErrors> {
    let name = match class.up {
        None => "gemm",
        Some(_) => "dual_gemm",
    };
    Kernel::build(name, target, |k| {
        let gemm = &GemmContext::<T>::declare(k, class, c);
        match (c.form, c.split_k, c.stream_k) {
            (Form::DoubleBuffer, ..) => double_buffer::roles::<A, B, T>(k, gemm),
            (Form::PingPong, ..) => ping_pong::roles::<A, B, T>(k, gemm),
            (Form::Storer, ..) => storer::roles::<A, B, T>(k, gemm),
            (Form::TwoConsumer, ..) => two_consumer::roles::<A, B, T>(k, gemm),
            (_, _, true) => stream_k::roles::<A, B, T>(k, gemm),
            (_, 2.., _) => split_k::roles::<A, B, T>(k, gemm),
            _ => cooperative::roles::<A, B, T>(k, gemm),
        }
    })
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
    roles::helper(k, name, c.registers.map(|r| r.load))
}

/// Declares producer and consumers; whole warpgroups come first.
fn in_order(c: &Config, producer: impl FnOnce(), consumers: impl FnOnce()) {
    roles::in_order(c.registers, producer, consumers);
}

/// A role that multiplies, and its part of a tile.
fn consumer<T: Out>(k: Builder, gemm: &GemmContext<T>, i: u32) -> (RoleDecl, Area) {
    let role = roles::consumer(k, i, gemm.config.registers);
    (role, gemm.area(i))
}

/// The ring, whose slots the CTAs of a cluster fill for each other if there is one.
fn multicast<A: Element, B: Element, T: Out>(
    gemm: &GemmContext<T>,
    ab: Stage<A, B>,
) -> Stage<A, B> {
    match gemm.config.cluster.size() {
        1 => ab,
        _ => ab.multicast(),
    }
}
