//! What a kernel needs of a GPU, as the driver compiled it.

use serde::Serialize;

/// What a kernel needs of a GPU, as the driver compiled it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct Footprint {
    /// Its name.
    pub name: String,
    /// Threads of a CTA.
    pub threads: u32,
    /// Registers of a thread at entry.
    pub registers: u32,
    /// Bytes of local memory of a thread: spills and arrays.
    pub local_bytes: u32,
    /// Bytes of shared memory of a CTA.
    pub shared_bytes: u32,
    /// CTAs that the device can hold at once.
    pub resident_ctas: u64,
}
