//! The workspace of a plan: what its launches hand to each other.

use super::config::{Config, TileAssignment};
use super::problem::{PITCH_BYTES, Problem};
use super::sequence::ENTRY_WORDS;
use super::tile_table;
use warpline_family::plan::{Address, Buffer, ZEROED_BYTES};

/// The bytes of a work queue: two 32-bit words.
const QUEUE_BYTES: u64 = 8;
/// K and V without keys have a row of zeros behind the work queue: the kernel loads it and masks it.
pub(super) const ZEROS: Address = Address {
    buffer: Buffer::Workspace,
    offset: PITCH_BYTES,
};

/// Where things are in the workspace.
pub(super) struct Workspace {
    /// The table of tiles (`tile_table`).
    pub(super) table: Address,
    /// Parts of O in f32: parts, batches, heads, queries (`combine`).
    pub(super) parts: Address,
    /// The natural logarithm of the sum of exponentials of each row of a part.
    pub(super) logs: Address,
    /// The size in bytes.
    pub(super) bytes: u64,
}

impl Workspace {
    /// Returns the workspace of a problem.
    pub(super) fn of(p: &Problem, c: &Config) -> Self {
        let start = match c.tiles {
            _ if p.keys == 0 => ZEROS.offset + PITCH_BYTES,
            TileAssignment::Queue => QUEUE_BYTES,
            _ => 0,
        };
        let rows = match c.is_split() {
            true => p.rows()[3].rows() * u64::from(c.splits),
            false => 0,
        };
        let parts = ZEROED_BYTES + tile_table::entries(p, c) * 4 * u64::from(ENTRY_WORDS);
        let logs = parts + rows * u64::from(p.dim_v()) * 4;
        let end = logs + rows * 4;
        let at = |offset| Buffer::Workspace.at(offset);
        Self {
            table: at(ZEROED_BYTES),
            parts: at(parts),
            logs: at(logs),
            bytes: if end > ZEROED_BYTES { end } else { start },
        }
    }
}
