//! A kernel as a picture: its roles from left to right, and the rings between them.

use crate::words;
use std::collections::BTreeSet;
use warpline_check::walk::sites;
use warpline_check::{Facts, Uniformity};
use warpline_ir::{Access, BarId, Kernel, Memory, Op, StmtKind, Sync};

/// The picture, some lines of text.
///
/// What a role does is read from its ops: a ring is a pair of barriers that
/// one side fills and the other one waits for.
pub(crate) fn picture(kernel: &Kernel) -> String {
    let roles = seen(kernel);
    let rings = rings(kernel, &roles);
    let layers = layers(roles.len(), &rings);
    let last = layers.iter().max().copied().unwrap_or(0);
    let mut columns = Vec::new();
    for layer in 0..=last {
        let into: Vec<&Ring> = rings.iter().filter(|r| r.reaches(layer, &layers)).collect();
        if layer > 0 {
            columns.push(arrows(&into));
        }
        let of = (0..roles.len()).filter(|&i| layers[i] == layer);
        columns.push(boxes(
            &of.map(|i| told(kernel, i, &roles[i])).collect::<Vec<_>>(),
        ));
    }
    side_by_side(&columns)
}

/// What a role does.
#[derive(Default)]
struct Seen {
    waits: BTreeSet<BarId>,
    fills: BTreeSet<BarId>,
    reads: Vec<String>,
    writes: Vec<String>,
    multiplies: bool,
}

fn seen(kernel: &Kernel) -> Vec<Seen> {
    let mut roles: Vec<Seen> = kernel.roles.iter().map(|_| Seen::default()).collect();
    let uniformity = Uniformity::of(kernel);
    sites(kernel, &uniformity, &mut |site| {
        let (Some(role), StmtKind::Op(op)) = (site.role, &site.stmt.kind) else {
            return;
        };
        roles[role.index()].note(kernel, op);
    });
    roles
}

impl Seen {
    fn note(&mut self, kernel: &Kernel, op: &Op) {
        self.multiplies |= matches!(op, Op::Wgmma(_));
        let facts = Facts::of(op);
        for sync in &facts.syncs {
            match sync {
                Sync::Wait { bar, .. } | Sync::Test { bar, .. } => self.waits.insert(bar.bar),
                Sync::Arrive { bar, .. } | Sync::ExpectTx { bar, .. } => self.fills.insert(bar.bar),
                _ => false,
            };
        }
        for touch in &facts.touches {
            let Memory::Tensor(param) = touch.memory else {
                continue;
            };
            let list = match touch.access {
                Access::Read => &mut self.reads,
                _ => &mut self.writes,
            };
            let name = &kernel.params[param.index()].name;
            if !list.contains(name) {
                list.push(name.clone());
            }
        }
    }
}

/// Slots that some roles fill and others empty.
struct Ring {
    name: String,
    slots: String,
    from: Vec<usize>,
    to: Vec<usize>,
}

impl Ring {
    /// Does it end in a layer, and start in one before?
    fn reaches(&self, layer: usize, layers: &[usize]) -> bool {
        self.to.iter().any(|&i| layers[i] == layer) && self.from.iter().any(|&i| layers[i] < layer)
    }
}

fn rings(kernel: &Kernel, roles: &[Seen]) -> Vec<Ring> {
    let who = |f: &dyn Fn(&Seen) -> bool| -> Vec<usize> {
        (0..roles.len()).filter(|&i| f(&roles[i])).collect()
    };
    let full = |(i, bar): (usize, &warpline_ir::Barrier)| {
        let (name, id) = (bar.name.strip_suffix(".full")?, BarId(i as u32));
        let (from, to) = (
            who(&|r| r.fills.contains(&id)),
            who(&|r| r.waits.contains(&id)),
        );
        let part = |tile: &str| tile == name || tile.starts_with(&format!("{name}."));
        let tiles = kernel.tiles.iter().filter(|t| part(&t.name));
        let bytes: u64 = tiles.map(|t| u64::from(t.layout.stage_bytes())).sum();
        Some(Ring {
            name: name.to_owned(),
            slots: format!("{} × {}", bar.len, words::bytes(bytes)),
            from,
            to,
        })
    };
    kernel
        .barriers
        .iter()
        .enumerate()
        .filter_map(full)
        .collect()
}

