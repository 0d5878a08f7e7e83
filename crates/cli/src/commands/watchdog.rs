//! Runs the watchdog build in a separate process before a workload runs on a GPU.

use crate::errors::Failure;
use std::io::{self, Write};
use std::process;
use std::time::Duration;
use warpline::{Device, Error, RunOptions, child};
use warpline_kernels::AnyWorkload;

/// Time limit of the watchdog process; it spends most of its time on inputs and compilation.
const LIMIT: Duration = Duration::from_secs(120);

/// The exit code of a hang.
const HANG: u8 = 3;

/// Runs the watchdog build in a separate process, so that a hang becomes an error and
/// does not block this process. The watchdog process itself never returns from this call.
pub(crate) fn run_first(
    work: &dyn AnyWorkload,
    device: &Device,
    options: &RunOptions,
) -> Result<(), Failure> {
    if device.is_cpu() {
        return Ok(());
    }
    if child::is_child() {
        watchdog_process(work, device, options);
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
            // The normal build reports any other failure.
            Some(_) => Ok(()),
            None => hang(format!(
                "the watchdog build did not finish within {} s; its process was killed",
                LIMIT.as_secs()
            )),
        },
        Err(e) => {
            let note = "note: cannot start the watchdog process";
            let _ = writeln!(io::stderr(), "{note}: {e}");
            Ok(())
        }
    }
}

/// Runs the watchdog build and exits: the body of the watchdog process.
fn watchdog_process(work: &dyn AnyWorkload, device: &Device, options: &RunOptions) -> ! {
    let (code, text) = match warpline::run_watchdog(work, device, options) {
        Ok(()) => (0, String::new()),
        Err(e @ Error::HangReport(_)) => (HANG, e.to_string()),
        Err(e) => (1, e.to_string()),
    };
    // A failure of this write cannot be reported.
    let _ = child::report_exit(code, &text);
    process::exit(code.into())
}
