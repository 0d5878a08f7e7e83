//! Numbers and settings in words.

use serde_json::Value;

/// The fields of a problem or config: `n 1000, dtype f32`.
pub(crate) fn settings(value: &Value) -> String {
    let Value::Object(fields) = value else {
        return plain(value);
    };
    if fields.is_empty() {
        return "none".into();
    }
    let field =
        |(name, value): (&String, &Value)| format!("{} {}", name.replace('_', "-"), plain(value));
    fields.iter().map(field).collect::<Vec<_>>().join(", ")
}

/// A JSON value without quotes.
fn plain(value: &Value) -> String {
    match value {
        Value::String(s) => s.clone(),
        other => other.to_string(),
    }
}

/// A duration with three digits: `12.3 µs`.
pub(crate) fn seconds(s: f64) -> String {
    let (number, unit) = match s {
        s if s < 1e-3 => (s * 1e6, "µs"),
        s if s < 1.0 => (s * 1e3, "ms"),
        s => (s, "s"),
    };
    format!("{} {unit}", digits(number))
}

/// A number with an SI prefix: `3.91 T`.
pub(crate) fn scaled(x: f64) -> String {
    let prefixes = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    match prefixes.iter().find(|(least, _)| x >= *least) {
        Some((least, prefix)) => format!("{} {prefix}", digits(x / least)),
        None => format!("{} ", digits(x)),
    }
}

/// A count: exact where it is short, with an SI prefix where it is long.
pub(crate) fn count(n: u64) -> String {
    match n {
        0..100_000 => n.to_string(),
        _ => scaled(n as f64),
    }
}

/// Bytes in binary units: `227 KiB`.
pub(crate) fn bytes(n: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    match units.iter().find(|(shift, _)| n >> shift > 0) {
        Some((shift, unit)) => format!("{} {unit}", digits(n as f64 / f64::from(1u32 << shift))),
        None => format!("{n} B"),
    }
}

/// An error or a bound: `0`, `1.19e-7`.
pub(crate) fn small(x: f64) -> String {
    match x {
        0.0 => "0".into(),
        x if (1e-3..1e4).contains(&x.abs()) => digits(x),
        x if x.is_finite() => format!("{x:.2e}"),
        x => x.to_string(),
    }
}

/// Three digits that count, without an exponent.
fn digits(x: f64) -> String {
    let whole = x.abs().max(1e-9).log10().floor() as i32;
    let places = (2 - whole).clamp(0, 9) as usize;
    let text = format!("{x:.places$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// `a`, `a and b`, `a, b and c`.
pub(crate) fn list(names: &[impl AsRef<str>], last: &str) -> String {
    match names {
        [] => "none".into(),
        [one] => one.as_ref().into(),
        [head @ .., tail] => {
            let head: Vec<&str> = head.iter().map(AsRef::as_ref).collect();
            format!("{} {last} {}", head.join(", "), tail.as_ref())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_have_three_digits_and_a_unit() {
        assert_eq!(seconds(12.34e-6), "12.3 µs");
        assert_eq!(seconds(0.0123), "12.3 ms");
        assert_eq!(seconds(123.4), "123 s");
        assert_eq!(scaled(3.914e12), "3.91 T");
        assert_eq!(count(99_999), "99999");
        assert_eq!(count(1_500_000), "1.5 M");
        assert_eq!(bytes(232_448), "227 KiB");
        assert_eq!(bytes(17), "17 B");
        assert_eq!(small(0.0), "0");
        assert_eq!(small(1.1920929e-7), "1.19e-7");
        assert_eq!(small(0.25), "0.25");
        assert_eq!(small(f64::INFINITY), "inf");
    }

    #[test]
    fn settings_read_as_words() {
        let value = json!({ "n": 1000, "dtype": "f32", "load_regs": null });
        assert_eq!(settings(&value), "n 1000, dtype f32, load-regs null");
        assert_eq!(settings(&json!({})), "none");
    }

    #[test]
    fn lists_end_with_a_word() {
        assert_eq!(list(&["a"], "or"), "a");
        assert_eq!(list(&["a", "b", "c"], "or"), "a, b or c");
    }
}
