use crate::rules::kernel;
use warpline_ir::Kernel;
use warpline_ir::builder::*;
use warpline_testkit::verdict::violations;

/// Variants of a kernel with a thread's write and a copy of the same bytes.
#[derive(Clone, Copy, Default)]
struct Around {
    after_write: Option<fn()>,
    before_copy: Option<fn()>,
    /// Another role writes; a barrier orders the write before the copy.
    apart: bool,
    /// The copy reads another buffer.
    elsewhere: bool,
}

/// Returns the kernel, the line of the write and the line of the copy.
fn around(how: Around) -> (Kernel, u32, u32) {
    let (mut wrote, mut copied) = (0, 0);
    let k = kernel(|k| {
        let (data, other) = (k.pointer::<u32>("data"), k.pointer::<u32>("other"));
        let tile = k.tile::<u32>("tile", 1, 32).unswizzled().declare();
        let (full, meet) = (k.barrier("full", 1).arrivals(1), k.named_barrier("meet"));
        let mut write = || {
            wrote = line!() + 1;
            data.store(lane_id(), 1u32);
            how.after_write.into_iter().for_each(|f| f());
        };
        if how.apart {
            k.role("write").body(|| {
                write();
                meet.sync(64);
            });
        }
        k.role("copy").body(|| {
            if how.apart {
                meet.sync(64);
            } else {
                write();
            }
            how.before_copy.into_iter().for_each(|f| f());
            elect_lane(|| {
                let from = if how.elsewhere { other } else { data };
                let bar = full.at(0u32);
                bar.arrive_expect(128u32);
                copied = line!() + 1;
                bulk_load(tile.whole(), from.address(0u32), 128u32, bar);
            });
            full.at(0u32).wait(0u32);
        });
    });
    (k, wrote, copied)
}

#[test]
fn a_copy_of_written_bytes_needs_a_proxy_fence() {
    let (k, wrote, copied) = around(Around::default());
    assert_eq!(violations(&k), [("R18.proxy", copied, Some(wrote))]);
    for fence in [fence_async_global as fn(), fence_async_all] {
        let after_write = Some(fence);
        let (k, ..) = around(Around {
            after_write,
            ..Around::default()
        });
        assert_eq!(violations(&k), []);
    }
    // This fence covers shared memory only.
    let after_write = Some(fence_async as fn());
    let (k, wrote, copied) = around(Around {
        after_write,
        ..Around::default()
    });
    assert_eq!(violations(&k), [("R18.proxy", copied, Some(wrote))]);
}

#[test]
fn the_fence_may_be_in_the_writer_or_in_the_copying_thread() {
    let apart = Around {
        apart: true,
        ..Around::default()
    };
    let (k, wrote, copied) = around(apart);
    assert_eq!(violations(&k), [("R18.proxy", copied, Some(wrote))]);
    let fence = Some(fence_async_global as fn());
    let (k, ..) = around(Around {
        after_write: fence,
        ..apart
    });
    assert_eq!(violations(&k), []);
    let (k, ..) = around(Around {
        before_copy: fence,
        ..apart
    });
    assert_eq!(violations(&k), []);
}

#[test]
fn a_copy_of_another_buffer_needs_no_fence() {
    let (k, ..) = around(Around {
        elsewhere: true,
        ..Around::default()
    });
    assert_eq!(violations(&k), []);
}

/// A ring declared generic-proxy-only, which a copy or threads fill.
fn generic_proxy_only(copied: bool) -> Kernel {
    kernel(|k| {
        let (data, out) = (k.pointer::<u32>("data"), k.pointer::<u32>("out"));
        let ring = k
            .ring("numbers", 2, |s| s.vector::<u32>(32))
            .generic_proxy_only();
        k.role("make").warps(1).body(|| {
            steps(8u32).each(|i| match copied {
                true => elect_lane(|| {
                    let slot = ring.acquire();
                    slot.load_bytes(slot.tiles(), data.address(i * 32u32), 128u32);
                    slot.commit();
                }),
                false => {
                    let slot = ring.acquire();
                    slot.store(0u32, lane_id(), i);
                    slot.commit();
                }
            });
        });
        k.role("store").warps(1).body(|| {
            steps(8u32).each(|i| {
                let slot = ring.wait();
                out.store(i * 32u32 + lane_id(), slot.load(0u32, lane_id()));
                slot.release();
            });
        });
    })
}

#[test]
fn a_generic_proxy_only_ring_is_refuted_if_copies_fill_it() {
    assert_eq!(violations(&generic_proxy_only(false)), []);
    let rules: Vec<_> = violations(&generic_proxy_only(true))
        .iter()
        .map(|b| b.0)
        .collect();
    assert_eq!(rules, ["R5.read"]);
}
