//! What the builder refuses, and the lines it names.

use half::{bf16, f16};
use std::cell::Cell as Shared;
use warpline_ir::build::*;
use warpline_ir::{
    Axis, BuildErrors, DType, E4m3, Kernel, MapMode, Swizzle, Target, TensorMapDecl,
};

/// The one error of a kernel: its code, its text, its line and the other line.
#[track_caller]
fn refused(body: impl FnOnce(Builder)) -> (&'static str, String, u32, Option<u32>) {
    let errors: BuildErrors =
        Kernel::build("k", &Target::SM_90A, body).expect_err("must be refused");
    assert_eq!(errors.errors.len(), 1, "one error, not: {errors}");
    let e = &errors.errors[0];
    let at = e.at.expect("an error has a line");
    assert!(
        at.file.ends_with("build_errors.rs"),
        "{at:?} is not the author's file"
    );
    (
        e.code,
        e.text.clone(),
        at.line,
        e.other.map(|(f, _)| f.line),
    )
}

#[test]
fn a_slot_that_is_never_committed() {
    let mut line = 0;
    let (code, text, at, _) = refused(|k| {
        let ring = k.ring("tiles", 2, |s| s.vector::<f32>(32));
        k.role("load").body(|| {
            elect(|| {
                line = line!() + 1;
                let _slot = ring.acquire();
            });
        });
        k.role("math").body(|| ring.wait().release());
    });
    assert_eq!((code, at), ("slot-left", line));
    assert!(
        text.contains("ring tiles") && text.contains("never committed"),
        "{text}"
    );
}

#[test]
fn a_slot_that_is_never_released() {
    let mut line = 0;
    let (code, text, at, _) = refused(|k| {
        let ring = k.ring("tiles", 2, |s| s.vector::<f32>(32));
        k.role("load").body(|| elect(|| ring.acquire().commit()));
        k.role("math").body(|| {
            line = line!() + 1;
            let _ = ring.wait();
        });
    });
    assert_eq!((code, at), ("slot-left", line));
    assert!(text.contains("never released"), "{text}");
}

#[test]
fn a_register_used_in_another_role_names_both_lines() {
    let (mut made, mut used, mut leaked) = (0, 0, None);
    let (code, text, at, other) = refused(|k| {
        k.role("one").body(|| {
            made = line!() + 1;
            leaked = Some(thread_id());
        });
        k.role("two").body(|| {
            let x = leaked.expect("role one ran");
            used = line!() + 1;
            let _ = x + 1;
        });
    });
    assert_eq!(
        (code, at, other),
        ("register-of-another-role", used, Some(made))
    );
    assert!(text.contains("role one") && text.contains("two"), "{text}");
}

#[test]
fn a_register_used_after_its_block() {
    let mut leaked = None;
    let (code, ..) = refused(|k| {
        k.role("all").body(|| {
            steps(4).each(|i| leaked = Some(i + 1));
            let _ = leaked.expect("the loop was written") + 1;
        });
    });
    assert_eq!(code, "register-out-of-scope");
}

#[test]
fn a_register_of_another_kernel() {
    let mut leaked = None;
    Kernel::build("first", &Target::SM_90A, |k| {
        k.role("all").body(|| leaked = Some(thread_id()));
    })
    .expect("a fine kernel");
    let (code, ..) = refused(|k| {
        k.role("all").body(|| {
            let _ = leaked.expect("kernel one was built") + 1;
        });
    });
    assert_eq!(code, "register-of-another-kernel");
}

#[test]
fn a_ring_without_a_consumer() {
    let mut line = 0;
    let (code, text, at, _) = refused(|k| {
        line = line!() + 1;
        let ring = k.ring("tiles", 2, |s| s.vector::<f32>(32));
        k.role("load").body(|| elect(|| ring.acquire().commit()));
    });
    assert_eq!((code, at), ("ring-end", line));
    assert!(text.contains("no consumer"), "{text}");
}

