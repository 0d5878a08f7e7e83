//! A child process that does what may hang or kill its context, one case at a time.
//!
//! The parent writes the name of a case to the child's input, and the child
//! answers with one line of JSON. A child that gives no answer in time is
//! ended, and so is one that had a failure: the next case gets a fresh one.

use crate::cases::{Case, Kind};
use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// The flag that makes this binary a child.
pub const FLAG: &str = "--child";

/// What became of a case.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Answer {
    /// Why it failed, if it did.
    pub failed: Option<String>,
    /// What is worth telling of one that passed.
    pub note: Option<String>,
    /// The programs it ran: name and hash of the code.
    pub kernels: Vec<(String, String)>,
    /// Is the context of no use any more?
    pub dead: bool,
}

impl Answer {
    /// A result that is wrong: the context goes on.
    pub fn wrong(why: impl Into<String>) -> Self {
        Self {
            failed: Some(why.into()),
            ..Self::default()
        }
    }

    /// A failure after which the context may be of no use.
    pub fn failure(why: impl Into<String>) -> Self {
        Self {
            failed: Some(why.into()),
            dead: true,
            ..Self::default()
        }
    }
}

/// The child's side: answers until its input ends.
pub fn serve(kind: &Kind) -> Result<()> {
    let case = Case::open(kind);
    let mut out = std::io::stdout();
    for name in std::io::stdin().lines() {
        let name = name.context("no more cases")?;
        let answer = match &case {
            Ok(case) => case.run(&name),
            Err(why) => Answer::failure(format!("{why:#}")),
        };
        // One line; whatever else is printed goes to the other stream.
        writeln!(out, "{}", serde_json::to_string(&answer)?)?;
        out.flush()?;
        if answer.dead {
            break;
        }
    }
    Ok(())
}

/// The parent's side: a child that is there when it is needed.
pub struct Children {
    kind: Kind,
    limit: Duration,
    current: Option<Running>,
}

struct Running {
    process: Child,
    input: ChildStdin,
    answers: Receiver<String>,
}

impl Drop for Running {
    fn drop(&mut self) {
        // One that waits in the driver ends by nothing else.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Children {
    /// Children of a kind, with a limit for each case.
    pub fn new(kind: Kind, limit: Duration) -> Self {
        Self {
            kind,
            limit,
            current: None,
        }
    }

    /// Has a case run by the child, or by the next one.
    pub fn run(&mut self, name: &str) -> Answer {
        let answer = match self.ask(name) {
            Ok(answer) => answer,
            Err(why) => Answer::failure(format!("{why:#}")),
        };
        if answer.dead {
            self.current = None;
        }
        answer
    }

    fn ask(&mut self, name: &str) -> Result<Answer> {
        let child = match &mut self.current {
            Some(child) => child,
            none => none.insert(start(&self.kind)?),
        };
        writeln!(child.input, "{name}").context("the child is gone")?;
        child.input.flush().context("the child is gone")?;
        match child.answers.recv_timeout(self.limit) {
            Ok(line) => serde_json::from_str(&line)
                .with_context(|| format!("the child does not answer but says {line:?}")),
            Err(RecvTimeoutError::Timeout) => Ok(Answer::failure(format!(
                "it hangs: no answer within {} s, so the process was ended",
                self.limit.as_secs()
            ))),
            Err(RecvTimeoutError::Disconnected) => {
                let status = child.process.wait().context("the child is lost")?;
                Ok(Answer::failure(format!(
                    "the process ended in the middle of it: {status}"
                )))
            }
        }
    }
}

/// Starts this binary once more, as a child.
fn start(kind: &Kind) -> Result<Running> {
    let exe = std::env::current_exe().context("this binary cannot be found")?;
    let mut process = Command::new(exe)
        .arg(FLAG)
        .args(kind.args())
        // Compilations are counted and timed, so none may come from the disk.
        .envs((*kind == Kind::Runtime).then_some(("WARPLINE_CACHE", "off")))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("a child does not start")?;
    let input = process.stdin.take().context("a child has no input")?;
    let output = process.stdout.take().context("a child has no output")?;
    let (send, answers) = channel();
    // Ends with the child's output.
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
        answers,
    })
}
