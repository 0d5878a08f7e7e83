//! R2: the bytes that a phase expects are those that its copies deliver.

use crate::bug::{Bug, Built, Executor, Form};
use crate::case::Case;
use crate::kit::{BYTES, Ring, WORDS};
use crate::mark::{Source, this_file};
use crate::trial::Trial;
use warpline_ir::build::*;
use warpline_ir::{FaultKind, Kernel, Operand, Target};

const SOURCE: Source = this_file!("bytes.rs");

pub(crate) const BUGS: &[Bug] = &[
    Bug {
        name: "mirage-705",
        reference: "mirage-project/mirage#705",
        title: "the box of a copy was not cut to the batch that the barrier expects",
        rule: "R2.bytes",
        executor: Executor::Faults(&[FaultKind::Deadlock, FaultKind::Race]),
        build: uncut_box,
    },
    Bug {
        name: "deepgemm-415",
        reference: "deepseek-ai/DeepGEMM#415",
        title: "the CTAs of a pair disagree whether B is multicast",
        rule: "R2.bytes",
        executor: Executor::Faults(&[FaultKind::Deadlock]),
        build: half_multicast,
    },
];

/// The kernel expects the bytes of a tile that is cut to the batch; one of the
/// task kinds still has a map with the whole box. The bytes on top keep the
/// phase from completing.
fn uncut_box(form: Form) -> Built {
    let kernel = Kernel::build("uncut_box", &Target::default(), |k| {
        let (n, x) = (k.param::<u32>("n"), k.pointer::<f32>("x"));
        let ring = Ring::new(k, "ring", 2, 1);
        k.role("load").body(|| {
            let at = ring.fills();
            elect(|| {
                steps(n).each(|i| {
                    let (slot, full) = (ring.slots.stage(at.stage()), ring.full.at(at.stage()));
                    ring.empty.at(at.stage()).wait(at.parity());
                    bulk_load(slot, x.address(i * WORDS), BYTES, full);
                    full.arrive_expect(form.pick(BYTES / 2, BYTES)); // BUG: half of what comes
                    at.advance();
                });
            });
        });
        k.role("math").body(|| {
            let at = ring.reads();
            steps(n).each(|_| ring.read(at));
        });
    })?;
    Ok(Case {
        kernel,
        line: SOURCE.marked(),
        trial: Trial::of(1).number(5).buffer(5 * BYTES),
    })
}

/// Groups of tiles lie one behind the other, and a pair of CTAs spans two of
/// them. Rank 0 takes multicast to be off and brings B to itself alone; rank 1
/// takes it to be on and waits for the bytes.
fn half_multicast(form: Form) -> Built {
    let kernel = Kernel::build("half_multicast", &Target::default(), |k| {
        k.cluster(2, 1, 1);
        let (x, y) = (k.pointer::<f32>("x"), k.pointer::<f32>("y"));
        let [a, b] = ["a", "b"].map(|name| k.tile::<f32>(name, 1, WORDS).plain().declare());
        let full = k.barrier("full", 1).count(1).at(0u32);
        k.role("load").body(|| {
            elect(|| {
                let to = form.pick(None, Some(Operand::imm(0b11u16)));
                bulk_load(a.whole(), x.address(cluster_rank() * WORDS), BYTES, full);
                if_(cluster_rank().eq(0u32), || {
                    bulk_load_with(b.whole(), y.address(0u32), BYTES, full, to, None);
                });
                full.arrive_expect(2 * BYTES); // BUG: in rank 1 only A comes
            });
        });
        k.role("math").body(|| {
            full.wait(0u32);
            a.whole().load(0u32, lane_id());
            b.whole().load(0u32, lane_id());
        });
    })?;
    Ok(Case {
        kernel,
        line: SOURCE.marked(),
        trial: Trial::of(2).buffer(2 * BYTES).buffer(BYTES),
    })
}
