//! Mutations of the PTX and the expected mismatch messages.

use super::Edit::{Duplicate, InsertBefore, Remove, Replace, SwapWith};
use super::Mutation;

const fn mutation(
    kernel: &'static str,
    line: &'static str,
    edit: super::Edit,
    expected: &'static str,
) -> Mutation {
    Mutation {
        kernel,
        line,
        edit,
        expected,
    }
}

pub(crate) const TABLE: &[Mutation] = &[
    // The entry.
    mutation(
        "vector-add",
        ".maxntid",
        Replace("96", "128"),
        "entry: threads is {96, 1, 1} in the program but {128, 1, 1} in the PTX",
    ),
    mutation(
        "vector-add",
        ".minnctapersm",
        Remove,
        "entry: CTAs per SM is {1} in the program but none in the PTX",
    ),
    mutation(
        "vector-add",
        ".extern .shared",
        Replace(".align 128", ".align 16"),
        "shared memory alignment is 128 in the program but 16 in the PTX",
    ),
    mutation(
        "split-k",
        ".reqnctapercluster",
        Replace("2, 2", "4, 1"),
        "cluster is {2, 2, 1} in the program but {4, 1, 1} in the PTX",
    ),
    mutation(
        "split-k",
        ".explicitcluster",
        Remove,
        "explicit cluster is yes in the program but no in the PTX",
    ),
    mutation(
        "vector-add",
        ".param .u64 param_n",
        Replace(".u64", ".u32"),
        "parameter: bytes is 8 in the program but 4 in the PTX",
    ),
    mutation(
        "vector-add",
        ".param .u64 .ptr",
        Remove,
        "parameter is in the program but not in the PTX",
    ),
    mutation(
        "attention",
        ".align 64 .b8 param_q",
        Replace("[128]", "[64]"),
        "parameter: bytes is 128 in the program but 64 in the PTX",
    ),
    mutation(
        "vector-add",
        "ld.param.b64",
        Replace("[param_n]", "[param_a]"),
        "ld.param: parameter is parameter 0 in the program but parameter 1 in the PTX",
    ),
    // Mbarriers.
    mutation(
        "vector-add",
        "mbarrier.init",
        Remove,
        "mbarrier.init is in the program but not in the PTX",
    ),
    mutation(
        "vector-add",
        "mbarrier.init",
        Duplicate,
        "mbarrier.init is in the PTX but not in the program",
    ),
    mutation(
        "vector-add",
        "mbarrier.init",
        Replace(", 1;", ", 3;"),
        "arrival count is 1 in the program but 3 in the PTX",
    ),
    mutation(
        "vector-add",
        "mbarrier.init",
        Replace("+6144", "+6152"),
        "mbarrier.init: barrier is shared + 6144 in the program but shared + 6152 in the PTX",
    ),
    mutation(
        "vector-add",
        "mbarrier.arrive.shared",
        Replace("];", "], 2;"),
        "mbarrier.arrive: arrivals is 1 in the program but 2 in the PTX",
    ),
    mutation(
        "vector-add",
        "mbarrier.arrive.shared",
        Replace("arrive.", "arrive_drop."),
        "drop is no in the program but yes in the PTX",
    ),
    mutation(
        "vector-add",
        "mbarrier.arrive.shared",
        Replace("arrive.", "arrive.noComplete."),
        "extra modifiers is none in the program but {noComplete} in the PTX",
    ),
    mutation(
        "vector-add",
        "expect_tx",
        Replace("%r194", "%r185"),
        "expect_tx bytes is %r194 in the program but %r185 in the PTX",
    ),
    mutation(
        "vector-add",
        "expect_tx",
        Remove,
        "mbarrier.arrive is in the program but not in the PTX",
    ),
    mutation(
        "attention",
        "mbarrier.arrive.expect_tx",
        Replace("], 1", "], 2"),
        "mbarrier.arrive: expect_tx bytes is",
    ),
    mutation(
        "vector-add",
        "mbarrier.try_wait",
        Replace("%r20;", "%r19;"),
        "mbarrier wait loop: parity is %r20 in the program but %r19 in the PTX",
    ),
    mutation(
        "vector-add",
        "mbarrier.try_wait",
        Replace("parity.", "parity.relaxed.cta."),
        "order is acquire in the program but relaxed in the PTX",
    ),
    mutation(
        "vector-add",
        "bra $again",
        Remove,
        "mbarrier wait loop is in the program but not in the PTX",
    ),
    mutation(
        "vector-add",
        "bra $again",
        Replace("@!", "@"),
        "mbarrier wait loop is in the program but not in the PTX",
    ),
    mutation(
        "split-k",
        "try_wait.parity.acquire.cluster",
        Replace(".acquire.cluster", ""),
        "mbarrier wait loop: scope is cluster in the program but cta in the PTX",
    ),
    mutation(
        "split-k",
        "arrive.release.cluster",
        Replace(".release.cluster", ""),
        "mbarrier.arrive: scope is cluster in the program but cta in the PTX",
    ),
    mutation(
        "split-k",
        "mapa.shared::cluster",
        Replace("%r118;", "%r116;"),
        "barrier is",
    ),
    // Fences and barriers of threads.
    mutation(
        "vector-add",
        "fence.mbarrier_init",
        Remove,
        "fence is in the program but not in the PTX",
    ),
    mutation(
        "vector-add",
        "fence.mbarrier_init",
        Replace("mbarrier_init.release.cluster", "proxy.async"),
        "name is {mbarrier_init, release, cluster} in the program but {proxy, async} in the PTX",
    ),
    mutation(
        "vector-add",
        "fence.proxy.async",
        Replace("shared::cta", "global"),
        "name is {proxy, async, shared::cta} in the program but {proxy, async, global} in the PTX",
    ),
    mutation(
        "vector-add",
        "fence.proxy.async",
        SwapWith("bar.warp.sync"),
        "bar.warp.sync is before fence in the PTX but after it in the program",
    ),
    mutation(
        "vector-add",
        "bar.warp.sync",
        Remove,
        "bar.warp.sync is in the program but not in the PTX",
    ),
    mutation(
        "vector-add",
        "bar.warp.sync",
        Replace("4294967295", "65535"),
        "bar.warp.sync: lane mask is 4294967295 in the program but 65535 in the PTX",
    ),
    mutation(
        "vector-add",
        "barrier.cta.sync",
        Replace("aligned 0", "aligned 1"),
        "barrier.cta: number is 0 in the program but 1 in the PTX",
    ),
    mutation(
        "ping-pong",
        "1, 128;",
        Replace("128", "256"),
        "barrier.cta: threads is 128 in the program but 256 in the PTX",
    ),
    mutation(
        "ping-pong",
        "1, 128;",
        Replace("sync", "arrive"),
        "barrier.cta: operation is sync in the program but arrive in the PTX",
    ),
    mutation(
        "split-k",
        "barrier.cluster.wait",
        Remove,
        "barrier.cluster.wait is in the program but not in the PTX",
    ),
    mutation(
        "split-k",
        "barrier.cluster.arrive.release",
        Replace("release", "relaxed"),
        "barrier.cluster.arrive: order is release in the program but relaxed in the PTX",
    ),
    mutation(
        "split-k",
        "barrier.cluster.arrive",
        SwapWith("barrier.cluster.wait"),
        "barrier.cluster.wait is before barrier.cluster.arrive",
    ),
    // Copies.
    mutation(
        "vector-add",
        "cp.async.bulk.shared",
        Remove,
        "bulk load is in the program but not in the PTX",
    ),
    mutation(
        "vector-add",
        "cp.async.bulk.shared",
        Replace("+6144", "+6160"),
        "bulk load: barrier is shared + 6144 in the program but shared + 6160 in the PTX",
    ),
    mutation(
        "vector-add",
        "cp.async.bulk.global",
        Replace("+4096", "+2048"),
        "bulk store: source is",
    ),
    mutation(
        "vector-add",
        "cp.async.bulk.commit_group",
        Remove,
        "cp.async.bulk.commit_group is in the program but not in the PTX",
    ),
    mutation(
        "vector-add",
        "cp.async.bulk.commit_group",
        SwapWith("wait_group"),
        "cp.async.bulk.wait_group is before cp.async.bulk.commit_group",
    ),
    mutation(
        "vector-add",
        "cp.async.bulk.wait_group",
        Replace("read 0", "read 1"),
        "cp.async.bulk.wait_group: pending groups is 0 in the program but 1 in the PTX",
    ),
    mutation(
        "vector-add",
        "cp.async.bulk.wait_group",
        Replace(".read", ""),
        "read only is yes in the program but no in the PTX",
    ),
    mutation(
        "split-k",
        "multicast::cluster",
        Replace(".multicast::cluster", ""),
        "tensor load: multicast mask is cvt.u16.u32(",
    ),
    mutation(
        "split-k",
        "multicast::cluster",
        Replace("{%r44, %r48}", "{%r48, %r44}"),
        "tensor load: source is",
    ),
    mutation(
        "attention",
        "cp.async.bulk.tensor.3d.shared",
        Replace("3d", "4d"),
        "tensor load: dimensions is 3d in the program but 4d in the PTX",
    ),
    mutation(
        "thin",
        "cp.async.cg",
        Replace(", 16, ", ", 8, "),
        "cp.async: bytes is 16 in the program but 8 in the PTX",
    ),
    mutation(
        "thin",
        "cp.async.mbarrier",
        Replace(".noinc", ""),
        "cp.async.mbarrier.arrive: noinc is yes in the program but no in the PTX",
    ),
    // Matrix instructions and registers.
    mutation(
        "attention",
        "setmaxnreg.dec",
        Replace("24", "32"),
        "setmaxnreg: registers is 24 in the program but 32 in the PTX",
    ),
    mutation(
        "attention",
        "setmaxnreg.inc",
        Replace("inc", "dec"),
        "setmaxnreg: direction is inc in the program but dec in the PTX",
    ),
    mutation(
        "attention",
        "wgmma.mma_async",
        Replace("n128", "n64"),
        "wgmma.mma_async: shape is shape(64, 128, 16) in the program but shape(64, 64, 16) in the PTX",
    ),
    mutation(
        "attention",
        "wgmma.mma_async",
        Replace("bf16.bf16", "f16.f16"),
        "types is {f32, bf16, bf16} in the program but {f32, f16, f16} in the PTX",
    ),
    mutation(
        "attention",
        "wgmma.mma_async",
        Replace("{%r87, %r88", "{%r88, %r87"),
        "wgmma.mma_async: accumulators is",
    ),
    mutation(
        "attention",
        "wgmma.fence",
        Remove,
        "wgmma.fence is in the program but not in the PTX",
    ),
    mutation(
        "attention",
        "wgmma.commit_group",
        SwapWith("wgmma.wait_group"),
        "wgmma.wait_group is before wgmma.commit_group",
    ),
    mutation(
        "attention",
        "wgmma.wait_group",
        Replace("aligned 0", "aligned 1"),
        "wgmma.wait_group: pending groups is 0 in the program but 1 in the PTX",
    ),
    // Memory.
    mutation(
        "stream-k",
        "ld.acquire.gpu",
        Replace("acquire", "relaxed"),
        "ld: order is acquire in the program but relaxed in the PTX",
    ),
    mutation(
        "stream-k",
        "red.release.gpu",
        Replace("gpu", "cta"),
        "red: scope is gpu in the program but cta in the PTX",
    ),
    mutation(
        "stream-k",
        "red.release.gpu",
        Replace(".add", ".max"),
        "operator and type is {add, u32} in the program but {max, u32} in the PTX",
    ),
    mutation(
        "stream-k",
        "stmatrix",
        Replace("x4", "x2"),
        "stmatrix: matrices is x4 in the program but x2 in the PTX",
    ),
    mutation(
        "vector-add",
        "ld.shared",
        Replace("v4", "v2"),
        "ld: width is v4 in the program but v2 in the PTX",
    ),
    // Control flow.
    mutation(
        "vector-add",
        "elect.sync",
        Replace("0xffffffff", "0xffff"),
        "elect.sync: lane mask is 4294967295 in the program but 65535 in the PTX",
    ),
    mutation(
        "vector-add",
        "setp.ge.u32",
        Replace("%warp, 1", "%warp, 2"),
        "branch: condition is setp.ge.u32(",
    ),
    mutation(
        "vector-add",
        "bra $end_elect_10",
        Replace("@!", "@"),
        "branch: condition is not(elect.sync(4294967295)) in the program but elect.sync(4294967295) in the PTX",
    ),
    mutation(
        "vector-add",
        "bra $end_elect_10",
        Remove,
        "branch is in the program but not in the PTX",
    ),
    mutation(
        "vector-add",
        "bra $end_elect_10",
        Replace("$end_elect_10", "$end_elect_11"),
        "branch: target (labels from here) is 0 in the program but 1 in the PTX",
    ),
    mutation(
        "vector-add",
        "bra $end_elect_10",
        Replace("bra", "bra.uni"),
        "uniform is no in the program but yes in the PTX",
    ),
    mutation(
        "vector-add",
        "$end_if_1:",
        Remove,
        "label is in the program but not in the PTX",
    ),
    mutation(
        "vector-add",
        "bra.uni $roles_end",
        Remove,
        "branch is in the program but not in the PTX",
    ),
    mutation(
        "vector-add",
        "mbarrier.arrive.shared",
        InsertBefore("exit;"),
        "exit is in the PTX but not in the program",
    ),
    mutation(
        "vector-add",
        "mbarrier.arrive.shared",
        InsertBefore("frobnicate.u32 7;"),
        "unknown instruction is in the PTX",
    ),
    mutation(
        "vector-add",
        "mbarrier.arrive.shared",
        Replace("mbarrier", "@%p29 mbarrier"),
        "guard is none in the program but %p29 in the PTX",
    ),
    mutation(
        "vector-add",
        "mbarrier.arrive.shared",
        Replace("];", "]"),
        "cannot parse the line",
    ),
];
