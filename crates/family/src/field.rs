//! Fields of problems and configs, described once.
//!
//! An author lists the fields of a problem or a config with [`fields!`](crate::fields),
//! [`config!`](crate::config) and [`words!`](crate::words): name, help, type, unit, default, legal
//! values. The command line, JSON, the cache key of the tuner, Python and the documentation read
//! that list.
//!
//! ```
//! use warpline_family::field::Fields;
//! use warpline_family::{fields, words};
//!
//! words! {
//!     /// How rows follow each other in memory.
//!     #[derive(Default)]
//!     pub enum Layout {
//!         /// Without gaps
//!         #[default]
//!         Dense = "dense",
//!         /// With a gap behind each row
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
//!         /// How rows follow each other
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
//! assert_eq!(error.to_string(), "--rows is a multiple of 3, not 4");
//! ```

use crate::error::FamilyError;
use serde::Serialize;
use serde_json::{Map, Value};
use std::fmt::{self, Debug};
use std::num::{IntErrorKind, ParseIntError};

/// One field, as tools see it.
#[derive(Clone, Debug, Serialize)]
pub struct Field {
    /// The name in Rust, JSON and Python: `tile_m`.
    pub name: &'static str,
    /// One sentence, without a full stop.
    pub help: String,
    /// The values that it takes.
    pub kind: Kind,
    /// Its value unless a caller says otherwise; none if there is no such value, or if it depends
    /// on other fields.
    pub default: Option<Value>,
    /// The flag that a caller must give beside it, if there is one: `--dtype nvfp4`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requires: Option<String>,
    /// The values that are legal, where not all of the type are.
    pub rule: Option<Rule>,
    #[serde(skip)]
    read: fn(&str) -> Result<Value, String>,
}

impl Field {
    /// Describes a field of type `T`.
    pub fn of<T: FieldValue>(name: &'static str, help: &str, unit: Option<&'static str>) -> Self {
        let mut kind = T::kind();
        if let (Kind::Number { unit: usual }, Some(unit)) = (&mut kind, unit) {
            *usual = unit;
        }
        // Doc comments start with a space, and continue on the next line with one.
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

    /// Rejects a value that the field does not take; the error says what a value is.
    pub fn check(&self, text: &str) -> Result<(), String> {
        match &self.kind {
            Kind::Words(words) if words.iter().any(|word| word.is(text)) => Ok(()),
            Kind::Words(_) => Err(one_of(&self.kind)),
            _ => {
                let value = (self.read)(text)?;
                self.rule.map_or(Ok(()), |rule| rule.check(&value))
            }
        }
    }

    /// The name on the command line: `--tile-m`.
    pub fn flag(&self) -> String {
        format!("--{}", self.name.replace('_', "-"))
    }
}

/// The values that a field takes.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A number or another text, whose unit stands for it in help: `COUNT`.
    Number {
        /// The unit.
        unit: &'static str,
    },
    /// `true` or `false`.
    Flag,
    /// One of some words.
    Words(Vec<Word>),
}

/// Which numbers a field takes, declared behind its type: `pub cols: u32 where multiple_of(4)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// No number below this one.
    AtLeast(u64),
    /// No number above this one.
    AtMost(u64),
    /// Multiples of a number that is not 0.
    MultipleOf(u64),
}

impl Rule {
    /// Allows no number below `n`.
    pub const fn at_least(n: u64) -> Self {
        Rule::AtLeast(n)
    }

    /// Allows no number above `n`.
    pub const fn at_most(n: u64) -> Self {
        Rule::AtMost(n)
    }

    /// Allows multiples of `n`.
    pub const fn multiple_of(n: u64) -> Self {
        Rule::MultipleOf(n)
    }

    /// Rejects a number of a problem that is not legal; `what` names the number.
    ///
    /// ```
    /// use warpline_family::field::Rule;
    /// let error = Rule::at_most(9).check_problem("--rows times --cols", 12).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "--rows times --cols is a whole number of at most 9, not 12"
    /// );
    /// ```
    pub fn check_problem(self, what: &str, number: u64) -> Result<(), FamilyError> {
        let rejected = |rule| FamilyError::Problem(format!("{what} is {rule}, not {number}"));
        self.check(&number.into()).map_err(rejected)
    }

