//! Random problems and configs of every family.
//!
//! | where | what |
//! |---|---|
//! | `draw` | random flags of families |
//! | `selected` | the selected config and the baseline of random problems |
//! | `explicit` | random configs: proved and correct, or rejected |
//! | `fuzz` | valid calls of `check --fuzz`: proved |
//! | `fallback` | the baseline replaces an undecided config |
//!
//! `WARPLINE_FULL` draws many more. `WARPLINE_SEED` and `WARPLINE_DRAWS` set the seed and the number
//! of draws, `WARPLINE_FAMILY` selects one family.

mod draw;
mod explicit;
mod fallback;
mod fuzz;
mod selected;
