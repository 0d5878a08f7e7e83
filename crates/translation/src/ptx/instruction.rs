//! One instruction: the group that knows it, or arithmetic.

use super::parts::Parts;
use super::registers::Registers;
use super::statement::{Instruction, Operand};
use super::{copies, memory, products, synchronise};
use crate::act::{Act, FROM, Kind};
use crate::value::Value;

/// Reads instructions one after the other.
pub(super) struct Reader<'a> {
    pub(super) registers: Registers<'a>,
}

impl<'a> Reader<'a> {
    /// The acts of an instruction.
    pub(super) fn acts(&mut self, i: &Instruction<'a>) -> Vec<Act<'a>> {
        let root = i.opcode.split('.').next().unwrap_or_default();
        let parts = Parts::new(i, &self.registers);
        let mut acts = match root {
            "mbarrier" => vec![synchronise::mbarrier(parts)],
            "fence" => vec![synchronise::fence(parts)],
            "bar" => vec![synchronise::warp(parts)],
            "barrier" => vec![synchronise::barrier(parts)],
            "setmaxnreg" => vec![synchronise::registers(parts)],
            "griddepcontrol" => vec![synchronise::launches(parts)],
            "nanosleep" | "exit" | "trap" | "ret" => vec![synchronise::thread(root, parts)],
            "elect" => vec![synchronise::elect(parts)],
            "cp" => vec![copies::copy(parts)],
            "wgmma" => vec![products::wgmma(parts)],
            "mma" => vec![products::mma(parts)],
            "ld" => vec![memory::load(parts)],
            "st" => vec![memory::store(parts)],
            "atom" => vec![memory::atomic(parts)],
            "red" => vec![memory::reduce(parts)],
            "ldmatrix" => vec![memory::load_matrix(parts)],
            "stmatrix" => vec![memory::store_matrix(parts)],
            "prefetch" | "applypriority" | "discard" => vec![memory::line(root, parts)],
            _ => return self.arithmetic(i),
        };
        if let Some(guard) = i.guard {
            // No op is done under a guard: branches alone have one.
            let value = self.registers.word(guard.register);
            acts.iter_mut()
                .for_each(|act| act.facts.push(("guard", value.clone())));
        }
        if matches!(root, "ld" | "atom" | "ldmatrix" | "mma" | "wgmma" | "elect")
            || i.opcode.starts_with("barrier.cta.red")
            || i.opcode.contains("_wait.")
        {
            self.results(i);
        }
        acts
    }

    /// A wait: `try_wait` until it says yes.
    pub(super) fn wait(&mut self, ask: &Instruction<'a>) -> Act<'a> {
        let mut act = synchronise::mbarrier(Parts::new(ask, &self.registers));
        self.results(ask);
        act.kind = Kind::Wait;
        // The answer is the loop's own, and the loop may sleep.
        act.facts
            .retain(|(name, _)| !["answer", "may sleep"].contains(name));
        act
    }

    /// The results of an instruction, of which nothing is known but where they come from.
    fn results(&mut self, i: &Instruction<'a>) {
        for name in results(i) {
            if self.registers.write(name).is_none() {
                let sources = self.sources(i);
                self.registers.keep(name, Value::Made(i.opcode, sources));
            }
        }
    }

    fn sources(&self, i: &Instruction<'a>) -> Vec<Value<'a>> {
        i.operands[1..]
            .iter()
            .map(|o| self.registers.value(o))
            .collect()
    }

    /// An instruction that works something out into its first operand.
    fn arithmetic(&mut self, i: &Instruction<'a>) -> Vec<Act<'a>> {
        let names = results(i);
        if names.is_empty() {
            return vec![Parts::new(i, &self.registers).unknown()];
        }
        let sources = self.sources(i);
        let guard = i.guard.map(|g| self.registers.word(g.register));
        let mut acts = Vec::new();
        for (n, name) in names.iter().enumerate() {
            if let Some(register) = self.registers.write(name) {
                let mut leaves = Vec::with_capacity(sources.len());
                for value in &sources {
                    value.leaves(&mut |leaf| leaves.push(leaf.clone()));
                }
                let mut act = Act::new(Kind::Set)
                    .with("register", register)
                    .with(FROM, Value::List(leaves));
                if let Some(guard) = &guard {
                    act = act.with("guard", guard.clone());
                }
                acts.push(act);
                continue;
            }
            let value = match (i.guard, names.len()) {
                (Some(guard), _) => Value::Name(guard.register),
                (None, 1) => worked_out(i.opcode, sources.clone()),
                (None, _) => Value::Made("part", {
                    let whole = worked_out(i.opcode, sources.clone());
                    vec![whole, Value::Number(n as u64)]
                }),
            };
            self.registers.keep(name, value);
        }
        acts
    }
}

/// The registers an instruction writes, if it writes its first operand.
fn results<'a>(i: &Instruction<'a>) -> Vec<&'a str> {
    let word = |o: &Operand<'a>| match o {
        Operand::Word(w) if w.starts_with('%') => Some(*w),
        _ => None,
    };
    match i.operands.first() {
        Some(Operand::List(all)) => all.iter().filter_map(word).collect(),
        Some(Operand::Both(a, b)) => [*a, *b].into_iter().filter(|w| *w != "_").collect(),
        Some(one) => word(one).into_iter().collect(),
        None => vec![],
    }
}

/// What an instruction makes of its sources.
fn worked_out<'a>(opcode: &'a str, mut sources: Vec<Value<'a>>) -> Value<'a> {
    let is = |root: &str, types: &[&str]| {
        let rest = opcode.strip_prefix(root);
        rest.is_some_and(|ty| types.contains(&ty))
    };
    const WORDS: [&str; 4] = [".u32", ".s32", ".u64", ".s64"];
    match &sources[..] {
        [_] if opcode.starts_with("mov.") => sources.remove(0),
        [a, b] if is("add", &WORDS) => a.clone().plus(b.clone()),
        [a, Value::Number(n), c] if is("mad.lo", &WORDS) => a.clone().times(*n).plus(c.clone()),
        _ => Value::Made(opcode, sources),
    }
}
