//! Errors of the builder, and the source lines that they report.

use half::{bf16, f16};
use std::cell::Cell;
use warpline_ir::builder::*;
use warpline_ir::{
    Axis, BuildErrors, DType, E4m3, Kernel, Swizzle, Target, TensorMapDecl, TensorMapMode,
};

/// Returns the only error of a kernel: code, text, line and related line.
#[track_caller]
fn rejected(body: impl FnOnce(Builder)) -> (&'static str, String, u32, Option<u32>) {
    let errors: BuildErrors =
        Kernel::build("k", &Target::SM_90A, body).expect_err("must be rejected");
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
fn slot_without_commit_is_rejected() {
    let mut line = 0;
    let (code, text, at, _) = rejected(|k| {
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
fn slot_without_release_is_rejected() {
    let mut line = 0;
    let (code, text, at, _) = rejected(|k| {
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
fn register_of_another_role_is_rejected_with_both_lines() {
    let (mut defined, mut used, mut leaked) = (0, 0, None);
    let (code, text, at, other) = rejected(|k| {
        k.role("one").body(|| {
            defined = line!() + 1;
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
        ("register-of-another-role", used, Some(defined))
    );
    assert!(text.contains("role one") && text.contains("two"), "{text}");
}

#[test]
fn register_used_after_its_block_is_rejected() {
    let mut leaked = None;
    let (code, ..) = rejected(|k| {
        k.role("all").body(|| {
            steps(4).each(|i| leaked = Some(i + 1));
            let _ = leaked.expect("the loop body ran") + 1;
        });
    });
    assert_eq!(code, "register-out-of-scope");
}

#[test]
fn register_of_another_kernel_is_rejected() {
    let mut leaked = None;
    Kernel::build("first", &Target::SM_90A, |k| {
        k.role("all").body(|| leaked = Some(thread_id()));
    })
    .expect("a valid kernel");
    let (code, ..) = rejected(|k| {
        k.role("all").body(|| {
            let _ = leaked.expect("the first kernel was built") + 1;
        });
    });
    assert_eq!(code, "register-of-another-kernel");
}

#[test]
fn ring_without_a_consumer_is_rejected() {
    let mut line = 0;
    let (code, text, at, _) = rejected(|k| {
        line = line!() + 1;
        let ring = k.ring("tiles", 2, |s| s.vector::<f32>(32));
        k.role("load").body(|| elect(|| ring.acquire().commit()));
    });
    assert_eq!((code, at), ("ring-end", line));
    assert!(text.contains("no consumer"), "{text}");
}

#[test]
fn two_consumers_without_a_distribution_are_rejected() {
    let (code, text, ..) = rejected(|k| {
        let ring = k.ring("tiles", 2, |s| s.vector::<f32>(32));
        k.role("load").body(|| elect(|| ring.acquire().commit()));
        k.role("one").body(|| ring.wait().release());
        k.role("two").body(|| ring.wait().release());
    });
    assert_eq!(code, "ring-distribution");
    assert!(text.contains("broadcast() or round_robin()"), "{text}");
}

#[test]
fn ring_per_warp_with_a_wrong_warp_count_is_rejected() {
    let kernel = |warps: u32| {
        move |k: Builder| {
            let ring = k.ring_per_warp("tiles", warps, 2, |s| s.vector::<f32>(32));
            k.role("load")
                .warps(2)
                .body(|| elect_lane(|| ring.acquire().commit()));
            k.role("math").warps(2).body(|| ring.wait().release());
        }
    };
    Kernel::build("pairs", &Target::SM_90A, kernel(2)).expect("a valid kernel");
    let (code, text, ..) = rejected(kernel(3));
    assert_eq!(code, "ring-per-warp");
    assert!(
        text.contains("declared for 3 warps, but a role that uses it has 2"),
        "{text}"
    );
}

#[test]
fn ring_per_warp_of_one_warp_or_round_robin_is_rejected() {
    let (code, text, ..) = rejected(|k| {
        let ring = k.ring_per_warp("tiles", 2, 2, |s| s.vector::<f32>(32));
        k.role("load")
            .warps(2)
            .body(|| elect(|| ring.acquire().commit()));
        k.role("math").warps(2).body(|| ring.wait().release());
    });
    assert_eq!(code, "ring-per-warp");
    assert!(text.contains("use elect_lane()"), "{text}");
    let (code, text, ..) = rejected(|k| {
        let ring = k.ring_per_warp("tiles", 2, 2, |s| s.vector::<f32>(32));
        let ring = ring.round_robin();
        k.role("load")
            .warps(2)
            .body(|| elect_lane(|| ring.acquire().commit()));
        k.role("math").warps(2).body(|| ring.wait().release());
    });
    assert_eq!(code, "ring-per-warp");
    assert!(text.contains("cannot be round-robin"), "{text}");
}

#[test]
fn bulk_copy_by_a_whole_role_is_rejected() {
    let (code, ..) = rejected(|k| {
        let x = k.pointer::<f32>("x");
        let ring = k.ring("tiles", 2, |s| s.vector::<f32>(32));
        k.role("load").body(|| {
            let slot = ring.acquire();
            slot.load_bytes(slot.tiles(), x.address(0), 128);
            slot.commit();
        });
        k.role("math").body(|| ring.wait().release());
    });
    assert_eq!(code, "copy-not-elected");
}

#[test]
fn view_across_a_swizzle_atom_is_rejected() {
    let (code, ..) = rejected(|k| {
        let t = k.tile::<f32>("t", 16, 32).declare();
        k.role("all").body(|| {
            let _ = t.whole().slice(4..8, 0..32);
        });
    });
    assert_eq!(code, "view-atoms");
}

#[test]
fn invalid_declarations_are_rejected() {
    let code = |body: fn(Builder)| rejected(body).0;
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
fn mixed_commits_of_one_ring_are_rejected() {
    let code = |body: fn(Ring<Tile<u32>>)| {
        let e = Kernel::build("k", &Target::SM_90A, |k| {
            let ring = k.ring("r", 2, |s| s.vector::<u32>(32));
            k.role("fill").body(|| body(ring));
            k.role("drain").body(|| ring.wait().release());
        });
        e.expect_err("must be rejected").errors[0].code
    };
    let mixed: fn(Ring<Tile<u32>>) = |ring| {
        ring.acquire().commit();
        ring.acquire().commit_after_copies();
    };
    assert_eq!(code(mixed), "slot-commit");
    let stored: fn(Ring<Tile<u32>>) = |ring| {
        let slot = ring.acquire();
        slot.store(0u32, lane_id(), 1u32);
        slot.commit_after_copies();
    };
    assert_eq!(code(stored), "slot-copies");
}

/// The source line that an error must report.
#[derive(Default)]
struct MarkedLine(Cell<u32>);

impl MarkedLine {
    /// Marks the line after this call.
    #[track_caller]
    fn next_line(&self) {
        self.0.set(std::panic::Location::caller().line() + 1);
    }
}

/// Returns the code of the only error of a kernel, and checks that it reports the marked line.
#[track_caller]
fn code(body: impl FnOnce(Builder, &MarkedLine)) -> &'static str {
    let mark = MarkedLine::default();
    let (code, text, at, _) = rejected(|k| body(k, &mark));
    assert_eq!(at, mark.0.get(), "the line of {code}: {text}");
    code
}

/// Like [`code`], inside a role of one warpgroup.
#[track_caller]
fn code_in_role(body: impl FnOnce(&MarkedLine)) -> &'static str {
    code(|k, mark| k.role("math").warpgroups(1).body(|| body(mark)))
}

/// Like [`code`], inside a role of one warpgroup, with a tile of 64 × 64.
#[track_caller]
fn code_with_tile<T: warpline_ir::Element>(
    body: impl FnOnce(TileRef<T>, &MarkedLine),
) -> &'static str {
    code(|k, mark| {
        let tile = k.tile::<T>("tile", 64, 64).declare();
        k.role("math")
            .warpgroups(1)
            .body(|| body(tile.whole(), mark));
    })
}

#[test]
fn invalid_accumulators_are_rejected() {
    let c = code_in_role(|mark| {
        mark.next_line();
        Acc::new(64, 12).into_frag();
    });
    assert_eq!(c, "accumulator-shape");
    let c = code(|k, mark| {
        k.role("math").warps(2).body(|| {
            mark.next_line();
            Acc::new(64, 8).into_frag();
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
fn invalid_wgmma_is_rejected() {
    let c = code_with_tile::<f32>(|tile, mark| {
        let acc = Acc::new(64, 64);
        mark.next_line();
        acc.mma(&tile, &tile);
    });
    assert_eq!(c, "mma-type");
    let shapes: [fn(TileRef<bf16>, &Acc, &MarkedLine); 3] = [
        // Rows that differ from the accumulator's.
        |tile, acc, mark| {
            mark.next_line();
            acc.mma(&tile, &tile.slice(0..32, 0..64));
        },
        // Different K.
        |tile, acc, mark| {
            mark.next_line();
            acc.mma(&tile, &tile.slice(0..64, 0..32));
        },
        // A K that is not a multiple of the instruction K.
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
fn invalid_operands_are_rejected() {
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
    // A warp fragment is not an operand of wgmma; using the rejected operand does not panic.
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
fn invalid_fragments_are_rejected() {
    // A rejected fragment causes no follow-up errors.
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

/// The number of column pairs must match the fragment, and a shift must be a multiple of 8.
#[test]
fn invalid_column_pairs_and_shifts_are_rejected() {
    let c = code_in_role(|mark| {
        let pairs = map_col_pairs(16, |_| [0.0f32.reg(); 2]);
        let tile = Frag::zeros(64, 32);
        mark.next_line();
        let _ = tile.zip_col_pairs(&pairs, |x, y| x + y);
    });
    assert_eq!(c, "fragment-columns");
    let c = code_in_role(|mark| {
        let tile = Frag::zeros(64, 32);
        mark.next_line();
        let _ = tile.shift_cols(12);
    });
    assert_eq!(c, "fragment-slice");
}

#[test]
fn row_vector_of_another_fragment_is_rejected() {
    let others: [fn() -> RowVector; 2] = [
        || RowVector::splat(128, 1.0),
        // As many values in each lane, but for other rows.
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
            let (first, rows) = (RowVector::splat(64, 1.0), rows());
            mark.next_line();
            let _ = first.zip(&rows, |x, y| x + y);
        });
        assert_eq!(c, "fragment-rows");
    }
}

#[test]
fn fragment_store_to_a_wrong_shape_is_rejected() {
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
fn invalid_warp_mma_is_rejected() {
    let c = code_with_tile::<bf16>(|tile, mark| {
        let sums = Frag::zeros(64, 16);
        mark.next_line();
        let _ = sums.mma_sync(&tile, 0u32, &tile, 0u32);
    });
    assert_eq!(c, "warp-mma-shape");
    let c = code_with_tile::<bf16>(|tile, mark| {
        let (sums, part) = (Frag::warp_zeros(16, 16), tile.slice(0..64, 0..32));
        mark.next_line();
        let _ = sums.mma_sync(&tile, 0u32, &part, 0u32);
    });
    assert_eq!(c, "warp-mma-shape");
}

/// Boxes of `rows` × `cols` of f32, swizzled over 128 bytes.
fn boxes(rows: u32, cols: u32) -> TensorMapDecl {
    TensorMapDecl {
        dtype: DType::F32,
        tile: vec![cols, rows],
        swizzle: Swizzle::B128,
        mode: TensorMapMode::Tiled,
    }
}

#[test]
fn fragment_or_box_that_does_not_fit_the_outbox_is_rejected() {
    let tiles: [fn() -> Frag; 3] = [
        // Wrong rows; wrong columns.
        || Frag::zeros(128, 32),
        || Frag::zeros(64, 40),
        // One fragment for each of four warps.
        || Frag::warp_zeros(64, 32),
    ];
    for tile in tiles {
        let c = code(|k, mark| {
            let out = k.tensor_map("out", boxes(64, 32));
            let outbox = k.outbox::<f32>("out", 1, 64, 32);
            k.role("math").warpgroups(1).body(|| {
                let tile = tile();
                mark.next_line();
                outbox.store(&tile, out, [0, 0]);
            });
        });
        assert_eq!(c, "outbox-shape");
    }
    // A box that does not divide the outbox.
    let c = code(|k, mark| {
        let out = k.tensor_map("out", boxes(48, 32));
        let outbox = k.outbox::<f32>("out", 1, 64, 32);
        k.role("math").warpgroups(1).body(|| {
            let tile = Frag::zeros(64, 32);
            mark.next_line();
            outbox.store(&tile, out, [0, 0]);
        });
    });
    assert_eq!(c, "outbox-shape");
}

#[test]
fn outbox_used_by_two_roles_is_rejected() {
    let c = code(|k, mark| {
        let out = k.tensor_map("out", boxes(64, 32));
        let outbox = k.outbox::<f32>("out", 1, 64, 32);
        let store = || outbox.store(&Frag::zeros(64, 32), out, [0, 0]);
        k.role("one").warpgroups(1).body(store);
        k.role("two").warpgroups(1).body(|| {
            let tile = Frag::zeros(64, 32);
            mark.next_line();
            outbox.store(&tile, out, [0, 0]);
        });
    });
    assert_eq!(c, "outbox-role");
}

#[test]
fn partial_tile_of_a_wrong_shape_is_rejected() {
    let partial = |tile: fn() -> Frag| {
        code(|k, mark| {
            let partials = k.partial_tiles("partials", 64, 16);
            k.role("math").warpgroups(1).body(|| {
                let tile = tile();
                mark.next_line();
                partials.store(cta_id(), &tile);
            });
        })
    };
    assert_eq!(partial(|| Frag::zeros(64, 8)), "partial-shape");
    assert_eq!(partial(|| Frag::warp_zeros(64, 16)), "partial-shape");
    let c = code(|k, mark| {
        let partials = k.partial_tiles("partials", 64, 16);
        k.role("math").warpgroups(1).body(|| {
            let (index, sums) = (cta_id(), Frag::zeros(128, 16));
            mark.next_line();
            let _ = partials.wait_and_add(index, sums);
        });
    });
    assert_eq!(c, "partial-shape");
}

#[test]
fn mixed_stores_in_a_ring_with_async_stores_are_rejected() {
    let commit = |async_stores: bool, stores: bool| {
        code(|k, mark| {
            k.cluster(2, 1, 1);
            let ring = k.ring("sums", 1, |s| s.unswizzled::<f32>(1, 512));
            let ring = if async_stores {
                ring.async_stores()
            } else {
                ring.across_cluster()
            };
            k.role("math").warpgroups(1).body(|| {
                let peer = cluster_rank() ^ 1u32;
                let slot = ring.acquire_remote(peer);
                if stores {
                    slot.store(0u32, thread_in_role(), 1f32);
                    mark.next_line();
                    slot.commit();
                } else {
                    mark.next_line();
                    Frag::zeros(64, 8).store_async_thread_major(&slot);
                    slot.commit();
                }
                ring.wait().release_remote(peer);
            });
        })
    };
    assert_eq!(commit(true, true), "slot-async-stores");
    assert_eq!(commit(false, false), "slot-async-stores");
}

#[test]
fn remote_and_multicast_slots_without_a_declaration_are_rejected() {
    let c = code(|k, mark| {
        k.cluster(2, 1, 1);
        let ring = k.ring("rows", 2, |s| s.vector::<u32>(32));
        k.role("fill").body(|| {
            mark.next_line();
            ring.acquire_remote(1u32).commit();
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
fn slot_dropped_in_a_fold_is_rejected() {
    let c = code(|k, mark| {
        let ring = k.ring("rows", 2, |s| s.vector::<u32>(32));
        k.role("fill").body(|| elect(|| ring.acquire().commit()));
        k.role("take").body(|| {
            mark.next_line();
            let first = ring.wait();
            // The carried slot is dropped without a release.
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
fn kernel_without_roles_is_rejected() {
    let e = Kernel::build("k", &Target::SM_90A, |_| {}).expect_err("must be rejected");
    assert_eq!(e.errors[0].code, "no-role");
}

#[test]
fn panic_in_the_body_closes_the_builder() {
    let r = std::panic::catch_unwind(|| {
        Kernel::build("k", &Target::SM_90A, |_| panic!("author's bug"))
    });
    assert!(r.is_err());
    Kernel::build("next", &Target::SM_90A, |k| k.role("all").body(|| {})).expect("a fresh builder");
}

#[test]
fn bounds_of_a_computed_value_are_rejected() {
    type Declare = fn(Reg<u32>, Global<f32>);
    let wrong: [Declare; 5] = [
        |n, _| _ = (n + 1).at_least(2),
        |n, _| _ = (n + 1).at_most(2),
        |n, _| _ = (n + 1).multiple_of(2),
        |_, x| _ = x.offset(1).aligned_to(16),
        |n, x| _ = x.elements(n + 1),
    ];
    for declare in wrong {
        let (code, text, _, _) = rejected(|k| {
            let n = k.param::<u32>("n").at_least(1);
            let x = k.pointer::<f32>("x").elements(n);
            k.role("all").body(|| declare(n, x));
        });
        assert_eq!(code, "not-a-parameter");
        assert!(text.ends_with("only launch parameters have one"), "{text}");
    }
}

#[test]
fn unsatisfiable_bounds_are_rejected() {
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
            "multiple_of(0) is out of range; use 1 to 2^64 - 1",
        ),
        (
            |_, x| _ = x.aligned_to(24),
            "aligned_to(24) is not a power of two",
        ),
        (
            |n, _| _ = n.multiple_of(1 << 63).multiple_of(3),
            "multiple_of(3) is out of range; use 1 to 2^64 - 1",
        ),
    ];
    for (declare, rule) in wrong {
        let (code, text, _, _) = rejected(|k| {
            declare(k.param::<i32>("n"), k.pointer::<f32>("x"));
            k.role("all").body(|| {});
        });
        assert_eq!((code, text.as_str()), ("parameter-bounds", rule));
    }
    // Declarations that at least one value satisfies.
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
fn second_or_nested_prologue_barrier_is_rejected() {
    let (mut first, mut line) = (0, 0);
    let (code, _, at, other) = rejected(|k| {
        k.role("a").body(|| {
            first = line!() + 1;
            prologue_barrier();
        });
        k.role("b").body(|| {
            line = line!() + 1;
            prologue_barrier();
        });
    });
    assert_eq!(
        (code, at, other),
        ("prologue-barrier-once", line, Some(first))
    );

    let in_a_loop = |at: &mut u32| {
        *at = line!() + 1;
        let each = |_| prologue_barrier();
        steps(2u32).each(each);
    };
    let in_elect = |at: &mut u32| {
        *at = line!() + 1;
        elect(prologue_barrier);
    };
    for wrong in [&in_a_loop as &dyn Fn(&mut u32), &in_elect] {
        let (code, text, at, _) = rejected(|k| k.role("a").body(|| wrong(&mut line)));
        assert_eq!((code, at), ("prologue-barrier-place", line));
        assert!(text.contains("at the top level of the role body"), "{text}");
    }

    let (code, ..) = rejected(|k| {
        prologue_barrier();
        k.role("a").body(|| {});
    });
    assert_eq!(code, "prologue-barrier-place");
}

#[test]
fn prologue_barrier_in_a_cluster_with_remote_accesses_is_rejected() {
    let mut line = 0;
    let (code, text, at, _) = rejected(|k| {
        k.cluster(2, 1, 1);
        let ring = k.ring("in", 2, |s| s.vector::<u32>(32)).multicast();
        k.role("load").body(|| {
            line = line!() + 1;
            prologue_barrier();
            elect(|| ring.acquire().commit());
        });
        k.role("read").body(|| ring.wait().release());
    });
    assert_eq!((code, at), ("prologue-barrier-cluster", line));
    assert!(text.contains("starts with a cluster barrier"), "{text}");
}
