//! Batch invariance: the bits of a row of C do not depend on the other rows.
//!
//! Every config adds the products of K in the same order, one wgmma after the other, and rounds once.
//! On an H200 the result of a wgmma depends neither on the shape of the tile nor on the order of the
//! operands (swap-AB): PTX does not state this, so `python/tests/with_torch` tests on a GPU that the
//! configs of the heuristic give the same bits for every M up to 512. Only split-K and stream-K divide
//! the sum, and each at places that depend on M.

use super::config::Choice;
use super::problem::Problem;
use crate::batch_invariant::fix;
use warpline_family::error::FamilyError;

/// Returns the choice with the fields fixed on which the bits of a row may depend.
pub(super) fn fixed_choice(p: &Problem, choice: &Choice) -> Result<Choice, FamilyError> {
    if choice.batch_invariant != Some(true) {
        return Ok(choice.clone());
    }
    // A row sum has one partial sum for each tile, and the tile width depends on M. A column sum adds rows.
    for (flag, is_set) in [("--row-sums", p.row_sums), ("--col-sums", p.col_sums)] {
        if is_set {
            return Err(FamilyError::Config(format!(
                "--batch-invariant does not support {flag}\nhelp: leave one of them out"
            )));
        }
    }
    Ok(Choice {
        split_k: fix("--split-k", choice.split_k, 1)?,
        stream_k: fix("--stream-k", choice.stream_k, false)?,
        ..choice.clone()
    })
}
