//! Shapes and text as SVG.

use std::fmt::Write;

const FONT: &str = "Inter, 'Segoe UI', 'Helvetica Neue', Helvetica, Arial, sans-serif";
const PAPER: &str = "#ffffff";

/// Where a text is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Held {
    Left,
    Middle,
    Right,
}

/// How a text looks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Type {
    pub(super) size: f64,
    pub(super) colour: &'static str,
    pub(super) bold: bool,
}

/// Shapes, the last on top.
#[derive(Default)]
pub(super) struct Sheet {
    body: String,
}

impl Sheet {
    pub(super) fn text(&mut self, [x, y]: [f64; 2], held: Held, look: Type, text: &str) {
        let anchor = match held {
            Held::Left => "start",
            Held::Middle => "middle",
            Held::Right => "end",
        };
        let weight = if look.bold { 700 } else { 400 };
        self.push(&format!(
            r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" font-size="{}" font-weight="{weight}" fill="{}">{}</text>"#,
            look.size,
            look.colour,
            escaped(text)
        ));
    }

    pub(super) fn line(&mut self, [x1, y1]: [f64; 2], [x2, y2]: [f64; 2], colour: &str, wide: f64) {
        self.push(&format!(
            r#"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" stroke="{colour}" stroke-width="{wide}"/>"#
        ));
    }

    pub(super) fn path(&mut self, points: &[[f64; 2]], colour: &str) {
        let points: Vec<_> = points
            .iter()
            .map(|[x, y]| format!("{x:.1},{y:.1}"))
            .collect();
        self.push(&format!(
            r#"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="2" stroke-linejoin="round"/>"#,
            points.join(" ")
        ));
    }

    pub(super) fn bar(&mut self, [x, y]: [f64; 2], [width, height]: [f64; 2], colour: &str) {
        self.push(&format!(
            r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" fill="{colour}"/>"#
        ));
    }

    /// A mark of one of four shapes.
    pub(super) fn mark(&mut self, [x, y]: [f64; 2], shape: usize, colour: &str) {
        let around = |corners: &[[f64; 2]]| {
            let corners = corners
                .iter()
                .map(|[dx, dy]| format!("{:.1},{:.1}", x + dx, y + dy));
            let corners: Vec<_> = corners.collect();
            format!(r#"<polygon points="{}""#, corners.join(" "))
        };
        let shape = match shape % 4 {
            0 => format!(r#"<circle cx="{x:.1}" cy="{y:.1}" r="4.5""#),
            1 => around(&[[-4.0, -4.0], [4.0, -4.0], [4.0, 4.0], [-4.0, 4.0]]),
            2 => around(&[[0.0, -5.6], [5.6, 0.0], [0.0, 5.6], [-5.6, 0.0]]),
            _ => around(&[[0.0, -5.4], [5.2, 4.2], [-5.2, 4.2]]),
        };
        self.push(&format!(
            r#"{shape} fill="{colour}" stroke="{PAPER}" stroke-width="1.2"/>"#
        ));
    }

    /// A cross.
    pub(super) fn cross(&mut self, [x, y]: [f64; 2], colour: &str) {
        self.line([x - 4.0, y - 4.0], [x + 4.0, y + 4.0], colour, 2.0);
        self.line([x - 4.0, y + 4.0], [x + 4.0, y - 4.0], colour, 2.0);
    }

    /// The whole document.
    pub(super) fn finish(self, [width, height]: [f64; 2], title: &str) -> String {
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0}" height="{height:.0}" viewBox="0 0 {width:.0} {height:.0}" role="img" font-family="{FONT}">
<title>{}</title>
<rect width="{width:.0}" height="{height:.0}" fill="{PAPER}"/>
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

/// Text in which nothing is markup.
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
    fn text_is_no_markup() {
        assert_eq!(escaped("a<b> & \"c\"\n"), "a&lt;b&gt; &amp; &quot;c&quot; ");
    }
}
