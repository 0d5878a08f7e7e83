//! This program once more, in a process of its own: for what may hang, or lose
//! the device for the process it runs in.
//!
//! The child says how it ends before it does ([`say`]): a process with a
//! kernel that hangs may be kept by the driver, and the parent need not wait
//! for that.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Set in the environment of a child.
const VARIABLE: &str = "WARPLINE_CHILD";

/// Begins the line with which a child says how it ends.
const END: &str = "\u{4}warpline child ends with ";

/// What became of a child.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ended {
    /// Its exit code, said or real; `None`: it had to be ended.
    pub code: Option<i32>,
    /// What it wrote to standard output until then.
    pub output: String,
}

/// Is this process a child?
pub fn is_child() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

/// In a child: says with which code it ends, after a text. What it writes
/// later is not read.
pub fn say(code: u8, text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}\n{END}{code}")?;
    out.flush()
}

/// Runs this program with other arguments as a child, and ends it once it has
/// said how it ends, or when its time is up. Standard error is shared.
pub fn run<A: AsRef<OsStr>>(
    args: impl IntoIterator<Item = A>,
    limit: Duration,
) -> io::Result<Ended> {
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
        let left = deadline.saturating_duration_since(Instant::now());
        match lines.recv_timeout(left) {
            Ok(line) => match line.strip_prefix(END) {
                Some(code) => break code.parse().ok(),
                None => output += &(line + "\n"),
            },
            Err(RecvTimeoutError::Timeout) => break None,
            Err(RecvTimeoutError::Disconnected) => break child.wait()?.code(),
        }
    };
    // One that waits in the driver ends by nothing else, and not at once.
    let _ = child.kill();
    thread::spawn(move || child.wait());
    Ok(Ended { code, output })
}

/// The lines of a child's output, as they come.
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
