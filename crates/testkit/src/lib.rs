//! Fixtures that the tests of several Warpline crates share.
//!
//! | where | what |
//! |---|---|
//! | [`kernel`] | the target; kernels from a closure |
//! | [`raw`] | kernels written statement by statement, which may break any rule |
//! | [`verdict`] | what the checker decides: proved, or the codes and lines of its diagnostics |
//! | [`launch`] | buffers and arguments of a launch on the executor |
//! | [`timings`] | the schedules that a kernel is run under |
//! | [`full`] | is the full test run requested (`cargo xtask test --full`)? |
//! | [`sample`] | the smallest part of a table that covers every feature of every schedule |
//! | [`cores`] | one check for every item, on all cores |
//! | [`stand_in`] | a stand-in for the CUDA driver, compiled |
//! | `assemble` | printing, reading back and assembling (feature `ptx`) |

#[cfg(feature = "ptx")]
pub mod assemble;
pub mod cores;
pub mod full;
pub mod kernel;
pub mod launch;
pub mod raw;
pub mod sample;
pub mod stand_in;
pub mod timings;
pub mod verdict;
