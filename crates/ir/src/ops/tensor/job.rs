//! A box of a tensor on its way.

use crate::job::{Done, Engine, PIECES, Span, joined, part};
use crate::layout::Swizzle;
use crate::machine::{Fault, SharedAt};
use crate::ops::bulk::Reduction;
use crate::tensor_map::{MapMode, TensorMapValue};
use crate::types::DType;

/// What a load through a tf32 map makes of an f32: rounded to nearest even,
/// one NaN for all. Stores leave the bits as they are. Both as an H200 does it.
pub(super) fn to_tf32(x: u32) -> u32 {
    match x & 0x7fff_ffff {
        0x7f80_0001.. => 0x7fff_e000,
        0x7f80_0000 => x,
        _ => (x + 0xfff + (x >> 13 & 1)) & !0x1fff,
    }
}

/// Which way a copy goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    Load,
    /// Combined with what is there, or in its place.
    Store(Option<Reduction>),
}

/// A box of a tensor between global and shared memory.
#[derive(Clone, PartialEq, Debug)]
pub struct TensorJob {
    /// How it tells that it is done.
    pub done: Done,
    pub(super) way: Way,
    pub(super) map: TensorMapValue,
    /// Where the box is, innermost dimension first.
    pub(super) coords: Vec<i32>,
    /// The filter tap of an im2col copy, innermost dimension first.
    pub(super) offsets: Vec<u16>,
    pub(super) shared: SharedAt,
}

