//! Warpgroup products: D (64×n, f32 registers) = A (64×16) · B (16×n) + D.
//!
//! On the CPU each warp submits its 16 rows as a job of its own. Operands in
//! shared memory are read as the descriptors say: K-major operands have the
//! 16 elements of a row side by side, MN-major ones have a row per k; 16-byte
//! chunks are permuted by the swizzle of the absolute shared byte.

use super::control::{acts, uniform, whole_warp};
use super::{Exactness, Info, Instr, Uniform};
use crate::job::{Engine, Job, Span, joined};
use crate::layout::{Descriptor, Major, Swizzle, TileLayout};
use crate::machine::{
    Access, Asm, Completion, Effects, Exec, Fault, FaultKind, Lanes, Machine, Mask, Memory, Proxy,
    SharedAt, Special, Step, Touch,
};
use crate::sync::Sync;
use crate::target::Target;
use crate::types::Type;
use crate::value::{Operand, RegId, View};
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};

/// The element type of A and B.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MmaType {
    /// bfloat16.
    Bf16,
    /// IEEE binary16.
    F16,
}

impl MmaType {
    /// The name in PTX and in text.
    pub const fn name(self) -> &'static str {
        match self {
            MmaType::Bf16 => "bf16",
            MmaType::F16 => "f16",
        }
    }

    /// The register type of two elements.
    pub const fn pair(self) -> Type {
        match self {
            MmaType::Bf16 => Type::Bf16x2,
            MmaType::F16 => Type::F16x2,
        }
    }

    fn widen(self, bits: &[u16], out: &mut [f32]) {
        match self {
            MmaType::Bf16 => {
                for (x, &b) in out.iter_mut().zip(bits) {
                    *x = f32::from_bits(u32::from(b) << 16);
                }
            }
            MmaType::F16 => bits
                .reinterpret_cast::<half::f16>()
                .convert_to_f32_slice(out),
        }
    }
}

/// Where A is.
#[derive(Clone, PartialEq, Debug)]
pub enum MatrixA {
    /// In shared memory: 64×16, or 16×64 if M-major.
    Shared(View, Major),
    /// In registers: four packed pairs per lane, as `mma` has them.
    Regs(Vec<RegId>),
}

/// K of one instruction, in 16-bit elements.
const K: usize = 16;

/// Rows of one warp.
const ROWS: usize = 16;

/// Columns of one block: what four registers of each lane hold, and one 16-byte chunk.
const COLS: usize = 8;

/// A matrix operand in shared memory, resolved.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Tile {
    /// Its first byte, before the swizzle.
    at: SharedAt,
    layout: TileLayout,
    major: Major,
}

/// Neighbouring 16-byte chunks of one span.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Strip {
    /// The first byte, before the swizzle.
    byte: u32,
    chunks: u32,
    /// K-major: the row (m or n). MN-major: k.
    row: usize,
    /// MN-major: the first of its columns (m or n).
    col: usize,
}

impl Tile {
    fn new<M: Machine>(m: &mut M, v: &View, major: Major) -> Result<Self, Fault> {
        uniform::<u32, M>(m, v.stage, "the stage of a wgmma operand")?;
        let tile = Self {
            at: m.resolve_view(v, 0)?,
            layout: m.layout(v),
            major,
        };
        let bad = |text: String| Err(Fault::new(FaultKind::Operand, text));
        let (swizzle, element) = (tile.layout.swizzle, tile.layout.element);
        if swizzle == Swizzle::None || element != 2 {
            return bad(format!(
                "a wgmma operand is a swizzled tile of 2-byte elements, not {swizzle} of {element}-byte ones"
            ));
        }
        let row = tile.at.byte % swizzle.align() / tile.layout.span();
        if row != 0 {
            return bad(format!(
                "a wgmma operand starts at the first row of a swizzle pattern, not at row {row} of it"
            ));
        }
        Ok(tile)
    }

