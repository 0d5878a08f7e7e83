use crate::rules::kernel;
use warpline_ir::Kernel;
use warpline_ir::builder::*;
use warpline_testkit::raw::RawKernel;
use warpline_testkit::verdict::violations;

#[test]
fn a_cluster_above_the_largest_size_is_refuted() {
    let mut k = RawKernel::one();
    k.0.cluster = [4, 4, 2];
    let text = k.refuted("R8.size", 1);
    assert!(
        text.contains("the cluster 4×4×2 has 32 CTAs; sm_90a allows 1 to 16"),
        "{text}"
    );
}

#[test]
fn an_empty_cluster_is_refuted() {
    let mut k = RawKernel::one();
    k.0.cluster = [2, 0, 1];
    k.refuted("R8.size", 1);
}

#[test]
fn a_cluster_of_sixteen_passes() {
    let mut k = RawKernel::one();
    k.0.cluster = [4, 2, 2];
    k.passes();
}

/// Each CTA initializes an mbarrier and writes a word of its shared memory. After the cluster
/// barrier, its peer arrives at the mbarrier and reads the word if `reads`.
fn remote_access(fence: bool, release: bool, reads: bool) -> Kernel {
    kernel(|k| {
        k.cluster(2, 1, 1);
        let out = k.pointer::<u32>("out");
        let bar = k.barrier("bar", 1);
        let word = k.tile::<u32>("word", 1, 4).unswizzled().declare();
        k.role("all").body(|| {
            elect(|| {
                bar.at(0).init(1);
                if fence {
                    fence_mbarrier_init();
                }
                word.whole().store(0u32, 0u32, 1u32);
            });
            match release {
                true => cluster_arrive(),
                false => cluster_arrive_relaxed(),
            }
            cluster_wait();
            let peer = cluster_rank() ^ 1u32;
            elect(|| {
                if reads {
                    out.store(cta_id(), word.whole().peer(peer).load(0u32, 0u32));
                }
                bar.at(0).peer(peer).arrive_cluster();
            });
            bar.at(0).wait_cluster(0u32);
            cluster_sync();
        });
    })
}

#[test]
fn a_relaxed_cluster_barrier_publishes_only_fenced_inits() {
    let codes = |kernel: &Kernel| -> Vec<_> { violations(kernel).iter().map(|b| b.0).collect() };
    assert_eq!(codes(&remote_access(true, false, false)), [""; 0]);
    assert_eq!(codes(&remote_access(true, true, true)), [""; 0]);
    assert_eq!(codes(&remote_access(false, false, false)), ["R11.init"]);
    assert_eq!(codes(&remote_access(true, false, true)), ["R3.order"]);
}
