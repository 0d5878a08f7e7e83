//! The parts of a kernel that enter the program hash, and those that do not.

use warpline_ir::builder::*;
use warpline_ir::{Kernel, Target};

/// A variant of a kernel; [`PLAIN`] is the reference.
#[derive(Clone, Copy)]
struct Variant {
    names: [&'static str; 5],
    swap_params: bool,
    swap_pure: bool,
    swap_stores: bool,
    swap_operands: bool,
    into_loop: bool,
    bound: u32,
    step: u32,
}

const PLAIN: Variant = Variant {
    names: ["kernel", "x", "y", "role", "tile"],
    swap_params: false,
    swap_pure: false,
    swap_stores: false,
    swap_operands: false,
    into_loop: false,
    bound: 1 << 20,
    step: 4,
};

fn hash(variant: Variant) -> String {
    let [name, x, y, role, tile] = variant.names;
    let kernel = Kernel::build(name, &Target::SM_90A, |k| {
        let (x, y) = match variant.swap_params {
            false => {
                let x = k.pointer::<u32>(x);
                (x, k.param::<u32>(y))
            }
            true => {
                let y = k.param::<u32>(y);
                (k.pointer::<u32>(x), y)
            }
        };
        let y = y.at_most(variant.bound);
        let tile = k.tile::<u32>(tile, 8, 32);
        let _ = tile;
        k.role(role).body(|| {
            let lane = lane_id();
            let (a, b) = match variant.swap_pure {
                false => {
                    let a = lane + y;
                    (a, lane * 3u32)
                }
                true => {
                    let b = lane * 3u32;
                    (lane + y, b)
                }
            };
            let outside = (!variant.into_loop).then(|| lane ^ 5u32);
            range(0u32, y).step_by(variant.step).each(|i| {
                let c = outside.unwrap_or_else(|| lane ^ 5u32);
                let sum = match variant.swap_operands {
                    false => (a - b) + (c * i),
                    true => (b - a) + (c * i),
                };
                match variant.swap_stores {
                    false => {
                        x.store(i, sum);
                        x.store(lane, c);
                    }
                    true => {
                        x.store(lane, c);
                        x.store(i, sum);
                    }
                }
            });
        });
    });
    kernel.expect("a kernel").program_hash()
}

#[test]
fn hash_ignores_names_bounds_and_irrelevant_orders() {
    let plain = hash(PLAIN);
    let names = ["other", "a", "b", "consumer", "buffer"];
    assert_eq!(plain, hash(Variant { names, ..PLAIN }));
    let bound = 77;
    assert_eq!(plain, hash(Variant { bound, ..PLAIN }));
    let swap_params = true;
    assert_eq!(
        plain,
        hash(Variant {
            swap_params,
            ..PLAIN
        })
    );
    let swap_pure = true;
    assert_eq!(plain, hash(Variant { swap_pure, ..PLAIN }));
}

#[test]
fn hash_covers_order_operands_and_constants() {
    let plain = hash(PLAIN);
    let swap_stores = true;
    assert_ne!(
        plain,
        hash(Variant {
            swap_stores,
            ..PLAIN
        })
    );
    let swap_operands = true;
    assert_ne!(
        plain,
        hash(Variant {
            swap_operands,
            ..PLAIN
        })
    );
    let step = 5;
    assert_ne!(plain, hash(Variant { step, ..PLAIN }));
    // A value computed before the loop differs from one computed in every iteration.
    let into_loop = true;
    assert_ne!(plain, hash(Variant { into_loop, ..PLAIN }));
}

#[test]
fn hash_distinguishes_parameters_of_one_type() {
    let kernel = |swapped: bool| {
        let kernel = Kernel::build("k", &Target::SM_90A, |k| {
            let [a, b] = ["a", "b"].map(|name| k.pointer::<u32>(name));
            k.role("all").body(|| {
                a.store(0u32, 1u32);
                b.store(0u32, 2u32);
                let to = if swapped { b } else { a };
                to.store(1u32, 3u32);
            });
        });
        kernel.expect("a kernel").program_hash()
    };
    assert_ne!(kernel(false), kernel(true));
}

#[test]
fn hash_covers_the_order_of_variable_accesses() {
    let kernel = |late: bool| {
        let kernel = Kernel::build("k", &Target::SM_90A, |k| {
            let out = k.pointer::<u32>("out");
            k.role("all").body(|| {
                let v = Var::new(0u32);
                let early = v.get() + 7u32;
                v.set(1u32);
                let read = if late { v.get() + 7u32 } else { early };
                out.store(0u32, read);
                out.store(1u32, early);
            });
        });
        kernel.expect("a kernel").program_hash()
    };
    assert_ne!(kernel(false), kernel(true));
}