/// How many rings lie before each role, at most.
fn layers(roles: usize, rings: &[Ring]) -> Vec<usize> {
    let mut layers = vec![0; roles];
    // A line without a way back is settled after as many rounds as it has roles.
    for _ in 0..roles {
        for ring in rings {
            let after = ring.from.iter().map(|&i| layers[i] + 1).max().unwrap_or(0);
            for &to in ring.to.iter().filter(|&&to| !ring.from.contains(&to)) {
                layers[to] = layers[to].max(after).min(roles - 1);
            }
        }
    }
    layers
}

/// A role in words, a line each.
fn told(kernel: &Kernel, i: usize, seen: &Seen) -> Vec<String> {
    let role = &kernel.roles[i];
    let mut size = match role.warps {
        1 => "1 warp".to_owned(),
        n => format!("{n} warps"),
    };
    if let Some(registers) = role.registers {
        size += &format!(", {registers} registers");
    }
    let mut lines = vec![role.name.clone(), size];
    if !seen.reads.is_empty() {
        lines.push(format!("copies in {}", words::list(&seen.reads, "and")));
    }
    if seen.multiplies {
        lines.push("multiplies".into());
    }
    if !seen.writes.is_empty() {
        lines.push(format!("copies out {}", words::list(&seen.writes, "and")));
    }
    lines
}

fn width(lines: &[String]) -> usize {
    lines.iter().map(|l| l.chars().count()).max().unwrap_or(0)
}

/// Boxes above each other.
fn boxes(all: &[Vec<String>]) -> Vec<String> {
    let wide = all.iter().map(|lines| width(lines)).max().unwrap_or(0);
    let rule = |left: char, right: char| format!("{left}{}{right}", "─".repeat(wide + 2));
    let mut out = vec![rule('┌', '┐')];
    for (i, lines) in all.iter().enumerate() {
        if i > 0 {
            out.push(rule('├', '┤'));
        }
        out.extend(lines.iter().map(|line| format!("│ {line:wide$} │")));
    }
    out.push(rule('└', '┘'));
    out
}

/// Rings as arrows to the right, below each other.
fn arrows(rings: &[&Ring]) -> Vec<String> {
    let labels: Vec<String> = rings
        .iter()
        .flat_map(|r| [format!("ring {}", r.name), r.slots.clone()])
        .collect();
    let wide = width(&labels).max(3);
    let mut out = vec![String::new()];
    for ring in rings {
        let centred = |text: &str| format!(" {text:^wide$} ");
        out.push(centred(&format!("ring {}", ring.name)));
        out.push(format!("{}►", "─".repeat(wide + 1)));
        out.push(centred(&ring.slots));
    }
    out
}

fn side_by_side(columns: &[Vec<String>]) -> String {
    let height = columns.iter().map(Vec::len).max().unwrap_or(0);
    let mut text = String::new();
    for row in 0..height {
        let mut line = "  ".to_owned();
        for column in columns {
            let wide = width(column);
            let cell = column.get(row).map_or("", String::as_str);
            line += &format!("{cell:wide$}");
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpline_ir::build::*;

    #[test]
    fn roles_stand_behind_the_rings_that_feed_them() {
        let kernel = Kernel::build("line", &warpline_ir::Target::SM_90A, |k| {
            let out = k.pointer::<f32>("out");
            let (first, second) = (
                k.ring("in", 3, |s| s.vector::<f32>(32)),
                k.ring("sums", 2, |s| s.vector::<f32>(32)),
            );
            k.role("load").body(|| {
                let slot = first.acquire();
                slot.store(0u32, lane_id(), 1.0f32);
                slot.commit();
            });
            k.role("add").body(|| {
                let (slot, to) = (first.wait(), second.acquire());
                let x = slot.load(0u32, lane_id());
                slot.release();
                to.store(0u32, lane_id(), x + 1.0);
                to.commit();
            });
            k.role("store").body(|| {
                let slot = second.wait();
                out.store(lane_id(), slot.load(0u32, lane_id()));
                slot.release();
            });
        });
        let picture = picture(&kernel.unwrap());
        let lines: Vec<&str> = picture.lines().collect();
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
