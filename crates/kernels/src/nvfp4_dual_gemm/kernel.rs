//! The GEMM kernel: its roles by schedule.

use super::context::Context;
use super::decode::DecodeTarget;
use super::epilogue::Epilogue;
use super::kernel_spec::KernelSpec;
use super::schedule::Schedule;
use super::{dequantize, load, multiply, warps};
use crate::roles::{self, CONSUMERS};
use warpline_ir::builder::*;
use warpline_ir::{BuildErrors, Kernel, Target};

/// Builds the kernel.
pub(super) fn build<T: DecodeTarget>(
    spec: &KernelSpec,
    target: &Target,
) -> Result<Kernel, BuildErrors> {
    Kernel::build("nvfp4_dual_gemm", target, |k| declare::<T>(k, spec))
}

/// Declares parameters, rings and roles.
///
/// One role loads the codes and scales of the weights, and A, which an earlier launch widens. With
/// split-K each CTA of the cluster stores part of the tokens.
pub(super) fn declare<T: DecodeTarget>(k: Builder, spec: &KernelSpec) {
    let context = &Context::<T>::declare(k, spec);
    let consumers = 0..spec.config.schedule.consumers();
    let declare_consumers = || match spec.config.schedule {
        Schedule::OwnOutputs { .. } => {
            for i in consumers {
                let epilogue = Epilogue::declare(k, context, i);
                multiply::consumer(k, context, i, |accs, tile| epilogue.finish(accs, tile));
            }
        }
        Schedule::InTurn { .. } => in_turn(k, context),
        Schedule::Dequantizer(_) => {
            let decoded = dequantize::role(k, context);
            for i in consumers {
                let epilogue = Epilogue::declare(k, context, i);
                let finish = |accs, tile| epilogue.finish(accs, tile);
                dequantize::consumer(k, context, decoded, i, finish);
            }
        }
        Schedule::Warps(tile) => warps::roles(k, context, tile),
    };
    match spec.config.schedule {
        Schedule::Warps(_) => declare_consumers(),
        other => roles::declare_roles(
            other.registers(),
            || load::role(k, context),
            declare_consumers,
        ),
    }
}

/// Declares consumers that take slots in turn. The first adds the accumulators of the others to its own.
fn in_turn<T: DecodeTarget>(k: Builder, context: &Context<'_, T>) {
    let c = context.config;
    let epilogue = Epilogue::declare(k, context, 0);
    let others = 1..c.schedule.consumers();
    let partial_accs = others.map(|i| {
        let name = format!("partial_accs_{}", CONSUMERS[i as usize]);
        k.ring(&name, 1, |s| s.unswizzled::<f32>(c.tile_m / 8, 512))
    });
    let partial_accs: Vec<_> = partial_accs.collect();
    multiply::consumer(k, context, 0, |accs, tile| {
        let accs = partial_accs.iter().fold(accs, |accs, ring| {
            let slot = ring.wait();
            let partial = accs.load_thread_major(&slot.tiles());
            slot.release();
            accs.zip(&partial, |x, y| x + y)
        });
        epilogue.finish(accs, tile);
    });
    for (i, ring) in (1..).zip(&partial_accs) {
        multiply::consumer(k, context, i, |accs, _| {
            let slot = ring.acquire();
            accs.store_thread_major(&slot.tiles());
            slot.commit();
        });
    }
}
