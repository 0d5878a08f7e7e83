//! The format of a line of the ptxas log.

/// The severity of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Severity {
    Info,
    Warning,
    Error,
    Fatal,
}

/// A parsed line of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LogLine<'a> {
    pub(super) severity: Severity,
    /// The PTX line, if the prefix names one.
    pub(super) line: Option<u32>,
    pub(super) text: &'a str,
}

impl<'a> LogLine<'a> {
    /// Parses `ptxas info    : text` and `ptxas kernel.ptx, line 19; error   : text`.
    pub(super) fn parse(raw: &'a str) -> Option<Self> {
        let rest = raw.strip_prefix("ptxas ")?;
        if let Some((severity, text)) = severity(rest) {
            return Some(Self {
                severity,
                line: None,
                text,
            });
        }
        let (location, rest) = rest.split_once("; ")?;
        let (_, line) = location.rsplit_once(", line ")?;
        let (severity, text) = severity(rest)?;
        Some(Self {
            severity,
            line: Some(line.parse().ok()?),
            text,
        })
    }
}

fn severity(rest: &str) -> Option<(Severity, &str)> {
    let (word, text) = rest.split_once(':')?;
    let severity = match word.trim_end() {
        "info" => Severity::Info,
        "warning" => Severity::Warning,
        "error" => Severity::Error,
        "fatal" => Severity::Fatal,
        _ => return None,
    };
    Some((severity, text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_a_location_is_parsed() {
        let line = LogLine::parse("ptxas kernel.ptx, line 19; error   : Unknown modifier '.snyc'");
        assert_eq!(
            line,
            Some(LogLine {
                severity: Severity::Error,
                line: Some(19),
                text: "Unknown modifier '.snyc'"
            })
        );
    }

    #[test]
    fn a_line_without_a_location_may_contain_a_semicolon() {
        let line = LogLine::parse("ptxas info    : (C7508) 'setmaxnreg' ignored; unable");
        assert_eq!(
            line,
            Some(LogLine {
                severity: Severity::Info,
                line: None,
                text: "(C7508) 'setmaxnreg' ignored; unable"
            })
        );
    }

    #[test]
    fn other_text_is_not_a_log_line() {
        for raw in [
            "",
            "ptxas",
            "    0 bytes stack frame",
            "ptxas a, line x; error : b",
        ] {
            assert_eq!(LogLine::parse(raw), None, "{raw:?}");
        }
    }
}
