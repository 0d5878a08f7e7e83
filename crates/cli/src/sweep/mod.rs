//! Many runs of a family that differ by the values of some options.
//!
//! | where | what |
//! |---|---|
//! | `vary` | an option and its values; every combination of several |
//! | `point` | one combination, and the work it asks for |
//! | `row` | what became of a point |
//! | `timed` | points on a GPU: in the rounds of a measurement |
//! | `counted` | points on the simulator |
//! | `table` | the rows, for people |
//! | `chart` | the rows, as a plot |

pub(crate) mod chart;
pub(crate) mod counted;
pub(crate) mod point;
pub(crate) mod row;
pub(crate) mod table;
pub(crate) mod timed;
pub(crate) mod vary;
