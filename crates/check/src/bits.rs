//! A bit set.

/// A set of numbers below a fixed length.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    /// Creates the empty set of numbers below `len`.
    pub(crate) fn new(len: usize) -> Self {
        Self(vec![0; len.div_ceil(64)])
    }

    pub(crate) fn insert(&mut self, i: usize) {
        self.0[i / 64] |= 1 << (i % 64);
    }

    pub(crate) fn contains(&self, i: usize) -> bool {
        self.0[i / 64] >> (i % 64) & 1 == 1
    }

    pub(crate) fn clear(&mut self) {
        self.0.fill(0);
    }

    /// Adds all numbers of another set of the same length; returns whether the set changed.
    pub(crate) fn add(&mut self, other: &Self) -> bool {
        let mut changed = false;
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            changed |= *b & !*a != 0;
            *a |= b;
        }
        changed
    }

    /// Returns the least number that both sets contain.
    pub(crate) fn common(&self, other: &Self) -> Option<usize> {
        let both = self.0.iter().zip(&other.0).map(|(a, b)| a & b);
        let (word, bits) = both.enumerate().find(|(_, bits)| *bits != 0)?;
        Some(64 * word + bits.trailing_zeros() as usize)
    }

    /// Returns the number of elements.
    pub(crate) fn count(&self) -> u32 {
        self.0.iter().map(|bits| bits.count_ones()).sum()
    }

    /// Iterates over the numbers in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().flat_map(|(word, &bits)| {
            let rest = |b: &u64| Some(b & (b - 1)).filter(|b| *b != 0);
            std::iter::successors(Some(bits).filter(|b| *b != 0), rest)
                .map(move |b| 64 * word + b.trailing_zeros() as usize)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Bits;

    fn set(all: &[usize]) -> Bits {
        let mut bits = Bits::new(200);
        all.iter().for_each(|&i| bits.insert(i));
        bits
    }

    #[test]
    fn a_set_contains_its_inserted_numbers() {
        let all = [0, 63, 64, 130, 199];
        assert_eq!(set(&all).iter().collect::<Vec<_>>(), all);
        assert_eq!(set(&all).count(), 5);
        assert!(set(&all).contains(64) && !set(&all).contains(65));
        let mut none = set(&all);
        none.clear();
        assert_eq!(none, set(&[]));
    }

    #[test]
    fn add_returns_whether_the_set_changed() {
        let mut bits = set(&[1, 70]);
        assert!(!bits.add(&set(&[70])));
        assert!(bits.add(&set(&[70, 71])));
        assert_eq!(bits, set(&[1, 70, 71]));
    }

    #[test]
    fn common_returns_the_least_shared_number() {
        assert_eq!(set(&[1, 70, 150]).common(&set(&[2, 70, 150])), Some(70));
        assert_eq!(set(&[1]).common(&set(&[2])), None);
    }
}
