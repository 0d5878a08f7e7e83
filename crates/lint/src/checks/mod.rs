//! The checks, one file each.
//!
//! | check | read from | warns of |
//! |---|---|---|
//! | [`BANK_CONFLICTS`] | a run | shared accesses that take more turns of the banks than they must |
//! | [`COALESCING`] | a run | global requests that touch more sectors than they must |
//! | [`DIVERGENCE`] | a run | branches that keep lanes from a good part of a role's ops |
//! | [`REGISTERS`] | ptxas, our estimate | roles that are near their budget |
//! | [`SPILLS`] | ptxas | registers that did not fit |
//! | [`IDLE_ROLES`] | a run | warps that do nothing, roles that do little |
//! | [`BLOCK_SIZES`] | the program | threads and tiles that are no power of two |
//! | [`STAGES`] | the program, a run | rings that are too shallow or too deep |
//! | [`UNUSED_STAGES`] | a run | stages that nothing is put into |

mod bank_conflicts;
mod block_sizes;
mod coalescing;
mod divergence;
mod idle_roles;
mod registers;
mod spills;
mod stages;
mod unused_stages;

pub use bank_conflicts::EXTRA_TURNS;
pub use coalescing::{SPARE_SECTORS, SPARE_SHARE};
pub use divergence::LOST_LANES;
pub use idle_roles::LITTLE;
pub use registers::NEAR;
pub use stages::{FEWEST, MOST};

use crate::case::{Answers, Case};
use crate::finding::Finding;
use warpline_ir::Tile;

/// Turns of the banks beyond the fewest possible.
pub const BANK_CONFLICTS: &str = "bank-conflicts";
/// Sectors beyond the fewest possible.
pub const COALESCING: &str = "coalescing";
/// Lanes that branches keep from their ops.
pub const DIVERGENCE: &str = "divergence";
/// Registers near the budget.
pub const REGISTERS: &str = "registers";
/// Registers that ptxas keeps in memory.
pub const SPILLS: &str = "spills";
/// Warps and roles that do nothing, or little.
pub const IDLE_ROLES: &str = "idle-roles";
/// Threads and tile extents that are no power of two.
pub const BLOCK_SIZES: &str = "block-sizes";
/// Stages of rings.
pub const STAGES: &str = "stages";
/// Stages that the run put nothing into.
pub const UNUSED_STAGES: &str = "unused-stages";

/// Every check, in the order of a checklist.
pub const ALL: &[&str] = &[
    BANK_CONFLICTS,
    COALESCING,
    DIVERGENCE,
    REGISTERS,
    SPILLS,
    IDLE_ROLES,
    BLOCK_SIZES,
    STAGES,
    UNUSED_STAGES,
];

/// The bytes of data, in all its stages, below which a tile is not judged: it
/// carries a few numbers between threads, and no block.
pub const LIGHT_BYTES: u64 = 1024;

fn is_light(tile: &Tile) -> bool {
    u64::from(tile.stages) * data_bytes(tile) < LIGHT_BYTES
}

/// Bytes of one stage that hold data; what aligns the next one is left out.
fn data_bytes(tile: &Tile) -> u64 {
    u64::from(tile.layout.rows) * u64::from(tile.layout.row_bytes())
}

/// What one check makes of a kernel.
type Look = fn(&Case<'_>, Answers<'_>) -> Vec<Finding>;

/// All findings of one kernel.
pub(crate) fn look(case: &Case<'_>) -> Vec<Finding> {
    let looks: [Look; 9] = [
        bank_conflicts::look,
        coalescing::look,
        divergence::look,
        registers::look,
        spills::look,
        idle_roles::look,
        block_sizes::look,
        stages::look,
        unused_stages::look,
    ];
    let looked = ALL.iter().zip(looks);
    looked
        .flat_map(|(check, look)| look(case, Answers::new(check, case)))
        .collect()
}
