//! What every form is made of: tensors, the copies of a stage, sums, and the epilogue.

use super::config::{Area, Cluster, Config, Form};
use super::problem::{Class, Layout, MOST, Sums};
use super::walk::{MOST_TILES, Seat, Walk};
use crate::weights::Weights;
use half::{bf16, f16};
use std::ops::Range as Rows_;
use warpline_ir::build::*;
use warpline_ir::ops::policy::CacheHint;
use warpline_ir::{Bf16x2, DType, Element, F16x2, TensorMapDecl};

/// A type that C can have.
pub(super) trait Out: Stored {
    /// Two neighbours in memory, in as few registers as they take.
    type Pair: Copy + Carry;
    /// Reads an element and the next one.
    fn pair(from: Global<Self>, first: Reg<u32>) -> Self::Pair;
    /// As numbers to compute with.
    fn both(pair: Self::Pair) -> [Reg<f32>; 2];
    /// As a number to compute with.
    fn widen(x: Reg<Self::Reg>) -> Reg<f32>;
    /// Sends a tile whose rows are columns of C.
    fn transposed(line: &Line<Self>, outbox: Outbox<Self>, tile: &Frag, at: At);
}

macro_rules! half_out {
    ($($t:ty, $pair:ty;)*) => {$(
        impl Out for $t {
            type Pair = Reg<$pair>;
            #[track_caller]
            fn pair(from: Global<$t>, first: Reg<u32>) -> Reg<$pair> {
                let [pair] = from.load_as(first);
                pair
            }
            #[track_caller]
            fn both(pair: Reg<$pair>) -> [Reg<f32>; 2] {
                pair.widen()
            }
            #[track_caller]
            fn widen(x: Reg<$t>) -> Reg<f32> {
                x.cast()
            }
            #[track_caller]
            fn transposed(line: &Line<$t>, outbox: Outbox<$t>, tile: &Frag, at: At) {
                match at.batch {
                    None => outbox.send_transposed(tile, line.c, [at.row, at.col]),
                    Some(z) => outbox.send_transposed(tile, line.c, [at.row, at.col, z]),
                }
            }
        }
    )*};
}
half_out! {
    bf16, Bf16x2;
    f16, F16x2;
}

impl Out for f32 {
    type Pair = [Reg<f32>; 2];
    #[track_caller]
    fn pair(from: Global<f32>, first: Reg<u32>) -> [Reg<f32>; 2] {
        from.load_vec(first)
    }
    fn both(pair: [Reg<f32>; 2]) -> [Reg<f32>; 2] {
        pair
    }
    fn widen(x: Reg<f32>) -> Reg<f32> {
        x
    }
    /// Element by element: `stmatrix` turns 16-bit elements only.
    #[track_caller]
    fn transposed(line: &Line<f32>, _: Outbox<f32>, tile: &Frag, at: At) {
        let Some(c) = line.elements else { return };
        tile.each_pair(|cell, pair| {
            let n = at.row + cell.row;
            for (i, x) in (0..).zip(pair) {
                let m = at.col + cell.col + i;
                if_(n.lt(line.n) & m.lt(line.m), || {
                    c.row(m, at.batch).store(n, x);
                });
            }
        });
    }
}

/// The steps of K that a consumer takes, and when.
#[derive(Clone, Copy)]
pub(super) enum Taken {
    /// As they come.
    Freely(Range<u32>),
    /// In its turn.
    InTurn(Turn, Range<u32>),
    /// So many: the last [`LAST`] in its turn.
    LastInTurn(Turn, Reg<u32>),
}

/// Steps at the end of a tile that consumers take one after the other: what
/// the first one sends hides behind the products of the next.
pub(super) const LAST: u32 = 3;

