//! How it is solved: forms, lanes, what is kept near, and whether it fits the machine.

use super::boxes;
use super::lanes::{BYTES, Lanes, Reads};
use super::problem::{Class, Problem};
use super::record::{Format, Shelf};
use super::share;
use super::specialized;
use crate::error::FamilyError;
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use warpline_ir::Target;

/// The structure of the program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// Every warp works out its points, gathers and adds up
    Plain,
    /// Some warps work out points, others gather them
    Specialized,
    /// A copy brings the four pixels of every point, of which other warps take the sums
    Boxes,
}

impl Form {
    fn name(self) -> &'static str {
        match self {
            Form::Plain => "plain",
            Form::Specialized => "specialized",
            Form::Boxes => "boxes",
        }
    }
}

/// The order in which queries are walked.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// As they are
    Rows,
    /// In strips of columns of every level, where queries are the pixels of the levels
    Strips,
}

/// How what was worked out of a point comes to those who gather it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Handed {
    /// From lane to lane
    Shuffles,
    /// Through shared memory
    Shared,
}

/// How queries are shared out among CTAs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Share {
    /// In parts of batches, one by one: few batches are worked on at a time
    Parts,
    /// In one range for each CTA, wherever a batch ends
    Ranges,
}

/// What the caller fixes of the config.
#[derive(Clone, PartialEq, Debug, Default, Args, Serialize)]
pub struct Choice {
    /// The structure of the program
    #[arg(long)]
    pub form: Option<Form>,
    /// What the lanes of a query read at a time
    #[arg(long)]
    pub reads: Option<Reads>,
    /// Warps that gather; in the forms specialized and boxes also those that work out points
    #[arg(long, value_name = "COUNT")]
    pub warps: Option<u32>,
    /// Of every eight of these, those that work out points, 1 to 4; the others gather
    #[arg(long, value_name = "COUNT")]
    pub producers: Option<u32>,
    /// Stages of the rings between those who work out points, or bring them, and those who gather
    #[arg(long, value_name = "COUNT")]
    pub stages: Option<u32>,
    /// Bring points by copies, a ring ahead of those who work them out
    #[arg(long, value_name = "BOOL")]
    pub copied: Option<bool>,
    /// Levels, from the last on, that are kept in shared memory
    #[arg(long, value_name = "COUNT")]
    pub held: Option<u32>,
    /// Points whose values are asked for ahead
    #[arg(long, value_name = "COUNT")]
    pub ahead: Option<u32>,
    /// Points that are summed in f16 before they are added in f32
    #[arg(long, value_name = "COUNT")]
    pub sums: Option<u32>,
    /// Points that are handed on as one, 1, 2 or 4: the pixels of two are one word
    #[arg(long, value_name = "COUNT")]
    pub joined: Option<u32>,
    /// How what was worked out of a point comes to those who gather it
    #[arg(long)]
    pub handed: Option<Handed>,
    /// Ask for the points of the next queries before these are gathered
    #[arg(long, value_name = "BOOL")]
    pub prefetch: Option<bool>,
    /// The order in which queries are walked
    #[arg(long)]
    pub order: Option<Order>,
    /// Columns of a strip
    #[arg(long, value_name = "COUNT")]
    pub strip: Option<u32>,
    /// How queries are shared out among CTAs
    #[arg(long)]
    pub share: Option<Share>,
    /// Parts that the queries of a batch and head are divided into
    #[arg(long, value_name = "COUNT")]
    pub parts: Option<u32>,
    /// CTAs of the grid
    #[arg(long, value_name = "COUNT")]
    pub ctas: Option<u32>,
}

