//! From flags to a schedule and back.
//!
//! Flags are flat, as a person writes them; a schedule has its own options only. What does not go
//! together is rejected here, once.

use super::config::{Choice, Config, Form, Operands, Order, Schedule, Tiles};
use super::tile_scheduler::Cluster;
use warpline_family::error::FamilyError;
use warpline_ir::build;

impl Choice {
    /// All but the grid, which follows from the extents.
    pub(super) fn without_grid(self) -> Self {
        Self { ctas: None, ..self }
    }
}

impl From<&Config> for Choice {
    fn from(c: &Config) -> Self {
        let (order, group) = match c.schedule.tiles() {
            Tiles::Static(build::Order::RowMajor) => (Order::RowMajor, 1),
            Tiles::Static(build::Order::Hilbert) => (Order::Hilbert, 1),
            Tiles::Static(build::Order::Grouped(group)) => (Order::Grouped, group),
            Tiles::Dynamic(group) => (Order::Dynamic, group),
        };
        Self {
            form: Some(c.schedule.form()),
            tile_m: Some(c.tile_m),
            tile_n: Some(c.tile_n),
            tail_n: c.tail_n,
            tile_k: Some(c.tile_k),
            consumers: Some(c.consumers()),
            stages: Some(c.stages),
            cluster: Some(c.cluster()),
            order: Some(order),
            group: Some(group),
            split_k: Some(c.schedule.split_k()),
            stream_k: Some(c.schedule.is_stream_k()),
            swap: Some(c.swap_ab()),
            hints: Some(c.hints),
            load_registers: c.registers.map(|r| r.load),
            math_registers: c.registers.map(|r| r.math),
            ctas: Some(c.ctas),
        }
    }
}

/// A flag that some schedules have, whether it is given, and which schedules have it.
struct Given(bool, &'static str, &'static str);

impl Schedule {
    /// The form by which flags name it.
    pub fn form(&self) -> Form {
        match self {
            Schedule::DoubleBuffer { .. } => Form::DoubleBuffer,
            Schedule::PingPong { .. } => Form::PingPong,
            Schedule::Storer { .. } => Form::Storer,
            Schedule::TwoConsumer { .. } => Form::TwoConsumer,
            Schedule::Cooperative { .. } | Schedule::SplitK { .. } | Schedule::StreamK { .. } => {
                Form::Cooperative
            }
        }
    }

    /// Reads the schedule from flags; `band` is the usual number of rows of tiles in a band.
    pub(super) fn read(flags: &Choice, band: u32) -> Result<Self, FamilyError> {
        let form = flags.form.unwrap_or(Form::Cooperative);
        let swap_ab = flags.swap.unwrap_or(false);
        let cluster = flags.cluster.unwrap_or(Cluster::One);
        let stream_k = flags.stream_k.unwrap_or(false);
        let split_k = match flags.split_k.unwrap_or(1) {
            n @ 1..=2 => n == 2,
            n => return reject(format!("1 or 2 CTAs split the sums of a tile, not {n}")),
        };
        let tiles = tiles(flags, band)?;
        let swap = Given(
            swap_ab,
            "--swap",
            "the forms cooperative and double-buffer have it",
        );
        let share = Given(
            cluster != Cluster::One,
            "--cluster",
            "forms with a producer have it, without --swap, --split-k and --stream-k",
        );
        let split = Given(
            split_k,
            "--split-k",
            "form cooperative has it, without --stream-k",
        );
        let stream = Given(stream_k, "--stream-k", "form cooperative has it");
        match (form, tiles) {
            (Form::DoubleBuffer, _) => {
                without(form, &[share, split, stream])?;
                Ok(Self::DoubleBuffer {
                    consumers: consumers(form, flags, 2)?,
                    swap_ab,
                    raster: dealt_beforehand("form double-buffer", tiles)?,
                })
            }
            (Form::Cooperative, _) if stream_k => {
                without(form, &[share, split])?;
                Ok(Self::StreamK {
                    consumers: consumers(form, flags, 3)?,
                    swap_ab,
                    raster: dealt_beforehand("--stream-k", tiles)?,
                })
            }
            (Form::Cooperative, _) if split_k => {
                without(form, &[share])?;
                Ok(Self::SplitK {
                    consumers: consumers(form, flags, 3)?,
                    swap_ab,
                    raster: dealt_beforehand("--split-k", tiles)?,
                })
            }
            (Form::Cooperative, _) => {
                let operands = match swap_ab {
                    true => {
                        without(form, &[share])?;
                        Operands::Swapped
                    }
                    false => Operands::Ab(cluster),
                };
                Ok(Self::Cooperative {
                    consumers: consumers(form, flags, 3)?,
                    operands,
                    tiles,
                })
            }
            (Form::PingPong, tiles) => {
                without(form, &[swap, split, stream])?;
                two_consumers(form, flags)?;
                Ok(Self::PingPong { cluster, tiles })
            }
            (Form::TwoConsumer, tiles) => {
                without(form, &[swap, split, stream])?;
                two_consumers(form, flags)?;
                Ok(Self::TwoConsumer { cluster, tiles })
            }
            (Form::Storer, tiles) => {
                without(form, &[swap, split, stream])?;
                Ok(Self::Storer {
                    consumers: consumers(form, flags, 3)?,
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

/// Rejects flags that a form does not have, or not beside the others that are given.
fn without(form: Form, flags: &[Given]) -> Result<(), FamilyError> {
    match flags.iter().find(|Given(given, ..)| *given) {
        None => Ok(()),
        Some(Given(_, flag, who)) => reject(format!(
            "form {} has no {flag} here\nhelp: {who}",
            form.word()
        )),
    }
}

/// The warpgroups that multiply, at most so many.
fn consumers(form: Form, flags: &Choice, most: u32) -> Result<u32, FamilyError> {
    match flags.consumers.unwrap_or(2) {
        n if (1..=most).contains(&n) => Ok(n),
        n => reject(format!(
            "in form {} 1 to {most} warpgroups multiply, not {n}",
            form.word()
        )),
    }
}

/// Rejects another number of consumers than two.
fn two_consumers(form: Form, flags: &Choice) -> Result<(), FamilyError> {
    match flags.consumers {
        None | Some(2) => Ok(()),
        Some(n) => reject(format!("form {} has 2 consumers, not {n}", form.word())),
    }
}

/// How tiles come to CTAs.
fn tiles(flags: &Choice, band: u32) -> Result<Tiles, FamilyError> {
    let group = match flags.group.unwrap_or(band) {
        0 => return reject("a band has at least 1 row of tiles, not 0 (--group 0)".into()),
        group => group,
    };
    Ok(match flags.order.unwrap_or(Order::Grouped) {
        Order::RowMajor => Tiles::Static(build::Order::RowMajor),
        Order::Hilbert => Tiles::Static(build::Order::Hilbert),
        Order::Grouped => Tiles::Static(build::Order::Grouped(group)),
        Order::Dynamic => Tiles::Dynamic(group),
    })
}

/// The order of tiles that every CTA knows beforehand.
fn dealt_beforehand(what: &str, tiles: Tiles) -> Result<build::Order, FamilyError> {
    match tiles {
        Tiles::Static(order) => Ok(order),
        Tiles::Dynamic(_) => reject(format!(
            "with {what} a CTA knows its tiles beforehand: not --order dynamic\n\
             help: choose --order grouped"
        )),
    }
}
