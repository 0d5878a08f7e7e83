//! A bar on the terminal while something goes on; nothing where there is no terminal.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;
use warpline::bench::BenchProgress;
use warpline::tune::{TuneProgress, TuneStage};
use warpline::{Phase, Progress};

/// A bar that disappears when it is dropped.
pub(crate) struct Bar(ProgressBar);

impl Bar {
    /// A bar on standard error, shown only if that is a terminal.
    pub(crate) fn new() -> Self {
        let bar = ProgressBar::new_spinner();
        bar.set_style(style("{spinner} {msg}"));
        bar.enable_steady_tick(Duration::from_millis(100));
        Self(bar)
    }

    /// What a run tells its progress to.
    pub(crate) fn listener(&self) -> Progress {
        let bar = self.0.clone();
        let counted = style("{spinner} {msg} {wide_bar} {percent}% {eta}");
        Arc::new(move |phase| match phase {
            Phase::Inputs => bar.set_message("draws the inputs"),
            Phase::Kernels { done, total } => {
                if bar.length() != Some(total) {
                    bar.set_length(total);
                    bar.set_message("runs");
                    bar.set_style(counted.clone());
                }
                // Threads may tell out of order.
                bar.set_position(bar.position().max(done));
            }
            Phase::Compare => bar.set_message("compares with the reference"),
            _ => {}
        })
    }

    /// Counts up to a total from here on.
    pub(crate) fn count(&self, doing: &'static str, total: usize) {
        self.0
            .set_style(style("{spinner} {msg} {wide_bar} {pos}/{len}"));
        self.0.set_message(doing);
        self.0.set_length(total as u64);
        self.0.set_position(0);
    }

    /// One of the total is done.
    pub(crate) fn step(&self) {
        self.0.inc(1);
    }

    /// What the tuning of one problem of several tells its progress to. Who is
    /// waited for is said also where there is no terminal.
    pub(crate) fn tuning(&self, i: usize, of: usize, family: &'static str) -> TuneProgress {
        let bar = self.0.clone();
        let plain = style("{spinner} {msg}");
        let counted = style("{spinner} {msg} {wide_bar} {pos}/{len}");
        let title = match of {
            1 => family.to_owned(),
            of => format!("{}/{of} {family}", i + 1),
        };
        Arc::new(move |stage| {
            let (message, count) = match stage {
                TuneStage::Waits { holder } => {
                    let note =
                        format!("note: {family} is being tuned by {holder}, and is waited for");
                    bar.suspend(|| {
                        let _ = writeln!(io::stderr(), "{note}");
                    });
                    ("waits for another process", None)
                }
                TuneStage::Builds { done, total } => ("builds and compiles", Some((*done, *total))),
                TuneStage::Draws => ("draws the inputs and computes the reference", None),
                TuneStage::Races { round, rounds, .. } => {
                    ("races", Some((*round as usize, *rounds as usize)))
                }
                TuneStage::Compares => ("compares with the reference", None),
                TuneStage::Confirms => ("confirms the winner", None),
                _ => return,
            };
            bar.set_message(format!("{title}: {message}"));
            match count {
                None => bar.set_style(plain.clone()),
                Some((done, total)) => {
                    bar.set_style(counted.clone());
                    bar.set_length(total as u64);
                    bar.set_position(done as u64);
                }
            }
        })
    }

    /// What a measurement tells its progress to.
    pub(crate) fn stages(&self) -> BenchProgress {
        let bar = self.0.clone();
        bar.set_style(style("{spinner} {pos}/{len} {msg}"));
        Arc::new(move |stage| {
            bar.set_length(stage.heats as u64);
            bar.set_position(stage.heat as u64);
            bar.set_message(format!("{}: {}", stage.family, stage.doing));
        })
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