impl Choice {
    /// Why an option that was given is none of a form.
    fn misplaced(&self, form: Form) -> Option<String> {
        use Form::{Boxes, Plain, Specialized};
        let gathered: &[Form] = &[Plain, Specialized];
        let options: [(&str, bool, &[Form]); 9] = [
            ("reads", self.reads.is_some(), gathered),
            ("producers", self.producers.is_some(), &[Specialized]),
            ("stages", self.stages.is_some(), &[Specialized, Boxes]),
            ("copied", self.copied.is_some(), &[Specialized]),
            ("held", self.held.is_some(), gathered),
            ("ahead", self.ahead.is_some(), gathered),
            ("joined", self.joined.is_some(), gathered),
            ("handed", self.handed.is_some(), gathered),
            ("prefetch", self.prefetch.is_some(), &[Plain]),
        ];
        let given = options.into_iter().filter(|(_, given, _)| *given);
        let (name, _, forms) = given
            .into_iter()
            .find(|(.., forms)| !forms.contains(&form))?;
        let of = match forms {
            [one] => format!("form {}", one.name()),
            [one, other] => format!("forms {} and {}", one.name(), other.name()),
            _ => return None,
        };
        Some(format!(
            "--{name} is of the {of}, and the form is {}",
            form.name()
        ))
    }
}

/// A complete config.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Config {
    /// The structure of the program.
    pub form: Form,
    /// What the lanes of a query read at a time.
    pub reads: Reads,
    /// Warps that gather, or also work out points.
    pub warps: u32,
    /// Of eight of these, those that work out points.
    pub producers: u32,
    /// Stages of the rings between those who work out points and those who gather.
    pub stages: u32,
    /// Do copies bring the points?
    pub copied: bool,
    /// Registers of those who work out points and of those who gather, where they are moved.
    pub registers: Option<[u32; 2]>,
    /// Levels, from the last on, that are kept in shared memory.
    pub held: u32,
    /// Copies that bring these, and the pixels of each; 0 where none is kept.
    pub held_boxes: [u32; 2],
    /// Points whose values are asked for ahead.
    pub ahead: u32,
    /// Points that are summed in f16 before they are added in f32.
    pub sums: u32,
    /// Points of a record.
    pub joined: u32,
    /// How what was worked out of a point comes to those who gather it.
    pub handed: Handed,
    /// Are points asked for a round ahead?
    pub prefetch: bool,
    /// The order in which queries are walked.
    pub order: Order,
    /// Columns of a strip.
    pub strip: u32,
    /// How queries are shared out among CTAs.
    pub share: Share,
    /// Parts that the queries of a batch and head are divided into, where that is how.
    pub parts: u32,
    /// CTAs of the grid.
    pub ctas: u32,
}

/// Registers of a thread that works out points for others.
const PRODUCER_REGISTERS: u32 = 72;
/// Registers of a thread that copies.
pub(super) const COPIER_REGISTERS: u32 = 24;
/// Values that the L2 keeps.
const NEAR_BYTES: u64 = 32 << 20;
/// Bytes that barriers may take.
const BARRIERS: u64 = 128;
/// Columns of a strip.
const STRIP: u32 = 16;
/// The most pixels that one copy brings of levels that are kept.
const BOX: u64 = 256;

impl Config {
    /// Bytes of shared memory.
    pub(super) fn shared_bytes(&self, class: &Class, heads: u32) -> u64 {
        let lanes = Lanes::new(class, self.reads, heads);
        if self.form == Form::Boxes {
            let line = boxes::line_bytes(class, &lanes, self.stages);
            return u64::from(self.gathering()) * u64::from(line);
        }
        let held = u64::from(self.held_pixels()) * u64::from(lanes.heads * class.pixel_bytes());
        let stage = match self.form {
            Form::Plain | Form::Boxes => 0,
            Form::Specialized => {
                let given = match self.copied {
                    true => specialized::given_bytes(class, &lanes, self.round(&lanes)),
                    false => 0,
                };
                let shelf = self.shelf(class, &lanes);
                (shelf.words() + shelf.rows()) * 4 + given
            }
        };
        held + u64::from(self.stages) * u64::from(stage) + BARRIERS
    }

    /// Pixels that are kept, with room for those of the last copy.
    pub(super) fn held_pixels(&self) -> u32 {
        self.held_boxes.into_iter().product()
    }

    /// How records look.
    pub(super) fn format(&self, class: &Class, lanes: &Lanes) -> Format {
        Format {
            points: self.joined,
            weights: lanes.weight_words(class),
        }
    }

    /// The records of a round in shared memory.
    pub(super) fn shelf(&self, class: &Class, lanes: &Lanes) -> Shelf {
        Shelf::new(self.format(class, lanes), class, lanes, self.gathering())
    }

