//! Resources of compiled kernels.

use serde::Serialize;

/// The resources of a kernel as the driver compiled it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct Footprint {
    /// The name.
    pub name: String,
    /// The number of threads per CTA.
    pub threads: u32,
    /// The registers per thread at entry.
    pub registers: u32,
    /// The local memory per thread in bytes: spills and arrays.
    pub local_bytes: u32,
    /// The shared memory per CTA in bytes.
    pub shared_bytes: u32,
    /// The maximum number of resident CTAs on the device.
    pub resident_ctas: u64,
}