impl Taken {
    /// Takes them: `take` runs for all of them, or for one part after the other.
    #[track_caller]
    fn each(self, take: impl Fn(Range<u32>)) {
        let Taken::LastInTurn(turn, depth) = self else {
            return self.whole(take);
        };
        if_else(
            depth.lt(LAST),
            || self.whole(&take),
            || {
                take(steps(depth - LAST));
                turn.hold(|| take(steps(LAST)));
            },
        );
    }

    /// As [`each`](Self::each), all in one part.
    #[track_caller]
    fn whole<R>(self, take: impl FnOnce(Range<u32>) -> R) -> R {
        match self {
            Taken::Freely(all) => take(all),
            Taken::InTurn(turn, all) => turn.hold(|| take(all)),
            Taken::LastInTurn(turn, depth) => turn.hold(|| take(steps(depth))),
        }
    }
}

/// The rings that bring A and B.
pub(super) type Stage<A, B> = Ring<(Tile<A>, Tile<B>)>;

/// Where a tile lies: the first row and column of the tensor cores' tile, and whose product.
#[derive(Clone, Copy)]
pub(super) struct At {
    pub(super) row: Reg<u32>,
    pub(super) col: Reg<u32>,
    pub(super) batch: Option<Reg<u32>>,
}

impl At {
    /// So many rows and columns further.
    #[track_caller]
    pub(super) fn plus(self, rows: u32, cols: u32) -> Self {
        let add = |x: Reg<u32>, by: u32| if by == 0 { x } else { x + by };
        Self {
            row: add(self.row, rows),
            col: add(self.col, cols),
            ..self
        }
    }
}

/// The sums of a tile, or of a part of it: of one product, or of the gate's and the other's.
pub(super) type Totals = Vec<Frag>;

/// What multiplies the sums of each product.
pub(super) type Factors = [Option<Reg<f32>>; 2];

/// What is added to the sums of a tile, or of a part of it.
pub(super) enum Bias<T: Out> {
    /// Nothing.
    None,
    /// The numbers of its columns; of a tile those of its first part.
    Cols(Vec<T::Pair>),
    /// Those of its rows, where these are columns of C.
    Rows(Rows),
}

/// A matrix that is addressed by elements.
#[derive(Clone, Copy)]
struct Matrix<T> {
    first: Global<T>,
    /// Elements from one row to the next.
    stride: Reg<u32>,
    /// Elements from one matrix of a batch to the next.
    step: Option<Reg<u64>>,
}

impl<T: Element> Matrix<T> {
    /// Declares matrices of `m` × `n`, as many as `batch`.
    fn declare(k: Builder, name: &str, [m, n]: [Reg<u32>; 2], batch: Option<Reg<u32>>) -> Self {
        let first = k.pointer(name);
        let stride = k.param::<u32>(&format!("{name}_stride")).at_least(1);
        let step = batch.map(|_| k.param::<u64>(&format!("{name}_step")));
        let last = (extent(m) - 1u32) * stride + n;
        Self {
            first: first.elements(match step.zip(batch) {
                None => last,
                Some((step, batch)) => last + (extent(batch) - 1u32) * step,
            }),
            stride,
            step,
        }
    }

    /// A row.
    #[track_caller]
    fn row(self, row: Reg<u32>, batch: Option<Reg<u32>>) -> Global<T> {
        let start = row.mul_wide(self.stride);
        self.first.offset(match self.step.zip(batch) {
            None => start,
            Some((step, z)) => z.cast::<u64>() * step + start,
        })
    }
}

/// The parameters of a product, and how it is solved.
pub(super) struct Line<T> {
    pub(super) class: Class,
    pub(super) config: Config,
    /// The staging tiles of one consumer: columns of a part, and stages.
    pub(super) staging: [u32; 2],
    pub(super) m: Reg<u32>,
    pub(super) n: Reg<u32>,
    /// Steps of K.
    pub(super) depth: Reg<u32>,
    a: Map,
    /// B, or gate and up.
    b: Vec<Map>,
    pub(super) c: Map,
    pub(super) walk: Walk,
    /// C itself, and the elements of a row, where it is not copied by tiles.
    elements: Option<Matrix<T>>,
    scale: Option<Reg<f32>>,
    /// Those of A and of each factor.
    scales: Vec<Global<f32>>,
    bias: Option<Global<T>>,
    residual: Option<Matrix<T>>,
}

