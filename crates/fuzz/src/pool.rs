//! Worker processes. A kernel that exhausts time or memory ends only its worker.

use crate::campaign;
use crate::differential::{CaseOutcome, CheckOutcome};
use crate::report::{FindingKind, FuzzFinding, FuzzReport};
use anyhow::{Context, Result};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The time limit of one kernel.
const KERNEL_TIMEOUT: Duration = Duration::from_secs(20);
/// The address-space limit of a worker in KiB.
const MEMORY: u64 = 3 << 20;
/// The number of kernels per worker process.
const CHUNK: u64 = 256;

/// A campaign over worker processes.
#[derive(Clone, Copy, Debug)]
pub struct Campaign {
    /// The first seed.
    pub seed: u64,
    /// The maximum number of kernels.
    pub count: u64,
    /// The time at which the campaign ends.
    pub until: Option<Instant>,
    /// The number of workers.
    pub workers: usize,
    /// Whether all interleavings are explored.
    pub brute: bool,
}

impl Campaign {
    /// Fuzzes kernels until the count or the time limit; calls `on_progress` after each kernel.
    pub fn run(&self, on_progress: &(dyn Fn(&FuzzReport) + Sync)) -> Result<FuzzReport> {
        let next = Mutex::new(0u64);
        let total = Mutex::new(FuzzReport::default());
        let failed: Mutex<Option<anyhow::Error>> = Mutex::new(None);
        std::thread::scope(|scope| {
            for _ in 0..self.workers {
                scope.spawn(|| {
                    while let Some((from, to)) = self.next_chunk(&next) {
                        let add = |report: FuzzReport| {
                            let mut total = total.lock().unwrap_or_else(|e| e.into_inner());
                            total.add(report);
                            on_progress(&total);
                        };
                        if let Err(e) = self.run_chunk(from, to, &add) {
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

    /// Returns the next range of kernels.
    fn next_chunk(&self, next: &Mutex<u64>) -> Option<(u64, u64)> {
        let mut next = next.lock().unwrap_or_else(|e| e.into_inner());
        if *next >= self.count || self.is_over() {
            return None;
        }
        let from = *next;
        *next = (from + CHUNK).min(self.count);
        Some((from, *next))
    }

    /// Fuzzes a range of kernels; starts a new worker when one dies.
    fn run_chunk(&self, mut from: u64, to: u64, add: &dyn Fn(FuzzReport)) -> Result<()> {
        while from < to && !self.is_over() {
            let seed = self.seed.wrapping_add(from);
            let (seed, count) = (seed.to_string(), (to - from).to_string());
            let mut args = vec!["--worker", "--seed", &seed, "--count", &count];
            if self.brute {
                args.push("--brute");
            }
            let mut child = worker(&args)?;
            let stdout = child
                .stdout
                .take()
                .context("a worker has no standard output")?;
            let (sender, lines) = channel();
            let reader = std::thread::spawn(move || {
                for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                    if sender.send(line).is_err() {
                        break;
                    }
                }
            });
            loop {
                match lines.recv_timeout(KERNEL_TIMEOUT) {
                    Ok(line) => {
                        add(serde_json::from_str(&line).context("invalid report of a worker")?);
                        from += 1;
                        if self.is_over() {
                            break;
                        }
                    }
                    Err(error) => {
                        if from < to {
                            let timed_out = error == RecvTimeoutError::Timeout;
                            add(exhausted(self.seed.wrapping_add(from), timed_out));
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
    let program = std::env::current_exe().context("cannot find this program")?;
    let limited = format!("ulimit -v {MEMORY}; exec \"$0\" \"$@\"");
    Command::new("sh")
        .args(["-c", &limited])
        .arg(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot start a worker")
}

/// Returns the report of a kernel that ended its worker.
fn exhausted(seed: u64, timed_out: bool) -> FuzzReport {
    let case = campaign::random_case(seed);
    let resource = if timed_out { "time" } else { "memory" };
    FuzzReport {
        kernels: 1,
        changed: u64::from(!case.is_correct()),
        findings: vec![FuzzFinding {
            seed,
            kind: FindingKind::Exhausted,
            cause: format!("{resource}: {}", case.cause()),
            case,
            outcome: CaseOutcome {
                verdict: CheckOutcome::Panicked,
                failure: None,
            },
        }],
        ..FuzzReport::default()
    }
}
