//! Masks: the keys that a query sees, and the blocks of keys that a tile visits.
//!
//! A query sees a range of keys. Each end of the range is fixed or moves along a diagonal of the score
//! matrix. `causal` and the right side of a window set the upper end, the left side sets the lower one.

use super::problem::MAX_LEN;
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

    /// Binds the parameters that [`Visibility::declare`] has declared.
    pub(super) fn bind(self, mut step: LaunchStep) -> LaunchStep {
        for (diagonal, [ahead, lead]) in [(self.first, FIRST), (self.end, END)] {
            if let Some(diagonal) = diagonal {
                step = step
                    .scalar(ahead, diagonal.ahead)
                    .scalar(lead, diagonal.lead);
            }
        }
        step
    }
}

/// The names of the parameters.
const FIRST: [&str; 2] = ["first_ahead", "first_lead"];
const END: [&str; 2] = ["end_ahead", "end_lead"];

/// The keys that the queries of a head see.
#[derive(Clone, Copy)]
pub(super) struct Visibility {
    pub(super) keys: Reg<u32>,
    mask: Mask<Reg<u32>>,
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

impl Visibility {
    /// Declares the parameters of the diagonals that `mask` has.
    pub(super) fn declare(k: Builder, mask: MaskClass) -> Self {
        Self {
            keys: k.param::<u32>("keys").at_most(MAX_LEN),
            mask: Mask {
                first: mask.first.then(|| Diagonal::declare(k, FIRST)),
                end: mask.end.then(|| Diagonal::declare(k, END)),
            },
        }
    }

    /// Returns the end of the keys that a query sees.
    fn end(&self, query: Reg<u32>) -> Reg<u32> {
        match self.mask.end {
            None => self.keys,
            Some(end) => end.key(query, self.keys),
        }
    }

    /// Returns whether a query sees a key.
    pub(super) fn is_visible(&self, query: Reg<u32>, key: Reg<u32>) -> Reg<bool> {
        let is_before_end = key.lt(self.end(query));
        match self.mask.first {
            None => is_before_end,
            Some(first) => is_before_end & key.ge(first.key(query, self.keys)),
        }
    }

    /// Returns the blocks of the queries from `first` to `last`. All roles compute them alike, so that the
    /// checker sees equal loops. Queries without a visible key have one block, which is masked entirely.
    pub(super) fn blocks(&self, [first, last]: [Reg<u32>; 2], block_keys: u32) -> Blocks {
        let top = self.end(last).div_ceil(block_keys).max(1) - 1;
        let visible_end = (self.end(first) / block_keys).min(top);
        let Some(start) = self.mask.first else {
            return Blocks {
                last: top,
                above: top - visible_end,
                full: visible_end,
                below: None,
            };
        };
        let bottom = (start.key(first, self.keys) / block_keys).min(top);
        let full_end = visible_end.max(bottom);
        let full_start = start.key(last, self.keys).div_ceil(block_keys);
        let full_start = full_start.max(bottom).min(full_end);
        Blocks {
            last: top,
            above: top - full_end,
            full: full_end - full_start,
            below: Some(full_start - bottom),
        }
    }
}

impl Blocks {
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
