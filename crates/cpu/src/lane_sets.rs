//! Sets of lanes, encoded in few bits next to a record number.

use std::collections::HashMap;
use warpline_ir::Mask;

/// The number of bits of a code.
pub(crate) const LANE_BITS: u32 = 9;

/// The code of a lane set: one lane, all lanes, or an entry of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LaneCode(pub(crate) u16);

impl LaneCode {
    /// All lanes, or an engine without lanes.
    pub(crate) const ALL: Self = Self(32);

    /// Returns the code of one lane; lane 32 stands for all lanes.
    pub(crate) fn lane(lane: u8) -> Self {
        Self(lane.into())
    }
}

/// The table of lane sets other than single lanes and all lanes.
#[derive(Debug, Default)]
pub(crate) struct LaneSets {
    masks: Vec<Mask>,
    codes: HashMap<Mask, u16>,
}

/// The first code with a table entry; lower codes are single lanes and [`LaneCode::ALL`].
const FIRST_TABLE_CODE: u16 = 33;

impl LaneSets {
    /// Returns the code of a set. Once the table is full, a further set becomes all lanes; this
    /// over-approximation misses no race.
    pub(crate) fn code(&mut self, lanes: Mask) -> LaneCode {
        if lanes == Mask::MAX {
            return LaneCode::ALL;
        }
        if lanes.is_power_of_two() {
            return LaneCode(lanes.trailing_zeros() as u16);
        }
        if let Some(&code) = self.codes.get(&lanes) {
            return LaneCode(code);
        }
        let code = FIRST_TABLE_CODE + self.masks.len() as u16;
        if code >> LANE_BITS != 0 {
            return LaneCode::ALL;
        }
        self.masks.push(lanes);
        self.codes.insert(lanes, code);
        LaneCode(code)
    }

    /// Returns the set of a code.
    #[inline]
    pub(crate) fn mask(&self, code: LaneCode) -> Mask {
        match code.0 {
            lane @ 0..32 => 1 << lane,
            32 => Mask::MAX,
            code => self.masks[(code - FIRST_TABLE_CODE) as usize],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_exact_until_the_table_is_full() {
        let mut sets = LaneSets::default();
        for lanes in [1, 1 << 31, 0b11, 0xffff, Mask::MAX, 0b11] {
            let code = sets.code(lanes);
            assert_eq!(sets.mask(code), lanes);
        }
        for lanes in 3..4000 {
            let code = sets.code(lanes);
            let mask = sets.mask(code);
            assert!(mask == lanes || mask == Mask::MAX, "{lanes:#x}");
        }
        let late = sets.code(0xabcd_0000);
        assert_eq!(sets.mask(late), Mask::MAX);
    }
}
