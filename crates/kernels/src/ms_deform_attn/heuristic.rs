//! Selects a config: applies the caller's choices, selects the rest, and checks that it fits the target.

use super::config::{
    COPIER_REGISTERS, Choice, Config, QueryOrder, RecordPath, Schedule, WorkSplit,
};
use super::kernel;
use super::lanes::{CornerReads, LANE_BYTES, LaneLayout};
use super::problem::{Class, INDEX_LIMIT, Problem};
use super::specialized;
use super::work_split;
use warpline_family::error::FamilyError;
use warpline_ir::Target;
use warpline_ir::builder::Resources;

/// Register budget of a sampling thread.
const PRODUCER_REGISTERS: u32 = 72;
/// Values of at most this size stay in the L2 regardless of the point distribution.
const L2_RESIDENT_BYTES: u64 = 16 << 20;
/// Columns of a strip.
const STRIP_WIDTH: u32 = 16;
/// Maximum pixels of one TMA copy of resident levels.
const MAX_BOX_PIXELS: u64 = 256;

fn reject<T>(text: String) -> Result<T, FamilyError> {
    Err(FamilyError::Config(text))
}

/// Rejects a value outside `1..=max`.
fn check_range(name: &str, value: u32, max: u32) -> Result<(), FamilyError> {
    match value {
        n if n == 0 || n > max => reject(format!("--{name} must be 1 to {max}, not {n}")),
        _ => Ok(()),
    }
}

/// Returns the maximum shared memory in bytes that leaves the L1 enough room for values.
fn shared_bytes_that_leave_l1(target: &Target) -> u32 {
    target.shared_bytes / 4 * 3
}

/// Returns the config with the caller's choices applied.
///
/// Specialized roles pay off for one head, whose lanes load two pixels at a time. With more heads a
/// point has fewer lanes, and passing records costs more. The boxes schedule is never selected: the TMA unit
/// takes eight cycles per box.
pub(super) fn select(p: &Problem, choice: &Choice, target: &Target) -> Result<Config, FamilyError> {
    let select = |schedule: Schedule| Draft::select(p, choice, schedule, target);
    if let Some(schedule) = choice.schedule {
        return select(schedule);
    }
    match (select(Schedule::Plain), select(Schedule::Specialized)) {
        (Ok(plain), Ok(specialized)) => {
            let leaves_l1 = specialized.shared_bytes <= shared_bytes_that_leave_l1(target);
            Ok(match specialized.reads {
                CornerReads::Pair if leaves_l1 => specialized,
                _ => plain,
            })
        }
        (Err(_), Ok(config)) | (Ok(config), Err(_)) => Ok(config),
        (Err(_), Err(error)) if choice.unsupported_option(Schedule::Plain).is_some() => Err(error),
        (Err(error), Err(_)) => Err(error),
    }
}

/// Returns the choice with the fields fixed on which the bits of a query may depend, for batch
/// invariance: the order in which its points are added. The heuristic selects it without the number
/// of queries; tuned configs depend on that number.
pub(super) fn fixed_choice(
    p: &Problem,
    choice: &Choice,
    target: &Target,
) -> Result<Choice, FamilyError> {
    if choice.batch_invariant != Some(true) {
        return Ok(choice.clone());
    }
    let c = select(p, choice, target)?;
    Ok(Choice {
        schedule: Some(c.schedule),
        reads: choice
            .reads
            .or((c.schedule != Schedule::Boxes).then_some(c.reads)),
        points_per_record: choice
            .points_per_record
            .or((c.schedule != Schedule::Boxes).then_some(c.points_per_record)),
        promote_every: Some(c.promote_every),
        ..choice.clone()
    })
}

/// A config under construction: each step sets or checks a part of it.
struct Draft<'a> {
    p: &'a Problem,
    choice: &'a Choice,
    target: &'a Target,
    class: Class,
    lanes: LaneLayout,
    config: Config,
}

impl<'a> Draft<'a> {
    /// Returns the config of a schedule.
    fn select(
        p: &'a Problem,
        choice: &'a Choice,
        schedule: Schedule,
        target: &'a Target,
    ) -> Result<Config, FamilyError> {
        if let Some(message) = choice.unsupported_option(schedule) {
            return reject(message);
        }
        let mut draft = Self::new(p, choice, schedule, target);
        draft.set_record_format()?;
        draft.check_query_order()?;
        draft.set_roles()?;
        draft.check_tma_points()?;
        draft.set_resident_levels()?;
        draft.check_shared_memory()?;
        draft.set_work_split()?;
        Ok(draft.config)
    }

