//! A small subset of a table that covers every feature of every schedule.
//!
//! A workload has a schedule and features. A feature is a field of its problem or config with a
//! value: a name, a switch, an absent option, or the class of a number. A sample by index misses
//! features when the table changes; this sample covers every (schedule, feature) pair.

use crate::full::full;
use serde_json::Value;
use std::collections::BTreeSet;

/// The schedule of a workload, and one of its features.
pub type Pair = (String, String);

/// Returns every pair of a workload, from the JSON of its problem and of its config.
pub fn pairs(problem: &Value, config: &Value) -> BTreeSet<Pair> {
    let mut features = BTreeSet::new();
    collect(&mut features, "problem", problem);
    collect(&mut features, "config", config);
    let schedule = schedule(config);
    let pair = |feature| (schedule.clone(), feature);
    features.into_iter().map(pair).collect()
}

/// Returns all items in a full test run, else a [`cover`].
pub fn sample<T>(
    items: Vec<T>,
    pairs: impl Fn(&T) -> BTreeSet<Pair>,
    seconds: impl Fn(&T) -> f64,
) -> Vec<T> {
    match full() {
        true => items,
        false => cover(items, pairs, seconds),
    }
}

/// Returns a cheap subset of the items that covers every pair, in the order of the items.
///
/// The selection is greedy: it takes the item with the most uncovered pairs per second; of equal
/// items, the first.
pub fn cover<T>(
    items: Vec<T>,
    pairs: impl Fn(&T) -> BTreeSet<Pair>,
    seconds: impl Fn(&T) -> f64,
) -> Vec<T> {
    let seconds: Vec<f64> = items.iter().map(seconds).collect();
    let pairs_of: Vec<BTreeSet<Pair>> = items.iter().map(pairs).collect();
    let mut uncovered: BTreeSet<&Pair> = pairs_of.iter().flatten().collect();
    let mut selected = vec![false; items.len()];
    while !uncovered.is_empty() {
        let gain = |i: usize| pairs_of[i].iter().filter(|p| uncovered.contains(p)).count() as f64;
        let gains: Vec<f64> = (0..items.len()).map(|i| gain(i) / seconds[i]).collect();
        // `max_by` returns the last of equals.
        let by_gain = |&i: &usize, &j: &usize| gains[i].total_cmp(&gains[j]);
        let Some(best) = (0..items.len()).rev().max_by(by_gain) else {
            break;
        };
        selected[best] = true;
        for pair in &pairs_of[best] {
            uncovered.remove(pair);
        }
    }
    let items = items.into_iter().zip(selected);
    items
        .filter_map(|(item, selected)| selected.then_some(item))
        .collect()
}

/// Returns the schedule that a config names.
fn schedule(config: &Value) -> String {
    let named = config.get("schedule");
    named.map(Value::to_string).unwrap_or_default()
}

/// Adds the features of a value and of the values inside it.
fn collect(features: &mut BTreeSet<String>, path: &str, value: &Value) {
    match value {
        Value::Null => drop(features.insert(format!("{path} is absent"))),
        Value::Bool(on) => drop(features.insert(format!("{path} = {on}"))),
        Value::String(name) => drop(features.insert(format!("{path} = {name}"))),
        Value::Number(n) => drop(features.insert(format!("{path} is {}", class(n)))),
        Value::Array(all) => {
            features.insert(format!("{path} has {} elements", class(&all.len().into())));
            all.iter()
                .for_each(|v| collect(features, &format!("{path}[]"), v));
        }
        Value::Object(fields) => fields
            .iter()
            .for_each(|(name, v)| collect(features, &format!("{path}.{name}"), v)),
    }
}

/// Returns the class of a number; extents of one class take the same path through most kernels.
fn class(n: &serde_json::Number) -> &'static str {
    match n.as_u64() {
        Some(0) => "zero",
        Some(1) => "one",
        Some(n) if n % 8 == 0 => "a multiple of 8",
        Some(n) if n % 2 == 0 => "even",
        Some(_) => "odd",
        None => "not a natural number",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn table() -> Vec<(Value, Value)> {
        let mut table = Vec::new();
        for schedule in ["plain", "ring"] {
            for dtype in ["f32", "bf16", "e4m3"] {
                for n in [0, 1, 7, 8, 16, 100] {
                    let bias = (n == 7).then_some("row");
                    table.push((
                        json!({"n": n, "dtype": dtype, "bias": bias}),
                        json!({"schedule": schedule, "hints": n > 8}),
                    ));
                }
            }
        }
        table
    }

    fn item_pairs((problem, config): &(Value, Value)) -> BTreeSet<Pair> {
        pairs(problem, config)
    }

    #[test]
    fn every_pair_of_the_table_is_in_the_cover() {
        let table = table();
        let all: BTreeSet<Pair> = table.iter().flat_map(item_pairs).collect();
        let covered = cover(table.clone(), item_pairs, |_| 1.0);
        assert_eq!(
            covered.iter().flat_map(item_pairs).collect::<BTreeSet<_>>(),
            all
        );
        assert!(all.contains(&("\"ring\"".into(), "problem.dtype = e4m3".into())));
        assert!(all.contains(&("\"plain\"".into(), "problem.bias is absent".into())));
        // Five classes of `n` for each schedule.
        assert_eq!((table.len(), covered.len()), (36, 10));
    }

    #[test]
    fn a_cover_is_deterministic_and_ordered() {
        let table = table();
        let covered = cover(table.clone(), item_pairs, |_| 1.0);
        assert_eq!(covered, cover(table.clone(), item_pairs, |_| 1.0));
        let mut rest = table.iter();
        assert!(covered.iter().all(|item| rest.any(|other| other == item)));
    }

    #[test]
    fn the_cheaper_of_equal_items_is_selected() {
        let item = |n: u32| (json!({"n": n}), json!({"schedule": "plain"}));
        let seconds = |(problem, _): &(Value, Value)| problem["n"].as_f64().unwrap_or(1.0);
        let covered = cover(vec![item(800), item(8), item(16)], item_pairs, seconds);
        assert_eq!(covered, [item(8)]);
    }

    #[test]
    fn an_empty_table_has_an_empty_cover() {
        assert_eq!(cover(Vec::<(Value, Value)>::new(), item_pairs, |_| 1.0), []);
    }
}
