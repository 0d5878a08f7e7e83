//! NVFP4 configs: conversion of flags to schedules.

use warpline_kernels::nvfp4_dual_gemm::{Choice, Nvfp4DualGemm, Problem};
use warpline_kernels::{AnyFamily, DeviceKind, Family, Fields, Request};
use warpline_testkit::kernel::TARGET;

#[test]
fn configs_round_trip_through_json() {
    let cases = Nvfp4DualGemm.cases(&TARGET);
    let cases = cases.into_iter().map(|case| case.unwrap());
    let tuned = Nvfp4DualGemm.candidates(&Request::default(), DeviceKind::Gpu, &TARGET);
    for work in cases.chain(tuned.unwrap()) {
        let config = work.config();
        let mut choice = Choice::default();
        choice.set_json(&config).unwrap();
        let mut problem = Problem::new(0, 0, 0);
        problem.set_json(&work.problem()).unwrap();
        let read = Nvfp4DualGemm::baseline(&problem, &choice, &TARGET).unwrap();
        assert_eq!(Choice::from(&read).json(), config);
    }
}

#[test]
fn conflicting_flags_are_rejected_with_help() {
    for (flags, message) in [
        (
            "--schedule warps --tile-k 256",
            "--tile-n x --tile-k is 32x256; schedule warps supports 32x512, 32x1024, 64x256, 64x512, 64x1024",
        ),
        (
            "--schedule warps --consumers 3",
            "--consumers is 3; schedule warps has 2 (8 multiplying warps)",
        ),
        (
            "--schedule dequantizer --consumers 3",
            "schedule dequantizer needs --tile-k 64 and 1 or 2 consumers (selected: --tile-k 64 --consumers 3)",
        ),
        (
            "--tile-k 256 --consumers 1",
            "--tile-k 256 needs 2 to 4 consumers (selected: 1)",
        ),
        (
            "--consumers 4 --math-registers 128",
            "register budgets need 2 or 3 consumers with outputs of their own",
        ),
        (
            "--consumers 2 --tile-k 64 --tile-n 32",
            "--tile-n is 32; 2 consumers with --tile-k 64 have 64 columns",
        ),
        (
            "--raster hilbert --group 4",
            "--group requires --raster grouped (selected: hilbert)",
        ),
        (
            "--consumers 4 --tile-k 64 --tile-m 128",
            "--tile-m is 128; 4 consumers with --tile-k 64 support multiples of 16 up to 64",
        ),
        (
            "--split-k 4 --tile-m 16",
            "--tile-m is 16; --split-k 4 needs a multiple of 32 (8 tokens per CTA)",
        ),
        ("--split-k 3", "--split-k is 3; it must be 1, 2 or 4"),
        ("--stages 33", "--stages is 33; it must be 2 to 32"),
        (
            "--split-k 2 --ctas 3",
            "--ctas is 3; it must be a positive multiple of 2 (whole clusters)",
        ),
        (
            "--stages 4294967295",
            "--stages is 4294967295; it must be 2 to 32",
        ),
    ] {
        let request = Request::from_flags(flags.split_whitespace()).unwrap();
        let work = Nvfp4DualGemm.workload(&request, DeviceKind::Gpu, None, &TARGET);
        let text = work.err().unwrap().to_string();
        let (first, help) = text
            .split_once("\nhelp: ")
            .unwrap_or_else(|| panic!("{text}"));
        assert_eq!(first, message, "{flags}");
        assert!(!help.is_empty(), "{flags}");
    }
}

#[test]
fn stages_that_exceed_shared_memory_are_rejected() {
    let flags = "--consumers 2 --tile-k 64 --tile-m 256 --split-k 1";
    let workload = |flags: String| {
        let request = Request::from_flags(flags.split_whitespace()).unwrap();
        Nvfp4DualGemm.workload(&request, DeviceKind::Gpu, None, &TARGET)
    };
    let fits = workload(flags.to_owned()).unwrap();
    let stages = fits.config()["stages"].as_u64().unwrap();
    let kernel = &fits.plan(&TARGET).unwrap().steps.pop().unwrap().kernel;
    assert!(kernel.shared_bytes <= TARGET.shared_bytes);
    let text = workload(format!("{flags} --stages {}", stages + 1))
        .err()
        .unwrap();
    let text = text.to_string();
    assert!(
        text.contains("bytes of shared memory, but sm_90a has 232448"),
        "{text}"
    );
    assert!(text.contains("\nhelp: "), "{text}");
}
