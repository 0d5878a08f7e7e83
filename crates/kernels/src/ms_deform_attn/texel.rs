//! Element types: values as they are weighed and summed, locations and weights as they are read.

use half::{bf16, f16};
use warpline_ir::build::*;
use warpline_ir::ops::memory::{L1, LoadCache};
use warpline_ir::{Bf16x2, Element, F16x2, Scalar};

/// What a lane has of a pixel.
pub(super) type Words<E> = [Reg<<E as Texel>::Word>; 4];

/// An element type of values.
pub(super) trait Texel: Element {
    /// 32 bits of a pixel.
    type Word: Scalar;
    /// What multiplies a word.
    type Weight: Copy;
    /// Channels of a word.
    const CHANNELS: u32;

    /// Weights as they are handed from lane to lane.
    fn hand(weights: &[Reg<f32>]) -> Vec<Reg<u32>>;
    /// And as they were handed.
    fn take(words: &[Reg<u32>]) -> Vec<Self::Weight>;
    /// Adds weighed words of some corners to sums of all channels, or none yet.
    fn add(sums: &mut Vec<Reg<f32>>, corners: &[(Words<Self>, Self::Weight)]);
    /// Writes an even number of channels, rounded.
    fn store(to: Global<Self>, at: Reg<u32>, channels: &[Reg<f32>]);
}

impl Texel for f16 {
    type Word = F16x2;
    type Weight = Reg<F16x2>;
    const CHANNELS: u32 = 2;

    #[track_caller]
    fn hand(weights: &[Reg<f32>]) -> Vec<Reg<u32>> {
        let pair = |w: &[Reg<f32>]| Reg::<F16x2>::round(w[0], w[1]).bitcast();
        weights.chunks(2).map(pair).collect()
    }

    #[track_caller]
    fn take(words: &[Reg<u32>]) -> Vec<Reg<F16x2>> {
        let twice = |x: Reg<f16>| Reg::<F16x2>::pack(x, x);
        let both = |w: &Reg<u32>| w.bitcast::<F16x2>().halves().map(twice);
        words.iter().flat_map(both).collect()
    }

    /// The corners of a few points are summed in f16, and these sums in f32.
    #[track_caller]
    fn add(sums: &mut Vec<Reg<f32>>, corners: &[(Words<f16>, Reg<F16x2>)]) {
        let Some(((first, weight), rest)) = corners.split_first() else {
            return;
        };
        let mut some = first.map(|word| word * *weight);
        for (words, weight) in rest {
            for (sum, word) in some.iter_mut().zip(words) {
                *sum = word.fma(*weight, *sum);
            }
        }
        let some = some.into_iter().flat_map(|pair| pair.widen());
        *sums = match sums.is_empty() {
            true => some.collect(),
            false => sums.iter().zip(some).map(|(sum, x)| *sum + x).collect(),
        };
    }

    #[track_caller]
    fn store(to: Global<f16>, at: Reg<u32>, channels: &[Reg<f32>]) {
        let words: Vec<_> = (channels.chunks(2))
            .map(|x| Reg::<F16x2>::round(x[0], x[1]).bitcast())
            .collect();
        store_words(to, at, &words);
    }
}

impl Texel for bf16 {
    type Word = Bf16x2;
    type Weight = Reg<f32>;
    const CHANNELS: u32 = 2;

    #[track_caller]
    fn hand(weights: &[Reg<f32>]) -> Vec<Reg<u32>> {
        weights.iter().map(|w| w.bitcast()).collect()
    }

    #[track_caller]
    fn take(words: &[Reg<u32>]) -> Vec<Reg<f32>> {
        words.iter().map(|w| w.bitcast()).collect()
    }

    #[track_caller]
    fn add(sums: &mut Vec<Reg<f32>>, corners: &[(Words<bf16>, Reg<f32>)]) {
        for (words, weight) in corners {
            add(sums, words.iter().flat_map(|word| word.widen()), *weight);
        }
    }

    #[track_caller]
    fn store(to: Global<bf16>, at: Reg<u32>, channels: &[Reg<f32>]) {
        let words: Vec<_> = (channels.chunks(2))
            .map(|x| Reg::<Bf16x2>::round(x[0], x[1]).bitcast())
            .collect();
        store_words(to, at, &words);
    }
}

impl Texel for f32 {
    type Word = f32;
    type Weight = Reg<f32>;
    const CHANNELS: u32 = 1;

    #[track_caller]
    fn hand(weights: &[Reg<f32>]) -> Vec<Reg<u32>> {
        <bf16 as Texel>::hand(weights)
    }

    #[track_caller]
    fn take(words: &[Reg<u32>]) -> Vec<Reg<f32>> {
        <bf16 as Texel>::take(words)
    }

    #[track_caller]
    fn add(sums: &mut Vec<Reg<f32>>, corners: &[(Words<f32>, Reg<f32>)]) {
        for (words, weight) in corners {
            add(sums, words.iter().copied(), *weight);
        }
    }

