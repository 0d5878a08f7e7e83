//! Test counts and times, parsed from the output of test binaries.

/// The results of all tests.
#[derive(Debug, Default)]
pub(crate) struct TestResults {
    /// Tests that passed, over all binaries.
    pub(crate) passed: u64,
    /// Tests that failed, and binaries that failed without printing a result.
    pub(crate) failed: u64,
    times: Vec<TestTime>,
    /// Tests of the running binary.
    running: Vec<TestTime>,
    /// The number of tests that the running binary reported; none before its report.
    reported: Option<u64>,
}

/// The duration of one test.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TestTime {
    /// The binary and the test; only the binary if it times no tests.
    pub(crate) name: String,
    /// Wall time.
    pub(crate) seconds: f64,
}

/// Formats the line that `time-tests` prints after a test binary.
pub(crate) fn summary_line(binary: &str, ok: bool, seconds: f64) -> String {
    let status = if ok { "ok" } else { "failed" };
    format!("xtask: {binary} {status} in {seconds:.3}s")
}

impl TestResults {
    /// Parses one line of output.
    pub(crate) fn parse_line(&mut self, line: &str) {
        if let Some((passed, failed)) = pytest_result(line) {
            self.passed += passed;
            self.failed += failed;
        } else if let Some((passed, failed)) = result(line) {
            self.passed += passed;
            self.failed += failed;
            self.reported = Some(passed + failed);
        } else if let Some(time) = test_time(line) {
            self.running.push(time);
        } else if let Some((binary, ok, seconds)) = parse_summary_line(line) {
            self.finish_binary(binary, ok, seconds);
        }
    }

    /// Returns the slowest tests, the slowest first.
    pub(crate) fn slowest(&self, count: usize) -> Vec<&TestTime> {
        let mut times: Vec<_> = self.times.iter().collect();
        times.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        times.truncate(count);
        times
    }

    fn finish_binary(&mut self, binary: &str, ok: bool, seconds: f64) {
        let reported = self.reported.take();
        if !ok && reported.is_none() {
            self.failed += 1;
        }
        if self.running.is_empty() && reported != Some(0) {
            self.times.push(TestTime {
                name: format!("{binary} (whole binary)"),
                seconds,
            });
        }
        self.times
            .extend(self.running.drain(..).map(|time| TestTime {
                name: format!("{binary} {}", time.name),
                ..time
            }));
    }
}

/// Parses passed and failed from `test result: ok. 3 passed; 1 failed; 0 ignored; ...`.
fn result(line: &str) -> Option<(u64, u64)> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let count = |suffix: &str| {
        let part = counts
            .split(';')
            .find_map(|part| part.strip_suffix(suffix))?;
        part.trim().parse().ok()
    };
    Some((count(" passed")?, count(" failed")?))
}

/// Parses passed and failed from pytest's last line: `1 failed, 12 passed, 3 skipped in 1.20s`.
fn pytest_result(line: &str) -> Option<(u64, u64)> {
    let (counts, time) = line.trim_matches(['=', ' ']).rsplit_once(" in ")?;
    time.split(' ')
        .next()?
        .strip_suffix('s')?
        .parse::<f64>()
        .ok()?;
    let (mut passed, mut failed) = (0, 0);
    for part in counts.split(", ") {
        let (count, outcome) = part.split_once(' ')?;
        let count: u64 = count.parse().ok()?;
        match outcome {
            "passed" => passed += count,
            "failed" | "error" | "errors" => failed += count,
            _ => {}
        }
    }
    Some((passed, failed))
}

/// Parses name and time from `test name ... ok <0.012s>`.
fn test_time(line: &str) -> Option<TestTime> {
    let (name, rest) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let (_, seconds) = rest.rsplit_once('<')?;
    Some(TestTime {
        name: name.to_owned(),
        seconds: seconds.strip_suffix("s>")?.parse().ok()?,
    })
}

/// Parses the line of [`summary_line`].
fn parse_summary_line(line: &str) -> Option<(&str, bool, f64)> {
    let rest = line.strip_prefix("xtask: ")?;
    let (rest, seconds) = rest.rsplit_once(" in ")?;
    let (binary, status) = rest.rsplit_once(' ')?;
    let ok = match status {
        "ok" => true,
        "failed" => false,
        _ => return None,
    };
    Some((binary, ok, seconds.strip_suffix('s')?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(output: &str) -> TestResults {
        let mut results = TestResults::default();
        output.lines().for_each(|line| results.parse_line(line));
        results
    }

    #[test]
    fn results_are_summed_over_binaries_and_doc_tests() {
        let results = results(
            "running 3 tests\n\
             test a::b ... ok <0.250s>\n\
             test a::c - should panic ... ok <1.500s>\n\
             test a::d ... FAILED <0.001s>\n\
             test a::e ... ignored\n\
             test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 1.50s\n\
             xtask: warpline-ir failed in 1.512s\n\
             test crates/ir/src/lib.rs - Kernel (line 9) ... ok\n\
             test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.20s\n",
        );
        assert_eq!((results.passed, results.failed), (3, 1));
        let slowest: Vec<_> = results.slowest(2).into_iter().map(|t| &t.name).collect();
        assert_eq!(
            slowest,
            ["warpline-ir a::c - should panic", "warpline-ir a::b"]
        );
    }

    #[test]
    fn a_binary_without_test_times_is_one_entry() {
        let results = results(
            "test result: ok. 4 passed; 0 failed; 0 ignored\n\
             xtask: warpline-cli/cmd ok in 2.000s\n\
             test result: ok. 0 passed; 0 failed; 0 ignored\n\
             xtask: warpline-cli ok in 0.002s\n",
        );
        assert_eq!((results.passed, results.failed), (4, 0));
        assert_eq!(
            results.slowest(10),
            [&TestTime {
                name: "warpline-cli/cmd (whole binary)".to_owned(),
                seconds: 2.0
            }]
        );
    }

    #[test]
    fn a_binary_that_crashes_is_one_failure() {
        let results = results("test a ... ok <0.001s>\nxtask: warpline-cpu failed in 0.100s\n");
        assert_eq!((results.passed, results.failed), (0, 1));
    }

    #[test]
    fn summary_lines_round_trip() {
        let line = summary_line("warpline-cli/cmd", false, 1.25);
        assert_eq!(
            parse_summary_line(&line),
            Some(("warpline-cli/cmd", false, 1.25))
        );
    }

    #[test]
    fn pytest_results_are_counted() {
        let read = results("591 passed, 8 skipped, 18 warnings in 20.92s\n");
        assert_eq!((read.passed, read.failed), (591, 0));
        let read = results("==== 1 failed, 12 passed, 2 errors in 61.20s (0:01:01) ====\n");
        assert_eq!((read.passed, read.failed), (12, 3));
        let read = results("1.20s call     test_x.py::test_in_1s\nxtask: a ok in 1.000s\n");
        assert_eq!((read.passed, read.failed), (0, 0));
    }
}
