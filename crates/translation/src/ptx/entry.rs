//! The head of the entry: launch bounds, clusters, shared memory, parameters.

use super::Said;
use super::module::{Line, Module};
use super::registers::number;
use crate::act::{Act, Kind};
use crate::value::Value;

/// The acts of a module's head.
pub(super) fn acts<'a>(module: &Module<'a>) -> Vec<Said<'a>> {
    let none = Line {
        number: 1,
        text: "",
    };
    let (entry, name) = module.entry.unwrap_or((none, ""));
    let threads = directive(module, "maxntid");
    let resident = directive(module, "minnctapersm");
    let cluster = directive(module, "reqnctapercluster");
    let explicit = directive(module, "explicitcluster");
    let explicit = explicit.map_or((entry, Value::yes(false)), |(l, _)| (l, Value::yes(true)));
    let missing = (entry, Value::Nothing);
    let facts = [
        ("name", (entry, Value::Name(name))),
        ("threads", threads.unwrap_or(missing.clone())),
        ("CTAs of an SM", resident.unwrap_or(missing.clone())),
        ("cluster", cluster.unwrap_or(missing.clone())),
        ("launched with its cluster", explicit),
        (
            "alignment of shared memory",
            alignment(module).unwrap_or(missing),
        ),
    ];
    let facts = facts.into_iter().map(|(name, (line, value))| Said {
        act: Act::new(Kind::Entry).with(name, value),
        line,
    });
    let params = module.params.iter().map(|&(line, param)| Said {
        act: parameter(param),
        line,
    });
    facts.chain(params).collect()
}

/// A directive's line and numbers.
fn directive<'a>(module: &Module<'a>, name: &str) -> Option<(Line<'a>, Value<'a>)> {
    let mut all = module.directives.iter();
    let (line, numbers) = all.find_map(|(line, d)| {
        let rest = d.strip_prefix(name)?;
        let whole = rest.is_empty() || rest.starts_with(char::is_whitespace);
        whole.then_some((*line, rest))
    })?;
    let numbers = numbers.split(',').filter_map(|n| number(n.trim()));
    Some((line, Value::List(numbers.map(Value::Number).collect())))
}

/// The declaration of the shared memory of a CTA: its line and words.
fn memory<'a>(module: &Module<'a>) -> Option<(Line<'a>, Vec<&'a str>)> {
    let mut all = module.directives.iter();
    all.find_map(|(line, d)| {
        let words: Vec<_> = d.split_whitespace().collect();
        words
            .starts_with(&["extern", ".shared"])
            .then_some((*line, words))
    })
}

/// The name of the shared memory of a CTA.
pub(super) fn shared<'a>(module: &Module<'a>) -> Option<&'a str> {
    let (_, words) = memory(module)?;
    words.last().map(|name| name.trim_end_matches("[]"))
}

fn alignment<'a>(module: &Module<'a>) -> Option<(Line<'a>, Value<'a>)> {
    let (line, words) = memory(module)?;
    let align = after(&words, ".align").map_or(Value::Nothing, Value::Number);
    Some((line, align))
}

/// The number behind a word.
fn after(words: &[&str], word: &str) -> Option<u64> {
    let at = words.iter().position(|w| *w == word)?;
    number(words.get(at + 1)?)
}

/// The name of a parameter, without its length.
pub(super) fn parameter_name(declaration: &str) -> &str {
    let name = declaration.split_whitespace().last().unwrap_or_default();
    name.split('[').next().unwrap_or_default()
}

fn parameter(declaration: &str) -> Act<'_> {
    let words: Vec<_> = declaration.split_whitespace().collect();
    let element = words.iter().find_map(|w| bytes(w)).unwrap_or(0);
    let length = words
        .last()
        .and_then(|name| name.split_once('['))
        .and_then(|(_, n)| number(n.trim_end_matches(']')))
        .unwrap_or(1);
    let pointer = words.contains(&".ptr");
    Act::new(Kind::Parameter)
        .with("bytes", Value::Number(element * length))
        .with(
            "alignment",
            after(&words, ".align").map_or(Value::Nothing, Value::Number),
        )
        .with(
            "a pointer to global memory",
            Value::yes(pointer && words.contains(&".global")),
        )
}

/// Bytes of a type: `.u32`.
fn bytes(word: &str) -> Option<u64> {
    let bits = word.strip_prefix('.')?.strip_prefix(['u', 's', 'b', 'f'])?;
    Some(number(bits)? / 8)
}