    /// Applies the choices that do not depend on later steps.
    fn new(p: &'a Problem, choice: &'a Choice, schedule: Schedule, target: &'a Target) -> Self {
        let class = p.class();
        let reads = choice.reads.unwrap_or(match (schedule, p.heads) {
            (Schedule::Boxes, _) => CornerReads::Box,
            (_, 1) => CornerReads::Pair,
            (_, n) if n.is_multiple_of(2) => CornerReads::Pixel,
            _ => CornerReads::Pair,
        });
        let lanes = LaneLayout::new(&class, reads, p.heads);
        let query_order = choice.query_order.unwrap_or(QueryOrder::Rows);
        let config = Config {
            schedule,
            reads,
            warps: 0,
            producers: 0,
            stages: 0,
            tma_points: choice.tma_points.unwrap_or(false),
            registers: None,
            resident_levels: 0,
            resident_boxes: [0; 2],
            points_in_flight: choice.points_in_flight.unwrap_or(
                match (schedule, query_order, lanes.corner_groups) {
                    (Schedule::Boxes, ..) => 1,
                    (_, _, 1) => 3,
                    // More warps leave fewer registers per thread.
                    (Schedule::Specialized, QueryOrder::Strips, _) => 2,
                    _ => 4,
                },
            ),
            // Four or six products.
            promote_every: choice.promote_every.unwrap_or(match lanes.corner_groups {
                1 => 1,
                2 => 3,
                _ => 4,
            }),
            points_per_record: 1,
            record_path: choice.record_path.unwrap_or(match schedule {
                Schedule::Plain => RecordPath::Shuffles,
                Schedule::Specialized | Schedule::Boxes => RecordPath::Shared,
            }),
            prefetch: choice.prefetch.unwrap_or(false),
            query_order,
            strip_width: choice.strip_width.unwrap_or(STRIP_WIDTH),
            work_split: WorkSplit::Parts,
            parts: 1,
            ctas: 1,
            shared_bytes: 0,
        };
        Self {
            p,
            choice,
            target,
            class,
            lanes,
            config,
        }
    }

    /// Sets the points per record, and checks the points in flight and per f16 sum.
    fn set_record_format(&mut self) -> Result<(), FamilyError> {
        check_range("points-in-flight", self.config.points_in_flight, 8)?;
        // With eight f16 products per sum, about one sum in ten million reaches its tolerance.
        check_range(
            "promote-every",
            self.config.promote_every,
            8 / self.lanes.corners_per_lane(),
        )?;
        // Consecutive points of a lane or a level, and the preferred points per record. A load from shared memory
        // returns the words of two points at once, a shuffle only one word.
        let (consecutive, preferred): (u32, &[u32]) = match self.config.schedule {
            Schedule::Plain => (self.lanes.consecutive_points(&self.class), &[2]),
            Schedule::Specialized => (self.class.points, &[4, 2]),
            Schedule::Boxes => (1, &[]),
        };
        let pixels = self.p.total_pixels();
        // Pixels of a shared word have 16 bits each.
        let is_supported = |n: u32| n == 1 || consecutive.is_multiple_of(n) && pixels <= 1 << 16;
        let preferred = preferred.iter().copied().find(|&n| is_supported(n));
        let preferred = preferred.unwrap_or(1);
        self.config.points_per_record = match self.choice.points_per_record.unwrap_or(preferred) {
            n if !matches!(n, 1 | 2 | 4) => {
                return reject(format!("--points-per-record must be 1, 2 or 4, not {n}"));
            }
            n if !is_supported(n) => {
                return reject(format!(
                    "--points-per-record {n} needs a multiple of {n} consecutive points and at most 65536 pixels, not {consecutive} points and {pixels} pixels"
                ));
            }
            n => n,
        };
        Ok(())
    }