/// The tensor maps of A, B and C, in this order.
fn maps(class: &Class, c: &Config, width: u32) -> [TensorMapDecl; 3] {
    let (a, b) = (class.factor.dtype(), class.factor.other());
    let map = |dtype: DType, cols: u32, rows: u32| match class.batched {
        false => TensorMapDecl::tiled(dtype, [cols, rows]),
        true => TensorMapDecl::tiled(dtype, [cols, rows, 1]),
    };
    // A copy brings a row's 128 bytes, or all of the stage where that is less.
    let inner = inner(class, c);
    // What is shared is brought in equal parts.
    let mut parts = match c.cluster {
        Cluster::One => [1, 1],
        Cluster::Rows => [1, 2],
        Cluster::Cols => [2, 1],
    };
    if c.form == Form::DoubleBuffer {
        parts = [c.consumers; 2];
    }
    let out = class.out.dtype();
    let rows = c.tile_n / c.blocks() / parts[1];
    [
        map(a, inner, c.tile_m / parts[0]),
        match (class.layout, class.up) {
            (_, Some(Weights::Interleaved)) => TensorMapDecl::tiled(b, [inner, 8, rows / 8]),
            (Layout::Nk, None) => map(b, inner, c.tile_n / parts[1]),
            (Layout::Nk, _) => map(b, inner, rows),
            (Layout::Kn, _) => map(b, 64, c.tile_k),
        },
        match c.swap {
            false => map(out, width, c.rows()),
            true => map(out, c.rows().min(128 / out.bytes() as u32), c.tile_m),
        },
    ]
}

/// Elements of K that one copy brings.
fn inner(class: &Class, c: &Config) -> u32 {
    c.tile_k.min(128 / class.factor.dtype().bytes() as u32)
}

impl<T: Out> Line<T> {
    /// Declares the parameters, in the order in which a launch gives them.
    pub(super) fn declare(k: Builder, class: &Class, c: &Config) -> Self {
        // CTAs that share what they load, or split a sum: never both.
        let ctas = c.cluster.size() * c.split_k;
        if ctas > 1 {
            k.cluster(ctas, 1, 1);
        }
        let [m, n] = ["m", "n"].map(|name| k.param::<u32>(name).at_least(1).at_most(MOST));
        let elements_of_k = k.param::<u32>("k").at_most(MOST);
        let depth = elements_of_k.div_ceil(c.tile_k);
        let staging = c.outbox(class, &k.target());
        let [a, b, out] = maps(class, c, staging[0]);
        let a = k.tensor_map("a", a);
        let b = match class.up {
            None => vec![k.tensor_map("b", b)],
            Some(_) => ["gate", "up"]
                .map(|name| k.tensor_map(name, b.clone()))
                .into(),
        };
        let out = k.tensor_map("c", out);
        let walk = Walk::declare(k, class, c);
        let e = class.epilogue;
        let one = |name: &str| k.pointer(name).elements(1u32);
        if c.stream_k {
            // The k-tiles of all tiles are counted through.
            let steps = walk.extent() * (extent(elements_of_k) + (c.tile_k - 1));
            k.limit(steps, MOST_TILES * u64::from(c.tile_k));
        }
        let matrix = |name: &str| Matrix::declare(k, name, [m, n], walk.batch);
        Self {
            class: *class,
            config: *c,
            staging,
            m,
            n,
            depth,
            a,
            b,
            c: out,
            walk,
            elements: by_elements(class, c).then(|| matrix("elements")),
            scale: e.scale.then(|| k.param("scale")),
            scales: match (e.scales, class.up) {
                (false, _) => Vec::new(),
                (_, None) => ["scale_a", "scale_b"].map(one).into(),
                (_, Some(_)) => ["scale_a", "scale_gate", "scale_up"].map(one).into(),
            },
            bias: e.bias.then(|| k.pointer("bias").elements(n)),
            residual: e.residual.then(|| matrix("residual")),
        }
    }

