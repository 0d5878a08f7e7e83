//! Launch parameters, and the steps that all schedules share.

use super::config::Config;
use super::lanes::LaneLayout;
use super::level::{LevelExtent, LevelGeometry};
use super::problem::{Class, INDEX_LIMIT, MAX_TOTAL_PIXELS};
use super::query_order::{QueryPermutation, WorkItem};
use super::record::RecordFormat;
use super::texel::{PointElement, Texel};
use super::work_split::WorkPartition;
use warpline_ir::builder::*;
use warpline_ir::{Swizzle, TensorMapDecl};

/// The launch parameters with the class and config that they belong to.
pub(super) struct DeformContext<E, N> {
    pub(super) class: Class,
    pub(super) config: Config,
    pub(super) lanes: LaneLayout,
    pub(super) value: Global<E>,
    /// The values as rows of pixels, for loading resident levels.
    pixels: Option<TensorMap>,
    pub(super) levels: Vec<LevelExtent>,
    /// Pixels of all levels.
    pub(super) spatial: Reg<u32>,
    pub(super) locations: Global<N>,
    pub(super) weights: Global<N>,
    pub(super) out: Global<E>,
    pub(super) queries: Reg<u32>,
    pub(super) heads: Reg<u32>,
    work: WorkPartition,
    /// Divisor: head groups times channel slices of a batch.
    groups_per_batch: FastDivisor,
    slices_divisor: Option<FastDivisor>,
    permutation: QueryPermutation,
}

/// Returns the tensor map of the values as a matrix: pixels by channels of all heads.
fn pixel_map(class: &Class, c: &Config, lanes: &LaneLayout) -> TensorMapDecl {
    let pixels = [lanes.heads_per_warp * class.channels, c.resident_boxes[1]];
    TensorMapDecl {
        swizzle: Swizzle::None,
        ..TensorMapDecl::tiled(class.value.dtype(), pixels)
    }
}

/// The ring of one stage that holds the levels resident in shared memory.
pub(super) type ResidentLevels<E> = Ring<Tile<E>>;

impl<E: Texel, N: PointElement> DeformContext<E, N> {
    pub(super) fn declare(k: Builder, class: &Class, c: &Config, lanes: LaneLayout) -> Self {
        let value = k.pointer("value").aligned_to(16);
        let pixels =
            (c.resident_levels > 0).then(|| k.tensor_map("pixels", pixel_map(class, c, &lanes)));
        let [locations, weights] =
            ["locations", "weights"].map(|name| k.pointer(name).aligned_to(16));
        let out = k.pointer("out").aligned_to(16);
        let [spatial, queries, heads] =
            ["spatial", "queries", "heads"].map(|name| k.param::<u32>(name));
        let (spatial, heads) = (spatial.at_least(1), heads.at_least(1));
        let [max_queries, max_pixels] =
            [1, class.pixel_bytes()].map(|each| (INDEX_LIMIT - 1) / u64::from(each));
        spatial.at_most(MAX_TOTAL_PIXELS);
        queries.at_most(max_queries as u32);
        heads.at_most(max_pixels as u32);
        heads.multiple_of(lanes.heads_per_warp.into());
        k.limit(extent(queries) * heads, max_queries);
        k.limit(extent(spatial) * heads, max_pixels);
        let work = WorkPartition::declare(k, c);
        let levels = LevelExtent::declare(k, class.levels);
        Self {
            class: *class,
            config: *c,
            lanes,
            value,
            pixels,
            spatial,
            locations,
            weights,
            out,
            queries,
            heads,
            work,
            groups_per_batch: k.divisor("groups_per_batch"),
            slices_divisor: (lanes.channel_slices > 1).then(|| k.divisor("slices_divisor")),
            permutation: QueryPermutation::declare(k, class, c, &levels),
            levels,
        }
    }

    /// Returns the format of sampled records.
    pub(super) fn format(&self) -> RecordFormat {
        self.config.format(&self.class, &self.lanes)
    }

    /// Runs `f` for each work item of this CTA.
    pub(super) fn for_each_item(&self, f: impl FnOnce(WorkItem)) {
        self.work.for_each(|rounds| {
            let (batch, head, chunk) = self.decode_group(rounds.group);
            f(WorkItem {
                batch,
                head,
                chunk,
                first: rounds.first_round * self.config.queries_per_round(&self.lanes),
                rounds: rounds.count,
            });
        });
    }

