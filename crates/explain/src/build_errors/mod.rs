//! The codes of [`BuildErrors`](warpline_ir::BuildErrors): rules, broken and repaired kernels.
//!
//! Each module inside a file describes one code. Its documentation is the explanation; `broken` and
//! `repaired` are the kernels.

mod declarations;
mod fragments;
mod rings;
mod roles;
mod tiles;

use crate::page::{Broken, Example, FoundBy};
use warpline_check::Rule;

macro_rules! build_errors {
    ($($file:ident { $($page:ident $code:literal $title:literal $requirement:literal $help:literal;)* })*) => {
        /// The rules of the builder.
        pub const RULES: &[Rule] = &[$($(Rule {
            code: $code,
            title: $title,
            requirement: $requirement,
            help: $help,
        },)*)*];

        /// The kernels of every builder code, in the order of [`RULES`].
        pub const EXAMPLES: &[Example] = &[$($(Example {
            code: $code,
            found_by: FoundBy::Builder,
            broken: Broken::Built($file::$page::broken),
            repaired: $file::$page::repaired,
            module: Some(stringify!($page)),
            source: include_str!(concat!(stringify!($file), ".rs")),
        },)*)*];
    };
}

/// Builds the kernel whose register the broken kernel of `register-of-another-kernel` uses. Call it
/// before that kernel is built.
pub fn leak_register() {
    roles::register_of_another_kernel::leak_register();
}

