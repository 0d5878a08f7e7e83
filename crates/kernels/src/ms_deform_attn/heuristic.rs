//! Selects a config: the caller's choices, the best values of the rest, and whether it fits the
//! target.

use super::config::{COPIER_REGISTERS, Choice, Config, Form, Handed, Order, Share};
use super::kernel;
use super::lanes::{BYTES, Lanes, Reads};
use super::problem::{Class, Problem};
use super::share;
use super::specialized;
use warpline_family::error::FamilyError;
use warpline_ir::Target;
use warpline_ir::build::Resources;

/// Registers of a thread that works out points for others.
const PRODUCER_REGISTERS: u32 = 72;
/// Values that are near wherever points lie.
const NEAR_BYTES: u64 = 16 << 20;
/// Columns of a strip.
const STRIP: u32 = 16;
/// The most pixels that one copy brings of levels that are kept.
const BOX: u64 = 256;

fn refuse<T>(text: String) -> Result<T, FamilyError> {
    Err(FamilyError::Config(text))
}

fn within(name: &str, value: u32, most: u32) -> Result<(), FamilyError> {
    match value {
        n if n == 0 || n > most => refuse(format!("--{name} is 1 to {most}, not {n}")),
        _ => Ok(()),
    }
}

/// The most shared memory, in bytes, that leaves the L1 enough to keep values near.
fn near_bytes(target: &Target) -> u32 {
    target.shared_bytes / 4 * 3
}

/// Returns the config with the caller's choices in it, or why there is none.
///
/// Roles pay for one head, whose lanes get two pixels at a time; with more
/// heads a point has fewer lanes, and to hand it on costs more. Boxes never
/// do: the engine that copies takes eight cycles for each.
pub(super) fn select(p: &Problem, choice: &Choice, target: &Target) -> Result<Config, FamilyError> {
    let of = |form: Form| Draft::select(p, choice, form, target);
    if let Some(form) = choice.form {
        return of(form);
    }
    match (of(Form::Plain), of(Form::Specialized)) {
        (Ok(plain), Ok(roles)) => {
            let near = roles.shared_bytes <= near_bytes(target);
            Ok(match roles.reads {
                Reads::Pair if near => roles,
                _ => plain,
            })
        }
        (Err(_), Ok(config)) | (Ok(config), Err(_)) => Ok(config),
        (Err(_), Err(refused)) if choice.misplaced(Form::Plain).is_some() => Err(refused),
        (Err(refused), Err(_)) => Err(refused),
    }
}

/// A config in the making: each step sets some of it, or says why it cannot be.
struct Draft<'a> {
    p: &'a Problem,
    choice: &'a Choice,
    target: &'a Target,
    class: Class,
    lanes: Lanes,
    config: Config,
}

impl<'a> Draft<'a> {
    /// The config of a form.
    fn select(
        p: &'a Problem,
        choice: &'a Choice,
        form: Form,
        target: &'a Target,
    ) -> Result<Config, FamilyError> {
        if let Some(why) = choice.misplaced(form) {
            return refuse(why);
        }
        let mut draft = Self::start(p, choice, form, target);
        draft.points()?;
        draft.walk()?;
        draft.roles()?;
        draft.copied()?;
        draft.keep()?;
        draft.fit()?;
        draft.share()?;
        Ok(draft.config)
    }

