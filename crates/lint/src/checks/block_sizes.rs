//! Threads and tile extents that are no power of two.
//!
//! Indices are then divided where others are shifted, and tiles leave banks,
//! boxes and matrix shapes partly used. A CTA is judged role by role: 128
//! threads that load and 256 that compute are 384, and nobody counts to 384.

use super::is_light;
use crate::case::{Answers, Case};
use crate::finding::Finding;

pub(crate) fn look(case: &Case<'_>, mut answers: Answers<'_>) -> Vec<Finding> {
    for role in &case.kernel.roles {
        let threads = role.warps * 32;
        if !threads.is_power_of_two() {
            let text = format!("{threads} threads are no power of two");
            answers.warn_role(text, Some(role));
        }
    }
    let blocks = case.kernel.tiles.iter().filter(|t| !is_light(t));
    for tile in blocks.clone() {
        let (rows, cols) = (tile.layout.rows, tile.layout.cols);
        if !rows.is_power_of_two() || !cols.is_power_of_two() {
            let text = format!("tile {} of {rows} × {cols} is no power of two", tile.name);
            answers.warn_tile(text, tile);
        }
    }
    answers.or_pass(|| match blocks.count() {
        0 => "the threads of every role are a power of two".to_owned(),
        _ => "the threads of every role and the sides of every tile are powers of two".to_owned(),
    })
}
