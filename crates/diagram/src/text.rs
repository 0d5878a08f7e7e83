//! The diagram as text, with box-drawing characters.

use crate::{Diagram, RingArrow};

impl Diagram {
    /// Draws the diagram as lines of text.
    pub fn text(&self) -> String {
        let last = self.roles.iter().map(|role| role.layer).max().unwrap_or(0);
        let mut columns = Vec::new();
        for layer in 0..=last {
            if layer > 0 {
                let into: Vec<&RingArrow> = self
                    .rings
                    .iter()
                    .filter(|ring| self.leads_to(ring, layer))
                    .collect();
                columns.push(arrows(&into));
            }
            let roles = self.roles.iter().filter(|role| role.layer == layer);
            let lines = roles.map(|role| [std::slice::from_ref(&role.name), &role.lines].concat());
            columns.push(boxes(&lines.collect::<Vec<_>>()));
        }
        side_by_side(&columns)
    }

    /// Returns whether a ring leads from an earlier column to this one.
    fn leads_to(&self, ring: &RingArrow, layer: usize) -> bool {
        ring.to.iter().any(|&i| self.roles[i].layer == layer)
            && ring.from.iter().any(|&i| self.roles[i].layer < layer)
    }
}

fn width(lines: &[String]) -> usize {
    lines
        .iter()
        .map(|line| line.chars().count())
        .max()
        .unwrap_or(0)
}

/// Draws boxes above each other.
fn boxes(all: &[Vec<String>]) -> Vec<String> {
    let text_width = all.iter().map(|lines| width(lines)).max().unwrap_or(0);
    let border = |left: char, right: char| format!("{left}{}{right}", "─".repeat(text_width + 2));
    let mut out = vec![border('┌', '┐')];
    for (i, lines) in all.iter().enumerate() {
        if i > 0 {
            out.push(border('├', '┤'));
        }
        out.extend(lines.iter().map(|line| format!("│ {line:text_width$} │")));
    }
    out.push(border('└', '┘'));
    out
}

/// Draws rings as arrows to the right, below each other.
fn arrows(rings: &[&RingArrow]) -> Vec<String> {
    let names: Vec<String> = rings
        .iter()
        .map(|ring| format!("ring {}", ring.name))
        .collect();
    let slots: Vec<String> = rings.iter().map(|ring| ring.slots.clone()).collect();
    let text_width = width(&names).max(width(&slots)).max(3);
    let centered = |text: &str| format!(" {text:^text_width$} ");
    let mut out = vec![String::new()];
    for (name, slots) in names.iter().zip(&slots) {
        out.push(centered(name));
        out.push(format!("{}►", "─".repeat(text_width + 1)));
        out.push(centered(slots));
    }
    out
}

fn side_by_side(columns: &[Vec<String>]) -> String {
    let height = columns.iter().map(Vec::len).max().unwrap_or(0);
    let mut text = String::new();
    for row in 0..height {
        let mut line = "  ".to_owned();
        for column in columns {
            let text_width = width(column);
            let cell = column.get(row).map_or("", String::as_str);
            line += &format!("{cell:text_width$}");
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use crate::Diagram;
    use warpline_ir::builder::*;
    use warpline_ir::{Kernel, Target};

    #[test]
    fn roles_are_to_the_right_of_the_rings_that_they_consume() {
        let kernel = Kernel::build("line", &Target::SM_90A, |k| {
            let out = k.pointer::<f32>("out");
            let inputs = k.ring("in", 3, |s| s.vector::<f32>(32));
            let sums = k.ring("sums", 2, |s| s.vector::<f32>(32));
            k.role("load").body(|| {
                let slot = inputs.acquire();
                slot.store(0u32, lane_id(), 1.0f32);
                slot.commit();
            });
            k.role("add").body(|| {
                let (slot, to) = (inputs.wait(), sums.acquire());
                let x = slot.load(0u32, lane_id());
                slot.release();
                to.store(0u32, lane_id(), x + 1.0);
                to.commit();
            });
            k.role("store").body(|| {
                let slot = sums.wait();
                out.store(lane_id(), slot.load(0u32, lane_id()));
                slot.release();
            });
        });
        let text = Diagram::of(&kernel.unwrap()).text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "  ┌────────┐           ┌────────┐           ┌────────┐",
                "  │ load   │  ring in  │ add    │ ring sums │ store  │",
                "  │ 1 warp │──────────►│ 1 warp │──────────►│ 1 warp │",
                "  └────────┘ 3 × 128 B └────────┘ 2 × 128 B └────────┘",
            ]
        );
    }
}
