//! Parser of the entry's directives: launch bounds, cluster, shared memory, parameters.

use super::PtxAction;
use super::module::{Module, TextLine};
use super::registers::number;
use crate::action::{Action, ActionKind};
use crate::value::OperandValue;

/// Returns the actions of the entry.
pub(super) fn actions<'a>(module: &Module<'a>) -> Vec<PtxAction<'a>> {
    let no_line = TextLine {
        number: 1,
        text: "",
    };
    let (entry, name) = module.entry.unwrap_or((no_line, ""));
    let threads = directive(module, "maxntid");
    let ctas_per_sm = directive(module, "minnctapersm");
    let cluster = directive(module, "reqnctapercluster");
    let explicit = directive(module, "explicitcluster");
    let explicit = explicit.map_or((entry, OperandValue::flag(false)), |(l, _)| {
        (l, OperandValue::flag(true))
    });
    let missing = (entry, OperandValue::Absent);
    let facts = [
        ("name", (entry, OperandValue::Name(name))),
        ("threads", threads.unwrap_or(missing.clone())),
        ("CTAs per SM", ctas_per_sm.unwrap_or(missing.clone())),
        ("cluster", cluster.unwrap_or(missing.clone())),
        ("explicit cluster", explicit),
        (
            "shared memory alignment",
            alignment(module).unwrap_or(missing),
        ),
    ];
    let facts = facts.into_iter().map(|(name, (line, value))| PtxAction {
        action: Action::new(ActionKind::Entry).with(name, value),
        line,
    });
    let params = module.params.iter().map(|&(line, param)| PtxAction {
        action: parameter(param),
        line,
    });
    facts.chain(params).collect()
}

/// Finds a directive; returns its line and numbers.
fn directive<'a>(module: &Module<'a>, name: &str) -> Option<(TextLine<'a>, OperandValue<'a>)> {
    let mut all = module.directives.iter();
    let (line, numbers) = all.find_map(|(line, d)| {
        let rest = d.strip_prefix(name)?;
        let is_whole_word = rest.is_empty() || rest.starts_with(char::is_whitespace);
        is_whole_word.then_some((*line, rest))
    })?;
    let numbers = numbers.split(',').filter_map(|n| number(n.trim()));
    Some((
        line,
        OperandValue::List(numbers.map(OperandValue::Number).collect()),
    ))
}

/// Finds the declaration of shared memory; returns its line and words.
fn shared_declaration<'a>(module: &Module<'a>) -> Option<(TextLine<'a>, Vec<&'a str>)> {
    let mut all = module.directives.iter();
    all.find_map(|(line, d)| {
        let words: Vec<_> = d.split_whitespace().collect();
        words
            .starts_with(&["extern", ".shared"])
            .then_some((*line, words))
    })
}

/// Returns the name of the shared memory.
pub(super) fn shared_name<'a>(module: &Module<'a>) -> Option<&'a str> {
    let (_, words) = shared_declaration(module)?;
    words.last().map(|name| name.trim_end_matches("[]"))
}

fn alignment<'a>(module: &Module<'a>) -> Option<(TextLine<'a>, OperandValue<'a>)> {
    let (line, words) = shared_declaration(module)?;
    let align = number_after(&words, ".align").map_or(OperandValue::Absent, OperandValue::Number);
    Some((line, align))
}

/// Returns the number after a word.
fn number_after(words: &[&str], word: &str) -> Option<u64> {
    let at = words.iter().position(|w| *w == word)?;
    number(words.get(at + 1)?)
}

/// Returns the name of a parameter, without its length.
pub(super) fn parameter_name(declaration: &str) -> &str {
    let name = declaration.split_whitespace().last().unwrap_or_default();
    name.split('[').next().unwrap_or_default()
}

fn parameter(declaration: &str) -> Action<'_> {
    let words: Vec<_> = declaration.split_whitespace().collect();
    let element = words.iter().find_map(|w| type_bytes(w)).unwrap_or(0);
    let length = words
        .last()
        .and_then(|name| name.split_once('['))
        .and_then(|(_, n)| number(n.trim_end_matches(']')))
        .unwrap_or(1);
    let pointer = words.contains(&".ptr");
    Action::new(ActionKind::Parameter)
        .with("bytes", OperandValue::Number(element * length))
        .with(
            "alignment",
            number_after(&words, ".align").map_or(OperandValue::Absent, OperandValue::Number),
        )
        .with(
            "global pointer",
            OperandValue::flag(pointer && words.contains(&".global")),
        )
}

/// Returns the bytes of a type such as `.u32`.
fn type_bytes(word: &str) -> Option<u64> {
    let bits = word.strip_prefix('.')?.strip_prefix(['u', 's', 'b', 'f'])?;
    Some(number(bits)? / 8)
}