#[test]
fn two_consumers_without_a_discipline() {
    let (code, text, ..) = refused(|k| {
        let ring = k.ring("tiles", 2, |s| s.vector::<f32>(32));
        k.role("load").body(|| elect(|| ring.acquire().commit()));
        k.role("one").body(|| ring.wait().release());
        k.role("two").body(|| ring.wait().release());
    });
    assert_eq!(code, "ring-discipline");
    assert!(text.contains("shared() or dealt()"), "{text}");
}

#[test]
fn a_ring_for_each_warp_of_roles_that_differ() {
    let of = |warps: u32| {
        move |k: Builder| {
            let ring = k.ring_per_warp("tiles", warps, 2, |s| s.vector::<f32>(32));
            k.role("load")
                .warps(2)
                .body(|| elect_lane(|| ring.acquire().commit()));
            k.role("math").warps(2).body(|| ring.wait().release());
        }
    };
    Kernel::build("pairs", &Target::SM_90A, of(2)).expect("a fine kernel");
    let (code, text, ..) = refused(of(3));
    assert_eq!(code, "ring-per-warp");
    assert!(
        text.contains("each of 3 warps, and a role at its end has 2"),
        "{text}"
    );
}

#[test]
fn a_ring_for_each_warp_used_by_one() {
    let (code, text, ..) = refused(|k| {
        let ring = k.ring_per_warp("tiles", 2, 2, |s| s.vector::<f32>(32));
        k.role("load")
            .warps(2)
            .body(|| elect(|| ring.acquire().commit()));
        k.role("math").warps(2).body(|| ring.wait().release());
    });
    assert_eq!(code, "ring-per-warp");
    assert!(text.contains("elect a lane of each"), "{text}");
    let (code, text, ..) = refused(|k| {
        let ring = k.ring_per_warp("tiles", 2, 2, |s| s.vector::<f32>(32));
        let ring = ring.dealt();
        k.role("load")
            .warps(2)
            .body(|| elect_lane(|| ring.acquire().commit()));
        k.role("math").warps(2).body(|| ring.wait().release());
    });
    assert_eq!(code, "ring-per-warp");
    assert!(text.contains("neither dealt nor sent"), "{text}");
}

#[test]
fn a_bulk_copy_by_a_whole_role() {
    let (code, ..) = refused(|k| {
        let x = k.pointer::<f32>("x");
        let ring = k.ring("tiles", 2, |s| s.vector::<f32>(32));
        k.role("load").body(|| {
            let slot = ring.acquire();
            slot.load_bytes(slot.tiles(), x.address(0), 128);
            slot.commit();
        });
        k.role("math").body(|| ring.wait().release());
    });
    assert_eq!(code, "copy-by-many");
}

#[test]
fn a_view_that_cuts_a_swizzle_atom() {
    let (code, ..) = refused(|k| {
        let t = k.tile::<f32>("t", 16, 32).declare();
        k.role("all").body(|| {
            let _ = t.whole().slice(4..8, 0..32);
        });
    });
    assert_eq!(code, "view-atoms");
}

#[test]
fn declarations_that_cannot_be() {
    let code = |body: fn(Builder)| refused(body).0;
    assert_eq!(
        code(|k| {
            k.param::<u32>("n");
            k.param::<u32>("n");
            k.role("all").body(|| {});
        }),
        "parameter-name"
    );
    assert_eq!(
        code(|k| {
            k.param::<u32>("2n");
            k.role("all").body(|| {});
        }),
        "parameter-name"
    );
    assert_eq!(
        code(|k| {
            k.role("all").body(|| {});
            k.role("all").body(|| {});
        }),
        "role-name"
    );
    assert_eq!(
        code(|k| {
            k.role("all").warps(0).body(|| {});
        }),
        "role-warps"
    );
    assert_eq!(
        code(|k| {
            k.tile::<f32>("t", 0, 4).declare();
            k.role("all").body(|| {});
        }),
        "tile-shape"
    );
    assert_eq!(
        code(|k| {
            k.role("all").body(|| elect(|| elect(|| {})));
        }),
        "elect-inside-elect"
    );
    assert_eq!(
        code(|k| {
            k.cluster(0, 1, 1);
            k.role("all").body(|| {});
        }),
        "cluster-size"
    );
}

