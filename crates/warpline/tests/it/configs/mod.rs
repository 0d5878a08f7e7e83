//! Random problems and configs of every family.
//!
//! | where | what |
//! |---|---|
//! | `draw` | flags of a family, drawn |
//! | `selected` | the selected config and the baseline of drawn problems |
//! | `explicit` | drawn configs: proved and right, or rejected by a sentence |
//! | `fallback` | the baseline takes the place of an undecided config |
//!
//! With `WARPLINE_FULL` set many more are drawn; `WARPLINE_SEED` and
//! `WARPLINE_DRAWS` draw others, `WARPLINE_FAMILY` of one family.

mod draw;
mod explicit;
mod fallback;
mod selected;
