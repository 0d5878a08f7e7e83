//! The smallest part of a table that covers every feature of every schedule.
//!
//! A workload has a schedule and features: the fields of its problem and config with a value that is
//! a name, a switch, an absent option, or the class of a number. A sample by index misses
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

/// Returns a cheap subset of the items with every pair that occurs, in the order of the items.
///
/// Greedy: the item with the most uncovered pairs per second comes next, the first of equals.
pub fn cover<T>(
    items: Vec<T>,
    pairs: impl Fn(&T) -> BTreeSet<Pair>,
    seconds: impl Fn(&T) -> f64,
) -> Vec<T> {
    let seconds: Vec<f64> = items.iter().map(seconds).collect();
    let of: Vec<BTreeSet<Pair>> = items.iter().map(pairs).collect();
    let mut open: BTreeSet<&Pair> = of.iter().flatten().collect();
    let mut taken = vec![false; items.len()];
    while !open.is_empty() {
        let gain = |i: usize| of[i].iter().filter(|p| open.contains(p)).count() as f64;
        let gains: Vec<f64> = (0..items.len()).map(|i| gain(i) / seconds[i]).collect();
        // `max_by` returns the last of equals.
        let by_gain = |&i: &usize, &j: &usize| gains[i].total_cmp(&gains[j]);
        let Some(best) = (0..items.len()).rev().max_by(by_gain) else {
            break;
        };
        taken[best] = true;
        for pair in &of[best] {
            open.remove(pair);
        }
    }
    let items = items.into_iter().zip(taken);
    items
        .filter_map(|(item, taken)| taken.then_some(item))
        .collect()
}

/// The field of a config that names its schedule.
fn schedule(config: &Value) -> String {
    let named = config.get("schedule");
    named.map(Value::to_string).unwrap_or_default()
}

/// Adds the features of a value and of everything in it.
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

/// The class of a number: extents of one class take the same path through most kernels.
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

    fn of((problem, config): &(Value, Value)) -> BTreeSet<Pair> {
        pairs(problem, config)
    }

    #[test]
    fn every_pair_of_the_table_is_in_the_cover() {
        let table = table();
        let all: BTreeSet<Pair> = table.iter().flat_map(of).collect();
        let some = cover(table.clone(), of, |_| 1.0);
        assert_eq!(some.iter().flat_map(of).collect::<BTreeSet<_>>(), all);
        assert!(all.contains(&("\"ring\"".into(), "problem.dtype = e4m3".into())));
        assert!(all.contains(&("\"plain\"".into(), "problem.bias is absent".into())));
        // Five classes of `n` for each schedule.
        assert_eq!((table.len(), some.len()), (36, 10));
    }

    #[test]
    fn a_cover_is_deterministic_and_ordered() {
        let table = table();
        let some = cover(table.clone(), of, |_| 1.0);
        assert_eq!(some, cover(table.clone(), of, |_| 1.0));
        let mut rest = table.iter();
        assert!(some.iter().all(|item| rest.any(|other| other == item)));
    }

    #[test]
    fn the_cheaper_of_equal_items_is_selected() {
        let item = |n: u32| (json!({"n": n}), json!({"schedule": "plain"}));
        let seconds = |(problem, _): &(Value, Value)| problem["n"].as_f64().unwrap_or(1.0);
        let some = cover(vec![item(800), item(8), item(16)], of, seconds);
        assert_eq!(some, [item(8)]);
    }

    #[test]
    fn an_empty_table_has_an_empty_cover() {
        assert_eq!(cover(Vec::<(Value, Value)>::new(), of, |_| 1.0), []);
    }
}
