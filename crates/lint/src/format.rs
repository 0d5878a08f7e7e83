//! Formats numbers for messages.

/// Formats a share in percent: `12 %`, `0.4 %`.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    match ratio(part, whole) * 100.0 {
        p if p == 0.0 || p >= 9.95 => format!("{p:.0} %"),
        p if p < 0.1 => "under 0.1 %".to_owned(),
        p => format!("{p:.1} %"),
    }
}

/// Returns the ratio of two numbers; a zero denominator counts as 1.
pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// Formats a count: `1 warp`, `2 warps`.
pub(crate) fn count(n: u64, what: &str) -> String {
    match n {
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_shares_have_one_decimal_and_counts_a_plural() {
        assert_eq!(percent(0, 7), "0 %");
        assert_eq!(percent(1, 250), "0.4 %");
        assert_eq!(percent(1, 5000), "under 0.1 %");
        assert_eq!(percent(1, 8), "12 %");
        assert_eq!(percent(3, 0), "300 %");
        assert_eq!(
            (count(1, "warp"), count(3, "warp")),
            ("1 warp".into(), "3 warps".into())
        );
    }
}
