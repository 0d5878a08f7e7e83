//! A tensor copy in flight.

use crate::job::{Engine, JobCompletion, PIECES, Span, join_spans, piece_range};
use crate::layout::Swizzle;
use crate::machine::{Fault, ResolvedAddress};
use crate::ops::bulk::Reduction;
use crate::tensor_map::{TensorMapMode, TensorMapValue};
use crate::types::DType;

/// Rounds an `f32` that is loaded through a tf32 map, as an H200 does: to
/// nearest even, with a canonical NaN. Stores do not change the bits.
pub(super) fn to_tf32(x: u32) -> u32 {
    match x & 0x7fff_ffff {
        0x7f80_0001.. => 0x7fff_e000,
        0x7f80_0000 => x,
        _ => (x + 0xfff + (x >> 13 & 1)) & !0x1fff,
    }
}

/// The direction of a tensor copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CopyDirection {
    Load,
    /// A store, or a reduction into the tensor.
    Store(Option<Reduction>),
}

/// A copy of a box between a tensor and shared memory.
#[derive(Clone, PartialEq, Debug)]
pub struct TensorJob {
    /// The completion mechanism.
    pub completion: JobCompletion,
    pub(super) direction: CopyDirection,
    pub(super) map: TensorMapValue,
    /// Coordinates of the first element, innermost dimension first.
    pub(super) coords: Vec<i32>,
    /// The im2col offsets, innermost dimension first.
    pub(super) offsets: Vec<u16>,
    pub(super) shared: ResolvedAddress,
}

/// The in-bounds part of a row: `len` bytes starting at byte `first` of the row.
#[derive(Clone, Copy, PartialEq, Debug)]
struct InBoundsRun {
    global: u64,
    first: u32,
    len: u32,
}

impl TensorJob {
    fn row_bytes(&self) -> u32 {
        self.map.decl.inner() * self.map.decl.dtype.bytes() as u32
    }

    fn rows(&self) -> u32 {
        self.map.decl.bytes() / self.row_bytes()
    }

    /// Returns the first byte of a row in shared memory, before the swizzle.
    fn row_start(&self, row: u32) -> ResolvedAddress {
        ResolvedAddress {
            byte: self.shared.byte + row * self.row_bytes(),
            ..self.shared
        }
    }

    /// Returns the outer coordinates of a row, starting with dimension 1.
    fn outer_coords(&self, row: u32) -> [i64; 4] {
        let mut at = [0; 4];
        let decl = &self.map.decl;
        match &decl.mode {
            TensorMapMode::Tiled | TensorMapMode::Strided { .. } => {
                let mut rest = row;
                for (i, &side) in decl.tile.iter().enumerate().skip(1) {
                    let step = i64::from(rest % side) * i64::from(decl.element_stride(i));
                    at[i - 1] = i64::from(self.coords[i]) + step;
                    rest /= side;
                }
            }
            TensorMapMode::Im2col { lower, .. } => {
                let mut carry = i64::from(row);
                for (i, &lo) in lower.iter().enumerate() {
                    let (start, step) = (self.coords[i + 1], i64::from(decl.element_stride(i + 1)));
                    // The first line begins at the start of the copy, the others at the lower corner.
                    let first = self.map.positions(i, start);
                    let (from, nth) = match carry - first {
                        rest if rest < 0 => (start, std::mem::replace(&mut carry, 0)),
                        rest => {
                            let n = self.map.positions(i, lo);
                            carry = 1 + rest / n;
                            (lo, rest % n)
                        }
                    };
                    at[i] = i64::from(from) + nth * step + i64::from(self.offsets[i]);
                }
                let image = lower.len();
                at[image] = i64::from(self.coords[image + 1]) + carry;
            }
        }
        at
    }

    /// Returns the in-bounds part of a row, if any.
    fn in_bounds(&self, row: u32) -> Option<InBoundsRun> {
        let map = &self.map;
        let mut global = map.base;
        for ((c, &extent), &stride) in self
            .outer_coords(row)
            .into_iter()
            .zip(&map.extents[1..])
            .zip(&map.strides)
        {
            if c < 0 || c as u64 >= extent {
                return None;
            }
            global = global.wrapping_add((c as u64).wrapping_mul(stride));
        }
        let start = i64::from(self.coords[0]);
        let lo = start.max(0);
        let hi = (start + i64::from(map.decl.inner())).min(map.extents[0] as i64);
        let size = map.decl.dtype.bytes() as i64;
        (lo < hi).then(|| InBoundsRun {
            global: global.wrapping_add((lo * size) as u64),
            first: ((lo - start) * size) as u32,
            len: ((hi - lo) * size) as u32,
        })
    }

    /// Calls `each` with the byte of the row and the span in shared memory for
    /// each part of bytes `first..first + len`; with a swizzle, one call per chunk.
    fn for_each_shared_span(&self, row: u32, run: InBoundsRun, each: &mut dyn FnMut(u32, Span)) {
        let at = self.row_start(row);
        let swizzle = self.map.decl.swizzle;
        let (mut byte, end) = (run.first, run.first + run.len);
        while byte < end {
            let next = match swizzle {
                Swizzle::None => end,
                _ => end.min((byte / 16 + 1) * 16),
            };
            let address = ResolvedAddress {
                byte: swizzle.apply(at.byte + byte),
                ..at
            };
            each(byte, Span::Shared(address, next - byte));
            byte = next;
        }
    }

