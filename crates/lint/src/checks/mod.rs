//! The checks, one file each.
//!
//! | check | data | warns about |
//! |---|---|---|
//! | [`BANK_CONFLICTS`] | a run | shared-memory accesses with bank conflicts |
//! | [`COALESCING`] | a run | requests to global memory with more sectors than needed |
//! | [`DIVERGENCE`] | a run | branches that leave many lanes idle |
//! | [`REGISTERS`] | ptxas, estimate | roles near their register budget |
//! | [`SPILLS`] | ptxas | spilled registers |
//! | [`IDLE_ROLES`] | a run | idle warps, roles with little work |
//! | [`BLOCK_SIZES`] | the program | thread counts and tiles that are not powers of two |
//! | [`STAGES`] | the program, a run | rings with too few or too many stages |
//! | [`UNUSED_STAGES`] | a run | stages that the run never fills |

mod bank_conflicts;
mod block_sizes;
mod coalescing;
mod divergence;
mod idle_roles;
mod registers;
mod spills;
mod stages;
mod unused_stages;

pub use bank_conflicts::MAX_EXTRA_WAVEFRONTS;
pub use coalescing::{MAX_EXTRA_SECTOR_SHARE, MAX_EXTRA_SECTORS};
pub use divergence::MAX_IDLE_LANES;
pub use idle_roles::MIN_WORK_SHARE;
pub use registers::NEAR_BUDGET;
pub use stages::{MAX_STAGES, MIN_STAGES};

use crate::finding::LintFinding;
use crate::input::{FindingList, LintInput};
use warpline_ir::TileInfo;

/// Bank conflicts.
pub const BANK_CONFLICTS: &str = "bank-conflicts";
/// Sectors beyond the minimum.
pub const COALESCING: &str = "coalescing";
/// Lanes that branches leave idle.
pub const DIVERGENCE: &str = "divergence";
/// Registers near the budget.
pub const REGISTERS: &str = "registers";
/// Registers that ptxas spills.
pub const SPILLS: &str = "spills";
/// Warps without work and roles with little.
pub const IDLE_ROLES: &str = "idle-roles";
/// Thread counts and tile extents that are not powers of two.
pub const BLOCK_SIZES: &str = "block-sizes";
/// The number of stages of rings.
pub const STAGES: &str = "stages";
/// Stages that the run never fills.
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

/// Tiles with fewer bytes over all stages are not checked: they pass a few numbers between threads.
pub const SMALL_TILE_BYTES: u64 = 1024;

fn is_small(tile: &TileInfo) -> bool {
    u64::from(tile.stages) * data_bytes(tile) < SMALL_TILE_BYTES
}

/// Returns the bytes of one stage without its alignment padding.
fn data_bytes(tile: &TileInfo) -> u64 {
    u64::from(tile.layout.rows) * u64::from(tile.layout.row_bytes())
}

/// A check of one kernel.
type Check = fn(&LintInput<'_>, FindingList<'_>) -> Vec<LintFinding>;

/// Returns all findings of one kernel.
pub(crate) fn run_all(input: &LintInput<'_>) -> Vec<LintFinding> {
    let checks: [Check; 9] = [
        bank_conflicts::run,
        coalescing::run,
        divergence::run,
        registers::run,
        spills::run,
        idle_roles::run,
        block_sizes::run,
        stages::run,
        unused_stages::run,
    ];
    let named = ALL.iter().zip(checks);
    named
        .flat_map(|(check, run)| run(input, FindingList::new(check, input)))
        .collect()
}
