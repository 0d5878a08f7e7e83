//! Every code that Warpline prints, with its title, its rule and the change that usually helps.
//!
//! [`CODES`] is the one table behind the checker, the CPU executor, the plans of the runtime and
//! the linter. `warpline explain CODE` reads it.
//!
//! | code | group |
//! |---|---|
//! | `R1` – `R17` | synchronization, shared memory, registers, tensor maps, wgmma, launch |
//! | `R18` | global memory shared by CTAs |
//! | `S` | structure of the program |
//! | `U` | the checker cannot decide |
//! | `A` | an assumption of a proof |
//! | a lint name, such as `bank-conflicts` | speed |

/// A rule: a stable code for tools, the class of bug, the requirement and the usual repair.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Rule {
    /// The code, for example `R12.size`.
    pub code: &'static str,
    /// The class of bug, unique among the codes; starts the headline of a report, unless the report
    /// has a more specific one.
    pub title: &'static str,
    /// The requirement that a correct kernel meets, as a sentence.
    pub requirement: &'static str,
    /// The change that usually repairs a breach, as an imperative.
    pub help: &'static str,
}

impl Rule {
    /// Returns the rule with this code.
    ///
    /// ```
    /// use warpline_check::Rule;
    ///
    /// assert_eq!(Rule::find("R7.fence").unwrap().title, "missing wgmma fence");
    /// assert!(Rule::find("R99").is_none());
    /// ```
    pub fn find(code: &str) -> Option<&'static Rule> {
        CODES.iter().find(|rule| rule.code == code)
    }

    /// Returns the change that usually repairs a breach of this code.
    pub fn help(code: &str) -> Option<&'static str> {
        Self::find(code).map(|rule| rule.help)
    }
}

macro_rules! codes {
    ($($name:ident $code:literal $title:literal $requirement:literal $help:literal;)*) => {
        $(
            #[doc = concat!("`", $code, "`: ", $title, ".")]
            pub const $name: Rule = Rule {
                code: $code,
                title: $title,
                requirement: $requirement,
                help: $help,
            };
        )*
        /// Every code, by group.
        pub const CODES: &[Rule] = &[$($name),*];
    };
}

