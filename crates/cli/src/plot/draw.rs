//! A plot on a sheet.

use super::axis::{Axis, places};
use super::sheet::{Held, Sheet, Type};
use super::{Mark, Plot};

/// Sides and distances, in pixels.
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 92.0;
const RIGHT: f64 = 40.0;
const EDGE: f64 = 32.0;
/// Letters of a note that fit into a line.
const LETTERS: usize = 138;
/// The least distance of labels, and of a letter's width in one.
const APART: f64 = 10.0;
const LETTER: f64 = 7.2;

const INK: &str = "#1b2430";
const SOFT: &str = "#5d6978";
const FAINT: &str = "#dfe4ea";
/// Colours that stay apart for most eyes.
const COLOURS: [&str; 8] = [
    "#d9480f", "#2563a8", "#0f8a7e", "#7c4fc4", "#8a6d1a", "#c2427a", "#4a5563", "#3aa0d8",
];

const TITLE: Type = Type {
    size: 20.0,
    colour: INK,
    bold: true,
};
const NOTE: Type = Type {
    size: 12.5,
    colour: SOFT,
    bold: false,
};
const LABEL: Type = Type {
    size: 13.0,
    colour: INK,
    bold: false,
};
const AXIS: Type = Type {
    size: 13.0,
    colour: INK,
    bold: true,
};

/// The plot as a whole document.
pub(crate) fn svg(plot: &Plot) -> String {
    let mut sheet = Sheet::default();
    let mut y = 44.0;
    sheet.text([EDGE, y], Held::Left, TITLE, &plot.title);
    y += 6.0;
    for line in plot.notes.iter().flat_map(|note| wrapped(note)) {
        y += 19.0;
        sheet.text([EDGE, y], Held::Left, NOTE, &line);
    }
    let field = Field::new(plot, y + 14.0);
    let field = field.legend(&mut sheet, plot);
    sheet.text([EDGE, field.top - 14.0], Held::Left, AXIS, &plot.up);
    field.grid(&mut sheet, plot);
    match &field.numbers {
        Some(_) => field.lines(&mut sheet, plot),
        None => field.bars(&mut sheet, plot),
    }
    let mut bottom = field.bottom() + 48.0;
    let middle = [(LEFT + WIDTH - RIGHT) / 2.0, bottom];
    sheet.text(middle, Held::Middle, AXIS, &plot.across);
    if plot.series.iter().any(|s| s.marks.contains(&None)) {
        bottom += 24.0;
        sheet.cross([EDGE + 5.0, bottom - 4.0], SOFT);
        sheet.text([EDGE + 18.0, bottom], Held::Left, NOTE, &plot.missing);
    }
    sheet.finish([WIDTH, bottom + 24.0], &plot.title)
}

/// A text in lines that fit.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let long = |line: &String| line.chars().count() + word.chars().count() >= LETTERS;
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if !long(line) => line.extend([" ", word]),
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// The shape of a series' marks: another one when colours come again.
fn shape(i: usize) -> usize {
    i / COLOURS.len() + i
}

/// The colour of a series.
fn colour(i: usize) -> &'static str {
    COLOURS[i % COLOURS.len()]
}

/// The part of the sheet with the marks.
struct Field {
    top: f64,
    up: Axis,
    /// Where the places are that are numbers.
    numbers: Option<Vec<f64>>,
    count: usize,
}

impl Field {
    fn new(plot: &Plot, top: f64) -> Self {
        let marks = plot.series.iter().flat_map(|s| s.marks.iter().flatten());
        let numbers = places(&plot.places);
        let ends = marks.flat_map(|m| [m.low, m.value, m.high]);
        Self {
            top,
            // The length of a bar is its value.
            up: Axis::around(ends, numbers.is_none()),
            numbers,
            count: plot.places.len(),
        }
    }

    /// Names and marks above, where there is more than one series.
    fn legend(mut self, sheet: &mut Sheet, plot: &Plot) -> Self {
        let (left, mut x, mut y) = (EDGE + 6.0, EDGE + 6.0, self.top + 16.0);
        for (i, series) in plot.series.iter().enumerate() {
            if plot.series.len() < 2 {
                break;
            }
            let width = 36.0 + LETTER * series.name.chars().count() as f64;
            if x + width > WIDTH - EDGE && x > left {
                (x, y) = (left, y + 22.0);
            }
            match self.numbers {
                Some(_) => sheet.mark([x, y - 4.5], shape(i), colour(i)),
                None => sheet.bar([x - 5.0, y - 9.5], [10.0, 10.0], colour(i)),
            }
            sheet.text([x + 12.0, y], Held::Left, LABEL, &series.name);
            x += width;
            self.top = y + 10.0;
        }
        self.top += 36.0;
        self
    }

    fn bottom(&self) -> f64 {
        self.top + HEIGHT
    }

    /// A cross at a place without a value, beside those of other series.
    fn cross(&self, sheet: &mut Sheet, place: usize, i: usize, of: usize) {
        let of = of as f64;
        let beside = (i as f64 - (of - 1.0) / 2.0) * (70.0 / of).min(13.0);
        let at = [self.x(place) + beside, self.bottom() - 10.0];
        sheet.cross(at, colour(i));
    }

    /// The width of a place of names.
    fn band(&self) -> f64 {
        (WIDTH - LEFT - RIGHT) / self.count.max(1) as f64
    }

    /// The middle of a place.
    fn x(&self, place: usize) -> f64 {
        match &self.numbers {
            Some(shares) => {
                let inset = 36.0;
                LEFT + inset + shares[place] * (WIDTH - LEFT - RIGHT - 2.0 * inset)
            }
            None => LEFT + (place as f64 + 0.5) * self.band(),
        }
    }

