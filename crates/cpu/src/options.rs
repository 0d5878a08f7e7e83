//! Options of a run.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use warpline_ir::Target;

/// When asynchronous ops complete.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Timing {
    /// At issue. Fast; finds only faults that do not depend on timing.
    #[default]
    Eager,
    /// As late as possible: only when no warp can run, and only the ops that a waiting warp needs.
    /// Race checks are on.
    Late,
    /// At random times, in pieces. Race checks are on.
    Random,
}

impl Timing {
    /// All timings.
    pub const ALL: [Timing; 3] = [Timing::Eager, Timing::Late, Timing::Random];

    /// Returns the name.
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
            .ok_or_else(|| format!("unknown timing {s:?}; expected eager, late or random"))
    }
}

/// A progress callback: completed CTAs, total CTAs.
pub type ProgressCallback = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// Options of a run.
#[derive(Clone)]
pub struct Options {
    /// When asynchronous ops complete.
    pub timing: Timing,
    /// The seed of [`Timing::Random`].
    pub seed: u64,
    /// The number of host threads; 0 uses all. The result does not depend on it.
    pub threads: usize,
    /// The GPU that the executor models; its SMs limit the resident CTAs.
    pub target: Target,
    /// A callback that the executor calls for each completed CTA.
    pub progress: Option<ProgressCallback>,
    /// The maximum number of statements that the warps of one scheduler run together; `None`: 2³⁶.
    pub max_steps: Option<u64>,
    /// Whether the exit of a CTA with an incomplete mbarrier phase is a fault (in `late` and
    /// `random`), even if no thread waits for the phase.
    pub require_complete_phases: bool,
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
            require_complete_phases: false,
        }
    }
}

impl Options {
    /// Returns the default options with a timing.
    pub fn with_timing(timing: Timing) -> Self {
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
            .field("require_complete_phases", &self.require_complete_phases)
            .finish()
    }
}
