//! Conversion between flags and schedules.
//!
//! Flags are flat, as the caller writes them; a schedule has only the options that it uses. This
//! module alone rejects flags that a schedule does not have.

use super::config::{
    Choice, Config, Exchange, MAX_PARTS, Operands, Raster, Schedule, ScheduleKind, TileAssignment,
};
use super::tile_scheduler::Cluster;
use warpline_family::error::FamilyError;
use warpline_ir::builder;

impl Choice {
    /// Returns the choice without the grid, which follows from the extents.
    pub(super) fn without_grid(self) -> Self {
        Self { ctas: None, ..self }
    }
}

impl From<&Config> for Choice {
    fn from(c: &Config) -> Self {
        let (raster, group) = match c.schedule.tiles() {
            TileAssignment::Static(builder::Rasterization::RowMajor) => (Raster::RowMajor, 1),
            TileAssignment::Static(builder::Rasterization::Hilbert) => (Raster::Hilbert, 1),
            TileAssignment::Static(builder::Rasterization::Grouped(group)) => {
                (Raster::Grouped, group)
            }
            TileAssignment::Dynamic(group) => (Raster::Dynamic, group),
        };
        Self {
            schedule: Some(c.schedule.kind()),
            tile_m: Some(c.tile_m),
            tile_n: Some(c.tile_n),
            tail_n: c.tail_n,
            tile_k: Some(c.tile_k),
            consumers: Some(c.consumers()),
            stages: Some(c.stages),
            cluster: Some(c.cluster()),
            raster: Some(raster),
            group: Some(group),
            split_k: Some(c.schedule.split_k()),
            exchange: match c.schedule {
                Schedule::SplitK { exchange, .. } => Some(exchange),
                _ => None,
            },
            stream_k: Some(c.schedule.is_stream_k()),
            swap_ab: Some(c.swap_ab()),
            cache_hints: Some(c.cache_hints),
            load_registers: c.registers.map(|r| r.load),
            math_registers: c.registers.map(|r| r.math),
            pack: Some(c.pack),
            ctas: Some(c.ctas),
            batch_invariant: None,
        }
    }
}

/// A flag that only some schedules have.
struct ScheduleFlag {
    is_set: bool,
    flag: &'static str,
    /// The schedules that have the flag, as a help line.
    help: &'static str,
}

impl Schedule {
    /// Returns the kind that `--schedule` names.
    pub fn kind(&self) -> ScheduleKind {
        match self {
            Schedule::DoubleBuffer { .. } => ScheduleKind::DoubleBuffer,
            Schedule::PingPong { .. } => ScheduleKind::PingPong,
            Schedule::Storer { .. } => ScheduleKind::Storer,
            Schedule::TwoConsumer { .. } => ScheduleKind::TwoConsumer,
            Schedule::Cooperative { .. } | Schedule::SplitK { .. } | Schedule::StreamK { .. } => {
                ScheduleKind::Cooperative
            }
        }
    }

