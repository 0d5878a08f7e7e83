//! Hard kernels that test the expressiveness of the builder; they use only the public API.
//!
//! The crate also has the ladder ([`ladder()`]): one GEMM as nine kernels; each kernel makes one change to
//! the previous one.
//!
//! A probe has the parts of a family: extents, a plan, inputs and a float64 reference. The tests of crate
//! `warpline` (`tests/it/shipped.rs`) check the probes, assemble them without errors or spills, and run them on the
//! CPU executor under every timing. The binary `gpu-tests` runs them on an H100 or H200.

mod attention;
mod dequantize;
mod ladder;
mod ping_pong;
mod probe;
mod split_k;
mod stream_k;
mod thin;
mod types;

use dequantize::DequantPath;
use probe::workloads;
use warpline_kernels::AnyWorkload;

/// The cases of a probe.
pub struct ProbeSet {
    /// The name of the probe.
    pub name: &'static str,
    /// Small problems that reach every path.
    pub cases: Vec<Box<dyn AnyWorkload>>,
    /// Problems that are too large for the CPU executor.
    pub gpu_cases: Vec<Box<dyn AnyWorkload>>,
}

/// Returns every probe.
///
/// ```
/// let names: Vec<&str> = warpline_probes::all().iter().map(|p| p.name).collect();
/// assert!(names.contains(&"ping-pong"));
/// ```
pub fn all() -> Vec<ProbeSet> {
    let set = |name, cases, gpu_cases| ProbeSet {
        name,
        cases,
        gpu_cases,
    };
    let mut sets = vec![
        set(
            "ping-pong",
            workloads(ping_pong::cases()),
            workloads(ping_pong::gpu_cases()),
        ),
        set(
            "ping-pong, full tile",
            workloads(ping_pong::full_tile()),
            vec![],
        ),
        set(
            "attention",
            workloads(attention::cases()),
            workloads(attention::gpu_cases()),
        ),
        set(
            "split-k",
            workloads(split_k::cases()),
            workloads(split_k::gpu_cases()),
        ),
        set(
            "stream-k",
            workloads(stream_k::cases()),
            workloads(stream_k::gpu_cases()),
        ),
        set(
            "thin",
            workloads(thin::cases()),
            workloads(thin::gpu_cases()),
        ),
        set("one-tile", workloads(types::cases()), vec![]),
    ];
    for (path, name) in [
        (DequantPath::Ring, "dequantize, second ring"),
        (DequantPath::Registers, "dequantize, register operand"),
    ] {
        sets.push(set(
            name,
            workloads(dequantize::cases(path)),
            workloads(dequantize::gpu_cases(path)),
        ));
    }
    sets.extend(ladder::sets());
    sets
}

/// Returns the ladder at GPU sizes: for each size, the steps in order.
///
/// ```
/// let steps: Vec<_> = warpline_probes::ladder().iter().map(|w| w.config()).collect();
/// assert_eq!(steps[0]["step"], "plain tensor cores");
/// assert_eq!(steps[8]["step"], "TMA store");
/// ```
pub fn ladder() -> Vec<Box<dyn AnyWorkload>> {
    workloads(ladder::gpu_cases())
}
