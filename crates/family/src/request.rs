//! Requests: field values that the caller sets.

use crate::error::FamilyError;
use crate::family::{DeviceKind, Family};
use crate::field::{Field, FieldError, Fields};
use std::collections::BTreeMap;

/// The fields of a family's problem and config.
#[derive(Clone, Debug)]
pub struct FamilyFields {
    /// Fields of the problem, with the default problem's values as defaults.
    pub problem: Vec<Field>,
    /// Fields of the config; a caller may fix any of them.
    pub config: Vec<Field>,
}

impl FamilyFields {
    /// Describes a family's fields, with the defaults for a device kind.
    pub(crate) fn of<F: Family>(device: DeviceKind) -> Self {
        let default = F::default_problem(device).json();
        let with_default = |mut field: Field| {
            if let Some(value) = default.get(field.name) {
                field.default = Some(value.clone());
            }
            field
        };
        Self {
            problem: F::Problem::fields().into_iter().map(with_default).collect(),
            config: F::Choice::fields(),
        }
    }

    /// Returns the field with this name.
    pub fn get(&self, name: &str) -> Option<&Field> {
        self.iter().find(|field| field.name == name)
    }

    /// Iterates over all fields, problem first.
    pub fn iter(&self) -> impl Iterator<Item = &Field> {
        self.problem.iter().chain(&self.config)
    }
}

/// Field values that the caller sets, as text. A field that is not set keeps its default.
///
/// ```
/// use warpline_family::Request;
/// let request = Request::from_flags(["--m=64", "--tile-m", "128", "--bias"]).unwrap();
/// assert_eq!(request.get("tile_m"), Some("128"));
/// assert_eq!(request.get("bias"), Some("true"));
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Request {
    values: BTreeMap<String, String>,
}

impl Request {
    /// Sets a field.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.values.insert(name.to_owned(), value.to_string());
        self
    }

    /// Returns the value of a field, if it is set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// Iterates over the names of the fields that are set.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(String::as_str)
    }

    /// Returns the request without one field.
    #[must_use]
    pub(crate) fn without(&self, name: &str) -> Self {
        let mut request = self.clone();
        request.values.remove(name);
        request
    }

    /// Returns the command-line flags of the fields: `--m 64 --tile-m 128`.
    ///
    /// ```
    /// use warpline_family::Request;
    /// let request = Request::default().with("tile_m", 128).with("bias", true);
    /// assert_eq!(request.flags(), "--bias true --tile-m 128");
    /// ```
    pub fn flags(&self) -> String {
        let flags = self.values.iter();
        let flags = flags.map(|(name, value)| format!("--{} {value}", name.replace('_', "-")));
        flags.collect::<Vec<_>>().join(" ")
    }

    /// Returns whether no field is set.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Parses command-line flags: `--tile-m=128`, `--tile-m 128`, `--bias`.
    pub fn from_flags<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self, FamilyError> {
        let mut request = Self::default();
        let mut words = words.into_iter().peekable();
        while let Some(word) = words.next() {
            let Some(flag) = word.strip_prefix("--") else {
                return Err(FamilyError::Problem(format!(
                    "{word:?} is not a flag\nhelp: write --NAME=VALUE"
                )));
            };
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name, value),
                None => (
                    flag,
                    words.next_if(|w| !w.starts_with("--")).unwrap_or("true"),
                ),
            };
            request = request.with(&name.replace('-', "_"), value);
        }
        Ok(request)
    }

    /// Parses the request into the problem and the choice of a family.
    pub(crate) fn read<F: Family>(
        &self,
        device: DeviceKind,
    ) -> Result<(F::Problem, F::Choice), FamilyError> {
        let (mut problem, mut choice) = (F::default_problem(device), F::Choice::default());
        for (name, value) in &self.values {
            let read = match problem.set(name, value) {
                Err(FieldError::Unknown(_)) => choice.set(name, value),
                Err(error) => return Err(FamilyError::Problem(error.to_string())),
                Ok(()) => Ok(()),
            };
            read.map_err(|e| match e {
                FieldError::Unknown(_) => {
                    let fields = FamilyFields::of::<F>(device);
                    let names: Vec<_> = fields.iter().map(|field| field.name).collect();
                    FamilyError::Problem(format!(
                        "{} has no field {name:?}\nhelp: its fields are {}",
                        F::NAME,
                        names.join(", ")
                    ))
                }
                error => FamilyError::Config(error.to_string()),
            })?;
        }
        Ok((problem, choice))
    }
}
