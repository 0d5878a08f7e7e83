//! R8, clusters: the size.

use super::Case;
use crate::refusal::{Findings, Rule};

/// The rules of this group.
pub const RULES: &[Rule] = &[SIZE];

const SIZE: Rule = Rule {
    code: "R8.size",
    holds: "a cluster has at least one CTA in each axis and no more than the target's largest",
};

pub(crate) fn judge<'k>(case: &Case<'k>, found: &mut Findings<'k>) {
    let [x, y, z] = case.kernel.cluster;
    let size = u64::from(x) * u64::from(y) * u64::from(z);
    let most = if case.target.features.clusters {
        case.target.cluster
    } else {
        1
    };
    if !(1..=u64::from(most)).contains(&size) {
        let loc = case
            .kernel
            .roles
            .first()
            .map_or(Default::default(), |r| r.loc);
        let text = format!(
            "a cluster of {} has 1 to {most} CTAs; {x}×{y}×{z} has {size}",
            case.target.name
        );
        found.refuse(&SIZE, loc, None, text);
    }
}