    /// Warps that work out points for others.
    pub(super) fn producing(&self) -> u32 {
        match self.form {
            Form::Plain => 0,
            Form::Specialized => self.warps / 8 * self.producers,
            Form::Boxes => self.warps / 2,
        }
    }

    /// Warps that gather.
    pub(super) fn gathering(&self) -> u32 {
        self.warps - self.producing()
    }

    /// Warps that copy.
    fn copying(&self) -> u32 {
        u32::from(self.held > 0) + u32::from(self.copied)
    }

    /// Queries that a CTA works on at a time.
    pub(super) fn round(&self, lanes: &Lanes) -> u32 {
        self.gathering() * lanes.queries()
    }

    /// Registers that a gathering thread may need: what is in flight, the
    /// points that it worked out, sums, and what is besides.
    fn registers(&self, class: &Class, lanes: &Lanes) -> u32 {
        let weights = lanes.weight_words(class);
        let flying = (self.ahead + 1) * (lanes.corners() * 4 + weights);
        let records = lanes.per_lane(class) * lanes.sides * (1 + weights);
        let sums = BYTES / class.value.dtype().bytes() as u32;
        22 + flying + records + sums
    }

    /// The most warps whose threads have that many registers, in quarters of an SM.
    fn most_warps(&self, class: &Class, lanes: &Lanes, target: &Target) -> u32 {
        let registers = self.registers(class, lanes).next_multiple_of(8).min(248);
        let quarter = target.registers / 4 / 32;
        (quarter / registers * 4).clamp(4, 32)
    }

    /// What the caller says of who works out points, or why it cannot be.
    fn roles(&mut self, choice: &Choice, fits: impl Fn(&Self) -> bool) -> Result<(), FamilyError> {
        let refuse = |text: String| Err(FamilyError::Config(text));
        match self.form {
            Form::Plain if self.handed == Handed::Shared => {
                return refuse(
                    "--handed shared: in the form plain a warp hands its points by shuffles".into(),
                );
            }
            Form::Plain => return Ok(()),
            Form::Specialized => {
                self.stages = choice.stages.unwrap_or(2);
                self.producers = choice.producers.unwrap_or(2);
                self.warps = choice.warps.unwrap_or(match (self.order, self.reads) {
                    (Order::Strips, Reads::Pair) => 24,
                    _ => 16,
                });
                if !(1..=4).contains(&self.producers) {
                    return refuse(format!(
                        "--producers is 1 to 4 of eight warps, not {}",
                        self.producers
                    ));
                }
                if !(8..=30).contains(&self.warps) {
                    return refuse(format!(
                        "--warps is 8 to 30 in the form specialized, not {}",
                        self.warps
                    ));
                }
            }
            Form::Boxes => {
                self.stages = choice.stages.unwrap_or(4);
                let of_warps = |warps: u32| Self { warps, ..*self };
                let most = (1..=10).rev().map(|lines| of_warps(2 * lines));
                let most = most.into_iter().find(&fits).map_or(2, |c| c.warps);
                self.warps = choice.warps.unwrap_or(most);
                if !(2..=32).contains(&self.warps) || !self.warps.is_multiple_of(2) {
                    return refuse(format!(
                        "--warps is 2 to 32 by twos in the form boxes, not {}",
                        self.warps
                    ));
                }
            }
        }
        match self.stages {
            2..=4 => Ok(()),
            n => refuse(format!("--stages is 2 to 4, not {n}")),
        }
    }

    /// Registers of producers and of those who gather, where both are whole
    /// warpgroups: those who gather have what all others leave.
    fn moved(&self, target: &Target) -> Option<[u32; 2]> {
        let (producing, gathering) = (self.producing(), self.gathering());
        let copying = 4 * self.copying();
        let all = producing + gathering + copying;
        if !producing.is_multiple_of(4) || !gathering.is_multiple_of(4) || all > 32 {
            return None;
        }
        let enter = target.registers / 32 / all / 8 * 8;
        let kept = PRODUCER_REGISTERS.min(enter);
        let left = enter * all - kept * producing - COPIER_REGISTERS * copying;
        Some([kept, (left / gathering / 8 * 8).min(248)])
    }

