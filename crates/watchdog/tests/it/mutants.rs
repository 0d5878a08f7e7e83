//! Probes with one arrival removed: the launch ends with a report, even with operations in flight.

use crate::harness::{SHORT, launch, watched};
use warpline_cpu::{GlobalMemory, Options, Timing};
use warpline_ir::{Block, FaultKind, Kernel, Op, StmtKind, Target};
use warpline_kernels::BufferAddresses;

/// Removes the first arrival of a block; returns whether there was one.
fn remove_arrival(block: &mut Block) -> bool {
    let arrives = |kind: &StmtKind| matches!(kind, StmtKind::Op(Op::MbarrierArrive(_)));
    if let Some(at) = block.0.iter().position(|s| arrives(&s.kind)) {
        block.0.remove(at);
        return true;
    }
    block.0.iter_mut().any(|s| match &mut s.kind {
        StmtKind::Op(_) => false,
        StmtKind::If { then, other, .. } => remove_arrival(then) || remove_arrival(other),
        StmtKind::For { body, .. } | StmtKind::Elect { body } => remove_arrival(body),
        StmtKind::While { head, body, .. } => remove_arrival(head) || remove_arrival(body),
    })
}

/// Builds one mutant per role with arrivals: its first arrival is removed.
fn mutants(kernel: &Kernel) -> Vec<Kernel> {
    let mutant = |i: usize| {
        let mut mutant = kernel.clone();
        remove_arrival(&mut mutant.roles[i].body).then_some(mutant)
    };
    (0..kernel.roles.len()).filter_map(mutant).collect()
}

fn assert_mutants_end_with_a_report(name: &str) {
    let probe = warpline_probes::all().into_iter().find(|p| p.name == name);
    let work = &probe.expect("a probe").cases[0];
    let plan = work.plan(&Target::SM_90A).expect("a plan");
    let step = &plan.steps[0];
    let mutants = mutants(&step.kernel);
    assert!(mutants.len() > 1);
    for mutant in mutants {
        let watched = watched(&mutant, &SHORT);
        for timing in [Timing::Eager, Timing::Late] {
            let mut memory = GlobalMemory::new();
            let bound = BufferAddresses {
                inputs: (work.draw(1).iter())
                    .map(|t| memory.alloc_from(&t.data, t.spec.name))
                    .collect(),
                outputs: (work.outputs().iter())
                    .map(|s| memory.alloc_from(&vec![0; s.bytes()], s.name))
                    .collect(),
                workspace: memory.alloc_from(&vec![0; plan.workspace as usize], "workspace"),
            };
            let options = Options::with_timing(timing);
            let ended = launch(&watched, step.launch(&bound), &mut memory, &options);
            if let Err(e) = ended.result {
                assert_eq!(e.kind, FaultKind::Trap, "{name} {timing}: {e}");
            }
            assert!(ended.has_timed_out, "{name} {timing}: {}", ended.hang);
            let text = ended.hang.to_string();
            assert!(text.contains(": waits for "), "{name} {timing}: {text}");
        }
    }
}

#[test]
fn ping_pong_mutants_end_with_a_report() {
    assert_mutants_end_with_a_report("ping-pong");
}

#[test]
fn attention_mutants_end_with_a_report() {
    assert_mutants_end_with_a_report("attention");
}

#[test]
fn split_k_mutants_end_with_a_report() {
    assert_mutants_end_with_a_report("split-k");
}

#[test]
fn stream_k_mutants_end_with_a_report() {
    assert_mutants_end_with_a_report("stream-k");
}