    /// The ring that brings A and B.
    pub(super) fn ring<A: Element, B: Element>(&self, k: Builder) -> Stage<A, B> {
        let c = &self.config;
        k.ring("ab", c.stages, |s| {
            let b = match self.class.layout {
                Layout::Nk => s.tile(self.class.factors() * c.tile_n, c.tile_k),
                Layout::Kn => s.tile(c.tile_k, c.tile_n),
            };
            (s.tile(c.tile_m, c.tile_k), b)
        })
    }

    /// The staging tile of a consumer.
    pub(super) fn outbox(&self, k: Builder, name: &str) -> Outbox<T> {
        let c = &self.config;
        let [width, stages] = self.staging;
        match c.swap {
            false => k.outbox(name, stages, c.rows(), width),
            true => k.outbox(name, stages, c.tile_m, c.rows()),
        }
    }

    /// Where the tile of a CTA starts.
    #[track_caller]
    pub(super) fn at(&self, seat: Seat) -> At {
        let (m, n) = (seat.m * self.config.tile_m, seat.n * self.config.tile_n);
        let (row, col) = if self.config.swap { (n, m) } else { (m, n) };
        let batch = seat.batch;
        At { row, col, batch }
    }

    /// Has the map of C at hand when the first tile is stored; those of A and B
    /// come with the first copy.
    #[track_caller]
    pub(super) fn prefetch(&self) {
        self.c.prefetch();
    }

    /// Brings a step of a CTA's tile.
    #[track_caller]
    pub(super) fn load<A: Element, B: Element>(
        &self,
        slot: &Slot<(Tile<A>, Tile<B>), Filling>,
        at: At,
        step: Reg<u32>,
    ) {
        self.load_part(slot, at, step, 0, 1);
    }

    /// Brings one of equal parts of a step: rows of A and of B.
    #[track_caller]
    pub(super) fn load_part<A: Element, B: Element>(
        &self,
        slot: &Slot<(Tile<A>, Tile<B>), Filling>,
        at: At,
        step: Reg<u32>,
        part: u32,
        parts: u32,
    ) {
        let c = &self.config;
        let (m, n) = if c.swap {
            (at.col, at.row)
        } else {
            (at.row, at.col)
        };
        let (first, depth) = (step * c.tile_k, c.tile_k);
        let inner = inner(&self.class, c);
        let hint = |hint| c.hints.then_some(hint);
        let (keep, forget) = (hint(CacheHint::EvictLast), hint(CacheHint::EvictFirst));
        let rows = |whole: u32| part * whole / parts..(part + 1) * whole / parts;
        for k in (0..depth).step_by(inner as usize) {
            let mine = rows(c.tile_m);
            let tile = slot.0.slice(mine.clone(), k..k + inner);
            let shared = c.cluster == Cluster::Cols;
            let origin = [first + k, m + mine.start];
            self.copy(slot, self.a, tile, origin, at.batch, shared, keep);
        }
        match self.class.layout {
            Layout::Nk => {
                // One block of rows, or those of gate and up in turn.
                let height = c.tile_n / if self.b.len() > 1 { c.blocks() } else { 1 };
                for k in (0..depth).step_by(inner as usize) {
                    let blocks = (0..c.tile_n).step_by(height as usize);
                    let all = blocks.flat_map(|row| self.b.iter().map(move |map| (row, *map)));
                    for (i, (row, map)) in (0..).zip(all) {
                        let mine = rows(height);
                        let to = i * height + mine.start..i * height + mine.end;
                        let tile = slot.1.slice(to, k..k + inner);
                        let shared = c.cluster == Cluster::Rows;
                        let (x, y) = (first + k, n + (row + mine.start));
                        match self.class.up {
                            Some(Weights::Interleaved) => {
                                // Blocks of 8 rows are counted, not rows.
                                let block = Some(y >> 3u32);
                                self.copy(slot, map, tile, [x, 0u32.reg()], block, shared, forget);
                            }
                            _ => self.copy(slot, map, tile, [x, y], at.batch, shared, forget),
                        }
                    }
                }
            }
            Layout::Kn => {
                let panels = (0..c.tile_n).step_by(64).enumerate();
                for (_, col) in panels.filter(|(i, _)| *i as u32 % parts == part) {
                    let tile = slot.1.slice(0..depth, col..col + 64);
                    let origin = [n + col, first];
                    self.copy(slot, self.b[0], tile, origin, at.batch, false, forget);
                }
            }
        }
    }

