use std::collections::HashSet;
use warpline_check::{Checked, Rule, check, rules};
use warpline_ir::Target;
use warpline_testkit::raw::RawKernel;

#[test]
fn a_proved_kernel_dereferences_to_the_kernel() {
    let checked = check(RawKernel::one().0, &Target::SM_90A).unwrap();
    assert!(checked.is_proved());
    assert_eq!(checked.unproved_reason(), None);
    assert_eq!(checked.threads(), 128);
    assert_eq!(checked.target(), Some(&Target::SM_90A));
    assert_eq!(checked.to_string(), "kernel kit, checked for sm_90a");
}

#[test]
fn an_unproved_kernel_shows_its_reason() {
    let checked = Checked::unproved(RawKernel::one().0, "a mutant");
    assert!(!checked.is_proved());
    assert_eq!(checked.unproved_reason(), Some("a mutant"));
    assert_eq!(checked.to_string(), "kernel kit, unproved: a mutant");
}

#[test]
fn all_diagnostics_are_reported_at_once() {
    let mut k = RawKernel::new(&[("a", 0), ("a", 4)]);
    k.0.cluster = [32, 1, 1];
    let diagnostics = check(k.0, &Target::SM_90A).unwrap_err();
    let codes: Vec<_> = diagnostics.diagnostics.iter().map(|r| r.code()).collect();
    assert_eq!(codes, ["S.role-warps", "S.role-name", "R8.size"]);
    assert!(
        diagnostics
            .to_string()
            .starts_with("kernel kit: kernel.rs:1: role without warps: role `a` has no warps"),
        "{diagnostics}"
    );
}

#[test]
fn every_rule_of_a_group_is_in_the_table_of_codes() {
    let mut seen = HashSet::new();
    for rule in rules::ALL.iter().copied().flatten() {
        assert!(seen.insert(rule.code), "{} twice", rule.code);
        assert_eq!(Rule::find(rule.code), Some(rule));
    }
}
