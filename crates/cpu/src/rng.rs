//! The random number generator of `--timing random`: SplitMix64.

/// A random stream, determined by a seed and a stream number.
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    /// Creates the stream `stream` of a seed.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut rng = Self(seed);
        rng.0 = rng.next() ^ stream.wrapping_mul(0xd134_2543_de82_ef95);
        rng
    }

    /// Returns the next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `n`; `n` must not be 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_splitmix64() {
        // The reference values of the algorithm for seed 0.
        let mut r = Rng(0);
        assert_eq!(r.next(), 0xe220_a839_7b1d_cdaf);
        assert_eq!(r.next(), 0x6e78_9e6a_a1b9_65f4);
    }

    #[test]
    fn streams_differ() {
        assert_ne!(Rng::new(1, 0).next(), Rng::new(1, 1).next());
        assert_ne!(Rng::new(1, 0).next(), Rng::new(2, 0).next());
        assert!((0..1000).all(|_| Rng::new(7, 7).below(3) < 3));
    }
}
