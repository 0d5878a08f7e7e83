//! Errors in rings and slots.

pub(super) mod ring_end {
    //! A ring connects producers and consumers. Without a producer the full mbarriers never complete;
    //! without a consumer the empty mbarriers never complete.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        let ring = k.ring("ring", 2, |s| s.vector::<f32>(32));
        k.role("load").body(|| elect(|| ring.acquire().commit()));
    }

    pub(crate) fn repaired(k: Builder) {
        let ring = k.ring("ring", 2, |s| s.vector::<f32>(32));
        k.role("load").body(|| elect(|| ring.acquire().commit()));
        k.role("math").body(|| ring.wait().release());
    }
}

pub(super) mod ring_distribution {
    //! With two consumers, either both read every slot (`broadcast`), or they take slots in turn
    //! (`round_robin`). The arrival counts of the barriers depend on it.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        let ring = k.ring("ring", 2, |s| s.vector::<f32>(32));
        k.role("load").body(|| elect(|| ring.acquire().commit()));
        k.role("consumer0").body(|| ring.wait().release());
        k.role("consumer1").body(|| ring.wait().release());
    }

    pub(crate) fn repaired(k: Builder) {
        let ring = k.ring("ring", 2, |s| s.vector::<f32>(32)).broadcast();
        k.role("load").body(|| elect(|| ring.acquire().commit()));
        k.role("consumer0").body(|| ring.wait().release());
        k.role("consumer1").body(|| ring.wait().release());
    }
}

pub(super) mod ring_per_warp {
    //! A ring per warp connects warp `i` of the producer with warp `i` of the consumer, so both
    //! roles have one warp for each ring.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        let ring = k.ring_per_warp("ring", 4, 2, |s| s.vector::<f32>(32));
        k.role("load")
            .warps(2)
            .body(|| elect_lane(|| ring.acquire().commit()));
        k.role("math").warps(2).body(|| ring.wait().release());
    }

    pub(crate) fn repaired(k: Builder) {
        let ring = k.ring_per_warp("ring", 2, 2, |s| s.vector::<f32>(32));
        k.role("load")
            .warps(2)
            .body(|| elect_lane(|| ring.acquire().commit()));
        k.role("math").warps(2).body(|| ring.wait().release());
    }
}

pub(super) mod ring_stages {
    //! A stage is a buffer of a ring. The producer needs at least one to write to.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        let ring = k.ring("ring", 0, |s| s.vector::<f32>(32));
        k.role("load").body(|| elect(|| ring.acquire().commit()));
        k.role("math").body(|| ring.wait().release());
    }

    pub(crate) fn repaired(k: Builder) {
        let ring = k.ring("ring", 2, |s| s.vector::<f32>(32));
        k.role("load").body(|| elect(|| ring.acquire().commit()));
        k.role("math").body(|| ring.wait().release());
    }
}

pub(super) mod ring_outside_role {
    //! Each role keeps its own position in a ring, in its own registers.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        let ring = k.ring("ring", 2, |s| s.vector::<f32>(32));
        ring.acquire().commit();
        k.role("load").body(|| elect(|| ring.acquire().commit()));
        k.role("math").body(|| ring.wait().release());
    }

    pub(crate) fn repaired(k: Builder) {
        let ring = k.ring("ring", 2, |s| s.vector::<f32>(32));
        k.role("load").body(|| elect(|| ring.acquire().commit()));
        k.role("math").body(|| ring.wait().release());
    }
}

pub(super) mod ring_elect {
    //! The position of a role in a ring lives in registers. If one lane advances it inside
    //! `elect`, the other lanes of the role keep the old position.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        let ring = k.ring("ring", 2, |s| s.vector::<f32>(32));
        k.role("load").body(|| {
            elect(|| ring.acquire().commit());
            ring.acquire().commit();
        });
        k.role("math").body(|| {
            ring.wait().release();
            ring.wait().release();
        });
    }

    pub(crate) fn repaired(k: Builder) {
        let ring = k.ring("ring", 2, |s| s.vector::<f32>(32));
        k.role("load").body(|| {
            elect(|| {
                ring.acquire().commit();
                ring.acquire().commit();
            });
        });
        k.role("math").body(|| {
            ring.wait().release();
            ring.wait().release();
        });
    }
}

