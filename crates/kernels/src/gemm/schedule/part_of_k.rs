//! The part of K that a CTA computes, where a group of CTAs computes a tile.

use super::prelude::*;
use crate::gemm::config::{MAX_GROUPS, MAX_PART_K_TILES, MAX_PARTS};

/// A CTA's part of K. The grid has a group for each tile along x, and the CTAs of a group along y.
#[derive(Clone, Copy)]
pub(super) struct PartOfK {
    /// The group: the index of its tile.
    pub(super) group: Reg<u32>,
    /// The index of the CTA in its group.
    pub(super) rank: Reg<u32>,
    /// The CTAs of a group.
    pub(super) parts: Reg<u32>,
    first: Reg<u32>,
    count: Reg<u32>,
}

impl PartOfK {
    /// Declares the parameters.
    pub(super) fn declare(k: Builder) -> Self {
        let parts = k.param::<u32>("parts").at_least(1).at_most(MAX_PARTS);
        let [length, larger] = ["part_k_tiles", "larger_parts"].map(|name| k.param::<u32>(name));
        let (length, larger) = (length.at_most(MAX_PART_K_TILES), larger.at_most(MAX_PARTS));
        let rank = cta_id_y().min(MAX_PARTS - 1);
        Self {
            group: cta_id().min(MAX_GROUPS - 1),
            rank,
            parts,
            // The first parts have one more k-tile if K does not divide evenly.
            first: rank * length + rank.min(larger),
            count: length + select(rank.lt(larger), 1u32, 0u32),
        }
    }

    /// Returns the k-tiles of the part.
    pub(super) fn k_tiles(self) -> Range<u32> {
        range(self.first, self.first + self.count)
    }

    /// Returns the index of the group's first CTA.
    pub(super) fn first_cta(self) -> Reg<u32> {
        self.group * self.parts
    }

    /// Returns the index of the CTA.
    pub(super) fn cta(self) -> Reg<u32> {
        self.first_cta() + self.rank
    }

    /// Returns the CTAs of the group.
    pub(super) fn ctas(self) -> Range<u32> {
        range(self.first_cta(), self.first_cta() + self.parts)
    }
}
