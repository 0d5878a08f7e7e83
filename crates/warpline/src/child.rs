//! Child processes of the same program, for kernels that may hang or lose the device.
//!
//! The child reports its exit code before it exits ([`report_exit`]), because the driver may keep a
//! process with a hanging kernel alive. The parent does not wait for that.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The environment variable of a child.
const VARIABLE: &str = "WARPLINE_CHILD";

/// The prefix of the line with the exit code.
const END: &str = "\u{4}warpline child ends with ";

/// The result of a child.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChildResult {
    /// The reported or actual exit code; `None` if the child was killed.
    pub code: Option<i32>,
    /// The standard output before the report.
    pub output: String,
}

/// Returns whether this process is a child.
pub fn is_child() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

/// Writes a text and reports the exit code to the parent, which ignores later output. Call it in a
/// child.
pub fn report_exit(code: u8, text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}\n{END}{code}")?;
    out.flush()
}

/// Runs this program as a child with other arguments. Kills it after it reports its exit code or when
/// the time limit expires. The child shares standard error.
pub fn run<A: AsRef<OsStr>>(
    args: impl IntoIterator<Item = A>,
    limit: Duration,
) -> io::Result<ChildResult> {
    let deadline = Instant::now() + limit;
    let mut child = Command::new(std::env::current_exe()?)
        .args(args)
        .env(VARIABLE, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let lines = lines(&mut child);
    let mut output = String::new();
    let code = loop {
        let remaining = deadline.saturating_duration_since(Instant::now());
        match lines.recv_timeout(remaining) {
            Ok(line) => match line.strip_prefix(END) {
                Some(code) => break code.parse().ok(),
                None => output += &(line + "\n"),
            },
            Err(RecvTimeoutError::Timeout) => break None,
            Err(RecvTimeoutError::Disconnected) => break child.wait()?.code(),
        }
    };
    // A child that waits in the driver needs a kill, which may take a while.
    let _ = child.kill();
    thread::spawn(move || child.wait());
    Ok(ChildResult { code, output })
}

/// Returns a channel with the lines of the child's output.
fn lines(child: &mut Child) -> Receiver<String> {
    let (send, lines) = channel();
    if let Some(out) = child.stdout.take() {
        thread::spawn(move || {
            let lines = BufReader::new(out).lines().map_while(Result::ok);
            for line in lines {
                if send.send(line).is_err() {
                    break;
                }
            }
        });
    }
    lines
}
