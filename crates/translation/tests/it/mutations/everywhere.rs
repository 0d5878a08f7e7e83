//! Edits of every line of a text must be detected.

use crate::mutations::printed::Printed;
use warpline_translation::verify;

/// Returns the indices of the instruction lines.
fn instructions(lines: &[&str]) -> Vec<usize> {
    let body = lines.iter().position(|l| *l == "{").expect("a body");
    (body..lines.len())
        .filter(|&i| {
            let code = lines[i].trim_start();
            code.contains(';') && !code.starts_with('.')
        })
        .collect()
}

/// Edits every `step`th line and returns the edits that the check accepts.
fn undetected(name: &str, step: usize, edit: impl Fn(&str) -> Vec<String>) -> Vec<String> {
    let printed = Printed::new(name);
    let lines: Vec<&str> = printed.text.lines().collect();
    let mut accepted = Vec::new();
    for i in instructions(&lines).into_iter().step_by(step) {
        for changed in edit(lines[i]) {
            let mut other = lines.clone();
            other[i] = &changed;
            if verify(&printed.kernel, &other.join("\n")).is_ok() {
                accepted.push(format!("{name} line {}: {} → {changed}", i + 1, lines[i]));
            }
        }
    }
    accepted
}

#[test]
fn every_lost_instruction_is_detected() {
    for (name, step) in [("vector-add", 1), ("split-k", 29), ("thin", 23)] {
        let accepted = undetected(name, step, |_| vec![String::new()]);
        assert!(accepted.is_empty(), "{}", accepted.join("\n"));
    }
}

#[test]
fn every_changed_register_or_constant_is_detected() {
    for (name, step) in [("vector-add", 2), ("split-k", 31), ("thin", 27)] {
        let accepted = undetected(name, step, increment_each_number);
        assert!(accepted.is_empty(), "{}", accepted.join("\n"));
    }
}

/// Returns one variant of the line per number in its operands, with that number incremented.
fn increment_each_number(line: &str) -> Vec<String> {
    let end = line.find(';').unwrap_or(line.len());
    let code = line[..end].trim_start();
    // Skips guard and opcode.
    let skip = code.find(' ').map_or(end, |i| i + end - code.len());
    let mut all = Vec::new();
    let mut at = skip;
    while let Some(found) = line[at..end].find(|c: char| c.is_ascii_digit()) {
        let from = at + found;
        let digits = line[from..end]
            .chars()
            .take_while(char::is_ascii_digit)
            .count();
        let number: u64 = line[from..from + digits].parse().expect("a number");
        if !line[..from].ends_with(|c: char| c.is_ascii_alphabetic() && !"rdhp".contains(c)) {
            let up = number.wrapping_add(1);
            all.push(format!("{}{up}{}", &line[..from], &line[from + digits..]));
        }
        at = from + digits;
    }
    all
}
