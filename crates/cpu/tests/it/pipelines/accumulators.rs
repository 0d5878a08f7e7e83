//! Accumulators: initialization, wgmmas in flight after a wait, and the release of ring slots.

use crate::pipelines::harness::{Input, fill, noise, run, seeds, timings, to_floats};
use half::bf16;
use warpline_ir::builder::*;
use warpline_ir::{DType, FaultKind, Kernel, Swizzle, Target, TensorMapDecl, TensorMapMode};
use warpline_testkit::kernel::build;

/// Returns integers from −8 to 8; their dot products are exact in any order.
fn whole_numbers(len: usize, seed: u32) -> Vec<f32> {
    noise(len, seed).iter().map(|x| (x * 8.0).round()).collect()
}

fn to_bf16_bytes(x: &[f32]) -> Vec<u8> {
    x.iter()
        .flat_map(|&x| bf16::from_f32(x).to_le_bytes())
        .collect()
}

/// Computes `A · Bᵀ` for rows of `k`.
fn multiply(a: &[f32], b: &[f32], k: usize) -> Vec<f32> {
    let dot = |x: &[f32], y: &[f32]| x.iter().zip(y).map(|(x, y)| x * y).sum();
    a.chunks(k)
        .flat_map(|x| b.chunks(k).map(move |y| dot(x, y)))
        .collect()
}

fn write(sums: &Frag, to: Global<f32>) {
    let n = sums.cols();
    sums.each_pair(|at, pair| to.store_vec(at.row * n + at.col, pair));
}

/// Runs `body` with tiles A (64 × 16) and B (16 × 16), a launch parameter, and `N` outputs of
/// 64 × 16. Checks that output `i` is `A · Bᵀ` times `want(parameter)[i]`.
fn check_multiples<const N: usize>(
    body: impl Fn(TileRef<bf16>, TileRef<bf16>, Reg<u32>, [Global<f32>; N]),
    numbers: &[u32],
    want: impl Fn(u32) -> [f32; N],
) {
    let kernel = Kernel::build("sums", &Target::SM_90A, |k| {
        let n = k.param::<u32>("n");
        let [a, b] = ["a", "b"].map(|name| k.pointer::<bf16>(name));
        let to = std::array::from_fn(|i| k.pointer::<f32>(&format!("to{i}")));
        let (ta, tb) = (k.tile("a", 64, 16).declare(), k.tile("b", 16, 16).declare());
        k.role("all").warpgroups(1).body(|| {
            fill(ta.whole(), a);
            fill(tb.whole(), b);
            body(ta.whole(), tb.whole(), n, to);
        });
    });
    let kernel = kernel.unwrap_or_else(|e| panic!("{e}"));
    let (a, b) = (whole_numbers(64 * 16, 1), whole_numbers(16 * 16, 2));
    let once = multiply(&a, &b, 16);
    for &n in numbers {
        let mut inputs = vec![
            Input::U32(n),
            Input::Data(to_bf16_bytes(&a)),
            Input::Data(to_bf16_bytes(&b)),
        ];
        inputs.extend((0..N).map(|_| Input::Output(64 * 16 * 4)));
        for options in timings(2) {
            let out = run(&kernel, 1, &inputs, &options).unwrap_or_else(|e| panic!("n = {n}: {e}"));
            for (i, (got, times)) in out.iter().zip(want(n)).enumerate() {
                let want: Vec<f32> = once.iter().map(|x| x * times).collect();
                assert_eq!(
                    to_floats(got),
                    want,
                    "tile {i}, n = {n}, {}",
                    options.timing
                );
            }
        }
    }
}

#[test]
fn an_accumulator_without_wgmmas_is_zero() {
    check_multiples(
        |a, b, n, [to]| {
            let acc = Acc::new(64, 16);
            steps(n).each(|_| acc.mma(&a, &b));
            write(&acc.into_frag(), to);
        },
        &[0, 1, 3],
        |n| [n as f32],
    );
    check_multiples(
        |_, _, _, [to]| write(&Acc::new(64, 16).into_frag(), to),
        &[0],
        |_| [0.0],
    );
}