    /// Copies a box, here or to the whole cluster.
    #[track_caller]
    fn copy<A: Element, B: Element, E: Element>(
        &self,
        slot: &Slot<(Tile<A>, Tile<B>), Filling>,
        map: Map,
        to: TileRef<E>,
        [x, y]: [Reg<u32>; 2],
        batch: Option<Reg<u32>>,
        shared: bool,
        hint: Option<CacheHint>,
    ) {
        match (shared, batch) {
            (false, None) => slot.load_with(map, to, [x, y], None, hint),
            (false, Some(z)) => slot.load_with(map, to, [x, y, z], None, hint),
            (true, None) => slot.load_multicast_with(map, to, [x, y], hint),
            (true, Some(z)) => slot.load_multicast_with(map, to, [x, y, z], hint),
        }
    }

    /// What a consumer has of a tile.
    pub(super) fn area(&self, i: u32) -> Area {
        self.config.area(&self.class, i)
    }

    /// The accumulator of what a consumer has of a tile.
    #[track_caller]
    pub(super) fn acc(&self, area: &Area) -> Acc {
        let [height, width] = area.sides();
        Acc::new(height, width)
    }

    /// Multiplies what a consumer has of a stage.
    #[track_caller]
    pub(super) fn multiply<A: Element, B: Element>(
        &self,
        acc: &Acc,
        (a, b): (TileRef<A>, TileRef<B>),
        area: &Area,
    ) {
        let (rows, depth) = (area.rows.clone(), 0..self.config.tile_k);
        match (self.config.swap, self.class.layout) {
            (false, Layout::Nk) => {
                acc.mma(
                    &a.slice(rows, depth.clone()),
                    &b.slice(area.cols.clone(), depth),
                );
            }
            (false, Layout::Kn) => acc.mma(&a.slice(rows, depth), &b.t()),
            (true, Layout::Nk) => acc.mma(&b.slice(rows, depth), &a),
            (true, Layout::Kn) => acc.mma(&b.slice(depth, rows).t(), &a),
        }
    }

    /// A consumer's sums of a tile over steps of K, taken from the ring.
    #[track_caller]
    pub(super) fn sums<A: Element, B: Element>(
        &self,
        ab: Stage<A, B>,
        taken: Taken,
        area: &Area,
    ) -> Frag {
        let [height, width] = area.sides();
        match self.class.sums {
            Sums::Fast => {
                let acc = self.acc(area);
                taken.each(|these| {
                    these.each(|_| {
                        let slot = ab.wait();
                        self.multiply(&acc, *slot, area);
                        slot.release_after(&acc);
                    });
                });
                acc.finish()
            }
            Sums::Promoted => taken.whole(|these| {
                these.fold(Frag::zeros(height, width), |_, sums| {
                    let slot = ab.wait();
                    let part = Acc::new(height, width);
                    self.multiply(&part, *slot, area);
                    part.wait();
                    slot.release();
                    sums.promote(part)
                })
            }),
        }
    }

