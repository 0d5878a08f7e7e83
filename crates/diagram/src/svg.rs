//! The diagram as SVG, for light and dark pages.

use crate::{Diagram, RingArrow, RoleBox};
use std::fmt::Write;

const MARGIN: f64 = 20.0;
const LINE_HEIGHT: f64 = 17.0;
const ROLE_GAP: f64 = 22.0;
const RING_WIDTH: f64 = 110.0;
const ARROW_LENGTH: f64 = 40.0;
const STAGE_SIZE: f64 = 13.0;
const CHAR_WIDTH: f64 = 7.1;

const STYLE: &str = "\
text{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:12px;fill:#1f2328}\
.name{font-weight:700;font-size:13.5px}.soft{fill:#59636e}\
.role{fill:#f6f8fa;stroke:#59636e;stroke-width:1.3}.load{fill:#ddf4ff;stroke:#0969da}\
.math{fill:#fff1e5;stroke:#bc4c00}.store{fill:#dafbe1;stroke:#1a7f37}\
.stage{fill:#eaeef2;stroke:#818b98}.edge{stroke:#59636e;stroke-width:1.4;fill:none}.tip{fill:#59636e}\
@media(prefers-color-scheme:dark){text{fill:#f0f6fc}.soft{fill:#9198a1}\
.role{fill:#151b23;stroke:#9198a1}.load{fill:#0c2d6b;stroke:#58a6ff}.math{fill:#4d2400;stroke:#f0883e}\
.store{fill:#04260f;stroke:#3fb950}.stage{fill:#262c36;stroke:#656c76}.edge{stroke:#9198a1}.tip{fill:#9198a1}}";

/// A rectangle on the page.
#[derive(Clone, Copy)]
struct Frame {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

impl Frame {
    fn middle(self) -> f64 {
        self.y + self.height / 2.0
    }

    fn right(self) -> f64 {
        self.x + self.width
    }
}

impl Diagram {
    /// Draws the diagram as an SVG document.
    pub fn svg(&self) -> String {
        let layers = self
            .roles
            .iter()
            .map(|role| role.layer)
            .max()
            .map_or(0, |last| last + 1);
        let height = (0..layers)
            .map(|layer| self.column_height(layer))
            .fold(70.0, f64::max);
        let mut frames = vec![None; self.roles.len()];
        let mut x = MARGIN;
        let mut ring_columns = Vec::new();
        for layer in 0..layers {
            let column = self
                .roles
                .iter()
                .enumerate()
                .filter(|(_, role)| role.layer == layer);
            let width = column
                .clone()
                .map(|(_, role)| role_width(role))
                .fold(90.0, f64::max);
            let mut y = MARGIN + (height - self.column_height(layer)) / 2.0;
            for (i, role) in column {
                let frame = Frame {
                    x,
                    y,
                    width,
                    height: role_height(role),
                };
                frames[i] = Some(frame);
                y += frame.height + ROLE_GAP;
            }
            ring_columns.push(x + width + ARROW_LENGTH);
            x += width + 2.0 * ARROW_LENGTH + RING_WIDTH;
        }
        let width = x - 2.0 * ARROW_LENGTH - RING_WIDTH + MARGIN;
        let mut out = String::new();
        for (ring, frame) in self.ring_frames(&ring_columns, height) {
            for &from in &ring.from {
                if let Some(role) = frames[from] {
                    edge(
                        &mut out,
                        (role.right(), role.middle()),
                        (frame.x, frame.middle()),
                    );
                }
            }
            for &to in &ring.to {
                if let Some(role) = frames[to] {
                    edge(
                        &mut out,
                        (frame.right(), frame.middle()),
                        (role.x, role.middle()),
                    );
                }
            }
            draw_ring(&mut out, ring, frame);
        }
        for (role, frame) in self.roles.iter().zip(&frames) {
            if let Some(frame) = frame {
                draw_role(&mut out, role, *frame);
            }
        }
        let height = height + 2.0 * MARGIN;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\">\n<title>Roles and rings of {}</title>\n\
             <style>{STYLE}</style>\n<defs><marker id=\"tip\" markerWidth=\"8\" markerHeight=\"8\" refX=\"7\" refY=\"4\" \
             orient=\"auto\"><path class=\"tip\" d=\"M0 0 8 4 0 8z\"/></marker></defs>\n{out}</svg>\n",
            escape(&self.kernel)
        )
    }

