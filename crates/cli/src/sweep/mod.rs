//! Runs of a family with several values of some options.
//!
//! | where | what |
//! |---|---|
//! | `vary` | an option and its values; all combinations of several options |
//! | `point` | one combination and its workload |
//! | `row` | the result of a point |
//! | `timed` | measures points on a GPU |
//! | `counted` | runs points on the CPU executor and reads its counters |
//! | `table` | the results as a table |
//! | `chart` | the results as a plot |

pub(crate) mod chart;
pub(crate) mod counted;
pub(crate) mod point;
pub(crate) mod row;
pub(crate) mod table;
pub(crate) mod timed;
pub(crate) mod vary;
