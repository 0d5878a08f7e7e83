//! The table of timings, as JSON.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// Timings of configs on one device.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Table {
    /// The device.
    pub device: String,
    /// The seed of the problems and of the selection of configs.
    pub seed: u64,
    /// All configs, as flags.
    pub configs: Vec<Value>,
    /// The problems and their timings.
    pub rows: Vec<Row>,
}

/// The timings of a problem.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The fields of the problem that are set.
    pub problem: Value,
    /// Indices of configs, each with its median time in µs.
    pub times: Vec<(usize, f64)>,
}

impl Table {
    /// Reads a table.
    pub fn read(path: &Path) -> Result<Self> {
        let text =
            fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{} is not a table", path.display()))
    }

    /// Writes the table, one row per line.
    pub fn write(&self, path: &Path) -> Result<()> {
        let lines = |items: Vec<String>| items.join(",\n");
        let configs = self.configs.iter().map(Value::to_string).collect();
        let rows = self.rows.iter().map(serde_json::to_string);
        let rows = rows.collect::<Result<_, _>>()?;
        let text = format!(
            "{{\"device\": {}, \"seed\": {},\n\"configs\": [\n{}\n],\n\"rows\": [\n{}\n]}}\n",
            Value::from(self.device.as_str()),
            self.seed,
            lines(configs),
            lines(rows)
        );
        fs::write(path, text).with_context(|| format!("writing {}", path.display()))
    }
}

/// The configs of a table by their text, while it is filled.
#[derive(Default)]
pub struct ConfigIndex(HashMap<String, usize>);

impl ConfigIndex {
    /// Returns the index of a config, which is added to `configs` if it is new.
    pub fn index(&mut self, config: Value, configs: &mut Vec<Value>) -> usize {
        *self.0.entry(config.to_string()).or_insert_with(|| {
            configs.push(config);
            configs.len() - 1
        })
    }
}

/// Returns the fields of a JSON object that are neither null, false nor a default text.
pub fn set_fields(object: Value) -> Value {
    let Value::Object(fields) = object else {
        return object;
    };
    let is_set = |value: &Value| !matches!(value, Value::Null | Value::Bool(false));
    fields
        .into_iter()
        .filter(|(_, value)| is_set(value))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_table_is_read_as_it_was_written() {
        let mut table = Table {
            device: "a \"GPU\"".into(),
            ..Table::default()
        };
        let mut index = ConfigIndex::default();
        let mut add = |config| index.index(config, &mut table.configs);
        assert_eq!(
            [
                add(json!({"tile_m": 64})),
                add(json!({})),
                add(json!({"tile_m": 64}))
            ],
            [0, 1, 0]
        );
        table.rows.push(Row {
            problem: set_fields(json!({"m": 3, "bias": false, "scale": null})),
            times: vec![(0, 1.5), (1, 2.0)],
        });
        let path = std::env::temp_dir().join(format!("warpline-fit-{}.json", std::process::id()));
        table.write(&path).unwrap();
        let read = Table::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!((read.device, read.configs), (table.device, table.configs));
        assert_eq!(read.rows[0].problem, json!({"m": 3}));
        assert_eq!(read.rows[0].times, [(0, 1.5), (1, 2.0)]);
    }
}