    /// The strips that hold rows or columns `from..from + len` (m or n) of all 16 k.
    fn strips(self, from: usize, len: usize) -> impl Iterator<Item = Strip> {
        let span = self.layout.span();
        let start = self.at.byte;
        let panel = (span / 2) as usize;
        let (major, panel_bytes) = (self.major, self.layout.panel_bytes());
        let count = match major {
            Major::K => len,
            Major::Mn => (from + len).div_ceil(panel).saturating_sub(from / panel) * K,
        };
        (0..count).map(move |i| match major {
            Major::K => Strip {
                byte: start + (from + i) as u32 * span,
                chunks: 2,
                row: i,
                col: 0,
            },
            Major::Mn => {
                let p = from / panel + i / K;
                let first = from.max(p * panel);
                let last = (from + len).min((p + 1) * panel);
                Strip {
                    byte: start
                        + p as u32 * panel_bytes
                        + (i % K) as u32 * span
                        + 2 * (first - p * panel) as u32,
                    chunks: (last - first) as u32 / 8,
                    row: i % K,
                    col: first - from,
                }
            }
        })
    }

    /// The run of bytes that a strip is, if its chunks fill one: an aligned
    /// power of two is permuted within itself or moved as a whole.
    fn block(&self, s: Strip) -> Option<u32> {
        let bytes = 16 * s.chunks;
        (bytes.is_power_of_two() && s.byte.is_multiple_of(bytes))
            .then(|| self.chunk(s, 0) & !(bytes - 1))
    }

    /// The byte of chunk `j` of a strip.
    fn chunk(&self, s: Strip, j: u32) -> u32 {
        self.layout.swizzle.apply(s.byte + 16 * j)
    }

    fn span(&self, byte: u32, len: u32) -> Span {
        Span::Shared(SharedAt { byte, ..self.at }, len)
    }

    fn reads(&self, from: usize, len: usize, each: &mut dyn FnMut(Span)) {
        joined(each, |each| {
            for s in self.strips(from, len) {
                match self.block(s) {
                    Some(byte) => each(self.span(byte, 16 * s.chunks)),
                    None => (0..s.chunks).for_each(|j| each(self.span(self.chunk(s, j), 16))),
                }
            }
        });
    }

    /// Reads the strips: calls `each` with the strip, the chunk's number in it, and its elements.
    fn read(
        &self,
        from: usize,
        len: usize,
        e: &mut impl Engine,
        mut each: impl FnMut(Strip, usize, &[u8]),
    ) -> Result<(), Fault> {
        let mut raw = [0u8; 128];
        for s in self.strips(from, len) {
            let bytes = 16 * s.chunks as usize;
            let block = self.block(s);
            match block {
                Some(byte) => e.read(self.span(byte, bytes as u32), &mut raw[..bytes])?,
                None => {
                    for j in 0..s.chunks {
                        let at = 16 * j as usize;
                        e.read(self.span(self.chunk(s, j), 16), &mut raw[at..at + 16])?;
                    }
                }
            }
            for j in 0..s.chunks {
                let at = block.map_or(16 * j, |byte| self.chunk(s, j) - byte) as usize;
                each(s, j as usize, &raw[at..at + 16]);
            }
        }
        Ok(())
    }
}

/// The elements of a 16-byte chunk.
fn elements(chunk: &[u8]) -> impl Iterator<Item = u16> {
    chunk
        .chunks_exact(2)
        .map(|b| u16::from_le_bytes([b[0], b[1]]))
}

/// A's part of a job.
#[derive(Clone, PartialEq, Debug)]
enum JobA {
    Shared(Tile),
    Regs(Vec<RegId>),
}

/// One warp's 16 rows of a warpgroup product.
#[derive(Clone, PartialEq, Debug)]
pub struct WgmmaJob {
    ty: MmaType,
    n: usize,
    d: Vec<RegId>,
    a: JobA,
    b: Tile,
    /// Adds to D; otherwise D is not read.
    accumulate: bool,
    /// The warp's first row of the 64.
    row: usize,
}

impl WgmmaJob {
    /// The shared bytes it will read.
    pub fn reads(&self, each: &mut dyn FnMut(Span)) {
        if let JobA::Shared(a) = &self.a {
            a.reads(self.row, ROWS, each);
        }
        self.b.reads(0, self.n, each);
    }

    /// The registers of the warp it will read and write: accumulators, then those of A.
    pub fn registers(&self, each: &mut dyn FnMut(RegId)) {
        self.d.iter().for_each(|&r| each(r));
        if let JobA::Regs(a) = &self.a {
            a.iter().for_each(|&r| each(r));
        }
    }

    /// Floating-point operations of the warp's part.
    pub fn flops(&self) -> u64 {
        2 * (ROWS * K * self.n) as u64
    }

