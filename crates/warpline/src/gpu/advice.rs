//! What the driver's compiler remarks on, at the author's line.

use std::fmt;
use warpline_ptx::Ptx;
use warpline_ptx::ptxas::{Advisory, Report};

/// The compiler did not make the kernel that was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Remark {
    code: String,
    text: String,
    /// The author's line, and the role, where the compiler names a line.
    place: Option<String>,
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        write!(f, "{} ({})", self.text, self.code)
    }
}

/// The remarks in the log of a compilation.
pub(super) fn remarks(log: &str, ptx: &Ptx) -> Vec<Remark> {
    // Line by line: what else the log says of an entry need not be whole.
    let reports = log.lines().filter_map(|line| Report::parse(line).ok());
    let advisories = reports.flat_map(|report| report.advisories);
    let remark = |a: Advisory| Remark {
        place: a.line.and_then(|line| place(&ptx.text, line)),
        code: a.code,
        text: a.text,
    };
    advisories.filter(Advisory::is_error).map(remark).collect()
}

/// `gemm.rs:88, role compute`, of a line of the PTX: what the last `.loc` and
/// the last role above it say.
fn place(text: &str, line: u32) -> Option<String> {
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
    fn a_line_of_the_ptx_is_the_authors_line_above_it() {
        assert_eq!(place(TEXT, 2), None);
        assert_eq!(place(TEXT, 5).as_deref(), Some("gemm.rs:10"));
        assert_eq!(place(TEXT, 8).as_deref(), Some("helper.rs:20, role load"));
        assert_eq!(place(TEXT, 10).as_deref(), Some("helper.rs:20, role math"));
        assert_eq!(place(TEXT, 999).as_deref(), Some("gemm.rs:30, role math"));
    }

    #[test]
    fn only_what_changes_the_kernel_is_a_remark() {
        let log = "\
ptxas info : Compiling entry function 'gemm' for 'sm_90a'
ptxas info : (C7510) Potential Performance Loss: serialized around line 12 in function 'gemm'
ptxas info : (C7999) something harmless
ptxas info : (C7508) setmaxnreg ignored
";
        let found: Vec<_> = remarks(log, &ptx()).iter().map(|r| r.to_string()).collect();
        assert_eq!(
            found,
            [
                "gemm.rs:30, role math: Potential Performance Loss: serialized around line 12 in function 'gemm' (C7510)",
                "setmaxnreg ignored (C7508)"
            ]
        );
    }
}
