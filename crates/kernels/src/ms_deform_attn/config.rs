//! Tuning parameters: schedules, the part that the caller fixes, and the complete config.

use super::lanes::{CornerReads, LaneLayout};
use super::problem::Class;
use super::record::{RecordFormat, RecordLayout};
use warpline_family::{fields, keywords};

keywords! {
    /// The division of the kernel into roles.
    pub enum Schedule {
        /// Every warp samples its points, gathers and sums
        Plain = "plain",
        /// Some warps sample points, others gather them
        Specialized = "specialized",
        /// TMA copies the four pixels of every point; other warps sum them
        Boxes = "boxes",
    }
}

keywords! {
    /// The order in which queries are processed.
    pub enum QueryOrder {
        /// In index order
        Rows = "rows",
        /// In vertical strips of every level; needs one query per pixel
        Strips = "strips",
    }
}

keywords! {
    /// How sampled records reach the lanes that gather.
    pub enum RecordPath {
        /// By warp shuffles
        Shuffles = "shuffles",
        /// Through shared memory
        Shared = "shared",
    }
}

keywords! {
    /// How queries are divided among CTAs.
    pub enum WorkSplit {
        /// In parts of each batch, in grid-stride order: few batches are active at a time
        Parts = "parts",
        /// In one range per CTA, across batch boundaries
        Ranges = "ranges",
    }
}

fields! {
    /// The tuning parameters that the caller fixes.
    #[derive(Default)]
    pub struct Choice {
        /// Division of the kernel into roles
        pub schedule: Option<Schedule>,
        /// How the lanes of a query load the corners of a point
        pub reads: Option<CornerReads>,
        /// Warps that gather; in schedules specialized and boxes also those that sample
        pub warps: Option<u32>,
        /// Sampling warps of every eight warps, 1 to 4; the others gather
        pub producers: Option<u32>,
        /// Stages of the rings between sampling and gathering warps
        pub stages: Option<u32>,
        /// Load locations and attention weights by TMA, one ring ahead of the sampling warps
        pub tma_points: Option<bool>,
        /// Levels, counted from the last, that stay in shared memory
        pub resident_levels: Option<u32>,
        /// Points whose corner loads are in flight while earlier points are summed
        pub points_in_flight: Option<u32>,
        /// Points summed in f16 before the sum is added in f32
        pub promote_every: Option<u32>,
        /// Points per sampled record: 1, 2 or 4; two pixels share a word
        pub points_per_record: Option<u32>,
        /// How sampled records reach the lanes that gather
        pub record_path: Option<RecordPath>,
        /// Load the points of the next round before gathering this one
        pub prefetch: Option<bool>,
        /// Order in which queries are processed
        pub query_order: Option<QueryOrder>,
        /// Columns of a strip
        pub strip_width: Option<u32>,
        /// How queries are divided among CTAs
        pub work_split: Option<WorkSplit>,
        /// Parts that the queries of a batch and head are divided into
        pub parts: Option<u32>,
        /// CTAs of the grid
        pub ctas: Option<u32>,
        /// The bits of a query do not depend on the other queries or on their number: tuned configs are not used
        pub batch_invariant: Option<bool>,
    }
}

impl Choice {
    /// Returns the error message for the first option that a schedule does not support.
    pub(super) fn unsupported_option(&self, schedule: Schedule) -> Option<String> {
        use Schedule::{Boxes, Plain, Specialized};
        if self.reads == Some(CornerReads::Box) {
            return Some("--reads must be pair or pixel, not box".to_owned());
        }
        let gathering: &[Schedule] = &[Plain, Specialized];
        let options: [(&str, bool, &[Schedule]); 9] = [
            ("reads", self.reads.is_some(), gathering),
            ("producers", self.producers.is_some(), &[Specialized]),
            ("stages", self.stages.is_some(), &[Specialized, Boxes]),
            ("tma-points", self.tma_points.is_some(), &[Specialized]),
            ("resident-levels", self.resident_levels.is_some(), gathering),
            (
                "points-in-flight",
                self.points_in_flight.is_some(),
                gathering,
            ),
            (
                "points-per-record",
                self.points_per_record.is_some(),
                gathering,
            ),
            ("record-path", self.record_path.is_some(), gathering),
            ("prefetch", self.prefetch.is_some(), &[Plain]),
        ];
        let is_unsupported = |(_, is_set, schedules): &(_, bool, &[Schedule])| {
            *is_set && !schedules.contains(&schedule)
        };
        let (option, _, schedules) = options.into_iter().find(is_unsupported)?;
        let names: Vec<_> = schedules
            .iter()
            .map(|schedule| schedule.keyword())
            .collect();
        Some(format!(
            "--{option} requires --schedule {} (selected: {})",
            names.join(" or "),
            schedule.keyword()
        ))
    }
}

