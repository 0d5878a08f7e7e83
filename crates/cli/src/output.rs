//! The output of a command: text for people, one JSON object for programs.

use crate::errors::Failure;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The version of the JSON objects. It changes when a field is removed or changes its meaning.
pub(crate) const JSON_VERSION: u32 = 1;

/// The output of a command.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    /// The text for people; ends with a line feed.
    pub(crate) text: String,
    /// The JSON fields; none if the output has no JSON form.
    fields: Option<Map<String, Value>>,
    /// The failure, if the command ran and its result is a failure.
    pub(crate) failure: Option<Failure>,
}

impl CommandOutput {
    /// Creates the output of a command.
    pub(crate) fn new(command: &str, text: impl Into<String>) -> Self {
        let mut fields = Map::new();
        fields.insert("version".into(), json!(JSON_VERSION));
        fields.insert("command".into(), json!(command));
        Self {
            text: text.into(),
            fields: Some(fields),
            failure: None,
        }
    }

    /// Creates output without a JSON form, for help.
    pub(crate) fn text_only(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            fields: None,
            failure: None,
        }
    }

    /// Adds a JSON field.
    pub(crate) fn field(mut self, name: &str, value: impl Serialize) -> Self {
        if let Some(fields) = &mut self.fields {
            fields.insert(name.into(), to_value(value));
        }
        self
    }

    /// Adds the fields of a struct to the JSON object.
    pub(crate) fn fields(mut self, value: impl Serialize) -> Self {
        if let (Some(fields), Value::Object(more)) = (&mut self.fields, to_value(value)) {
            fields.extend(more);
        }
        self
    }

    /// Sets the failure.
    pub(crate) fn with_failure(mut self, failure: Option<Failure>) -> Self {
        self.failure = failure;
        self
    }

    /// Returns the JSON object, or the text if there is no JSON form.
    pub(crate) fn to_json(&self) -> String {
        match &self.fields {
            Some(fields) => json_line(fields),
            None => self.text.clone(),
        }
    }
}

impl Failure {
    /// Returns the failure as a JSON object.
    pub(crate) fn to_json(&self) -> String {
        json_line(&json!({
            "version": JSON_VERSION,
            "error": { "code": self.code, "message": self.message },
        }))
    }
}

/// Converts a value to JSON. The conversion cannot fail for structs of numbers and names.
fn to_value(value: impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}

fn json_line(value: &impl Serialize) -> String {
    format!("{:#}\n", to_value(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn output_is_one_versioned_object_with_its_fields_in_order() {
        let output = CommandOutput::new("run", "text")
            .field("passed", true)
            .fields(json!({ "ratio": f64::INFINITY, "name": "quote \" and line\n" }));
        let text = output.to_json();
        assert_eq!(
            parsed(&text),
            json!({
                "version": 1, "command": "run", "passed": true,
                "ratio": null, "name": "quote \" and line\n",
            })
        );
        assert!(text.ends_with("}\n") && text.find("version") < text.find("command"));
    }

    #[test]
    fn failure_is_one_versioned_object() {
        let failure = Failure::bad_input("bad-value", "--n is \"x\"");
        let expected = json!({ "code": "bad-value", "message": "--n is \"x\"" });
        assert_eq!(
            parsed(&failure.to_json()),
            json!({ "version": 1, "error": expected })
        );
    }
}