    /// The numbers that multiply the sums of each product, once for a role.
    #[track_caller]
    pub(super) fn factors(&self) -> Factors {
        let mut all = [None; 2];
        if let [a, factors @ ..] = &self.scales[..] {
            let a = a.load(0u32);
            for (product, factor) in all.iter_mut().zip(factors) {
                *product = Some(a * factor.load(0u32));
            }
        }
        // A number of the launch is for one product alone.
        all[0] = match (self.scale, all[0]) {
            (Some(x), Some(y)) => Some(x * y),
            (one, other) => one.or(other),
        };
        all
    }

    /// The sums of each product, of a consumer that has all of them.
    #[track_caller]
    pub(super) fn totals(&self, sums: &Frag) -> Totals {
        let halves = match (self.class.factors(), self.config.swap) {
            (1, _) => return vec![sums.clone()],
            (_, false) => sums.split(self.config.tile_n),
            (_, true) => sums.split_rows(self.config.rows()),
        };
        vec![halves.0, halves.1]
    }

    /// The bias that a consumer's tile needs first, asked for before its sums:
    /// nobody waits for it then.
    #[track_caller]
    pub(super) fn bias(&self, at: At) -> Bias<T> {
        let Some(bias) = self.bias else {
            return Bias::None;
        };
        let last = self.n - 1;
        if self.config.swap {
            let one = |row: Reg<u32>| T::widen(bias.load((at.row + row).min(last)));
            return Bias::Rows(Rows::of(self.config.rows(), one));
        }
        let [width, _] = self.staging;
        // N is even, so that a pair lies inside or outside; what lies outside
        // of C is not stored, and any number inside serves there.
        let pair = |col: Reg<u32>| T::pair(bias, (at.col + col).min(last - 1));
        Bias::Cols(col_pairs(width, pair))
    }

    /// Sums times what multiplies them, if anything does.
    #[track_caller]
    pub(super) fn scaled(&self, sums: Frag, factor: Option<Reg<f32>>) -> Frag {
        match factor {
            Some(factor) => sums.map(|x| x * factor),
            None => sums,
        }
    }

    /// What becomes of the sums of a gate.
    #[track_caller]
    pub(super) fn gate(&self, sums: Frag, factor: Option<Reg<f32>>) -> Frag {
        let activation = self.class.epilogue.activation;
        self.scaled(sums, factor).map(|x| activation.apply(x))
    }

    /// What becomes of sums at a place: scaled, biased, activated, multiplied
    /// with those of the other product, with the residual.
    #[track_caller]
    pub(super) fn finish(&self, sums: &[Frag], at: At, factors: Factors, bias: Bias<T>) -> Frag {
        let mut scaled =
            (sums.iter().zip(factors)).map(|(x, factor)| self.scaled(x.clone(), factor));
        let mut sums = scaled.next().unwrap_or_else(|| Frag::zeros(64, 8));
        sums = match bias {
            Bias::None => sums,
            Bias::Rows(rows) => sums.zip_rows(&rows, |x, b| x + b),
            Bias::Cols(pairs) => {
                let pairs: Vec<_> = pairs.into_iter().map(T::both).collect();
                sums.zip_col_pairs(&pairs, |x, b| x + b)
            }
        };
        let activation = self.class.epilogue.activation;
        sums = sums.map(|x| activation.apply(x));
        if let Some(up) = scaled.next() {
            sums = sums.zip(&up, |x, y| x * y);
        }
        let Some(residual) = self.residual else {
            return sums;
        };
        // What lies outside of C is not stored: any number inside serves there.
        let (last_row, last_col) = (self.m - 1, self.n - 1);
        sums.map_pairs(|cell, [x, y]| {
            let [u, v] = match self.config.swap {
                false => {
                    let m = (at.row + cell.row).min(last_row);
                    let n = (at.col + cell.col).min(last_col - 1);
                    residual.row(m, at.batch).load_vec::<2>(n)
                }
                true => [0, 1].map(|i| {
                    let m = (at.col + cell.col + i).min(last_row);
                    let n = (at.row + cell.row).min(last_col);
                    residual.row(m, at.batch).load(n)
                }),
            };
            [x + T::widen(u), y + T::widen(v)]
        })
    }

