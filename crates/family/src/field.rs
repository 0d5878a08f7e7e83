//! Descriptions of the fields of problems and configs.
//!
//! An author lists the fields of a problem or a config with [`fields!`](crate::fields),
//! [`config!`](crate::config) and [`keywords!`](crate::keywords): name, help, type, unit, default, legal
//! values. The command line, JSON, the cache key of autotuning, Python and the documentation are
//! derived from that list.
//!
//! ```
//! use warpline_family::field::Fields;
//! use warpline_family::{fields, keywords};
//!
//! keywords! {
//!     /// The memory layout of rows.
//!     #[derive(Default)]
//!     pub enum Layout {
//!         /// Without padding
//!         #[default]
//!         Dense = "dense",
//!         /// With padding after each row
//!         Padded = "padded" | "strided",
//!     }
//! }
//! fields! {
//!     /// A matrix.
//!     pub struct Problem {
//!         /// Rows
//!         pub rows: u32 where multiple_of(3),
//!         /// Bytes of a row
//!         pub pitch: Option<u64> [BYTES] = None,
//!         /// The memory layout of rows
//!         pub layout: Layout = Layout::Dense,
//!     }
//! }
//!
//! let mut problem = Problem { rows: 3, pitch: None, layout: Layout::Dense };
//! problem.set("layout", "strided").unwrap();
//! assert_eq!(problem.layout, Layout::Padded);
//! assert_eq!(problem.json(), serde_json::json!({ "rows": 3, "layout": "padded" }));
//! assert_eq!(Problem::fields()[1].flag(), "--pitch");
//! let error = problem.set("rows", "4").unwrap_err();
//! assert_eq!(error.to_string(), "--rows must be a multiple of 3, not 4");
//! ```

use crate::error::FamilyError;
use serde::Serialize;
use serde_json::{Map, Value};
use std::fmt::{self, Debug};
use std::num::{IntErrorKind, ParseIntError};

/// The description of one field.
#[derive(Clone, Debug, Serialize)]
pub struct Field {
    /// The name in Rust, JSON and Python: `tile_m`.
    pub name: &'static str,
    /// The help text: one sentence without a full stop.
    pub help: String,
    /// The accepted values.
    pub kind: FieldKind,
    /// The default value; `None` if there is none or it depends on other fields.
    pub default: Option<Value>,
    /// The flag that the field requires, if any: `--dtype nvfp4`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requires: Option<String>,
    /// The rule that restricts the values of the type, if any.
    pub rule: Option<FieldRule>,
    #[serde(skip)]
    read: fn(&str) -> Result<Value, String>,
}

impl Field {
    /// Describes a field of type `T`.
    pub fn of<T: FieldValue>(name: &'static str, help: &str, unit: Option<&'static str>) -> Self {
        let mut kind = T::kind();
        if let (FieldKind::Number { unit: default_unit }, Some(unit)) = (&mut kind, unit) {
            *default_unit = unit;
        }
        // A doc comment has a leading space on every line.
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        Self {
            name,
            help: help.trim_end_matches('.').to_owned(),
            kind,
            default: None,
            requires: None,
            rule: None,
            read: |text| T::read(text).map(|value| value.json()),
        }
    }

    /// Rejects a value that the field does not accept. The error describes an accepted value.
    pub fn check(&self, text: &str) -> Result<(), String> {
        match &self.kind {
            FieldKind::Keywords(all) if all.iter().any(|keyword| keyword.matches(text)) => Ok(()),
            FieldKind::Keywords(_) => Err(one_of(&self.kind)),
            _ => {
                let value = (self.read)(text)?;
                self.rule.map_or(Ok(()), |rule| rule.check(&value))
            }
        }
    }

    /// Returns the command-line flag: `--tile-m`.
    pub fn flag(&self) -> String {
        format!("--{}", self.name.replace('_', "-"))
    }
}

/// The kind of values that a field accepts.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FieldKind {
    /// A number or other free text. Help shows its unit: `COUNT`.
    Number {
        /// The unit.
        unit: &'static str,
    },
    /// `true` or `false`.
    Flag,
    /// One of a set of keywords.
    Keywords(Vec<Keyword>),
}

/// A restriction of a numeric field, declared after its type:
/// `pub cols: u32 where multiple_of(4)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FieldRule {
    /// The number must be at least this.
    AtLeast(u64),
    /// The number must be at most this.
    AtMost(u64),
    /// The number must be a multiple of this, which is not 0.
    MultipleOf(u64),
}

impl FieldRule {
    /// Requires at least `n`.
    pub const fn at_least(n: u64) -> Self {
        FieldRule::AtLeast(n)
    }

