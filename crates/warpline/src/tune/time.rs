//! Timestamps in ISO 8601.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the current UTC time, `2026-11-16T09:30:00Z`. Timestamps sort as text.
pub(super) fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    format_time(since.map_or(0, |d| d.as_secs()))
}

/// Formats seconds since 1970.
fn format_time(seconds: u64) -> String {
    let (days, rest) = (seconds / 86400, seconds % 86400);
    // Counts days from 0000-03-01, so that a leap day is the last day of its year.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let (h, m, s) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leap_years_are_formatted_correctly() {
        assert_eq!(format_time(0), "1970-01-01T00:00:00Z");
        assert_eq!(format_time(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(format_time(951_868_799), "2000-02-29T23:59:59Z");
        assert_eq!(format_time(1_709_164_800), "2024-02-29T00:00:00Z");
        assert_eq!(format_time(1_709_251_200), "2024-03-01T00:00:00Z");
        assert_eq!(format_time(1_794_821_400), "2026-11-16T09:30:00Z");
        assert!(now() > format_time(1_700_000_000));
    }
}
