//! What a command gives: text for people, one JSON object for programs.

use crate::errors::Failure;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The version of the JSON objects. It changes when a field goes or changes its meaning.
pub(crate) const JSON_VERSION: u32 = 1;

/// What a command gives.
#[derive(Debug)]
pub(crate) struct Answer {
    /// For people; ends with a line feed.
    pub(crate) text: String,
    /// The command's name and fields; none where the text is the answer.
    fields: Option<Map<String, Value>>,
    /// Set where there is an answer and it is a bad one.
    pub(crate) failure: Option<Failure>,
}

impl Answer {
    /// The answer of a command.
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

    /// Text that has no JSON form: help, completions.
    pub(crate) fn words(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            fields: None,
            failure: None,
        }
    }

    /// Adds a field.
    pub(crate) fn field(mut self, name: &str, value: impl Serialize) -> Self {
        if let Some(fields) = &mut self.fields {
            fields.insert(name.into(), to_value(value));
        }
        self
    }

    /// Adds the fields of a struct.
    pub(crate) fn fields(mut self, value: impl Serialize) -> Self {
        if let (Some(fields), Value::Object(more)) = (&mut self.fields, to_value(value)) {
            fields.extend(more);
        }
        self
    }

    /// Makes it a bad answer.
    pub(crate) fn failing(mut self, failure: Option<Failure>) -> Self {
        self.failure = failure;
        self
    }

    /// The JSON object, or the text where there is none.
    pub(crate) fn to_json(&self) -> String {
        match &self.fields {
            Some(fields) => line(fields),
            None => self.text.clone(),
        }
    }
}

impl Failure {
    /// The failure as a JSON object.
    pub(crate) fn to_json(&self) -> String {
        line(&json!({
            "version": JSON_VERSION,
            "error": { "code": self.code, "message": self.message },
        }))
    }
}

/// Plain structs of numbers and names always have a JSON form.
fn to_value(value: impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}

fn line(value: &impl Serialize) -> String {
    format!("{:#}\n", to_value(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn an_answer_is_one_versioned_object_with_its_fields_in_order() {
        let answer = Answer::new("run", "text")
            .field("passed", true)
            .fields(json!({ "ratio": f64::INFINITY, "name": "quote \" and line\n" }));
        let text = answer.to_json();
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
    fn a_failure_is_a_versioned_object_too() {
        let failure = Failure::input("bad-value", "--n is \"x\"");
        let expected = json!({ "code": "bad-value", "message": "--n is \"x\"" });
        assert_eq!(
            parsed(&failure.to_json()),
            json!({ "version": 1, "error": expected })
        );
    }
}
