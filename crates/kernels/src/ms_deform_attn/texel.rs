//! Element types: values with their weights and sums, and locations and attention weights.

use half::{bf16, f16};
use warpline_ir::builder::*;
use warpline_ir::ops::memory::{L1Policy, LoadCache};
use warpline_ir::{Bf16x2, Element, F16x2, Scalar};

/// The 16 bytes that a lane loads of a pixel.
pub(super) type Words<E> = [Reg<<E as Texel>::Word>; 4];

/// An element type of values.
pub(super) trait Texel: Element {
    /// 32 bits of a pixel.
    type Word: Scalar;
    /// An unpacked corner weight.
    type Weight: Copy;
    /// Channels of a word.
    const CHANNELS_PER_WORD: u32;

    /// Packs corner weights for a record.
    fn pack_weights(weights: &[Reg<f32>]) -> Vec<Reg<u32>>;
    /// Unpacks corner weights from a record.
    fn unpack_weights(words: &[Reg<u32>]) -> Vec<Self::Weight>;
    /// Adds the weighted words of some corners to the f32 sums; an empty `sums` counts as zeros.
    fn accumulate(sums: &mut Vec<Reg<f32>>, corners: &[(Words<Self>, Self::Weight)]);
    /// Rounds and stores an even number of channels.
    fn store(to: Global<Self>, at: Reg<u32>, channels: &[Reg<f32>]);
}

impl Texel for f16 {
    type Word = F16x2;
    type Weight = Reg<F16x2>;
    const CHANNELS_PER_WORD: u32 = 2;

    #[track_caller]
    fn pack_weights(weights: &[Reg<f32>]) -> Vec<Reg<u32>> {
        let pair = |w: &[Reg<f32>]| Reg::<F16x2>::round(w[0], w[1]).bitcast();
        weights.chunks(2).map(pair).collect()
    }

    #[track_caller]
    fn unpack_weights(words: &[Reg<u32>]) -> Vec<Reg<F16x2>> {
        let splat = |x: Reg<f16>| Reg::<F16x2>::pack(x, x);
        let unpack = |w: &Reg<u32>| w.bitcast::<F16x2>().halves().map(splat);
        words.iter().flat_map(unpack).collect()
    }

