//! A plot as an SVG: lines over numbers, or bars over names.
//!
//! | where | what |
//! |---|---|
//! | `axis` | numbers along a length, with round ones to name |
//! | `sheet` | shapes and text as SVG |
//! | `draw` | a plot on a sheet |

mod axis;
mod draw;
mod sheet;

pub(crate) use draw::svg;

/// What is to be drawn.
#[derive(Clone, Debug)]
pub(crate) struct Plot {
    pub(crate) title: String,
    /// Lines of text below the title.
    pub(crate) notes: Vec<String>,
    /// What the places across are.
    pub(crate) across: String,
    /// What goes up, with its unit.
    pub(crate) up: String,
    /// The places across: numbers, or else names.
    pub(crate) places: Vec<String>,
    pub(crate) series: Vec<Series>,
    /// What a mark without a value means.
    pub(crate) missing: String,
}

/// Marks that belong together: a line, or bars of a colour.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    /// Its name in the legend.
    pub(crate) name: String,
    /// One for each place; none where there is no value.
    pub(crate) marks: Vec<Option<Mark>>,
}

/// A value, and between what most of it lies.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Mark {
    pub(crate) value: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}
