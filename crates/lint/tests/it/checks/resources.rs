//! Registers and spills, with ptxas and without.

use crate::checks::kit::{findings_of, linted, linted_with, passes, warns};
use warpline_ir::Kernel;
use warpline_ir::builder::*;
use warpline_lint::checks::{REGISTERS, SPILLS};
use warpline_lint::{LintFinding, LintStatus, Options};
use warpline_ptx::ptxas::Ptxas;
use warpline_testkit::kernel::build;

/// Returns a kernel whose role keeps `values` words live, and the line of the role.
fn kernel_with_live_values(warps: u32, values: u32) -> (Kernel, u32) {
    let mut line = 0;
    let kernel = build("linted", |k| {
        let x = k.pointer::<u32>("x");
        line = line!() + 1;
        k.role("all").warps(warps).body(|| {
            let load = |i| x.load(lane_id() + 32 * i);
            let held: Vec<Reg<u32>> = (0..values).map(load).collect();
            // The stores may overwrite the loaded words, so ptxas cannot load them again.
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
    findings_of(check, linted_with(kernel, &options))
}

#[test]
fn a_kernel_near_its_register_budget_warns() {
    let (kernel, line) = kernel_with_live_values(32, 56);
    let found = assembled(REGISTERS, kernel);
    let text = found.first().map_or("", |f| &f.text).to_owned();
    warns(&found, line, Some("all"), &text);
    assert!(text.ends_with(" of 64 registers (ptxas)"), "{text}");

    let (kernel, _) = kernel_with_live_values(4, 8);
    let found = assembled(REGISTERS, kernel);
    assert_eq!(found[0].status, LintStatus::Pass, "{}", found[0]);
}

#[test]
fn a_role_near_its_setmaxnreg_budget_warns_by_the_estimate() {
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
fn spills_warn_if_ptxas_is_available() {
    let (kernel, line) = kernel_with_live_values(32, 100);
    let without = findings_of(SPILLS, linted_with(kernel.clone(), &Options::default()));
    let actual: Vec<_> = without.iter().map(|f| (f.status, &*f.text)).collect();
    assert_eq!(actual, [(LintStatus::Skipped, "skipped: no ptxas")]);

    let found = assembled(SPILLS, kernel);
    let text = found.first().map_or("", |f| &f.text).to_owned();
    warns(&found, line, Some("all"), &text);
    assert!(text.starts_with("ptxas spills "), "{text}");

    passes(
        &assembled(SPILLS, kernel_with_live_values(4, 8).0),
        "no spills",
    );
}