/// Two accumulators are declared in order, and initialized in nested blocks in either order.
#[test]
fn accumulators_may_be_initialized_in_nested_blocks() {
    for flipped in [false, true] {
        check_multiples(
            |a, b, n, to| {
                let (one, two) = (Acc::new(64, 16), Acc::new(64, 16));
                let mark = n * 2;
                let three = Acc::new(64, 16);
                let (first, second) = if flipped {
                    (&three, &one)
                } else {
                    (&one, &three)
                };
                if_(mark.gt(2u32), || first.mma(&a, &b));
                two.mma(&a, &b);
                steps(n).each(|_| second.mma(&a, &b));
                if_(n.eq(0u32), || two.mma(&a, &b));
                let all = [one, two, three].map(Acc::into_frag);
                for (sums, to) in all.iter().zip(to) {
                    write(sums, to);
                }
            },
            &[0, 1, 2, 3],
            |n| {
                let (first, second) = (f32::from(n > 1), n as f32);
                let two = 1.0 + f32::from(n == 0);
                if flipped {
                    [second, two, first]
                } else {
                    [first, two, second]
                }
            },
        );
    }
}

/// An accumulator declared in a loop is initialized in each iteration.
#[test]
fn accumulators_in_a_loop_start_at_zero_in_every_iteration() {
    check_multiples(
        |a, b, n, to| {
            let zeros = || Frag::zeros(64, 16);
            let (straight, nested) = steps(n).fold((zeros(), zeros()), |i, (x, y)| {
                let (one, two) = (Acc::new(64, 16), Acc::new(64, 16));
                one.mma(&a, &b);
                if_((i & 1).eq(0u32), || two.mma(&a, &b));
                (x.promote(one), y.promote(two))
            });
            write(&straight, to[0]);
            write(&nested, to[1]);
        },
        &[0, 1, 2, 5],
        |n| [n as f32, n.div_ceil(2) as f32],
    );
}

/// The younger wgmmas stay in flight while the older accumulator is read.
#[test]
fn a_wait_covers_the_older_of_two_accumulators() {
    check_multiples(
        |a, b, _, to| {
            let (old, young) = (Acc::new(64, 16), Acc::new(64, 16));
            old.mma(&a, &b);
            young.mma(&a, &b);
            old.wait();
            old.rescale(&RowVector::splat(64, 3.0));
            old.mma(&a, &b);
            write(&young.into_frag(), to[1]);
            write(&old.into_frag(), to[0]);
        },
        &[0],
        |_| [4.0, 1.0],
    );
}

#[test]
fn accumulators_are_rescaled_between_wgmmas() {
    check_multiples(
        |a, b, n, [to]| {
            let acc = Acc::new(64, 16);
            steps(n).each(|_| {
                acc.mma(&a, &b);
                acc.wait();
                acc.rescale(&RowVector::splat(64, 2.0));
            });
            write(&acc.into_frag(), to);
        },
        &[0, 1, 4],
        |n| [(2u32.pow(n + 1) - 2) as f32],
    );
}

#[test]
fn a_rescale_during_a_wgmma_is_detected() {
    let mut line = 0;
    let kernel = Kernel::build("early", &Target::SM_90A, |k| {
        let a = k.pointer::<bf16>("a");
        let tile = k.tile("a", 64, 16).declare();
        k.role("all").warpgroups(1).body(|| {
            fill(tile.whole(), a);
            let (old, young) = (Acc::new(64, 64), Acc::new(64, 64));
            old.mma(&tile.whole(), &tile.whole());
            young.mma(&tile.whole(), &tile.whole());
            old.wait();
            old.rescale(&RowVector::splat(64, 2.0));
            line = line!() + 1;
            young.rescale(&RowVector::splat(64, 2.0));
        });
    });
    let kernel = kernel.unwrap_or_else(|e| panic!("{e}"));
    let inputs = [Input::Data(to_bf16_bytes(&whole_numbers(64 * 16, 1)))];
    for options in timings(2) {
        let e = run(&kernel, 1, &inputs, &options).expect_err("the wgmma is in flight");
        assert_eq!(e.kind, FaultKind::RegisterInFlight, "{e}");
        let at = e.at.as_ref().and_then(|s| s.frame).map(|f| f.line);
        assert_eq!(at, Some(line), "{e}");
    }
}

