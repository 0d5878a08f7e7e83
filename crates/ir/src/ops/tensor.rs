//! Copies of a box of a tensor, described by a tensor map.
//!
//! A box is a list of *rows*: runs of elements along the innermost dimension,
//! one after the other in shared memory, 16-byte chunks permuted by the
//! swizzle of the absolute shared byte. What lies outside the tensor reads as
//! zero, is not stored, and still counts as bytes.
//!
//! The rows of a tiled box step through its outer dimensions, the second
//! fastest. The rows of an im2col copy are pixels: they walk the window's
//! positions (W, then H, then D, then N) from the given one on, and each is
//! read at its position plus the offsets of the filter tap.

use super::bulk::{
    CacheHint, aligned, hint_asm, hint_name, legal_copy, multicast_asm, receivers, touch,
};
use super::{Exactness, Info, Instr};
use crate::job::{Done, Engine, Job, PIECES, Span, joined, part};
use crate::lanes::lanes_of;
use crate::layout::{Swizzle, TileLayout};
use crate::machine::{
    Access, Asm, Completion, Effects, Exec, Fault, FaultKind, Lanes, Machine, Memory, SharedAt,
    Step, Touch,
};
use crate::target::Target;
use crate::tensor_map::{MapMode, TensorMapValue};
use crate::types::Type;
use crate::value::{BarRef, Operand, ParamId, View};

/// Which way a copy goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Load,
    Store,
}

/// A box of a tensor between global and shared memory.
#[derive(Clone, PartialEq, Debug)]
pub struct TensorJob {
    /// How it tells that it is done.
    pub done: Done,
    way: Way,
    map: TensorMapValue,
    /// Where the box is, innermost dimension first.
    coords: Vec<i32>,
    /// The filter tap of an im2col copy, innermost dimension first.
    offsets: Vec<u16>,
    shared: SharedAt,
}

/// The part of a row that lies inside the tensor: `len` bytes from byte `first` of the row on.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Inside {
    global: u64,
    first: u32,
    len: u32,
}

impl TensorJob {
    /// Elements of one row.
    fn row_len(&self) -> u32 {
        match &self.map.decl.mode {
            MapMode::Tiled => self.map.decl.tile[0],
            MapMode::Im2col { channels, .. } => *channels,
        }
    }