#[test]
fn a_slot_is_committed_one_way() {
    let code = |body: fn(Ring<Tile<u32>>)| {
        let e = Kernel::build("k", &Target::SM_90A, |k| {
            let ring = k.ring("r", 2, |s| s.vector::<u32>(32));
            k.role("fill").body(|| body(ring));
            k.role("drain").body(|| ring.wait().release());
        });
        e.expect_err("wrong").errors[0].code
    };
    let both: fn(Ring<Tile<u32>>) = |ring| {
        ring.acquire().commit();
        ring.acquire().commit_after_copies();
    };
    assert_eq!(code(both), "slot-commit");
    let stored: fn(Ring<Tile<u32>>) = |ring| {
        let slot = ring.acquire();
        slot.store(0u32, lane_id(), 1u32);
        slot.commit_after_copies();
    };
    assert_eq!(code(stored), "slot-copies");
}

/// The line that must be named.
#[derive(Default)]
struct Mark(Shared<u32>);

impl Mark {
    /// The one after this call.
    #[track_caller]
    fn next_line(&self) {
        self.0.set(std::panic::Location::caller().line() + 1);
    }
}

/// The code of the one error of a kernel, which is at the line that was marked.
#[track_caller]
fn code(body: impl FnOnce(Builder, &Mark)) -> &'static str {
    let mark = Mark::default();
    let (code, text, at, _) = refused(|k| body(k, &mark));
    assert_eq!(at, mark.0.get(), "the line of {code}: {text}");
    code
}

/// As [`code`], inside a role of one warpgroup.
#[track_caller]
fn code_in_role(body: impl FnOnce(&Mark)) -> &'static str {
    code(|k, mark| k.role("math").warpgroups(1).body(|| body(mark)))
}

/// As [`code`], inside a role of one warpgroup, with a tile of 64 × 64.
#[track_caller]
fn code_with_tile<T: warpline_ir::Element>(body: impl FnOnce(TileRef<T>, &Mark)) -> &'static str {
    code(|k, mark| {
        let tile = k.tile::<T>("tile", 64, 64).declare();
        k.role("math")
            .warpgroups(1)
            .body(|| body(tile.whole(), mark));
    })
}

#[test]
fn accumulators_that_cannot_be() {
    let c = code_in_role(|mark| {
        mark.next_line();
        Acc::new(64, 12).finish();
    });
    assert_eq!(c, "accumulator-shape");
    let c = code(|k, mark| {
        k.role("math").warps(2).body(|| {
            mark.next_line();
            Acc::new(64, 8).finish();
        });
    });
    assert_eq!(c, "accumulator-role");
    let c = code_in_role(|mark| {
        elect(|| {
            mark.next_line();
            Acc::new(64, 8);
        });
    });
    assert_eq!(c, "accumulator-role");
}

#[test]
fn products_that_cannot_be() {
    let c = code_with_tile::<f32>(|tile, mark| {
        let acc = Acc::new(64, 64);
        mark.next_line();
        acc.mma(&tile, &tile);
    });
    assert_eq!(c, "mma-type");
    let shapes: [fn(TileRef<bf16>, &Acc, &Mark); 3] = [
        // Other rows than the accumulator has,
        |tile, acc, mark| {
            mark.next_line();
            acc.mma(&tile, &tile.slice(0..32, 0..64));
        },
        // different K,
        |tile, acc, mark| {
            mark.next_line();
            acc.mma(&tile, &tile.slice(0..64, 0..32));
        },
        // and a K that is no multiple of a step.
        |tile, acc, mark| {
            let part = tile.slice(0..64, 0..24);
            mark.next_line();
            acc.mma(&part, &part);
        },
    ];
    for shape in shapes {
        let c = code_with_tile(|tile, mark| shape(tile, &Acc::new(64, 64), mark));
        assert_eq!(c, "mma-shape");
    }
}