    fn column_height(&self, layer: usize) -> f64 {
        let heights = self
            .roles
            .iter()
            .filter(|role| role.layer == layer)
            .map(role_height);
        heights.map(|height| height + ROLE_GAP).sum::<f64>() - ROLE_GAP
    }

    /// Returns the rings that lead to a later layer, each with its frame.
    fn ring_frames(&self, ring_columns: &[f64], height: f64) -> Vec<(&RingArrow, Frame)> {
        let first_layer = |ring: &RingArrow| ring.from.iter().map(|&i| self.roles[i].layer).max();
        let last_layer = |ring: &RingArrow| ring.to.iter().map(|&i| self.roles[i].layer).max();
        let leads_forward = |ring: &&RingArrow| {
            first_layer(ring)
                .zip(last_layer(ring))
                .is_some_and(|(a, b)| a < b)
        };
        let mut ring_frames = Vec::new();
        for (layer, &x) in ring_columns.iter().enumerate() {
            let layer_rings = self
                .rings
                .iter()
                .filter(leads_forward)
                .filter(|ring| first_layer(ring) == Some(layer));
            let layer_rings: Vec<&RingArrow> = layer_rings.collect();
            let ring_height = 58.0;
            let mut y = MARGIN + (height - ring_height * layer_rings.len() as f64) / 2.0;
            for ring in layer_rings {
                let frame = Frame {
                    x,
                    y: y + 4.0,
                    width: RING_WIDTH,
                    height: ring_height - 8.0,
                };
                ring_frames.push((ring, frame));
                y += ring_height;
            }
        }
        ring_frames
    }
}

fn role_width(role: &RoleBox) -> f64 {
    let longest = role
        .lines
        .iter()
        .map(|line| line.chars().count())
        .max()
        .unwrap_or(0);
    longest.max(role.name.chars().count()) as f64 * CHAR_WIDTH + 24.0
}

fn role_height(role: &RoleBox) -> f64 {
    (role.lines.len() + 1) as f64 * LINE_HEIGHT + 16.0
}

fn draw_role(out: &mut String, role: &RoleBox, frame: Frame) {
    let class = match role {
        RoleBox { is_math: true, .. } => "math",
        RoleBox { is_store: true, .. } => "store",
        RoleBox { is_load: true, .. } => "load",
        _ => "",
    };
    let Frame {
        x,
        y,
        width,
        height,
    } = frame;
    let _ = writeln!(
        out,
        "<rect class=\"role {class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"8\"/>"
    );
    text(
        out,
        x + 12.0,
        y + LINE_HEIGHT + 5.0,
        "name",
        "start",
        &role.name,
    );
    for (i, line) in role.lines.iter().enumerate() {
        text(
            out,
            x + 12.0,
            y + (i + 2) as f64 * LINE_HEIGHT + 5.0,
            "soft",
            "start",
            line,
        );
    }
}

/// Draws a ring as its name, its stages as squares, and their size.
fn draw_ring(out: &mut String, ring: &RingArrow, frame: Frame) {
    let center = frame.x + frame.width / 2.0;
    text(
        out,
        center,
        frame.y + 13.0,
        "",
        "middle",
        &format!("ring {}", ring.name),
    );
    let shown = ring.stages.clamp(1, 9);
    let width = f64::from(shown) * (STAGE_SIZE + 3.0) - 3.0;
    for i in 0..shown {
        let x = center - width / 2.0 + f64::from(i) * (STAGE_SIZE + 3.0);
        let _ = writeln!(
            out,
            "<rect class=\"stage\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{STAGE_SIZE}\" height=\"{STAGE_SIZE}\" rx=\"2\"/>",
            frame.middle() - STAGE_SIZE / 2.0
        );
    }
    text(
        out,
        center,
        frame.y + frame.height - 2.0,
        "soft",
        "middle",
        &ring.slots,
    );
}

fn edge(out: &mut String, from: (f64, f64), to: (f64, f64)) {
    let bend = (to.0 - from.0) / 2.0;
    let _ = writeln!(
        out,
        "<path class=\"edge\" marker-end=\"url(#tip)\" d=\"M{:.1} {:.1}C{:.1} {:.1} {:.1} {:.1} {:.1} {:.1}\"/>",
        from.0,
        from.1,
        from.0 + bend,
        from.1,
        to.0 - bend,
        to.1,
        to.0 - 2.0,
        to.1
    );
}

fn text(out: &mut String, x: f64, y: f64, class: &str, anchor: &str, text: &str) {
    let _ = writeln!(
        out,
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
        escape(text)
    );
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
