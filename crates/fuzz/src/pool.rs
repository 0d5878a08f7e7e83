//! Worker processes: a kernel on which the checker runs out of time or memory ends its worker
//! alone.

use crate::campaign;
use crate::differential::{Outcomes, Verdict};
use crate::report::{Finding, Report, Sort};
use anyhow::{Context, Result};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How long one kernel may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// Kibibytes that a worker may map.
const MEMORY: u64 = 3 << 20;
/// Kernels of one worker process.
const CHUNK: u64 = 256;

/// A campaign over worker processes.
#[derive(Clone, Copy, Debug)]
pub struct Campaign {
    /// The first seed.
    pub seed: u64,
    /// The most kernels.
    pub count: u64,
    /// The end.
    pub until: Option<Instant>,
    /// Workers at a time.
    pub workers: usize,
    /// Are all orders explored?
    pub brute: bool,
}

impl Campaign {
    /// Judges kernels until the count or the time is reached; tells of each.
    pub fn run(&self, tell: &(dyn Fn(&Report) + Sync)) -> Result<Report> {
        let next = Mutex::new(0u64);
        let total = Mutex::new(Report::default());
        let failed: Mutex<Option<anyhow::Error>> = Mutex::new(None);
        std::thread::scope(|scope| {
            for _ in 0..self.workers {
                scope.spawn(|| {
                    while let Some((from, to)) = self.chunk(&next) {
                        let add = |report: Report| {
                            let mut total = total.lock().unwrap_or_else(|e| e.into_inner());
                            total.add(report);
                            tell(&total);
                        };
                        if let Err(e) = self.judge(from, to, &add) {
                            *failed.lock().unwrap_or_else(|e| e.into_inner()) = Some(e);
                            return;
                        }
                    }
                });
            }
        });
        match failed.into_inner().unwrap_or_else(|e| e.into_inner()) {
            Some(e) => Err(e),
            None => Ok(total.into_inner().unwrap_or_else(|e| e.into_inner())),
        }
    }

    fn is_over(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }

    fn chunk(&self, next: &Mutex<u64>) -> Option<(u64, u64)> {
        let mut next = next.lock().unwrap_or_else(|e| e.into_inner());
        if *next >= self.count || self.is_over() {
            return None;
        }
        let from = *next;
        *next = (from + CHUNK).min(self.count);
        Some((from, *next))
    }

    /// Judges kernels in workers, a new one whenever one is lost.
    fn judge(&self, mut from: u64, to: u64, add: &dyn Fn(Report)) -> Result<()> {
        while from < to && !self.is_over() {
            let seed = self.seed.wrapping_add(from);
            let (seed, count) = (seed.to_string(), (to - from).to_string());
            let mut args = vec!["--worker", "--seed", &seed, "--count", &count];
            if self.brute {
                args.push("--brute");
            }
            let mut child = worker(&args)?;
            let stdout = child.stdout.take().context("a worker has an output")?;
            let (sender, lines) = channel();
            let reader = std::thread::spawn(move || {
                for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                    if sender.send(line).is_err() {
                        break;
                    }
                }
            });
            loop {
                match lines.recv_timeout(PATIENCE) {
                    Ok(line) => {
                        add(serde_json::from_str(&line).context("a worker's report")?);
                        from += 1;
                        if self.is_over() {
                            break;
                        }
                    }
                    Err(why) => {
                        if from < to {
                            let slow = why == RecvTimeoutError::Timeout;
                            add(lost(self.seed.wrapping_add(from), slow));
                            from += 1;
                        }
                        break;
                    }
                }
            }
            // The worker may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
            let _ = reader.join();
        }
        Ok(())
    }
}

/// Starts this program as a worker with bounded memory.
pub fn worker(args: &[&str]) -> Result<Child> {
    let program = std::env::current_exe().context("the path of this program")?;
    let limited = format!("ulimit -v {MEMORY}; exec \"$0\" \"$@\"");
    Command::new("sh")
        .args(["-c", &limited])
        .arg(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("a worker starts")
}

/// The report of a kernel that ended its worker.
fn lost(seed: u64, slow: bool) -> Report {
    let subject = campaign::subject(seed);
    let why = if slow { "time" } else { "memory" };
    Report {
        kernels: 1,
        changed: u64::from(!subject.is_correct()),
        findings: vec![Finding {
            seed,
            sort: Sort::Exhausted,
            cause: format!("{why}: {}", subject.cause()),
            subject,
            outcomes: Outcomes {
                verdict: Verdict::Panicked,
                failure: None,
            },
        }],
        ..Report::default()
    }
}
