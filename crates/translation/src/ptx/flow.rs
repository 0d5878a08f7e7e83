//! Conversion of the body to actions: labels, branches, instructions.

use super::PtxAction;
use super::entry::{parameter_name, shared_name};
use super::instruction::InstructionConverter;
use super::module::{Module, TextLine};
use super::registers::Registers;
use super::statement::{Guard, Instruction, Operand, Statement};
use crate::action::{Action, ActionKind, TARGET};
use crate::value::OperandValue;
use std::collections::{HashMap, HashSet};

/// Returns the actions of a body; `program` is the number of program registers.
pub(super) fn actions<'a>(module: &Module<'a>, program: u32) -> Vec<PtxAction<'a>> {
    let params = module.params.iter().enumerate();
    let params = params.map(|(i, (_, p))| (parameter_name(p), i)).collect();
    let registers = Registers::new(program, params, shared_name(module));
    let body = &module.body;
    let waits: HashSet<usize> = (0..body.len())
        .filter(|&i| is_wait_loop(&body[i..]))
        .collect();
    let mut flow = Flow {
        labels: labels(body, &waits),
        labels_passed: 0,
        converter: InstructionConverter { registers },
        actions: Vec::with_capacity(body.len()),
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
    flow.actions
}

/// Numbers the labels in text order; a duplicate label has no number.
fn labels<'a>(
    body: &[(TextLine<'a>, Statement<'a>)],
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

/// Returns whether statements begin with a wait loop: a label, `try_wait`, and a branch back on failure.
fn is_wait_loop(rest: &[(TextLine<'_>, Statement<'_>)]) -> bool {
    let [(_, Statement::Label(label)), (_, try_wait), (_, branch), ..] = rest else {
        return false;
    };
    let (Statement::Instruction(try_wait), Statement::Instruction(branch)) = (try_wait, branch)
    else {
        return false;
    };
    let Some(Operand::Word(result)) = try_wait.operands.first() else {
        return false;
    };
    let again = Guard {
        register: result,
        negated: true,
    };
    try_wait.guard.is_none()
        && try_wait.opcode.starts_with("mbarrier.try_wait.")
        && branch.opcode == "bra"
        && branch.guard == Some(again)
        && branch.operands == [Operand::Word(label)]
}

struct Flow<'a> {
    labels: HashMap<&'a str, Option<u64>>,
    /// The number of labels passed so far.
    labels_passed: u64,
    converter: InstructionConverter<'a>,
    actions: Vec<PtxAction<'a>>,
}

impl<'a> Flow<'a> {
    fn emit(&mut self, line: TextLine<'a>, action: Action<'a>) {
        self.actions.push(PtxAction { action, line });
    }

    fn wait(&mut self, (line, try_wait): &(TextLine<'a>, Statement<'a>)) {
        if let Statement::Instruction(try_wait) = try_wait {
            // The backward branch changes no register, so the label needs no reset.
            let action = self.converter.wait(try_wait);
            self.emit(*line, action);
        }
    }

    fn statement(&mut self, line: TextLine<'a>, statement: &Statement<'a>) {
        match statement {
            Statement::Label(_) => {
                self.labels_passed += 1;
                self.converter.registers.pass_label();
                self.emit(line, Action::new(ActionKind::Label));
            }
            Statement::Directive(d) => match d.split_whitespace().next() {
                Some("loc" | "reg") => {}
                _ if *d == "pragma \"nounroll\"" => {
                    self.emit(line, Action::new(ActionKind::NoUnroll))
                }
                _ => self.emit(line, Action::new(ActionKind::Unknown).with("directive", *d)),
            },
            Statement::Instruction(i) => match i.opcode {
                "bra" | "bra.uni" => {
                    let branch = self.branch(i);
                    self.emit(line, branch);
                }
                _ => {
                    let actions = self.converter.actions(i);
                    self.actions
                        .extend(actions.into_iter().map(|action| PtxAction { action, line }));
                }
            },
        }
    }

    fn branch(&self, i: &Instruction<'a>) -> Action<'a> {
        let to = match &i.operands[..] {
            [Operand::Word(label)] => match self.labels.get(label) {
                Some(Some(n)) => OperandValue::Number(n.wrapping_sub(self.labels_passed)),
                _ => OperandValue::Name(label),
            },
            _ => OperandValue::Absent,
        };
        let condition = match i.guard {
            None => OperandValue::Name("always"),
            Some(guard) => {
                let value = self.converter.registers.word(guard.register);
                match guard.negated {
                    true => OperandValue::Computed("not", vec![value]),
                    false => value,
                }
            }
        };
        Action::new(ActionKind::Branch)
            .with("condition", condition)
            .with(TARGET, to)
            .with("uniform", OperandValue::flag(i.opcode == "bra.uni"))
    }
}
