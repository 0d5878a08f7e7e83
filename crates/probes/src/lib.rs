//! Hard kernels that try the program form, written with the public API only.
//!
//! Beside them stands the ladder ([`ladder()`]): one product as nine kernels, each a
//! change of the one before.
//!
//! Each is work like that of a family: extents, a plan, inputs, a float64
//! reference. The tests of the crate `warpline` (`tests/it/shipped.rs`) check
//! them, assemble them without an error or a spill, and run them on the
//! simulator under every timing; the binary `gpu-tests` runs them on an H100 or
//! H200.

mod attention;
mod dequantise;
mod ladder;
mod ping_pong;
mod probe;
mod split_k;
mod stream_k;
mod thin;
mod types;

use dequantise::Form;
use probe::works;
use warpline_kernels::AnyWork;

/// The cases of a probe.
pub struct ProbeSet {
    /// Its name.
    pub name: &'static str,
    /// Small extents that reach every path.
    pub cases: Vec<Box<dyn AnyWork>>,
    /// Extents that a simulator has no time for.
    pub gpu_cases: Vec<Box<dyn AnyWork>>,
}

/// Every probe.
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
            works(ping_pong::cases()),
            works(ping_pong::gpu_cases()),
        ),
        set(
            "ping-pong, full tile",
            works(ping_pong::full_tile()),
            vec![],
        ),
        set(
            "attention",
            works(attention::cases()),
            works(attention::gpu_cases()),
        ),
        set(
            "split-k",
            works(split_k::cases()),
            works(split_k::gpu_cases()),
        ),
        set(
            "stream-k",
            works(stream_k::cases()),
            works(stream_k::gpu_cases()),
        ),
        set("thin", works(thin::cases()), works(thin::gpu_cases())),
        set("one-tile", works(types::cases()), vec![]),
    ];
    for (form, name) in [
        (Form::Ring, "dequantise, second ring"),
        (Form::Registers, "dequantise, register operand"),
    ] {
        sets.push(set(
            name,
            works(dequantise::cases(form)),
            works(dequantise::gpu_cases(form)),
        ));
    }
    sets.extend(ladder::sets());
    sets
}

/// The ladder at the sizes of a GPU: size by size, its steps from the bottom up.
///
/// ```
/// let steps: Vec<_> = warpline_probes::ladder().iter().map(|w| w.config()).collect();
/// assert_eq!(steps[0]["step"], "plain tensor cores");
/// assert_eq!(steps[8]["step"], "store");
/// ```
pub fn ladder() -> Vec<Box<dyn AnyWork>> {
    works(ladder::gpu_cases())
}
