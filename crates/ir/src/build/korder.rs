//! The order in which an operand holds K.
//!
//! A product sums over K, so any order is right as long as both operands have
//! the same one: `order[p]` is the k at position `p` of both. The order is
//! part of an operand's type, and a product of different orders does not
//! compile.
//!
//! Orders other than the natural one come from how registers hold a left
//! operand. Of 16 k of a row, the four lanes that share the row hold these
//! positions, `t` being the lane:
//!
//! | | positions of lane t |
//! |---|---|
//! | 16-bit operand | 2t, 2t+1 and 8+2t, 8+2t+1 |
//! | 8-bit operand, a word | 4t … 4t+3 |
//! | columns of an accumulator | 2t, 2t+1 and 8+2t, 8+2t+1 |

use std::fmt::Debug;

/// An order of K, repeated after as many as it has.
pub trait KOrder: Copy + Debug + 'static {
    /// Its name.
    const NAME: &'static str;
    /// The k at each position.
    const K: &'static [u8];
}

/// K as it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Natural;

/// What a 16-bit operand holds whose lanes took words of four neighbours:
/// position 8h + 2t + j is k = 4t + 2h + j.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quads;

/// What an 8-bit operand holds that was an accumulator: position 4t + 2h + j
/// is k = 8h + 2t + j. The inverse of [`Quads`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pairs;

/// What a 16-bit operand holds whose lanes took 16 neighbours of 64 each, as
/// words of eight nibbles, and of a word the nibbles i and i + 4 as a pair:
/// position 8p + 2t + j, where p is the pair of 8, is k = 16t + 8(p / 4) + p % 4 + 4j.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Nibbles;

impl KOrder for Nibbles {
    const NAME: &'static str = "nibbles";
    const K: &'static [u8] = &NIBBLES;
}

const NIBBLES: [u8; 64] = {
    let mut order = [0; 64];
    let mut position = 0;
    while position < 64 {
        let (pair, lane, j) = (position / 8, position % 8 / 2, position % 2);
        order[position] = (16 * lane + pair / 4 * 8 + pair % 4 + 4 * j) as u8;
        position += 1;
    }
    order
};

impl KOrder for Natural {
    const NAME: &'static str = "natural";
    const K: &'static [u8] = &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
}
impl KOrder for Quads {
    const NAME: &'static str = "quads";
    const K: &'static [u8] = &[0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15];
}
impl KOrder for Pairs {
    const NAME: &'static str = "pairs";
    const K: &'static [u8] = &[0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15];
}

/// An order of bytes in memory that lanes can take word by word into a 16-bit operand.
pub trait ByWords: KOrder {
    /// The order of the operand.
    type Loaded: KOrder;
}
impl ByWords for Natural {
    type Loaded = Quads;
}
impl ByWords for Pairs {
    type Loaded = Natural;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nibbles_are_all_there_and_each_lane_has_its_16() {
        let mut seen = [false; 64];
        for (position, &k) in Nibbles::K.iter().enumerate() {
            assert_eq!(usize::from(k) / 16, position % 8 / 2, "position {position}");
            seen[usize::from(k)] = true;
        }
        assert!(seen.iter().all(|&x| x));
    }

    /// Where lane `t`'s word `4t + 2h + j` goes in a 16-bit operand.
    fn loaded<A: ByWords>() {
        for t in 0..4 {
            for h in 0..2 {
                for j in 0..2 {
                    let (byte, position) = (4 * t + 2 * h + j, 8 * h + 2 * t + j);
                    assert_eq!(A::Loaded::K[position], A::K[byte], "{}", A::NAME);
                }
            }
        }
    }

    #[test]
    fn words_of_an_order_give_its_loaded_order() {
        loaded::<Natural>();
        loaded::<Pairs>();
    }

    #[test]
    fn quads_and_pairs_undo_each_other() {
        for p in 0..16u8 {
            assert_eq!(Pairs::K[Quads::K[p as usize] as usize], p);
        }
    }
}