    /// Finishes sums and sends them to C, part by part.
    #[track_caller]
    pub(super) fn send(
        &self,
        sums: &Frag,
        outbox: Outbox<T>,
        at: At,
        factors: Factors,
        bias: Bias<T>,
    ) {
        if self.config.swap {
            let tile = self.finish(&self.totals(sums), at, factors, bias);
            T::transposed(self, outbox, &tile, at);
            return;
        }
        self.each_part(&self.totals(sums), at, bias, |part, at, bias| {
            self.send_part(outbox, &part[0], at, |some, col| {
                let cols = col..col + some.cols();
                let mut all = vec![some];
                all.extend(part[1..].iter().map(|more| more.slice(cols.clone())));
                self.finish(&all, at.plus(0, col), factors, bias.cols(cols))
            });
        });
    }

    /// Sends a part of a tile to C, and has `f` finish it on the way.
    #[track_caller]
    pub(super) fn send_part(
        &self,
        outbox: Outbox<T>,
        part: &Frag,
        at: At,
        f: impl Fn(Frag, u32) -> Frag,
    ) {
        match at.batch {
            None => outbox.send_map(part, self.c, [at.col, at.row], f),
            Some(z) => outbox.send_map(part, self.c, [at.col, at.row, z], f),
        }
    }

    /// Runs `f` for part after part of sums, each as wide as a copy to C.
    ///
    /// In a loop where each value takes many instructions: to read these for
    /// every part anew takes longer than what they do.
    #[track_caller]
    pub(super) fn each_part(
        &self,
        sums: &[Frag],
        at: At,
        bias: Bias<T>,
        mut f: impl FnMut(Totals, At, Bias<T>),
    ) {
        let [width, _] = self.staging;
        let parts = self.config.tile_n / width;
        let cut = |sums: &[Frag], cols: Rows_<u32>| -> Totals {
            sums.iter().map(|x| x.slice(cols.clone())).collect()
        };
        // What the next part needs is asked for before this one is worked on.
        let next = |at: At| self.bias(at.plus(0, width));
        if !self.class.epilogue.activation.is_long() || parts == 1 || width < 32 {
            let mut bias = bias;
            for i in 0..parts {
                let (at, cols) = (at.plus(0, i * width), i * width..(i + 1) * width);
                let more = if i + 1 < parts { next(at) } else { Bias::None };
                f(cut(sums, cols), at, std::mem::replace(&mut bias, more));
            }
            return;
        }
        let first = (sums.to_vec(), bias.pairs());
        steps(parts).unroll(1).fold(first, |i, (sums, bias)| {
            let col = at.col + i * width;
            let at = At { col, ..at };
            let more = next(at);
            f(cut(&sums, 0..width), at, Bias::of(bias));
            let rest = sums.iter().map(|x| x.shift(width)).collect::<Totals>();
            (rest, more.pairs())
        });
    }
}

impl<T: Out> Bias<T> {
    /// The numbers of columns.
    fn pairs(self) -> Vec<T::Pair> {
        match self {
            Bias::Cols(pairs) => pairs,
            _ => Vec::new(),
        }
    }

    /// That of some columns of a part.
    fn cols(&self, cols: Rows_<u32>) -> Self {
        match self {
            Bias::Cols(pairs) => {
                Bias::Cols(pairs[cols.start as usize / 8..cols.end as usize / 8].to_vec())
            }
            _ => Bias::None,
        }
    }

    /// Of these columns, if any.
    fn of(pairs: Vec<T::Pair>) -> Self {
        match pairs.is_empty() {
            true => Bias::None,
            false => Bias::Cols(pairs),
        }
    }
}

/// Is C written element by element?
pub(super) fn by_elements(class: &Class, c: &Config) -> bool {
    c.swap && class.out.dtype() == DType::F32
}