#[test]
fn operands_that_cannot_be() {
    let c = code_with_tile::<bf16>(|tile, mark| {
        mark.next_line();
        let _ = RegOperand::load(&tile.slice(0..32, 0..64));
    });
    assert_eq!(c, "operand-shape");
    let c = code_in_role(|mark| {
        let tile = Frag::zeros(64, 16);
        mark.next_line();
        let _ = tile.operand::<E4m3>();
    });
    assert_eq!(c, "operand-shape");
    // A warp's tile is no operand of a warpgroup; what becomes of it does not panic.
    let c = code_with_tile::<bf16>(|tile, mark| {
        let (acc, a) = (Acc::new(64, 64), Frag::warp_zeros(64, 64));
        mark.next_line();
        let a = a.operand::<bf16>();
        acc.mma(&a, &tile);
    });
    assert_eq!(c, "operand-shape");
    let c = code_with_tile::<f16>(|tile, mark| {
        mark.next_line();
        let _ = RegBytes::load(&tile);
    });
    assert_eq!(c, "operand-bytes");
}

#[test]
fn register_tiles_that_cannot_be() {
    // What is wrong is not spread: functions of it are fine.
    let c = code_in_role(|mark| {
        mark.next_line();
        let tile = Frag::zeros(64, 3);
        tile.each_pair(|_, _| {});
        tile.row_sum().each(|_, _| {});
    });
    assert_eq!(c, "fragment-shape");
    let c = code(|k, mark| {
        let tile = k.tile::<f32>("tile", 32, 8).declare();
        k.role("math").warpgroups(1).body(|| {
            mark.next_line();
            let _ = Frag::load(&tile.whole());
        });
    });
    assert_eq!(c, "fragment-shape");
    let c = code_in_role(|mark| {
        mark.next_line();
        Frag::warp_zeros(16, 24).each_pair(|_, _| {});
    });
    assert_eq!(c, "warp-tile-shape");
    let others: [fn() -> Frag; 2] = [|| Frag::zeros(64, 8), || Frag::warp_zeros(64, 16)];
    for other in others {
        let c = code_in_role(|mark| {
            let (tile, other) = (Frag::zeros(64, 16), other());
            mark.next_line();
            let _ = tile.zip(&other, |x, y| x + y);
        });
        assert_eq!(c, "fragment-shape");
    }
    for (first, end) in [(0, 12), (4, 8), (8, 8), (8, 24)] {
        let c = code_in_role(|mark| {
            let tile = Frag::zeros(64, 16);
            mark.next_line();
            let _ = tile.slice(first..end);
        });
        assert_eq!(c, "fragment-slice");
    }
}

/// A thread's pairs of columns are as many as its tile has, and a shift leaves whole blocks.
#[test]
fn columns_come_in_pairs_and_blocks() {
    let c = code_in_role(|mark| {
        let pairs = col_pairs(16, |_| [0.0f32.reg(); 2]);
        let tile = Frag::zeros(64, 32);
        mark.next_line();
        let _ = tile.zip_col_pairs(&pairs, |x, y| x + y);
    });
    assert_eq!(c, "fragment-columns");
    let c = code_in_role(|mark| {
        let tile = Frag::zeros(64, 32);
        mark.next_line();
        let _ = tile.shift(12);
    });
    assert_eq!(c, "fragment-slice");
}

#[test]
fn rows_of_another_tile() {
    let others: [fn() -> Rows; 2] = [
        || Rows::splat(128, 1.0),
        // As many numbers in a lane, but of other rows.
        || Frag::warp_zeros(16, 16).row_sum(),
    ];
    for rows in others {
        let c = code_in_role(|mark| {
            let (tile, rows) = (Frag::zeros(64, 16), rows());
            mark.next_line();
            let _ = tile.rescale(&rows);
        });
        assert_eq!(c, "fragment-rows");
        let c = code_in_role(|mark| {
            let (acc, rows) = (Acc::new(64, 16), rows());
            mark.next_line();
            acc.rescale(&rows);
        });
        assert_eq!(c, "fragment-rows");
        let c = code_in_role(|mark| {
            let (mine, rows) = (Rows::splat(64, 1.0), rows());
            mark.next_line();
            let _ = mine.zip(&rows, |x, y| x + y);
        });
        assert_eq!(c, "fragment-rows");
    }
}

