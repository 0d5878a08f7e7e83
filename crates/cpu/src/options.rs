//! How to run: when asynchronous work completes, and on how much of this machine.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use warpline_ir::Target;

/// When asynchronous work completes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Timing {
    /// At issue. Fast; only what would be wrong at any speed is found.
    #[default]
    Eager,
    /// As late as the program allows: only when no warp can go on otherwise,
    /// and then only what one needs. Every race check is on.
    Late,
    /// At a moment chosen by the seed, in pieces. Every race check is on.
    Random,
}

impl Timing {
    /// All of them.
    pub const ALL: [Timing; 3] = [Timing::Eager, Timing::Late, Timing::Random];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Timing::Eager => "eager",
            Timing::Late => "late",
            Timing::Random => "random",
        }
    }
}

impl fmt::Display for Timing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Timing {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        Timing::ALL
            .into_iter()
            .find(|t| t.name() == s)
            .ok_or_else(|| format!("a timing is eager, late or random, not {s:?}"))
    }
}

/// Told of finished CTAs: how many, of how many.
pub type Progress = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// How to run a kernel.
#[derive(Clone)]
pub struct Options {
    /// When asynchronous work completes.
    pub timing: Timing,
    /// The seed of [`Timing::Random`].
    pub seed: u64,
    /// Host threads; 0 takes all. The result does not depend on it.
    pub threads: usize,
    /// The machine that is played; its SMs say how many CTAs are resident together.
    pub target: Target,
    /// Told of finished CTAs.
    pub progress: Option<Progress>,
    /// The most statements all warps of one scheduler may run; `None`: 2³⁶.
    pub max_steps: Option<u64>,
    /// Is it a fault (in `late` and `random`) if a CTA leaves an mbarrier in the middle of a
    /// phase, for which nobody waits any more?
    pub whole_phases: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            timing: Timing::Eager,
            seed: 0,
            threads: 0,
            target: Target::default(),
            progress: None,
            max_steps: None,
            whole_phases: false,
        }
    }
}

impl Options {
    /// The defaults with a timing.
    pub fn timed(timing: Timing) -> Self {
        Self {
            timing,
            ..Self::default()
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("timing", &self.timing)
            .field("seed", &self.seed)
            .field("threads", &self.threads)
            .field("target", &self.target.name)
            .field("sms", &self.target.sms)
            .field("progress", &self.progress.is_some())
            .field("max_steps", &self.max_steps)
            .field("whole_phases", &self.whole_phases)
            .finish()
    }
}
