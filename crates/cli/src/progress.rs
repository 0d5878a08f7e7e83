//! A progress bar on standard error, if that is a terminal.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;
use warpline::bench::BenchProgress;
use warpline::tune::{TuneProgress, TuneStage};
use warpline::{RunPhase, RunProgress};

/// A progress bar that disappears when it is dropped.
pub(crate) struct Bar(ProgressBar);

impl Bar {
    /// Creates a bar on standard error, shown only if that is a terminal.
    pub(crate) fn new() -> Self {
        let bar = ProgressBar::new_spinner();
        bar.set_style(style("{spinner} {msg}"));
        bar.enable_steady_tick(Duration::from_millis(100));
        Self(bar)
    }

    /// Returns the listener for the progress of a run.
    pub(crate) fn listener(&self) -> RunProgress {
        let bar = self.0.clone();
        let counted = style("{spinner} {msg} {wide_bar} {percent}% {eta}");
        Arc::new(move |phase| match phase {
            RunPhase::Inputs => bar.set_message("generating inputs"),
            RunPhase::Kernels { done, total } => {
                if bar.length() != Some(total) {
                    bar.set_length(total);
                    bar.set_message("running");
                    bar.set_style(counted.clone());
                }
                // Threads may report out of order.
                bar.set_position(bar.position().max(done));
            }
            RunPhase::Compare => bar.set_message("comparing with the reference"),
            _ => {}
        })
    }

    /// Starts counting to a total.
    pub(crate) fn count(&self, doing: &'static str, total: usize) {
        self.0
            .set_style(style("{spinner} {msg} {wide_bar} {pos}/{len}"));
        self.0.set_message(doing);
        self.0.set_length(total as u64);
        self.0.set_position(0);
    }

    /// Counts one item as done.
    pub(crate) fn step(&self) {
        self.0.inc(1);
    }

    /// Returns the listener for the autotuning of problem `i` of `count`. It also reports a wait
    /// for another process without a terminal.
    pub(crate) fn tune_listener(
        &self,
        i: usize,
        count: usize,
        family: &'static str,
    ) -> TuneProgress {
        let bar = self.0.clone();
        let plain = style("{spinner} {msg}");
        let counted = style("{spinner} {msg} {wide_bar} {pos}/{len}");
        let title = match count {
            1 => family.to_owned(),
            _ => format!("{}/{count} {family}", i + 1),
        };
        Arc::new(move |stage| {
            let (message, progress) = match stage {
                TuneStage::Waiting { holder } => {
                    let note = format!("note: waiting for {holder}, which is tuning {family}");
                    bar.suspend(|| {
                        let _ = writeln!(io::stderr(), "{note}");
                    });
                    ("waiting for another process", None)
                }
                TuneStage::Building { done, total } => {
                    ("building and compiling", Some((*done, *total)))
                }
                TuneStage::DrawingInputs => ("generating inputs and the reference", None),
                TuneStage::Measuring { round, rounds, .. } => {
                    ("measuring", Some((*round as usize, *rounds as usize)))
                }
                TuneStage::Comparing => ("comparing with the reference", None),
                TuneStage::Confirming => ("confirming the winner", None),
                _ => return,
            };
            bar.set_message(format!("{title}: {message}"));
            match progress {
                None => bar.set_style(plain.clone()),
                Some((done, total)) => {
                    bar.set_style(counted.clone());
                    bar.set_length(total as u64);
                    bar.set_position(done as u64);
                }
            }
        })
    }

    /// Returns the listener for the progress of a measurement.
    pub(crate) fn bench_listener(&self) -> BenchProgress {
        let bar = self.0.clone();
        bar.set_style(style("{spinner} {pos}/{len} {msg}"));
        Arc::new(move |stage| {
            bar.set_length(stage.groups as u64);
            bar.set_position(stage.group as u64);
            bar.set_message(format!("{}: {}", stage.family, stage.action));
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
