//! An option and its values; all combinations of several options.

use crate::errors::Failure;
use std::str::FromStr;

/// The maximum number of points of a sweep.
pub(crate) const MAX_POINTS: usize = 128;

/// A varied option.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Vary {
    /// The option without its dashes.
    pub(crate) name: String,
    /// Its values: at least one, without duplicates.
    pub(crate) values: Vec<String>,
}

impl FromStr for Vary {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rule = || "expected NAME=VALUE,VALUE,…".to_owned();
        let (name, values) = text.split_once('=').ok_or_else(rule)?;
        let separator = if values.contains(';') { ';' } else { ',' };
        let values: Vec<_> = values
            .split(separator)
            .map(|v| v.trim().to_owned())
            .collect();
        if name.trim().is_empty() || values.iter().any(String::is_empty) {
            return Err(rule());
        }
        let is_duplicate = |i: &usize| values[..*i].contains(&values[*i]);
        if let Some(i) = (0..values.len()).find(is_duplicate) {
            return Err(format!("value {} is given twice", values[i]));
        }
        let name = name.trim().to_owned();
        Ok(Self { name, values })
    }
}

/// Returns every combination of values; the last option varies fastest.
pub(crate) fn combinations(all: &[Vary]) -> Result<Vec<Vec<String>>, Failure> {
    let names: Vec<_> = all.iter().map(|v| v.name.as_str()).collect();
    let is_duplicate = |i: &usize| names[..*i].contains(&names[*i]);
    if let Some(i) = (0..names.len()).find(is_duplicate) {
        let text = format!("--vary is given more than once for {}", names[i]);
        return Err(Failure::bad_input("bad-usage", text));
    }
    let counts = all.iter().map(|v| v.values.len());
    let count = counts.clone().fold(1, usize::saturating_mul);
    if count > MAX_POINTS {
        let counts: Vec<_> = counts.map(|n| n.to_string()).collect();
        let text = format!(
            "a sweep has at most {MAX_POINTS} points, not {} = {count}",
            counts.join(" × ")
        );
        return Err(Failure::bad_input("too-many-points", text));
    }
    let mut points = vec![Vec::new()];
    for vary in all {
        let extend = |point: Vec<String>| {
            let values = vary.values.iter().cloned();
            values.map(move |value| [point.clone(), vec![value]].concat())
        };
        points = points.into_iter().flat_map(extend).collect();
    }
    Ok(points)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vary(text: &str) -> Vary {
        text.parse().unwrap()
    }

    #[test]
    fn values_are_separated_by_commas_or_semicolons() {
        assert_eq!(vary("stages=2, 3,4").values, ["2", "3", "4"]);
        let shapes = vary("shapes=16x12,8x6;8x6");
        assert_eq!(shapes.name, "shapes");
        assert_eq!(shapes.values, ["16x12,8x6", "8x6"]);
        assert_eq!(vary("schedule=a=b").values, ["a=b"]);
        for bad in ["stages", "=3", "stages=", "stages=2,,3"] {
            let error = bad.parse::<Vary>().unwrap_err();
            assert_eq!(error, "expected NAME=VALUE,VALUE,…");
        }
        let error = "stages=2,3,2".parse::<Vary>().unwrap_err();
        assert_eq!(error, "value 2 is given twice");
    }

    #[test]
    fn the_last_option_varies_fastest() {
        let all = combinations(&[vary("a=1,2"), vary("b=x"), vary("c=u,v")]).unwrap();
        assert_eq!(
            all,
            [
                ["1", "x", "u"],
                ["1", "x", "v"],
                ["2", "x", "u"],
                ["2", "x", "v"]
            ]
        );
    }

    #[test]
    fn too_many_points_and_duplicate_names_are_rejected() {
        let values: Vec<_> = (0..20).map(|i| i.to_string()).collect();
        let values = values.join(",");
        let all = [vary(&format!("a={values}")), vary(&format!("b={values}"))];
        let error = combinations(&all).unwrap_err();
        let sentence = "a sweep has at most 128 points, not 20 × 20 = 400";
        assert_eq!((error.message.as_str(), error.exit), (sentence, 2));
        let error = combinations(&[vary("a=1"), vary("a=2")]).unwrap_err();
        assert_eq!(error.message, "--vary is given more than once for a");
    }
}
