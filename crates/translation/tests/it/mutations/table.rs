//! Mutations of the PTX and the expected mismatch messages.

use super::Edit::{Before, Drop, Put, Swap, Twice};
use super::Mutation;

const fn m(
    of: &'static str,
    line: &'static str,
    edit: super::Edit,
    expected: &'static str,
) -> Mutation {
    Mutation {
        of,
        line,
        edit,
        expected,
    }
}

pub(crate) const TABLE: &[Mutation] = &[
    // The entry.
    m(
        "vector-add",
        ".maxntid",
        Put("96", "128"),
        "entry: threads is {96, 1, 1} in the program but {128, 1, 1} in the PTX",
    ),
    m(
        "vector-add",
        ".minnctapersm",
        Drop,
        "entry: CTAs per SM is {1} in the program but none in the PTX",
    ),
    m(
        "vector-add",
        ".extern .shared",
        Put(".align 128", ".align 16"),
        "shared memory alignment is 128 in the program but 16 in the PTX",
    ),
    m(
        "split-k",
        ".reqnctapercluster",
        Put("2, 2", "4, 1"),
        "cluster is {2, 2, 1} in the program but {4, 1, 1} in the PTX",
    ),
    m(
        "split-k",
        ".explicitcluster",
        Drop,
        "explicit cluster is yes in the program but no in the PTX",
    ),
    m(
        "vector-add",
        ".param .u64 param_n",
        Put(".u64", ".u32"),
        "parameter: bytes is 8 in the program but 4 in the PTX",
    ),
    m(
        "vector-add",
        ".param .u64 .ptr",
        Drop,
        "parameter is in the program but not in the PTX",
    ),
    m(
        "attention",
        ".align 64 .b8 param_q",
        Put("[128]", "[64]"),
        "parameter: bytes is 128 in the program but 64 in the PTX",
    ),
    m(
        "vector-add",
        "ld.param.b64",
        Put("[param_n]", "[param_a]"),
        "ld.param: parameter is parameter 0 in the program but parameter 1 in the PTX",
    ),
    // Mbarriers.
    m(
        "vector-add",
        "mbarrier.init",
        Drop,
        "mbarrier.init is in the program but not in the PTX",
    ),
    m(
        "vector-add",
        "mbarrier.init",
        Twice,
        "mbarrier.init is in the PTX but not in the program",
    ),
    m(
        "vector-add",
        "mbarrier.init",
        Put(", 1;", ", 3;"),
        "arrival count is 1 in the program but 3 in the PTX",
    ),
    m(
        "vector-add",
        "mbarrier.init",
        Put("+6144", "+6152"),
        "mbarrier.init: barrier is shared + 6144 in the program but shared + 6152 in the PTX",
    ),
    m(
        "vector-add",
        "mbarrier.arrive.shared",
        Put("];", "], 2;"),
        "mbarrier.arrive: arrivals is 1 in the program but 2 in the PTX",
    ),
    m(
        "vector-add",
        "mbarrier.arrive.shared",
        Put("arrive.", "arrive_drop."),
        "drop is no in the program but yes in the PTX",
    ),
    m(
        "vector-add",
        "mbarrier.arrive.shared",
        Put("arrive.", "arrive.noComplete."),
        "extra modifiers is none in the program but {noComplete} in the PTX",
    ),
    m(
        "vector-add",
        "expect_tx",
        Put("%r194", "%r185"),
        "expect_tx bytes is %r194 in the program but %r185 in the PTX",
    ),
    m(
        "vector-add",
        "expect_tx",
        Drop,
        "mbarrier.arrive is in the program but not in the PTX",
    ),
    m(
        "attention",
        "mbarrier.arrive.expect_tx",
        Put("], 1", "], 2"),
        "mbarrier.arrive: expect_tx bytes is",
    ),
    m(
        "vector-add",
        "mbarrier.try_wait",
        Put("%r20;", "%r19;"),
        "mbarrier wait loop: parity is %r20 in the program but %r19 in the PTX",
    ),
    m(
        "vector-add",
        "mbarrier.try_wait",
        Put("parity.", "parity.relaxed.cta."),
        "order is acquire in the program but relaxed in the PTX",
    ),
    m(
        "vector-add",
        "bra $again",
        Drop,
        "mbarrier wait loop is in the program but not in the PTX",
    ),
    m(
        "vector-add",
        "bra $again",
        Put("@!", "@"),
        "mbarrier wait loop is in the program but not in the PTX",
    ),
    m(
        "split-k",
        "try_wait.parity.acquire.cluster",
        Put(".acquire.cluster", ""),
        "mbarrier wait loop: scope is cluster in the program but cta in the PTX",
    ),
    m(
        "split-k",
        "arrive.release.cluster",
        Put(".release.cluster", ""),
        "mbarrier.arrive: scope is cluster in the program but cta in the PTX",
    ),
    m(
        "split-k",
        "mapa.shared::cluster",
        Put("%r118;", "%r116;"),
        "barrier is",
    ),
    // Fences and barriers of threads.
    m(
        "vector-add",
        "fence.mbarrier_init",
        Drop,
        "fence is in the program but not in the PTX",
    ),
    m(
        "vector-add",
        "fence.mbarrier_init",
        Put("mbarrier_init.release.cluster", "proxy.async"),
        "name is {mbarrier_init, release, cluster} in the program but {proxy, async} in the PTX",
    ),
    m(
        "vector-add",
        "fence.proxy.async",
        Put("shared::cta", "global"),
        "name is {proxy, async, shared::cta} in the program but {proxy, async, global} in the PTX",
    ),
    m(
        "vector-add",
        "fence.proxy.async",
        Swap("bar.warp.sync"),
        "bar.warp.sync is before fence in the PTX but after it in the program",
    ),
    m(
        "vector-add",
        "bar.warp.sync",
        Drop,
        "bar.warp.sync is in the program but not in the PTX",
    ),
    m(
        "vector-add",
        "bar.warp.sync",
        Put("4294967295", "65535"),
        "bar.warp.sync: lane mask is 4294967295 in the program but 65535 in the PTX",
    ),
    m(
        "vector-add",
        "barrier.cta.sync",
        Put("aligned 0", "aligned 1"),
        "barrier.cta: number is 0 in the program but 1 in the PTX",
    ),
    m(
        "ping-pong",
        "1, 128;",
        Put("128", "256"),
        "barrier.cta: threads is 128 in the program but 256 in the PTX",
    ),
    m(
        "ping-pong",
        "1, 128;",
        Put("sync", "arrive"),
        "barrier.cta: operation is sync in the program but arrive in the PTX",
    ),
    m(
        "split-k",
        "barrier.cluster.wait",
        Drop,
        "barrier.cluster.wait is in the program but not in the PTX",
    ),
    m(
        "split-k",
        "barrier.cluster.arrive.release",
        Put("release", "relaxed"),
        "barrier.cluster.arrive: order is release in the program but relaxed in the PTX",
    ),
    m(
        "split-k",
        "barrier.cluster.arrive",
        Swap("barrier.cluster.wait"),
        "barrier.cluster.wait is before barrier.cluster.arrive",
    ),
    // Copies.
    m(
        "vector-add",
        "cp.async.bulk.shared",
        Drop,
        "bulk load is in the program but not in the PTX",
    ),
    m(
        "vector-add",
        "cp.async.bulk.shared",
        Put("+6144", "+6160"),
        "bulk load: barrier is shared + 6144 in the program but shared + 6160 in the PTX",
    ),
    m(
        "vector-add",
        "cp.async.bulk.global",
        Put("+4096", "+2048"),
        "bulk store: source is",
    ),
    m(
        "vector-add",
        "cp.async.bulk.commit_group",
        Drop,
        "cp.async.bulk.commit_group is in the program but not in the PTX",
    ),
    m(
        "vector-add",
        "cp.async.bulk.commit_group",
        Swap("wait_group"),
        "cp.async.bulk.wait_group is before cp.async.bulk.commit_group",
    ),
    m(
        "vector-add",
        "cp.async.bulk.wait_group",
        Put("read 0", "read 1"),
        "cp.async.bulk.wait_group: pending groups is 0 in the program but 1 in the PTX",
    ),
    m(
        "vector-add",
        "cp.async.bulk.wait_group",
        Put(".read", ""),
        "read only is yes in the program but no in the PTX",
    ),
    m(
        "split-k",
        "multicast::cluster",
        Put(".multicast::cluster", ""),
        "tensor load: multicast mask is cvt.u16.u32(",
    ),
    m(
        "split-k",
        "multicast::cluster",
        Put("{%r44, %r48}", "{%r48, %r44}"),
        "tensor load: source is",
    ),
    m(
        "attention",
        "cp.async.bulk.tensor.3d.shared",
        Put("3d", "4d"),
        "tensor load: dimensions is 3d in the program but 4d in the PTX",
    ),
    m(
        "thin",
        "cp.async.cg",
        Put(", 16, ", ", 8, "),
        "cp.async: bytes is 16 in the program but 8 in the PTX",
    ),
    m(
        "thin",
        "cp.async.mbarrier",
        Put(".noinc", ""),
        "cp.async.mbarrier.arrive: noinc is yes in the program but no in the PTX",
    ),
    // Products and registers.
    m(
        "attention",
        "setmaxnreg.dec",
        Put("24", "32"),
        "setmaxnreg: registers is 24 in the program but 32 in the PTX",
    ),
    m(
        "attention",
        "setmaxnreg.inc",
        Put("inc", "dec"),
        "setmaxnreg: direction is inc in the program but dec in the PTX",
    ),
    m(
        "attention",
        "wgmma.mma_async",
        Put("n128", "n64"),
        "wgmma.mma_async: shape is shape(64, 128, 16) in the program but shape(64, 64, 16) in the PTX",
    ),
    m(
        "attention",
        "wgmma.mma_async",
        Put("bf16.bf16", "f16.f16"),
        "types is {f32, bf16, bf16} in the program but {f32, f16, f16} in the PTX",
    ),
    m(
        "attention",
        "wgmma.mma_async",
        Put("{%r87, %r88", "{%r88, %r87"),
        "wgmma.mma_async: accumulators is",
    ),
    m(
        "attention",
        "wgmma.fence",
        Drop,
        "wgmma.fence is in the program but not in the PTX",
    ),
    m(
        "attention",
        "wgmma.commit_group",
        Swap("wgmma.wait_group"),
        "wgmma.wait_group is before wgmma.commit_group",
    ),
    m(
        "attention",
        "wgmma.wait_group",
        Put("aligned 0", "aligned 1"),
        "wgmma.wait_group: pending groups is 0 in the program but 1 in the PTX",
    ),
    // Memory.
    m(
        "stream-k",
        "ld.acquire.gpu",
        Put("acquire", "relaxed"),
        "ld: order is acquire in the program but relaxed in the PTX",
    ),
    m(
        "stream-k",
        "red.release.gpu",
        Put("gpu", "cta"),
        "red: scope is gpu in the program but cta in the PTX",
    ),
    m(
        "stream-k",
        "red.release.gpu",
        Put(".add", ".max"),
        "operator and type is {add, u32} in the program but {max, u32} in the PTX",
    ),
    m(
        "stream-k",
        "stmatrix",
        Put("x4", "x2"),
        "stmatrix: matrices is x4 in the program but x2 in the PTX",
    ),
    m(
        "vector-add",
        "ld.shared",
        Put("v4", "v2"),
        "ld: width is v4 in the program but v2 in the PTX",
    ),
    // Flow.
    m(
        "vector-add",
        "elect.sync",
        Put("0xffffffff", "0xffff"),
        "elect.sync: lane mask is 4294967295 in the program but 65535 in the PTX",
    ),
    m(
        "vector-add",
        "setp.ge.u32",
        Put("%warp, 1", "%warp, 2"),
        "branch: condition is setp.ge.u32(",
    ),
    m(
        "vector-add",
        "bra $end_elect_10",
        Put("@!", "@"),
        "branch: condition is not(elect.sync(4294967295)) in the program but elect.sync(4294967295) in the PTX",
    ),
    m(
        "vector-add",
        "bra $end_elect_10",
        Drop,
        "branch is in the program but not in the PTX",
    ),
    m(
        "vector-add",
        "bra $end_elect_10",
        Put("$end_elect_10", "$end_elect_11"),
        "branch: target (labels from here) is 0 in the program but 1 in the PTX",
    ),
    m(
        "vector-add",
        "bra $end_elect_10",
        Put("bra", "bra.uni"),
        "uniform is no in the program but yes in the PTX",
    ),
    m(
        "vector-add",
        "$end_if_1:",
        Drop,
        "label is in the program but not in the PTX",
    ),
    m(
        "vector-add",
        "bra.uni $roles_end",
        Drop,
        "branch is in the program but not in the PTX",
    ),
    m(
        "vector-add",
        "mbarrier.arrive.shared",
        Before("exit;"),
        "exit is in the PTX but not in the program",
    ),
    m(
        "vector-add",
        "mbarrier.arrive.shared",
        Before("frobnicate.u32 7;"),
        "unknown instruction is in the PTX",
    ),
    m(
        "vector-add",
        "mbarrier.arrive.shared",
        Put("mbarrier", "@%p29 mbarrier"),
        "guard is none in the program but %p29 in the PTX",
    ),
    m(
        "vector-add",
        "mbarrier.arrive.shared",
        Put("];", "]"),
        "cannot parse the line",
    ),
];
