//! The specialized schedule: some warps sample points, others gather them.
//!
//! ```text
//!   load_points ──► points ──► sample ──► records ──► gather ──► out
//!                           load_levels ──► levels ─────┘
//! ```

use super::config::{COPIER_REGISTERS, Config, RecordPath};
use super::context::{DeformContext, ResidentLevels};
use super::gather::{Gather, LanePosition, OutputRow};
use super::lanes::LaneLayout;
use super::level::LevelGeometry;
use super::points::sample_point;
use super::problem::{Class, Problem};
use super::query_order::WorkItem;
use super::record::{RecordLayout, RecordRow, SampleRecord, ShuffledRecords};
use super::texel::{PointElement, Texel};
use crate::roles::copy_role;
use warpline_family::plan::{Buffer, LaunchStep, TensorArg};
use warpline_ir::builder::*;
use warpline_ir::{Swizzle, TensorMapDecl};

/// The records of a round, and the output row of each item.
type Records = Ring<(Tile<u32>, Tile<u32>)>;
/// Locations and attention weights of the points of a round, as loaded by TMA.
type PointRing<N> = Ring<(Tile<N>, Tile<N>)>;

/// Rows whose points a thread loads together.
const ROWS_PER_BATCH: usize = 4;

/// Returns the elements of a row of locations and of attention weights in the ring.
fn point_cols(class: &Class, lanes: &LaneLayout) -> [u32; 2] {
    [2, 1].map(|each| lanes.heads_per_warp * class.all_points() * each)
}

/// Returns the tensor map of locations or attention weights: queries by the points of all heads.
fn point_map(class: &Class, rows: u32, cols: u32) -> TensorMapDecl {
    TensorMapDecl {
        swizzle: Swizzle::None,
        ..TensorMapDecl::tiled(class.point.dtype(), [cols, rows])
    }
}

/// Returns whether TMA can load the points of `queries` queries at once.
pub(super) fn tma_can_load_points(p: &Problem, lanes: &LaneLayout, queries: u32) -> bool {
    let class = p.class();
    let size = class.point.dtype().bytes() as u32;
    let fits = |cols: u32| {
        let row = p.heads / lanes.heads_per_warp * cols;
        cols <= 256 && (cols * size).is_multiple_of(16) && (row * size).is_multiple_of(16)
    };
    queries <= 256 && point_cols(&class, lanes).into_iter().all(fits)
}

/// Binds the tensors of locations and attention weights.
pub(super) fn bind_args(
    mut step: LaunchStep,
    p: &Problem,
    c: &Config,
    lanes: &LaneLayout,
) -> LaunchStep {
    if !c.tma_points {
        return step;
    }
    let rows = u64::from(p.batch).max(1) * u64::from(p.num_query).max(1);
    let tensors = POINT_MAPS
        .into_iter()
        .zip(point_cols(&p.class(), lanes))
        .zip([3, 4]);
    for ((name, cols), input) in tensors {
        let row = u64::from(p.heads / lanes.heads_per_warp * cols);
        step = step.tensor(name, TensorArg::dense(Buffer::Input(input), &[row, rows]));
    }
    step
}

/// The parameter names of the tensor maps of locations and attention weights.
const POINT_MAPS: [&str; 2] = ["location_map", "weight_map"];

