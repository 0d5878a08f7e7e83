//! Sets of small numbers.

/// A set of small numbers that grows as needed.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    pub(super) fn has(&self, i: u32) -> bool {
        let (word, bit) = (i as usize / 64, i % 64);
        self.0.get(word).is_some_and(|w| w >> bit & 1 == 1)
    }

    pub(super) fn add(&mut self, i: u32) {
        let (word, bit) = (i as usize / 64, i % 64);
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << bit;
    }

    pub(super) fn remove(&mut self, i: u32) {
        if let Some(w) = self.0.get_mut(i as usize / 64) {
            *w &= !(1 << (i % 64));
        }
    }

    pub(super) fn join(&mut self, other: &Bits) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            *a |= b;
        }
    }

    /// Adds what is in one set and not in another.
    pub(super) fn join_without(&mut self, other: &Bits, without: &Bits) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        let common = other.0.len().min(without.0.len());
        let (these, rest) = self.0.split_at_mut(common);
        for ((a, b), c) in these.iter_mut().zip(&other.0).zip(&without.0) {
            *a |= b & !c;
        }
        for (a, b) in rest.iter_mut().zip(&other.0[common..]) {
            *a |= b;
        }
    }

    /// Adds what is in both of two sets.
    pub(super) fn join_common(&mut self, one: &Bits, two: &Bits) {
        let len = one.0.len().min(two.0.len());
        if self.0.len() < len {
            self.0.resize(len, 0);
        }
        for (a, (b, c)) in self.0.iter_mut().zip(one.0.iter().zip(&two.0)) {
            *a |= b & c;
        }
    }

    /// Removes all that is in another set.
    pub(super) fn clear(&mut self, dead: &Bits) {
        for (a, d) in self.0.iter_mut().zip(&dead.0) {
            *a &= !d;
        }
    }

    /// Is all of it in another set?
    pub(super) fn is_within(&self, other: &Bits) -> bool {
        let common = self.0.len().min(other.0.len());
        let (mine, more) = self.0.split_at(common);
        mine.iter().zip(&other.0).all(|(a, b)| a & !b == 0) && more.iter().all(|&w| w == 0)
    }

    fn word(&self, i: usize) -> u64 {
        self.0.get(i).copied().unwrap_or(0)
    }

    /// Is all of it in one of two other sets?
    pub(super) fn is_within_either(&self, one: &Bits, two: &Bits) -> bool {
        let mut words = self.0.iter().enumerate();
        words.all(|(i, w)| w & !one.word(i) & !two.word(i) == 0)
    }

    /// Is all that it has in common with one set in another?
    pub(super) fn common_is_within(&self, with: &Bits, other: &Bits) -> bool {
        let mut words = self.0.iter().enumerate();
        words.all(|(i, w)| w & with.word(i) & !other.word(i) == 0)
    }

    /// Has it anything in common with another set?
    pub(super) fn meets(&self, other: &Bits) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.0).flat_map(|(i, &word)| numbers(i, word))
    }

    /// What is in it and not in another set.
    pub(super) fn iter_without(&self, other: &Bits) -> impl Iterator<Item = u32> {
        let others = other.0.iter().copied().chain(std::iter::repeat(0));
        let words = (0..).zip(self.0.iter().zip(others));
        words.flat_map(|(i, (&word, other))| numbers(i, word & !other))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|&w| w == 0)
    }
}

/// The numbers in a word, which is the `i`-th.
fn numbers(i: u32, word: u64) -> impl Iterator<Item = u32> {
    let next = |w: &u64| Some(w & (w - 1)).filter(|&w| w != 0);
    let rest = std::iter::successors(Some(word).filter(|&w| w != 0), next);
    rest.map(move |w| i * 64 + w.trailing_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_different_lengths_join_and_clear() {
        let (mut a, mut b) = (Bits::default(), Bits::default());
        a.add(3);
        b.add(200);
        a.join(&b);
        assert!(a.has(3) && a.has(200) && !a.has(4) && !a.has(1000));
        assert!(b.is_within(&a) && !a.is_within(&b) && Bits::default().is_within(&b));
        a.clear(&b);
        assert!(a.has(3) && !a.has(200));
        a.remove(3);
        assert!(a.is_empty());
        let mut c = Bits::default();
        c.join_without(&b, &a);
        assert!(c.has(200));
        c.add(3);
        assert_eq!(c.iter_without(&b).collect::<Vec<_>>(), [3]);
        assert_eq!(b.iter_without(&a).collect::<Vec<_>>(), [200]);
        c.remove(3);
        let mut d = Bits::default();
        d.join_common(&c, &a);
        assert!(d.is_empty());
    }
}
