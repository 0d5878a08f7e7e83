//! The examples of the gallery: kernels written with the public builder, each with small problems
//! that run on the CPU.

use warpline_probes::ProbeSet;

/// One example.
pub struct Example {
    /// The name on the command line: `ping-pong`.
    pub name: String,
    /// The kernel and its problems.
    pub probe: ProbeSet,
}

/// Returns every example, in the order of the gallery.
///
/// ```
/// let names: Vec<String> = warpline_gallery::examples().into_iter().map(|e| e.name).collect();
/// assert!(names.contains(&"attention".to_owned()));
/// ```
pub fn examples() -> Vec<Example> {
    let example = |probe: ProbeSet| Example {
        name: probe
            .name
            .to_lowercase()
            .replace(", ", "-")
            .replace(' ', "-"),
        probe,
    };
    warpline_probes::all().into_iter().map(example).collect()
}
