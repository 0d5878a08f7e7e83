//! What must hold on the GPU: ops, families, probes, the runtime, and hangs.
//!
//! The binary `gpu-tests` runs it all on a machine that has a GPU and no Rust.
//! Where there is no GPU, the tests of this crate build, check, assemble and
//! simulate the same kernels, and hold the CPU meaning of every op against
//! what an H200 gave.
//!
//! | where | what |
//! |---|---|
//! | [`trial`], [`columns`], [`data`], [`rule`] | small kernels that show ops on data |
//! | [`ops`] | a trial for every op |
//! | [`vectors`] | what an H200 gave, recorded and replayed |
//! | [`works`], [`ledger`] | all work that ships, and which programs were right on a GPU |
//! | [`cached_reference`] | inputs and references of a problem, once for all its works |
//! | [`runtime`] | what the runtime promises |
//! | [`hangs`], [`mutants`] | kernels that hang; broken ones that the checker says would |
//! | [`cases`], [`child`], [`suite`] | tests, and the processes they run in |

pub mod args;
pub mod cached_reference;
pub mod cases;
pub mod child;
pub mod columns;
pub mod data;
pub mod gpu;
pub mod hangs;
pub mod ledger;
pub mod mutants;
pub mod ops;
pub mod rule;
pub mod runtime;
pub mod suite;
pub mod trial;
pub mod vectors;
pub mod works;
