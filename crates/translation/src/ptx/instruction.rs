//! Conversion of one instruction to actions.

use super::instruction_parser::InstructionParser;
use super::registers::Registers;
use super::statement::{Instruction, Operand};
use super::{copies, memory, mma, synchronization};
use crate::action::{Action, ActionKind, SOURCES};
use crate::value::OperandValue;

/// Converts instructions in text order.
pub(super) struct InstructionConverter<'a> {
    pub(super) registers: Registers<'a>,
}

impl<'a> InstructionConverter<'a> {
    /// Returns the actions of an instruction.
    pub(super) fn actions(&mut self, i: &Instruction<'a>) -> Vec<Action<'a>> {
        let root = i.opcode.split('.').next().unwrap_or_default();
        let parser = InstructionParser::new(i, &self.registers);
        let mut actions = match root {
            "mbarrier" => vec![synchronization::mbarrier(parser)],
            "fence" => vec![synchronization::fence(parser)],
            "bar" => vec![synchronization::warp_sync(parser)],
            "barrier" => vec![synchronization::barrier(parser)],
            "setmaxnreg" => vec![synchronization::set_max_regs(parser)],
            "griddepcontrol" => vec![synchronization::dependent_launch(parser)],
            "nanosleep" | "exit" | "trap" | "ret" => {
                vec![synchronization::thread_control(root, parser)]
            }
            "elect" => vec![synchronization::elect(parser)],
            "cp" => vec![copies::copy(parser)],
            "wgmma" => vec![mma::wgmma(parser)],
            "mma" => vec![mma::mma(parser)],
            "ld" => vec![memory::load(parser)],
            "st" => vec![memory::store(parser)],
            "atom" => vec![memory::atomic(parser)],
            "red" => vec![memory::reduce(parser)],
            "ldmatrix" => vec![memory::load_matrix(parser)],
            "stmatrix" => vec![memory::store_matrix(parser)],
            "prefetch" | "applypriority" | "discard" => vec![memory::cache_line_op(root, parser)],
            _ => return self.arithmetic(i),
        };
        if let Some(guard) = i.guard {
            // The printer writes guards only on branches.
            let value = self.registers.word(guard.register);
            actions
                .iter_mut()
                .for_each(|action| action.facts.push(("guard", value.clone())));
        }
        if matches!(root, "ld" | "atom" | "ldmatrix" | "mma" | "wgmma" | "elect")
            || i.opcode.starts_with("barrier.cta.red")
            || i.opcode.contains("_wait.")
        {
            self.record_results(i);
        }
        actions
    }

    /// Returns the action of a wait loop: `try_wait` until it succeeds.
    pub(super) fn wait(&mut self, try_wait: &Instruction<'a>) -> Action<'a> {
        let mut action =
            synchronization::mbarrier(InstructionParser::new(try_wait, &self.registers));
        self.record_results(try_wait);
        action.kind = ActionKind::Wait;
        // The result is internal to the loop.
        action
            .facts
            .retain(|(name, _)| !["result", "may suspend"].contains(name));
        action
    }

    /// Records the results of an instruction as opaque values.
    fn record_results(&mut self, i: &Instruction<'a>) {
        for name in result_registers(i) {
            if self.registers.write_program_register(name).is_none() {
                let sources = self.sources(i);
                self.registers
                    .set_temporary(name, OperandValue::Computed(i.opcode, sources));
            }
        }
    }

    fn sources(&self, i: &Instruction<'a>) -> Vec<OperandValue<'a>> {
        i.operands[1..]
            .iter()
            .map(|o| self.registers.value(o))
            .collect()
    }

    /// Returns the register writes of an arithmetic instruction.
    fn arithmetic(&mut self, i: &Instruction<'a>) -> Vec<Action<'a>> {
        let names = result_registers(i);
        if names.is_empty() {
            return vec![InstructionParser::new(i, &self.registers).unknown()];
        }
        let sources = self.sources(i);
        let guard = i.guard.map(|g| self.registers.word(g.register));
        let mut actions = Vec::new();
        for (n, name) in names.iter().enumerate() {
            if let Some(register) = self.registers.write_program_register(name) {
                let mut leaves = Vec::with_capacity(sources.len());
                for value in &sources {
                    value.leaves(&mut |leaf| leaves.push(leaf.clone()));
                }
                let mut action = Action::new(ActionKind::Set)
                    .with("register", register)
                    .with(SOURCES, OperandValue::List(leaves));
                if let Some(guard) = &guard {
                    action = action.with("guard", guard.clone());
                }
                actions.push(action);
                continue;
            }
            let value = match (i.guard, names.len()) {
                (Some(guard), _) => OperandValue::Name(guard.register),
                (None, 1) => evaluate(i.opcode, sources.clone()),
                (None, _) => OperandValue::Computed("part", {
                    let value = evaluate(i.opcode, sources.clone());
                    vec![value, OperandValue::Number(n as u64)]
                }),
            };
            self.registers.set_temporary(name, value);
        }
        actions
    }
}

/// Returns the registers of the first operand, which the instruction writes.
fn result_registers<'a>(i: &Instruction<'a>) -> Vec<&'a str> {
    let word = |o: &Operand<'a>| match o {
        Operand::Word(w) if w.starts_with('%') => Some(*w),
        _ => None,
    };
    match i.operands.first() {
        Some(Operand::List(all)) => all.iter().filter_map(word).collect(),
        Some(Operand::Pair(a, b)) => [*a, *b].into_iter().filter(|w| *w != "_").collect(),
        Some(one) => word(one).into_iter().collect(),
        None => vec![],
    }
}

/// Evaluates an instruction symbolically.
fn evaluate<'a>(opcode: &'a str, mut sources: Vec<OperandValue<'a>>) -> OperandValue<'a> {
    let opcode_is = |root: &str, types: &[&str]| {
        let rest = opcode.strip_prefix(root);
        rest.is_some_and(|ty| types.contains(&ty))
    };
    const WORDS: [&str; 4] = [".u32", ".s32", ".u64", ".s64"];
    match &sources[..] {
        [_] if opcode.starts_with("mov.") => sources.remove(0),
        [a, b] if opcode_is("add", &WORDS) => a.clone().plus(b.clone()),
        [a, OperandValue::Number(n), c] if opcode_is("mad.lo", &WORDS) => {
            a.clone().times(*n).plus(c.clone())
        }
        _ => OperandValue::Computed(opcode, sources),
    }
}
