//! An option and its values; every combination of several.

use crate::errors::Failure;
use std::str::FromStr;

/// The most points of a sweep.
pub(crate) const MOST: usize = 128;

/// An option that varies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Vary {
    /// The option without its dashes.
    pub(crate) name: String,
    /// What it takes in turn: at least one, each once.
    pub(crate) values: Vec<String>,
}

impl FromStr for Vary {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rule = || "it is written NAME=VALUE,VALUE,…".to_owned();
        let (name, values) = text.split_once('=').ok_or_else(rule)?;
        let between = if values.contains(';') { ';' } else { ',' };
        let values: Vec<_> = values.split(between).map(|v| v.trim().to_owned()).collect();
        if name.trim().is_empty() || values.iter().any(String::is_empty) {
            return Err(rule());
        }
        let twice = |i: &usize| values[..*i].contains(&values[*i]);
        if let Some(i) = (0..values.len()).find(twice) {
            return Err(format!("{} is there twice", values[i]));
        }
        let name = name.trim().to_owned();
        Ok(Self { name, values })
    }
}

/// Every combination of values, the last option fastest.
pub(crate) fn combinations(all: &[Vary]) -> Result<Vec<Vec<String>>, Failure> {
    let names: Vec<_> = all.iter().map(|v| v.name.as_str()).collect();
    let twice = |i: &usize| names[..*i].contains(&names[*i]);
    if let Some(i) = (0..names.len()).find(twice) {
        let text = format!("--vary is given more than once for {}", names[i]);
        return Err(Failure::input("bad-usage", text));
    }
    let counts = all.iter().map(|v| v.values.len());
    let count = counts.clone().fold(1, usize::saturating_mul);
    if count > MOST {
        let counts: Vec<_> = counts.map(|n| n.to_string()).collect();
        let text = format!(
            "a sweep has at most {MOST} points, and these are {} = {count}",
            counts.join(" × ")
        );
        return Err(Failure::input("too-many-points", text));
    }
    let mut points = vec![Vec::new()];
    for vary in all {
        let with = |point: Vec<String>| {
            let values = vary.values.iter().cloned();
            values.map(move |value| [point.clone(), vec![value]].concat())
        };
        points = points.into_iter().flat_map(with).collect();
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
    fn values_have_commas_between_them_or_semicolons() {
        assert_eq!(vary("stages=2, 3,4").values, ["2", "3", "4"]);
        let shapes = vary("shapes=16x12,8x6;8x6");
        assert_eq!(shapes.name, "shapes");
        assert_eq!(shapes.values, ["16x12,8x6", "8x6"]);
        assert_eq!(vary("form=a=b").values, ["a=b"]);
        for bad in ["stages", "=3", "stages=", "stages=2,,3"] {
            let refused = bad.parse::<Vary>().unwrap_err();
            assert_eq!(refused, "it is written NAME=VALUE,VALUE,…");
        }
        let refused = "stages=2,3,2".parse::<Vary>().unwrap_err();
        assert_eq!(refused, "2 is there twice");
    }

    #[test]
    fn combinations_are_all_of_them_the_last_fastest() {
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
    fn too_many_and_one_name_twice_get_a_sentence() {
        let many: Vec<_> = (0..20).map(|i| i.to_string()).collect();
        let many = many.join(",");
        let all = [vary(&format!("a={many}")), vary(&format!("b={many}"))];
        let refused = combinations(&all).unwrap_err();
        let sentence = "a sweep has at most 128 points, and these are 20 × 20 = 400";
        assert_eq!((refused.message.as_str(), refused.exit), (sentence, 2));
        let refused = combinations(&[vary("a=1"), vary("a=2")]).unwrap_err();
        assert_eq!(refused.message, "--vary is given more than once for a");
    }
}
