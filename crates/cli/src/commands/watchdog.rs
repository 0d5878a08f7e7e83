//! Before work runs on a GPU: its watchdog build, in a process of its own.

use crate::errors::Failure;
use std::io::{self, Write};
use std::process;
use std::time::Duration;
use warpline::{Device, Error, RunOptions, child};
use warpline_kernels::AnyWork;

/// How long the other process may take: most of it goes to drawing inputs and
/// to compiling.
const LIMIT: Duration = Duration::from_secs(120);

/// The exit code of a hang.
const HANG: u8 = 3;

/// Runs the work as its watchdog build, so that a hang is reported and this
/// process goes on. In the other process, does so and ends it.
pub(crate) fn first(
    work: &dyn AnyWork,
    device: &Device,
    options: &RunOptions,
) -> Result<(), Failure> {
    if device.is_simulator() {
        return Ok(());
    }
    if child::is_child() {
        end(work, device, options);
    }
    let args = std::env::args_os().skip(1);
    let hang = |message: String| {
        Err(Failure {
            code: "hang",
            message,
            exit: HANG,
        })
    };
    match child::run(args, LIMIT) {
        Ok(ended) => match ended.code {
            Some(code) if code == i32::from(HANG) => hang(ended.output.trim_end().to_owned()),
            // Whatever else is wrong, the build as it was written will say.
            Some(_) => Ok(()),
            None => hang(format!(
                "the watchdog build did not end within {} s, so its process was ended",
                LIMIT.as_secs()
            )),
        },
        Err(e) => {
            let note = "note: there is no process for the watchdog build";
            let _ = writeln!(io::stderr(), "{note}: {e}");
            Ok(())
        }
    }
}

/// The other process.
fn end(work: &dyn AnyWork, device: &Device, options: &RunOptions) -> ! {
    let (code, text) = match warpline::watch(work, device, options) {
        Ok(()) => (0, String::new()),
        Err(e @ Error::HangReport(_)) => (HANG, e.to_string()),
        Err(e) => (1, e.to_string()),
    };
    // Nobody is left to tell if this fails.
    let _ = child::say(code, &text);
    process::exit(code.into())
}