/// Declares a tensor map with boxes of 64 columns.
fn tile_map(rows: u32) -> TensorMapDecl {
    TensorMapDecl {
        dtype: DType::Bf16,
        tile: vec![64, rows],
        swizzle: Swizzle::B128,
        mode: TensorMapMode::Tiled,
    }
}

/// The producer loads `n` k-tiles of A and B; `math` receives the ring and computes `A · Bᵀ` and
/// `B · Aᵀ`.
fn two_gemms(
    stages: u32,
    k_tiles: &[u32],
    math: impl Fn(Ring<(Tile<bf16>, Tile<bf16>)>, Reg<u32>) -> [Frag; 2],
) {
    let kernel = Kernel::build("two_gemms", &Target::SM_90A, |k| {
        let n = k.param::<u32>("n");
        let [a, b] = ["a", "b"].map(|name| k.tensor_map(name, tile_map(64)));
        let to = ["ab", "ba"].map(|name| k.pointer::<f32>(name));
        let ring = k.ring("ab", stages, |s| (s.tile(64, 64), s.tile(64, 64)));
        k.role("load").warps(4).body(|| {
            elect(|| {
                steps(n).each(|i| {
                    let slot = ring.acquire();
                    slot.load(a, slot.0, (i * 64, 0u32));
                    slot.load(b, slot.1, (i * 64, 0u32));
                    slot.commit();
                });
            });
        });
        k.role("math").warpgroups(1).body(|| {
            for (sums, to) in math(ring, n).iter().zip(to) {
                write(sums, to);
            }
        });
    });
    let kernel = kernel.unwrap_or_else(|e| panic!("{e}"));
    for &n in k_tiles {
        let k = n.max(1) as usize * 64;
        let (a, b) = (whole_numbers(64 * k, 3), whole_numbers(64 * k, 4));
        let tensor = |x: &[f32]| Input::Map(tile_map(64), to_bf16_bytes(x), vec![k as u64, 64]);
        let len = Input::Output(64 * 64 * 4);
        let inputs = [Input::U32(n), tensor(&a), tensor(&b), len.clone(), len];
        let times = f32::from(n > 0);
        let want = [multiply(&a, &b, k), multiply(&b, &a, k)]
            .map(|c| c.iter().map(|x| x * times).collect::<Vec<_>>());
        for options in timings(seeds(2)) {
            let at = format!(
                "{stages} stages, n = {n}, {}, seed {}",
                options.timing, options.seed
            );
            let out = run(&kernel, 1, &inputs, &options).unwrap_or_else(|e| panic!("{at}: {e}"));
            for (got, want) in out.iter().zip(&want) {
                assert!(to_floats(got) == *want, "{at}: a GEMM is wrong");
            }
        }
    }
}

/// Two accumulators read every slot; its release waits for both, in the next iteration.
#[test]
fn a_slot_is_released_after_both_accumulators() {
    for stages in [2, 3] {
        let counts = [0, 1, stages - 1, stages, stages + 1, 2 * stages + 1];
        // The release names either accumulator, and either accumulator finishes first.
        for (tied, first) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let counts = if stages == 2 {
                &counts[..]
            } else {
                &counts[4..]
            };
            two_gemms(stages, counts, |ring, n| {
                let accs = [Acc::new(64, 64), Acc::new(64, 64)];
                steps(n).each(|_| {
                    let slot = ring.wait();
                    accs[0].mma(&slot.0, &slot.1);
                    accs[1].mma(&slot.1, &slot.0);
                    slot.release_after(&accs[tied]);
                });
                let [ab, ba] = accs;
                if first == 0 {
                    let ab = ab.into_frag();
                    [ab, ba.into_frag()]
                } else {
                    let ba = ba.into_frag();
                    [ab.into_frag(), ba]
                }
            });
        }
    }
}

/// In one block, the older accumulator finishes while the younger one still reads the slot, whose
/// release names the older one.
#[test]
fn a_slot_is_not_released_while_the_younger_accumulator_reads_it() {
    two_gemms(1, &[3], |ring, _| {
        let zeros = || Frag::zeros(64, 64);
        let mut sums = [zeros(), zeros()];
        for _ in 0..3 {
            let (ab, ba) = (Acc::new(64, 64), Acc::new(64, 64));
            let slot = ring.wait();
            ab.mma(&slot.0, &slot.1);
            ba.mma(&slot.1, &slot.0);
            slot.release_after(&ab);
            let [x, y] = sums;
            let x = x.promote(ab);
            sums = [x, y.promote(ba)];
        }
        sums
    });
}

