//! Parser of PTX statements: labels, directives, and instructions with guard, opcode and operands.
//!
//! A statement must end on the line where it begins, as in the printer's output. The parser rejects
//! other text.

/// One statement.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Statement<'a> {
    /// A label.
    Label(&'a str),
    /// An instruction.
    Instruction(Instruction<'a>),
    /// A directive inside the body, without the dot.
    Directive(&'a str),
}

/// An instruction.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Instruction<'a> {
    pub(super) guard: Option<Guard<'a>>,
    pub(super) opcode: &'a str,
    pub(super) operands: Vec<Operand<'a>>,
}

/// The predicate in front of an instruction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Guard<'a> {
    pub(super) register: &'a str,
    pub(super) negated: bool,
}

/// An operand.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Operand<'a> {
    /// A register, a constant, a name, or a sum of them.
    Word(&'a str),
    /// `[a, b]`.
    Memory(Vec<Operand<'a>>),
    /// `{a, b}`.
    List(Vec<Operand<'a>>),
    /// `a|b`: two results.
    Pair(&'a str, &'a str),
}

/// Returns a line without its comment and surrounding space.
pub(super) fn code(line: &str) -> &str {
    line.split_once("//").map_or(line, |(code, _)| code).trim()
}

/// Parses the statements of a line.
pub(super) fn statements(mut code: &str) -> Result<Vec<Statement<'_>>, String> {
    let mut all = Vec::new();
    while !code.is_empty() {
        if let Some((label, rest)) = label(code) {
            all.push(Statement::Label(label));
            code = rest;
            continue;
        }
        let Some((one, rest)) = code.split_once(';') else {
            // `.loc` and `.file` end with the line.
            return match code.strip_prefix('.') {
                Some(directive) => {
                    all.push(Statement::Directive(directive));
                    Ok(all)
                }
                None => Err(format!("`{code}` does not end with a semicolon")),
            };
        };
        all.push(match one.strip_prefix('.') {
            Some(directive) => Statement::Directive(directive),
            None => Statement::Instruction(instruction(one)?),
        });
        code = rest.trim_start();
    }
    Ok(all)
}

fn label(code: &str) -> Option<(&str, &str)> {
    let end = code.find(|c: char| !(c.is_ascii_alphanumeric() || "_$%".contains(c)))?;
    let rest = code[end..].strip_prefix(':')?;
    (end > 0 && !rest.starts_with(':')).then(|| (&code[..end], rest.trim_start()))
}

fn instruction(code: &str) -> Result<Instruction<'_>, String> {
    let (guard, code) = match code.strip_prefix('@') {
        None => (None, code),
        Some(rest) => {
            let (register, rest) = rest
                .split_once(char::is_whitespace)
                .ok_or_else(|| format!("`{code}` has a guard but no instruction"))?;
            let negated = register.starts_with('!');
            let register = register.trim_start_matches('!');
            (Some(Guard { register, negated }), rest.trim_start())
        }
    };
    let (opcode, operands) = code.split_once(char::is_whitespace).unwrap_or((code, ""));
    Ok(Instruction {
        guard,
        opcode,
        operands: list(operands)?,
    })
}

/// Parses comma-separated operands.
fn list(text: &str) -> Result<Vec<Operand<'_>>, String> {
    let mut all = Vec::new();
    let (mut depth, mut start) = (0i32, 0);
    for (i, c) in text.char_indices() {
        match c {
            '[' | '{' => depth += 1,
            ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                all.push(operand(&text[start..i])?);
                start = i + 1;
            }
            _ => {}
        }
    }
    if depth != 0 {
        return Err(format!("unbalanced brackets in `{text}`"));
    }
    let last = text[start..].trim();
    if !last.is_empty() || !all.is_empty() {
        all.push(operand(last)?);
    }
    Ok(all)
}

fn operand(text: &str) -> Result<Operand<'_>, String> {
    let text = text.trim();
    let enclosed = |open, close| text.strip_prefix(open)?.strip_suffix(close);
    if let Some(memory) = enclosed('[', ']') {
        return Ok(Operand::Memory(list(memory)?));
    }
    if let Some(list_text) = enclosed('{', '}') {
        return Ok(Operand::List(list(list_text)?));
    }
    if let Some((a, b)) = text.split_once('|') {
        return Ok(Operand::Pair(a, b));
    }
    if text.is_empty() || text.contains(char::is_whitespace) {
        return Err(format!("`{text}` is not an operand"));
    }
    Ok(Operand::Word(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_split_into_statements() {
        let text = "  $a_1: @!%p2 bra.uni $a_1; cp.x [%m, {-1, %r2}], {a, b}, c|%p3;  // note";
        let all = statements(code(text)).unwrap();
        assert_eq!(all[0], Statement::Label("$a_1"));
        let Statement::Instruction(bra) = &all[1] else {
            panic!("{all:?}")
        };
        let guard = bra.guard.unwrap();
        assert_eq!((guard.register, guard.negated), ("%p2", true));
        assert_eq!(bra.opcode, "bra.uni");
        let Statement::Instruction(copy) = &all[2] else {
            panic!("{all:?}")
        };
        let inner = Operand::List(vec![Operand::Word("-1"), Operand::Word("%r2")]);
        assert_eq!(
            copy.operands,
            [
                Operand::Memory(vec![Operand::Word("%m"), inner]),
                Operand::List(vec![Operand::Word("a"), Operand::Word("b")]),
                Operand::Pair("c", "%p3"),
            ]
        );
        assert_eq!(
            statements(".loc 1 2 3"),
            Ok(vec![Statement::Directive("loc 1 2 3")])
        );
    }

    #[test]
    fn malformed_statements_are_rejected() {
        for malformed in [
            "add.u32 %r1, %r2",
            "add %r1, [%r2;",
            "@%p1;",
            "add %r1,, 2;",
            "add %r1, a b;",
        ] {
            assert!(statements(malformed).is_err(), "{malformed}");
        }
    }
}
