//! Recorded runs of `python3 -m warpline.bench`, as committed in `docs/perf/data`.

use anyhow::{Context, Result};
use serde::Deserialize;
use std::path::Path;

/// One run: a machine, a command, and the problems that it measured.
#[derive(Clone, Debug, Deserialize)]
pub struct Run {
    /// The time of the run, in UTC.
    pub date: String,
    /// The command line.
    pub command: Vec<String>,
    /// The machine and the versions of the implementations.
    pub machine: BenchMachine,
    /// The measured problems.
    pub problems: Vec<Measured>,
}

/// The machine and the versions of the implementations.
#[derive(Clone, Debug, Deserialize)]
pub struct BenchMachine {
    /// The name of the GPU.
    pub device: String,
    /// The driver's version.
    pub driver: Option<String>,
    /// The version of torch.
    pub torch: String,
    /// The version of Triton.
    pub triton: Option<String>,
    /// The commit that was measured.
    pub commit: Option<String>,
}

/// One problem and its implementations.
#[derive(Clone, Debug, Deserialize)]
pub struct Measured {
    /// The suite.
    pub suite: String,
    /// The op.
    pub op: String,
    /// The extents.
    pub shape: String,
    /// The element type.
    pub dtype: String,
    /// Floating-point operations.
    pub flops: f64,
    /// Bytes that must move between global memory and the SMs.
    pub bytes: f64,
    /// Whether arithmetic limits the problem; otherwise memory bandwidth limits it.
    pub compute_bound: bool,
    /// The implementations.
    pub implementations: Vec<Implementation>,
}

/// One implementation of a problem.
#[derive(Clone, Debug, Deserialize)]
pub struct Implementation {
    /// The name.
    pub name: String,
    /// `ours` (Warpline), `again` (Warpline, measured a second time), `copy` (a device copy), `bare`
    /// (the GEMM alone), or the kind of a peer.
    pub kind: String,
    /// `timed`, or the reason for no time.
    pub state: String,
    /// The time of one call.
    pub seconds: Option<TimeSummary>,
}

/// The summary of a time, in seconds.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct TimeSummary {
    /// The median.
    pub median: f64,
}

impl Run {
    /// Reads a recorded run.
    pub fn load(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_str(&text)
            .with_context(|| format!("{} is not a recorded run", path.display()))
    }

    /// Returns the day of the run.
    pub fn day(&self) -> &str {
        self.date.split('T').next().unwrap_or(&self.date)
    }

    /// Returns the names of all peers, in the order of their first appearance.
    pub fn peers(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for peer in self.problems.iter().flat_map(Measured::peers) {
            if !names.contains(&&*peer.name) {
                names.push(&*peer.name);
            }
        }
        names
    }
}

impl Measured {
    /// Returns Warpline's median time in seconds.
    pub fn ours(&self) -> Option<f64> {
        self.implementations
            .iter()
            .find(|c| c.kind == "ours")
            .and_then(Implementation::median)
    }

    /// Returns the peers: all implementations except Warpline, the copy and the bare GEMM.
    pub fn peers(&self) -> impl Iterator<Item = &Implementation> {
        let not_peers = ["ours", "again", "copy", "bare"];
        self.implementations
            .iter()
            .filter(move |c| !not_peers.contains(&&*c.kind))
    }

    /// Returns the speedup over a peer: its time divided by Warpline's.
    pub fn speedup(&self, peer: &str) -> Option<f64> {
        let peer = self.peers().find(|c| c.name == peer)?.median()?;
        Some(peer / self.ours()?)
    }

    /// Returns the fastest peer and the speedup over it.
    pub fn best_peer(&self) -> Option<(&str, f64)> {
        let timed = self.peers().filter_map(|c| Some((&*c.name, c.median()?)));
        let (name, time) = timed.min_by(|a, b| a.1.total_cmp(&b.1))?;
        Some((name, time / self.ours()?))
    }
}

impl Implementation {
    fn median(&self) -> Option<f64> {
        self.seconds
            .filter(|_| self.state == "timed")
            .map(|s| s.median)
    }
}

/// Returns the geometric mean; `None` without values.
pub fn geomean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0);
    for value in values {
        sum += value.ln();
        count += 1;
    }
    (count > 0).then(|| (sum / f64::from(count)).exp())
}