#[test]
fn stores_to_other_shapes() {
    let c = code_with_tile::<f32>(|tile, mark| {
        let sums = Frag::zeros(64, 32);
        mark.next_line();
        sums.store(&tile);
    });
    assert_eq!(c, "fragment-store");
    let c = code_with_tile::<bf16>(|tile, mark| {
        let sums = Frag::zeros(64, 32);
        mark.next_line();
        sums.store_transposed(&tile);
    });
    assert_eq!(c, "fragment-store");
    let c = code_with_tile::<bf16>(|tile, mark| {
        let sums = Frag::zeros(64, 8);
        mark.next_line();
        sums.store_transposed(&tile.slice(0..8, 0..64));
    });
    assert_eq!(c, "fragment-store");
}

#[test]
fn products_of_warps_that_cannot_be() {
    let c = code_with_tile::<bf16>(|tile, mark| {
        let sums = Frag::zeros(64, 16);
        mark.next_line();
        let _ = sums.mma_sync(&tile, 0u32, &tile, 0u32);
    });
    assert_eq!(c, "warp-product-shape");
    let c = code_with_tile::<bf16>(|tile, mark| {
        let (sums, part) = (Frag::warp_zeros(16, 16), tile.slice(0..64, 0..32));
        mark.next_line();
        let _ = sums.mma_sync(&tile, 0u32, &part, 0u32);
    });
    assert_eq!(c, "warp-product-shape");
}

/// Boxes of `rows` × `cols` of f32, swizzled over 128 bytes.
fn boxes(rows: u32, cols: u32) -> TensorMapDecl {
    TensorMapDecl {
        dtype: DType::F32,
        tile: vec![cols, rows],
        swizzle: Swizzle::B128,
        mode: MapMode::Tiled,
    }
}

#[test]
fn tiles_that_do_not_fit_an_outbox() {
    let tiles: [fn() -> Frag; 3] = [
        // Other rows, part of its columns,
        || Frag::zeros(128, 32),
        || Frag::zeros(64, 40),
        // and one for each warp of four.
        || Frag::warp_zeros(64, 32),
    ];
    for tile in tiles {
        let c = code(|k, mark| {
            let out = k.tensor_map("out", boxes(64, 32));
            let outbox = k.outbox::<f32>("out", 1, 64, 32);
            k.role("math").warpgroups(1).body(|| {
                let tile = tile();
                mark.next_line();
                outbox.send(&tile, out, [0, 0]);
            });
        });
        assert_eq!(c, "outbox-shape");
    }
    // A box that the outbox is not made of.
    let c = code(|k, mark| {
        let out = k.tensor_map("out", boxes(48, 32));
        let outbox = k.outbox::<f32>("out", 1, 64, 32);
        k.role("math").warpgroups(1).body(|| {
            let tile = Frag::zeros(64, 32);
            mark.next_line();
            outbox.send(&tile, out, [0, 0]);
        });
    });
    assert_eq!(c, "outbox-shape");
}

#[test]
fn an_outbox_of_two_roles() {
    let c = code(|k, mark| {
        let out = k.tensor_map("out", boxes(64, 32));
        let outbox = k.outbox::<f32>("out", 1, 64, 32);
        let send = || outbox.send(&Frag::zeros(64, 32), out, [0, 0]);
        k.role("one").warpgroups(1).body(send);
        k.role("two").warpgroups(1).body(|| {
            let tile = Frag::zeros(64, 32);
            mark.next_line();
            outbox.send(&tile, out, [0, 0]);
        });
    });
    assert_eq!(c, "outbox-role");
}

#[test]
fn partial_tiles_of_another_shape() {
    let partial = |tile: fn() -> Frag| {
        code(|k, mark| {
            let partials = k.partial_tiles("partials", 64, 16);
            k.role("math").warpgroups(1).body(|| {
                let tile = tile();
                mark.next_line();
                partials.give(cta_id(), &tile);
            });
        })
    };
    assert_eq!(partial(|| Frag::zeros(64, 8)), "partial-shape");
    assert_eq!(partial(|| Frag::warp_zeros(64, 16)), "partial-shape");
    let c = code(|k, mark| {
        let partials = k.partial_tiles("partials", 64, 16);
        k.role("math").warpgroups(1).body(|| {
            let (place, sums) = (cta_id(), Frag::zeros(128, 16));
            mark.next_line();
            let _ = partials.add(place, sums);
        });
    });
    assert_eq!(c, "partial-shape");
}

