//! Tests of the parser on stored logs of ptxas 13.0.88, and on the same modules assembled again.

use super::*;

/// A module and its log from ptxas 13.0.88 with `-v -arch=sm_90a`.
macro_rules! sample {
    ($name:literal) => {
        (
            include_str!(concat!("samples/", $name, ".ptx")),
            include_str!(concat!("samples/", $name, ".log")),
        )
    };
}

fn codes(report: &PtxasReport) -> Vec<(&str, Option<u32>)> {
    let advisories = report.advisories.iter();
    advisories.map(|a| (a.code.as_str(), a.line)).collect()
}

/// Assembles a module and compares the report with that of the stored log.
fn assemble_and_compare((ptx, log): (&str, &str)) -> Assembled {
    let ptxas = Ptxas::find().unwrap();
    let made = ptxas.assemble(ptx, "sm_90a").unwrap();
    assert_eq!(&made.cubin[..4], b"\x7fELF");
    assert!(made.log.contains("ptxas info"), "{}", made.log);
    // Another version, selected with $PTXAS, may report other register counts.
    if ptxas.version == VERSION {
        assert_eq!(made.report, PtxasReport::parse(log).unwrap());
    }
    made
}

#[test]
fn a_kernel_reports_its_resources() {
    let report = assemble_and_compare(sample!("plain")).report;
    let (_, log) = sample!("plain");
    assert!(report.advisories.is_empty());
    assert_eq!(
        PtxasReport::parse(log).unwrap().kernels,
        [KernelReport {
            name: "add_one".to_owned(),
            registers: 10,
            barriers: 2,
            shared_bytes: 256,
            ..KernelReport::default()
        }]
    );
}

#[test]
fn constant_memory_is_summed_over_banks() {
    let report = PtxasReport::parse(include_str!("samples/plain_sm_80.log")).unwrap();
    assert_eq!(report.kernels[0].cmem_bytes, Some(360));
    let two_banks = "ptxas info    : Compiling entry function 'f' for 'sm_80'\n\
               ptxas info    : Function properties for f\n    \
               0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
               ptxas info    : Used 8 registers, used 0 barriers, 360 bytes cmem[0], 8 bytes cmem[2]\n";
    assert_eq!(
        PtxasReport::parse(two_banks).unwrap().kernels[0].cmem_bytes,
        Some(368)
    );
}

#[test]
fn setmaxnreg_without_an_entry_register_count_is_an_error() {
    let report = assemble_and_compare(sample!("setmaxnreg")).report;
    assert_eq!(codes(&report), [("C7508", None)]);
    let advisory = report.errors().next().unwrap();
    assert!(
        advisory
            .text
            .ends_with("unable to determine register count at entry."),
        "{advisory:?}"
    );
}

#[test]
fn an_accumulator_access_between_wgmmas_is_an_error() {
    let report = assemble_and_compare(sample!("wgmma")).report;
    assert_eq!(codes(&report), [("C7519", Some(23)), ("C7517", Some(22))]);
    assert_eq!(report.errors().count(), 2);
}

#[test]
fn spills_are_reported() {
    let made = assemble_and_compare(sample!("spill")).report;
    assert!(made.kernels[0].spill_store_bytes > 0);
    let (_, log) = sample!("spill");
    let report = PtxasReport::parse(log).unwrap();
    let entry = report.kernel("spill").unwrap();
    assert_eq!(entry.registers, 24);
    assert_eq!(entry.stack_bytes, 232);
    assert_eq!(entry.spill_store_bytes, 228);
    assert_eq!(entry.spill_load_bytes, 228);
}

#[test]
fn two_kernels_are_reported_separately() {
    let (_, log) = sample!("two");
    let report = PtxasReport::parse(log).unwrap();
    assert_eq!(report.kernels.len(), 2);
    assert_eq!(report.kernel("roles").unwrap().registers, 8);
    assert_eq!(report.kernel("add_one").unwrap().shared_bytes, 256);
    assert_eq!(report.kernel("roles").unwrap().shared_bytes, 0);
    assemble_and_compare(sample!("two"));
}

#[test]
fn a_device_function_does_not_overwrite_the_kernel() {
    let report = assemble_and_compare(sample!("device_function")).report;
    assert_eq!(report.kernels.len(), 1);
    let (_, log) = sample!("device_function");
    let report = PtxasReport::parse(log).unwrap();
    assert_eq!(report.kernel("lookup").unwrap().stack_bytes, 128);
}

#[test]
fn a_rejected_module_names_the_line() {
    let (ptx, log) = sample!("syntax");
    let stored = error::diagnostics(log);
    assert_eq!(
        stored,
        [
            PtxasDiagnostic {
                line: Some(19),
                text: "Unknown modifier '.snyc'".to_owned()
            },
            PtxasDiagnostic {
                line: Some(19),
                text: "Barrier modifier required for instruction 'bar'".to_owned()
            },
        ]
    );
    let error = Ptxas::find().unwrap().assemble(ptx, "sm_90a").unwrap_err();
    let message = error.to_string();
    assert!(
        message.contains("line 19: Unknown modifier '.snyc'"),
        "{message}"
    );
    let PtxasError::Rejected { diagnostics, .. } = error else {
        panic!("{error:?}");
    };
    assert_eq!(diagnostics, stored);
}

#[test]
fn a_fatal_line_with_a_code_is_a_diagnostic_not_an_advisory() {
    let (ptx, log) = sample!("dec");
    let stored = error::diagnostics(log);
    assert_eq!(stored.len(), 1);
    assert_eq!(stored[0].line, Some(13));
    assert!(stored[0].text.starts_with("(C7406)"), "{stored:?}");
    assert!(PtxasReport::parse(log).unwrap().advisories.is_empty());
    let error = Ptxas::find().unwrap().assemble(ptx, "sm_90a").unwrap_err();
    assert!(error.to_string().contains("line 13: (C7406)"), "{error}");
}

#[test]
fn an_unknown_architecture_is_named_in_the_error() {
    let (ptx, _) = sample!("plain");
    let error = Ptxas::find().unwrap().assemble(ptx, "sm_999").unwrap_err();
    assert!(error.to_string().contains("sm_999"), "{error}");
}

#[test]
fn a_missing_number_is_an_error() {
    let (_, log) = sample!("plain");
    for (what, needle) in [("the registers", "Used"), ("the spills", "stack frame")] {
        let other_lines = log.lines().filter(|line| !line.contains(needle));
        let log = other_lines.collect::<Vec<_>>().join("\n");
        let message = PtxasReport::parse(&log).unwrap_err().to_string();
        assert!(message.contains("add_one"), "{message}");
        assert!(message.contains(what), "{message}");
    }
}

#[test]
fn codes_of_miscompiled_kernels_are_errors() {
    let is_error = |code: &str| {
        let advisory = Advisory {
            code: code.to_owned(),
            line: None,
            text: String::new(),
        };
        advisory.is_error()
    };
    for number in std::iter::once(7602).chain(7504..=7519) {
        assert!(is_error(&format!("C{number}")), "{number}");
    }
    for code in ["C7503", "C7520", "C7601", "C7406", "7508", "C", ""] {
        assert!(!is_error(code), "{code}");
    }
}

#[test]
fn executables_other_than_ptxas_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let error = Ptxas::at(&folder.path().join("ptxas")).unwrap_err();
    assert!(matches!(error, PtxasError::Run { .. }), "{error}");
    let error = Ptxas::at(env!("CARGO").as_ref()).unwrap_err();
    assert!(matches!(error, PtxasError::NoVersion { .. }), "{error}");
}
