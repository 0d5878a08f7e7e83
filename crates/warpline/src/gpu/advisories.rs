//! Advisories of the driver's compiler, at the author's source line.

use std::fmt;
use warpline_ptx::Ptx;
use warpline_ptx::ptxas::{Advisory, PtxasReport};

/// An advisory that the compiler serialized or ignored instructions of a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct JitAdvisory {
    code: String,
    text: String,
    /// The author's source line and the role, if the compiler names a line.
    location: Option<String>,
}

impl fmt::Display for JitAdvisory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(location) = &self.location {
            write!(f, "{location}: ")?;
        }
        write!(f, "{} ({})", self.text, self.code)
    }
}

/// Parses the advisories in a compilation log.
pub(super) fn advisories(log: &str, ptx: &Ptx) -> Vec<JitAdvisory> {
    // Line by line, because other parts of the log may be truncated.
    let reports = log.lines().filter_map(|line| PtxasReport::parse(line).ok());
    let all = reports.flat_map(|report| report.advisories);
    let advisory = |a: Advisory| JitAdvisory {
        location: a.line.and_then(|line| source_location(&ptx.text, line)),
        code: a.code,
        text: a.text,
    };
    all.filter(Advisory::is_error).map(advisory).collect()
}

/// Returns the source location of a PTX line from the last `.loc` and role comment above it:
/// `gemm.rs:88, role compute`.
fn source_location(text: &str, line: u32) -> Option<String> {
    let (mut loc, mut role) = (None, None);
    for line in text.lines().map(str::trim).take(line as usize) {
        if let Some(rest) = line.strip_prefix(".loc ") {
            loc = rest.split_once(' ');
        } else if let Some(rest) = line.strip_prefix("// role ") {
            role = rest.rsplit_once(": warps ").map(|(name, _)| name);
        }
    }
    let (file, rest) = loc?;
    let (row, _) = rest.split_once(' ')?;
    let file = text.lines().find_map(|line| {
        let (index, name) = line.strip_prefix(".file ")?.split_once(' ')?;
        (index == file).then(|| name.trim_matches('"'))
    })?;
    let role = role.map_or(String::new(), |role| format!(", role {role}"));
    Some(format!("{file}:{row}{role}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
.file 1 \"gemm.rs\"
.file 2 \"helper.rs\"
{
    .loc 1 10 5
    mov
    // role load: warps 0 to 3
    .loc 2 20 9
    mov
    // role math: warps 4 to 7
    mov
    .loc 1 30 5
    wgmma
}
";

    fn ptx() -> Ptx {
        Ptx {
            text: TEXT.into(),
            entry: "gemm".into(),
            shared_bytes: 0,
            threads: 256,
            cluster: [1; 3],
            version: (8, 0),
            target: "sm_90a",
        }
    }

    #[test]
    fn a_ptx_line_maps_to_the_source_line_above_it() {
        assert_eq!(source_location(TEXT, 2), None);
        assert_eq!(source_location(TEXT, 5).as_deref(), Some("gemm.rs:10"));
        assert_eq!(
            source_location(TEXT, 8).as_deref(),
            Some("helper.rs:20, role load")
        );
        assert_eq!(
            source_location(TEXT, 10).as_deref(),
            Some("helper.rs:20, role math")
        );
        assert_eq!(
            source_location(TEXT, 999).as_deref(),
            Some("gemm.rs:30, role math")
        );
    }

    #[test]
    fn harmless_advisories_are_ignored() {
        let log = "\
ptxas info : Compiling entry function 'gemm' for 'sm_90a'
ptxas info : (C7510) Potential Performance Loss: serialized around line 12 in function 'gemm'
ptxas info : (C7999) something harmless
ptxas info : (C7508) setmaxnreg ignored
";
        let found: Vec<_> = advisories(log, &ptx())
            .iter()
            .map(|r| r.to_string())
            .collect();
        assert_eq!(
            found,
            [
                "gemm.rs:30, role math: Potential Performance Loss: serialized around line 12 in function 'gemm' (C7510)",
                "setmaxnreg ignored (C7508)"
            ]
        );
    }
}