build_errors! {
    declarations {
        cluster_size "cluster-size" "empty cluster"
            "a cluster has at least one CTA along each axis"
            "use 1 for the axes that the cluster does not need";
        parameter_name "parameter-name" "invalid parameter name"
            "parameter names are unique; a name is a letter, then letters, digits or `_`"
            "rename the parameter";
        parameter_type "parameter-type" "invalid parameter type"
            "a launch parameter is a number, a pointer or a tensor map"
            "pass the flag as u32 and compare it with 0";
        tensor_map "tensor-map" "illegal tensor map"
            "the box of a tensor map has 1 to 256 elements per axis, rows of a multiple of 16 bytes, and no more bytes per row than its swizzle span"
            "make the box as wide as the swizzle span, and load wider tiles with several boxes";
        not_a_parameter "not-a-parameter" "bounds of a computed value"
            "only a launch parameter has bounds, an alignment or a length"
            "declare the bounds where the parameter is declared";
        parameter_bounds "parameter-bounds" "unsatisfiable bounds"
            "at least one value meets all bounds of a parameter, and an alignment is a power of two"
            "remove the bound that contradicts the others";
        pdl_safe "pdl-safe" "pdl_safe on a computed address"
            "`pdl_safe()` marks a pointer that is a launch parameter"
            "call `pdl_safe()` on the parameter, before `offset`";
        named_barriers "named-barriers" "too many named barriers"
            "a CTA has 15 named barriers besides the CTA barrier"
            "share a named barrier between phases that cannot overlap, or use an mbarrier";
        raster_group "raster-group" "empty raster group"
            "a raster group has at least one row of tiles"
            "use `Rasterization::RowMajor`, or a group of at least 1";
        loop_step "loop-step" "loop step of 0"
            "the step of a loop is positive"
            "pass the distance between two iterations to `step_by`";
        loop_type "loop-type" "invalid loop counter"
            "a loop counter is u32 or i32"
            "count in u32, and convert to u64 where an address needs it";
    }
    roles {
        no_role "no-role" "kernel without a role"
            "a kernel has at least one role"
            "declare a role: `k.role(\"work\").body(|| …)`";
        role_name "role-name" "two roles with one name"
            "role names are unique"
            "give each role its own name, such as `consumer0` and `consumer1`";
        role_warps "role-warps" "role without warps"
            "a role has at least one warp"
            "call `warps(n)` or `warpgroups(n)` with n of at least 1, or neither for one warp";
        role_inside_role "role-inside-role" "nested role"
            "roles are declared next to each other"
            "declare the inner role after the body of the outer one";
        elect_inside_elect "elect-inside-elect" "nested elect"
            "`elect` runs in all lanes of its warp"
            "remove the inner `elect`: one lane is already elected";
        prologue_barrier_once "prologue-barrier-once" "second prologue barrier"
            "one role calls `prologue_barrier()` once; the other roles wait there implicitly"
            "keep the call in the role that runs code before the barrier";
        prologue_barrier_place "prologue-barrier-place" "prologue barrier inside a block"
            "`prologue_barrier()` stands at the top level of a role body"
            "move the call out of the loop, condition or `elect`";
        prologue_barrier_cluster "prologue-barrier-cluster" "prologue barrier in a cluster"
            "a kernel whose CTAs access each other starts with a cluster barrier"
            "remove `prologue_barrier()`: the builder emits the cluster barrier";
        turn_role "turn-role" "role outside of the turn"
            "all threads of a declared role hold a turn, and every declared role exists"
            "name the role in `k.turn(name, &[…])`, and call `hold` outside of `elect`";
        turn_roles "turn-roles" "turn with one role"
            "a turn has at least two roles"
            "name all roles that exclude each other";
        register_of_another_role "register-of-another-role" "register of another role"
            "a role uses its own registers and launch parameters"
            "pass the value through a ring, or compute it in both roles";
        register_out_of_scope "register-out-of-scope" "register out of scope"
            "a register is used inside the block that assigns it"
            "carry the value out of the block in a `Var`";
        register_of_another_kernel "register-of-another-kernel" "register of another kernel"
            "a kernel uses registers that its own builder made"
            "compute the value in this kernel, or pass it as a launch parameter";
    }
    rings {
        ring_end "ring-end" "ring with one end"
            "a ring has at least one producer and one consumer"
            "acquire and commit slots in one role, wait and release them in another";
        ring_distribution "ring-distribution" "several producers or consumers without a distribution"
            "the author declares how several consumers (or producers) of a ring share its slots; in a round-robin ring, all roles of one end arrive equally often per slot"
            "call `broadcast()` or `round_robin()` for several consumers, `cooperative_producers()` or `round_robin_producers()` for several producers";
        ring_per_warp "ring-per-warp" "warp count of a ring per warp"
            "both roles of a ring per warp have one warp for each ring, and every warp uses its own"
            "declare the ring for the warps of the roles, and use `elect_lane()` instead of `elect()`";
        ring_stages "ring-stages" "ring without stages"
            "a ring has at least one stage"
            "use 2 stages or more, so that load and compute overlap";
        ring_outside_role "ring-outside-role" "ring outside of a role"
            "roles use rings inside their bodies"
            "move the call into a role body";
        ring_elect "ring-elect" "ring inside and outside of elect"
            "a role uses a ring either always inside `elect` or never"
            "put all uses of the ring into one `elect`";
        ring_across "ring-across" "remote slot of a local ring"
            "`acquire_remote` needs a ring across the cluster"
            "declare the ring with `across_cluster()`";
        ring_multicast "ring-multicast" "multicast into a local ring"
            "a multicast load needs a multicast ring"
            "declare the ring with `multicast()` or `multicast_along(axis)`";
        multicast_part "multicast-part" "wrong part of a multicast tile"
            "the CTAs of a multicast group load equal parts of whole rows"
            "divide the rows of the tensor map's box by the size of the group";
        slot_left "slot-left" "slot without commit or release"
            "every acquired slot is committed, and every awaited slot is released"
            "call `slot.commit()` or `slot.release()` at the end of its use";
        slot_commit "slot-commit" "mixed commits"
            "a role commits all slots of a ring in the same way"
            "use `commit_after_copies()` everywhere, or `copy_wait(0)` and `commit()`";
        slot_copies "slot-copies" "ordinary stores before commit_after_copies"
            "`commit_after_copies` needs a slot that only `cp.async` fills, in the same CTA"
            "call `copy_wait(0)` and `commit()`";
        slot_async_stores "slot-async-stores" "mixed stores in a ring with async stores"
            "`store_async_thread_major` fills the slots of a ring with `async_stores()`, and no other ring's"
            "declare the ring with `across_cluster()` for ordinary stores, or use `store_async_thread_major()`";
        copy_not_elected "copy-not-elected" "bulk copy by every thread"
            "one thread issues a bulk copy"
            "put the copy inside `elect(|| …)`";
    }
    tiles {
        tile_shape "tile-shape" "illegal tile"
            "a tile has at least one element, and its rows fit its swizzle"
            "use a row size that is a multiple of the swizzle span, or an unswizzled tile";
        tile_alias "tile-alias" "alias larger than its tile"
            "an alias fits into the bytes of its tile"
            "declare the larger tile first and alias the smaller one";
        view_bounds "view-bounds" "view out of bounds"
            "the rows and columns of a view are inside its tile"
            "make the ranges end at the rows and columns of the tile";
        view_atoms "view-atoms" "view across a swizzle atom"
            "a view starts and ends at multiples of 8 rows and of 16 bytes; a view of more than one swizzle span starts \
             at a span"
            "round the ranges to whole atoms";
        byte_offset "byte-offset" "byte offset in a swizzled tile"
            "`load_at_byte` addresses a tile without a swizzle"
            "declare the tile unswizzled, or use `load_as` with a row and a column";
        swizzled_offset "swizzled-offset" "swizzled offset of another layout"
            "a `SwizzledOffset` has the swizzle of the view that uses it, and the view starts at a panel"
            "compute the offset with the swizzle of the tile";
    }
    fragments {
        accumulator_shape "accumulator-shape" "illegal accumulator"
            "an accumulator has a multiple of 64 rows and a multiple of 8 columns, up to 256"
            "round the tile up and mask the rest in the epilogue";
        accumulator_role "accumulator-role" "accumulator outside of a warpgroup"
            "all threads of a role of one warpgroup hold an accumulator"
            "declare the role with `warpgroups(1)`, and leave `elect` first";
        mma_type "mma-type" "operand type that wgmma lacks"
            "wgmma operands are bf16, f16, tf32 or fp8"
            "convert the operand to one of these types";
        mma_shape "mma-shape" "operands do not match the accumulator"
            "an accumulator of m × n takes operands of m × k and n × k, with k a multiple of the instruction's K"
            "slice the operands to the rows of the accumulator and to the same K";
        operand_shape "operand-shape" "illegal register operand"
            "a register operand has a multiple of 64 rows, and a multiple of the instruction's K columns"
            "use 16 columns for 16-bit types, 32 for 8-bit types";
        operand_bytes "operand-bytes" "decoded operand of wide elements"
            "`RegBytes` loads tiles of 1-byte elements"
            "use `RegOperand::load` for 16-bit elements";
        fragment_shape "fragment-shape" "illegal fragment"
            "a warpgroup fragment has a multiple of 64 rows and of 8 columns, and fragments that are combined have one shape"
            "round the shape up, or slice the larger fragment";
        fragment_slice "fragment-slice" "slice inside a column group"
            "slices and shifts of a fragment are multiples of 8 columns"
            "cut at a multiple of 8";
        fragment_columns "fragment-columns" "wrong number of column pairs"
            "`zip_col_pairs` takes one pair for every 8 columns of the fragment"
            "make the pairs with `map_col_pairs(n, …)`, where n is the number of columns";
        fragment_rows "fragment-rows" "row vector of another fragment"
            "a row vector has the rows and the owner of the fragment that it is combined with"
            "make the vector from a fragment of the same shape";
        fragment_store "fragment-store" "store to a view of another shape"
            "a fragment of m × n is stored to a view of m × n, and transposed to n × m"
            "slice the view to the shape of the fragment";
        warp_tile_shape "warp-tile-shape" "illegal warp fragment"
            "a warp fragment has multiples of 16 rows and columns"
            "round the shape up to multiples of 16";
        warp_mma_shape "warp-mma-shape" "operands do not match the warp fragment"
            "`mma_sync` takes a warp fragment and operands with the same K, a multiple of 32 bytes"
            "make the accumulator with `Frag::warp_zeros`, and slice the operands to one K";
        outbox_shape "outbox-shape" "tile does not fit the outbox"
            "a role stores tiles with the rows of the outbox and a multiple of its columns, and boxes divide the outbox"
            "declare the outbox with the shape of the role's tile";
        outbox_role "outbox-role" "outbox of two roles"
            "one role uses an outbox"
            "declare one outbox for each role";
        partial_shape "partial-shape" "partial tile of another shape"
            "a partial tile has the shape that `partial_tiles` declares"
            "declare `partial_tiles` with the shape of the accumulator";
    }
}
