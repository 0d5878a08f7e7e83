//! Stages that the run never fills.

use super::stages::{fills, names, rings};
use crate::finding::LintFinding;
use crate::input::{FindingList, LintInput};

pub(crate) fn run(input: &LintInput<'_>, mut findings: FindingList<'_>) -> Vec<LintFinding> {
    let kernel = input.kernel;
    let mut rings = rings(kernel);
    rings.retain(|ring| kernel.tile(ring[0]).stages > 1);
    let stats = match &input.stats {
        _ if rings.is_empty() => return findings.or_pass(|| "the kernel has no ring".to_owned()),
        Ok(stats) => stats,
        Err(why) => return findings.skip(why),
    };
    for ring in rings {
        let (tile, name) = (kernel.tile(ring[0]), names(kernel, &ring));
        let written = stats.tiles.get(ring[0].index()).map(|t| &t.written[..]);
        let empty = written.into_iter().flatten().filter(|&&b| b == 0).count();
        if empty == 0 {
            continue;
        }
        // If some stage is filled twice while another stays empty, the ring skips the empty stage.
        let full = tile.stages as usize - empty;
        if fills(stats, kernel, ring[0]) > 1.0 {
            let text = format!(
                "{name} has {} stages, and the run fills {full}",
                tile.stages
            );
            findings.warn_tile(text, tile);
        } else {
            let why = format!(
                "the run is too short to fill more than {full} of {} stages of {name}",
                tile.stages
            );
            findings.skip_tile(&why, tile);
        }
    }
    findings.or_pass(|| "the run fills every stage of every ring".to_owned())
}