codes! {
    R1_ARRIVALS "R1.arrivals" "arrival count mismatch"
        "every phase of an mbarrier receives exactly the number of arrivals that it was initialized with"
        "make the count of the mbarrier equal to the number of threads that arrive in each phase, and let each of them arrive once per phase";
    R1_PHASE "R1.phase" "arrival in an unknown phase"
        "a thread arrives at an mbarrier, or issues a copy that counts bytes there, only after it has observed that the previous phase is complete"
        "wait for the previous phase of this mbarrier before the arrival, or let the arrival follow a barrier that orders it after that phase";
    R2_BYTES "R2.bytes" "byte count mismatch"
        "the copies of a phase deliver exactly the bytes that the phase expects"
        "pass the bytes of all copies of the phase to `arrive_expect`, including copies that other CTAs multicast to this one";

    R3_PARITY "R3.parity" "wrong parity"
        "a wait passes the parity of the phase that the thread waits for; a thread never waits two phases behind or ahead of the mbarrier; the first wait of a producer passes (parity 1)"
        "start the producer's parity at 1 and the consumer's at 0, flip the parity when the stage index wraps around, and arrive once per phase that was waited for";
    R3_ORDER "R3.order" "shared-memory race"
        "two accesses to the same bytes of shared memory, at least one of them a write, are ordered by a barrier"
        "let the second thread wait on an mbarrier or a barrier at which the first thread arrives after its access";
    R4_TRIPS "R4.trips" "deadlock: roles or warps run different numbers of iterations"
        "for every launch, each wait has a matching arrival: roles, and the warps of a role, agree on the numbers of iterations"
        "compute the trip count from the same expression in all roles and warps, and release every slot that is acquired, also in the last iteration";

    R5_WRITE "R5.write" "missing proxy fence after a write"
        "the thread that wrote bytes through the generic proxy runs `fence.proxy.async` before a TMA copy or a wgmma accesses them"
        "call `fence_async()` in the writing threads, after the writes and before the barrier that hands the bytes over";
    R5_READ "R5.read" "missing proxy fence after a read"
        "the thread that read bytes through the generic proxy runs `fence.proxy.async` before a TMA copy overwrites them"
        "call `fence_async()` in the reading threads, after the reads and before the slot is released";
    R6_BULK "R6.bulk" "write-after-read race with a bulk store"
        "the bytes that a bulk store reads stay unchanged until the thread that issued the store has waited for it"
        "call `bulk_wait_read(0)` in the thread that issued the store, before the barrier or the `release` that allows the overwrite";
    R7_RELEASE "R7.release" "write-after-read race with a wgmma"
        "the bytes that a wgmma reads stay unchanged until a wait covers that wgmma"
        "wait for the wgmma (`wgmma.wait_group`) before the slot is released";
    R7_REGISTERS "R7.registers" "access to a register that wgmma owns"
        "no instruction touches the accumulators or register operands of a wgmma until a wait covers it"
        "wait for the wgmma before the registers are used, or let the next wgmma of the same shape use the same accumulators";
    R7_FENCE "R7.fence" "missing wgmma fence"
        "a `wgmma.fence` precedes the first wgmma, and separates an access to its registers from the wgmma"
        "issue `wgmma.fence` after the last access to the registers and before the wgmma";

    R8_SIZE "R8.size" "illegal cluster size"
        "a cluster has at least one CTA along each axis, and in total at most the number that the target allows"
        "choose a cluster of at most 16 CTAs; more than 8 need a launch attribute that the runtime sets";
    R8_START "R8.start" "access to a CTA that may not have started"
        "a thread reaches into another CTA of its cluster only after the first cluster barrier"
        "call `cluster_sync()` before the first access to another CTA";
    R8_EXIT "R8.exit" "access to a CTA that may have exited"
        "a CTA exits only after every access of its peers to its shared memory is complete"
        "call `cluster_sync()` at the end of the kernel";
    R8_SCOPE "R8.scope" "scope too narrow for a cluster"
        "data that one CTA of a cluster passes to another through generic accesses is released and acquired at cluster scope"
        "use the cluster-scope forms, `arrive_cluster` and `wait_cluster`, on both sides";
    R8_AGREE "R8.agree" "deadlock: cluster barrier"
        "all CTAs of a cluster arrive at the cluster barrier equally often, and each arrival is followed by a wait"
        "move the cluster barrier out of conditions that differ between CTAs, and pair each `cluster_arrive` with a `cluster_wait`";

    R9_COUNT "R9.count" "illegal register count"
        "`setmaxnreg` takes a multiple of 8 from 24 to 256"
        "round the register budget to a multiple of 8 between 24 and 256";
    R9_WARPGROUP "R9.warpgroup" "setmaxnreg outside a whole warpgroup"
        "a role that runs `setmaxnreg` consists of whole, aligned warpgroups"
        "give the role a multiple of 4 warps, and declare roles of fewer warps after it";
    R9_PLACE "R9.place" "misplaced setmaxnreg"
        "`setmaxnreg` is at the top of a role: in no condition, in no loop and after no exit"
        "set the registers with `registers(n)` on the role, or move `setmaxnreg` to the start of its body";
    R9_DIRECTION "R9.direction" "setmaxnreg in the wrong direction"
        "`setmaxnreg.dec` does not raise the register count, and `setmaxnreg.inc` does not lower it"
        "use `setmaxnreg_dec` to lower the count and `setmaxnreg_inc` to raise it";
    R9_POOL "R9.pool" "deadlock: register pool exceeded"
        "the registers that all warpgroups request together fit into the registers that the CTA starts with"
        "lower the register budget of a role; the sum over all threads may not exceed the registers that the CTA starts with";

    R10_ID "R10.id" "illegal named barrier"
        "the number of a named barrier is at least 1 and below the number of barriers of the target; 0 is the CTA barrier"
        "use fewer named barriers";
    R10_UNIQUE "R10.unique" "named barriers collide"
        "named barriers have different numbers"
        "give each named barrier its own number";
    R10_THREADS "R10.threads" "illegal thread count of a named barrier"
        "the thread count of a named barrier is a multiple of 32, at least 32, and at most the threads of the CTA"
        "count 32 threads for each warp that uses the barrier";
    R10_SAME "R10.same" "named barrier with two thread counts"
        "all uses of a named barrier pass the same thread count"
        "pass the same thread count to every `sync` and `arrive` of the barrier";
    R10_COUNT "R10.count" "thread count mismatch"
        "the thread count of a named barrier equals the threads that arrive, in whole warps"
        "pass a thread count of 32 for each warp that uses the barrier";
    R10_RECYCLE "R10.recycle" "reuse of a named barrier"
        "a warp uses a named barrier again only after it has observed that the previous use is complete"
        "add a second named barrier for the next use, or a `sync` of all users between the two uses";

    R11_INIT "R11.init" "use of an uninitialized mbarrier"
        "an mbarrier is initialized once, fenced with `fence.mbarrier_init`, and published by a barrier before its first use"
        "initialize the mbarrier in the prologue, then call `fence_mbarrier_init()` and a barrier (`cta_sync()`, or `cluster_sync()` in a cluster) before the first use";

    R12_SIZE "R12.size" "shared memory exceeded"
        "a CTA uses no more shared memory than the target provides"
        "use fewer stages or smaller tiles";
    R12_TILE "R12.tile" "illegal tile"
        "a tile has at least one row, column and stage, and the bytes of its rows are a multiple of the swizzle span"
        "choose a row length that is a multiple of the swizzle span, or a smaller swizzle";
    R12_ALIGN "R12.align" "misaligned shared memory"
        "a tile starts at a multiple of its swizzle pattern, and an mbarrier at a multiple of 8 bytes"
        "let the builder place the tile, or align its offset";
    R12_INSIDE "R12.inside" "outside shared memory"
        "tiles and mbarriers are inside the shared memory of the CTA"
        "raise `shared_bytes`, or move the tile";
    R12_OVERLAP "R12.overlap" "overlapping tiles"
        "tiles share bytes only if one is declared an alias of the other; mbarriers share none"
        "declare the alias, or place the tiles apart";
    R12_ALIAS "R12.alias" "race between aliased tiles"
        "two tiles that share bytes are not in use at the same time"
        "order the last access to one tile before the first access to the other with a barrier";
    R12_BOUNDS "R12.bounds" "out-of-bounds access to shared memory"
        "an access stays inside one stage of its tile, and a barrier index inside its array"
        "check the stage index and the row and column; a stage index must wrap around at the number of stages";

    R13_MAP "R13.map" "illegal tensor map"
        "the rank, the box and the inner bytes of a tensor map are legal for the hardware"
        "choose a box whose inner extent is a multiple of 16 bytes and at most the swizzle span, with at most 256 elements along each axis";
    R13_MODE "R13.mode" "wrong kind of tensor map"
        "a store of a box uses a tiled tensor map, and a store of pixels an im2col map"
        "declare the tensor map in the mode that the store uses";
    R13_COORDS "R13.coords" "wrong coordinates of a tensor copy"
        "a tensor copy names one coordinate per dimension and one offset per window dimension, and starts at a multiple of 16 bytes"
        "pass one coordinate for each dimension of the tensor map";
    R13_REDUCE "R13.reduce" "illegal reduction of a tensor store"
        "a reducing store uses an operation that the hardware has for the element type"
        "use another reduction or another element type";
    R13_BYTES "R13.bytes" "box and view differ in size"
        "a box has as many bytes as the shared-memory view that it is copied to or from"
        "make the box of the tensor map equal to the view";
    R13_SWIZZLE "R13.swizzle" "swizzle mismatch"
        "the tensor map and the tile of a copy have the same swizzle and element size"
        "declare the tensor map with the swizzle of the tile";
    R13_VIEW "R13.view" "view that TMA cannot address"
        "the view of a tensor copy is one contiguous run of shared memory on swizzle-atom boundaries"
        "copy a whole tile, whole rows of it, or one swizzle panel";
    R13_LAUNCH "R13.launch" "illegal tensor in a launch"
        "the base address, extents and strides of a tensor that a launch passes are legal for its tensor map"
        "pass a base address and strides that are multiples of 16 bytes";

    R14_SHAPE "R14.shape" "illegal wgmma"
        "the shape, registers and views of a wgmma are legal for the hardware"
        "choose N as a multiple of 8 up to 256, and the K of the element type";
    R14_OPERAND "R14.operand" "illegal wgmma operand"
        "a wgmma operand in shared memory is a swizzled view of its element type, on swizzle-atom boundaries"
        "declare the tile with a swizzle, and view it at multiples of the swizzle atom";
    R14_WARPGROUP "R14.warpgroup" "wgmma outside a whole warpgroup"
        "all four warps of an aligned warpgroup reach a wgmma instruction together"
        "give the role whole warpgroups (`warpgroups(n)`), and issue wgmma outside of conditions that split them";
    R14_BUDGET "R14.budget" "wgmma registers exceed the budget"
        "the registers that wgmmas own at the same time fit into the register budget of a thread"
        "use a smaller tile, more consumers, or a larger register budget for the role";

    R15_WARP "R15.warp" "divergent `.aligned` instruction"
        "all lanes of a warp reach an `.aligned` instruction together"
        "move the instruction out of the divergent branch, or run `warp_sync()` first";
    R15_MASK "R15.mask" "divergent warp instruction with a lane mask"
        "all lanes that the mask of an instruction names reach it"
        "move the instruction out of the divergent branch, or name only the lanes that reach it";
    R15_ELECT "R15.elect" "divergent elect"
        "all lanes of a warp reach an `elect` together"
        "move the `elect` out of the divergent branch";
    R15_LANES "R15.lanes" "race between lanes of a warp"
        "lanes of one warp that pass data through shared memory synchronize in between"
        "call `warp_sync()` between the write and the read";
    R15_LATE "R15.late" "lanes of a warp not synchronized after a wait"
        "if each lane waits for a phase by itself, the lanes synchronize before one of them arrives or issues a copy that lets the mbarrier complete its next phase"
        "call `warp_sync()` after the wait and before the arrival";
    R15_WHOLE "R15.whole" "divergent warp at a barrier"
        "all lanes of a warp reach a barrier together"
        "move the barrier out of the divergent branch";

    R16_WAIT "R16.wait" "missing dependency wait"
        "in a dependent launch (PDL), every role waits for the preceding grids before it accesses global memory"
        "call `wait_prerequisites()` in this role before the access, or declare the parameter PDL-safe if no earlier kernel of the plan writes it";
    R16_PDL_SAFE "R16.pdl-safe" "parameter is not PDL-safe"
        "memory that a dependent launch (PDL) reads before its dependency wait is not written by a grid that may still run"
        "remove the PDL-safe declaration of the parameter, and read it after `wait_prerequisites()`";

    R17_CYCLE "R17.cycle" "deadlock: roles wait for each other"
        "roles do not wait for each other in a cycle"
        "let one role of the cycle arrive before it waits, or add a stage to the ring";
    R17_RUN "R17.run" "run that fails on the CPU executor"
        "every launch that the kernel accepts ends without a deadlock, a race or an out-of-bounds access"
        "replay the counterexample on the CPU executor, and repair the failure it shows";
    R17_ENDLESS "R17.endless" "endless `while` loop"
        "the condition of a `while` loop depends on something that the loop or another thread changes"
        "compute the condition from a variable that the body sets, or from an acquire load inside the condition";
    R17_STEP "R17.step" "endless loop with a step of 0"
        "the step of a counting loop is at least 1 for every launch"
        "count by a constant, or by a parameter that is declared with `at_least(1)`";

    R18_RESIDENT "R18.resident" "deadlock: CTAs may not run at the same time"
        "a kernel whose CTAs wait for each other through global memory is declared co-resident"
        "declare the kernel co-resident, so that the launch fits all CTAs on the GPU at once";
    R18_RAISED "R18.raised" "deadlock: flag that is never set"
        "a statement of the kernel sets each word of global memory that a loop waits for"
        "set the flag where the data is ready, or remove the wait";
    R18_CYCLE "R18.cycle" "deadlock: CTAs wait for each other"
        "CTAs do not wait for each other in a cycle: some CTA sets its flag before it waits for one"
        "set the CTA's own flag before the wait, or let one CTA skip the wait: `if_(cta_id().gt(0u32), || flags.wait(..))`";
    R18_ACQUIRE "R18.acquire" "missing acquire"
        "a flag that guards data of other CTAs is read with an acquire at GPU scope, or with a relaxed load and an acquire fence"
        "load the flag with `MemoryOrder::acquire(Scope::Gpu)`, or with a relaxed load and `fence_acquire(Scope::Gpu)` after it";
    R18_RELEASE "R18.release" "missing release"
        "a flag that publishes data to other CTAs is set with a release at GPU scope, or with a release fence and a relaxed write"
        "set the flag with `MemoryOrder::release(Scope::Gpu)`, or call `fence_release(Scope::Gpu)` right before it";
    R18_SCOPE "R18.scope" "scope too narrow for global memory"
        "a word of global memory that all CTAs access is read and updated at GPU scope"
        "use `Scope::Gpu` for the access";
    R18_LOCKS "R18.locks" "lock misuse"
        "a lock is taken with an acquire and freed with a release, and threads that hold several locks take them in one order"
        "take the locks in the same order everywhere, or free the first one before the second is taken";
    R18_COMPLETE "R18.complete" "store published before its completion"
        "a flag that publishes a bulk store is set after a wait for the completion of the store, not only for its reads"
        "call `bulk_wait(0)` (without `_read`) in the thread that issued the store, before the flag is set";
    R18_PROXY "R18.proxy" "missing proxy fence for global memory"
        "a `fence.proxy.async` for global memory separates a thread's write from a bulk copy that reads it"
        "call `fence_async_global()` after the write and before the barrier that hands the bytes over";
    R18_READ_ONLY "R18.read-only" "read-only load of written memory"
        "memory that the kernel reads with `ld.global.nc` is not written during the launch"
        "read the parameter with `load` instead of `LoadCache::READ_ONLY`";
    R18_WRITER "R18.writer" "global-memory race"
        "two accesses to the same bytes of global memory, at least one of them a write, are ordered"
        "let the threads write disjoint bytes, or order the accesses with a barrier, or with a release and an acquire at GPU scope";

    S_REFERENCE "S.reference" "undeclared name"
        "every register, tile, barrier, parameter and role that the program names is declared"
        "declare the name in the same kernel";
    S_PARAM "S.param" "parameter of another kind"
        "a parameter is read as the type that it was declared with"
        "declare the parameter with the type that the kernel reads";
    S_PARAM_NAME "S.param-name" "duplicate parameter name"
        "parameters have different names"
        "rename one of the parameters";
    S_OP "S.op" "illegal instruction"
        "every instruction is legal on the target"
        "use a form of the instruction that the target has";
    S_ROLE_NAME "S.role-name" "duplicate role name"
        "roles have different names"
        "rename one of the roles";
    S_ROLE_WARPS "S.role-warps" "role without warps"
        "a kernel has at least one role, and every role at least one warp"
        "give the role warps with `warps(n)` or `warpgroups(n)`";
    S_ROLE_ORDER "S.role-order" "gap between roles"
        "the first warp of each role follows the last warp of the preceding role"
        "let the builder number the warps";
    S_THREADS "S.threads" "too many threads"
        "a CTA has no more threads than the target allows"
        "use fewer warps";
    S_STAGE "S.stage" "stage out of range"
        "a constant stage index is below the number of stages of the tile"
        "use a stage of the tile, or declare more stages";
    S_VIEW "S.view" "view out of range"
        "a view is a non-empty rectangle inside its tile"
        "check the row, the column and the extents of the view";
    S_PLACE "S.place" "access out of range"
        "a constant offset and the bytes accessed there are inside one stage of the tile"
        "check the offset and the width of the access";
    S_BARRIER "S.barrier" "mbarrier index out of range"
        "a constant mbarrier index is below the length of its array"
        "use an index of the array, or declare more mbarriers";
    S_TYPE "S.type" "type mismatch"
        "an operand has the type that its statement takes; integers of one width are interchangeable"
        "convert the value";
    S_SCOPE "S.scope" "register of another role"
        "a register is used in the role that created it; registers of the prologue are usable everywhere"
        "compute the value in this role, or in the prologue";
    S_LOOP "S.loop" "loop bound changed inside the loop"
        "a loop does not write its own counter or bounds"
        "copy the value to a variable before the loop";
    S_DEFINED "S.defined" "use of an uninitialized register"
        "a register is written on every path that leads to its use"
        "set the register before the branch or the loop";

    U_UNKNOWN "U.unknown" "not decidable from the program"
        "the operands of synchronization follow from launch parameters, indices, or values passed through shared memory"
        "compute the stage, parity, count or condition from launch parameters, loop counters and constants; if the launch guarantees more than the types state, declare it with `at_least`, `at_most` or `multiple_of`";
    U_STATES "U.states" "too many states"
        "the synchronization of the kernel repeats, so that finitely many states cover every launch"
        "write equal trip counts as the same expression in all roles, and use fewer stages or roles if the kernel is large";

    A_WRITER "A.writer" "assumption: disjoint writes"
        "threads write disjoint bytes of global memory or order their accesses, and buffers of different parameters do not overlap"
        "check one launch on the CPU executor with `warpline check FAMILY --launch`; it reports races in global memory";
    A_FLAGS "A.flags" "assumption: flags are zero at launch"
        "the flags are zero at launch, and each flag is set as often as its waits require"
        "clear the flags before the launch, and check one launch with `warpline check FAMILY --launch`";
    A_LOCK "A.lock" "assumption: locks are free at launch"
        "a lock is free at launch, each thread that takes it frees it, and the guarded data is accessed only under the lock"
        "clear the lock before the launch";
    A_ALIAS "A.alias" "assumption: no overlap"
        "memory that decides control flow does not overlap memory that the kernel writes"
        "pass separate buffers";
    A_OVERFLOW "A.overflow" "assumption: no overflow"
        "a sum or product of launch parameters stays within its type"
        "declare a bound on the parameters with `at_most`";
    A_ENDS "A.ends" "assumption: the loop ends"
        "every thread leaves the `while` loop after finitely many iterations"
        "count with `range` or `each`, where the number of iterations is known";
    A_WRAP "A.wrap" "assumption: no wrap-around"
        "the counter or the step of a loop does not wrap around its type"
        "declare a bound on the parameters with `at_most`";

    LINT_BANK_CONFLICTS "bank-conflicts" "bank conflicts"
        "an access to shared memory takes no more bank passes than its bytes require"
        "use a swizzled tile, or let neighboring lanes access neighboring 4-byte words";
    LINT_COALESCING "coalescing" "uncoalesced access"
        "a request to global memory touches no more 32-byte sectors than its bytes require"
        "let neighboring lanes access neighboring elements, and align rows to 32 bytes";
    LINT_DIVERGENCE "divergence" "divergent branches"
        "branches leave few lanes idle"
        "branch on values that are equal in a warp, or give the lanes equal work";
    LINT_REGISTERS "registers" "registers near the budget"
        "a role stays below its register budget"
        "raise the register budget of the role, or use a smaller tile";
    LINT_SPILLS "spills" "register spills"
        "ptxas keeps all values in registers"
        "raise the register budget of the role, use a smaller tile, or unroll less";
    LINT_IDLE_ROLES "idle-roles" "idle warps"
        "every warp and every role has work"
        "remove the idle warps, or merge the role into another one";
    LINT_BLOCK_SIZES "block-sizes" "unusual block sizes"
        "thread counts and tile extents are powers of two"
        "choose powers of two unless the problem requires other sizes";
    LINT_STAGES "stages" "ring too shallow or too deep"
        "a ring has enough stages to hide the latency of its loads, and no more"
        "use 2 to 6 stages";
    LINT_UNUSED_STAGES "unused-stages" "unused stages"
        "a run fills every stage of a ring"
        "use fewer stages";
}