    /// Requires at most `n`.
    pub const fn at_most(n: u64) -> Self {
        FieldRule::AtMost(n)
    }

    /// Requires a multiple of `n`.
    pub const fn multiple_of(n: u64) -> Self {
        FieldRule::MultipleOf(n)
    }

    /// Rejects a number of a problem that breaks the rule; `what` names the number.
    ///
    /// ```
    /// use warpline_family::field::FieldRule;
    /// let error = FieldRule::at_most(9).check_problem("--rows times --cols", 12).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "--rows times --cols must be a whole number of at most 9, not 12"
    /// );
    /// ```
    pub fn check_problem(self, what: &str, number: u64) -> Result<(), FamilyError> {
        let rejected = |rule| FamilyError::Problem(format!("{what} must be {rule}, not {number}"));
        self.check(&number.into()).map_err(rejected)
    }

    /// Rejects a number that breaks the rule. The error describes a legal value. An unset value is
    /// legal.
    pub fn check(self, value: &Value) -> Result<(), String> {
        let is_legal = value.as_u64().is_none_or(|x| match self {
            FieldRule::AtLeast(n) => x >= n,
            FieldRule::AtMost(n) => x <= n,
            FieldRule::MultipleOf(n) => x.is_multiple_of(n),
        });
        match (is_legal, self) {
            (true, _) => Ok(()),
            (_, FieldRule::MultipleOf(_)) => Err(format!("a {self}")),
            _ => Err(format!("a whole number of {self}")),
        }
    }
}

impl fmt::Display for FieldRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FieldRule::AtLeast(n) => write!(f, "at least {n}"),
            FieldRule::AtMost(n) => write!(f, "at most {n}"),
            FieldRule::MultipleOf(n) => write!(f, "multiple of {n}"),
        }
    }
}

/// A keyword that a field accepts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Keyword {
    /// The keyword.
    pub name: &'static str,
    /// Other spellings.
    pub aliases: &'static [&'static str],
    /// The help text: one sentence.
    pub help: &'static str,
}

impl Keyword {
    /// Returns whether the text is the keyword or an alias.
    pub fn matches(&self, text: &str) -> bool {
        self.name == text || self.aliases.contains(&text)
    }
}

/// Formats the keywords of a kind as a phrase: `nk or kn`.
#[doc(hidden)]
pub fn one_of(kind: &FieldKind) -> String {
    let FieldKind::Keywords(keywords) = kind else {
        return "a value".to_owned();
    };
    let names: Vec<_> = keywords.iter().map(|keyword| keyword.name).collect();
    match &names[..] {
        [] => "a keyword".to_owned(),
        [name] => (*name).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// A type that a field can have.
pub trait FieldValue: Clone + PartialEq + Debug + Send + Sync + 'static {
    /// Returns the kind of the type's values.
    fn kind() -> FieldKind;
    /// Parses a value from text. The error describes an accepted value: `a whole number`.
    fn read(text: &str) -> Result<Self, String>;
    /// Returns the value as JSON; `null` if the field is not set.
    fn json(&self) -> Value;
    /// Returns this value, or `base` if the field is not set.
    fn or(&self, _base: &Self) -> Self {
        self.clone()
    }
}

macro_rules! integers {
    ($($int:ty)*) => {$(
        impl FieldValue for $int {
            fn kind() -> FieldKind {
                FieldKind::Number { unit: "COUNT" }
            }
            fn read(text: &str) -> Result<Self, String> {
                text.parse().map_err(|e: ParseIntError| match e.kind() {
                    IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => {
                        format!("a whole number from {} to {}", <$int>::MIN, <$int>::MAX)
                    }
                    _ if text.parse::<i128>().is_ok() => "a whole number of at least 0".to_owned(),
                    _ => "a whole number".to_owned(),
                })
            }
            fn json(&self) -> Value {
                (*self).into()
            }
        }
    )*};
}
integers!(u32 u64 i64);

macro_rules! numbers {
    ($($float:ty)*) => {$(
        impl FieldValue for $float {
            fn kind() -> FieldKind {
                FieldKind::Number { unit: "NUMBER" }
            }
            fn read(text: &str) -> Result<Self, String> {
                text.parse().map_err(|_| "a number".to_owned())
            }
            fn json(&self) -> Value {
                (*self).into()
            }
        }
    )*};
}
numbers!(f32 f64);

impl FieldValue for bool {
    fn kind() -> FieldKind {
        FieldKind::Flag
    }
    fn read(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "true or false".to_owned())
    }
    fn json(&self) -> Value {
        (*self).into()
    }
}