    /// Checks the query order.
    fn check_query_order(&self) -> Result<(), FamilyError> {
        let (p, strip) = (self.p, self.config.strip_width);
        if !strip.is_power_of_two() {
            return reject(format!("--strip-width must be a power of two, not {strip}"));
        }
        let tallest = p
            .shapes
            .0
            .iter()
            .map(|shape| p.stored_size(*shape)[0])
            .max();
        if tallest.is_some_and(|height| height * u64::from(strip) >= 1 << 31) {
            return reject(format!(
                "--strip-width {strip} is too wide: a strip must have less than 2147483648 queries"
            ));
        }
        if self.config.query_order == QueryOrder::Strips
            && u64::from(p.num_query) != p.total_pixels()
        {
            return reject(format!(
                "--query-order strips needs one query for each of the {} pixels, not {} queries",
                p.total_pixels(),
                p.num_query
            ));
        }
        Ok(())
    }

    /// Sets the warps of each role and the stages of the rings.
    fn set_roles(&mut self) -> Result<(), FamilyError> {
        let (choice, config) = (self.choice, &mut self.config);
        match config.schedule {
            Schedule::Plain if config.record_path == RecordPath::Shared => {
                return reject(
                    "--schedule plain does not support --record-path shared\nhelp: use --record-path shuffles".into(),
                );
            }
            Schedule::Plain => {
                if let Some(warps) = choice.warps {
                    check_range("warps", warps, 31)?;
                }
                return Ok(());
            }
            Schedule::Specialized => {
                // More stages would take shared memory from the L1.
                config.stages = choice.stages.unwrap_or(match config.query_order {
                    QueryOrder::Rows if !config.tma_points => 3,
                    _ => 2,
                });
                config.producers = choice.producers.unwrap_or(2);
                config.warps = choice
                    .warps
                    .unwrap_or(match (config.query_order, config.reads) {
                        (QueryOrder::Strips, CornerReads::Pair) => 24,
                        _ => 16,
                    });
                if !(1..=4).contains(&config.producers) {
                    return reject(format!(
                        "--producers must be 1 to 4 of every eight warps, not {}",
                        config.producers
                    ));
                }
                if !(8..=30).contains(&config.warps) {
                    return reject(format!(
                        "--warps must be 8 to 30 in schedule specialized, not {}",
                        config.warps
                    ));
                }
            }
            Schedule::Boxes => {
                config.stages = choice.stages.unwrap_or(4);
                if let Some(warps) = choice.warps
                    && !((2..=32).contains(&warps) && warps.is_multiple_of(2))
                {
                    return reject(format!(
                        "--warps must be even and 2 to 32 in schedule boxes, not {warps}"
                    ));
                }
            }
        }
        match config.stages {
            2..=4 => Ok(()),
            n => reject(format!("--stages must be 2 to 4, not {n}")),
        }
    }

    /// Returns the config with the shared memory that the builder reports.
    fn with_shared_bytes(&self, c: Config) -> Result<Config, FamilyError> {
        let roles = |k| kernel::roles(k, &self.class, &c, self.lanes);
        let shared_bytes = Resources::of(self.target, roles)?.shared_bytes;
        Ok(Config { shared_bytes, ..c })
    }

    /// Returns the config with that many resident levels, and the warps and registers that follow.
    fn with_resident_levels(&self, resident_levels: u32) -> Config {
        let mut config = Config {
            resident_levels,
            resident_boxes: resident_boxes(self.p, &self.lanes, resident_levels),
            ..self.config
        };
        match config.schedule {
            Schedule::Plain => {
                let max_warps = || self.max_gather_warps(resident_levels);
                config.warps = self.choice.warps.unwrap_or_else(max_warps);
            }
            Schedule::Specialized => config.registers = self.register_budgets(&config),
            Schedule::Boxes => {}
        }
        config
    }

