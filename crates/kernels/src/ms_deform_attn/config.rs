//! How it is solved: forms, options, and what follows from them.

use super::lanes::{Lanes, Reads};
use super::problem::Class;
use super::record::{Format, Shelf};
use warpline_family::{fields, words};

words! {
    /// The structure of the program.
    pub enum Form {
        /// Every warp works out its points, gathers and adds up
        Plain = "plain",
        /// Some warps work out points, others gather them
        Specialized = "specialized",
        /// A copy brings the four pixels of every point, of which other warps take the sums
        Boxes = "boxes",
    }
}

words! {
    /// The order in which queries are walked.
    pub enum Order {
        /// As they are
        Rows = "rows",
        /// In strips of columns of every level, where queries are the pixels of the levels
        Strips = "strips",
    }
}

words! {
    /// How what was worked out of a point comes to those who gather it.
    pub enum Handed {
        /// From lane to lane
        Shuffles = "shuffles",
        /// Through shared memory
        Shared = "shared",
    }
}

words! {
    /// How queries are shared out among CTAs.
    pub enum Share {
        /// In parts of batches, one by one: few batches are worked on at a time
        Parts = "parts",
        /// In one range for each CTA, wherever a batch ends
        Ranges = "ranges",
    }
}

fields! {
    /// What the caller fixes of the config.
    #[derive(Default)]
    pub struct Choice {
        /// The structure of the program
        pub form: Option<Form>,
        /// What the lanes of a query read at a time
        pub reads: Option<Reads>,
        /// Warps that gather; in the forms specialized and boxes also those that work out points
        pub warps: Option<u32>,
        /// Of every eight of these, those that work out points, 1 to 4; the others gather
        pub producers: Option<u32>,
        /// Stages of the rings between those who work out points, or bring them, and those who gather
        pub stages: Option<u32>,
        /// Bring points by copies, a ring ahead of those who work them out
        pub copied: Option<bool>,
        /// Levels, from the last on, that are kept in shared memory
        pub held: Option<u32>,
        /// Points whose values are asked for ahead
        pub ahead: Option<u32>,
        /// Points that are summed in f16 before they are added in f32
        pub sums: Option<u32>,
        /// Points that are handed on as one, 1, 2 or 4: the pixels of two are one word
        pub joined: Option<u32>,
        /// How what was worked out of a point comes to those who gather it
        pub handed: Option<Handed>,
        /// Ask for the points of the next queries before these are gathered
        pub prefetch: Option<bool>,
        /// The order in which queries are walked
        pub order: Option<Order>,
        /// Columns of a strip
        pub strip: Option<u32>,
        /// How queries are shared out among CTAs
        pub share: Option<Share>,
        /// Parts that the queries of a batch and head are divided into
        pub parts: Option<u32>,
        /// CTAs of the grid
        pub ctas: Option<u32>,
    }
}

impl Choice {
    /// Why an option that was given is none of a form.
    pub(super) fn misplaced(&self, form: Form) -> Option<String> {
        use Form::{Boxes, Plain, Specialized};
        if self.reads == Some(Reads::Box) {
            return Some("--reads is pair or pixel, not box".to_owned());
        }
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
        let wrong = |(_, given, forms): &(_, bool, &[Form])| *given && !forms.contains(&form);
        let (option, _, forms) = options.into_iter().find(wrong)?;
        let names: Vec<_> = forms.iter().map(|form| form.word()).collect();
        let of = match &names[..] {
            [one] => format!("form {one}"),
            more => format!("forms {}", more.join(" and ")),
        };
        Some(format!(
            "--{option} is of the {of}, and the form is {}",
            form.word()
        ))
    }
}

/// A complete config.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
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
    /// Bytes of shared memory of a CTA, as the builder places them.
    pub shared_bytes: u32,
}

impl From<&Config> for Choice {
    fn from(c: &Config) -> Self {
        Self {
            form: Some(c.form),
            reads: Some(c.reads),
            warps: Some(c.warps),
            producers: Some(c.producers),
            stages: Some(c.stages),
            copied: Some(c.copied),
            held: Some(c.held),
            ahead: Some(c.ahead),
            sums: Some(c.sums),
            joined: Some(c.joined),
            handed: Some(c.handed),
            prefetch: Some(c.prefetch),
            order: Some(c.order),
            strip: Some(c.strip),
            share: Some(c.share),
            parts: Some(c.parts),
            ctas: Some(c.ctas),
        }
    }
}

/// Registers of a thread that copies.
pub(super) const COPIER_REGISTERS: u32 = 24;

impl Config {
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
    pub(super) fn copying(&self) -> u32 {
        u32::from(self.held > 0) + u32::from(self.copied)
    }

    /// Queries that a CTA works on at a time.
    pub(super) fn round(&self, lanes: &Lanes) -> u32 {
        self.gathering() * lanes.queries()
    }
}
