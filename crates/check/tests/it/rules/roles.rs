use warpline_testkit::raw::RawKernel;

#[test]
fn a_kernel_of_one_role_passes() {
    RawKernel::one().passes();
}

#[test]
fn a_kernel_without_roles_is_refuted() {
    let k = RawKernel::new(&[]);
    let all = k.diagnostics();
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].code(), "S.role-warps");
}

#[test]
fn two_roles_with_the_same_name_are_refuted() {
    RawKernel::new(&[("load", 4), ("load", 4)]).refuted("S.role-name", 2);
}

#[test]
fn a_role_without_warps_is_refuted() {
    RawKernel::new(&[("load", 4), ("store", 0)]).refuted("S.role-warps", 2);
}

#[test]
fn a_gap_between_roles_is_refuted() {
    let mut k = RawKernel::new(&[("load", 4), ("store", 4)]);
    k.0.roles[1].first_warp = 5;
    let text = k.refuted("S.role-order", 2);
    assert!(
        text.contains("role `store` begins at warp 5, and the preceding roles end before warp 4"),
        "{text}"
    );
}

#[test]
fn more_threads_than_the_target_allows_are_refuted() {
    let text = RawKernel::new(&[("a", 20), ("b", 16)]).refuted("S.threads", 1);
    assert!(
        text.contains("the roles have 1152 threads; a CTA of sm_90a has at most 1024"),
        "{text}"
    );
}
