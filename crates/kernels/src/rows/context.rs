//! The steps of the schedules that keep a row in registers: load, compute, store.

use super::config::{Config, WeightStorage};
use super::element::RowElement;
use super::op::{OpParams, RowLanes, RowOp, RowValues};
use super::packed::PackedUnit;
use super::partition::{RowParams, RowSegment, ThreadCoord, UnitIndex};
use super::reduce::RowReduction;
use warpline_ir::builder::*;

/// The state of a thread of a role that computes rows.
pub(super) struct RowContext<'a, K, E: RowElement> {
    c: &'a Config,
    params: &'a RowParams<E>,
    reduction: Option<RowReduction<K>>,
    pub(super) segment: RowSegment,
    pub(super) thread: ThreadCoord,
    op_params: OpParams,
    /// The per-column weights.
    weights: WeightSource<E>,
    /// The number of reductions so far, modulo 4.
    reduction_count: Var<u32>,
}

/// The shared memory of a CTA besides its rings.
pub(super) struct SharedState<K, E> {
    reduction: Option<RowReduction<K>>,
    /// The tile of weights, and the named barrier after which all compute warps may read it.
    weights: Option<(Tile<E>, NamedBarrierHandle)>,
}

impl<K, E> Clone for SharedState<K, E> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K, E> Copy for SharedState<K, E> {}

impl<K: RowOp, E: RowElement> SharedState<K, E> {
    pub(super) fn declare(k: Builder, c: &Config, params: &RowParams<E>) -> Self {
        let count = params.vectors.len() as u32;
        let cols = c.slot_row_bytes() / RowParams::<E>::SIZE;
        let weights = || {
            let tile = k.tile("weights", count, cols).unswizzled().declare();
            (tile, k.named_barrier("weights"))
        };
        Self {
            reduction: RowReduction::declare(k, c),
            weights: (c.weights == WeightStorage::Shared && count > 0).then(weights),
        }
    }
}

/// The location of the per-column weights for one thread.
enum WeightSource<E: RowElement> {
    /// The units of this thread, for each weight.
    Registers(Vec<Vec<PackedUnit<E>>>),
    /// One row of the tile for each weight.
    Shared(Tile<E>),
    Global,
}

impl<'a, K: RowOp, E: RowElement> RowContext<'a, K, E> {
    pub(super) fn new(c: &'a Config, params: &'a RowParams<E>, shared: SharedState<K, E>) -> Self {
        let segment = RowSegment::new(params.units(c), c);
        let thread = ThreadCoord::new(segment, c);
        let mut cx = Self {
            c,
            params,
            reduction: shared.reduction,
            segment,
            thread,
            op_params: OpParams {
                cols: params.cols.cast(),
                scalars: params.scalars.clone(),
            },
            weights: WeightSource::Global,
            reduction_count: Var::new(0u32),
        };
        match (c.weights, shared.weights) {
            (WeightStorage::Registers, _) => {
                cx.weights = WeightSource::Registers(cx.load_weights())
            }
            (WeightStorage::Shared, Some((tile, ready))) => {
                cx.copy_weights_to_shared(tile, ready);
                cx.weights = WeightSource::Shared(tile);
            }
            _ => {}
        }
        cx
    }

    /// Loads the thread's units of the weights from global memory.
    fn load_weights(&self) -> Vec<Vec<PackedUnit<E>>> {
        let all = self.params.vectors.iter();
        all.map(|&v| self.load_units(self.segment_start(v, 0u64.reg())))
            .collect()
    }

    /// The threads of the first row copy the weights to shared memory for all rows.
    fn copy_weights_to_shared(&self, tile: Tile<E>, ready: NamedBarrierHandle) {
        if_(self.thread.row.eq(0u32), || {
            for (i, raw) in self.load_weights().into_iter().enumerate() {
                let outputs = self.thread.output_units(self.c).into_iter();
                for ((unit, inside), raw) in outputs.zip(raw) {
                    let store = || self.shared_weight(tile, i, unit).store(raw);
                    match inside {
                        None => store(),
                        Some(inside) => if_(inside, store),
                    }
                }
            }
        });
        ready.sync(self.c.warps() * 32);
    }

    /// Returns the location of a weight unit in shared memory.
    fn shared_weight(&self, tile: Tile<E>, weight: usize, unit: UnitIndex) -> SharedUnit<E> {
        let row = weight as u32;
        let cols = self.c.slot_row_bytes() / RowParams::<E>::SIZE;
        let size = self.c.unit_len(RowParams::<E>::SIZE);
        SharedUnit {
            tile: tile.whole().slice(row..row + 1, unit.offset * size..cols),
            row: 0u32.reg(),
            col: unit.base * size,
        }
    }

    /// Returns unit `i` of every weight, in fp32.
    fn weight_unit(&self, i: usize, unit: UnitIndex) -> Vec<Vec<Reg<f32>>> {
        let all = 0..self.params.vectors.len();
        let raw = |w: usize| match &self.weights {
            WeightSource::Registers(units) => units[w][i].clone(),
            WeightSource::Shared(tile) => self.shared_weight(*tile, w, unit).load(),
            WeightSource::Global => {
                let from = self.segment_start(self.params.vectors[w], 0u64.reg());
                PackedUnit::load(from, unit, self.c)
            }
        };
        all.map(|w| raw(w).widen()).collect()
    }