    /// Sets the resident levels and the sizes that follow.
    fn set_resident_levels(&mut self) -> Result<(), FamilyError> {
        let (p, levels) = (self.p, self.class.levels);
        let sliced = self.lanes.channel_slices > 1;
        self.config = match self.choice.resident_levels {
            Some(n) if n > levels => {
                return reject(format!(
                    "--resident-levels is {n}, but there are only {levels} levels"
                ));
            }
            Some(n) if sliced && n > 0 => {
                return reject(format!(
                    "--resident-levels {n} needs all channels of a head in one warp, but {} channels of {} are more",
                    p.channels,
                    p.dtype.dtype()
                ));
            }
            Some(n) if n > 0 && !tma_can_load_pixels(p) => {
                return reject(format!(
                    "--resident-levels {n} needs less than {INDEX_LIMIT} pixels over all batches (TMA coordinates have 31 bits), not {}\nhelp: use --resident-levels 0",
                    all_pixels(p)
                ));
            }
            Some(n) => self.with_shared_bytes(self.with_resident_levels(n))?,
            None if self.config.schedule == Schedule::Boxes => self.with_box_warps()?,
            None => {
                let max_resident_levels = match sliced || !tma_can_load_pixels(p) {
                    true => 0,
                    false => levels.saturating_sub(1).clamp(1, 2),
                };
                let mut found =
                    self.with_shared_bytes(self.with_resident_levels(max_resident_levels))?;
                while found.resident_levels > 0
                    && found.shared_bytes > shared_bytes_that_leave_l1(self.target)
                {
                    found = self
                        .with_shared_bytes(self.with_resident_levels(found.resident_levels - 1))?;
                }
                found
            }
        };
        Ok(())
    }

    /// Returns the config of schedule boxes with as many warps as shared memory allows.
    fn with_box_warps(&self) -> Result<Config, FamilyError> {
        let with_warps = |warps: u32| {
            self.with_shared_bytes(Config {
                warps,
                ..self.config
            })
        };
        if let Some(warps) = self.choice.warps {
            return with_warps(warps);
        }
        let mut found = with_warps(20)?;
        while found.warps > 2 && found.shared_bytes > self.target.shared_bytes {
            found = with_warps(found.warps - 2)?;
        }
        Ok(found)
    }

    /// Estimates the registers of a gathering thread: values in flight, sampled records, sums, and 22 more.
    fn gather_registers(&self) -> u32 {
        let (class, lanes) = (&self.class, &self.lanes);
        let weights = lanes.weight_words(class);
        let in_flight =
            (self.config.points_in_flight + 1) * (lanes.corners_per_lane() * 4 + weights);
        let records = lanes.points_per_lane(class) * lanes.corner_groups * (1 + weights);
        let sums = LANE_BYTES / class.value.dtype().bytes() as u32;
        22 + in_flight + records + sums
    }

    /// Returns the most gathering warps that the register file holds, in multiples of four warps; one of them
    /// loads resident levels instead, if there are any.
    fn max_gather_warps(&self, resident_levels: u32) -> u32 {
        let registers = self.gather_registers().next_multiple_of(8).min(248);
        let quarter = self.target.registers / 4 / 32;
        (quarter / registers * 4).clamp(4, 32) - u32::from(resident_levels > 0)
    }

    /// Rejects TMA loads of points if tensor maps do not support their layout.
    fn check_tma_points(&self) -> Result<(), FamilyError> {
        let (config, lanes) = (&self.config, &self.lanes);
        let round = config.queries_per_round(lanes);
        let order = config.query_order.keyword();
        let is_supported = config.query_order == QueryOrder::Rows
            && specialized::tma_can_load_points(self.p, lanes, round);
        if config.tma_points && !is_supported {
            return reject(format!(
                "--tma-points true needs consecutive queries and rows of points that are multiples of 16 bytes and at most 256 elements wide, not {} points of {} heads in {}, of {round} queries, in query order {order}",
                self.class.all_points(),
                lanes.heads_per_warp,
                self.class.point.dtype(),
            ));
        }
        Ok(())
    }

    /// Returns the register budgets of the sampling and the gathering role, if both are whole warpgroups.
    /// Gathering threads get the remaining registers.
    fn register_budgets(&self, c: &Config) -> Option<[u32; 2]> {
        let (sampling, gathering) = (c.producer_warps(), c.gather_warps());
        let copying = 4 * c.copy_warps();
        let warps = sampling + gathering + copying;
        if !sampling.is_multiple_of(4) || !gathering.is_multiple_of(4) || warps > 32 {
            return None;
        }
        let at_launch = self.target.registers / 32 / warps / 8 * 8;
        let sample_registers = PRODUCER_REGISTERS.min(at_launch);
        let remaining =
            at_launch * warps - sample_registers * sampling - COPIER_REGISTERS * copying;
        Some([sample_registers, (remaining / gathering / 8 * 8).min(248)])
    }

