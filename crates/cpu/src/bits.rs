//! Ranges of a bitmap with one bit per byte of memory.

/// Returns the 64-bit words of the range `start..start + len`, each with the mask of its bits.
pub(crate) fn masks(start: usize, len: usize) -> impl Iterator<Item = (usize, u64)> {
    let end = start + len;
    (start / 64..end.div_ceil(64)).map(move |word| {
        let from = start.saturating_sub(word * 64);
        let to = (end - word * 64).min(64);
        let below = |n: usize| if n >= 64 { u64::MAX } else { (1 << n) - 1 };
        (word, below(to) & !below(from))
    })
}

/// A bitmap of the written bytes of a memory, for one host thread.
#[derive(Clone, Debug)]
pub(crate) struct WrittenBytes(Vec<u64>);

impl WrittenBytes {
    /// Creates a bitmap of `bytes` unwritten bytes.
    pub(crate) fn none(bytes: usize) -> Self {
        Self(vec![0; bytes.div_ceil(64)])
    }

    /// Marks a range as written.
    #[inline]
    pub(crate) fn set(&mut self, start: usize, len: usize) {
        if start % 64 + len <= 64 && len < 64 {
            self.0[start / 64] |= ((1 << len) - 1) << (start % 64);
            return;
        }
        masks(start, len).for_each(|(w, m)| self.0[w] |= m);
    }

    /// Returns the first unwritten byte of a range.
    #[inline]
    pub(crate) fn first_gap(&self, start: usize, len: usize) -> Option<usize> {
        if start % 64 + len <= 64 && len < 64 {
            let m = ((1u64 << len) - 1) << (start % 64);
            let gap = m & !self.0[start / 64];
            return (gap != 0).then(|| start / 64 * 64 + gap.trailing_zeros() as usize);
        }
        masks(start, len).find_map(|(w, m)| {
            let gap = m & !self.0[w];
            (gap != 0).then(|| w * 64 + gap.trailing_zeros() as usize)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_unwritten_byte_is_found() {
        let mut w = WrittenBytes::none(300);
        w.set(0, 300);
        assert_eq!(w.first_gap(0, 300), None);
        let mut w = WrittenBytes::none(300);
        w.set(3, 200);
        assert_eq!(w.first_gap(3, 200), None);
        assert_eq!(w.first_gap(3, 201), Some(203));
        assert_eq!(w.first_gap(2, 4), Some(2));
        assert_eq!(w.first_gap(64, 64), None);
        assert_eq!(w.first_gap(0, 0), None);
    }

    #[test]
    fn masks_cover_each_byte_once() {
        for (start, len) in [
            (0, 0),
            (0, 64),
            (5, 59),
            (5, 60),
            (63, 2),
            (64, 128),
            (1, 300),
        ] {
            let total: u32 = masks(start, len).map(|(_, m)| m.count_ones()).sum();
            assert_eq!(total as usize, len);
        }
    }
}
