//! The events of a run, for the trace of a diagnostic.

use super::state::{Env, as_told};
use crate::diagnostic::TraceEvent;
use crate::symbolic::Question;
use std::rc::Rc;
use warpline_ir::Loc;

/// One thing that happened.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) warp: u32,
    pub(super) loc: Loc,
    pub(super) what: What,
}

#[derive(Clone, PartialEq, Debug)]
pub(super) enum What {
    Arrives {
        bar: usize,
        phase: u32,
        times: u32,
        bytes: i64,
    },
    Passes {
        bar: usize,
        phase: i64,
    },
    Copies {
        bar: usize,
        phase: u32,
        tile: u32,
        byte: u32,
    },
    Touches {
        tile: u32,
        byte: u32,
        how: &'static str,
        cta: u32,
    },
    Comes {
        meeting: usize,
        number: u32,
    },
    Leaves {
        meeting: usize,
        number: u32,
    },
    Waits {
        what: &'static str,
    },
    Fences,
    /// A question, its answer, and both in words.
    Decides(Question, bool, Rc<str>),
}

struct Link {
    step: Step,
    before: Option<Rc<Link>>,
}

/// What happened so far, shared between states that have a past in common.
#[derive(Clone, Default)]
pub(super) struct Trail {
    last: Option<Rc<Link>>,
    /// Is it of no interest?
    off: bool,
}

impl Drop for Link {
    // A long list must not be dropped by recursion.
    fn drop(&mut self) {
        let mut next = self.before.take();
        while let Some(link) = next {
            match Rc::try_unwrap(link) {
                Ok(mut link) => next = link.before.take(),
                Err(_) => break,
            }
        }
    }
}

impl Trail {
    /// Nothing is noted: nobody will ask.
    pub(super) fn off() -> Self {
        Self {
            last: None,
            off: true,
        }
    }

    pub(super) fn is_on(&self) -> bool {
        !self.off
    }

    /// Notes what happens, if that is of interest.
    pub(super) fn push(&mut self, step: Step) {
        if self.is_on() {
            let before = self.last.take();
            self.last = Some(Rc::new(Link { step, before }));
        }
    }

    /// The questions about the launch that were answered, oldest first.
    pub(super) fn decisions(&self) -> Vec<(Question, bool)> {
        let decided = self.back().filter_map(|s| match s.what {
            What::Decides(q, yes, _) => Some((q, yes)),
            _ => None,
        });
        let mut list: Vec<_> = decided.collect();
        list.reverse();
        list
    }

    /// Newest first.
    pub(super) fn back(&self) -> impl Iterator<Item = &Step> {
        let mut at = self.last.as_deref();
        std::iter::from_fn(move || {
            let link = at?;
            at = link.before.as_deref();
            Some(&link.step)
        })
    }
}

impl Step {
    /// The event in words.
    pub(super) fn event(&self, env: &Env<'_>) -> TraceEvent {
        let (cta, index) = (self.warp / env.warps, self.warp % env.warps);
        let role = &env.kernel.roles[env.kernel.role_of_warp(index).index()].name;
        let who = match (&self.what, env.ctas) {
            (What::Decides(..), _) => String::new(),
            (_, 1) => format!("role `{role}` (warp {index})"),
            _ => format!("role `{role}` (warp {index}, CTA {cta})"),
        };
        TraceEvent {
            who,
            what: self.action(env, cta),
            at: env.kernel.locs.author(self.loc),
        }
    }

    fn action(&self, env: &Env<'_>, cta: u32) -> String {
        match &self.what {
            What::Arrives {
                bar,
                phase,
                times,
                bytes,
            } => {
                let phase = as_told(i64::from(*phase));
                let name = env.bar_name(*bar);
                let often = match times {
                    0 | 1 => String::new(),
                    n => format!(" {n} times"),
                };
                let bytes = match bytes {
                    0 => String::new(),
                    n => format!(" and expects {n} bytes"),
                };
                match (times, env.ring_slot(*bar)) {
                    (0, _) => match bytes.strip_prefix(" and ") {
                        Some(expects) => format!("{expects} at {name} (phase {phase})"),
                        None => format!("expects bytes at {name} (phase {phase})"),
                    },
                    (_, Some((slot, true))) => {
                        format!("commits {slot}{often}{bytes} ({name}, phase {phase})")
                    }
                    (_, Some((slot, false))) => {
                        format!("releases {slot}{often}{bytes} ({name}, phase {phase})")
                    }
                    _ => format!("arrives at {name}{often}{bytes} (phase {phase})"),
                }
            }
            What::Passes { bar, phase } => {
                let (name, phase) = (env.bar_name(*bar), as_told(*phase));
                let complete = match phase < 0 {
                    true => "not used before".to_owned(),
                    false => format!("phase {phase} is complete"),
                };
                match env.ring_slot(*bar) {
                    Some((slot, true)) => format!("finds {slot} full ({name}, {complete})"),
                    Some((slot, false)) => format!("acquires {slot} ({name}, {complete})"),
                    None => format!("passes its wait on {name} ({complete})"),
                }
            }
            What::Copies {
                bar,
                phase,
                tile,
                byte,
            } => format!(
                "issues a copy to {} that counts its bytes at {} (phase {})",
                env.place_name(*tile, *byte),
                env.bar_name(*bar),
                as_told(i64::from(*phase))
            ),
            What::Touches {
                tile,
                byte,
                how,
                cta: at,
            } => {
                let place = env.place_name(*tile, *byte);
                match *at == cta {
                    true => format!("{how} {place}"),
                    false => format!("{how} {place} of CTA {at}"),
                }
            }
            What::Comes { meeting, number } => {
                let number = as_told(i64::from(*number));
                format!("arrives at {} (use {number})", env.meeting_name(*meeting))
            }
            What::Leaves { meeting, number } => {
                let number = as_told(i64::from(*number));
                format!("passes {} (use {number})", env.meeting_name(*meeting))
            }
            What::Waits { what } => format!("waits for its {what}"),
            What::Fences => "runs `fence.proxy.async`".to_owned(),
            What::Decides(_, _, what) => format!("assume {what}"),
        }
    }
}
