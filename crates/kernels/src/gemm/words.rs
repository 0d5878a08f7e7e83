//! Elements of 1, 2 or 4 bytes in global memory, as unsigned numbers, and their packing into words.

use warpline_ir::Extent;
use warpline_ir::builder::*;

/// A pointer to elements of one size.
#[derive(Clone, Copy)]
pub(super) enum RawElements {
    Bytes(Global<u8>),
    Halves(Global<u16>),
    Words(Global<u32>),
}

impl RawElements {
    /// Declares a pointer to `len` elements of `size` bytes.
    #[track_caller]
    pub(super) fn declare(k: Builder, name: &str, size: u32, len: Extent, alignment: u32) -> Self {
        let alignment = alignment.into();
        match size {
            1 => Self::Bytes(k.pointer(name).elements(len).aligned_to(alignment)),
            2 => Self::Halves(k.pointer(name).elements(len).aligned_to(alignment)),
            _ => Self::Words(k.pointer(name).elements(len).aligned_to(alignment)),
        }
    }

    /// Returns a pointer to element `i`.
    #[track_caller]
    pub(super) fn offset(self, i: Reg<u64>) -> Self {
        match self {
            Self::Bytes(x) => Self::Bytes(x.offset(i)),
            Self::Halves(x) => Self::Halves(x.offset(i)),
            Self::Words(x) => Self::Words(x.offset(i)),
        }
    }

    /// Loads one element, zero-extended.
    #[track_caller]
    pub(super) fn load(self, i: impl ElementIndex) -> Reg<u32> {
        match self {
            Self::Bytes(x) => x.load(i).cast(),
            Self::Halves(x) => x.load(i).cast(),
            Self::Words(x) => x.load(i),
        }
    }

    /// Loads 1, 2 or 4 consecutive words from element `i` on.
    #[track_caller]
    pub(super) fn load_words(self, i: Reg<u32>, words: u32) -> Vec<Reg<u32>> {
        match words {
            1 => self.load_array::<1>(i),
            2 => self.load_array::<2>(i),
            _ => self.load_array::<4>(i),
        }
    }

    #[track_caller]
    fn load_array<const N: usize>(self, i: Reg<u32>) -> Vec<Reg<u32>> {
        let words: [Reg<u32>; N] = match self {
            Self::Bytes(x) => x.load_as(i),
            Self::Halves(x) => x.load_as(i),
            Self::Words(x) => x.load_as(i),
        };
        words.into()
    }
}

/// Packs elements of `size` bytes into words.
#[track_caller]
pub(super) fn pack_words(elements: &[Reg<u32>], size: u32) -> Vec<Reg<u32>> {
    match size {
        1 => {
            let pairs: Vec<_> = elements
                .chunks(2)
                .map(|x| prmt(x[0], x[1], 0x0040u32))
                .collect();
            pairs
                .chunks(2)
                .map(|x| prmt(x[0], x[1], 0x5410u32))
                .collect()
        }
        2 => elements
            .chunks(2)
            .map(|x| prmt(x[0], x[1], 0x5410u32))
            .collect(),
        _ => elements.to_vec(),
    }
}
