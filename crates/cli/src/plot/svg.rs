//! SVG shapes and text.

use std::fmt::Write;

const FONT: &str = "Inter, 'Segoe UI', 'Helvetica Neue', Helvetica, Arial, sans-serif";
const BACKGROUND: &str = "#ffffff";

/// The horizontal alignment of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Anchor {
    Left,
    Middle,
    Right,
}

/// The style of a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextStyle {
    pub(super) size: f64,
    pub(super) color: &'static str,
    pub(super) bold: bool,
}

/// An SVG document under construction; later shapes are on top.
#[derive(Default)]
pub(super) struct SvgWriter {
    body: String,
}

impl SvgWriter {
    pub(super) fn text(&mut self, [x, y]: [f64; 2], anchor: Anchor, style: TextStyle, text: &str) {
        let anchor = match anchor {
            Anchor::Left => "start",
            Anchor::Middle => "middle",
            Anchor::Right => "end",
        };
        let weight = if style.bold { 700 } else { 400 };
        self.push(&format!(
            r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" font-size="{}" font-weight="{weight}" fill="{}">{}</text>"#,
            style.size,
            style.color,
            escaped(text)
        ));
    }

    pub(super) fn line(&mut self, [x1, y1]: [f64; 2], [x2, y2]: [f64; 2], color: &str, width: f64) {
        self.push(&format!(
            r#"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" stroke="{color}" stroke-width="{width}"/>"#
        ));
    }

    pub(super) fn path(&mut self, points: &[[f64; 2]], color: &str) {
        let points: Vec<_> = points
            .iter()
            .map(|[x, y]| format!("{x:.1},{y:.1}"))
            .collect();
        self.push(&format!(
            r#"<polyline points="{}" fill="none" stroke="{color}" stroke-width="2" stroke-linejoin="round"/>"#,
            points.join(" ")
        ));
    }

    pub(super) fn bar(&mut self, [x, y]: [f64; 2], [width, height]: [f64; 2], color: &str) {
        self.push(&format!(
            r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" fill="{color}"/>"#
        ));
    }

    /// Draws a mark of one of four shapes.
    pub(super) fn mark(&mut self, [x, y]: [f64; 2], shape: usize, color: &str) {
        let polygon = |corners: &[[f64; 2]]| {
            let corners = corners
                .iter()
                .map(|[dx, dy]| format!("{:.1},{:.1}", x + dx, y + dy));
            let corners: Vec<_> = corners.collect();
            format!(r#"<polygon points="{}""#, corners.join(" "))
        };
        let shape = match shape % 4 {
            0 => format!(r#"<circle cx="{x:.1}" cy="{y:.1}" r="4.5""#),
            1 => polygon(&[[-4.0, -4.0], [4.0, -4.0], [4.0, 4.0], [-4.0, 4.0]]),
            2 => polygon(&[[0.0, -5.6], [5.6, 0.0], [0.0, 5.6], [-5.6, 0.0]]),
            _ => polygon(&[[0.0, -5.4], [5.2, 4.2], [-5.2, 4.2]]),
        };
        self.push(&format!(
            r#"{shape} fill="{color}" stroke="{BACKGROUND}" stroke-width="1.2"/>"#
        ));
    }

    /// Draws a cross.
    pub(super) fn cross(&mut self, [x, y]: [f64; 2], color: &str) {
        self.line([x - 4.0, y - 4.0], [x + 4.0, y + 4.0], color, 2.0);
        self.line([x - 4.0, y + 4.0], [x + 4.0, y - 4.0], color, 2.0);
    }

    /// Returns the document.
    pub(super) fn finish(self, [width, height]: [f64; 2], title: &str) -> String {
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0}" height="{height:.0}" viewBox="0 0 {width:.0} {height:.0}" role="img" font-family="{FONT}">
<title>{}</title>
<rect width="{width:.0}" height="{height:.0}" fill="{BACKGROUND}"/>
{}</svg>
"#,
            escaped(title),
            self.body
        )
    }

    fn push(&mut self, shape: &str) {
        // Writing to a string does not fail.
        let _ = writeln!(self.body, "{shape}");
    }
}

/// Escapes markup characters.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_escaped() {
        assert_eq!(escaped("a<b> & \"c\"\n"), "a&lt;b&gt; &amp; &quot;c&quot; ");
    }
}
