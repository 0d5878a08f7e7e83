//! Masks: the keys that a query sees, and the blocks of keys that a tile visits.
//!
//! A query sees a range of keys. Each end of the range is fixed or moves along a diagonal of the score
//! matrix. `causal` and the right side of a window set the upper end, the left side sets the lower one.

use super::problem::{Corner, MAX_LEN, Problem};
use super::sequence::{Sequence, SequenceClass};
use super::work::Split;
use warpline_family::plan::LaunchStep;
use warpline_ir::builder::*;

/// A diagonal: query `q` has the key index `q + ahead − lead`, clamped to 0 and the number of keys.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Diagonal<T = u32> {
    ahead: T,
    lead: T,
}

impl Diagonal {
    /// Returns the diagonal on which query 0 has key `offset`.
    pub(super) fn at(offset: i64) -> Self {
        let part = |x: i64| x.clamp(0, MAX_LEN.into()) as u32;
        Self {
            ahead: part(offset),
            lead: part(-offset),
        }
    }

    fn key(self, query: u32, keys: u32) -> u32 {
        (query + self.ahead).saturating_sub(self.lead).min(keys)
    }

    /// Returns the sum of the keys of all queries.
    fn sum(self, queries: u32, keys: u32) -> f64 {
        let [queries, keys, ahead, lead] = [queries, keys, self.ahead, self.lead].map(f64::from);
        let offset = ahead - lead;
        // Queries before `start` have key 0, queries from `end` on have all keys.
        let start = (-offset).clamp(0.0, queries);
        let end = (keys - offset).clamp(start, queries);
        let growing = end - start;
        growing * (start + offset + (growing - 1.0) / 2.0) + (queries - end) * keys
    }
}

impl Diagonal<Reg<u32>> {
    fn declare(k: Builder, names: [&str; 2]) -> Self {
        let [ahead, lead] = names.map(|name| k.param::<u32>(name).at_most(MAX_LEN));
        Self { ahead, lead }
    }

    /// Returns the diagonal on which query 0 has key `ahead − lead`.
    fn between(ahead: Reg<u32>, lead: Reg<u32>) -> Self {
        let larger = ahead.max(lead);
        Self {
            ahead: larger - lead,
            lead: larger - ahead,
        }
    }

    fn key(self, query: Reg<u32>, keys: Reg<u32>) -> Reg<u32> {
        let Self { ahead, lead } = self;
        (query + ahead).max(lead).min(lead + keys) - lead
    }
}

/// The diagonals of a mask; a missing one restricts nothing.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(super) struct Mask<T = u32> {
    /// The first visible key.
    pub(super) first: Option<Diagonal<T>>,
    /// The end of the visible keys.
    pub(super) end: Option<Diagonal<T>>,
}

impl Mask {
    /// Returns the mask of diagonals by their keys of query 0, without those that restrict no query.
    pub(super) fn new(first: Option<i64>, end: Option<i64>, queries: u32, keys: u32) -> Self {
        let last_query = i64::from(queries) - 1;
        Self {
            first: first
                .filter(|offset| offset + last_query > 0)
                .map(Diagonal::at),
            end: end.filter(|&offset| offset < keys.into()).map(Diagonal::at),
        }
    }

    /// Returns the visible keys of a query; an empty range starts at its end.
    pub(super) fn visible(self, query: u32, keys: u32) -> std::ops::Range<u32> {
        let end = self.end.map_or(keys, |end| end.key(query, keys));
        let first = self.first.map_or(0, |first| first.key(query, keys));
        first.min(end)..end
    }

    /// Returns the number of visible scores of all queries. A window contains its diagonal,
    /// so that the first visible key is never behind the end.
    pub(super) fn visible_scores(self, queries: u32, keys: u32) -> f64 {
        let all = f64::from(queries) * f64::from(keys);
        let sum = |diagonal: Diagonal| diagonal.sum(queries, keys);
        self.end.map_or(all, sum) - self.first.map_or(0.0, sum)
    }
}

/// The names of the parameters.
const FIRST: [&str; 2] = ["first_ahead", "first_lead"];
const END: [&str; 2] = ["end_ahead", "end_lead"];
const LEFT: &str = "window_left";
const RIGHT: &str = "window_right";

/// The parameters of the mask.
#[derive(Clone, Copy)]
pub(super) struct MaskParams {
    /// The maximum number of keys of a batch.
    pub(super) keys: Reg<u32>,
    diagonals: Diagonals,
}

/// Where diagonals are.
#[derive(Clone, Copy)]
enum Diagonals {
    /// All batches have the same extents.
    Fixed(Mask<Reg<u32>>),
    /// The extents of a sequence place its diagonals.
    OfSequence {
        /// Keys before the diagonal that a query sees.
        left: Option<Reg<u32>>,
        /// Keys up to and behind the diagonal that a query sees.
        right: Option<Reg<u32>>,
        corner: Corner,
    },
}

/// The keys that the queries of a tile see.
#[derive(Clone, Copy)]
pub(super) struct Visibility {
    keys: Reg<u32>,
    mask: Mask<Reg<u32>>,
    /// The first block, if the keys are split.
    first_block: Option<Reg<u32>>,
}