    /// What is said, and what needs no look at the rest.
    fn start(p: &'a Problem, choice: &'a Choice, form: Form, target: &'a Target) -> Self {
        let class = p.class();
        let reads = choice.reads.unwrap_or(match (form, p.heads) {
            (Form::Boxes, _) => Reads::Box,
            (_, 1) => Reads::Pair,
            (_, n) if n.is_multiple_of(2) => Reads::Pixel,
            _ => Reads::Pair,
        });
        let lanes = Lanes::new(&class, reads, p.heads);
        let order = choice.order.unwrap_or(Order::Rows);
        let config = Config {
            form,
            reads,
            warps: 0,
            producers: 0,
            stages: 0,
            copied: choice.copied.unwrap_or(false),
            registers: None,
            held: 0,
            held_boxes: [0; 2],
            ahead: choice.ahead.unwrap_or(match (form, order, lanes.sides) {
                (Form::Boxes, ..) => 1,
                (_, _, 1) => 3,
                // More warps have fewer registers.
                (Form::Specialized, Order::Strips, _) => 2,
                _ => 4,
            }),
            // Four or six products.
            sums: choice.sums.unwrap_or(match lanes.sides {
                1 => 1,
                2 => 3,
                _ => 4,
            }),
            joined: 1,
            handed: choice.handed.unwrap_or(match form {
                Form::Plain => Handed::Shuffles,
                Form::Specialized | Form::Boxes => Handed::Shared,
            }),
            prefetch: choice.prefetch.unwrap_or(false),
            order,
            strip: choice.strip.unwrap_or(STRIP),
            share: Share::Parts,
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

    /// How points are handed on and summed.
    fn points(&mut self) -> Result<(), FamilyError> {
        within("ahead", self.config.ahead, 8)?;
        // Of eight products in f16, one in ten million sums is off by its bound.
        within("sums", self.config.sums, 8 / self.lanes.corners())?;
        // Points that follow each other in a lane, or in a level; and how many
        // of them are best handed on: shared memory gives words of two at once,
        // shuffles one.
        let (in_row, best): (u32, &[u32]) = match self.config.form {
            Form::Plain => (self.lanes.in_row(&self.class), &[2]),
            Form::Specialized => (self.class.points, &[4, 2]),
            Form::Boxes => (1, &[]),
        };
        let pixels = self.p.spatial();
        // Pixels have 16 bits each where two share a word.
        let can = |n: u32| n == 1 || in_row.is_multiple_of(n) && pixels <= 1 << 16;
        let best = best.iter().copied().find(|&n| can(n)).unwrap_or(1);
        self.config.joined = match self.choice.joined.unwrap_or(best) {
            n if !matches!(n, 1 | 2 | 4) => {
                return refuse(format!("--joined is 1, 2 or 4, not {n}"));
            }
            n if !can(n) => {
                return refuse(format!(
                    "--joined {n}: there are a multiple of {n} points that follow each other and at most 65536 pixels, not {in_row} points and {pixels} pixels"
                ));
            }
            n => n,
        };
        Ok(())
    }

    /// The order of queries.
    fn walk(&self) -> Result<(), FamilyError> {
        let (p, strip) = (self.p, self.config.strip);
        if !strip.is_power_of_two() {
            return refuse(format!("--strip is a power of two, not {strip}"));
        }
        let tallest = p.shapes.0.iter().map(|shape| p.stored(*shape)[0]).max();
        if tallest.is_some_and(|height| height * u64::from(strip) >= 1 << 31) {
            return refuse(format!(
                "a strip has less than 2147483648 queries: --strip {strip} is too wide"
            ));
        }
        if self.config.order == Order::Strips && u64::from(p.num_query) != p.spatial() {
            return refuse(format!(
                "--order strips: queries are the {} pixels of the levels, not {}",
                p.spatial(),
                p.num_query
            ));
        }
        Ok(())
    }

    /// Who works out points, and the rings from there on.
    fn roles(&mut self) -> Result<(), FamilyError> {
        let (choice, config) = (self.choice, &mut self.config);
        match config.form {
            Form::Plain if config.handed == Handed::Shared => {
                return refuse(
                    "--handed shared: in the form plain a warp hands its points by shuffles".into(),
                );
            }
            Form::Plain => {
                if let Some(warps) = choice.warps {
                    within("warps", warps, 31)?;
                }
                return Ok(());
            }
            Form::Specialized => {
                // What more of them need is the L1's.
                config.stages = choice.stages.unwrap_or(match config.order {
                    Order::Rows if !config.copied => 3,
                    _ => 2,
                });
                config.producers = choice.producers.unwrap_or(2);
                config.warps = choice.warps.unwrap_or(match (config.order, config.reads) {
                    (Order::Strips, Reads::Pair) => 24,
                    _ => 16,
                });
                if !(1..=4).contains(&config.producers) {
                    return refuse(format!(
                        "--producers is 1 to 4 of eight warps, not {}",
                        config.producers
                    ));
                }
                if !(8..=30).contains(&config.warps) {
                    return refuse(format!(
                        "--warps is 8 to 30 in the form specialized, not {}",
                        config.warps
                    ));
                }
            }
            Form::Boxes => {
                config.stages = choice.stages.unwrap_or(4);
                if let Some(warps) = choice.warps
                    && !((2..=32).contains(&warps) && warps.is_multiple_of(2))
                {
                    return refuse(format!(
                        "--warps is 2 to 32 by twos in the form boxes, not {warps}"
                    ));
                }
            }
        }
        match config.stages {
            2..=4 => Ok(()),
            n => refuse(format!("--stages is 2 to 4, not {n}")),
        }
    }

    /// Asks the builder for the shared memory of a config.
    fn sized(&self, c: Config) -> Result<Config, FamilyError> {
        let roles = |k| kernel::roles(k, &self.class, &c, self.lanes);
        let shared_bytes = Resources::of(self.target, roles)?.shared_bytes;
        Ok(Config { shared_bytes, ..c })
    }

    /// Returns the config that keeps the last `held` levels, with the warps and registers that
    /// follow.
    fn keeping(&self, held: u32) -> Config {
        let mut config = Config {
            held,
            held_boxes: held_boxes(self.p, &self.lanes, held),
            ..self.config
        };
        match config.form {
            Form::Plain => {
                let most = || self.most_warps(held);
                config.warps = self.choice.warps.unwrap_or_else(most);
            }
            Form::Specialized => config.registers = self.moved(&config),
            Form::Boxes => {}
        }
        config
    }

    /// The levels that are kept, and the sizes that follow.
    fn keep(&mut self) -> Result<(), FamilyError> {
        let (p, levels) = (self.p, self.class.levels);
        let sliced = self.lanes.slices > 1;
        self.config = match self.choice.held {
            Some(n) if n > levels => {
                return refuse(format!("--held is at most the {levels} levels, not {n}"));
            }
            Some(n) if sliced && n > 0 => {
                return refuse(format!(
                    "--held {n}: levels are kept where a warp has all channels of a head, and {} of {} are more",
                    p.channels,
                    p.dtype.dtype()
                ));
            }
            Some(n) => self.sized(self.keeping(n))?,
            None if self.config.form == Form::Boxes => self.boxes()?,
            None => {
                let most = match sliced {
                    true => 0,
                    false => levels.saturating_sub(1).clamp(1, 2),
                };
                let mut found = self.sized(self.keeping(most))?;
                while found.held > 0 && found.shared_bytes > near_bytes(self.target) {
                    found = self.sized(self.keeping(found.held - 1))?;
                }
                found
            }
        };
        Ok(())
    }

    /// Returns the config of the form boxes with as many warps as shared memory has room for.
    fn boxes(&self) -> Result<Config, FamilyError> {
        let of = |warps: u32| {
            self.sized(Config {
                warps,
                ..self.config
            })
        };
        if let Some(warps) = self.choice.warps {
            return of(warps);
        }
        let mut found = of(20)?;
        while found.warps > 2 && found.shared_bytes > self.target.shared_bytes {
            found = of(found.warps - 2)?;
        }
        Ok(found)
    }

    /// Registers that a gathering thread may need: for the values in flight, the
    /// points that it worked out, its sums, and 22 for all else.
    fn registers(&self) -> u32 {
        let (class, lanes) = (&self.class, &self.lanes);
        let weights = lanes.weight_words(class);
        let flying = (self.config.ahead + 1) * (lanes.corners() * 4 + weights);
        let records = lanes.per_lane(class) * lanes.sides * (1 + weights);
        let sums = BYTES / class.value.dtype().bytes() as u32;
        22 + flying + records + sums
    }

    /// The most warps that gather whose threads have that many registers, in
    /// quarters of an SM; one more brings what is kept.
    fn most_warps(&self, held: u32) -> u32 {
        let registers = self.registers().next_multiple_of(8).min(248);
        let quarter = self.target.registers / 4 / 32;
        (quarter / registers * 4).clamp(4, 32) - u32::from(held > 0)
    }

    /// Rejects copies of points that tensor maps do not allow.
    fn copied(&self) -> Result<(), FamilyError> {
        let (config, lanes) = (&self.config, &self.lanes);
        let round = config.round(lanes);
        let order = config.order.word();
        let can = config.order == Order::Rows && specialized::can_copy(self.p, lanes, round);
        if config.copied && !can {
            return refuse(format!(
                "--copied true: copies bring points in rows of 16 bytes each, at most 256 numbers wide, of queries that follow each other; not {} points of {} heads in {}, of {round} queries, in order {order}",
                self.class.all_points(),
                lanes.heads,
                self.class.point.dtype(),
            ));
        }
        Ok(())
    }

    /// Registers of producers and of gathering threads, where both roles are whole
    /// warpgroups: gathering threads get all that the others leave.
    fn moved(&self, c: &Config) -> Option<[u32; 2]> {
        let (producing, gathering) = (c.producing(), c.gathering());
        let copying = 4 * c.copying();
        let all = producing + gathering + copying;
        if !producing.is_multiple_of(4) || !gathering.is_multiple_of(4) || all > 32 {
            return None;
        }
        let enter = self.target.registers / 32 / all / 8 * 8;
        let kept = PRODUCER_REGISTERS.min(enter);
        let left = enter * all - kept * producing - COPIER_REGISTERS * copying;
        Some([kept, (left / gathering / 8 * 8).min(248)])
    }

    /// Rejects a config that needs more shared memory than there is.
    fn fit(&self) -> Result<(), FamilyError> {
        let (config, have) = (&self.config, self.target.shared_bytes);
        let bytes = config.shared_bytes;
        if bytes <= have {
            return Ok(());
        }
        let what = match config.form {
            Form::Boxes => format!("{} warps and {} stages", config.warps, config.stages),
            _ => format!("{} levels that are kept", config.held),
        };
        refuse(format!(
            "{what} need {bytes} bytes of shared memory; {} has {have}",
            self.target.name
        ))
    }

    /// Which CTA works on what.
    fn share(&mut self) -> Result<(), FamilyError> {
        let (p, choice) = (self.p, self.choice);
        let groups = share::groups(p, &self.lanes);
        let round = self.config.round(&self.lanes);
        let (parts, idle) = parts(p, round, groups, self.target);
        // Parts where the values are more than is near, points may lie anywhere
        // and all CTAs have as much to do; else ranges.
        let far = p.specs()[0].bytes() as u64 > NEAR_BYTES;
        let parted = self.config.order == Order::Rows && far && idle < 1.05;
        self.config.share = match (choice.share, choice.parts) {
            (Some(Share::Ranges), Some(n)) => {
                return refuse(format!(
                    "--parts {n} are of --share parts, and queries are shared out in ranges"
                ));
            }
            (Some(share), _) => share,
            (None, Some(_)) => Share::Parts,
            (None, None) if parted => Share::Parts,
            (None, None) => Share::Ranges,
        };
        let units = match self.config.share {
            Share::Parts => {
                self.config.parts = match choice.parts {
                    Some(0) => return refuse("--parts is at least 1, not 0".into()),
                    Some(n) => n.min(p.num_query.max(1)),
                    None => parts,
                };
                groups * u64::from(self.config.parts)
            }
            Share::Ranges => groups * u64::from(p.num_query.div_ceil(round)),
        };
        if units >= 1 << 31 {
            return refuse(format!(
                "a grid counts less than 2147483648 parts of all batches and heads, not {units}"
            ));
        }
        self.config.ctas = match choice.ctas {
            Some(0) => return refuse("a grid has at least 1 CTA, not 0".into()),
            Some(n) => n,
            None => units.clamp(1, self.target.sms.into()) as u32,
        };
        Ok(())
    }
}

/// Copies that bring the last levels, and the pixels of each, with the least room to spare.
fn held_boxes(p: &Problem, lanes: &Lanes, held: u32) -> [u32; 2] {
    let skip = p.shapes.0.len() - held as usize;
    let pixels = |shape: &[u32; 2]| p.stored(*shape).iter().product::<u64>();
    let all: u64 = p.shapes.0[skip..].iter().map(pixels).sum();
    if all == 0 {
        return [0; 2];
    }
    // Where a copy puts its pixels is a multiple of 128 bytes.
    let row = u64::from(lanes.heads * p.class().pixel_bytes());
    let step = 128 >> row.trailing_zeros().min(7);
    let least = all.div_ceil(BOX);
    let boxes = |copies: u64| [copies, all.div_ceil(copies).next_multiple_of(step)];
    let found = (least..2 * least + 8)
        .map(boxes)
        .filter(|[_, each]| *each <= BOX);
    let best = found.min_by_key(|[copies, each]| copies * each);
    best.unwrap_or_default().map(|x| x as u32)
}

/// Into how many parts queries are divided, so that waves are full, and how
/// many times as long as full ones they take.
fn parts(p: &Problem, round: u32, groups: u64, target: &Target) -> (u32, f64) {
    let sms = u64::from(target.sms);
    // A part has at least a few rounds of all warps.
    let most = p.num_query.div_ceil(4 * round).clamp(1, 64);
    let idle = |parts: u32| {
        let items = (groups * u64::from(parts)).max(1);
        let waves = items.div_ceil(sms);
        (waves * sms) as f64 / items as f64
    };
    // Fewer parts where the waves are as full.
    let cost = |&n: &u32| idle(n) + 0.002 * f64::from(n);
    let best = (1..=most).min_by(|a, b| cost(a).total_cmp(&cost(b)));
    let best = best.unwrap_or(1);
    (best, idle(best))
}

#[cfg(test)]
mod tests {
    use super::super::{MsDeformAttn, table};
    use super::*;
    use warpline_family::family::Family as _;

    #[test]
    fn sizes_are_those_of_the_kernel() {
        let target = Target::SM_90A;
        for case in table::cases().into_iter().step_by(7) {
            let config = select(&case.problem, &case.choice, &target).unwrap();
            let plan = MsDeformAttn::plan(&case.problem, &config, &target).unwrap();
            let kernel = &plan.steps[0].kernel;
            assert_eq!(config.shared_bytes, kernel.shared_bytes, "{config:?}");
        }
    }

    fn refused(choice: Choice) -> String {
        let problem = Problem::new(1, 192, 1, 4, &[[16, 12]]);
        let config = select(&problem, &choice, &Target::SM_90A);
        config.map_or_else(|e| e.to_string(), |config| format!("{config:?}"))
    }

    #[test]
    fn what_does_not_fit_gets_a_sentence() {
        let strip = |strip: u32| Choice {
            order: Some(Order::Strips),
            strip: Some(strip),
            ..Choice::default()
        };
        assert!(refused(strip(0)).contains("a power of two, not 0"));
        assert!(refused(strip(12)).contains("a power of two, not 12"));
        assert!(refused(strip(1 << 31)).contains("--strip 2147483648 is too wide"));
        let roles = |producers: u32, stages: u32| Choice {
            producers: Some(producers),
            stages: Some(stages),
            ..Choice::default()
        };
        assert!(refused(roles(5, 2)).contains("--producers is 1 to 4 of eight warps, not 5"));
        assert!(refused(roles(2, 5)).contains("--stages is 2 to 4, not 5"));
        let warps = Choice {
            warps: Some(31),
            ..roles(2, 2)
        };
        assert!(refused(warps).contains("--warps is 8 to 30 in the form specialized, not 31"));
        let joined = |joined: u32| Choice {
            form: Some(Form::Plain),
            joined: Some(joined),
            ..Choice::default()
        };
        assert!(refused(joined(3)).contains("--joined is 1, 2 or 4, not 3"));
        assert!(refused(joined(4)).contains("a multiple of 4 points that follow each other"));
        let boxes = |choice: Choice| Choice {
            form: Some(Form::Boxes),
            ..choice
        };
        assert!(
            refused(boxes(roles(2, 2)))
                .contains("--producers is of the form specialized, and the form is boxes")
        );
        let held = Choice {
            held: Some(1),
            ..Choice::default()
        };
        assert!(
            refused(boxes(held)).contains("is of the forms plain and specialized, and the form is")
        );
        let odd = Choice {
            warps: Some(7),
            ..Choice::default()
        };
        assert!(
            refused(boxes(odd)).contains("--warps is 2 to 32 by twos in the form boxes, not 7")
        );
        let plain = Choice {
            form: Some(Form::Plain),
            ..roles(2, 2)
        };
        assert!(refused(plain).contains("--producers is of the form specialized"));
        let parts = Choice {
            share: Some(Share::Ranges),
            parts: Some(3),
            ..Choice::default()
        };
        assert!(refused(parts).contains("--parts 3 are of --share parts"));
    }
}
