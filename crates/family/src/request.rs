//! What a caller asks of a family, field by field.

use crate::error::FamilyError;
use crate::family::{Family, Place};
use crate::field::{Field, FieldError, Fields};
use std::collections::BTreeMap;

/// The fields of a family: those of its problem, and those of its config.
#[derive(Clone, Debug)]
pub struct FamilyFields {
    /// Fields of the problem; their defaults are those of the default problem.
    pub problem: Vec<Field>,
    /// Fields of the config, each of which a caller may fix.
    pub config: Vec<Field>,
}

impl FamilyFields {
    /// Describes a family's fields, with the default problem of a place.
    pub(crate) fn of<F: Family>(place: Place) -> Self {
        let default = F::default_problem(place).json();
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

    /// Describes the field of that name, if there is one.
    pub fn get(&self, name: &str) -> Option<&Field> {
        self.iter().find(|field| field.name == name)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Field> {
        self.problem.iter().chain(&self.config)
    }
}

/// What a caller asks of a family: values of fields, as a person writes them. A field that is not
/// given keeps its default.
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
    /// Asks for a value of a field.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.values.insert(name.to_owned(), value.to_string());
        self
    }

    /// The value of a field, if it is given.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// The names of the fields that are given.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(String::as_str)
    }

    /// The same without a field.
    #[must_use]
    pub(crate) fn without(&self, name: &str) -> Self {
        let mut request = self.clone();
        request.values.remove(name);
        request
    }

    /// Reads flags as the command line has them: `--tile-m=128`, `--tile-m 128`, `--bias`.
    pub fn from_flags<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self, FamilyError> {
        let mut request = Self::default();
        let mut words = words.into_iter().peekable();
        while let Some(word) = words.next() {
            let Some(flag) = word.strip_prefix("--") else {
                return Err(FamilyError::Problem(format!(
                    "{word:?} is no flag\nhelp: write --NAME=VALUE"
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

    /// The problem and the choice that it asks of a family.
    pub(crate) fn read<F: Family>(
        &self,
        place: Place,
    ) -> Result<(F::Problem, F::Choice), FamilyError> {
        let (mut problem, mut choice) = (F::default_problem(place), F::Choice::default());
        for (name, value) in &self.values {
            let read = match problem.set(name, value) {
                Err(FieldError::Unknown(_)) => choice.set(name, value),
                Err(wrong) => return Err(FamilyError::Problem(wrong.to_string())),
                Ok(()) => Ok(()),
            };
            read.map_err(|e| match e {
                FieldError::Unknown(_) => {
                    let fields = FamilyFields::of::<F>(place);
                    let names: Vec<_> = fields.iter().map(|field| field.name).collect();
                    FamilyError::Problem(format!(
                        "{} has no field {name:?}\nhelp: its fields are {}",
                        F::NAME,
                        names.join(", ")
                    ))
                }
                wrong => FamilyError::Config(wrong.to_string()),
            })?;
        }
        Ok((problem, choice))
    }
}
