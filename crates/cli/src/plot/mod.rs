//! SVG plots: lines if the x values are numbers, bars otherwise.
//!
//! | where | what |
//! |---|---|
//! | `axis` | scales and tick labels |
//! | `svg` | SVG shapes and text |
//! | `draw` | the layout of a plot |

mod axis;
mod draw;
mod svg;

pub(crate) use draw::render;

/// A plot.
#[derive(Clone, Debug)]
pub(crate) struct Plot {
    pub(crate) title: String,
    /// Lines of text below the title.
    pub(crate) notes: Vec<String>,
    /// The label of the x axis.
    pub(crate) x_label: String,
    /// The label of the y axis, with its unit.
    pub(crate) y_label: String,
    /// The x values: numbers or names.
    pub(crate) x_values: Vec<String>,
    pub(crate) series: Vec<Series>,
    /// The legend of marks without a value.
    pub(crate) missing_label: String,
}

/// A series of marks: a line, or bars of one color.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    /// Its name in the legend.
    pub(crate) name: String,
    /// One mark per x value; none if the value is missing.
    pub(crate) marks: Vec<Option<Mark>>,
}

/// A value with its interquartile range.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Mark {
    pub(crate) value: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}