/// The blocks of keys of a tile. All roles visit them from the last one to the first one, so that the bits of
/// a query do not depend on the tile.
#[derive(Clone, Copy)]
pub(super) struct Blocks {
    /// The last block, which is visited first and masked.
    pub(super) last: Reg<u32>,
    /// Masked blocks before it.
    above: Reg<u32>,
    /// Blocks without a masked score.
    full: Reg<u32>,
    /// Masked blocks before those.
    below: Option<Reg<u32>>,
}

impl MaskParams {
    /// Declares the parameters of a class.
    pub(super) fn declare(k: Builder, mask: MaskClass, sequences: Option<SequenceClass>) -> Self {
        let keys = k.param::<u32>("keys").at_most(MAX_LEN);
        let side = |name| k.param::<u32>(name).at_most(MAX_LEN + 1);
        let diagonals = match sequences {
            None => Diagonals::Fixed(Mask {
                first: mask.first.then(|| Diagonal::declare(k, FIRST)),
                end: mask.end.then(|| Diagonal::declare(k, END)),
            }),
            Some(sequences) => Diagonals::OfSequence {
                left: mask.first.then(|| side(LEFT)),
                right: mask.end.then(|| side(RIGHT)),
                corner: sequences.corner,
            },
        };
        Self { keys, diagonals }
    }

    /// Binds the parameters of the diagonals.
    pub(super) fn bind(mut step: LaunchStep, p: &Problem) -> LaunchStep {
        if p.class().sequences.is_some() {
            let side = |keys: u32, more: u32| keys.min(MAX_LEN) + more;
            let sides = [
                (LEFT, p.window_left.map(|left| side(left, 0))),
                (RIGHT, p.right().map(|right| side(right, 1))),
            ];
            for (name, keys) in sides {
                if let Some(keys) = keys {
                    step = step.scalar(name, keys);
                }
            }
            return step;
        }
        let mask = p.mask([p.queries, p.keys]);
        for (diagonal, [ahead, lead]) in [(mask.first, FIRST), (mask.end, END)] {
            if let Some(diagonal) = diagonal {
                step = step
                    .scalar(ahead, diagonal.ahead)
                    .scalar(lead, diagonal.lead);
            }
        }
        step
    }

    /// Returns the keys that the queries of a tile see, and the blocks of these keys.
    pub(super) fn visible_blocks(
        &self,
        sequence: Option<&Sequence>,
        queries: [Reg<u32>; 2],
        block_keys: u32,
        split: Option<Split>,
    ) -> (Visibility, Blocks) {
        let visibility = self.of_tile(sequence, queries, block_keys, split);
        (visibility, visibility.blocks(queries, block_keys))
    }

    /// Returns the keys that the queries of a tile, from the first to the last one, see. `sequence` has the
    /// extents of its batch, if they differ.
    pub(super) fn of_tile(
        &self,
        sequence: Option<&Sequence>,
        queries: [Reg<u32>; 2],
        block_keys: u32,
        split: Option<Split>,
    ) -> Visibility {
        let visibility = self.of_sequence(sequence);
        match split {
            None => visibility,
            Some(split) => visibility.part(queries, block_keys, split),
        }
    }

    fn of_sequence(&self, sequence: Option<&Sequence>) -> Visibility {
        let mask = match self.diagonals {
            Diagonals::Fixed(mask) => mask,
            Diagonals::OfSequence {
                left,
                right,
                corner,
            } => {
                let [queries, keys] = match (sequence, corner) {
                    (Some(sequence), Corner::BottomRight) => [sequence.queries, sequence.keys],
                    _ => [0u32.reg(); 2],
                };
                Mask {
                    first: left.map(|left| Diagonal::between(keys, queries + left)),
                    end: right.map(|right| Diagonal::between(keys + right, queries)),
                }
            }
        };
        Visibility {
            keys: sequence.map_or(self.keys, |sequence| sequence.keys),
            mask,
            first_block: None,
        }
    }
}

impl Visibility {
    /// Returns the end of the keys that a query sees.
    fn end(&self, query: Reg<u32>) -> Reg<u32> {
        match self.mask.end {
            None => self.keys,
            Some(end) => end.key(query, self.keys),
        }
    }

    /// Returns whether a query sees a key.
    pub(super) fn is_visible(&self, query: Reg<u32>, key: Reg<u32>, block_keys: u32) -> Reg<bool> {
        let mut is_visible = key.lt(self.end(query));
        if let Some(first) = self.mask.first {
            is_visible = is_visible & key.ge(first.key(query, self.keys));
        }
        match self.first_block {
            None => is_visible,
            Some(block) => is_visible & key.ge(block * block_keys),
        }
    }

    /// Returns the first and the last block of the queries from `first` to `last`.
    fn ends(&self, [first, last]: [Reg<u32>; 2], block_keys: u32) -> [Reg<u32>; 2] {
        let top = self.end(last).div_ceil(block_keys).max(1) - 1;
        let start = self.mask.first;
        let bottom = start.map_or(0u32.reg(), |start| start.key(first, self.keys) / block_keys);
        [bottom.min(top), top]
    }