/// Declares the roles.
pub(super) fn roles<E: Texel, N: PointElement>(k: Builder, cx: &DeformContext<E, N>) {
    let (class, c, lanes) = (&cx.class, &cx.config, &cx.lanes);
    let round = c.queries_per_round(lanes);
    let resident = cx.resident_ring(k);
    let points = c.tma_points.then(|| {
        let [locations, weights] = point_cols(class, lanes);
        let maps = [(POINT_MAPS[0], locations), (POINT_MAPS[1], weights)]
            .map(|(name, cols)| k.tensor_map(name, point_map(class, round, cols)));
        let ring = k.ring("points", c.stages, |s| {
            (
                s.unswizzled::<N>(round, locations),
                s.unswizzled::<N>(round, weights),
            )
        });
        (maps, ring)
    });
    let layout = c.record_layout(class, lanes);
    let ring = k
        .ring("records", c.stages, |s| {
            (
                s.vector::<u32>(layout.words()),
                s.vector::<u32>(layout.rows()),
            )
        })
        .generic_proxy_only();
    let [sample_registers, gather_registers] = match c.registers {
        Some(counts) => counts.map(Some),
        None => [None, None],
    };
    k.role("sample")
        .warps(c.producer_warps())
        .registers_opt(sample_registers)
        .body(|| PointSampler::new(cx, layout).run(points.map(|(_, ring)| ring), ring));
    k.role("gather")
        .warps(c.gather_warps())
        .registers_opt(gather_registers)
        .body(|| gather(cx, resident, layout, ring));
    let copy_registers = c.registers.map(|_| COPIER_REGISTERS);
    if let Some(resident) = resident {
        copy_role(k, "load_levels", copy_registers).body(|| cx.load_resident_levels(resident));
    }
    if let Some((maps, ring)) = points {
        copy_role(k, "load_points", copy_registers).body(|| load_points(cx, maps, ring));
    }
}

/// Loads locations and attention weights of every round.
fn load_points<E: Texel, N: PointElement>(
    cx: &DeformContext<E, N>,
    maps: [TensorMap; 2],
    ring: PointRing<N>,
) {
    let round = cx.config.queries_per_round(&cx.lanes);
    let all = cx.class.all_points();
    elect(|| {
        cx.for_each_item(|item| {
            let first = item.batch * cx.queries + item.first;
            steps(item.rounds).each(|i| {
                let slot = ring.acquire();
                let row = first + i * round;
                let (locations, weights) = slot.tiles();
                slot.load(maps[0], locations, [item.head * (2 * all), row]);
                slot.load(maps[1], weights, [item.head * all, row]);
                slot.commit();
            });
        });
    });
}

/// A thread that samples points.
///
/// The threads of the role form rows and columns. A thread has the same record index (column) in
/// every item (row) that it samples, and so the same level.
struct PointSampler<'a, E, N> {
    cx: &'a DeformContext<E, N>,
    layout: RecordLayout,
    /// The thread's columns.
    columns: Vec<RecordColumn>,
    /// Rows that a warp samples at once.
    rows_per_warp: u32,
    /// The thread's first row.
    row: Reg<u32>,
    /// Rows that all threads sample at once.
    rows: u32,
}

/// The record that a thread samples in every item.
#[derive(Clone, Copy)]
struct RecordColumn {
    /// The record index.
    record: Reg<u32>,
    /// Whether the record exists; `None` if it always does.
    in_range: Option<Reg<bool>>,
    /// The level of its points, if they are all in one.
    level: Option<LevelGeometry>,
}

/// The output row of a row of records.
struct RowOwner {
    row: Reg<u32>,
    output_row: OutputRow,
}

/// The loaded points of a row and column.
struct LoadedPoints {
    record_row: RecordRow,
    /// Whether the row exists; `None` if it always does.
    in_range: Option<Reg<bool>>,
    column: usize,
    locations: Vec<Reg<f32>>,
    weights: Vec<Reg<f32>>,
}

impl<'a, E: Texel, N: PointElement> PointSampler<'a, E, N> {
    fn new(cx: &'a DeformContext<E, N>, layout: RecordLayout) -> Self {
        let lanes_per_row = layout.records().next_power_of_two().min(32);
        let rows_per_warp = 32 / lanes_per_row;
        let (points, each) = (cx.class.points, cx.format().points);
        let column = |first: u32| {
            // XOR of column and row: lanes of different rows then read different columns at the same time, which
            // spreads their shared-memory accesses over the banks.
            let spacing = lanes_per_row / rows_per_warp;
            let row_bits = (lane_id() & (rows_per_warp - 1)) * spacing;
            let record = ((lane_id() >> rows_per_warp.trailing_zeros()) ^ row_bits) + first;
            let in_range =
                (first + lanes_per_row > layout.records()).then(|| record.lt(layout.records()));
            let record = match in_range {
                None => record,
                Some(_) => record.min(layout.records() - 1),
            };
            let has_single_level = points.is_multiple_of(each);
            let level = has_single_level.then(|| cx.level_of(record * each / points));
            RecordColumn {
                record,
                in_range,
                level,
            }
        };
        Self {
            cx,
            layout,
            columns: (0..layout.records())
                .step_by(lanes_per_row as usize)
                .map(column)
                .collect(),
            rows_per_warp,
            row: warp_in_role() * rows_per_warp + (lane_id() & (rows_per_warp - 1)),
            rows: role_threads() / lanes_per_row,
        }
    }

