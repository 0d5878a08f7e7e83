//! How the rounds of all warps over all queries are shared out among CTAs.

use super::config::{Config, Share};
use super::lanes::Lanes;
use super::problem::{LIMIT, Problem};
use warpline_family::plan::Step;
use warpline_ir::build::*;

/// Who works on what.
#[derive(Clone, Copy)]
pub(super) enum Shares {
    /// The queries of every batch and head in equal parts, dealt to the CTAs
    /// one by one: all work on the same few batches at a time, whose values the
    /// L2 keeps.
    Parts {
        /// Rounds of a part.
        rounds: Reg<u32>,
        parts: Reg<u32>,
        of_parts: Divisor,
        /// Parts of all batches and heads.
        items: Reg<u32>,
    },
    /// All queries in equal ranges, one for each CTA, wherever a batch ends: no
    /// CTA waits for another, and levels that are kept are brought least often.
    Ranges {
        /// Rounds of a batch and head.
        rounds: Reg<u32>,
        of_rounds: Divisor,
        /// Of all, and of a range.
        total: Reg<u32>,
        length: Reg<u32>,
    },
}

/// Some rounds of a batch and head.
#[derive(Clone, Copy)]
pub(super) struct Visit {
    /// Which batch and head.
    pub(super) group: Reg<u32>,
    /// The first round.
    pub(super) from: Reg<u32>,
    pub(super) rounds: Reg<u32>,
    /// The batch and head of what the CTA works on next.
    pub(super) next: Reg<u32>,
    /// Is there such work?
    pub(super) more: Reg<bool>,
}

impl Shares {
    pub(super) fn declare(k: Builder, c: &Config) -> Self {
        // Each counts less than 2^31: queries, or parts of all batches and heads.
        let count = |name: &str| k.param::<u32>(name).at_most(LIMIT as u32 - 1);
        let rounds = count("rounds");
        match c.share {
            Share::Parts => Self::Parts {
                rounds,
                parts: count("parts").at_least(1),
                of_parts: k.divisor("of_parts"),
                items: count("items"),
            },
            Share::Ranges => Self::Ranges {
                rounds,
                of_rounds: k.divisor("of_rounds"),
                total: count("total"),
                length: count("length").at_least(1),
            },
        }
    }

    /// Binds the launch arguments.
    pub(super) fn bind_args(step: Step, p: &Problem, c: &Config, lanes: &Lanes) -> Step {
        // Each counts less than 2³¹, as the config has checked.
        let groups = groups(p, lanes);
        let round = u64::from(c.round(lanes));
        let queries = u64::from(p.num_query);
        match c.share {
            Share::Parts => {
                let parts = u64::from(c.parts);
                let items = if queries == 0 { 0 } else { groups * parts };
                step.scalar("rounds", queries.div_ceil(parts * round) as u32)
                    .scalar("parts", c.parts)
                    .divisor("of_parts", c.parts)
                    .scalar("items", items as u32)
            }
            Share::Ranges => {
                let rounds = queries.div_ceil(round);
                let total = groups * rounds;
                let length = total.div_ceil(c.ctas.into()).max(1);
                step.scalar("rounds", rounds as u32)
                    .divisor("of_rounds", rounds as u32)
                    .scalar("total", total as u32)
                    .scalar("length", length as u32)
            }
        }
    }

    /// Runs `f` for what a CTA works on.
    pub(super) fn each(self, f: impl FnOnce(Visit)) {
        match self {
            Self::Parts {
                rounds,
                parts,
                of_parts,
                items,
            } => range(cta_id(), items).by(grid_ctas()).each(|i| {
                let group = of_parts.of(i);
                let next = i + grid_ctas();
                f(Visit {
                    group,
                    from: (i - group * parts) * rounds,
                    rounds,
                    next: of_parts.of(next),
                    more: next.lt(items),
                });
            }),
            Self::Ranges {
                rounds,
                of_rounds,
                total,
                length,
            } => {
                let first = (cta_id() * length).min(total);
                let last = (first + length).min(total);
                // An empty range begins and ends behind the last round.
                let some = last.min(1u32);
                let end = of_rounds.of(last - some) + some;
                range(of_rounds.of(first), end).each(|group| {
                    let start = group * rounds;
                    let from = first.max(start) - start;
                    let to = (last - start).min(rounds);
                    f(Visit {
                        group,
                        from,
                        rounds: to - from,
                        next: group + 1,
                        more: (group + 1).lt(end),
                    });
                });
            }
        }
    }
}

/// Batches, with the heads and channels that are worked on apart.
pub(super) fn groups(p: &Problem, lanes: &Lanes) -> u64 {
    u64::from(p.batch) * u64::from(p.heads / lanes.heads * lanes.slices)
}