pub(super) mod ring_across {
    //! A ring across the cluster has slots that another CTA fills. Its barriers count arrivals of
    //! that CTA.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        k.cluster(2, 1, 1);
        let ring = k.ring("sums", 1, |s| s.vector::<f32>(32));
        k.role("math").body(|| {
            let peer = cluster_rank() ^ 1u32;
            let slot = ring.acquire_remote(peer);
            slot.store(0u32, thread_in_role(), 1f32);
            slot.commit();
            ring.wait().release_remote(peer);
        });
    }

    pub(crate) fn repaired(k: Builder) {
        k.cluster(2, 1, 1);
        let ring = k.ring("sums", 1, |s| s.vector::<f32>(32));
        let ring = ring.across_cluster();
        k.role("math").body(|| {
            let peer = cluster_rank() ^ 1u32;
            let slot = ring.acquire_remote(peer);
            slot.store(0u32, thread_in_role(), 1f32);
            slot.commit();
            ring.wait().release_remote(peer);
        });
    }
}

pub(super) mod ring_multicast {
    //! A multicast load writes the slot of every CTA in the group. A producer may issue it only
    //! when all of these slots are free, and a multicast ring waits for that.

    use warpline_ir::builder::*;
    use warpline_ir::{Axis, DType, Swizzle, TensorMapDecl, TensorMapMode};

    pub(crate) fn broken(k: Builder) {
        k.cluster(2, 1, 1);
        let x = k.tensor_map("x", half_tile());
        let ring = k.ring("ring", 2, |s| s.tile::<f32>(64, 32));
        k.role("load").body(|| {
            elect(|| {
                let slot = ring.acquire();
                slot.load_multicast(x, slot.tiles(), [0, 0]);
                slot.commit();
            });
        });
        k.role("math").body(|| ring.wait().release());
    }

    pub(crate) fn repaired(k: Builder) {
        k.cluster(2, 1, 1);
        let x = k.tensor_map("x", half_tile());
        let ring = k.ring("ring", 2, |s| s.tile::<f32>(64, 32));
        let ring = ring.multicast_along(Axis::X);
        k.role("load").body(|| {
            elect(|| {
                let slot = ring.acquire();
                slot.load_multicast(x, slot.tiles(), [0, 0]);
                slot.commit();
            });
        });
        k.role("math").body(|| ring.wait().release());
    }

    fn half_tile() -> TensorMapDecl {
        TensorMapDecl {
            dtype: DType::F32,
            tile: vec![32, 32],
            swizzle: Swizzle::B128,
            mode: TensorMapMode::Tiled,
        }
    }
}

pub(super) mod multicast_part {
    //! Each CTA of a multicast group loads an equal part of the tile for all of them. The box of
    //! the tensor map is that part.

    use warpline_ir::builder::*;
    use warpline_ir::{Axis, DType, Swizzle, TensorMapDecl, TensorMapMode};

    pub(crate) fn broken(k: Builder) {
        let x = k.tensor_map("x", rows(64)); // the whole tile
        declare(k, x);
    }

    pub(crate) fn repaired(k: Builder) {
        let x = k.tensor_map("x", rows(32)); // one half for each of the two CTAs
        declare(k, x);
    }

    fn declare(k: Builder, x: TensorMap) {
        k.cluster(2, 1, 1);
        let ring = k.ring("ring", 2, |s| s.tile::<f32>(64, 32));
        let ring = ring.multicast_along(Axis::X);
        k.role("load").body(|| {
            elect(|| {
                let slot = ring.acquire();
                slot.load_multicast(x, slot.tiles(), [0, 0]);
                slot.commit();
            });
        });
        k.role("math").body(|| ring.wait().release());
    }

    fn rows(rows: u32) -> TensorMapDecl {
        TensorMapDecl {
            dtype: DType::F32,
            tile: vec![32, rows],
            swizzle: Swizzle::B128,
            mode: TensorMapMode::Tiled,
        }
    }
}

