//! K orders: permutations of K inside an operand.
//!
//! A GEMM sums over K, so any permutation is correct if both operands use the
//! same one: `order[p]` is the k at position `p` of both. The order is part of
//! an operand's type, so operands with different orders do not compile.
//!
//! The register layouts of A operands cause the permutations. Four lanes share
//! a row of 16 values of k; lane `t` holds:
//!
//! | register layout | positions of lane t |
//! |---|---|
//! | 16-bit operand | 2t, 2t+1 and 8+2t, 8+2t+1 |
//! | 8-bit operand, a word | 4t … 4t+3 |
//! | columns of an accumulator | 2t, 2t+1 and 8+2t, 8+2t+1 |

use std::fmt::Debug;

/// A periodic permutation of K.
pub trait KOrder: Copy + Debug + 'static {
    /// The name for messages.
    const NAME: &'static str;
    /// The k at each position.
    const K: &'static [u8];
}

/// K without a permutation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Natural;

/// The order of a 16-bit operand whose lanes load four adjacent values of k each:
/// position 8h + 2t + j is k = 4t + 2h + j.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quads;

/// The order of an 8-bit operand that was converted from an accumulator: position
/// 4t + 2h + j is k = 8h + 2t + j. The inverse of [`Quads`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pairs;

/// The order of a 16-bit operand decoded from nibbles: each lane loads 16 adjacent values
/// of 64 as two words of eight nibbles, and nibbles i and i + 4 of a word form a pair.
///
/// Position 8p + 2t + j, with p the index of the pair, is k = 16t + 8(p / 4) + p % 4 + 4j.
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

/// A K order of bytes in memory that lanes load word by word into a 16-bit operand.
pub trait WordLoadableOrder: KOrder {
    /// The K order of the operand.
    type Loaded: KOrder;
}
impl WordLoadableOrder for Natural {
    type Loaded = Quads;
}
impl WordLoadableOrder for Pairs {
    type Loaded = Natural;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nibbles_is_a_permutation_and_each_lane_has_16_adjacent_k() {
        let mut seen = [false; 64];
        for (position, &k) in Nibbles::K.iter().enumerate() {
            assert_eq!(usize::from(k) / 16, position % 8 / 2, "position {position}");
            seen[usize::from(k)] = true;
        }
        assert!(seen.iter().all(|&x| x));
    }

    /// Checks that byte `4t + 2h + j` of lane `t` goes to position `8h + 2t + j`.
    fn check_loaded_order<A: WordLoadableOrder>() {
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
    fn word_loads_produce_the_loaded_order() {
        check_loaded_order::<Natural>();
        check_loaded_order::<Pairs>();
    }

    #[test]
    fn quads_and_pairs_are_inverse() {
        for p in 0..16u8 {
            assert_eq!(Pairs::K[Quads::K[p as usize] as usize], p);
        }
    }
}
