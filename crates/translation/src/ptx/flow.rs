//! The body, statement by statement: labels, branches, and what lies between them.

use super::Said;
use super::entry::{parameter_name, shared};
use super::instruction::Reader;
use super::module::{Line, Module};
use super::registers::Registers;
use super::statement::{Guard, Instruction, Operand, Statement};
use crate::act::{Act, Kind, TARGET};
use crate::value::Value;
use std::collections::{HashMap, HashSet};

/// The acts of a body.
pub(super) fn acts<'a>(module: &Module<'a>, program: u32) -> Vec<Said<'a>> {
    let params = module.params.iter().enumerate();
    let params = params.map(|(i, (_, p))| (parameter_name(p), i)).collect();
    let registers = Registers::new(program, params, shared(module));
    let body = &module.body;
    let waits: HashSet<usize> = (0..body.len()).filter(|&i| is_wait(&body[i..])).collect();
    let mut flow = Flow {
        labels: labels(body, &waits),
        passed: 0,
        reader: Reader { registers },
        said: Vec::with_capacity(body.len()),
    };
    let mut i = 0;
    while let Some((line, statement)) = body.get(i) {
        if waits.contains(&i) {
            flow.wait(&body[i + 1]);
            i += 3;
            continue;
        }
        flow.statement(*line, statement);
        i += 1;
    }
    flow.said
}

/// The numbers of labels, in the order of the text; a label that stands twice has none.
fn labels<'a>(
    body: &[(Line<'a>, Statement<'a>)],
    waits: &HashSet<usize>,
) -> HashMap<&'a str, Option<u64>> {
    let mut labels = HashMap::new();
    let mut next = 0;
    for (i, (_, statement)) in body.iter().enumerate() {
        if let Statement::Label(name) = statement
            && !waits.contains(&i)
        {
            let known = labels.insert(*name, Some(next));
            if known.is_some() {
                labels.insert(name, None);
            }
            next += 1;
        }
    }
    labels
}

/// Do statements begin with a wait: a label, `try_wait`, and a branch back if it says no?
fn is_wait(rest: &[(Line<'_>, Statement<'_>)]) -> bool {
    let [(_, Statement::Label(label)), (_, ask), (_, back), ..] = rest else {
        return false;
    };
    let (Statement::Instruction(ask), Statement::Instruction(back)) = (ask, back) else {
        return false;
    };
    let Some(Operand::Word(answer)) = ask.operands.first() else {
        return false;
    };
    let again = Guard {
        register: answer,
        negated: true,
    };
    ask.guard.is_none()
        && ask.opcode.starts_with("mbarrier.try_wait.")
        && back.opcode == "bra"
        && back.guard == Some(again)
        && back.operands == [Operand::Word(label)]
}

struct Flow<'a> {
    labels: HashMap<&'a str, Option<u64>>,
    /// Labels passed so far.
    passed: u64,
    reader: Reader<'a>,
    said: Vec<Said<'a>>,
}

impl<'a> Flow<'a> {
    fn say(&mut self, line: Line<'a>, act: Act<'a>) {
        self.said.push(Said { act, line });
    }

    fn wait(&mut self, (line, ask): &(Line<'a>, Statement<'a>)) {
        if let Statement::Instruction(ask) = ask {
            // Who comes back from the branch has changed nothing.
            let act = self.reader.wait(ask);
            self.say(*line, act);
        }
    }

    fn statement(&mut self, line: Line<'a>, statement: &Statement<'a>) {
        match statement {
            Statement::Label(_) => {
                self.passed += 1;
                self.reader.registers.label();
                self.say(line, Act::new(Kind::Label));
            }
            Statement::Directive(d) => match d.split_whitespace().next() {
                Some("loc" | "reg") => {}
                _ if *d == "pragma \"nounroll\"" => self.say(line, Act::new(Kind::NoUnroll)),
                _ => self.say(line, Act::new(Kind::Unknown).with("directive", *d)),
            },
            Statement::Instruction(i) => match i.opcode {
                "bra" | "bra.uni" => {
                    let branch = self.branch(i);
                    self.say(line, branch);
                }
                _ => {
                    let acts = self.reader.acts(i);
                    self.said
                        .extend(acts.into_iter().map(|act| Said { act, line }));
                }
            },
        }
    }

    fn branch(&self, i: &Instruction<'a>) -> Act<'a> {
        let to = match &i.operands[..] {
            [Operand::Word(label)] => match self.labels.get(label) {
                Some(Some(n)) => Value::Number(n.wrapping_sub(self.passed)),
                _ => Value::Name(label),
            },
            _ => Value::Nothing,
        };
        let when = match i.guard {
            None => Value::Name("always"),
            Some(guard) => {
                let value = self.reader.registers.word(guard.register);
                match guard.negated {
                    true => Value::Made("not", vec![value]),
                    false => value,
                }
            }
        };
        Act::new(Kind::Branch)
            .with("condition", when)
            .with(TARGET, to)
            .with(
                "the same way for a whole warp",
                Value::yes(i.opcode == "bra.uni"),
            )
    }
}