    fn for_each_global_span(&self, each: &mut dyn FnMut(Span)) {
        join_spans(each, |each| {
            for run in (0..self.rows()).filter_map(|row| self.in_bounds(row)) {
                each(Span::Global(run.global, run.len));
            }
        });
    }

    /// Calls `each` with the bytes that the job will read.
    pub fn reads(&self, each: &mut dyn FnMut(Span)) {
        match self.direction {
            CopyDirection::Load => self.for_each_global_span(each),
            CopyDirection::Store(_) => join_spans(each, |each| {
                for row in 0..self.rows() {
                    match self.in_bounds(row) {
                        // The swizzle permutes chunks within a row.
                        Some(run) if run.len == self.row_bytes() => {
                            each(Span::Shared(self.row_start(row), run.len));
                        }
                        Some(run) => self.for_each_shared_span(row, run, &mut |_, span| each(span)),
                        None => {}
                    }
                }
            }),
        }
    }

    /// Calls `each` with the bytes that the job will write.
    pub fn writes(&self, each: &mut dyn FnMut(Span)) {
        match self.direction {
            CopyDirection::Load => each(Span::Shared(self.shared, self.map.decl.bytes())),
            CopyDirection::Store(_) => self.for_each_global_span(each),
        }
    }

    /// Returns whether the job reduces into the tensor.
    pub fn is_reduction(&self) -> bool {
        matches!(self.direction, CopyDirection::Store(Some(_)))
    }

    /// Returns the number of pieces.
    pub fn pieces(&self) -> u32 {
        self.rows().clamp(1, PIECES)
    }

    /// Completes one piece and returns its bytes.
    pub fn complete(&self, piece: u32, e: &mut impl Engine) -> Result<u32, Fault> {
        let rows = piece_range(self.rows(), piece, self.pieces());
        let bytes = rows.len() as u32 * self.row_bytes();
        match self.direction {
            CopyDirection::Load => self.load(rows, e)?,
            CopyDirection::Store(reduction) => self.store(rows, reduction, e)?,
        }
        Ok(bytes)
    }

    fn load(&self, rows: std::ops::Range<u32>, e: &mut impl Engine) -> Result<(), Fault> {
        let width = self.row_bytes() as usize;
        let mut tile_data = vec![0; rows.len() * width];
        let mut row_data = vec![0; width];
        for (row, out) in rows.clone().zip(tile_data.chunks_exact_mut(width)) {
            let Some(run) = self.in_bounds(row) else {
                continue;
            };
            row_data.fill(0);
            let (first, len) = (run.first as usize, run.len as usize);
            e.read(
                Span::Global(run.global, run.len),
                &mut row_data[first..first + len],
            )?;
            if self.map.decl.dtype == DType::Tf32 {
                for x in row_data.as_chunks_mut::<4>().0 {
                    *x = to_tf32(u32::from_le_bytes(*x)).to_le_bytes();
                }
            }
            self.for_each_swizzled_chunk(row, |from, to| {
                out[to..to + 16].copy_from_slice(&row_data[from..from + 16])
            });
        }
        e.write(
            Span::Shared(self.row_start(rows.start), tile_data.len() as u32),
            &tile_data,
        )
    }

    fn store(
        &self,
        rows: std::ops::Range<u32>,
        reduction: Option<Reduction>,
        e: &mut impl Engine,
    ) -> Result<(), Fault> {
        let dtype = self.map.decl.dtype;
        let width = self.row_bytes() as usize;
        let (mut raw, mut row_data) = (vec![0; width], vec![0; width]);
        for row in rows {
            let Some(run) = self.in_bounds(row) else {
                continue;
            };
            if run.len as usize == width {
                e.read(Span::Shared(self.row_start(row), run.len), &mut raw)?;
                self.for_each_swizzled_chunk(row, |to, from| {
                    row_data[to..to + 16].copy_from_slice(&raw[from..from + 16])
                });
            } else {
                let mut read = Ok(());
                self.for_each_shared_span(row, run, &mut |byte, span| {
                    let (at, len) = (byte as usize, span.len() as usize);
                    if read.is_ok() {
                        read = e.read(span, &mut row_data[at..at + len]);
                    }
                });
                read?;
            }
            let (first, len) = (run.first as usize, run.len as usize);
            let (to, data) = (
                Span::Global(run.global, run.len),
                &row_data[first..first + len],
            );
            match reduction {
                None => e.write(to, data)?,
                Some(op) => e.reduce(to, data, dtype.bytes(), &|old, new, out| {
                    op.combine(dtype, old, new, out);
                })?,
            }
        }
        Ok(())
    }

    /// Calls `f(byte in the row, byte in shared memory relative to the row)` for each 16-byte chunk.
    fn for_each_swizzled_chunk(&self, row: u32, mut f: impl FnMut(usize, usize)) {
        let at = self.row_start(row).byte;
        for byte in (0..self.row_bytes()).step_by(16) {
            let to = self.map.decl.swizzle.apply(at + byte) - at;
            f(byte as usize, to as usize);
        }
    }
}
