//! The parameters of a launch, and what all forms do with them.

use super::config::Config;
use super::lanes::Lanes;
use super::level::{Extent, Level};
use super::problem::{Class, LIMIT, MOST_SPATIAL};
use super::record::Format;
use super::share::Shares;
use super::texel::{Number, Texel};
use super::walk::{Item, Walk};
use warpline_ir::build::*;
use warpline_ir::{Swizzle, TensorMapDecl};

/// The parameters of a launch, and how it is solved.
pub(super) struct Line<E, N> {
    pub(super) class: Class,
    pub(super) config: Config,
    pub(super) lanes: Lanes,
    pub(super) value: Global<E>,
    /// The values as pixels of all heads, where levels are kept.
    pixels: Option<Map>,
    pub(super) levels: Vec<Extent>,
    /// Pixels of all levels.
    pub(super) spatial: Reg<u32>,
    pub(super) locations: Global<N>,
    pub(super) weights: Global<N>,
    pub(super) out: Global<E>,
    pub(super) queries: Reg<u32>,
    pub(super) heads: Reg<u32>,
    shares: Shares,
    /// Groups of heads, and slices of channels, of a batch.
    of_batch: Divisor,
    of_slices: Option<Divisor>,
    walk: Walk,
}

/// The map of values as rows of all heads.
pub(super) fn pixels(class: &Class, c: &Config, lanes: &Lanes) -> TensorMapDecl {
    let pixels = [lanes.heads * class.channels, c.held_boxes[1]];
    TensorMapDecl {
        swizzle: Swizzle::None,
        ..TensorMapDecl::tiled(class.value.dtype(), pixels)
    }
}

/// Levels that are kept in shared memory.
pub(super) type Held<E> = Ring<Tile<E>>;

impl<E: Texel, N: Number> Line<E, N> {
    pub(super) fn declare(k: Builder, class: &Class, c: &Config, lanes: Lanes) -> Self {
        let value = k.pointer("value").aligned_to(16);
        let pixels = (c.held > 0).then(|| k.tensor_map("pixels", pixels(class, c, &lanes)));
        let [locations, weights] =
            ["locations", "weights"].map(|name| k.pointer(name).aligned_to(16));
        let out = k.pointer("out").aligned_to(16);
        let [spatial, queries, heads] =
            ["spatial", "queries", "heads"].map(|name| k.param::<u32>(name));
        let (spatial, heads) = (spatial.at_least(1), heads.at_least(1));
        let [most_queries, most_pixels] =
            [1, class.pixel_bytes()].map(|each| (LIMIT - 1) / u64::from(each));
        spatial.at_most(MOST_SPATIAL);
        queries.at_most(most_queries as u32);
        heads.at_most(most_pixels as u32);
        heads.multiple_of(lanes.heads.into());
        k.limit(extent(queries) * heads, most_queries);
        k.limit(extent(spatial) * heads, most_pixels);
        let shares = Shares::declare(k, c);
        let levels = Extent::declare(k, class.levels);
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
            shares,
            of_batch: k.divisor("of_batch"),
            of_slices: (lanes.slices > 1).then(|| k.divisor("of_slices")),
            walk: Walk::declare(k, class, c, &levels),
            levels,
        }
    }

    /// How records look.
    pub(super) fn format(&self) -> Format {
        self.config.format(&self.class, &self.lanes)
    }

    /// Runs `f` for what a CTA works on.
    pub(super) fn each(&self, f: impl FnOnce(Item)) {
        self.shares.each(|visit| {
            let (batch, head, chunk) = self.group(visit.group);
            f(Item {
                batch,
                head,
                chunk,
                first: visit.from * self.config.round(&self.lanes),
                rounds: visit.rounds,
            });
        });
    }

    /// The batch, the first head and the first chunk of a group.
    #[track_caller]
    fn group(&self, group: Reg<u32>) -> (Reg<u32>, Reg<u32>, Option<Reg<u32>>) {
        let batch = self.of_batch.of(group);
        let groups = (self.heads >> self.lanes.heads.trailing_zeros()) * self.lanes.slices;
        let rest = group - batch * groups;
        let (heads, slice) = match self.of_slices {
            None => (rest, None),
            Some(by) => {
                let heads = by.of(rest);
                (heads, Some(rest - heads * self.lanes.slices))
            }
        };
        let chunk = slice.map(|s| s * self.lanes.pixel);
        (batch, heads * self.lanes.heads, chunk)
    }

    /// The first pixel of the levels that are kept, if any is.
    fn kept(&self) -> Option<Reg<u32>> {
        let first = self.class.levels - self.config.held;
        self.levels.get(first as usize).map(Extent::start)
    }

    /// Is a level kept?
    pub(super) fn is_kept(&self, level: u32) -> bool {
        level >= self.class.levels - self.config.held
    }

    /// The levels that are kept, as pixels of the heads of a warp.
    pub(super) fn held(&self, k: Builder) -> Option<Held<E>> {
        let cols = self.lanes.heads * self.class.channels;
        (self.config.held > 0)
            .then(|| k.ring("held", 1, |s| s.plain::<E>(self.config.held_pixels(), cols)))
    }

    /// Brings the levels that are kept, for every item; and those of the next
    /// item to the L2.
    pub(super) fn bring(&self, held: Held<E>) {
        let Some((map, start)) = self.pixels.zip(self.kept()) else {
            return;
        };
        let cols = self.lanes.heads * self.class.channels;
        let [copies, each] = self.config.held_boxes;
        let boxes = || (0..copies).map(|i| i * each);
        let corner = |group: Reg<u32>| {
            let (batch, head, _) = self.group(group);
            [head * self.class.channels, batch * self.spatial + start]
        };
        elect(|| {
            self.shares.each(|visit| {
                let slot = held.acquire();
                let [col, first] = corner(visit.group);
                for row in boxes() {
                    let to = slot.tiles().slice(row..row + each, 0..cols);
                    slot.load(map, to, [col, first + row]);
                }
                slot.commit();
                if_(visit.more, || {
                    let [col, first] = corner(visit.next);
                    for row in boxes() {
                        map.prefetch_box([col, first + row], None);
                    }
                });
            });
        });
    }

    /// A level as those know it who work out its points: its pixels are counted
    /// in shared memory where it is kept (`here`).
    #[track_caller]
    fn level(&self, extent: &Extent, here: Option<Reg<bool>>) -> Level {
        let start = match here.zip(self.kept()) {
            None => extent.start(),
            Some((here, first)) => select(here, extent.start() - first, extent.start()),
        };
        Level::new(extent, self.class.layout, start)
    }

    /// The level of that number.
    #[track_caller]
    pub(super) fn level_of(&self, level: Reg<u32>) -> Level {
        let extent = Extent::pick(&self.levels, level);
        let first = self.class.levels - self.config.held;
        self.level(&extent, (self.config.held > 0).then(|| level.ge(first)))
    }

    /// The query at a step of the walk, and whether there is such a step: else
    /// that of the last one.
    #[track_caller]
    pub(super) fn query(&self, step: Reg<u32>) -> (Reg<u32>, Reg<bool>) {
        let there = step.lt(self.queries);
        let step = step.min(self.queries - 1);
        (self.walk.query(&self.config, step), there)
    }

    /// The number of a query and head among all.
    #[track_caller]
    pub(super) fn number(&self, item: Item, query: Reg<u32>, head: Reg<u32>) -> Reg<u32> {
        (item.batch * self.queries + query) * self.heads + head
    }
}
