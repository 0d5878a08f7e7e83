//! Fixtures that the tests of several Warpline crates share.
//!
//! | where | what |
//! |---|---|
//! | [`kernel`] | the target; kernels from a closure |
//! | [`raw`] | kernels written statement by statement, which may break any rule |
//! | [`verdict`] | the verdict of the checker: proved, or the codes and lines of the diagnostics |
//! | [`launch`] | buffers and arguments of a launch on the executor |
//! | [`timings`] | the executor timings under which a kernel runs |
//! | [`full`] | whether the full test run is requested (`cargo xtask test --full`) |
//! | [`sample`] | a small subset of a table that covers every feature of every schedule |
//! | [`cores`] | a check of every item, on all cores |
//! | [`stub_driver`] | a stub CUDA driver, compiled from C |
//! | `assemble` | printing, verifying and assembling (feature `ptx`) |

#[cfg(feature = "ptx")]
pub mod assemble;
pub mod cores;
pub mod full;
pub mod kernel;
pub mod launch;
pub mod raw;
pub mod sample;
pub mod stub_driver;
pub mod timings;
pub mod verdict;