    /// Multiplies.
    pub fn complete(&self, e: &mut impl Engine) -> Result<(), Fault> {
        let a = self.read_a(e)?;
        let b = self.read_b(e)?;
        for (block, regs) in b
            .as_chunks::<{ K * COLS }>()
            .0
            .iter()
            .zip(self.d.chunks_exact(4))
        {
            let mut d = [[0f32; COLS]; ROWS];
            if self.accumulate {
                for (i, &r) in regs.iter().enumerate() {
                    let v = e.register(r);
                    for (lane, &x) in v.iter().enumerate() {
                        let (row, col) = at(lane, i);
                        d[row][col] = f32::from_bits(x);
                    }
                }
            }
            multiply(&a, block, &mut d);
            for (i, &r) in regs.iter().enumerate() {
                let v: Lanes<u32> = std::array::from_fn(|lane| {
                    let (row, col) = at(lane, i);
                    d[row][col].to_bits()
                });
                e.set_register(r, &v);
            }
        }
        Ok(())
    }

    /// A's 16 rows, row by row.
    fn read_a(&self, e: &mut impl Engine) -> Result<[f32; ROWS * K], Fault> {
        let mut bits = [0u16; ROWS * K];
        match &self.a {
            JobA::Shared(a) => a.read(self.row, ROWS, e, |s, j, chunk| {
                for (i, x) in elements(chunk).enumerate() {
                    let (row, k) = match a.major {
                        Major::K => (s.row, 8 * j + i),
                        Major::Mn => (s.col + 8 * j + i, s.row),
                    };
                    bits[row * K + k] = x;
                }
            })?,
            // Register i: rows +8 for odd i, k +8 for the second two.
            JobA::Regs(regs) => {
                for (i, &r) in regs.iter().enumerate() {
                    for (lane, pair) in e.register(r).into_iter().enumerate() {
                        let (row, k) = (lane / 4 + 8 * (i % 2), lane % 4 * 2 + 8 * (i / 2));
                        bits[row * K + k] = pair as u16;
                        bits[row * K + k + 1] = (pair >> 16) as u16;
                    }
                }
            }
        }
        let mut wide = [0f32; ROWS * K];
        self.ty.widen(&bits, &mut wide);
        Ok(wide)
    }

    /// B in blocks of eight columns, k by k.
    fn read_b(&self, e: &mut impl Engine) -> Result<Vec<f32>, Fault> {
        let mut bits = vec![0u16; K * self.n];
        self.b
            .read(0, self.n, e, |s, j, chunk| match self.b.major {
                Major::K => {
                    let block = s.row / COLS * K * COLS + s.row % COLS;
                    for (i, x) in elements(chunk).enumerate() {
                        bits[block + (8 * j + i) * COLS] = x;
                    }
                }
                Major::Mn => {
                    let block = (s.col / COLS + j) * K * COLS + s.row * COLS;
                    for (i, x) in elements(chunk).enumerate() {
                        bits[block + i] = x;
                    }
                }
            })?;
        let mut wide = vec![0f32; K * self.n];
        self.ty.widen(&bits, &mut wide);
        Ok(wide)
    }
}

/// Row and column within a block of what register `i` of its four holds.
fn at(lane: usize, i: usize) -> (usize, usize) {
    let (row, col) = crate::layout::accumulator_at(0, lane as u32, i as u32);
    (row as usize, col as usize)
}

/// `d += a · b` for one block, k ascending. Products are exact; the eight columns go side by side.
fn multiply(a: &[f32; ROWS * K], b: &[f32; K * COLS], d: &mut [[f32; COLS]; ROWS]) {
    for (d, a) in d.iter_mut().zip(a.as_chunks::<K>().0) {
        let mut sum = *d;
        for (x, b) in a.iter().zip(b.as_chunks::<COLS>().0) {
            for c in 0..COLS {
                sum[c] += x * b[c];
            }
        }
        *d = sum;
    }
}

/// D = A · B, or D += A · B, by a warpgroup: m64nNk16 with f32 sums.
#[derive(Clone, PartialEq, Debug)]
pub struct Wgmma {
    /// Element type of A and B.
    pub ty: MmaType,
    /// Columns: a multiple of 8, up to 256.
    pub n: u32,
    /// Accumulators (`f32`, n/2 per lane), as [`accumulator_at`](crate::accumulator_at) lays them out.
    pub d: Vec<RegId>,
    /// A, 64×16.
    pub a: MatrixA,
    /// B in shared memory: n×16, or 16×n if N-major.
    pub b: View,
    /// Which dimension of B is contiguous.
    pub b_major: Major,
    /// Whether D is added to (`pred`, the same in every lane); otherwise it is overwritten.
    pub scale_d: Operand,
}