    /// The config with the caller's choices in it, or why there is none.
    ///
    /// Roles pay for one head, whose lanes get two pixels at a time; with more
    /// heads a point has fewer lanes, and to hand it on costs more.
    pub(super) fn new(p: &Problem, choice: &Choice, target: &Target) -> Result<Self, FamilyError> {
        if let Some(form) = choice.form {
            return Self::of_form(p, choice, form, target);
        }
        let plain = Self::of_form(p, choice, Form::Plain, target);
        let roles = Self::of_form(p, choice, Form::Specialized, target);
        match (plain, roles) {
            (Ok(plain), Ok(roles)) => {
                let near =
                    roles.shared_bytes(&p.class(), p.heads) <= target.shared_bytes as u64 * 3 / 4;
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

    /// That of a form.
    fn of_form(
        p: &Problem,
        choice: &Choice,
        form: Form,
        target: &Target,
    ) -> Result<Self, FamilyError> {
        fn refuse<T>(text: String) -> Result<T, FamilyError> {
            Err(FamilyError::Config(text))
        }
        if let Some(why) = choice.misplaced(form) {
            return refuse(why);
        }
        let class = p.class();
        let reads = choice.reads.unwrap_or(match (form, p.heads) {
            (Form::Boxes, _) => Reads::Box,
            (_, 1) => Reads::Pair,
            (_, n) if n.is_multiple_of(2) => Reads::Pixel,
            _ => Reads::Pair,
        });
        let lanes = Lanes::new(&class, reads, p.heads);
        let order = choice.order.unwrap_or(Order::Rows);
        // Points that follow each other in a lane, or in a level; and how many
        // of them are best handed on: shared memory gives words of two at once,
        // shuffles one.
        let (in_row, best): (u32, &[u32]) = match form {
            Form::Plain => (lanes.in_row(&class), &[2]),
            Form::Specialized => (class.points, &[4, 2]),
            Form::Boxes => (1, &[]),
        };
        // Pixels have 16 bits each where two share a word.
        let can_join = |n: u32| n == 1 || in_row.is_multiple_of(n) && p.spatial() <= 1 << 16;
        let joined = best.iter().copied().find(|&n| can_join(n)).unwrap_or(1);
        let mut config = Self {
            form,
            reads,
            warps: 0,
            producers: 0,
            stages: 0,
            copied: false,
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
            joined: choice.joined.unwrap_or(joined),
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
        };
        let within = |name: &str, value: u32, most: u32| match value {
            0 => refuse(format!("--{name} is 1 to {most}, not 0")),
            n if n > most => refuse(format!("--{name} is 1 to {most}, not {n}")),
            _ => Ok(()),
        };
        within("ahead", config.ahead, 8)?;
        // Of eight products in f16, one in ten million sums is off by its bound.
        within("sums", config.sums, 8 / lanes.corners())?;
        if !matches!(config.joined, 1 | 2 | 4) {
            return refuse(format!("--joined is 1, 2 or 4, not {}", config.joined));
        }
        if !can_join(config.joined) {
            return refuse(format!(
                "--joined {n}: there are a multiple of {n} points that follow each other and at most 65536 pixels, not {in_row} points and {} pixels",
                p.spatial(),
                n = config.joined
            ));
        }
        if !config.strip.is_power_of_two() {
            return refuse(format!("--strip is a power of two, not {}", config.strip));
        }
        let tallest = p.shapes.0.iter().map(|shape| p.stored(*shape)[0]).max();
        if tallest.is_some_and(|height| height * u64::from(config.strip) >= 1 << 31) {
            return refuse(format!(
                "a strip has less than 2147483648 queries: --strip {} is too wide",
                config.strip
            ));
        }
        if config.order == Order::Strips && u64::from(p.num_query) != p.spatial() {
            return refuse(format!(
                "--order strips: queries are the {} pixels of the levels, not {}",
                p.spatial(),
                p.num_query
            ));
        }
        let have = u64::from(target.shared_bytes);
        let fits = |c: &Self| c.shared_bytes(&class, p.heads) <= have;
        config.roles(choice, fits)?;
        let keep = |held: u32| Self {
            held,
            held_boxes: held_boxes(p, &lanes, held),
            ..config
        };
        let most = class.levels.saturating_sub(1).max(1);
        config = match choice.held {
            Some(n) if n > class.levels => {
                return refuse(format!(
                    "--held is at most the {} levels, not {n}",
                    class.levels
                ));
            }
            Some(n) if lanes.slices > 1 && n > 0 => {
                return refuse(format!(
                    "--held {n}: levels are kept where a warp has all channels of a head, and {} of {} are more",
                    p.channels,
                    p.dtype.dtype()
                ));
            }
            Some(n) => keep(n),
            None if lanes.slices > 1 || form == Form::Boxes => config,
            // What is left of the L1 is of use too.
            None => (0..=most.min(2))
                .rev()
                .map(keep)
                .find(|c| c.shared_bytes(&class, p.heads) <= have * 3 / 4)
                .unwrap_or(config),
        };
        match form {
            Form::Boxes => {}
            Form::Plain => {
                config.warps = match choice.warps {
                    Some(n) => {
                        within("warps", n, 31)?;
                        n
                    }
                    // One more brings what is kept.
                    None => config.most_warps(&class, &lanes, target) - u32::from(config.held > 0),
                };
            }
            Form::Specialized => {
                let can_copy = config.order == Order::Rows
                    && specialized::can_copy(p, &lanes, config.round(&lanes));
                config.copied = choice.copied.unwrap_or(false);
                if config.copied && !can_copy {
                    return refuse(format!(
                        "--copied true: copies bring points in rows of 16 bytes each, at most 256 numbers wide, of queries that follow each other; not {} points of {} heads in {}, of {} queries, in order {}",
                        class.all_points(),
                        lanes.heads,
                        class.point.dtype(),
                        config.round(&lanes),
                        match config.order {
                            Order::Rows => "rows",
                            Order::Strips => "strips",
                        }
                    ));
                }
                config.registers = config.moved(target);
            }
        }
        if !fits(&config) {
            let what = match form {
                Form::Boxes => format!("{} warps and {} stages", config.warps, config.stages),
                _ => format!("{} levels that are kept", config.held),
            };
            return refuse(format!(
                "{what} need {} bytes of shared memory; {} has {have}",
                config.shared_bytes(&class, p.heads),
                target.name
            ));
        }
        let groups = share::groups(p, &lanes);
        config.share = match (choice.share, choice.parts) {
            (Some(Share::Ranges), Some(n)) => {
                return refuse(format!(
                    "--parts {n} are of --share parts, and queries are shared out in ranges"
                ));
            }
            (Some(share), _) => share,
            (None, Some(_)) => Share::Parts,
            (None, None) => config.sharing(p),
        };
        let round = config.round(&lanes);
        let units = match config.share {
            Share::Parts => {
                config.parts = match choice.parts {
                    Some(0) => return refuse("--parts is at least 1, not 0".into()),
                    Some(n) => n.min(p.num_query.max(1)),
                    None => parts(p, round, groups, target),
                };
                groups * u64::from(config.parts)
            }
            Share::Ranges => groups * u64::from(p.num_query.div_ceil(round)),
        };
        if units >= 1 << 31 {
            return refuse(format!(
                "a grid counts less than 2147483648 parts of all batches and heads, not {units}"
            ));
        }
        config.ctas = match choice.ctas {
            Some(0) => return refuse("a grid has at least 1 CTA, not 0".into()),
            Some(n) => n,
            None => units.clamp(1, target.sms.into()) as u32,
        };
        Ok(config)
    }

    /// Parts where the values are more than the L2 keeps and points may lie
    /// anywhere; else ranges.
    fn sharing(&self, p: &Problem) -> Share {
        let far = p.specs()[0].bytes() as u64 > NEAR_BYTES;
        match self.order {
            Order::Rows if far => Share::Parts,
            _ => Share::Ranges,
        }
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

/// Into how many parts queries are divided, so that waves are full.
fn parts(p: &Problem, round: u32, groups: u64, target: &Target) -> u32 {
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
    (1..=most)
        .min_by(|a, b| cost(a).total_cmp(&cost(b)))
        .unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(choice: Choice) -> String {
        let problem = Problem::new(1, 192, 1, 4, &[[16, 12]]);
        let config = Config::new(&problem, &choice, &Target::SM_90A);
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
