//! GPU tests: ops, families, probes, the runtime, and hangs.
//!
//! The binary `gpu-tests` runs all tests on a machine with a GPU and without Rust. Without a GPU, the
//! tests of this crate build, check, assemble and run the same kernels on the CPU executor, and compare the CPU
//! semantics of every op with results recorded on an H200.
//!
//! | where | what |
//! |---|---|
//! | [`trial`], [`columns`], [`data`], [`tolerance`] | small kernels that test ops on data |
//! | [`ops`] | trials of every op |
//! | [`vectors`] | results recorded on an H200, and their replay |
//! | [`workloads`], [`ledger`] | all shipped workloads; the programs verified on a GPU |
//! | [`cached_reference`] | inputs and reference of a problem, shared by its workloads |
//! | [`runtime`] | guarantees of the runtime |
//! | [`hangs`], [`mutants`] | kernels that hang; mutants that the checker refutes as deadlocks |
//! | [`runner`], [`child`], [`suite`] | the tests, and the processes in which they run |

pub mod args;
pub mod cached_reference;
pub mod child;
pub mod columns;
pub mod data;
pub mod gpu;
pub mod hangs;
pub mod ledger;
pub mod mutants;
pub mod ops;
pub mod runner;
pub mod runtime;
pub mod suite;
pub mod tolerance;
pub mod trial;
pub mod vectors;
pub mod workloads;