    /// Sums the corners of a few points in f16, then adds that sum in f32.
    #[track_caller]
    fn accumulate(sums: &mut Vec<Reg<f32>>, corners: &[(Words<f16>, Reg<F16x2>)]) {
        let Some(((first, weight), rest)) = corners.split_first() else {
            return;
        };
        let mut partial = first.map(|word| word * *weight);
        for (words, weight) in rest {
            for (sum, word) in partial.iter_mut().zip(words) {
                *sum = word.fma(*weight, *sum);
            }
        }
        let partial = partial.into_iter().flat_map(|pair| pair.widen());
        *sums = match sums.is_empty() {
            true => partial.collect(),
            false => sums.iter().zip(partial).map(|(sum, x)| *sum + x).collect(),
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
    const CHANNELS_PER_WORD: u32 = 2;

    #[track_caller]
    fn pack_weights(weights: &[Reg<f32>]) -> Vec<Reg<u32>> {
        weights.iter().map(|w| w.bitcast()).collect()
    }

    #[track_caller]
    fn unpack_weights(words: &[Reg<u32>]) -> Vec<Reg<f32>> {
        words.iter().map(|w| w.bitcast()).collect()
    }

    #[track_caller]
    fn accumulate(sums: &mut Vec<Reg<f32>>, corners: &[(Words<bf16>, Reg<f32>)]) {
        for (words, weight) in corners {
            add_scaled(sums, words.iter().flat_map(|word| word.widen()), *weight);
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
    const CHANNELS_PER_WORD: u32 = 1;

    #[track_caller]
    fn pack_weights(weights: &[Reg<f32>]) -> Vec<Reg<u32>> {
        <bf16 as Texel>::pack_weights(weights)
    }

    #[track_caller]
    fn unpack_weights(words: &[Reg<u32>]) -> Vec<Reg<f32>> {
        <bf16 as Texel>::unpack_weights(words)
    }

    #[track_caller]
    fn accumulate(sums: &mut Vec<Reg<f32>>, corners: &[(Words<f32>, Reg<f32>)]) {
        for (words, weight) in corners {
            add_scaled(sums, words.iter().copied(), *weight);
        }
    }

    #[track_caller]
    fn store(to: Global<f32>, at: Reg<u32>, channels: &[Reg<f32>]) {
        let words: Vec<_> = channels.iter().map(|x| x.bitcast()).collect();
        store_words(to, at, &words);
    }
}

/// Adds weighted channels to the sums; an empty `sums` counts as zeros.
#[track_caller]
fn add_scaled(
    sums: &mut Vec<Reg<f32>>,
    channels: impl Iterator<Item = Reg<f32>>,
    weight: Reg<f32>,
) {
    *sums = match sums.is_empty() {
        true => channels.map(|x| x * weight).collect(),
        false => {
            let pairs = sums.iter().zip(channels);
            pairs.map(|(sum, x)| x.fma(weight, *sum)).collect()
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

/// An element type of locations and attention weights.
pub(super) trait PointElement: Element {
    /// Elements per 32-bit word.
    const PER_WORD: u32;
    /// Loads one element.
    fn load_one(from: Global<Self>, at: Reg<u32>) -> Reg<f32>;
    /// Converts the elements of a word.
    fn unpack_word(word: Reg<u32>) -> Vec<Reg<f32>>;
    /// Loads one element of a tile.
    fn load_one_shared(from: TileRef<Self>, row: Reg<u32>, col: Reg<u32>) -> Reg<f32>;

    /// Loads `count` consecutive elements of a tile row; `col` is a multiple of `count`.
    #[track_caller]
    fn load_shared(from: TileRef<Self>, row: Reg<u32>, col: Reg<u32>, count: u32) -> Vec<Reg<f32>> {
        if count < Self::PER_WORD {
            return vec![Self::load_one_shared(from, row, col)];
        }
        let per_load = (count / Self::PER_WORD).min(4) * Self::PER_WORD;
        let each = (0..count).step_by(per_load as usize);
        let words = each.flat_map(|i| -> Vec<Reg<u32>> {
            let col = if i == 0 { col } else { col + i };
            match per_load / Self::PER_WORD {
                1 => from.load_as::<u32, 1>(row, col).into(),
                2 => from.load_as::<u32, 2>(row, col).into(),
                _ => from.load_as::<u32, 4>(row, col).into(),
            }
        });
        words.flat_map(Self::unpack_word).collect()
    }

    /// Loads `count` consecutive elements; `first` is a multiple of `count`.
    #[track_caller]
    fn load(from: Global<Self>, first: Reg<u32>, count: u32) -> Vec<Reg<f32>> {
        if count < Self::PER_WORD {
            return vec![Self::load_one(from, first)];
        }
        let words = Self::load_words(from, first, count).into_iter();
        words.flat_map(Self::unpack_word).collect()
    }

    /// Loads the words of `count` consecutive elements. `count` is a multiple of the elements per word, and
    /// `first` a multiple of the largest power of two in `count`.
    #[track_caller]
    fn load_words(from: Global<Self>, first: Reg<u32>, count: u32) -> Vec<Reg<u32>> {
        let size = Self::DTYPE.bytes() as u32;
        let per_load = (1 << count.trailing_zeros()).min(16 / size);
        let each = (0..count).step_by(per_load as usize);
        each.flat_map(|i| -> Vec<Reg<u32>> {
            let at = if i == 0 { first } else { first + i };
            match per_load / Self::PER_WORD {
                0 | 1 => from.load_cached::<u32, 1>(at, STREAMING).into(),
                2 => from.load_cached::<u32, 2>(at, STREAMING).into(),
                _ => from.load_cached::<u32, 4>(at, STREAMING).into(),
            }
        })
        .collect()
    }
}

/// Points are loaded once, so they bypass the L1, which caches values.
const STREAMING: LoadCache = LoadCache::READ_ONLY.l1(L1Policy::NoAllocate);

macro_rules! half_point_element {
    ($($t:ty, $pair:ty;)*) => {$(
        impl PointElement for $t {
            const PER_WORD: u32 = 2;
            #[track_caller]
            fn load_one(from: Global<$t>, at: Reg<u32>) -> Reg<f32> {
                let [x] = from.load_cached::<$t, 1>(at, STREAMING);
                x.cast()
            }
            #[track_caller]
            fn load_one_shared(from: TileRef<$t>, row: Reg<u32>, col: Reg<u32>) -> Reg<f32> {
                from.load(row, col).cast()
            }
            #[track_caller]
            fn unpack_word(word: Reg<u32>) -> Vec<Reg<f32>> { word.bitcast::<$pair>().widen().into() }
        }
    )*};
}
half_point_element! {
    f16, F16x2;
    bf16, Bf16x2;
}

impl PointElement for f32 {
    const PER_WORD: u32 = 1;
    #[track_caller]
    fn load_one(from: Global<f32>, at: Reg<u32>) -> Reg<f32> {
        let [x] = from.load_cached(at, STREAMING);
        x
    }
    #[track_caller]
    fn load_one_shared(from: TileRef<f32>, row: Reg<u32>, col: Reg<u32>) -> Reg<f32> {
        from.load(row, col)
    }
    #[track_caller]
    fn unpack_word(word: Reg<u32>) -> Vec<Reg<f32>> {
        vec![word.bitcast()]
    }
}
