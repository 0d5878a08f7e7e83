//! The layout of a plot.

use super::axis::{Axis, axis_positions};
use super::svg::{Anchor, SvgWriter, TextStyle};
use super::{Mark, Plot};

/// Lengths in pixels.
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 92.0;
const RIGHT: f64 = 40.0;
const EDGE: f64 = 32.0;
/// Characters per line of a note.
const CHARACTERS_PER_LINE: usize = 138;
/// The minimum gap between labels.
const LABEL_GAP: f64 = 10.0;
/// The estimated width of a character.
const CHARACTER_WIDTH: f64 = 7.2;

const INK: &str = "#1b2430";
const SOFT: &str = "#5d6978";
const FAINT: &str = "#dfe4ea";
/// Colors that most readers with color blindness can tell apart.
const COLORS: [&str; 8] = [
    "#d9480f", "#2563a8", "#0f8a7e", "#7c4fc4", "#8a6d1a", "#c2427a", "#4a5563", "#3aa0d8",
];

const TITLE: TextStyle = TextStyle {
    size: 20.0,
    color: INK,
    bold: true,
};
const NOTE: TextStyle = TextStyle {
    size: 12.5,
    color: SOFT,
    bold: false,
};
const LABEL: TextStyle = TextStyle {
    size: 13.0,
    color: INK,
    bold: false,
};
const AXIS: TextStyle = TextStyle {
    size: 13.0,
    color: INK,
    bold: true,
};

/// Renders the plot as an SVG document.
pub(crate) fn render(plot: &Plot) -> String {
    let mut svg = SvgWriter::default();
    let mut y = 44.0;
    svg.text([EDGE, y], Anchor::Left, TITLE, &plot.title);
    y += 6.0;
    for line in plot.notes.iter().flat_map(|note| wrapped(note)) {
        y += 19.0;
        svg.text([EDGE, y], Anchor::Left, NOTE, &line);
    }
    let area = PlotArea::new(plot, y + 14.0);
    let area = area.legend(&mut svg, plot);
    svg.text([EDGE, area.top - 14.0], Anchor::Left, AXIS, &plot.y_label);
    area.grid(&mut svg, plot);
    match &area.positions {
        Some(_) => area.lines(&mut svg, plot),
        None => area.bars(&mut svg, plot),
    }
    let mut bottom = area.bottom() + 48.0;
    let middle = [(LEFT + WIDTH - RIGHT) / 2.0, bottom];
    svg.text(middle, Anchor::Middle, AXIS, &plot.x_label);
    if plot.series.iter().any(|s| s.marks.contains(&None)) {
        bottom += 24.0;
        svg.cross([EDGE + 5.0, bottom - 4.0], SOFT);
        svg.text(
            [EDGE + 18.0, bottom],
            Anchor::Left,
            NOTE,
            &plot.missing_label,
        );
    }
    svg.finish([WIDTH, bottom + 24.0], &plot.title)
}

/// Wraps a text into lines.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let is_full =
            |line: &String| line.chars().count() + word.chars().count() >= CHARACTERS_PER_LINE;
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if !is_full(line) => line.extend([" ", word]),
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Returns the mark shape of a series; series of the same color have different shapes.
fn shape(i: usize) -> usize {
    i / COLORS.len() + i
}

/// Returns the color of a series.
fn color(i: usize) -> &'static str {
    COLORS[i % COLORS.len()]
}

/// The plot area: axes, grid and marks.
struct PlotArea {
    top: f64,
    y_axis: Axis,
    /// The position of each x value on the axis, from 0 to 1; none if the values are names.
    positions: Option<Vec<f64>>,
    count: usize,
}

impl PlotArea {
    fn new(plot: &Plot, top: f64) -> Self {
        let marks = plot.series.iter().flat_map(|s| s.marks.iter().flatten());
        let positions = axis_positions(&plot.x_values);
        let ends = marks.flat_map(|m| [m.low, m.value, m.high]);
        Self {
            top,
            // The length of a bar is proportional to its value.
            y_axis: Axis::enclosing(ends, positions.is_none()),
            positions,
            count: plot.x_values.len(),
        }
    }

