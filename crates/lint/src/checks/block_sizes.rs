//! Thread counts and tile extents that are not powers of two.
//!
//! They need divisions where a power of two needs shifts, and leave banks, boxes and matrix shapes
//! partly used. The check applies to each role, not to the CTA: 128 producer and 256 consumer
//! threads are 384, but no index runs to 384.

use super::is_small;
use crate::finding::LintFinding;
use crate::input::{FindingList, LintInput};

pub(crate) fn run(input: &LintInput<'_>, mut findings: FindingList<'_>) -> Vec<LintFinding> {
    for role in &input.kernel.roles {
        let threads = role.warps * 32;
        if !threads.is_power_of_two() {
            let text = format!("{threads} threads are not a power of two");
            findings.warn_role(text, Some(role));
        }
    }
    let blocks = input.kernel.tiles.iter().filter(|t| !is_small(t));
    for tile in blocks.clone() {
        let (rows, cols) = (tile.layout.rows, tile.layout.cols);
        if !rows.is_power_of_two() || !cols.is_power_of_two() {
            let text = format!(
                "tile `{}` is {rows} × {cols}, which is not a power of two",
                tile.name
            );
            findings.warn_tile(text, tile);
        }
    }
    findings.or_pass(|| match blocks.count() {
        0 => "the thread count of every role is a power of two".to_owned(),
        _ => "the thread count of every role and the extents of every tile are powers of two"
            .to_owned(),
    })
}