    /// Returns the start of this CTA's segment of the row that starts at element `row_start`.
    fn segment_start(&self, rows: Global<E>, row_start: Reg<u64>) -> Global<E> {
        let size = self.c.unit_len(RowParams::<E>::SIZE);
        match self.c.cluster {
            1 => rows.offset(row_start),
            _ => rows.offset(row_start).offset(self.segment.first * size),
        }
    }

    /// Loads the thread's units of the segment that starts at `from`.
    pub(super) fn load_units(&self, from: Global<E>) -> Vec<PackedUnit<E>> {
        let units = self.thread.input_units(self.c).into_iter();
        units
            .map(|(u, _)| PackedUnit::load(from, u, self.c))
            .collect()
    }

    /// Converts the thread's units to fp32.
    pub(super) fn widen_units(&self, raw: Vec<PackedUnit<E>>) -> RowValues {
        let units = self.thread.input_units(self.c);
        RowValues {
            units: raw.into_iter().map(PackedUnit::widen).collect(),
            inside: units.into_iter().map(|(_, inside)| inside).collect(),
        }
    }

    /// Computes the thread's outputs and passes each unit to `write`.
    pub(super) fn compute(&self, values: &RowValues, write: impl Fn(UnitIndex, PackedUnit<E>)) {
        let c = self.c;
        let lanes = RowLanes::of(c.threads);
        let shift = K::shift(values, lanes);
        let transformed = values.map(|x| K::transform(shift, x));
        let mut stats = K::stats(shift, &transformed, lanes);
        if let Some(reduction) = &self.reduction {
            let warp = match c.warps_per_row() {
                1 => 0u32.reg(),
                n => warp_in_role() % n,
            };
            stats = reduction.all_reduce(stats, self.reduction_count.get(), self.thread.row, warp);
            self.reduction_count
                .set((self.reduction_count.get() + 1) & RowReduction::<K>::COUNT_MASK);
        }
        let factors = K::factors(&stats, shift, &self.op_params);
        let outputs = self.thread.output_units(c).into_iter();
        let units = self
            .thread
            .input_units(c)
            .into_iter()
            .zip(outputs)
            .enumerate();
        for (i, ((read, _), (unit, inside))) in units {
            let weights = self.weight_unit(i, read);
            let value = |(j, &x): (usize, &Reg<f32>)| {
                let column: Vec<Reg<f32>> = weights.iter().map(|w| w[j]).collect();
                K::output(&factors, x, &column)
            };
            let outputs: Vec<Reg<f32>> =
                transformed.units[i].iter().enumerate().map(value).collect();
            let out = PackedUnit::narrow(&outputs, c);
            match inside {
                None => write(unit, out),
                Some(inside) => if_(inside, || write(unit, out)),
            }
        }
    }

    /// Computes row `row` and stores it to global memory, if the matrix has that row.
    pub(super) fn compute_to_global(&self, values: &RowValues, row: Reg<u32>) {
        let y = self.segment_start(self.params.y, row.mul_wide(self.params.y_stride));
        let in_range = row.lt(self.params.rows);
        self.compute(values, |unit, out| {
            if_(in_range, || out.store(y, unit, self.c));
        });
    }

    /// Returns row `row` of x, clamped to the last row so that the load is valid.
    pub(super) fn input_row(&self, row: Reg<u32>) -> Global<E> {
        let row = row.min(self.params.rows - 1);
        self.segment_start(self.params.x, row.mul_wide(self.params.x_stride))
    }
}

/// The location of a unit in shared memory.
pub(super) struct SharedUnit<E> {
    tile: TileRef<E>,
    row: Reg<u32>,
    col: Reg<u32>,
}

impl<E: RowElement> SharedUnit<E> {
    /// Returns the location of a unit of a row in a ring slot.
    pub(super) fn in_slot(tile: TileRef<E>, row: Reg<u32>, unit: UnitIndex, c: &Config) -> Self {
        let size = c.unit_len(RowParams::<E>::SIZE);
        let cols = c.slot_row_bytes() / RowParams::<E>::SIZE;
        Self {
            tile: tile.slice(0..c.block, unit.offset * size..cols),
            row,
            col: unit.base * size,
        }
    }

    #[track_caller]
    fn load(self) -> PackedUnit<E> {
        PackedUnit::Vector(self.tile.load_as(self.row, self.col))
    }

    #[track_caller]
    pub(super) fn store(self, raw: PackedUnit<E>) {
        match raw {
            PackedUnit::Vector(words) => self.tile.store_as(self.row, self.col, words),
            PackedUnit::Scalar(x) => self.tile.store(self.row, self.col, x),
        }
    }
}

impl<K: RowOp, E: RowElement> RowContext<'_, K, E> {
    /// Reads the thread's values from a slot and releases the slot.
    pub(super) fn read_slot(&self, slot: Slot<Tile<E>, Consuming>) -> RowValues {
        let read = |(unit, _): (UnitIndex, _)| {
            SharedUnit::in_slot(slot.tiles(), self.thread.row, unit, self.c).load()
        };
        let raw = self
            .thread
            .input_units(self.c)
            .into_iter()
            .map(read)
            .collect();
        slot.release();
        self.widen_units(raw)
    }
}