    /// Draws the legend above the plot if there is more than one series.
    fn legend(mut self, svg: &mut SvgWriter, plot: &Plot) -> Self {
        let (left, mut x, mut y) = (EDGE + 6.0, EDGE + 6.0, self.top + 16.0);
        for (i, series) in plot.series.iter().enumerate() {
            if plot.series.len() < 2 {
                break;
            }
            let width = 36.0 + CHARACTER_WIDTH * series.name.chars().count() as f64;
            if x + width > WIDTH - EDGE && x > left {
                (x, y) = (left, y + 22.0);
            }
            match self.positions {
                Some(_) => svg.mark([x, y - 4.5], shape(i), color(i)),
                None => svg.bar([x - 5.0, y - 9.5], [10.0, 10.0], color(i)),
            }
            svg.text([x + 12.0, y], Anchor::Left, LABEL, &series.name);
            x += width;
            self.top = y + 10.0;
        }
        self.top += 36.0;
        self
    }

    fn bottom(&self) -> f64 {
        self.top + HEIGHT
    }

    /// Draws a cross for a missing value of series `i`; the crosses of the series stand side by side.
    fn cross(&self, svg: &mut SvgWriter, index: usize, i: usize, series: usize) {
        let count = series as f64;
        let offset = (i as f64 - (count - 1.0) / 2.0) * (70.0 / count).min(13.0);
        let center = [self.x(index) + offset, self.bottom() - 10.0];
        svg.cross(center, color(i));
    }

    /// Returns the width of a named x value.
    fn band(&self) -> f64 {
        (WIDTH - LEFT - RIGHT) / self.count.max(1) as f64
    }

    /// Returns the x coordinate of an x value.
    fn x(&self, index: usize) -> f64 {
        match &self.positions {
            Some(positions) => {
                let inset = 36.0;
                LEFT + inset + positions[index] * (WIDTH - LEFT - RIGHT - 2.0 * inset)
            }
            None => LEFT + (index as f64 + 0.5) * self.band(),
        }
    }

    fn y(&self, value: f64) -> f64 {
        self.bottom() - self.y_axis.fraction(value) * HEIGHT
    }

    fn grid(&self, svg: &mut SvgWriter, plot: &Plot) {
        for tick in self.y_axis.ticks() {
            let y = self.y(tick);
            svg.line([LEFT, y], [WIDTH - RIGHT, y], FAINT, 1.0);
            svg.text(
                [LEFT - 10.0, y + 4.5],
                Anchor::Right,
                LABEL,
                &self.y_axis.label(tick),
            );
        }
        let bottom = self.bottom();
        svg.line([LEFT, bottom], [WIDTH - RIGHT, bottom], SOFT, 1.5);
        // Labels that would overlap their neighbor are omitted.
        let mut order: Vec<usize> = (0..self.count).collect();
        order.sort_by(|a, b| self.x(*a).total_cmp(&self.x(*b)));
        let mut free = f64::NEG_INFINITY;
        for i in order {
            let (x, label) = (self.x(i), &plot.x_values[i]);
            let half = CHARACTER_WIDTH * label.chars().count() as f64 / 2.0;
            svg.line([x, bottom], [x, bottom + 5.0], SOFT, 1.5);
            if x - half >= free {
                svg.text([x, bottom + 22.0], Anchor::Middle, LABEL, label);
                free = x + half + LABEL_GAP;
            }
        }
    }

    fn lines(&self, svg: &mut SvgWriter, plot: &Plot) {
        let mut order: Vec<usize> = (0..self.count).collect();
        order.sort_by(|a, b| self.x(*a).total_cmp(&self.x(*b)));
        for (i, series) in plot.series.iter().enumerate() {
            let point = |index: &usize| {
                let mark = series.marks.get(*index).copied().flatten();
                mark.map(|mark| ([self.x(*index), self.y(mark.value)], mark))
            };
            // A missing value interrupts the line.
            for segment in order.split(|index| point(index).is_none()) {
                let points: Vec<_> = segment.iter().filter_map(point).map(|(xy, _)| xy).collect();
                if points.len() > 1 {
                    svg.path(&points, color(i));
                }
            }
            for index in &order {
                match point(index) {
                    Some(([x, y], Mark { low, high, .. })) => {
                        svg.line([x, self.y(low)], [x, self.y(high)], color(i), 1.2);
                        svg.mark([x, y], shape(i), color(i));
                    }
                    None => self.cross(svg, *index, i, plot.series.len()),
                }
            }
        }
    }