    /// Rejects a config that needs more shared memory than the target has.
    fn check_shared_memory(&self) -> Result<(), FamilyError> {
        let (config, available) = (&self.config, self.target.shared_bytes);
        let bytes = config.shared_bytes;
        if bytes <= available {
            return Ok(());
        }
        let subject = match config.schedule {
            Schedule::Boxes => format!("{} warps and {} stages", config.warps, config.stages),
            _ => format!("{} resident levels", config.resident_levels),
        };
        reject(format!(
            "{subject} need {bytes} bytes of shared memory, but {} has {available}",
            self.target.name
        ))
    }

    /// Sets the work split and the grid.
    fn set_work_split(&mut self) -> Result<(), FamilyError> {
        let (p, choice) = (self.p, self.choice);
        let groups = work_split::groups(p, &self.lanes);
        let round = self.config.queries_per_round(&self.lanes);
        let (parts, wave_overhead) = split_into_parts(p, round, groups, self.target);
        // Parts if the values do not stay in the L2, points may be anywhere, and all CTAs get about the same work;
        // else ranges.
        let exceeds_l2 = p.input_specs()[0].bytes() as u64 > L2_RESIDENT_BYTES;
        let prefers_parts =
            self.config.query_order == QueryOrder::Rows && exceeds_l2 && wave_overhead < 1.05;
        self.config.work_split = match (choice.work_split, choice.parts) {
            (Some(WorkSplit::Ranges), Some(n)) => {
                return reject(format!(
                    "--parts {n} requires --work-split parts (selected: ranges)"
                ));
            }
            (Some(work_split), _) => work_split,
            (None, Some(_)) => WorkSplit::Parts,
            (None, None) if prefers_parts => WorkSplit::Parts,
            (None, None) => WorkSplit::Ranges,
        };
        let units = match self.config.work_split {
            WorkSplit::Parts => {
                self.config.parts = match choice.parts {
                    Some(0) => return reject("--parts must be at least 1, not 0".into()),
                    Some(n) => n.min(p.num_query.max(1)),
                    None => parts,
                };
                groups * u64::from(self.config.parts)
            }
            WorkSplit::Ranges => groups * u64::from(p.num_query.div_ceil(round)),
        };
        if units >= 1 << 31 {
            return reject(format!(
                "the work must have less than 2147483648 parts over all batches and heads, not {units}"
            ));
        }
        self.config.ctas = match choice.ctas {
            Some(0) => return reject("--ctas is 0, but a grid needs at least 1 CTA".into()),
            Some(n) => n,
            None => units.clamp(1, self.target.sms.into()) as u32,
        };
        Ok(())
    }
}

/// Returns the pixels of all levels over all batches.
fn all_pixels(p: &Problem) -> u64 {
    u64::from(p.batch.max(1)).saturating_mul(p.total_pixels())
}

/// Returns whether TMA can load resident levels: a pixel index over all batches is a signed 32-bit
/// coordinate.
fn tma_can_load_pixels(p: &Problem) -> bool {
    all_pixels(p) < INDEX_LIMIT
}

/// Returns the copies that load the last levels, and the pixels of each, with the least padding.
fn resident_boxes(p: &Problem, lanes: &LaneLayout, resident_levels: u32) -> [u32; 2] {
    let first_level = p.shapes.0.len() - resident_levels as usize;
    let pixels = |shape: &[u32; 2]| p.stored_size(*shape).iter().product::<u64>();
    let total: u64 = p.shapes.0[first_level..].iter().map(pixels).sum();
    if total == 0 {
        return [0; 2];
    }
    // Shared-memory destinations of copies are multiples of 128 bytes.
    let row = u64::from(lanes.heads_per_warp * p.class().pixel_bytes());
    let alignment = 128 >> row.trailing_zeros().min(7);
    let min_copies = total.div_ceil(MAX_BOX_PIXELS);
    let boxes = |copies: u64| [copies, total.div_ceil(copies).next_multiple_of(alignment)];
    let candidates = (min_copies..2 * min_copies + 8)
        .map(boxes)
        .filter(|[_, each]| *each <= MAX_BOX_PIXELS);
    let best = candidates.min_by_key(|[copies, each]| copies * each);
    best.unwrap_or_default().map(|x| x as u32)
}