impl<T: FieldValue> FieldValue for Option<T> {
    fn kind() -> FieldKind {
        T::kind()
    }
    fn read(text: &str) -> Result<Self, String> {
        T::read(text).map(Some)
    }
    fn json(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::json)
    }
    fn or(&self, base: &Self) -> Self {
        self.as_ref().or(base.as_ref()).cloned()
    }
}

/// A struct with described fields; [`fields!`](crate::fields) implements it.
pub trait Fields: Clone + Debug + Send + Sync + 'static {
    /// Describes the fields, in order.
    fn fields() -> Vec<Field>;
    /// Parses a value and sets a field to it.
    fn set(&mut self, name: &str, text: &str) -> Result<(), FieldError>;
    /// Rejects a field whose value breaks its [rule](FieldRule).
    fn check(&self) -> Result<(), FieldError>;
    /// Returns the values by name. Fields that have their declared default or are not set are
    /// omitted.
    fn json(&self) -> Value;
    /// Returns these values, with those of `base` for fields that are not set.
    fn or(&self, base: &Self) -> Self;

    /// Sets every field that a JSON object has.
    fn set_json(&mut self, values: &Value) -> Result<(), FieldError> {
        let values = values.as_object().into_iter().flatten();
        for (name, value) in values.filter(|(_, value)| !value.is_null()) {
            match value {
                Value::String(text) => self.set(name, text)?,
                other => self.set(name, &other.to_string())?,
            }
        }
        Ok(())
    }
}

/// The reason why a field could not be set.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FieldError {
    /// No field has this name.
    #[error("unknown field {0:?}")]
    Unknown(String),
    /// The field does not accept the value.
    #[error("{flag} must be {expected}, not {value}")]
    Value {
        /// The command-line flag of the field.
        flag: String,
        /// The rejected text.
        value: String,
        /// A description of an accepted value.
        expected: String,
    },
}

impl FieldError {
    /// Returns the error for a value that the field does not accept.
    pub fn value(name: &str, value: &str, expected: String) -> Self {
        FieldError::Value {
            flag: format!("--{}", name.replace('_', "-")),
            value: value.to_owned(),
            expected,
        }
    }
}

/// A struct without fields, for families without options.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NoFields;

impl Fields for NoFields {
    fn fields() -> Vec<Field> {
        Vec::new()
    }
    fn set(&mut self, name: &str, _: &str) -> Result<(), FieldError> {
        Err(FieldError::Unknown(name.to_owned()))
    }
    fn check(&self) -> Result<(), FieldError> {
        Ok(())
    }
    fn json(&self) -> Value {
        Value::Object(Map::new())
    }
    fn or(&self, _: &Self) -> Self {
        *self
    }
}

/// Concatenates the lines of a doc comment and skips other attributes.
#[doc(hidden)]
#[macro_export]
macro_rules! __doc {
    () => { "" };
    ([doc = $line:literal] $($rest:tt)*) => { concat!($line, $crate::__doc!($($rest)*)) };
    ([$($other:tt)*] $($rest:tt)*) => { $crate::__doc!($($rest)*) };
}

/// Returns whether a field is `#[doc(hidden)]`.
#[doc(hidden)]
#[macro_export]
macro_rules! __is_hidden {
    () => { false };
    ([doc(hidden)] $($rest:tt)*) => { true };
    ([$($other:tt)*] $($rest:tt)*) => { $crate::__is_hidden!($($rest)*) };
}

/// Returns the declared unit of a field, if any.
#[doc(hidden)]
#[macro_export]
macro_rules! __unit {
    () => {
        None
    };
    ($unit:ident) => {
        Some(stringify!($unit))
    };
}