#[test]
fn slots_that_are_posted_hold_nothing_else() {
    let handed = |posted: bool, stores: bool| {
        code(|k, mark| {
            k.cluster(2, 1, 1);
            let ring = k.ring("sums", 1, |s| s.plain::<f32>(1, 512));
            let ring = if posted { ring.posted() } else { ring.across() };
            k.role("math").warpgroups(1).body(|| {
                let peer = cluster_rank() ^ 1u32;
                let slot = ring.acquire_at(peer);
                if stores {
                    slot.store(0u32, thread_in_role(), 1f32);
                    mark.next_line();
                    slot.commit();
                } else {
                    mark.next_line();
                    Frag::zeros(64, 8).post_lanes(&slot);
                    slot.commit();
                }
                ring.wait().release_to(peer);
            });
        })
    };
    assert_eq!(handed(true, true), "slot-posted");
    assert_eq!(handed(false, false), "slot-posted");
}

#[test]
fn slots_of_peers_and_multicasts_that_were_not_declared() {
    let c = code(|k, mark| {
        k.cluster(2, 1, 1);
        let ring = k.ring("rows", 2, |s| s.vector::<u32>(32));
        k.role("fill").body(|| {
            mark.next_line();
            ring.acquire_at(1u32).commit();
        });
        k.role("take").body(|| ring.wait().release());
    });
    assert_eq!(c, "ring-across");
    let multicast = |declared: bool, rows: u32| {
        code(|k, mark| {
            k.cluster(2, 1, 1);
            let map = k.tensor_map("x", boxes(rows, 32));
            let mut ring = k.ring("tiles", 2, |s| s.tile::<f32>(64, 32));
            if declared {
                ring = ring.multicast_along(Axis::X);
            }
            k.role("load").body(|| {
                elect(|| {
                    let slot = ring.acquire();
                    mark.next_line();
                    slot.load_multicast(map, slot.tiles(), [0, 0]);
                    slot.commit();
                });
            });
            k.role("take").body(|| ring.wait().release());
        })
    };
    assert_eq!(multicast(false, 32), "ring-multicast");
    assert_eq!(multicast(true, 64), "multicast-part");
}

#[test]
fn a_slot_left_in_a_fold() {
    let c = code(|k, mark| {
        let ring = k.ring("rows", 2, |s| s.vector::<u32>(32));
        k.role("fill").body(|| elect(|| ring.acquire().commit()));
        k.role("take").body(|| {
            mark.next_line();
            let first = ring.wait();
            // What the round before took is dropped.
            let last = steps(2).fold(first, |_, _| ring.wait());
            last.release();
        });
    });
    assert_eq!(c, "slot-left");
}

#[test]
fn all_errors_are_returned_at_once() {
    let errors = Kernel::build("k", &Target::SM_90A, |k| {
        k.param::<u32>("n");
        k.param::<u32>("n");
        k.role("all").warps(0).body(|| {});
    })
    .expect_err("two errors");
    let codes: Vec<_> = errors.errors.iter().map(|e| e.code).collect();
    assert_eq!(codes, ["parameter-name", "role-warps"]);
}

#[test]
fn a_kernel_without_roles() {
    let e = Kernel::build("k", &Target::SM_90A, |_| {}).expect_err("nothing to run");
    assert_eq!(e.errors[0].code, "no-role");
}

#[test]
fn a_panic_in_the_body_leaves_no_builder_behind() {
    let r = std::panic::catch_unwind(|| {
        Kernel::build("k", &Target::SM_90A, |_| panic!("author's bug"))
    });
    assert!(r.is_err());
    Kernel::build("next", &Target::SM_90A, |k| k.role("all").body(|| {})).expect("a fresh builder");
}