/// The complete set of tuning parameters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// Division of the kernel into roles.
    pub schedule: Schedule,
    /// How the lanes of a query load the corners of a point.
    pub reads: CornerReads,
    /// Warps that gather or sample.
    pub warps: u32,
    /// Sampling warps of every eight warps.
    pub producers: u32,
    /// Stages of the rings between sampling and gathering warps.
    pub stages: u32,
    /// Whether TMA loads locations and attention weights.
    pub tma_points: bool,
    /// Register budgets of the sampling and the gathering role, if `setmaxnreg` is used.
    pub registers: Option<[u32; 2]>,
    /// Levels, counted from the last, that stay in shared memory.
    pub resident_levels: u32,
    /// TMA copies that load the resident levels, and the pixels of each; 0 without resident levels.
    pub resident_boxes: [u32; 2],
    /// Points whose corner loads are in flight while earlier points are summed.
    pub points_in_flight: u32,
    /// Points summed in f16 before the sum is added in f32.
    pub promote_every: u32,
    /// Points per sampled record.
    pub points_per_record: u32,
    /// How sampled records reach the lanes that gather.
    pub record_path: RecordPath,
    /// Whether points are loaded one round ahead.
    pub prefetch: bool,
    /// Order in which queries are processed.
    pub query_order: QueryOrder,
    /// Columns of a strip.
    pub strip_width: u32,
    /// How queries are divided among CTAs.
    pub work_split: WorkSplit,
    /// Parts per batch and head, for [`WorkSplit::Parts`].
    pub parts: u32,
    /// CTAs of the grid.
    pub ctas: u32,
    /// Shared memory of a CTA in bytes, as placed by the builder.
    pub shared_bytes: u32,
}

impl From<&Config> for Choice {
    fn from(c: &Config) -> Self {
        Self {
            schedule: Some(c.schedule),
            reads: Some(c.reads),
            warps: Some(c.warps),
            producers: Some(c.producers),
            stages: Some(c.stages),
            tma_points: Some(c.tma_points),
            resident_levels: Some(c.resident_levels),
            points_in_flight: Some(c.points_in_flight),
            promote_every: Some(c.promote_every),
            points_per_record: Some(c.points_per_record),
            record_path: Some(c.record_path),
            prefetch: Some(c.prefetch),
            query_order: Some(c.query_order),
            strip_width: Some(c.strip_width),
            work_split: Some(c.work_split),
            parts: Some(c.parts),
            ctas: Some(c.ctas),
            batch_invariant: None,
        }
    }
}

/// Register budget of a thread that issues TMA copies.
pub(super) const COPIER_REGISTERS: u32 = 24;

impl Config {
    /// Returns the pixels of the resident levels, including the padding of the last copy.
    pub(super) fn resident_pixels(&self) -> u32 {
        self.resident_boxes.into_iter().product()
    }

    /// Returns the format of sampled records.
    pub(super) fn format(&self, class: &Class, lanes: &LaneLayout) -> RecordFormat {
        RecordFormat {
            points: self.points_per_record,
            weights: lanes.weight_words(class),
        }
    }

    /// Returns the layout of a round's records in shared memory.
    pub(super) fn record_layout(&self, class: &Class, lanes: &LaneLayout) -> RecordLayout {
        RecordLayout::new(self.format(class, lanes), class, lanes, self.gather_warps())
    }

    /// Returns the number of sampling warps.
    pub(super) fn producer_warps(&self) -> u32 {
        match self.schedule {
            Schedule::Plain => 0,
            Schedule::Specialized => self.warps / 8 * self.producers,
            Schedule::Boxes => self.warps / 2,
        }
    }

    /// Returns the number of gathering warps.
    pub(super) fn gather_warps(&self) -> u32 {
        self.warps - self.producer_warps()
    }

    /// Returns the number of warps that issue TMA copies.
    pub(super) fn copy_warps(&self) -> u32 {
        u32::from(self.resident_levels > 0) + u32::from(self.tma_points)
    }

    /// Returns the queries that a CTA gathers at once.
    pub(super) fn queries_per_round(&self, lanes: &LaneLayout) -> u32 {
        self.gather_warps() * lanes.queries_per_warp()
    }
}