    /// Reads the schedule from flags; `group` is the default size of a raster group.
    pub(super) fn read(flags: &Choice, group: u32) -> Result<Self, FamilyError> {
        let kind = flags.schedule.unwrap_or(ScheduleKind::Cooperative);
        let swap_ab = flags.swap_ab.unwrap_or(false);
        let cluster = flags.cluster.unwrap_or(Cluster::One);
        let stream_k = flags.stream_k.unwrap_or(false);
        let exchange = flags.exchange.unwrap_or_default();
        let split_k = match (flags.split_k.unwrap_or(1), exchange) {
            (n @ (1 | 2 | 4 | 8), _) | (n @ 1..=MAX_PARTS, Exchange::Memory) => n,
            (n, Exchange::Cluster) => {
                return reject(format!(
                    "--split-k is {n}; it must be 1, 2, 4 or 8\nhelp: use --split-k 2, or --exchange memory"
                ));
            }
            (n, Exchange::Memory) => {
                return reject(format!(
                    "--split-k is {n}; --exchange memory supports 1 to {MAX_PARTS}\nhelp: use --split-k 2"
                ));
            }
        };
        let tiles = tiles(flags, group)?;
        let swap_flag = ScheduleFlag {
            is_set: swap_ab,
            flag: "--swap-ab",
            help: "use --schedule cooperative or double-buffer",
        };
        let cluster_flag = ScheduleFlag {
            is_set: cluster != Cluster::One,
            flag: "--cluster",
            help: "use a schedule with a producer, without --swap-ab, --split-k and --stream-k",
        };
        let split_flag = ScheduleFlag {
            is_set: split_k > 1,
            flag: "--split-k",
            help: "use --schedule cooperative without --stream-k",
        };
        let stream_flag = ScheduleFlag {
            is_set: stream_k,
            flag: "--stream-k",
            help: "use --schedule cooperative",
        };
        match (kind, tiles) {
            (ScheduleKind::DoubleBuffer, _) => {
                reject_flags(kind, &[cluster_flag, split_flag, stream_flag])?;
                Ok(Self::DoubleBuffer {
                    consumers: consumers(kind, flags, 2)?,
                    swap_ab,
                    raster: static_raster("schedule double-buffer", tiles)?,
                })
            }
            (ScheduleKind::Cooperative, _) if stream_k => {
                reject_flags(kind, &[cluster_flag, split_flag])?;
                Ok(Self::StreamK {
                    consumers: consumers(kind, flags, 3)?,
                    swap_ab,
                    raster: static_raster("--stream-k", tiles)?,
                })
            }
            (ScheduleKind::Cooperative, _) if split_k > 1 => {
                reject_flags(kind, &[cluster_flag])?;
                Ok(Self::SplitK {
                    parts: split_k,
                    exchange,
                    consumers: consumers(kind, flags, 3)?,
                    swap_ab,
                    raster: static_raster("--split-k", tiles)?,
                })
            }
            (ScheduleKind::Cooperative, _) => {
                let operands = match swap_ab {
                    true => {
                        reject_flags(kind, &[cluster_flag])?;
                        Operands::Swapped
                    }
                    false => Operands::Ab(cluster),
                };
                Ok(Self::Cooperative {
                    consumers: consumers(kind, flags, 3)?,
                    operands,
                    tiles,
                })
            }
            (ScheduleKind::PingPong, tiles) => {
                reject_flags(kind, &[swap_flag, split_flag, stream_flag])?;
                check_two_consumers(kind, flags)?;
                Ok(Self::PingPong { cluster, tiles })
            }
            (ScheduleKind::TwoConsumer, tiles) => {
                reject_flags(kind, &[swap_flag, split_flag, stream_flag])?;
                check_two_consumers(kind, flags)?;
                Ok(Self::TwoConsumer { cluster, tiles })
            }
            (ScheduleKind::Storer, tiles) => {
                reject_flags(kind, &[swap_flag, split_flag, stream_flag])?;
                Ok(Self::Storer {
                    consumers: consumers(kind, flags, 3)?,
                    cluster,
                    tiles,
                })
            }
        }
    }
}

fn reject<T>(text: String) -> Result<T, FamilyError> {
    Err(FamilyError::Config(text))
}

/// Rejects the first of `flags` that is set.
fn reject_flags(kind: ScheduleKind, flags: &[ScheduleFlag]) -> Result<(), FamilyError> {
    match flags.iter().find(|flag| flag.is_set) {
        None => Ok(()),
        Some(ScheduleFlag { flag, help, .. }) => reject(format!(
            "schedule {} does not support {flag} with these options\nhelp: {help}",
            kind.keyword()
        )),
    }
}

/// Returns the warpgroups that multiply, at most `max_consumers`.
fn consumers(kind: ScheduleKind, flags: &Choice, max_consumers: u32) -> Result<u32, FamilyError> {
    match flags.consumers.unwrap_or(2) {
        n if (1..=max_consumers).contains(&n) => Ok(n),
        n => reject(format!(
            "--consumers is {n}; schedule {} has 1 to {max_consumers}",
            kind.keyword()
        )),
    }
}

/// Rejects any number of consumers but two.
fn check_two_consumers(kind: ScheduleKind, flags: &Choice) -> Result<(), FamilyError> {
    match flags.consumers {
        None | Some(2) => Ok(()),
        Some(n) => reject(format!(
            "--consumers is {n}; schedule {} has 2",
            kind.keyword()
        )),
    }
}

/// Returns the assignment of tiles to CTAs.
fn tiles(flags: &Choice, group: u32) -> Result<TileAssignment, FamilyError> {
    let group = match flags.group.unwrap_or(group) {
        0 => {
            return reject(
                "--group is 0; a raster group has at least 1 tile row\nhelp: use --group 8".into(),
            );
        }
        group => group,
    };
    Ok(match flags.raster.unwrap_or(Raster::Grouped) {
        Raster::RowMajor => TileAssignment::Static(builder::Rasterization::RowMajor),
        Raster::Hilbert => TileAssignment::Static(builder::Rasterization::Hilbert),
        Raster::Grouped => TileAssignment::Static(builder::Rasterization::Grouped(group)),
        Raster::Dynamic => TileAssignment::Dynamic(group),
    })
}

/// Returns the static raster; rejects a work queue.
fn static_raster(
    option: &str,
    tiles: TileAssignment,
) -> Result<builder::Rasterization, FamilyError> {
    match tiles {
        TileAssignment::Static(raster) => Ok(raster),
        TileAssignment::Dynamic(_) => reject(format!(
            "{option} needs a static tile order, but --raster is dynamic\n\
             help: use --raster grouped"
        )),
    }
}
