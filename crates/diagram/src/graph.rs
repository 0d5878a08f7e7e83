//! Roles and rings as a graph, read from a kernel's ops.

use std::collections::BTreeSet;
use warpline_check::walk::sites;
use warpline_check::{Facts, Uniformity};
use warpline_ir::{
    AccessKind, BarId, Barrier, Kernel, MemoryAddress, MemoryRegion, Op, StmtKind, SyncOp,
};

/// The roles and rings of a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagram {
    /// The name of the kernel.
    pub kernel: String,
    /// The roles, in the order of the kernel.
    pub roles: Vec<RoleBox>,
    /// The rings, in the order of their mbarriers.
    pub rings: Vec<RingArrow>,
}

/// One role.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RoleBox {
    /// The name.
    pub name: String,
    /// Its size, loads, matrix instructions and stores, one per line.
    pub lines: Vec<String>,
    /// The column: the largest number of rings that lead to the role.
    pub layer: usize,
    /// Whether the role loads from global memory.
    pub is_load: bool,
    /// Whether the role issues matrix instructions.
    pub is_math: bool,
    /// Whether the role stores to global memory.
    pub is_store: bool,
}

/// One ring: the roles that fill its slots and the roles that read them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RingArrow {
    /// The name.
    pub name: String,
    /// The number of stages.
    pub stages: u32,
    /// Number and size of the stages: `3 × 4 KiB`.
    pub slots: String,
    /// Indices of the producers.
    pub from: Vec<usize>,
    /// Indices of the consumers.
    pub to: Vec<usize>,
}

impl Diagram {
    /// Reads the roles and rings of a kernel.
    pub fn of(kernel: &Kernel) -> Self {
        let activities = activities(kernel);
        let rings = rings(kernel, &activities);
        let layers = layers(activities.len(), &rings);
        let roles = activities.iter().enumerate().map(|(i, activity)| RoleBox {
            name: kernel.roles[i].name.clone(),
            lines: activity.lines(kernel, i),
            layer: layers[i],
            is_load: activity.is_load,
            is_math: activity.is_math,
            is_store: activity.is_store,
        });
        Self {
            kernel: kernel.name.clone(),
            roles: roles.collect(),
            rings,
        }
    }
}

/// The barriers, tensors and matrix instructions that a role uses.
#[derive(Default)]
struct Activity {
    waits: BTreeSet<BarId>,
    arrives: BTreeSet<BarId>,
    reads: Vec<String>,
    writes: Vec<String>,
    is_load: bool,
    is_store: bool,
    is_math: bool,
}

fn activities(kernel: &Kernel) -> Vec<Activity> {
    let mut roles: Vec<Activity> = kernel.roles.iter().map(|_| Activity::default()).collect();
    let uniformity = Uniformity::of(kernel);
    sites(kernel, &uniformity, &mut |site| {
        let (Some(role), StmtKind::Op(op)) = (site.role, &site.stmt.kind) else {
            return;
        };
        roles[role.index()].record(kernel, op);
    });
    roles
}

impl Activity {
    fn record(&mut self, kernel: &Kernel, op: &Op) {
        self.is_math |= matches!(op, Op::Wgmma(_) | Op::Mma(_));
        let facts = Facts::of(op);
        for sync in &facts.syncs {
            match sync {
                SyncOp::Wait { bar, .. } | SyncOp::Test { bar, .. } => self.waits.insert(bar.bar),
                SyncOp::Arrive { bar, .. } | SyncOp::ExpectTx { bar, .. } => {
                    self.arrives.insert(bar.bar)
                }
                _ => false,
            };
        }
        for access in &facts.touches {
            let is_read = access.access == AccessKind::Read;
            let is_global = matches!(
                access.memory,
                MemoryRegion::Global(..) | MemoryRegion::PerLane(MemoryAddress::Global { .. }, _)
            );
            if is_global {
                self.is_load |= is_read;
                self.is_store |= !is_read;
            }
            let MemoryRegion::Tensor(param) = access.memory else {
                continue;
            };
            let (flag, list) = match is_read {
                true => (&mut self.is_load, &mut self.reads),
                false => (&mut self.is_store, &mut self.writes),
            };
            *flag = true;
            let name = &kernel.params[param.index()].name;
            if !list.contains(name) {
                list.push(name.clone());
            }
        }
    }

    /// Describes the role, one line per property.
    fn lines(&self, kernel: &Kernel, i: usize) -> Vec<String> {
        let role = &kernel.roles[i];
        let mut size = match role.warps {
            1 => "1 warp".to_owned(),
            n => format!("{n} warps"),
        };
        if let Some(registers) = role.registers {
            size += &format!(", {registers} registers/thread");
        }
        let mut lines = vec![size];
        if !self.reads.is_empty() {
            lines.push(format!("loads {}", list(&self.reads)));
        }
        if self.is_math {
            lines.push("matrix instructions".into());
        }
        if !self.writes.is_empty() {
            lines.push(format!("stores {}", list(&self.writes)));
        }
        lines
    }
}

fn rings(kernel: &Kernel, roles: &[Activity]) -> Vec<RingArrow> {
    let roles_where = |condition: &dyn Fn(&Activity) -> bool| -> Vec<usize> {
        (0..roles.len()).filter(|&i| condition(&roles[i])).collect()
    };
    let ring = |(i, bar): (usize, &Barrier)| {
        let (name, id) = (bar.name.strip_suffix(".full")?, BarId(i as u32));
        let belongs = |tile: &str| tile == name || tile.starts_with(&format!("{name}."));
        let tiles = kernel.tiles.iter().filter(|tile| belongs(&tile.name));
        let stage: u64 = tiles.map(|tile| u64::from(tile.layout.stage_bytes())).sum();
        Some(RingArrow {
            name: name.to_owned(),
            stages: bar.len,
            slots: format!("{} × {}", bar.len, bytes(stage)),
            from: roles_where(&|role| role.arrives.contains(&id)),
            to: roles_where(&|role| role.waits.contains(&id)),
        })
    };
    kernel
        .barriers
        .iter()
        .enumerate()
        .filter_map(ring)
        .collect()
}

/// Returns the column of each role: the largest number of rings that lead to it.
fn layers(roles: usize, rings: &[RingArrow]) -> Vec<usize> {
    let mut layers = vec![0; roles];
    // Without a cycle the columns are final after as many rounds as there are roles.
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

/// Formats a size in bytes: `4 KiB`.
fn bytes(n: u64) -> String {
    match n {
        n if n >= 1 << 10 && n % (1 << 10) == 0 => format!("{} KiB", n >> 10),
        n if n >= 1 << 10 => format!("{:.1} KiB", n as f64 / 1024.0),
        n => format!("{n} B"),
    }
}

/// Joins names: `a, b and c`.
fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [head @ .., last] => format!("{} and {last}", head.join(", ")),
    }
}