#[test]
fn bounds_of_a_value_that_is_no_parameter() {
    type Declare = fn(Reg<u32>, Global<f32>);
    let wrong: [Declare; 5] = [
        |n, _| _ = (n + 1).at_least(2),
        |n, _| _ = (n + 1).at_most(2),
        |n, _| _ = (n + 1).multiple_of(2),
        |_, x| _ = x.offset(1).aligned_to(16),
        |n, x| _ = x.elements(n + 1),
    ];
    for declare in wrong {
        let (code, text, _, _) = refused(|k| {
            let n = k.param::<u32>("n").at_least(1);
            let x = k.pointer::<f32>("x").elements(n);
            k.role("all").body(|| declare(n, x));
        });
        assert_eq!(code, "not-a-parameter");
        assert!(text.starts_with("only a launch parameter has a declared "));
    }
}

#[test]
fn bounds_that_no_value_keeps() {
    type Declare = fn(Reg<i32>, Global<f32>);
    let wrong: [(Declare, &str); 5] = [
        (
            |n, _| _ = n.at_least(-3).at_most(-4),
            "no value of parameter n is at least -3, at most -4 and a multiple of 1",
        ),
        (
            |n, _| _ = n.at_least(-15).at_most(-1).multiple_of(16),
            "no value of parameter n is at least -15, at most -1 and a multiple of 16",
        ),
        (
            |n, _| _ = n.multiple_of(0),
            "a divisor is 1 to 2^64 - 1, not 0",
        ),
        (
            |_, x| _ = x.aligned_to(24),
            "an alignment is a power of two, not 24",
        ),
        (
            |n, _| _ = n.multiple_of(1 << 63).multiple_of(3),
            "a divisor is 1 to 2^64 - 1, not 3",
        ),
    ];
    for (declare, rule) in wrong {
        let (code, text, _, _) = refused(|k| {
            declare(k.param::<i32>("n"), k.pointer::<f32>("x"));
            k.role("all").body(|| {});
        });
        assert_eq!((code, text.as_str()), ("parameter-bounds", rule));
    }
    // The same declarations with one value left.
    Kernel::build("k", &Target::SM_90A, |k| {
        let _ = k
            .param::<i32>("n")
            .at_least(-16)
            .at_most(-1)
            .multiple_of(16);
        let _ = k.param::<u32>("m").multiple_of(6).multiple_of(4);
        k.role("all").body(|| {});
    })
    .expect("a kernel");
}

#[test]
fn a_meeting_stands_once_and_in_a_roles_body() {
    let (mut first, mut line) = (0, 0);
    let (code, _, at, other) = refused(|k| {
        k.role("a").body(|| {
            first = line!() + 1;
            meet();
        });
        k.role("b").body(|| {
            line = line!() + 1;
            meet();
        });
    });
    assert_eq!((code, at, other), ("meet-once", line, Some(first)));

    let in_a_loop = |at: &mut u32| {
        *at = line!() + 1;
        let each = |_| meet();
        steps(2u32).each(each);
    };
    let as_one_lane = |at: &mut u32| {
        *at = line!() + 1;
        elect(meet);
    };
    for wrong in [&in_a_loop as &dyn Fn(&mut u32), &as_one_lane] {
        let (code, text, at, _) = refused(|k| k.role("a").body(|| wrong(&mut line)));
        assert_eq!((code, at), ("meet-place", line));
        assert!(text.contains("the whole role meets the others"), "{text}");
    }

    let (code, ..) = refused(|k| {
        meet();
        k.role("a").body(|| {});
    });
    assert_eq!(code, "meet-place");
}

#[test]
fn a_cluster_whose_ctas_reach_each_other_meets_first() {
    let mut line = 0;
    let (code, text, at, _) = refused(|k| {
        k.cluster(2, 1, 1);
        let ring = k.ring("in", 2, |s| s.vector::<u32>(32)).multicast();
        k.role("load").body(|| {
            line = line!() + 1;
            meet();
            elect(|| ring.acquire().commit());
        });
        k.role("read").body(|| ring.wait().release());
    });
    assert_eq!((code, at), ("meet-cluster", line));
    assert!(text.contains("meet before any role begins"), "{text}");
}
