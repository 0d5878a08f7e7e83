//! A child process that runs tests one at a time. A test may hang or lose its CUDA context.
//!
//! The parent writes the name of a test to the child's input, and the child responds with one line
//! of JSON. The parent kills a child that does not respond in time or that lost its context; the next
//! test gets a new child.

use crate::runner::{TestGroup, TestRunner};
use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// The flag that makes this binary a child.
pub const FLAG: &str = "--child";

/// The result of a test.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct CaseResult {
    /// The failure, if the test failed.
    pub failed: Option<String>,
    /// A remark of a passed test.
    pub note: Option<String>,
    /// The name and the program hash of each kernel.
    pub kernels: Vec<(String, String)>,
    /// Whether the CUDA context is unusable.
    pub context_lost: bool,
}

impl CaseResult {
    /// Returns a failure with wrong output; the context stays usable.
    pub fn mismatch(message: impl Into<String>) -> Self {
        Self {
            failed: Some(message.into()),
            ..Self::default()
        }
    }

    /// Returns a failure after which the context may be unusable.
    pub fn failure(message: impl Into<String>) -> Self {
        Self {
            failed: Some(message.into()),
            context_lost: true,
            ..Self::default()
        }
    }
}

/// Runs the child: handles requests until its input ends.
pub fn serve(group: &TestGroup) -> Result<()> {
    let runner = TestRunner::open(group);
    let mut out = std::io::stdout();
    for name in std::io::stdin().lines() {
        let name = name.context("cannot read the next test")?;
        let result = match &runner {
            Ok(runner) => runner.run(&name),
            Err(message) => CaseResult::failure(format!("{message:#}")),
        };
        // One line on stdout; all other output goes to stderr.
        writeln!(out, "{}", serde_json::to_string(&result)?)?;
        out.flush()?;
        if result.context_lost {
            break;
        }
    }
    Ok(())
}

/// The parent's side: starts a child when it needs one.
pub struct ChildRunner {
    group: TestGroup,
    limit: Duration,
    current: Option<Running>,
}

struct Running {
    process: Child,
    input: ChildStdin,
    responses: Receiver<String>,
}

impl Drop for Running {
    fn drop(&mut self) {
        // A child that is blocked in the driver ends only by a kill.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl ChildRunner {
    /// Creates the runner of a group, with a time limit for each test.
    pub fn new(group: TestGroup, limit: Duration) -> Self {
        Self {
            group,
            limit,
            current: None,
        }
    }

    /// Runs a test in the child; starts a child if there is none.
    pub fn run(&mut self, name: &str) -> CaseResult {
        let result = match self.request(name) {
            Ok(result) => result,
            Err(message) => CaseResult::failure(format!("{message:#}")),
        };
        if result.context_lost {
            self.current = None;
        }
        result
    }

    fn request(&mut self, name: &str) -> Result<CaseResult> {
        let child = match &mut self.current {
            Some(child) => child,
            none => none.insert(start(&self.group)?),
        };
        writeln!(child.input, "{name}").context("the child process has ended")?;
        child.input.flush().context("the child process has ended")?;
        match child.responses.recv_timeout(self.limit) {
            Ok(line) => serde_json::from_str(&line)
                .with_context(|| format!("invalid response of the child: {line:?}")),
            Err(RecvTimeoutError::Timeout) => Ok(CaseResult::failure(format!(
                "hang: no response within {} s; the process was killed",
                self.limit.as_secs()
            ))),
            Err(RecvTimeoutError::Disconnected) => {
                let status = child
                    .process
                    .wait()
                    .context("cannot wait for the child process")?;
                Ok(CaseResult::failure(format!(
                    "the process ended during the test: {status}"
                )))
            }
        }
    }
}

/// Starts this binary as a child.
fn start(group: &TestGroup) -> Result<Running> {
    let exe = std::env::current_exe().context("cannot find this binary")?;
    let mut process = Command::new(exe)
        .arg(FLAG)
        .args(group.args())
        // These tests count and time compilations, so the disk cache is off.
        .envs((*group == TestGroup::Runtime).then_some(("WARPLINE_CACHE", "off")))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start a child process")?;
    let input = process
        .stdin
        .take()
        .context("the child has no standard input")?;
    let output = process
        .stdout
        .take()
        .context("the child has no standard output")?;
    let (send, responses) = channel();
    // The thread ends with the output of the child.
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                break;
            }
        }
    });
    Ok(Running {
        process,
        input,
        responses,
    })
}
