//! R8: the size of clusters.

use super::RuleContext;
use crate::codes;
use crate::diagnostic::{Findings, Rule};

/// The rules of this group.
pub const RULES: &[Rule] = &[SIZE];

const SIZE: Rule = codes::R8_SIZE;

pub(crate) fn check<'k>(cx: &RuleContext<'k>, found: &mut Findings<'k>) {
    let [x, y, z] = cx.kernel.cluster;
    let size = u64::from(x) * u64::from(y) * u64::from(z);
    let most = if cx.target.features.clusters {
        cx.target.cluster
    } else {
        1
    };
    if !(1..=u64::from(most)).contains(&size) {
        let loc = cx
            .kernel
            .roles
            .first()
            .map_or(Default::default(), |r| r.loc);
        let text = format!(
            "the cluster {x}×{y}×{z} has {size} CTAs; {} allows 1 to {most}",
            cx.target.name
        );
        found.report(&SIZE, loc, None, text);
    }
}