/// Declares a struct with described fields: see [`field`](crate::field).
///
/// Each field has a doc comment, which is its help text, and a type. A unit in brackets, a
/// [rule](crate::field::FieldRule) and a default are optional. JSON omits a field that has its
/// default. Tools do not offer a field that is `#[doc(hidden)]`, but JSON contains it.
#[macro_export]
macro_rules! fields {
    (
        $(#[$($attr:tt)*])*
        $vis:vis struct $name:ident {
            $(
                $(#[$($meta:tt)*])*
                $field_vis:vis $field:ident : $ty:ty $([$unit:ident])?
                    $(where $rule:ident($number:expr))? $(= $default:expr)?
            ),* $(,)?
        }
    ) => {
        $(#[$($attr)*])*
        #[derive(Clone, PartialEq, Debug)]
        $vis struct $name {
            $( $(#[$($meta)*])* $field_vis $field: $ty, )*
        }

        impl $crate::field::Fields for $name {
            fn fields() -> Vec<$crate::field::Field> {
                let all = [$((!$crate::__is_hidden!($([$($meta)*])*)).then(|| {
                    #[allow(unused_mut, reason = "only a field with a default or a rule has one to set")]
                    let mut field = $crate::field::Field::of::<$ty>(
                        stringify!($field),
                        $crate::__doc!($([$($meta)*])*),
                        $crate::__unit!($($unit)?),
                    );
                    $(
                        let default: $ty = $default;
                        let default = $crate::field::FieldValue::json(&default);
                        field.default = Some(default).filter(|value| !value.is_null());
                    )?
                    $(field.rule = Some($crate::field::FieldRule::$rule($number));)?
                    field
                })),*];
                all.into_iter().flatten().collect()
            }
            fn set(&mut self, name: &str, text: &str) -> Result<(), $crate::field::FieldError> {
                match name {
                    $(stringify!($field) => {
                        let rejected = |e| $crate::field::FieldError::value(name, text, e);
                        let value: $ty = $crate::field::FieldValue::read(text).map_err(rejected)?;
                        $(
                            let json = $crate::field::FieldValue::json(&value);
                            $crate::field::FieldRule::$rule($number).check(&json).map_err(rejected)?;
                        )?
                        self.$field = value;
                        Ok(())
                    })*
                    _ => Err($crate::field::FieldError::Unknown(name.to_owned())),
                }
            }
            fn check(&self) -> Result<(), $crate::field::FieldError> {
                $($(
                    let value = $crate::field::FieldValue::json(&self.$field);
                    let legal = $crate::field::FieldRule::$rule($number).check(&value);
                    legal.map_err(|e| {
                        $crate::field::FieldError::value(stringify!($field), &value.to_string(), e)
                    })?;
                )?)*
                Ok(())
            }
            fn json(&self) -> $crate::serde_json::Value {
                let mut map = $crate::serde_json::Map::new();
                $(
                    let value = $crate::field::FieldValue::json(&self.$field);
                    #[allow(unused_mut, unused_assignments, reason = "only a field with a default may be omitted")]
                    let mut is_default = false;
                    $(
                        let default: $ty = $default;
                        is_default = self.$field == default;
                    )?
                    if !value.is_null() && !is_default {
                        map.insert(stringify!($field).to_owned(), value);
                    }
                )*
                $crate::serde_json::Value::Object(map)
            }
            fn or(&self, base: &Self) -> Self {
                Self {
                    $($field: $crate::field::FieldValue::or(&self.$field, &base.$field),)*
                }
            }
        }
    };
}

/// Declares a complete config and its choice: a struct with the same fields, all optional.
#[macro_export]
macro_rules! config {
    (
        $(#[$($attr:tt)*])*
        $vis:vis struct $config:ident {
            $(
                $(#[$($meta:tt)*])*
                $field_vis:vis $field:ident : $ty:ty $([$unit:ident])?
                    $(where $rule:ident($number:expr))?
            ),* $(,)?
        }
        $(#[$($choice_attr:tt)*])*
        $choice_vis:vis struct $choice:ident;
    ) => {
        $(#[$($attr)*])*
        #[derive(Clone, PartialEq, Debug)]
        $vis struct $config {
            $( $(#[$($meta)*])* $field_vis $field: $ty, )*
        }
        $crate::fields! {
            $(#[$($choice_attr)*])*
            #[derive(Default)]
            $choice_vis struct $choice {
                $(
                    $(#[$($meta)*])*
                    $field_vis $field: Option<$ty> $([$unit])? $(where $rule($number))?
                ),*
            }
        }
        impl From<&$config> for $choice {
            fn from(config: &$config) -> Self {
                Self { $( $field: Some(config.$field.clone()), )* }
            }
        }
    };
}

/// Declares an enum whose variants are keywords: see [`field`](crate::field). Tools do not offer a
/// variant that is `#[doc(hidden)]`.
#[macro_export]
macro_rules! keywords {
    (
        $(#[$($attr:tt)*])*
        $vis:vis enum $name:ident {
            $(
                $(#[$($meta:tt)*])*
                $variant:ident = $word:literal $(| $alias:literal)*
            ),* $(,)?
        }
    ) => {
        $(#[$($attr)*])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        $vis enum $name {
            $( $(#[$($meta)*])* $variant, )*
        }

        #[allow(dead_code, reason = "not every enum uses both")]
        impl $name {
            /// All variants, in order.
            $vis const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Returns the keyword of the variant.
            $vis const fn keyword(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }

        impl $crate::field::FieldValue for $name {
            fn kind() -> $crate::field::FieldKind {
                let all = [$((!$crate::__is_hidden!($([$($meta)*])*)).then_some(
                    $crate::field::Keyword {
                        name: $word,
                        aliases: &[$($alias),*],
                        help: $crate::__doc!($([$($meta)*])*).trim_ascii(),
                    },
                )),*];
                $crate::field::FieldKind::Keywords(all.into_iter().flatten().collect())
            }
            fn read(text: &str) -> Result<Self, String> {
                match text {
                    $($word $(| $alias)* => Ok(Self::$variant),)*
                    _ => Err($crate::field::one_of(&Self::kind())),
                }
            }
            fn json(&self) -> $crate::serde_json::Value {
                self.keyword().into()
            }
        }

        impl $crate::serde::Serialize for $name {
            fn serialize<S: $crate::serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.serialize_str(self.keyword())
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    keywords! {
        #[derive(Default)]
        enum Color {
            /// Like
            /// a tomato
            #[default]
            Red = "red",
            /// Like the sky
            Blue = "blue" | "azure",
        }
    }

    config! {
        /// A complete config.
        struct Config {
            /// Stages of the ring
            stages: u32 where at_least(1),
            /// Bytes of a tile.
            tile: u32 [BYTES],
            color: Color,
        }
        /// The fields that the caller fixes.
        struct Choice;
    }

    #[test]
    fn a_field_is_described_by_its_declaration() {
        let [stages, tile, color] = &Choice::fields()[..] else {
            panic!("three fields");
        };
        assert_eq!(
            (stages.name, &*stages.help),
            ("stages", "Stages of the ring")
        );
        assert_eq!(stages.kind, FieldKind::Number { unit: "COUNT" });
        assert_eq!(
            (&*tile.help, &tile.kind),
            ("Bytes of a tile", &FieldKind::Number { unit: "BYTES" })
        );
        let FieldKind::Keywords(keywords) = &color.kind else {
            panic!("keywords");
        };
        assert_eq!(keywords[0].name, "red");
        assert_eq!(keywords[0].help, "Like a tomato");
        assert_eq!(keywords[1].aliases, ["azure"]);
    }

    #[test]
    fn values_round_trip_through_json() {
        let mut choice = Choice::default();
        assert_eq!(choice.json(), serde_json::json!({}));
        choice.set("stages", "3").unwrap();
        choice.set("color", "azure").unwrap();
        assert_eq!(
            choice.json(),
            serde_json::json!({ "stages": 3, "color": "blue" })
        );
        let mut again = Choice::default();
        again.set_json(&choice.json()).unwrap();
        assert_eq!(again, choice);
        let config = Config {
            stages: 3,
            tile: 16,
            color: Color::Red,
        };
        assert_eq!(
            Choice::from(&config).json(),
            serde_json::json!({ "stages": 3, "tile": 16, "color": "red" })
        );
    }

    #[test]
    fn a_rule_is_checked_for_values_set_in_code() {
        let mut choice = Choice::default();
        assert_eq!(choice.check(), Ok(()));
        choice.stages = Some(0);
        let error = choice.check().unwrap_err().to_string();
        assert_eq!(
            error,
            "--stages must be a whole number of at least 1, not 0"
        );
        let [stages, ..] = &Choice::fields()[..] else {
            panic!("three fields");
        };
        assert_eq!(stages.rule, Some(FieldRule::AtLeast(1)));
        let legal = |rule: FieldRule, x: u32| rule.check(&x.into()).is_ok();
        assert!(legal(FieldRule::at_most(4), 4) && !legal(FieldRule::at_most(4), 5));
        assert!(legal(FieldRule::multiple_of(4), 8) && !legal(FieldRule::multiple_of(4), 6));
    }

    #[test]
    fn a_rejected_value_is_reported_with_its_flag() {
        let mut choice = Choice::default();
        let mut error = |name, text| choice.set(name, text).unwrap_err().to_string();
        assert_eq!(
            error("stages", "4294967296"),
            "--stages must be a whole number from 0 to 4294967295, not 4294967296"
        );
        assert_eq!(
            error("stages", "0"),
            "--stages must be a whole number of at least 1, not 0"
        );
        assert_eq!(error("tile", "x"), "--tile must be a whole number, not x");
        assert_eq!(
            error("tile", "-1"),
            "--tile must be a whole number of at least 0, not -1"
        );
        assert_eq!(
            error("color", "green"),
            "--color must be red or blue, not green"
        );
        assert_eq!(error("size", "1"), "unknown field \"size\"");
    }
}