/// wgmmas read one tile of a slot, and lanes read the other. The release follows both, with a proxy
/// fence; in a cluster, it goes to all CTAs that share the slot.
fn read_both_ways(size: u32, stages: u32) -> Kernel {
    build("both_ways", |k| {
        k.cluster(size, 1, 1);
        let n = k.param::<u32>("n");
        let a = k.tensor_map("a", tile_map(64 / size));
        let rows = k.tensor_map("rows", row_map());
        let [square, sums] = ["square", "sums"].map(|name| k.pointer::<f32>(name));
        let mut ring = k.ring("slots", stages, |s| {
            (s.tile::<bf16>(64, 64), s.vector::<f32>(128))
        });
        if size > 1 {
            ring = ring.multicast();
        }
        k.role("load").warps(4).body(|| {
            elect(|| {
                steps(n).each(|i| {
                    let slot = ring.acquire();
                    if size > 1 {
                        slot.load_multicast(a, slot.0, (i * 64, 0u32));
                    } else {
                        slot.load(a, slot.0, (i * 64, 0u32));
                    }
                    slot.load(rows, slot.1, (0u32, i));
                    slot.commit();
                });
            });
        });
        k.role("math").warpgroups(1).body(|| {
            let (acc, sum) = (Acc::new(64, 64), Var::new(0.0f32));
            steps(n).each(|_| {
                let slot = ring.wait();
                acc.mma(&slot.0, &slot.0);
                sum.set(sum.get() + slot.1.load(0u32, thread_in_role()));
                slot.release_after(&acc);
            });
            sums.store(cta_id() * 128 + thread_in_role(), sum.get());
            write(&acc.into_frag(), square.offset(cta_id() * (64 * 64)));
        });
    })
}

/// Declares a tensor map of rows of 128 elements.
fn row_map() -> TensorMapDecl {
    TensorMapDecl {
        dtype: DType::F32,
        tile: vec![128, 1],
        swizzle: Swizzle::None,
        mode: TensorMapMode::Tiled,
    }
}

#[test]
fn a_slot_read_by_lanes_and_wgmmas_is_released_after_both() {
    for (size, stages) in [(1, 2), (1, 3), (2, 2), (4, 2)] {
        let kernel = read_both_ways(size, stages);
        for n in [0, 1, stages + 1, 2 * stages + 1] {
            let (steps, ctas) = (n as usize, size as usize);
            let depth = steps.max(1) * 64;
            let (a, rows) = (
                whole_numbers(64 * depth, 5),
                whole_numbers(steps.max(1) * 128, 6),
            );
            let bytes = rows.iter().flat_map(|x| x.to_le_bytes()).collect();
            let inputs = [
                Input::U32(n),
                Input::Map(
                    tile_map(64 / size),
                    to_bf16_bytes(&a),
                    vec![depth as u64, 64],
                ),
                Input::Map(row_map(), bytes, vec![128, steps.max(1) as u64]),
                Input::Output(ctas * 64 * 64 * 4),
                Input::Output(ctas * 128 * 4),
            ];
            let some = |x: f32| if n > 0 { x } else { 0.0 };
            let square: Vec<f32> = multiply(&a, &a, depth).into_iter().map(some).collect();
            let sums: Vec<f32> = (0..128)
                .map(|j| some((0..steps).map(|i| rows[i * 128 + j]).sum()))
                .collect();
            for options in timings(seeds(2)) {
                let at = format!("{size} CTAs, {stages} stages, n = {n}, {}", options.timing);
                let out = run(&kernel, size, &inputs, &options);
                let out = out.unwrap_or_else(|e| panic!("{at}, seed {}: {e}", options.seed));
                assert!(to_floats(&out[0]) == square.repeat(ctas), "{at}: products");
                assert!(to_floats(&out[1]) == sums.repeat(ctas), "{at}: sums");
            }
        }
    }
}