impl Wgmma {
    fn touch(memory: Memory, access: Access) -> Touch {
        Touch {
            memory,
            access,
            proxy: Proxy::Wgmma,
            completion: Completion::WgmmaGroup,
            multicast: None,
        }
    }
}

/// 1 for an operand whose K is not contiguous.
fn transposed(major: Major) -> u32 {
    u32::from(major == Major::Mn)
}

impl Instr for Wgmma {
    const INFO: Info = Info {
        name: "wgmma",
        ptx: "wgmma.mma_async.sync.aligned.m64n{8..256}k16.f32.{bf16.bf16,f16.f16}",
        doc: "multiplies 64×16 by 16×n and adds to f32 accumulators, asynchronously",
        exactness: Exactness::Within(
            "f32 sums of exact products; the hardware sums in another order and truncates",
        ),
    };
    fn name(&self) -> String {
        let letter = |major| if major == Major::K { "k" } else { "mn" };
        let a = match &self.a {
            MatrixA::Shared(_, major) => letter(*major),
            MatrixA::Regs(_) => "regs",
        };
        format!(
            "wgmma.m64n{}k16.{}.{a}.{}",
            self.n,
            self.ty.name(),
            letter(self.b_major)
        )
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.whole_warpgroup();
        let access = match self.scale_d.as_imm() {
            Some(0) => Access::Write,
            _ => Access::Atomic,
        };
        for &r in &self.d {
            e.def(r);
            e.touch(&Self::touch(Memory::Register(r), access));
        }
        match &self.a {
            MatrixA::Shared(v, _) => e.touch(&Self::touch(Memory::View(*v), Access::Read)),
            MatrixA::Regs(regs) => {
                for &r in regs {
                    e.arg(r.into(), self.ty.pair());
                    e.touch(&Self::touch(Memory::Register(r), Access::Read));
                }
            }
        }
        e.touch(&Self::touch(Memory::View(self.b), Access::Read));
        e.arg(self.scale_d, Type::Pred);
    }
    fn uniform(&self, _: Uniform) -> Uniform {
        Uniform::Lane
    }
    fn asm(&self, asm: &mut dyn Asm) {
        let d: Vec<_> = self.d.iter().map(|&r| asm.reg(r)).collect();
        let (a, trans_a) = match &self.a {
            MatrixA::Shared(v, major) => (
                asm.descriptor(v, Descriptor { major: *major }),
                format!("{}, ", transposed(*major)),
            ),
            MatrixA::Regs(regs) => {
                let regs: Vec<_> = regs.iter().map(|&r| asm.reg(r)).collect();
                (format!("{{{}}}", regs.join(", ")), String::new())
            }
        };
        let b = asm.descriptor(
            &self.b,
            Descriptor {
                major: self.b_major,
            },
        );
        let scale = match self.scale_d {
            Operand::Reg(p) => asm.reg(p),
            Operand::Imm(x) => u32::from(x != 0).to_string(),
        };
        asm.emit(format!(
            "wgmma.mma_async.sync.aligned.m64n{}k16.f32.{t}.{t} {{{}}}, {a}, {b}, {scale}, 1, 1, {trans_a}{}",
            self.n,
            d.join(", "),
            transposed(self.b_major),
            t = self.ty.name(),
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        whole_warp(m, Self::INFO.name)?;
        let accumulate = match m.pred(self.scale_d) {
            0 => false,
            Mask::MAX => true,
            some => {
                return Err(Fault::new(
                    FaultKind::Convergence,
                    format!(
                        "scale_d of a wgmma is the same in every lane, not set in lanes {some:#010x} alone"
                    ),
                ));
            }
        };
        let a = match &self.a {
            MatrixA::Shared(v, major) => JobA::Shared(Tile::new(m, v, *major)?),
            MatrixA::Regs(regs) => JobA::Regs(regs.clone()),
        };
        let b = Tile::new(m, &self.b, self.b_major)?;
        let warp = m.special(Special::WarpId)[0] as usize % 4;
        m.submit(Job::Wgmma(WgmmaJob {
            ty: self.ty,
            n: self.n as usize,
            d: self.d.clone(),
            a,
            b,
            accumulate,
            row: ROWS * warp,
        }))?;
        Ok(Step::Next)
    }
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_wgmma(target)?;
        let n = self.n;
        if !n.is_multiple_of(8) || !(8..=256).contains(&n) {
            return Err(format!(
                "n of a wgmma is a multiple of 8 from 8 to 256, not {n}"
            ));
        }
        if self.d.len() as u32 != n / 2 {
            return Err(format!(
                "a wgmma of n = {n} has {} accumulators per lane, not {}",
                n / 2,
                self.d.len()
            ));
        }
        match &self.a {
            MatrixA::Shared(v, major) => legal_view("A", v, *major, 64)?,
            MatrixA::Regs(regs) if regs.len() != 4 => {
                return Err(format!(
                    "A of a wgmma is 4 registers per lane, not {}",
                    regs.len()
                ));
            }
            MatrixA::Regs(_) => {}
        }
        legal_view("B", &self.b, self.b_major, n)
    }
}

/// Refuses a target without warpgroup products.
fn legal_wgmma(target: &Target) -> Result<(), String> {
    match target.features.wgmma {
        true => Ok(()),
        false => Err(format!("{} has no wgmma", target.name)),
    }
}

/// Refuses a view that is not `mn` by 16, or lies in a peer.
fn legal_view(which: &str, v: &View, major: Major, mn: u32) -> Result<(), String> {
    let (rows, cols) = match major {
        Major::K => (mn, K as u32),
        Major::Mn => (K as u32, mn),
    };
    if (v.rows, v.cols) != (rows, cols) {
        return Err(format!(
            "{which} of this wgmma is a view of {rows}×{cols}, not {}×{}",
            v.rows, v.cols
        ));
    }
    match v.peer {
        None => Ok(()),
        Some(_) => Err(format!(
            "{which} of a wgmma is a tile of the CTA itself, not of a peer"
        )),
    }
}

/// Orders register accesses before the warpgroup's next products.
#[derive(Clone, PartialEq, Debug)]
pub struct WgmmaFence;

impl WgmmaFence {
    fn act(&self) -> Sync {
        Sync::WgmmaFence
    }
}

impl Instr for WgmmaFence {
    const INFO: Info = Info {
        name: "wgmma_fence",
        ptx: "wgmma.fence.sync.aligned",
        doc: "orders register accesses before the warpgroup's next products",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        "wgmma_fence".into()
    }
    fn asm(&self, a: &mut dyn Asm) {
        a.emit("wgmma.fence.sync.aligned".into());
    }
    acts!(whole_warpgroup);
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_wgmma(target)
    }
}