    /// Rejects a number that is not legal; the error says what a value is. A value that is not
    /// given is legal.
    pub fn check(self, value: &Value) -> Result<(), String> {
        let is_legal = value.as_u64().is_none_or(|x| match self {
            Rule::AtLeast(n) => x >= n,
            Rule::AtMost(n) => x <= n,
            Rule::MultipleOf(n) => x.is_multiple_of(n),
        });
        match (is_legal, self) {
            (true, _) => Ok(()),
            (_, Rule::MultipleOf(_)) => Err(format!("a {self}")),
            _ => Err(format!("a whole number of {self}")),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rule::AtLeast(n) => write!(f, "at least {n}"),
            Rule::AtMost(n) => write!(f, "at most {n}"),
            Rule::MultipleOf(n) => write!(f, "multiple of {n}"),
        }
    }
}

/// A word that a field takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Word {
    /// The word.
    pub name: &'static str,
    /// Other spellings.
    pub aliases: &'static [&'static str],
    /// What it means, in one sentence.
    pub help: &'static str,
}

impl Word {
    /// Is it spelled so?
    pub fn is(&self, text: &str) -> bool {
        self.name == text || self.aliases.contains(&text)
    }
}

/// The words of a kind as one phrase: `nk or kn`.
#[doc(hidden)]
pub fn one_of(kind: &Kind) -> String {
    let Kind::Words(words) = kind else {
        return "a value".to_owned();
    };
    let words: Vec<_> = words.iter().map(|word| word.name).collect();
    match &words[..] {
        [] => "a word".to_owned(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// A type that fields have.
pub trait FieldValue: Clone + PartialEq + Debug + Send + Sync + 'static {
    /// The values of the type.
    fn kind() -> Kind;
    /// Reads a value as a person writes it; an error says what a value is: `a whole number`.
    fn read(text: &str) -> Result<Self, String>;
    /// The value as JSON; `null` says that a field is not given.
    fn json(&self) -> Value;
    /// Returns this value, or `base` if the field is not given.
    fn or(&self, _base: &Self) -> Self {
        self.clone()
    }
}

macro_rules! integers {
    ($($int:ty)*) => {$(
        impl FieldValue for $int {
            fn kind() -> Kind {
                Kind::Number { unit: "COUNT" }
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
            fn kind() -> Kind {
                Kind::Number { unit: "NUMBER" }
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
    fn kind() -> Kind {
        Kind::Flag
    }
    fn read(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "true or false".to_owned())
    }
    fn json(&self) -> Value {
        (*self).into()
    }
}

impl<T: FieldValue> FieldValue for Option<T> {
    fn kind() -> Kind {
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

/// A struct whose fields are described.
pub trait Fields: Clone + Debug + Send + Sync + 'static {
    /// Describes the fields, in order.
    fn fields() -> Vec<Field>;
    /// Reads a value into a field, as a person writes it.
    fn set(&mut self, name: &str, text: &str) -> Result<(), FieldError>;
    /// Rejects a field whose value its [rule](Rule) excludes.
    fn check(&self) -> Result<(), FieldError>;
    /// The values by name. Fields that have their declared default are left out, and so are
    /// fields that are not given.
    fn json(&self) -> Value;
    /// Returns these values, and those of `base` for fields that are not given.
    fn or(&self, base: &Self) -> Self;

    /// Reads all that a JSON object has.
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

/// Why a value was not read into a field.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FieldError {
    /// There is no field of that name.
    #[error("there is no field {0:?}")]
    Unknown(String),
    /// The field does not take that value.
    #[error("{flag} is {expected}, not {value}")]
    Value {
        /// The field, as the command line names it.
        flag: String,
        /// The value as it was written.
        value: String,
        /// What a value of the field is.
        expected: String,
    },
}

impl FieldError {
    /// The field does not take the value.
    pub fn value(name: &str, value: &str, expected: String) -> Self {
        FieldError::Value {
            flag: format!("--{}", name.replace('_', "-")),
            value: value.to_owned(),
            expected,
        }
    }
}

/// A struct without fields, for families without options of their own.
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

/// Joins the lines of a doc comment, and skips other attributes.
#[doc(hidden)]
#[macro_export]
macro_rules! __doc {
    () => { "" };
    ([doc = $line:literal] $($rest:tt)*) => { concat!($line, $crate::__doc!($($rest)*)) };
    ([$($other:tt)*] $($rest:tt)*) => { $crate::__doc!($($rest)*) };
}

/// Is a field `#[doc(hidden)]`?
#[doc(hidden)]
#[macro_export]
macro_rules! __is_hidden {
    () => { false };
    ([doc(hidden)] $($rest:tt)*) => { true };
    ([$($other:tt)*] $($rest:tt)*) => { $crate::__is_hidden!($($rest)*) };
}

/// The unit of a field, if one is declared.
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

/// Declares a struct whose fields are described: see [`field`](crate::field).
///
/// Each field has a doc comment, which is its help; a type; and, if there are such, a unit in
/// brackets, a [rule](crate::field::Rule) and a default. A field that has its default is left out of JSON. A field that is
/// `#[doc(hidden)]` is written to JSON and read from it, and no tool offers it.
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
                    $(field.rule = Some($crate::field::Rule::$rule($number));)?
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
                            $crate::field::Rule::$rule($number).check(&json).map_err(rejected)?;
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
                    let legal = $crate::field::Rule::$rule($number).check(&value);
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
                    #[allow(unused_mut, unused_assignments, reason = "only a field with a default may be left out")]
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

/// Declares a complete config, and beside it the choice: the same fields, each of which a caller
/// may fix or leave open.
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

/// Declares an enum whose variants are words: see [`field`](crate::field). No tool offers a
/// variant that is `#[doc(hidden)]`.
#[macro_export]
macro_rules! words {
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

        #[allow(dead_code, reason = "not every enum needs both")]
        impl $name {
            /// Every one, in order.
            $vis const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The word for it.
            $vis const fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }

        impl $crate::field::FieldValue for $name {
            fn kind() -> $crate::field::Kind {
                let all = [$((!$crate::__is_hidden!($([$($meta)*])*)).then_some(
                    $crate::field::Word {
                        name: $word,
                        aliases: &[$($alias),*],
                        help: $crate::__doc!($([$($meta)*])*).trim_ascii(),
                    },
                )),*];
                $crate::field::Kind::Words(all.into_iter().flatten().collect())
            }
            fn read(text: &str) -> Result<Self, String> {
                match text {
                    $($word $(| $alias)* => Ok(Self::$variant),)*
                    _ => Err($crate::field::one_of(&Self::kind())),
                }
            }
            fn json(&self) -> $crate::serde_json::Value {
                self.word().into()
            }
        }

        impl $crate::serde::Serialize for $name {
            fn serialize<S: $crate::serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.serialize_str(self.word())
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    words! {
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
        /// What a caller fixes.
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
        assert_eq!(stages.kind, Kind::Number { unit: "COUNT" });
        assert_eq!(
            (&*tile.help, &tile.kind),
            ("Bytes of a tile", &Kind::Number { unit: "BYTES" })
        );
        let Kind::Words(words) = &color.kind else {
            panic!("words");
        };
        assert_eq!(words[0].name, "red");
        assert_eq!(words[0].help, "Like a tomato");
        assert_eq!(words[1].aliases, ["azure"]);
    }

    #[test]
    fn values_are_read_and_written() {
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
    fn a_rule_holds_for_values_that_no_caller_wrote() {
        let mut choice = Choice::default();
        assert_eq!(choice.check(), Ok(()));
        choice.stages = Some(0);
        let error = choice.check().unwrap_err().to_string();
        assert_eq!(error, "--stages is a whole number of at least 1, not 0");
        let [stages, ..] = &Choice::fields()[..] else {
            panic!("three fields");
        };
        assert_eq!(stages.rule, Some(Rule::AtLeast(1)));
        let legal = |rule: Rule, x: u32| rule.check(&x.into()).is_ok();
        assert!(legal(Rule::at_most(4), 4) && !legal(Rule::at_most(4), 5));
        assert!(legal(Rule::multiple_of(4), 8) && !legal(Rule::multiple_of(4), 6));
    }

    #[test]
    fn a_value_that_a_field_does_not_take_is_rejected_by_name() {
        let mut choice = Choice::default();
        let mut said = |name, text| choice.set(name, text).unwrap_err().to_string();
        assert_eq!(
            said("stages", "4294967296"),
            "--stages is a whole number from 0 to 4294967295, not 4294967296"
        );
        assert_eq!(
            said("stages", "0"),
            "--stages is a whole number of at least 1, not 0"
        );
        assert_eq!(said("tile", "x"), "--tile is a whole number, not x");
        assert_eq!(
            said("tile", "-1"),
            "--tile is a whole number of at least 0, not -1"
        );
        assert_eq!(said("color", "green"), "--color is red or blue, not green");
        assert_eq!(said("size", "1"), "there is no field \"size\"");
    }
}
