//! Every check alone, and the checklist of the families.

mod checks;
mod families;

#[test]
fn every_check_is_in_the_table_of_codes() {
    for check in warpline_lint::checks::ALL {
        assert!(warpline_check::Rule::find(check).is_some(), "{check}");
    }
}