    fn y(&self, value: f64) -> f64 {
        self.bottom() - self.up.share(value) * HEIGHT
    }

    fn grid(&self, sheet: &mut Sheet, plot: &Plot) {
        for tick in self.up.ticks() {
            let y = self.y(tick);
            sheet.line([LEFT, y], [WIDTH - RIGHT, y], FAINT, 1.0);
            sheet.text(
                [LEFT - 10.0, y + 4.5],
                Held::Right,
                LABEL,
                &self.up.name(tick),
            );
        }
        let bottom = self.bottom();
        sheet.line([LEFT, bottom], [WIDTH - RIGHT, bottom], SOFT, 1.5);
        // A label that would touch its neighbour is left out.
        let mut order: Vec<usize> = (0..self.count).collect();
        order.sort_by(|a, b| self.x(*a).total_cmp(&self.x(*b)));
        let mut free = f64::NEG_INFINITY;
        for i in order {
            let (x, label) = (self.x(i), &plot.places[i]);
            let half = LETTER * label.chars().count() as f64 / 2.0;
            sheet.line([x, bottom], [x, bottom + 5.0], SOFT, 1.5);
            if x - half >= free {
                sheet.text([x, bottom + 22.0], Held::Middle, LABEL, label);
                free = x + half + APART;
            }
        }
    }

    fn lines(&self, sheet: &mut Sheet, plot: &Plot) {
        let mut order: Vec<usize> = (0..self.count).collect();
        order.sort_by(|a, b| self.x(*a).total_cmp(&self.x(*b)));
        for (i, series) in plot.series.iter().enumerate() {
            let at = |place: &usize| {
                let mark = series.marks.get(*place).copied().flatten();
                mark.map(|mark| ([self.x(*place), self.y(mark.value)], mark))
            };
            // A line ends where a value is missing.
            for part in order.split(|place| at(place).is_none()) {
                let points: Vec<_> = part.iter().filter_map(at).map(|(point, _)| point).collect();
                if points.len() > 1 {
                    sheet.path(&points, colour(i));
                }
            }
            for place in &order {
                match at(place) {
                    Some(([x, y], Mark { low, high, .. })) => {
                        sheet.line([x, self.y(low)], [x, self.y(high)], colour(i), 1.2);
                        sheet.mark([x, y], shape(i), colour(i));
                    }
                    None => self.cross(sheet, *place, i, plot.series.len()),
                }
            }
        }
    }

    fn bars(&self, sheet: &mut Sheet, plot: &Plot) {
        let count = plot.series.len().max(1) as f64;
        let wide = (self.band() * 0.72 / count).min(64.0);
        for (i, series) in plot.series.iter().enumerate() {
            for (place, mark) in series.marks.iter().enumerate() {
                let x = self.x(place) + (i as f64 - count / 2.0) * wide;
                match mark {
                    Some(mark) => {
                        let y = self.y(mark.value);
                        let thick = wide * if count > 1.0 { 0.9 } else { 1.0 };
                        sheet.bar([x, y], [thick, self.bottom() - y], colour(i));
                        let [low, high] = [mark.low, mark.high].map(|v| self.y(v));
                        if low > high {
                            sheet.line([x + thick / 2.0, low], [x + thick / 2.0, high], INK, 1.2);
                        }
                    }
                    None => sheet.cross([x + wide / 2.0, self.bottom() - 10.0], colour(i)),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Series;
    use super::*;

    fn plot(places: &[&str], marks: &[&[Option<f64>]]) -> Plot {
        let mark = |value: &Option<f64>| {
            value.map(|value| Mark {
                value,
                low: value,
                high: value,
            })
        };
        Plot {
            title: "a < b".into(),
            notes: vec!["what was asked".into()],
            across: "stages".into(),
            up: "median, µs".into(),
            places: places.iter().map(|&p| p.to_owned()).collect(),
            series: (0..)
                .zip(marks)
                .map(|(i, marks): (u32, _)| Series {
                    name: format!("warps {i}"),
                    marks: marks.iter().map(mark).collect(),
                })
                .collect(),
            missing: "refused".into(),
        }
    }

    fn count(text: &str, part: &str) -> usize {
        text.matches(part).count()
    }

    #[test]
    fn numbers_are_joined_by_lines_that_a_missing_value_ends() {
        let values = [Some(3.0), Some(2.0), None, Some(2.5), Some(2.6)];
        let text = svg(&plot(&["1", "2", "3", "4", "5"], &[&values]));
        assert_eq!((count(&text, "<polyline"), count(&text, "<circle")), (2, 4));
        assert!(text.contains(">refused</text>") && text.contains("a &lt; b"));
        assert!(!text.contains("warps 0"), "one line needs no legend");
        assert!(!text.contains("NaN") && !text.contains("inf"));
    }

    #[test]
    fn names_have_bars_from_zero() {
        let text = svg(&plot(
            &["ring", "plain"],
            &[&[Some(90.0), Some(100.0)], &[Some(95.0), Some(96.0)]],
        ));
        // Beside the paper and the two of the legend.
        assert_eq!((count(&text, "<rect"), count(&text, "<polyline")), (7, 0));
        assert!(text.contains(">0</text>") && text.contains(">warps 1</text>"));
        assert!(!text.contains("refused"));
    }

    #[test]
    fn nothing_at_all_is_drawn_too() {
        for text in [svg(&plot(&[], &[])), svg(&plot(&["1"], &[&[None]]))] {
            assert!(text.starts_with("<svg") && text.ends_with("</svg>\n"));
            assert!(!text.contains("NaN") && !text.contains("inf"));
        }
    }

    #[test]
    fn long_notes_are_cut_between_words() {
        let lines = wrapped(&"word ".repeat(60));
        assert!(lines.len() > 1 && lines.iter().all(|l| l.len() <= LETTERS));
    }
}