    /// Samples the points of every round.
    fn run(&self, points: Option<PointRing<N>>, out: Records) {
        let cx = self.cx;
        cx.for_each_item(|item| {
            let round = cx.config.queries_per_round(&cx.lanes);
            steps(item.rounds).each(|i| {
                let from = points.map(|points| points.wait());
                let tiles = from.as_ref().map(|slot| slot.tiles());
                let owners = self.owners(item, item.first + i * round);
                let starts: Vec<u32> = (0..self.layout.rows())
                    .step_by(self.rows as usize)
                    .collect();
                let mut batches = starts.chunks(ROWS_PER_BATCH);
                let load = |starts: &[u32]| self.load_rows(tiles, &owners, starts);
                // Issue the first loads before waiting for a free slot.
                let mut loaded = batches.next().map(load);
                let slot = out.acquire();
                let (to, to_owners) = slot.tiles();
                self.store_owners(to_owners, &owners);
                while let Some(points) = loaded {
                    self.sample_and_store(to, points);
                    loaded = batches.next().map(load);
                }
                slot.commit();
                if let Some(from) = from {
                    from.release();
                }
            });
        });
    }

    /// Returns the output rows of the rows that the warp samples, distributed over its lanes.
    fn owners(&self, item: WorkItem, first: Reg<u32>) -> Vec<RowOwner> {
        let cx = self.cx;
        let heads = cx.lanes.heads_per_warp;
        let rows_per_warp = self.rows_per_warp;
        let count = self.layout.rows().div_ceil(self.rows) * rows_per_warp;
        let owner = |first_index: u32| {
            let i = lane_id() + first_index;
            let (pass, within) = (i >> rows_per_warp.trailing_zeros(), i & (rows_per_warp - 1));
            let row = warp_in_role() * rows_per_warp + within + pass * self.rows;
            let (step, head) = match heads {
                1 => (row, item.head),
                n => (row >> n.trailing_zeros(), item.head + (row & (n - 1))),
            };
            let output_row = OutputRow::at(cx, item, first + step, head);
            RowOwner { row, output_row }
        };
        (0..count).step_by(32).map(owner).collect()
    }

    /// Stores the output rows.
    fn store_owners(&self, to: TileRef<u32>, owners: &[RowOwner]) {
        for RowOwner { row, output_row } in owners {
            if_(row.lt(self.layout.rows()), || {
                to.store(0u32, *row, output_row.to_word());
            });
        }
    }

    /// Loads the points of some rows.
    fn load_rows(
        &self,
        tiles: Option<(TileRef<N>, TileRef<N>)>,
        owners: &[RowOwner],
        starts: &[u32],
    ) -> Vec<LoadedPoints> {
        let mut loaded = Vec::new();
        for &start in starts {
            let (row, all) = (self.row + start, self.layout.rows());
            let in_range = (start + self.rows > all).then(|| row.lt(all));
            let (row, record_row) = match in_range {
                None => (row, self.layout.row(self.row, start)),
                Some(_) => {
                    let row = row.min(all - 1);
                    (row, self.layout.row(row, 0))
                }
            };
            for column in 0..self.columns.len() {
                let (locations, weights) = match tiles {
                    Some(tiles) => self.read_shared(tiles, row, column),
                    None => self.read_global(owners, start / self.rows, column),
                };
                loaded.push(LoadedPoints {
                    record_row,
                    in_range,
                    column,
                    locations,
                    weights,
                });
            }
        }
        loaded
    }

    /// Samples points and stores their records.
    fn sample_and_store(&self, to: TileRef<u32>, points: Vec<LoadedPoints>) {
        for loaded in points {
            let RecordColumn {
                record, in_range, ..
            } = self.columns[loaded.column];
            let sampled = self.sample_record(loaded.column, &loaded.locations, &loaded.weights);
            let store = || self.layout.store(to, loaded.record_row, record, &sampled);
            match (loaded.in_range, in_range) {
                (None, None) => store(),
                (Some(a), None) | (None, Some(a)) => if_(a, store),
                (Some(a), Some(b)) => if_(a & b, store),
            }
        }
    }