pub(super) mod slot_left {
    //! The consumer waits for the commit of a slot, and the producer waits for its release. If one
    //! of them is missing, the other role waits forever.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        let ring = k.ring("ring", 2, |s| s.vector::<f32>(32));
        k.role("load").body(|| elect(|| ring.acquire().commit()));
        k.role("math").body(|| {
            let slot = ring.wait();
            let _x = slot.load(0u32, lane_id());
        });
    }

    pub(crate) fn repaired(k: Builder) {
        let ring = k.ring("ring", 2, |s| s.vector::<f32>(32));
        k.role("load").body(|| {
            let slot = ring.acquire();
            slot.store(0u32, lane_id(), 1f32);
            slot.commit();
        });
        k.role("math").body(|| {
            let slot = ring.wait();
            let _x = slot.load(0u32, lane_id());
            slot.release();
        });
    }
}

pub(super) mod slot_commit {
    //! `commit` arrives once per warp, `commit_after_copies` once per thread. All full mbarriers of a
    //! ring have the same arrival count, so a role must commit every slot in the same way.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        let ring = k.ring("ring", 2, |s| s.vector::<u32>(32));
        k.role("load").body(|| {
            ring.acquire().commit();
            ring.acquire().commit_after_copies();
        });
        k.role("math").body(|| {
            ring.wait().release();
            ring.wait().release();
        });
    }

    pub(crate) fn repaired(k: Builder) {
        let ring = k.ring("ring", 2, |s| s.vector::<u32>(32));
        k.role("load").body(|| {
            ring.acquire().commit_after_copies();
            ring.acquire().commit_after_copies();
        });
        k.role("math").body(|| {
            ring.wait().release();
            ring.wait().release();
        });
    }
}

pub(super) mod slot_copies {
    //! `commit_after_copies` lets the `cp.async` copies arrive at the barrier. It does not order
    //! ordinary stores.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        let ring = k.ring("ring", 2, |s| s.vector::<u32>(32));
        k.role("load").body(|| {
            let slot = ring.acquire();
            slot.store(0u32, lane_id(), 1u32);
            slot.commit_after_copies();
        });
        k.role("math").body(|| ring.wait().release());
    }

    pub(crate) fn repaired(k: Builder) {
        let ring = k.ring("ring", 2, |s| s.vector::<u32>(32));
        k.role("load").body(|| {
            let slot = ring.acquire();
            slot.store(0u32, lane_id(), 1u32);
            slot.commit();
        });
        k.role("math").body(|| ring.wait().release());
    }
}

pub(super) mod slot_async_stores {
    //! In a ring with `async_stores`, `st.async` itself delivers bytes to the barrier of the other
    //! CTA. Ordinary stores deliver none.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        k.cluster(2, 1, 1);
        let ring = k.ring("sums", 1, |s| s.unswizzled::<f32>(1, 512));
        let ring = ring.async_stores();
        k.role("math").warpgroups(1).body(|| {
            let peer = cluster_rank() ^ 1u32;
            let slot = ring.acquire_remote(peer);
            slot.store(0u32, thread_in_role(), 1f32);
            slot.commit();
            ring.wait().release_remote(peer);
        });
    }

    pub(crate) fn repaired(k: Builder) {
        k.cluster(2, 1, 1);
        let ring = k.ring("sums", 1, |s| s.unswizzled::<f32>(1, 512));
        let ring = ring.async_stores();
        k.role("math").warpgroups(1).body(|| {
            let peer = cluster_rank() ^ 1u32;
            let slot = ring.acquire_remote(peer);
            Frag::zeros(64, 8).store_async_thread_major(&slot);
            slot.commit();
            ring.wait().release_remote(peer);
        });
    }
}

pub(super) mod copy_not_elected {
    //! One thread issues a bulk copy. If all 32 lanes issue it, the barrier receives 32 times the
    //! expected bytes.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        let x = k.pointer::<f32>("x");
        let ring = k.ring("ring", 2, |s| s.vector::<f32>(32));
        k.role("load").body(|| {
            let slot = ring.acquire();
            slot.load_bytes(slot.tiles(), x.address(0), 128);
            slot.commit();
        });
        k.role("math").body(|| ring.wait().release());
    }

    pub(crate) fn repaired(k: Builder) {
        let x = k.pointer::<f32>("x").aligned_to(16);
        let ring = k.ring("ring", 2, |s| s.vector::<f32>(32));
        k.role("load").body(|| {
            elect(|| {
                let slot = ring.acquire();
                slot.load_bytes(slot.tiles(), x.address(0), 128);
                slot.commit();
            });
        });
        k.role("math").body(|| ring.wait().release());
    }
}