    fn row_bytes(&self) -> u32 {
        self.row_len() * self.map.decl.dtype.bytes() as u32
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
        match &self.map.decl.mode {
            MapMode::Tiled => {
                let mut rest = row;
                for (i, &side) in self.map.decl.tile.iter().enumerate().skip(1) {
                    at[i - 1] = i64::from(self.coords[i]) + i64::from(rest % side);
                    rest /= side;
                }
            }
            MapMode::Im2col { lower, upper, .. } => {
                let mut carry = i64::from(row);
                for (i, (&lo, &hi)) in lower.iter().zip(upper).enumerate() {
                    let positions = positions(self.map.extents[i + 1], lo, hi);
                    let step = i64::from(self.coords[i + 1]) - i64::from(lo) + carry;
                    at[i] = i64::from(lo) + step % positions + i64::from(self.offsets[i]);
                    carry = step / positions;
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
        let hi = (start + i64::from(self.row_len())).min(map.extents[0] as i64);
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
            Way::Store => joined(each, |each| {
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
            Way::Store => self.global_runs(each),
        }
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
            Way::Store => self.store(rows, e)?,
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
            self.permute(row, |from, to| {
                out[to..to + 16].copy_from_slice(&line[from..from + 16])
            });
        }
        e.write(
            Span::Shared(self.row_at(rows.start), all.len() as u32),
            &all,
        )
    }

    fn store(&self, rows: std::ops::Range<u32>, e: &mut impl Engine) -> Result<(), Fault> {
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
            e.write(
                Span::Global(part.global, part.len),
                &line[first..first + len],
            )?;
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

/// Positions of an im2col window along one dimension.
fn positions(extent: u64, lower: i32, upper: i32) -> i64 {
    extent as i64 + i64::from(upper) - i64::from(lower)
}

/// What both directions check and compute before they issue.
struct Issue {
    map: TensorMapValue,
    coords: Vec<Lanes<i32>>,
    offsets: Vec<Lanes<u16>>,
}

impl Issue {
    fn new<M: Machine>(
        m: &mut M,
        map: ParamId,
        view: &View,
        coords: &[Operand],
        offsets: &[Operand],
    ) -> Result<Self, Fault> {
        let map = m.tensor_map(map)?;
        check_map(&map, coords.len(), offsets.len())?;
        check_view(&map, &m.layout(view), view)?;
        Ok(Self {
            map,
            coords: coords.iter().map(|&o| m.get(o)).collect(),
            offsets: offsets.iter().map(|&o| m.get(o)).collect(),
        })
    }

    /// One lane's copy.
    fn job(&self, lane: usize, way: Way, shared: SharedAt, done: Done) -> Result<TensorJob, Fault> {
        aligned(
            "the shared address of a tensor copy",
            shared.byte.into(),
            128,
        )?;
        let job = TensorJob {
            done,
            way,
            map: self.map.clone(),
            coords: self.coords.iter().map(|v| v[lane]).collect(),
            offsets: self.offsets.iter().map(|v| v[lane]).collect(),
            shared,
        };
        check_start(&job)?;
        Ok(job)
    }
}

/// Coordinates and offsets are as many as the map's dimensions and mode ask for.
fn check_map(map: &TensorMapValue, coords: usize, offsets: usize) -> Result<(), Fault> {
    let bad = |text: String| Err(Fault::new(FaultKind::TensorMap, text));
    let rank = map.decl.rank();
    if coords != rank {
        return bad(format!(
            "a tensor map of rank {rank} takes {rank} coordinates, not {coords}"
        ));
    }
    let taps = match &map.decl.mode {
        MapMode::Tiled => 0,
        MapMode::Im2col { .. } => rank - 2,
    };
    if offsets != taps {
        let mode = if taps == 0 { "tiled" } else { "im2col" };
        return bad(format!(
            "a copy by a {mode} map of rank {rank} takes {taps} filter offsets, not {offsets}"
        ));
    }
    Ok(())
}

/// The view is one run of bytes, as long as the box, with the map's swizzle.
fn check_view(map: &TensorMapValue, layout: &TileLayout, view: &View) -> Result<(), Fault> {
    let bad = |text: String| Err(Fault::new(FaultKind::TensorMap, text));
    let decl = &map.decl;
    if decl.swizzle != layout.swizzle {
        return bad(format!(
            "the map and the tile have one layout, not {} and {}",
            decl.swizzle, layout.swizzle
        ));
    }
    let bytes = view.rows * view.cols * layout.element;
    if decl.bytes() != bytes {
        return bad(format!(
            "a box is as large as the view it is copied to or from; it has {} bytes, the view {bytes}",
            decl.bytes()
        ));
    }
    let panel = layout.panel_cols();
    let panels = view.col.is_multiple_of(panel) && view.cols.is_multiple_of(panel);
    let one = view.cols == panel || view.rows == layout.rows;
    let line = layout.swizzle == Swizzle::None && view.rows == 1;
    if !(panels && one || line) {
        return bad(format!(
            "a box fills whole rows of one panel, or all rows of several ({panel} columns each); \
             this view has rows {}..{} of {} and columns {}..{}",
            view.row,
            view.row + view.rows,
            layout.rows,
            view.col,
            view.col + view.cols
        ));
    }
    let inner = match &decl.mode {
        MapMode::Tiled => decl.tile[0],
        MapMode::Im2col { channels, .. } => *channels,
    } * decl.dtype.bytes() as u32;
    match layout.swizzle.span() {
        Some(span) if inner != span => bad(format!(
            "the inner side of a swizzled box fills the span of {span} bytes, not {inner} of them"
        )),
        _ => Ok(()),
    }
}

/// An im2col copy starts at a position of the window.
fn check_start(job: &TensorJob) -> Result<(), Fault> {
    let MapMode::Im2col { lower, upper, .. } = &job.map.decl.mode else {
        return Ok(());
    };
    for (i, (&lo, &hi)) in lower.iter().zip(upper).enumerate() {
        let (at, extent) = (i64::from(job.coords[i + 1]), job.map.extents[i + 1]);
        let n = positions(extent, lo, hi);
        if n < 1 {
            return Err(Fault::new(
                FaultKind::TensorMap,
                format!(
                    "an im2col window has a position in an extent of {extent}; corners {lo} and {hi} leave none"
                ),
            ));
        }
        if !(0..n).contains(&(at - i64::from(lo))) {
            return Err(Fault::new(
                FaultKind::Operand,
                format!(
                    "an im2col copy starts at a position of its window: coordinate {} is {lo} to {}, not {at}",
                    i + 1,
                    i64::from(lo) + n - 1
                ),
            ));
        }
    }
    Ok(())
}

/// `{a, b}`, each of a type.
fn list(a: &mut dyn Asm, operands: &[Operand], ty: Type) -> String {
    let all: Vec<_> = operands.iter().map(|&o| a.operand(o, ty)).collect();
    format!("{{{}}}", all.join(", "))
}

/// Refuses a rank that no tensor map has.
fn legal_rank(name: &str, rank: usize) -> Result<(), String> {
    if (1..=5).contains(&rank) {
        return Ok(());
    }
    Err(format!("{name} takes 1 to 5 coordinates, not {rank}"))
}

/// Copies a box of a tensor to shared memory.
#[derive(Clone, PartialEq, Debug)]
pub struct TensorLoad {
    /// The tensor map.
    pub map: ParamId,
    /// Where to: as many bytes as the box, one after the other.
    pub dst: View,
    /// The box's first element (`i32`), innermost dimension first.
    pub coords: Vec<Operand>,
    /// The filter tap of an im2col copy (`u16`), innermost dimension first; none for a tiled one.
    pub offsets: Vec<Operand>,
    /// The barrier that counts the bytes, in the CTA that receives.
    pub bar: BarRef,
    /// The CTAs of the cluster that receive, each at the same place and with
    /// its own barrier (`u32`, bit r = rank r); `None`: the one named.
    pub multicast: Option<Operand>,
    /// How long the L2 shall keep the bytes.
    pub hint: Option<CacheHint>,
}

impl TensorLoad {
    fn mode(&self) -> &'static str {
        if self.offsets.is_empty() {
            "tile"
        } else {
            "im2col"
        }
    }
}

impl Instr for TensorLoad {
    const INFO: Info = Info {
        name: "tensor_load",
        ptx: "cp.async.bulk.tensor.{1d,2d,3d,4d,5d}.shared::cluster.global.{tile,im2col}.mbarrier::complete_tx::bytes{.multicast::cluster}{.L2::cache_hint}",
        doc: "copies a box of a tensor to shared memory, counted by an mbarrier; zeros outside the tensor",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        let (rank, mode, hint) = (self.coords.len(), self.mode(), hint_name(self.hint));
        format!("tensor_load.{rank}d.{mode}{hint}")
    }
    fn effects(&self, e: &mut dyn Effects) {
        let done = Completion::Bytes(self.bar);
        e.touch(&Touch {
            multicast: self.multicast,
            ..touch(Memory::View(self.dst), Access::Write, done)
        });
        e.touch(&touch(Memory::Tensor(self.map), Access::Read, done));
        self.coords.iter().for_each(|&o| e.arg(o, Type::I32));
        self.offsets.iter().for_each(|&o| e.arg(o, Type::U16));
    }
    fn asm(&self, a: &mut dyn Asm) {
        let (dst, map) = (a.view(&self.dst), a.param(self.map));
        let coords = list(a, &self.coords, Type::I32);
        let bar = a.barrier(&self.bar);
        let taps = match self.offsets.is_empty() {
            true => String::new(),
            false => format!(", {}", list(a, &self.offsets, Type::U16)),
        };
        let (many, mask) = multicast_asm(a, self.multicast);
        let (hint, policy) = hint_asm(a, self.hint);
        a.emit(format!(
            "cp.async.bulk.tensor.{}d.shared::cluster.global.{}.mbarrier::complete_tx::bytes{many}{hint} \
             [{dst}], [{map}, {coords}], [{bar}]{taps}{mask}{policy}",
            self.coords.len(),
            self.mode()
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let issue = Issue::new(m, self.map, &self.dst, &self.coords, &self.offsets)?;
        let mask = self.multicast.map(|o| m.get::<u32>(o));
        for lane in lanes_of(m.active()) {
            let dst = m.resolve_view(&self.dst, lane)?;
            let bar = m.resolve_bar(&self.bar, lane)?;
            for (dst, bar) in receivers(m, dst, bar, mask.map(|v| v[lane]))? {
                m.submit(Job::Tensor(issue.job(
                    lane,
                    Way::Load,
                    dst,
                    Done::Bytes(bar),
                )?))?;
            }
        }
        Ok(Step::Next)
    }
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_rank(Self::INFO.name, self.coords.len())?;
        if !self.offsets.is_empty() && self.offsets.len() + 2 != self.coords.len() {
            return Err(format!(
                "an im2col copy takes two offsets fewer than coordinates, not {} and {}",
                self.offsets.len(),
                self.coords.len()
            ));
        }
        legal_copy(target, self.multicast.is_some() || self.dst.peer.is_some())
    }
}

/// Copies a box of shared memory to a tensor, by a tiled map.
#[derive(Clone, PartialEq, Debug)]
pub struct TensorStore {
    /// The tensor map.
    pub map: ParamId,
    /// Where from: as many bytes as the box, one after the other.
    pub src: View,
    /// The box's first element (`i32`), innermost dimension first.
    pub coords: Vec<Operand>,
    /// How long the L2 shall keep the bytes.
    pub hint: Option<CacheHint>,
}

impl Instr for TensorStore {
    const INFO: Info = Info {
        name: "tensor_store",
        ptx: "cp.async.bulk.tensor.{1d,2d,3d,4d,5d}.global.shared::cta.tile.bulk_group{.L2::cache_hint}",
        doc: "copies a box of shared memory to a tensor, in the lane's bulk group; nothing outside the tensor",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!(
            "tensor_store.{}d{}",
            self.coords.len(),
            hint_name(self.hint)
        )
    }
    fn effects(&self, e: &mut dyn Effects) {
        let done = Completion::BulkGroup;
        e.touch(&touch(Memory::Tensor(self.map), Access::Write, done));
        self.coords.iter().for_each(|&o| e.arg(o, Type::I32));
        e.touch(&touch(Memory::View(self.src), Access::Read, done));
    }
    fn asm(&self, a: &mut dyn Asm) {
        let map = a.param(self.map);
        let coords = list(a, &self.coords, Type::I32);
        let src = a.view(&self.src);
        let (hint, policy) = hint_asm(a, self.hint);
        a.emit(format!(
            "cp.async.bulk.tensor.{}d.global.shared::cta.tile.bulk_group{hint} [{map}, {coords}], [{src}]{policy}",
            self.coords.len()
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let issue = Issue::new(m, self.map, &self.src, &self.coords, &[])?;
        for lane in lanes_of(m.active()) {
            let src = m.resolve_view(&self.src, lane)?;
            let done = Done::BulkGroup { lane: lane as u32 };
            m.submit(Job::Tensor(issue.job(lane, Way::Store, src, done)?))?;
        }
        Ok(Step::Next)
    }
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_rank(Self::INFO.name, self.coords.len())?;
        if self.src.peer.is_some() {
            return Err("tensor_store takes a tile of the CTA itself, not of a peer".into());
        }
        legal_copy(target, false)
    }
}

/// Brings a tensor map near, before its first copy.
#[derive(Clone, PartialEq, Debug)]
pub struct TensorPrefetch {
    /// The tensor map.
    pub map: ParamId,
}

impl Instr for TensorPrefetch {
    const INFO: Info = Info {
        name: "tensor_prefetch",
        ptx: "prefetch.tensormap",
        doc: "brings a tensor map near, before its first copy",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("tensor_prefetch.{}", self.map)
    }
    fn effects(&self, _: &mut dyn Effects) {}
    fn asm(&self, a: &mut dyn Asm) {
        let map = a.param(self.map);
        a.emit(format!("prefetch.tensormap [{map}]"));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        m.tensor_map(self.map)?;
        Ok(Step::Next)
    }
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_copy(target, false)
    }
}

#[cfg(test)]
mod tests;
