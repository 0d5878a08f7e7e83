//! The division of all rounds of all queries among CTAs.

use super::config::{Config, WorkSplit};
use super::lanes::LaneLayout;
use super::problem::{INDEX_LIMIT, Problem};
use warpline_family::plan::LaunchStep;
use warpline_ir::builder::*;

/// The work of a CTA, as launch parameters.
#[derive(Clone, Copy)]
pub(super) enum WorkPartition {
    /// The queries of every batch and head in equal parts, taken by the CTAs in grid-stride order: all CTAs work on
    /// the same few batches at a time, whose values stay in the L2.
    Parts {
        /// Rounds of a part.
        rounds: Reg<u32>,
        parts: Reg<u32>,
        parts_divisor: FastDivisor,
        /// Parts of all batches and heads.
        items: Reg<u32>,
    },
    /// All queries in equal ranges, one per CTA, across batch boundaries: the load is balanced, and resident
    /// levels are loaded least often.
    Ranges {
        /// Rounds of a batch and head.
        rounds: Reg<u32>,
        rounds_divisor: FastDivisor,
        /// Rounds of all groups, and of a range.
        total: Reg<u32>,
        length: Reg<u32>,
    },
}

/// Consecutive rounds of one group (batch, heads, channel slice).
#[derive(Clone, Copy)]
pub(super) struct GroupRounds {
    /// The group.
    pub(super) group: Reg<u32>,
    /// The first round.
    pub(super) first_round: Reg<u32>,
    pub(super) count: Reg<u32>,
    /// The group of the CTA's next rounds.
    pub(super) next_group: Reg<u32>,
    /// Whether there is a next group.
    pub(super) has_next: Reg<bool>,
}

impl WorkPartition {
    pub(super) fn declare(k: Builder, c: &Config) -> Self {
        // Queries and parts of all batches and heads are below 2³¹.
        let count = |name: &str| k.param::<u32>(name).at_most(INDEX_LIMIT as u32 - 1);
        let rounds = count("rounds");
        match c.work_split {
            WorkSplit::Parts => Self::Parts {
                rounds,
                parts: count("parts").at_least(1),
                parts_divisor: k.divisor("parts_divisor"),
                items: count("items"),
            },
            WorkSplit::Ranges => Self::Ranges {
                rounds,
                rounds_divisor: k.divisor("rounds_divisor"),
                total: count("total"),
                length: count("length").at_least(1),
            },
        }
    }

    /// Binds the launch arguments.
    pub(super) fn bind_args(
        step: LaunchStep,
        p: &Problem,
        c: &Config,
        lanes: &LaneLayout,
    ) -> LaunchStep {
        // `heuristic` rejects counts of 2³¹ and more.
        let groups = groups(p, lanes);
        let round = u64::from(c.queries_per_round(lanes));
        let queries = u64::from(p.num_query);
        match c.work_split {
            WorkSplit::Parts => {
                let parts = u64::from(c.parts);
                let items = if queries == 0 { 0 } else { groups * parts };
                step.scalar("rounds", queries.div_ceil(parts * round) as u32)
                    .scalar("parts", c.parts)
                    .divisor("parts_divisor", c.parts)
                    .scalar("items", items as u32)
            }
            WorkSplit::Ranges => {
                let rounds = queries.div_ceil(round);
                let total = groups * rounds;
                let length = total.div_ceil(c.ctas.into()).max(1);
                step.scalar("rounds", rounds as u32)
                    .divisor("rounds_divisor", rounds as u32)
                    .scalar("total", total as u32)
                    .scalar("length", length as u32)
            }
        }
    }

    /// Runs `f` for each group of rounds of this CTA.
    pub(super) fn for_each(self, f: impl FnOnce(GroupRounds)) {
        match self {
            Self::Parts {
                rounds,
                parts,
                parts_divisor,
                items,
            } => range(cta_id(), items).step_by(grid_ctas()).each(|i| {
                let group = parts_divisor.divide(i);
                let next = i + grid_ctas();
                f(GroupRounds {
                    group,
                    first_round: (i - group * parts) * rounds,
                    count: rounds,
                    next_group: parts_divisor.divide(next),
                    has_next: next.lt(items),
                });
            }),
            Self::Ranges {
                rounds,
                rounds_divisor,
                total,
                length,
            } => {
                let first = (cta_id() * length).min(total);
                let last = (first + length).min(total);
                // `end` is the group after the group of the last round. A CTA without rounds has an empty range.
                let nonzero = last.min(1u32);
                let end = rounds_divisor.divide(last - nonzero) + nonzero;
                range(rounds_divisor.divide(first), end).each(|group| {
                    let start = group * rounds;
                    let first_round = first.max(start) - start;
                    let end_round = (last - start).min(rounds);
                    f(GroupRounds {
                        group,
                        first_round,
                        count: end_round - first_round,
                        next_group: group + 1,
                        has_next: (group + 1).lt(end),
                    });
                });
            }
        }
    }
}

/// Returns the number of groups: batches times head groups times channel slices.
pub(super) fn groups(p: &Problem, lanes: &LaneLayout) -> u64 {
    u64::from(p.batch) * u64::from(p.heads / lanes.heads_per_warp * lanes.channel_slices)
}