    /// Restricts the keys to a part: as many blocks as each other part has.
    pub(super) fn part(self, queries: [Reg<u32>; 2], block_keys: u32, split: Split) -> Self {
        let [bottom, top] = self.ends(queries, block_keys);
        let blocks = split.of.divisor.divide(top - bottom + split.of.count);
        let first = bottom + split.index * blocks;
        Self {
            keys: self.keys.min((first + blocks) * block_keys),
            first_block: Some(first),
            ..self
        }
    }

    /// Returns the blocks of the queries from `first` to `last`. All roles compute them alike, so that the
    /// checker sees equal loops. Queries without a visible key have one block, which is masked entirely.
    pub(super) fn blocks(&self, [first, last]: [Reg<u32>; 2], block_keys: u32) -> Blocks {
        let top = self.end(last).div_ceil(block_keys).max(1) - 1;
        let visible_end = (self.end(first) / block_keys).min(top);
        if self.mask.first.is_none() && self.first_block.is_none() {
            return Blocks {
                last: top,
                above: top - visible_end,
                full: visible_end,
                below: None,
            };
        }
        let start = |query| {
            let start = self.mask.first;
            start.map(|start| start.key(query, self.keys))
        };
        let bottom = match (start(first), self.first_block) {
            (Some(start), None) => start / block_keys,
            (Some(start), Some(block)) => (start / block_keys).max(block),
            (None, block) => block.unwrap_or(0u32.reg()),
        };
        let bottom = bottom.min(top);
        let full_end = visible_end.max(bottom);
        let full_start = start(last).map(|start| {
            let block = start.div_ceil(block_keys);
            block.max(bottom).min(full_end)
        });
        Blocks {
            last: top,
            above: top - full_end,
            full: full_end - full_start.unwrap_or(bottom),
            below: full_start.map(|full_start| full_start - bottom),
        }
    }
}

impl Blocks {
    /// Returns the numbers of a table entry.
    pub(super) fn words(&self) -> [Reg<u32>; 4] {
        let below = self.below.unwrap_or(0u32.reg());
        [self.last, self.above, self.full, below]
    }

    /// Returns the blocks with the numbers of a table entry.
    pub(super) fn of_words([last, above, full, below]: [Reg<u32>; 4], mask: MaskClass) -> Self {
        Self {
            last,
            above,
            full,
            below: mask.first.then_some(below),
        }
    }

    /// Visits the blocks after the last one.
    pub(super) fn each(&self, visit: impl Fn(Reg<u32>)) {
        for (first, count, _) in self.runs() {
            steps(count).each(|i| visit(first - i));
        }
    }

    /// As [`each`](Self::each), with a state; `visit` also takes whether the block is masked.
    pub(super) fn fold<S: Carry>(&self, state: S, visit: impl Fn(S, Reg<u32>, bool) -> S) -> S {
        let runs = self.runs().into_iter();
        runs.fold(state, |state, (first, count, is_masked)| {
            steps(count).fold(state, |i, state| visit(state, first - i, is_masked))
        })
    }

    /// Returns the runs of blocks: the first one, how many, and whether they are masked.
    fn runs(&self) -> Vec<(Reg<u32>, Reg<u32>, bool)> {
        let first = self.last - 1;
        let mut runs = vec![
            (first, self.above, true),
            (first - self.above, self.full, false),
        ];
        if let Some(below) = self.below {
            runs.push((first - self.above - self.full, below, true));
        }
        runs
    }
}

/// The diagonals that a kernel is compiled with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub(super) struct MaskClass {
    pub(super) first: bool,
    pub(super) end: bool,
}

impl From<Mask> for MaskClass {
    fn from(mask: Mask) -> Self {
        Self {
            first: mask.first.is_some(),
            end: mask.end.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visible_scores_are_the_sum_over_queries() {
        for [queries, keys] in [[1, 1], [5, 9], [9, 5], [7, 0], [0, 3], [30, 30]] {
            for left in [None, Some(0), Some(2), Some(40)] {
                for right in [None, Some(0), Some(3), Some(40)] {
                    let corner = i64::from(keys) - i64::from(queries);
                    let first = left.map(|left: i64| corner - left);
                    let end = right.map(|right: i64| corner + right + 1);
                    let mask = Mask::new(first, end, queries, keys);
                    let visible = |query: u32| {
                        let seen = |key: &u32| {
                            let distance = i64::from(*key) - i64::from(query) - corner;
                            left.is_none_or(|left| distance >= -left)
                                && right.is_none_or(|right| distance <= right)
                        };
                        (0..keys).filter(seen).collect::<Vec<_>>()
                    };
                    let mut sum = 0;
                    for query in 0..queries {
                        let found: Vec<_> = mask.visible(query, keys).collect();
                        assert_eq!(found, visible(query), "{queries} {keys} {left:?} {right:?}");
                        sum += found.len();
                    }
                    assert_eq!(mask.visible_scores(queries, keys), sum as f64);
                }
            }
        }
    }
}