/// Closes the warpgroup's products into one group.
#[derive(Clone, PartialEq, Debug)]
pub struct WgmmaCommit;

impl WgmmaCommit {
    fn act(&self) -> Sync {
        Sync::WgmmaCommit
    }
}

impl Instr for WgmmaCommit {
    const INFO: Info = Info {
        name: "wgmma_commit",
        ptx: "wgmma.commit_group.sync.aligned",
        doc: "closes the warpgroup's products into one group",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        "wgmma_commit".into()
    }
    fn asm(&self, a: &mut dyn Asm) {
        a.emit("wgmma.commit_group.sync.aligned".into());
    }
    acts!(whole_warpgroup);
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_wgmma(target)
    }
}

/// Waits for the warpgroup's products.
#[derive(Clone, PartialEq, Debug)]
pub struct WgmmaWait {
    /// Groups that may stay open, the youngest ones.
    pub pending: u32,
}

impl WgmmaWait {
    fn act(&self) -> Sync {
        Sync::WgmmaWait {
            pending: self.pending,
        }
    }
}

impl Instr for WgmmaWait {
    const INFO: Info = Info {
        name: "wgmma_wait",
        ptx: "wgmma.wait_group.sync.aligned",
        doc: "waits until the warpgroup has at most some groups of products open",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        "wgmma_wait".into()
    }
    fn asm(&self, a: &mut dyn Asm) {
        a.emit(format!("wgmma.wait_group.sync.aligned {}", self.pending));
    }
    acts!(whole_warpgroup);
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_wgmma(target)
    }
}

#[cfg(test)]
mod tests;
