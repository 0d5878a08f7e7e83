//! Formats numbers with units, settings and lists.

use serde_json::Value;

/// Formats the fields of a problem or config: `n 1000, dtype f32`.
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

/// Formats a JSON value without quotes.
fn plain(value: &Value) -> String {
    match value {
        Value::String(s) => s.clone(),
        other => other.to_string(),
    }
}

/// Formats a duration with three digits: `12.3 µs`.
pub(crate) fn seconds(s: f64) -> String {
    let (number, unit) = match s {
        s if s < 1e-3 => (s * 1e6, "µs"),
        s if s < 1.0 => (s * 1e3, "ms"),
        s => (s, "s"),
    };
    format!("{} {unit}", three_digits(number))
}

/// Formats a number with an SI prefix, ready for a unit: `3.91 T`.
pub(crate) fn si(x: f64) -> String {
    let prefixes = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    match prefixes.iter().find(|(least, _)| x >= *least) {
        Some((least, prefix)) => format!("{} {prefix}", three_digits(x / least)),
        None => format!("{} ", three_digits(x)),
    }
}

/// Formats a count: exact below 100000, with an SI prefix from there on.
pub(crate) fn count(n: u64) -> String {
    match n {
        0..100_000 => n.to_string(),
        _ => si(n as f64),
    }
}

/// Formats bytes in binary units: `227 KiB`.
pub(crate) fn bytes(n: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    match units.iter().find(|(shift, _)| n >> shift > 0) {
        Some((shift, unit)) => format!(
            "{} {unit}",
            three_digits(n as f64 / f64::from(1u32 << shift))
        ),
        None => format!("{n} B"),
    }
}

/// Formats an element of a tensor with six significant digits: `1.25`, `1.19209e-7`.
pub(crate) fn element(x: f64) -> String {
    match x {
        0.0 => "0".into(),
        x if (1e-3..1e6).contains(&x.abs()) => digits(x, 6),
        x if x.is_finite() => format!("{x:.5e}"),
        x => x.to_string(),
    }
}

/// Formats an error in ulp: `0.51`, `7.1`, `312`, `8.4e6`.
pub(crate) fn ulp(x: f64) -> String {
    match x {
        0.0 => "0".into(),
        x if x < 0.005 || x >= 1e5 && x.is_finite() => format!("{x:.1e}"),
        x if x < 1.0 => format!("{x:.2}"),
        x if x < 10.0 => format!("{x:.1}"),
        x => format!("{x:.0}"),
    }
}

/// Formats a relative error: `3.9e-3`.
pub(crate) fn relative(x: f64) -> String {
    match x {
        0.0 => "0".into(),
        x => format!("{x:.1e}"),
    }
}

/// Formats a number with three significant digits and no exponent.
fn three_digits(x: f64) -> String {
    digits(x, 3)
}

/// Formats a number with `count` significant digits and no exponent.
fn digits(x: f64, count: i32) -> String {
    let whole = x.abs().max(1e-9).log10().floor() as i32;
    let places = (count - 1 - whole).clamp(0, 9) as usize;
    let text = format!("{x:.places$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// Joins names: `a`, `a and b`, `a, b and c`.
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
        assert_eq!(si(3.914e12), "3.91 T");
        assert_eq!(count(99_999), "99999");
        assert_eq!(count(1_500_000), "1.5 M");
        assert_eq!(bytes(232_448), "227 KiB");
        assert_eq!(bytes(17), "17 B");
        assert_eq!(element(0.0), "0");
        assert_eq!(element(1.1920929e-7), "1.19209e-7");
        assert_eq!(element(1.312_345_67), "1.31235");
        assert_eq!(element(f64::NAN), "NaN");
        assert_eq!(
            [0.0, 0.513, 1.0, 7.07].map(ulp),
            ["0", "0.51", "1.0", "7.1"]
        );
        assert_eq!([312.4, 8.39e6].map(ulp), ["312", "8.4e6"]);
        assert_eq!(relative(3.91e-3), "3.9e-3");
    }

    #[test]
    fn settings_are_name_and_value() {
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
