//! A `wgmma` operand in shared memory.

use crate::job::{Engine, Span, join_spans};
use crate::layout::{Major, Swizzle, TileLayout};
use crate::machine::{Fault, FaultKind, Machine, ResolvedAddress};
use crate::ops::control::uniform_value;
use crate::ops::mma::MmaType;
use crate::ops::mma::block::WORDS;
use crate::value::View;

/// Bytes of a chunk, the unit of the swizzle.
const CHUNK: u32 = 16;

/// An evaluated operand: 32 bytes of K by m rows or n columns.
///
/// A K-major operand is contiguous along K. An MN-major operand is contiguous
/// along M or N, divided into panels.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct SharedOperand {
    /// First byte, before the swizzle.
    at: ResolvedAddress,
    layout: TileLayout,
    pub(super) major: Major,
    pub(super) ty: MmaType,
}

/// Consecutive chunks within one swizzle span.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Strip {
    /// First byte, before the swizzle.
    byte: u32,
    chunks: u32,
    /// Byte offset in the result of [`SharedOperand::read`].
    to: usize,
}

impl SharedOperand {
    pub(super) fn new<M: Machine>(
        m: &mut M,
        v: &View,
        major: Major,
        ty: MmaType,
    ) -> Result<Self, Fault> {
        uniform_value::<u32, M>(m, v.stage, "operand stage")?;
        let operand = Self {
            at: m.resolve_view(v, 0)?,
            layout: m.layout(v),
            major,
            ty,
        };
        let fault = |text: String| Err(Fault::new(FaultKind::Operand, text));
        let (swizzle, element) = (operand.layout.swizzle, operand.layout.element_bytes);
        if swizzle == Swizzle::None || element != ty.bytes() {
            let seen = match swizzle {
                Swizzle::None => "an unswizzled tile with".to_owned(),
                _ => format!("a tile with {swizzle} and"),
            };
            return fault(format!(
                "has an operand of {} in {seen} {element}-byte elements; the tile must be swizzled and have {}-byte elements",
                ty.name(),
                ty.bytes()
            ));
        }
        let row = operand.at.byte % swizzle.align() / operand.layout.span();
        if row != 0 {
            return fault(format!(
                "has an operand that starts at row {row} of a swizzle pattern; it must start at row 0"
            ));
        }
        Ok(operand)
    }

    /// Iterates over the strips of rows or columns `from..from + len`. K-major: one strip per row or
    /// column, which holds all of K. MN-major: one strip per panel and k.
    fn strips(self, from: usize, len: usize) -> impl Iterator<Item = Strip> {
        let TileLayout {
            element_bytes: element,
            ..
        } = self.layout;
        let (start, span) = (self.at.byte, self.layout.span());
        let (panel, panel_bytes) = ((span / element) as usize, self.layout.panel_bytes());
        let (major, k_len) = (self.major, self.ty.k() as usize);
        let count = match major {
            Major::K => len,
            Major::Mn => (from + len).div_ceil(panel).saturating_sub(from / panel) * k_len,
        };
        (0..count).map(move |i| match major {
            Major::K => Strip {
                byte: start + (from + i) as u32 * span,
                chunks: k_len as u32 * element / CHUNK,
                to: i * k_len * element as usize,
            },
            Major::Mn => {
                let (p, k) = (from / panel + i / k_len, i % k_len);
                let first = from.max(p * panel);
                let last = (from + len).min((p + 1) * panel);
                let bytes = |columns: usize| columns as u32 * element;
                Strip {
                    byte: start
                        + p as u32 * panel_bytes
                        + k as u32 * span
                        + bytes(first - p * panel),
                    chunks: bytes(last - first) / CHUNK,
                    to: bytes(k * len + first - from) as usize,
                }
            }
        })
    }

    /// Returns the address of the block that holds the swizzled chunks of a strip, in any
    /// order; `None` if the chunks are not one block. The swizzle permutes chunks only
    /// within an aligned block whose size is a power of two.
    fn block(&self, s: Strip) -> Option<u32> {
        let bytes = CHUNK * s.chunks;
        (bytes.is_power_of_two() && s.byte.is_multiple_of(bytes))
            .then(|| self.chunk(s, 0) & !(bytes - 1))
    }

    /// Returns the swizzled address of chunk `j` of a strip.
    fn chunk(&self, s: Strip, j: u32) -> u32 {
        self.layout.swizzle.apply(s.byte + CHUNK * j)
    }

    fn span(&self, byte: u32, len: u32) -> Span {
        Span::Shared(ResolvedAddress { byte, ..self.at }, len)
    }

    /// Calls `each` with the bytes of rows or columns `from..from + len`.
    pub(super) fn reads(&self, from: usize, len: usize, each: &mut dyn FnMut(Span)) {
        join_spans(each, |each| {
            for s in self.strips(from, len) {
                match self.block(s) {
                    Some(byte) => each(self.span(byte, CHUNK * s.chunks)),
                    None => (0..s.chunks).for_each(|j| each(self.span(self.chunk(s, j), CHUNK))),
                }
            }
        });
    }

    /// Reads the elements of rows or columns `from..from + len` as `f32`. The
    /// fastest dimension of the result is K if K-major, else M or N.
    pub(super) fn read(
        &self,
        from: usize,
        len: usize,
        e: &mut impl Engine,
    ) -> Result<Vec<f32>, Fault> {
        let mut words = vec![0u32; WORDS * len];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        let mut raw = [0u8; 128];
        for s in self.strips(from, len) {
            let strip_bytes = (CHUNK * s.chunks) as usize;
            let to = &mut bytes[s.to..s.to + strip_bytes];
            match self.block(s) {
                Some(byte) => {
                    e.read(self.span(byte, strip_bytes as u32), &mut raw[..strip_bytes])?;
                    for (j, to) in to
                        .as_chunks_mut::<{ CHUNK as usize }>()
                        .0
                        .iter_mut()
                        .enumerate()
                    {
                        let at = (self.chunk(s, j as u32) - byte) as usize;
                        to.copy_from_slice(&raw[at..at + CHUNK as usize]);
                    }
                }
                None => {
                    for (j, to) in to.chunks_exact_mut(CHUNK as usize).enumerate() {
                        e.read(self.span(self.chunk(s, j as u32), CHUNK), to)?;
                    }
                }
            }
        }
        let mut numbers = vec![0f32; self.ty.k() as usize * len];
        self.ty.widen(&words, &mut numbers);
        Ok(numbers)
    }
}