    /// Returns the batch, the first head and the first chunk of a group.
    #[track_caller]
    fn decode_group(&self, group: Reg<u32>) -> (Reg<u32>, Reg<u32>, Option<Reg<u32>>) {
        let batch = self.groups_per_batch.divide(group);
        let groups =
            (self.heads >> self.lanes.heads_per_warp.trailing_zeros()) * self.lanes.channel_slices;
        let rest = group - batch * groups;
        let (heads, slice) = match self.slices_divisor {
            None => (rest, None),
            Some(divisor) => {
                let heads = divisor.divide(rest);
                (heads, Some(rest - heads * self.lanes.channel_slices))
            }
        };
        let chunk = slice.map(|s| s * self.lanes.lanes_per_pixel);
        (batch, heads * self.lanes.heads_per_warp, chunk)
    }

    /// Returns the first pixel of the resident levels, if there are any.
    fn first_resident_pixel(&self) -> Option<Reg<u32>> {
        let first = self.class.levels - self.config.resident_levels;
        self.levels.get(first as usize).map(LevelExtent::start)
    }

    /// Returns whether a level is resident in shared memory.
    pub(super) fn is_resident(&self, level: u32) -> bool {
        level >= self.class.levels - self.config.resident_levels
    }

    /// Declares the ring of resident levels: pixels by the channels of a warp's heads.
    pub(super) fn resident_ring(&self, k: Builder) -> Option<ResidentLevels<E>> {
        let cols = self.lanes.heads_per_warp * self.class.channels;
        (self.config.resident_levels > 0).then(|| {
            k.ring("levels", 1, |s| {
                s.unswizzled::<E>(self.config.resident_pixels(), cols)
            })
        })
    }

    /// Loads the resident levels of every work item, and prefetches those of the next item into the L2.
    pub(super) fn load_resident_levels(&self, resident: ResidentLevels<E>) {
        let Some((map, start)) = self.pixels.zip(self.first_resident_pixel()) else {
            return;
        };
        let cols = self.lanes.heads_per_warp * self.class.channels;
        let [copies, pixels_per_copy] = self.config.resident_boxes;
        let first_rows = || (0..copies).map(|i| i * pixels_per_copy);
        let corner = |group: Reg<u32>| {
            let (batch, head, _) = self.decode_group(group);
            [head * self.class.channels, batch * self.spatial + start]
        };
        elect(|| {
            self.work.for_each(|rounds| {
                let slot = resident.acquire();
                let [col, first] = corner(rounds.group);
                for row in first_rows() {
                    let to = slot.tiles().slice(row..row + pixels_per_copy, 0..cols);
                    slot.load(map, to, [col, first + row]);
                }
                slot.commit();
                if_(rounds.has_next, || {
                    let [col, first] = corner(rounds.next_group);
                    for row in first_rows() {
                        map.prefetch_box([col, first + row], None);
                    }
                });
            });
        });
    }

    /// Returns the geometry of a level. Pixels of a resident level are counted from the first resident one.
    #[track_caller]
    fn level(&self, extent: &LevelExtent, is_resident: Option<Reg<bool>>) -> LevelGeometry {
        let start = match is_resident.zip(self.first_resident_pixel()) {
            None => extent.start(),
            Some((is_resident, first)) => {
                select(is_resident, extent.start() - first, extent.start())
            }
        };
        LevelGeometry::new(extent, self.class.layout, start)
    }

    /// Returns the geometry of the level with index `level`.
    #[track_caller]
    pub(super) fn level_of(&self, level: Reg<u32>) -> LevelGeometry {
        let extent = LevelExtent::select_level(&self.levels, level);
        let first = self.class.levels - self.config.resident_levels;
        self.level(
            &extent,
            (self.config.resident_levels > 0).then(|| level.ge(first)),
        )
    }

    /// Returns the query at a position of the order, clamped to the last one, and whether the position
    /// is in range.
    #[track_caller]
    pub(super) fn query(&self, position: Reg<u32>) -> (Reg<u32>, Reg<bool>) {
        let in_range = position.lt(self.queries);
        let position = position.min(self.queries - 1);
        (self.permutation.query(&self.config, position), in_range)
    }

    /// Returns the output row of a query and head: its index over all batches.
    #[track_caller]
    pub(super) fn output_row(&self, item: WorkItem, query: Reg<u32>, head: Reg<u32>) -> Reg<u32> {
        (item.batch * self.queries + query) * self.heads + head
    }
}
