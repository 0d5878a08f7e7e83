//! Registers and spills, with ptxas and without.

use crate::checks::kit::{linted, linted_with, of, passes, warns};
use warpline_ir::Kernel;
use warpline_ir::builder::*;
use warpline_lint::checks::{REGISTERS, SPILLS};
use warpline_lint::{LintFinding, LintStatus, Options};
use warpline_ptx::ptxas::Ptxas;
use warpline_testkit::kernel::build;

/// A role that holds `values` words at once, and the line it is declared at.
fn holds(warps: u32, values: u32) -> (Kernel, u32) {
    let mut line = 0;
    let kernel = build("linted", |k| {
        let x = k.pointer::<u32>("x");
        line = line!() + 1;
        k.role("all").warps(warps).body(|| {
            let load = |i| x.load(lane_id() + 32 * i);
            let held: Vec<Reg<u32>> = (0..values).map(load).collect();
            // None can be loaded again: what is stored may be what is loaded.
            for (i, v) in held.into_iter().enumerate() {
                x.store(lane_id() + 32 * (i as u32 + 1), v);
            }
        });
    });
    (kernel, line)
}

fn assembled(check: &str, kernel: Kernel) -> Vec<LintFinding> {
    let mut options = Options::default();
    options.ptxas = Some(Ptxas::find().unwrap_or_else(|e| panic!("{e}")));
    of(check, linted_with(kernel, &options))
}

#[test]
fn a_kernel_near_what_its_threads_may_have_warns() {
    let (kernel, line) = holds(32, 56);
    let found = assembled(REGISTERS, kernel);
    let text = found.first().map_or("", |f| &f.text).to_owned();
    warns(&found, line, Some("all"), &text);
    assert!(text.ends_with(" of 64 registers (ptxas)"), "{text}");

    let (kernel, _) = holds(4, 8);
    let found = assembled(REGISTERS, kernel);
    assert_eq!(found[0].status, LintStatus::Pass, "{}", found[0]);
}

#[test]
fn a_role_near_what_it_asked_for_warns_by_our_estimate() {
    let mut line = 0;
    let found = linted(REGISTERS, |k| {
        let x = k.pointer::<u32>("x");
        let load = |i: u32| x.load(lane_id() + 32 * i);
        line = line!() + 1;
        k.role("few").warpgroups(1).registers(24).body(|| {
            let held: Vec<Reg<u32>> = (0..22).map(load).collect();
            held.into_iter().for_each(|v| x.store(lane_id(), v));
        });
        k.role("many").warpgroups(1).registers(240).body(|| {
            let held: Vec<Reg<u32>> = (0..22).map(load).collect();
            held.into_iter().for_each(|v| x.store(lane_id(), v));
        });
    });
    let text = found.first().map_or("", |f| &f.text).to_owned();
    warns(&found, line, Some("few"), &text);
    assert!(text.ends_with(" of 24 registers (estimate)"), "{text}");
}

#[test]
fn registers_that_do_not_fit_warn_where_ptxas_is() {
    let (kernel, line) = holds(32, 100);
    let without = of(SPILLS, linted_with(kernel.clone(), &Options::default()));
    let said: Vec<_> = without.iter().map(|f| (f.status, &*f.text)).collect();
    assert_eq!(said, [(LintStatus::Skipped, "skipped: no ptxas")]);

    let found = assembled(SPILLS, kernel);
    let text = found.first().map_or("", |f| &f.text).to_owned();
    warns(&found, line, Some("all"), &text);
    assert!(text.starts_with("ptxas spills "), "{text}");

    passes(&assembled(SPILLS, holds(4, 8).0), "no spills");
}