    #[track_caller]
    fn store(to: Global<f32>, at: Reg<u32>, channels: &[Reg<f32>]) {
        let words: Vec<_> = channels.iter().map(|x| x.bitcast()).collect();
        store_words(to, at, &words);
    }
}

/// Adds weighed channels to sums of all, or none yet.
#[track_caller]
fn add(sums: &mut Vec<Reg<f32>>, channels: impl Iterator<Item = Reg<f32>>, weight: Reg<f32>) {
    *sums = match sums.is_empty() {
        true => channels.map(|x| x * weight).collect(),
        false => {
            let both = sums.iter().zip(channels);
            both.map(|(sum, x)| x.fma(weight, *sum)).collect()
        }
    };
}

#[track_caller]
fn store_words<E: Element>(to: Global<E>, at: Reg<u32>, words: &[Reg<u32>]) {
    match *words {
        [a] => to.store_as(at, [a]),
        [a, b] => to.store_as(at, [a, b]),
        [a, b, c, d] => to.store_as(at, [a, b, c, d]),
        _ => {}
    }
}

/// An element type of locations and weights.
pub(super) trait Number: Element {
    /// Elements of 32 bits.
    const PER_WORD: u32;
    /// One element.
    fn one(from: Global<Self>, at: Reg<u32>) -> Reg<f32>;
    /// Those of a word.
    fn of_word(word: Reg<u32>) -> Vec<Reg<f32>>;
    /// One element of a tile.
    fn near(from: TileRef<Self>, row: Reg<u32>, col: Reg<u32>) -> Reg<f32>;

    /// `count` elements of a row of a tile, whose first one is a multiple of them.
    #[track_caller]
    fn some_near(from: TileRef<Self>, row: Reg<u32>, col: Reg<u32>, count: u32) -> Vec<Reg<f32>> {
        if count < Self::PER_WORD {
            return vec![Self::near(from, row, col)];
        }
        let together = (count / Self::PER_WORD).min(4) * Self::PER_WORD;
        let each = (0..count).step_by(together as usize);
        let words = each.flat_map(|i| -> Vec<Reg<u32>> {
            let col = if i == 0 { col } else { col + i };
            match together / Self::PER_WORD {
                1 => from.load_as::<u32, 1>(row, col).into(),
                2 => from.load_as::<u32, 2>(row, col).into(),
                _ => from.load_as::<u32, 4>(row, col).into(),
            }
        });
        words.flat_map(Self::of_word).collect()
    }

    /// `count` elements, whose first one is a multiple of them.
    #[track_caller]
    fn some(from: Global<Self>, first: Reg<u32>, count: u32) -> Vec<Reg<f32>> {
        if count < Self::PER_WORD {
            return vec![Self::one(from, first)];
        }
        let words = Self::words(from, first, count).into_iter();
        words.flat_map(Self::of_word).collect()
    }

    /// The words of `count` elements, a multiple of those of a word, whose
    /// first one is a multiple of the largest power of two in `count`.
    #[track_caller]
    fn words(from: Global<Self>, first: Reg<u32>, count: u32) -> Vec<Reg<u32>> {
        let size = Self::DTYPE.bytes() as u32;
        let together = (1 << count.trailing_zeros()).min(16 / size);
        let each = (0..count).step_by(together as usize);
        each.flat_map(|i| -> Vec<Reg<u32>> {
            let at = if i == 0 { first } else { first + i };
            match together / Self::PER_WORD {
                0 | 1 => from.load_cached::<u32, 1>(at, ONCE).into(),
                2 => from.load_cached::<u32, 2>(at, ONCE).into(),
                _ => from.load_cached::<u32, 4>(at, ONCE).into(),
            }
        })
        .collect()
    }
}

/// Points are read once: the L1 is for values.
const ONCE: LoadCache = LoadCache::READ_ONLY.l1(L1::NoAllocate);

macro_rules! half_number {
    ($($t:ty, $pair:ty;)*) => {$(
        impl Number for $t {
            const PER_WORD: u32 = 2;
            #[track_caller]
            fn one(from: Global<$t>, at: Reg<u32>) -> Reg<f32> {
                let [x] = from.load_cached::<$t, 1>(at, ONCE);
                x.cast()
            }
            #[track_caller]
            fn near(from: TileRef<$t>, row: Reg<u32>, col: Reg<u32>) -> Reg<f32> {
                from.load(row, col).cast()
            }
            #[track_caller]
            fn of_word(word: Reg<u32>) -> Vec<Reg<f32>> { word.bitcast::<$pair>().widen().into() }
        }
    )*};
}
half_number! {
    f16, F16x2;
    bf16, Bf16x2;
}

impl Number for f32 {
    const PER_WORD: u32 = 1;
    #[track_caller]
    fn one(from: Global<f32>, at: Reg<u32>) -> Reg<f32> {
        let [x] = from.load_cached(at, ONCE);
        x
    }
    #[track_caller]
    fn near(from: TileRef<f32>, row: Reg<u32>, col: Reg<u32>) -> Reg<f32> {
        from.load(row, col)
    }
    #[track_caller]
    fn of_word(word: Reg<u32>) -> Vec<Reg<f32>> {
        vec![word.bitcast()]
    }
}