/// The part of a row that lies inside the tensor: `len` bytes from byte `first` of the row on.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Inside {
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

    /// The first byte of a row in shared memory, before the swizzle.
    fn row_at(&self, row: u32) -> SharedAt {
        SharedAt {
            byte: self.shared.byte + row * self.row_bytes(),
            ..self.shared
        }
    }

    /// The outer coordinates of a row, from dimension 1 on.
    fn outer(&self, row: u32) -> [i64; 4] {
        let mut at = [0; 4];
        let decl = &self.map.decl;
        match &decl.mode {
            MapMode::Tiled | MapMode::Stepped { .. } => {
                let mut rest = row;
                for (i, &side) in decl.tile.iter().enumerate().skip(1) {
                    let step = i64::from(rest % side) * i64::from(decl.step(i));
                    at[i - 1] = i64::from(self.coords[i]) + step;
                    rest /= side;
                }
            }
            MapMode::Im2col { lower, .. } => {
                let mut carry = i64::from(row);
                for (i, &lo) in lower.iter().enumerate() {
                    let (start, step) = (self.coords[i + 1], i64::from(decl.step(i + 1)));
                    // The first line goes on from where the copy starts, the others from the corner.
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

    /// The part of a row inside the tensor, if any.
    fn inside(&self, row: u32) -> Option<Inside> {
        let map = &self.map;
        let mut global = map.base;
        for ((c, &extent), &stride) in self
            .outer(row)
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
        (lo < hi).then(|| Inside {
            global: global.wrapping_add((lo * size) as u64),
            first: ((lo - start) * size) as u32,
            len: ((hi - lo) * size) as u32,
        })
    }

    /// Where bytes `first..first + len` of a row lie in shared memory: calls
    /// `each` with the byte of the row and the run, chunk by chunk where the
    /// swizzle moves them.
    fn scattered(&self, row: u32, part: Inside, each: &mut dyn FnMut(u32, Span)) {
        let at = self.row_at(row);
        let swizzle = self.map.decl.swizzle;
        let (mut byte, end) = (part.first, part.first + part.len);
        while byte < end {
            let next = match swizzle {
                Swizzle::None => end,
                _ => end.min((byte / 16 + 1) * 16),
            };
            let place = SharedAt {
                byte: swizzle.apply(at.byte + byte),
                ..at
            };
            each(byte, Span::Shared(place, next - byte));
            byte = next;
        }
    }

    fn global_runs(&self, each: &mut dyn FnMut(Span)) {
        joined(each, |each| {
            for part in (0..self.rows()).filter_map(|row| self.inside(row)) {
                each(Span::Global(part.global, part.len));
            }
        });
    }

    /// The bytes it will read.
    pub fn reads(&self, each: &mut dyn FnMut(Span)) {
        match self.way {
            Way::Load => self.global_runs(each),
            Way::Store(_) => joined(each, |each| {
                for row in 0..self.rows() {
                    match self.inside(row) {
                        // The swizzle keeps a whole row in its place.
                        Some(part) if part.len == self.row_bytes() => {
                            each(Span::Shared(self.row_at(row), part.len));
                        }
                        Some(part) => self.scattered(row, part, &mut |_, run| each(run)),
                        None => {}
                    }
                }
            }),
        }
    }

    /// The bytes it will write.
    pub fn writes(&self, each: &mut dyn FnMut(Span)) {
        match self.way {
            Way::Load => each(Span::Shared(self.shared, self.map.decl.bytes())),
            Way::Store(_) => self.global_runs(each),
        }
    }

    /// Are what it writes sums with what is there?
    pub fn combines(&self) -> bool {
        matches!(self.way, Way::Store(Some(_)))
    }

    /// Pieces it may be done in.
    pub fn pieces(&self) -> u32 {
        self.rows().clamp(1, PIECES)
    }

    /// Copies one piece; gives its bytes.
    pub fn complete(&self, piece: u32, e: &mut impl Engine) -> Result<u32, Fault> {
        let rows = part(self.rows(), piece, self.pieces());
        let bytes = rows.len() as u32 * self.row_bytes();
        match self.way {
            Way::Load => self.load(rows, e)?,
            Way::Store(how) => self.store(rows, how, e)?,
        }
        Ok(bytes)
    }

    fn load(&self, rows: std::ops::Range<u32>, e: &mut impl Engine) -> Result<(), Fault> {
        let width = self.row_bytes() as usize;
        let mut all = vec![0; rows.len() * width];
        let mut line = vec![0; width];
        for (row, out) in rows.clone().zip(all.chunks_exact_mut(width)) {
            let Some(part) = self.inside(row) else {
                continue;
            };
            line.fill(0);
            let (first, len) = (part.first as usize, part.len as usize);
            e.read(
                Span::Global(part.global, part.len),
                &mut line[first..first + len],
            )?;
            if self.map.decl.dtype == DType::Tf32 {
                for x in line.as_chunks_mut::<4>().0 {
                    *x = to_tf32(u32::from_le_bytes(*x)).to_le_bytes();
                }
            }
            self.permute(row, |from, to| {
                out[to..to + 16].copy_from_slice(&line[from..from + 16])
            });
        }
        e.write(
            Span::Shared(self.row_at(rows.start), all.len() as u32),
            &all,
        )
    }

    fn store(
        &self,
        rows: std::ops::Range<u32>,
        how: Option<Reduction>,
        e: &mut impl Engine,
    ) -> Result<(), Fault> {
        let dtype = self.map.decl.dtype;
        let width = self.row_bytes() as usize;
        let (mut raw, mut line) = (vec![0; width], vec![0; width]);
        for row in rows {
            let Some(part) = self.inside(row) else {
                continue;
            };
            if part.len as usize == width {
                e.read(Span::Shared(self.row_at(row), part.len), &mut raw)?;
                self.permute(row, |to, from| {
                    line[to..to + 16].copy_from_slice(&raw[from..from + 16])
                });
            } else {
                let mut read = Ok(());
                self.scattered(row, part, &mut |byte, run| {
                    let (at, len) = (byte as usize, run.len() as usize);
                    if read.is_ok() {
                        read = e.read(run, &mut line[at..at + len]);
                    }
                });
                read?;
            }
            let (first, len) = (part.first as usize, part.len as usize);
            let (to, data) = (
                Span::Global(part.global, part.len),
                &line[first..first + len],
            );
            match how {
                None => e.write(to, data)?,
                Some(op) => e.reduce(to, data, dtype.bytes(), &|old, new, out| {
                    op.combine(dtype, old, new, out);
                })?,
            }
        }
        Ok(())
    }

    /// Calls `f(byte of the row, byte in shared memory from the row's start)` for each 16-byte chunk.
    fn permute(&self, row: u32, mut f: impl FnMut(usize, usize)) {
        let at = self.row_at(row).byte;
        for byte in (0..self.row_bytes()).step_by(16) {
            let to = self.map.decl.swizzle.apply(at + byte) - at;
            f(byte as usize, to as usize);
        }
    }
}
