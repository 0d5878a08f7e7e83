//! Bulk reductions: results, rounding, order of arrival.

use crate::executor::harness::timings;
use half::{bf16, f16};
use warpline_ir::builder::*;
use warpline_ir::ops::bulk::Reduction;
use warpline_ir::{
    Arg, DType, Element, Kernel, Swizzle, TensorMapDecl, TensorMapMode, TensorMapValue,
};
use warpline_testkit::kernel::build;
use warpline_testkit::launch::Setup;

/// Every CTA copies 64 elements of `x` to shared memory and reduces them into `out`.
fn bulk_reduction<T: Element>(reduction: Reduction) -> Kernel {
    build("reduce", |k| {
        let (x, out) = (k.pointer::<T>("x"), k.pointer::<T>("out"));
        let t = k.tile::<T>("t", 1, 64).unswizzled().declare();
        let full = k.barrier("full", 1).arrivals(1);
        k.role("all").body(|| {
            let bytes = 64 * T::DTYPE.bytes() as u32;
            elect(|| {
                full.at(0).arrive_expect(bytes);
                bulk_load(t.whole(), x.address(cta_id() * 64), bytes, full.at(0));
                full.at(0).wait(0);
                bulk_reduce(reduction, t.whole(), out.address(0), bytes);
                bulk_commit();
                bulk_wait(0);
            });
        });
    })
}

#[test]
fn integer_reductions_are_independent_of_the_order() {
    let x: Vec<u32> = (0..8 * 64u32)
        .map(|i| i.wrapping_mul(0x9e37_79b9))
        .collect();
    let start: Vec<u32> = (0..64).collect();
    let want = |f: fn(u32, u32) -> u32| -> Vec<u32> {
        (0..64)
            .map(|i| (0..8).fold(start[i], |a, c| f(a, x[c * 64 + i])))
            .collect()
    };
    type Case = (Reduction, fn(u32, u32) -> u32);
    let cases: [Case; 5] = [
        (Reduction::Add, u32::wrapping_add),
        (Reduction::Min, |a, b| a.min(b)),
        (Reduction::Max, |a, b| a.max(b)),
        (Reduction::And, |a, b| a & b),
        (Reduction::Xor, |a, b| a ^ b),
    ];
    for (reduction, f) in cases {
        let k = bulk_reduction::<u32>(reduction);
        for options in timings() {
            let setup = Setup::new().input("x", &x).input("out", &start);
            let stats = setup.run(&k, 8, &options).unwrap();
            assert_eq!(
                setup.values::<u32>(1),
                want(f),
                "{reduction:?}, {options:?}"
            );
            assert_eq!(stats.bytes.bulk_store, 8 * 256);
        }
    }
}

#[test]
fn narrow_floats_round_once_per_arriving_element() {
    let (old, new): (Vec<f32>, Vec<f32>) = (0..64)
        .map(|i| (256.0 + i as f32, 1.0 + i as f32 / 64.0))
        .unzip();
    let to_f16 = |v: &[f32]| v.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>();
    let to_bf16 = |v: &[f32]| v.iter().map(|&x| bf16::from_f32(x)).collect::<Vec<_>>();
    for options in timings() {
        let setup = Setup::new()
            .input("x", &to_f16(&new))
            .input("out", &to_f16(&old));
        setup
            .run(&bulk_reduction::<f16>(Reduction::Add), 1, &options)
            .unwrap();
        let want: Vec<_> = (to_f16(&old).iter().zip(to_f16(&new)))
            .map(|(a, b)| f16::from_f64(a.to_f64() + b.to_f64()))
            .collect();
        assert_eq!(setup.values::<f16>(1), want);
        let setup = Setup::new()
            .input("x", &to_bf16(&new))
            .input("out", &to_bf16(&old));
        setup
            .run(&bulk_reduction::<bf16>(Reduction::Add), 1, &options)
            .unwrap();
        let want: Vec<_> = (to_bf16(&old).iter().zip(to_bf16(&new)))
            .map(|(a, b)| bf16::from_f64(a.to_f64() + b.to_f64()))
            .collect();
        assert_eq!(setup.values::<bf16>(1), want);
    }
}

/// CTA i adds a box of ones at row i to a tensor of 8 × 32 elements.
#[test]
fn tensor_reductions_are_clipped_at_the_edge() {
    let decl = TensorMapDecl {
        dtype: DType::F32,
        tile: vec![32, 4],
        swizzle: Swizzle::B128,
        mode: TensorMapMode::Tiled,
    };
    let k = build("boxes", |k| {
        let map = k.tensor_map("out", decl.clone());
        let t = k.tile::<f32>("t", 4, 32).declare();
        k.role("all").body(|| {
            for row in 0..4u32 {
                t.whole().store(row, lane_id(), 1.0f32);
            }
            fence_async();
            warp_sync();
            elect(|| {
                map.prefetch_box([0u32.reg(), cta_id()], None);
                map.reduce(Reduction::Add, t.whole(), [0u32.reg(), cta_id()]);
                bulk_commit();
                bulk_wait(0);
            });
        });
    });
    let want: Vec<f32> = (0..8 * 32)
        .map(|i| (i / 32 + 1).min(4) as f32 + 0.5)
        .collect();
    for options in timings() {
        let mut setup = Setup::new().input("out", &[0.5f32; 8 * 32]);
        let map = TensorMapValue::dense(decl.clone(), setup.addresses[0], &[32, 8]);
        setup.args[0] = Arg::TensorMap(map);
        setup.run(&k, 8, &options).unwrap();
        assert_eq!(setup.values::<f32>(0), want, "{options:?}");
    }
}