    fn bars(&self, svg: &mut SvgWriter, plot: &Plot) {
        let count = plot.series.len().max(1) as f64;
        let bar_width = (self.band() * 0.72 / count).min(64.0);
        for (i, series) in plot.series.iter().enumerate() {
            for (index, mark) in series.marks.iter().enumerate() {
                let x = self.x(index) + (i as f64 - count / 2.0) * bar_width;
                match mark {
                    Some(mark) => {
                        let y = self.y(mark.value);
                        let drawn_width = bar_width * if count > 1.0 { 0.9 } else { 1.0 };
                        svg.bar([x, y], [drawn_width, self.bottom() - y], color(i));
                        let [low, high] = [mark.low, mark.high].map(|v| self.y(v));
                        if low > high {
                            svg.line(
                                [x + drawn_width / 2.0, low],
                                [x + drawn_width / 2.0, high],
                                INK,
                                1.2,
                            );
                        }
                    }
                    None => svg.cross([x + bar_width / 2.0, self.bottom() - 10.0], color(i)),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Series;
    use super::*;

    fn plot(x_values: &[&str], marks: &[&[Option<f64>]]) -> Plot {
        let mark = |value: &Option<f64>| {
            value.map(|value| Mark {
                value,
                low: value,
                high: value,
            })
        };
        Plot {
            title: "a < b".into(),
            notes: vec!["a note".into()],
            x_label: "stages".into(),
            y_label: "median, µs".into(),
            x_values: x_values.iter().map(|&p| p.to_owned()).collect(),
            series: (0..)
                .zip(marks)
                .map(|(i, marks): (u32, _)| Series {
                    name: format!("warps {i}"),
                    marks: marks.iter().map(mark).collect(),
                })
                .collect(),
            missing_label: "rejected".into(),
        }
    }

    fn count(text: &str, part: &str) -> usize {
        text.matches(part).count()
    }

    #[test]
    fn a_missing_value_interrupts_the_line() {
        let values = [Some(3.0), Some(2.0), None, Some(2.5), Some(2.6)];
        let text = render(&plot(&["1", "2", "3", "4", "5"], &[&values]));
        assert_eq!((count(&text, "<polyline"), count(&text, "<circle")), (2, 4));
        assert!(text.contains(">rejected</text>") && text.contains("a &lt; b"));
        assert!(!text.contains("warps 0"), "one line needs no legend");
        assert!(!text.contains("NaN") && !text.contains("inf"));
    }

    #[test]
    fn named_values_have_bars_from_zero() {
        let text = render(&plot(
            &["ring", "plain"],
            &[&[Some(90.0), Some(100.0)], &[Some(95.0), Some(96.0)]],
        ));
        // The background, two in the legend and four bars.
        assert_eq!((count(&text, "<rect"), count(&text, "<polyline")), (7, 0));
        assert!(text.contains(">0</text>") && text.contains(">warps 1</text>"));
        assert!(!text.contains("rejected"));
    }

    #[test]
    fn an_empty_plot_is_valid() {
        for text in [render(&plot(&[], &[])), render(&plot(&["1"], &[&[None]]))] {
            assert!(text.starts_with("<svg") && text.ends_with("</svg>\n"));
            assert!(!text.contains("NaN") && !text.contains("inf"));
        }
    }

    #[test]
    fn long_notes_wrap_between_words() {
        let lines = wrapped(&"word ".repeat(60));
        assert!(lines.len() > 1 && lines.iter().all(|l| l.len() <= CHARACTERS_PER_LINE));
    }
}
