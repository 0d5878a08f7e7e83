//! Child processes of the same program, for kernels that may hang or lose the device.
//!
//! The child reports its exit code before it exits ([`report_exit`]), because the driver may keep a
//! process with a hanging kernel alive. The parent does not wait for the process to exit.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The environment variable that marks a process as a child.
const CHILD_VARIABLE: &str = "WARPLINE_CHILD";

/// The prefix of the line with the exit code.
const EXIT_PREFIX: &str = "\u{4}warpline child ends with ";

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
    std::env::var_os(CHILD_VARIABLE).is_some()
}

/// Writes a text and reports the exit code to the parent, which ignores later output. Call it in a
/// child.
pub fn report_exit(code: u8, text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}\n{EXIT_PREFIX}{code}")?;
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
        .env(CHILD_VARIABLE, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let lines = output_lines(&mut child);
    let mut output = String::new();
    let code = loop {
        let remaining = deadline.saturating_duration_since(Instant::now());
        match lines.recv_timeout(remaining) {
            Ok(line) => match line.strip_prefix(EXIT_PREFIX) {
                Some(code) => break code.parse().ok(),
                None => output += &(line + "\n"),
            },
            Err(RecvTimeoutError::Timeout) => break None,
            Err(RecvTimeoutError::Disconnected) => break exit_code(&mut child, deadline)?,
        }
    };
    // A child that waits in the driver needs a kill, which may take a while.
    let _ = child.kill();
    thread::spawn(move || child.wait());
    Ok(ChildResult { code, output })
}

/// Waits for a child that has closed its output. Returns `None` if it lives on at the deadline.
fn exit_code(child: &mut Child, deadline: Instant) -> io::Result<Option<i32>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.code());
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Returns a channel with the lines of the child's output.
fn output_lines(child: &mut Child) -> Receiver<String> {
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
