//! What a printer could get wrong, and what is then said.

use super::Edit::{Before, Drop, Put, Swap, Twice};
use super::Mutation;

const fn m(
    of: &'static str,
    line: &'static str,
    edit: super::Edit,
    says: &'static str,
) -> Mutation {
    Mutation {
        of,
        line,
        edit,
        says,
    }
}

pub(crate) const TABLE: &[Mutation] = &[
    // The entry.
    m(
        "vector-add",
        ".maxntid",
        Put("96", "128"),
        "the entry: threads is {96, 1, 1} in the program and {128, 1, 1} in the PTX",
    ),
    m(
        "vector-add",
        ".minnctapersm",
        Drop,
        "the entry: CTAs of an SM is {1} in the program and none in the PTX",
    ),
    m(
        "vector-add",
        ".extern .shared",
        Put(".align 128", ".align 16"),
        "alignment of shared memory is 128 in the program and 16 in the PTX",
    ),
    m(
        "split-k",
        ".reqnctapercluster",
        Put("2, 2", "4, 1"),
        "cluster is {2, 2, 1} in the program and {4, 1, 1} in the PTX",
    ),
    m(
        "split-k",
        ".explicitcluster",
        Drop,
        "launched with its cluster is yes in the program and no in the PTX",
    ),
    m(
        "vector-add",
        ".param .u64 param_n",
        Put(".u64", ".u32"),
        "a parameter: bytes is 8 in the program and 4 in the PTX",
    ),
    m(
        "vector-add",
        ".param .u64 .ptr",
        Drop,
        "a parameter stands in the program and not in the PTX",
    ),
    m(
        "attention",
        ".align 64 .b8 param_q",
        Put("[128]", "[64]"),
        "a parameter: bytes is 128 in the program and 64 in the PTX",
    ),
    m(
        "vector-add",
        "ld.param.b64",
        Put("[param_n]", "[param_a]"),
        "a read of a parameter: parameter is parameter 0 in the program and parameter 1 in the PTX",
    ),
    // Mbarriers.
    m(
        "vector-add",
        "mbarrier.init",
        Drop,
        "the init of an mbarrier stands in the program and not in the PTX",
    ),
    m(
        "vector-add",
        "mbarrier.init",
        Twice,
        "the init of an mbarrier stands in the PTX and not in the program",
    ),
    m(
        "vector-add",
        "mbarrier.init",
        Put(", 1;", ", 3;"),
        "arrivals of a phase is 1 in the program and 3 in the PTX",
    ),
    m(
        "vector-add",
        "mbarrier.init",
        Put("+6144", "+6152"),
        "the init of an mbarrier: barrier is shared + 6144 in the program and shared + 6152 in the PTX",
    ),
    m(
        "vector-add",
        "mbarrier.arrive.shared",
        Put("];", "], 2;"),
        "an arrival at an mbarrier: arrivals is 1 in the program and 2 in the PTX",
    ),
    m(
        "vector-add",
        "mbarrier.arrive.shared",
        Put("arrive.", "arrive_drop."),
        "leaves for good is no in the program and yes in the PTX",
    ),
    m(
        "vector-add",
        "mbarrier.arrive.shared",
        Put("arrive.", "arrive.noComplete."),
        "more modifiers is none in the program and {noComplete} in the PTX",
    ),
    m(
        "vector-add",
        "expect_tx",
        Put("%r194", "%r185"),
        "bytes to expect is %r194 in the program and %r185 in the PTX",
    ),
    m(
        "vector-add",
        "expect_tx",
        Drop,
        "an arrival at an mbarrier stands in the program and not in the PTX",
    ),
    m(
        "attention",
        "mbarrier.arrive.expect_tx",
        Put("], 1", "], 2"),
        "an arrival at an mbarrier: bytes to expect is",
    ),
    m(
        "vector-add",
        "mbarrier.try_wait",
        Put("%r20;", "%r19;"),
        "a wait for an mbarrier: parity is %r20 in the program and %r19 in the PTX",
    ),
    m(
        "vector-add",
        "mbarrier.try_wait",
        Put("parity.", "parity.relaxed.cta."),
        "order is acquire in the program and relaxed in the PTX",
    ),
    m(
        "vector-add",
        "bra $again",
        Drop,
        "a wait for an mbarrier stands in the program and not in the PTX",
    ),
    m(
        "vector-add",
        "bra $again",
        Put("@!", "@"),
        "a wait for an mbarrier stands in the program and not in the PTX",
    ),
    m(
        "split-k",
        "try_wait.parity.acquire.cluster",
        Put(".acquire.cluster", ""),
        "a wait for an mbarrier: scope is cluster in the program and cta in the PTX",
    ),
    m(
        "split-k",
        "arrive.release.cluster",
        Put(".release.cluster", ""),
        "an arrival at an mbarrier: scope is cluster in the program and cta in the PTX",
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
        "a fence stands in the program and not in the PTX",
    ),
    m(
        "vector-add",
        "fence.mbarrier_init",
        Put("mbarrier_init.release.cluster", "proxy.async"),
        "name is {mbarrier_init, release, cluster} in the program and {proxy, async} in the PTX",
    ),
    m(
        "vector-add",
        "fence.proxy.async",
        Put("shared::cta", "global"),
        "name is {proxy, async, shared::cta} in the program and {proxy, async, global} in the PTX",
    ),
    m(
        "vector-add",
        "fence.proxy.async",
        Swap("bar.warp.sync"),
        "a meeting of a warp comes before a fence, and in the program after it",
    ),
    m(
        "vector-add",
        "bar.warp.sync",
        Drop,
        "a meeting of a warp stands in the program and not in the PTX",
    ),
    m(
        "vector-add",
        "bar.warp.sync",
        Put("4294967295", "65535"),
        "a meeting of a warp: lanes is 4294967295 in the program and 65535 in the PTX",
    ),
    m(
        "vector-add",
        "barrier.cta.sync",
        Put("aligned 0", "aligned 1"),
        "a barrier of threads: number is 0 in the program and 1 in the PTX",
    ),
    m(
        "ping-pong",
        "1, 128;",
        Put("128", "256"),
        "a barrier of threads: threads is 128 in the program and 256 in the PTX",
    ),
    m(
        "ping-pong",
        "1, 128;",
        Put("sync", "arrive"),
        "a barrier of threads: what is sync in the program and arrive in the PTX",
    ),
    m(
        "split-k",
        "barrier.cluster.wait",
        Drop,
        "a wait for the cluster stands in the program and not in the PTX",
    ),
    m(
        "split-k",
        "barrier.cluster.arrive.release",
        Put("release", "relaxed"),
        "an arrival at the cluster's barrier: order is release in the program and relaxed in the PTX",
    ),
    m(
        "split-k",
        "barrier.cluster.arrive",
        Swap("barrier.cluster.wait"),
        "a wait for the cluster comes before an arrival at the cluster's barrier",
    ),
    // Copies.
    m(
        "vector-add",
        "cp.async.bulk.shared",
        Drop,
        "a bulk load stands in the program and not in the PTX",
    ),
    m(
        "vector-add",
        "cp.async.bulk.shared",
        Put("+6144", "+6160"),
        "a bulk load: barrier is shared + 6144 in the program and shared + 6160 in the PTX",
    ),
    m(
        "vector-add",
        "cp.async.bulk.global",
        Put("+4096", "+2048"),
        "a bulk store: source is",
    ),
    m(
        "vector-add",
        "cp.async.bulk.commit_group",
        Drop,
        "a commit of a bulk group stands in the program and not in the PTX",
    ),
    m(
        "vector-add",
        "cp.async.bulk.commit_group",
        Swap("wait_group"),
        "a wait for bulk groups comes before a commit of a bulk group",
    ),
    m(
        "vector-add",
        "cp.async.bulk.wait_group",
        Put("read 0", "read 1"),
        "a wait for bulk groups: groups that may stay open is 0 in the program and 1 in the PTX",
    ),
    m(
        "vector-add",
        "cp.async.bulk.wait_group",
        Put(".read", ""),
        "for reads alone is yes in the program and no in the PTX",
    ),
    m(
        "split-k",
        "multicast::cluster",
        Put(".multicast::cluster", ""),
        "a tensor load: receivers is cvt.u16.u32(",
    ),
    m(
        "split-k",
        "multicast::cluster",
        Put("{%r44, %r48}", "{%r48, %r44}"),
        "a tensor load: source is",
    ),
    m(
        "attention",
        "cp.async.bulk.tensor.3d.shared",
        Put("3d", "4d"),
        "a tensor load: dimensions is 3d in the program and 4d in the PTX",
    ),
    m(
        "thin",
        "cp.async.cg",
        Put(", 16, ", ", 8, "),
        "a copy by a thread: bytes is 16 in the program and 8 in the PTX",
    ),
    m(
        "thin",
        "cp.async.mbarrier",
        Put(".noinc", ""),
        "an arrival after copies: counted by the barrier is yes in the program and no in the PTX",
    ),
    // Products and registers.
    m(
        "attention",
        "setmaxnreg.dec",
        Put("24", "32"),
        "a change of registers: registers is 24 in the program and 32 in the PTX",
    ),
    m(
        "attention",
        "setmaxnreg.inc",
        Put("inc", "dec"),
        "a change of registers: way is inc in the program and dec in the PTX",
    ),
    m(
        "attention",
        "wgmma.mma_async",
        Put("n128", "n64"),
        "a warpgroup product: shape is shape(64, 128, 16) in the program and shape(64, 64, 16) in the PTX",
    ),
    m(
        "attention",
        "wgmma.mma_async",
        Put("bf16.bf16", "f16.f16"),
        "types is {f32, bf16, bf16} in the program and {f32, f16, f16} in the PTX",
    ),
    m(
        "attention",
        "wgmma.mma_async",
        Put("{%r87, %r88", "{%r88, %r87"),
        "a warpgroup product: accumulators is",
    ),
    m(
        "attention",
        "wgmma.fence",
        Drop,
        "a fence of warpgroup products stands in the program and not in the PTX",
    ),
    m(
        "attention",
        "wgmma.commit_group",
        Swap("wgmma.wait_group"),
        "a wait for warpgroup products comes before a commit of warpgroup products",
    ),
    m(
        "attention",
        "wgmma.wait_group",
        Put("aligned 0", "aligned 1"),
        "a wait for warpgroup products: groups that may stay open is 0 in the program and 1 in the PTX",
    ),
    // Memory.
    m(
        "stream-k",
        "ld.acquire.gpu",
        Put("acquire", "relaxed"),
        "a load: order is acquire in the program and relaxed in the PTX",
    ),
    m(
        "stream-k",
        "red.release.gpu",
        Put("gpu", "cta"),
        "a reduction: scope is gpu in the program and cta in the PTX",
    ),
    m(
        "stream-k",
        "red.release.gpu",
        Put(".add", ".max"),
        "operator and type is {add, u32} in the program and {max, u32} in the PTX",
    ),
    m(
        "stream-k",
        "stmatrix",
        Put("x4", "x2"),
        "a store of matrices: matrices is x4 in the program and x2 in the PTX",
    ),
    m(
        "vector-add",
        "ld.shared",
        Put("v4", "v2"),
        "a load: width is v4 in the program and v2 in the PTX",
    ),
    // Flow.
    m(
        "vector-add",
        "elect.sync",
        Put("0xffffffff", "0xffff"),
        "an election of a lane: lanes is 4294967295 in the program and 65535 in the PTX",
    ),
    m(
        "vector-add",
        "setp.ge.u32",
        Put("%warp, 1", "%warp, 2"),
        "a branch: condition is setp.ge.u32(",
    ),
    m(
        "vector-add",
        "bra $end_elect_10",
        Put("@!", "@"),
        "a branch: condition is not(elect.sync(4294967295)) in the program and elect.sync(4294967295) in the PTX",
    ),
    m(
        "vector-add",
        "bra $end_elect_10",
        Drop,
        "a branch stands in the program and not in the PTX",
    ),
    m(
        "vector-add",
        "bra $end_elect_10",
        Put("$end_elect_10", "$end_elect_11"),
        "a branch: target, in labels from here is 0 in the program and 1 in the PTX",
    ),
    m(
        "vector-add",
        "bra $end_elect_10",
        Put("bra", "bra.uni"),
        "the same way for a whole warp is no in the program and yes in the PTX",
    ),
    m(
        "vector-add",
        "$end_if_1:",
        Drop,
        "a label stands in the program and not in the PTX",
    ),
    m(
        "vector-add",
        "bra.uni $roles_end",
        Drop,
        "a branch stands in the program and not in the PTX",
    ),
    m(
        "vector-add",
        "mbarrier.arrive.shared",
        Before("exit;"),
        "an exit stands in the PTX and not in the program",
    ),
    m(
        "vector-add",
        "mbarrier.arrive.shared",
        Before("frobnicate.u32 7;"),
        "an instruction that no op prints stands in the PTX",
    ),
    m(
        "vector-add",
        "mbarrier.arrive.shared",
        Put("mbarrier", "@%p29 mbarrier"),
        "guard is none in the program and %p29 in the PTX",
    ),
    m(
        "vector-add",
        "mbarrier.arrive.shared",
        Put("];", "]"),
        "the line cannot be read",
    ),
];
