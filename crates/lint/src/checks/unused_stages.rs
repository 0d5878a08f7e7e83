//! Stages that the run put nothing into.

use super::stages::{fills, names, rings};
use crate::case::{Answers, Case};
use crate::finding::Finding;

pub(crate) fn look(case: &Case<'_>, mut answers: Answers<'_>) -> Vec<Finding> {
    let kernel = case.kernel;
    let mut rings = rings(kernel);
    rings.retain(|ring| kernel.tile(ring[0]).stages > 1);
    let stats = match &case.stats {
        _ if rings.is_empty() => return answers.or_pass(|| "there is no ring".to_owned()),
        Ok(stats) => stats,
        Err(why) => return answers.and_not_looked(why),
    };
    for ring in rings {
        let (tile, name) = (kernel.tile(ring[0]), names(kernel, &ring));
        let written = stats.tiles.get(ring[0].index()).map(|t| &t.written[..]);
        let empty = written.into_iter().flatten().filter(|&&b| b == 0).count();
        if empty == 0 {
            continue;
        }
        // A stage that is filled twice before another was filled at all shows
        // that the ring goes round without it.
        let full = tile.stages as usize - empty;
        if fills(stats, kernel, ring[0]) > 1.0 {
            let text = format!(
                "{name} has {} stages, and the run fills {full}",
                tile.stages
            );
            answers.warn_tile(text, tile);
        } else {
            let why = format!(
                "the run is too short to fill more than {full} of {} stages of {name}",
                tile.stages
            );
            answers.not_looked_at(&why, tile);
        }
    }
    answers.or_pass(|| "the run fills every stage of every ring".to_owned())
}