/// Returns the number of parts that fills the waves best, and its time relative to full waves.
fn split_into_parts(p: &Problem, round: u32, groups: u64, target: &Target) -> (u32, f64) {
    let sms = u64::from(target.sms);
    // A part has at least four rounds of all warps.
    let max_parts = p.num_query.div_ceil(4 * round).clamp(1, 64);
    let wave_overhead = |parts: u32| {
        let items = (groups * u64::from(parts)).max(1);
        let waves = items.div_ceil(sms);
        (waves * sms) as f64 / items as f64
    };
    // Prefer fewer parts among equally full waves.
    let cost = |&n: &u32| wave_overhead(n) + 0.002 * f64::from(n);
    let best = (1..=max_parts).min_by(|a, b| cost(a).total_cmp(&cost(b)));
    let best = best.unwrap_or(1);
    (best, wave_overhead(best))
}

#[cfg(test)]
mod tests {
    use super::super::{MsDeformAttn, table};
    use super::*;
    use warpline_family::family::Family as _;

    #[test]
    fn shared_bytes_match_the_built_kernel() {
        let target = Target::SM_90A;
        for case in table::cases().into_iter().step_by(7) {
            let config = select(&case.problem, &case.choice, &target).unwrap();
            let plan = MsDeformAttn::plan(&case.problem, &config, &target).unwrap();
            let kernel = &plan.steps[0].kernel;
            assert_eq!(config.shared_bytes, kernel.shared_bytes, "{config:?}");
        }
    }

    fn rejection(choice: Choice) -> String {
        let problem = Problem::new(1, 192, 1, 4, &[[16, 12]]);
        let config = select(&problem, &choice, &Target::SM_90A);
        config.map_or_else(|e| e.to_string(), |config| format!("{config:?}"))
    }

    #[test]
    fn illegal_choices_are_rejected() {
        let strip = |strip: u32| Choice {
            query_order: Some(QueryOrder::Strips),
            strip_width: Some(strip),
            ..Choice::default()
        };
        assert!(rejection(strip(0)).contains("a power of two, not 0"));
        assert!(rejection(strip(12)).contains("a power of two, not 12"));
        assert!(rejection(strip(1 << 31)).contains("--strip-width 2147483648 is too wide"));
        let roles = |producers: u32, stages: u32| Choice {
            producers: Some(producers),
            stages: Some(stages),
            ..Choice::default()
        };
        assert!(
            rejection(roles(5, 2))
                .contains("--producers must be 1 to 4 of every eight warps, not 5")
        );
        assert!(rejection(roles(2, 5)).contains("--stages must be 2 to 4, not 5"));
        let warps = Choice {
            warps: Some(31),
            ..roles(2, 2)
        };
        assert!(
            rejection(warps).contains("--warps must be 8 to 30 in schedule specialized, not 31")
        );
        let records_of = |points: u32| Choice {
            schedule: Some(Schedule::Plain),
            points_per_record: Some(points),
            ..Choice::default()
        };
        assert!(rejection(records_of(3)).contains("--points-per-record must be 1, 2 or 4, not 3"));
        assert!(rejection(records_of(4)).contains("a multiple of 4 consecutive points"));
        let boxes = |choice: Choice| Choice {
            schedule: Some(Schedule::Boxes),
            ..choice
        };
        assert!(
            rejection(boxes(roles(2, 2)))
                .contains("--producers requires --schedule specialized (selected: boxes)")
        );
        let resident = Choice {
            resident_levels: Some(1),
            ..Choice::default()
        };
        assert!(
            rejection(boxes(resident.clone()))
                .contains("requires --schedule plain or specialized (selected: boxes)")
        );
        let huge = Problem::new(1 << 24, 1, 1, 4, &[[16, 12]]);
        let target = &Target::SM_90A;
        let error = select(&huge, &resident, target).unwrap_err().to_string();
        assert!(
            error.contains("less than 2147483648 pixels over all batches"),
            "{error}"
        );
        let selected = select(&huge, &Choice::default(), target).unwrap();
        assert_eq!(selected.resident_levels, 0);
        let odd = Choice {
            warps: Some(7),
            ..Choice::default()
        };
        assert!(
            rejection(boxes(odd))
                .contains("--warps must be even and 2 to 32 in schedule boxes, not 7")
        );
        let plain = Choice {
            schedule: Some(Schedule::Plain),
            ..roles(2, 2)
        };
        assert!(rejection(plain).contains("--producers requires --schedule specialized"));
        let parts = Choice {
            work_split: Some(WorkSplit::Ranges),
            parts: Some(3),
            ..Choice::default()
        };
        assert!(rejection(parts).contains("--parts 3 requires --work-split parts"));
    }
}
