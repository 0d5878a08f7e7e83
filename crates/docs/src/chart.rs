//! Horizontal bar charts of speedups as SVG. A style sheet adapts the colors to light and dark pages.

use std::fmt::Write;

/// A chart of speedups over a baseline at 1.
#[derive(Clone, Debug)]
pub struct Chart {
    /// The headline.
    pub title: String,
    /// The line below it.
    pub subtitle: String,
    /// The names of the bars of each row.
    pub series: Vec<String>,
    /// The rows from top to bottom.
    pub rows: Vec<Row>,
    /// The line below the bars.
    pub footer: String,
}

/// One row of a chart.
#[derive(Clone, Debug)]
pub struct Row {
    /// The label at the left.
    pub label: String,
    /// One speedup for each series; `None` leaves the bar out.
    pub values: Vec<Option<f64>>,
    /// Starts a group with this heading.
    pub group: Option<String>,
}

/// The width of the bar area.
const BARS_WIDTH: f64 = 500.0;
const RIGHT_MARGIN: f64 = 70.0;
/// The estimated width of a character of a label.
const CHAR_WIDTH: f64 = 6.8;
const TOP_MARGIN: f64 = 96.0;
const BAR_HEIGHT: f64 = 15.0;
const ROW_GAP: f64 = 10.0;
const GROUP_HEIGHT: f64 = 30.0;

const STYLE: &str = "\
text{font-family:-apple-system,'Segoe UI',Inter,Helvetica,Arial,sans-serif;fill:#1f2328}\
.soft{fill:#59636e}.grid{stroke:#d1d9e0}.base{stroke:#59636e}\
.s0{fill:#c2410c}.s1{fill:#2563a8}.s2{fill:#0f8a7e}.behind{fill:#8c959f}\
@media(prefers-color-scheme:dark){text{fill:#f0f6fc}.soft{fill:#9198a1}.grid{stroke:#3d444d}.base{stroke:#9198a1}\
.s0{fill:#fb923c}.s1{fill:#58a6ff}.s2{fill:#2dd4bf}.behind{fill:#656c76}}";

impl Chart {
    /// Draws the chart.
    pub fn svg(&self) -> String {
        let count = self.series.len().max(1) as f64;
        let row_height = count * BAR_HEIGHT + ROW_GAP;
        let groups = self.rows.iter().filter(|row| row.group.is_some()).count() as f64;
        let height =
            TOP_MARGIN + self.rows.len() as f64 * row_height + groups * GROUP_HEIGHT + 52.0;
        let values = self.rows.iter().flat_map(|row| row.values.iter().flatten());
        let max = values.copied().fold(1.0, f64::max);
        let step = [0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .find(|s| max / s <= 8.0)
            .unwrap_or(20.0);
        let end = (max / step).ceil() * step;
        let longest = self.rows.iter().map(|row| row.label.chars().count()).max();
        let left = 40.0 + longest.unwrap_or(0) as f64 * CHAR_WIDTH;
        let width = (left + BARS_WIDTH + RIGHT_MARGIN).round();
        let x = |value: f64| left + value / end * BARS_WIDTH;

        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\">\n\
             <title>{title}</title>\n<style>{STYLE}</style>\n",
            title = escape(&self.title)
        );
        text(&mut out, 16.0, 30.0, 19.0, "", "start", &self.title);
        text(&mut out, 16.0, 52.0, 13.0, "soft", "start", &self.subtitle);
        let mut legend_x = 16.0;
        for (i, name) in self.series.iter().enumerate() {
            let _ = writeln!(
                out,
                "<rect class=\"s{i}\" x=\"{legend_x}\" y=\"65\" width=\"12\" height=\"12\" rx=\"2\"/>"
            );
            text(&mut out, legend_x + 18.0, 76.0, 13.0, "", "start", name);
            legend_x += 44.0 + 7.0 * name.chars().count() as f64;
        }

        let bottom = height - 44.0;
        let mut tick = 0.0;
        while tick <= end + 1e-9 {
            let class = if (tick - 1.0).abs() < 1e-9 {
                "base"
            } else {
                "grid"
            };
            let _ = writeln!(
                out,
                "<line class=\"{class}\" x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"{1}\" y2=\"{bottom}\"/>",
                x(tick),
                TOP_MARGIN - 8.0
            );
            text(
                &mut out,
                x(tick),
                bottom + 16.0,
                11.5,
                "soft",
                "middle",
                &format!("{}×", format_number(tick)),
            );
            tick += step;
        }
        let mut y = TOP_MARGIN;
        for row in &self.rows {
            if let Some(group) = &row.group {
                text(&mut out, 16.0, y + 18.0, 13.5, "soft", "start", group);
                y += GROUP_HEIGHT;
            }
            text(
                &mut out,
                left - 10.0,
                y + count * BAR_HEIGHT / 2.0 + 4.5,
                12.5,
                "",
                "end",
                &row.label,
            );
            for (i, value) in row.values.iter().enumerate() {
                let Some(value) = value else { continue };
                let class = if *value < 1.0 {
                    "behind".to_owned()
                } else {
                    format!("s{i}")
                };
                let top = y + i as f64 * BAR_HEIGHT;
                let _ = writeln!(
                    out,
                    "<rect class=\"{class}\" x=\"{left}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{}\" rx=\"2\"/>",
                    x(*value) - left,
                    BAR_HEIGHT - 2.0
                );
                text(
                    &mut out,
                    x(*value) + 5.0,
                    top + 10.5,
                    11.5,
                    "",
                    "start",
                    &format!("{value:.2}×"),
                );
            }
            y += row_height;
        }
        text(
            &mut out,
            16.0,
            height - 10.0,
            11.5,
            "soft",
            "start",
            &self.footer,
        );
        out.push_str("</svg>\n");
        out
    }
}

fn text(out: &mut String, x: f64, y: f64, size: f64, class: &str, anchor: &str, text: &str) {
    let class = if class.is_empty() {
        String::new()
    } else {
        format!(" class=\"{class}\"")
    };
    let _ = writeln!(
        out,
        "<text{class} x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" text-anchor=\"{anchor}\">{}</text>",
        escape(text)
    );
}

/// Formats a number without trailing zeros.
fn format_number(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