    /// Reads the locations and weights of a record's points from the ring.
    #[track_caller]
    fn read_shared(
        &self,
        (locations, weights): (TileRef<N>, TileRef<N>),
        row: Reg<u32>,
        column: usize,
    ) -> (Vec<Reg<f32>>, Vec<Reg<f32>>) {
        let (all, each) = (self.cx.class.all_points(), self.cx.format().points);
        let point = self.columns[column].record * each;
        let (step, point) = match self.cx.lanes.heads_per_warp {
            1 => (row, point),
            n => (row >> n.trailing_zeros(), (row & (n - 1)) * all + point),
        };
        (
            N::load_shared(locations, step, point * 2, 2 * each),
            N::load_shared(weights, step, point, each),
        )
    }

    /// Loads the locations and weights of a record's points from global memory, for pass `pass` over the rows.
    #[track_caller]
    fn read_global(
        &self,
        owners: &[RowOwner],
        pass: u32,
        column: usize,
    ) -> (Vec<Reg<f32>>, Vec<Reg<f32>>) {
        let cx = self.cx;
        let (all, each) = (cx.class.all_points(), cx.format().points);
        let first = pass * self.rows_per_warp;
        let lane = (lane_id() & (self.rows_per_warp - 1)) + first % 32;
        let output_row = shuffle_from(owners[(first / 32) as usize].output_row.index, lane);
        let point = self.columns[column].record * each;
        let locations = cx.locations.offset(output_row.mul_wide(2 * all));
        let weights = cx.weights.offset(output_row.mul_wide(all));
        (
            N::load(locations, point * 2, 2 * each),
            N::load(weights, point, each),
        )
    }

    /// Computes the record of some points.
    #[track_caller]
    fn sample_record(
        &self,
        column: usize,
        locations: &[Reg<f32>],
        weights: &[Reg<f32>],
    ) -> SampleRecord {
        let cx = self.cx;
        let RecordColumn { record, level, .. } = self.columns[column];
        let each = cx.format().points;
        let points = (0..).zip(locations.chunks(2).zip(weights));
        let points = points.map(|(i, (location, &weight))| {
            let level = level.unwrap_or_else(|| cx.level_of((record * each + i) / cx.class.points));
            sample_point::<E>(
                cx.lanes.corner_groups,
                &level,
                [location[0], location[1]],
                weight,
            )
        });
        let points: Vec<_> = points.collect();
        cx.format().records(&points).swap_remove(0)
    }
}

/// Gathers the points of every round.
fn gather<E: Texel, N: PointElement>(
    cx: &DeformContext<E, N>,
    resident: Option<ResidentLevels<E>>,
    layout: RecordLayout,
    ring: Records,
) {
    let lanes = &cx.lanes;
    let lane = LanePosition::new(lanes);
    let row = RecordRow {
        warp: warp_in_role(),
        item: lane.item,
    };
    let row_in_cta = row.warp * lanes.items_per_warp() + row.item;
    let points = cx.format().points;
    cx.for_each_item(|item| {
        let resident_slot = resident.map(|resident| resident.wait());
        let resident_tile = resident_slot.as_ref().map(|slot| slot.tiles());
        let gather = Gather::new(cx, lane, item, resident_tile);
        steps(item.rounds).each(|_| {
            let slot = ring.wait();
            let (from, owners) = slot.tiles();
            let output_row = OutputRow::from_word(owners.load(0u32, row_in_cta));
            match cx.config.record_path {
                RecordPath::Shared => gather.gather_query(output_row, |point| {
                    layout.load(from, row, lane.corner_group, point / points)
                }),
                RecordPath::Shuffles => {
                    let records =
                        ShuffledRecords::from_shared(&layout, lanes, from, row, lane.corner_group);
                    gather.gather_query(output_row, |point| records.points_of(point));
                }
            }
            slot.release();
        });
        if let Some(resident_slot) = resident_slot {
            resident_slot.release();
        }
    });
}
