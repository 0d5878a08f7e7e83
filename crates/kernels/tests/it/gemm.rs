//! GEMM configs: conversion of flags to schedules, and sizes computed by the builder.

use warpline_kernels::gemm::{Choice, Gemm, OperandType, Problem, Schedule};
use warpline_kernels::{Family as _, Fields as _};
use warpline_testkit::kernel::TARGET;

fn problem() -> Problem {
    Problem::new(300, 264, 200, OperandType::Bf16)
}

/// Returns the schedule that `gemm` reads from flags, or its error message.
fn read_schedule(flags: &str) -> String {
    let mut choice = Choice::default();
    let words: Vec<_> = flags.split_whitespace().collect();
    for flag in words.chunks(2) {
        let name = flag[0].trim_start_matches("--").replace('-', "_");
        choice.set(&name, flag[1]).unwrap();
    }
    match Gemm::config(&problem(), &choice, &TARGET) {
        Ok(config) => format!("{:?}", config.schedule),
        Err(e) => e.to_string(),
    }
}

#[test]
fn flags_become_the_options_of_a_schedule() {
    let schedule = read_schedule(
        "--schedule cooperative --consumers 2 --swap-ab true --tile-m 16 --raster hilbert",
    );
    assert_eq!(
        schedule,
        "Cooperative { consumers: 2, operands: Swapped, tiles: Static(Hilbert) }"
    );
    let schedule =
        read_schedule("--schedule cooperative --stream-k true --consumers 1 --tile-m 64 --group 4");
    assert_eq!(
        schedule,
        "StreamK { consumers: 1, swap_ab: false, raster: Grouped(4) }"
    );
    let schedule = read_schedule("--schedule ping-pong --cluster 2x1 --raster dynamic --group 8");
    assert_eq!(schedule, "PingPong { cluster: Rows, tiles: Dynamic(8) }");
}

#[test]
fn flags_that_a_schedule_does_not_have_are_rejected_with_help() {
    for (flags, message) in [
        (
            "--schedule ping-pong --swap-ab true",
            "schedule ping-pong does not support --swap-ab with these options",
        ),
        (
            "--schedule storer --split-k 2",
            "schedule storer does not support --split-k with these options",
        ),
        (
            "--schedule double-buffer --cluster 1x2",
            "schedule double-buffer does not support --cluster with these options",
        ),
        (
            "--schedule cooperative --swap-ab true --cluster 1x2",
            "schedule cooperative does not support --cluster with these options",
        ),
        (
            "--schedule cooperative --split-k 2 --stream-k true",
            "schedule cooperative does not support --split-k with these options",
        ),
        (
            "--schedule cooperative --split-k 2 --raster dynamic",
            "--split-k needs a static tile order, but --raster is dynamic",
        ),
    ] {
        let text = read_schedule(flags);
        let (first, help) = text.split_once("\nhelp: ").unwrap_or((&text, ""));
        assert_eq!(first, message, "{flags}");
        assert!(!help.is_empty(), "{flags}: {text}");
    }
    assert_eq!(
        read_schedule("--schedule two-consumer"),
        "schedule two-consumer needs a gated GEMM\nhelp: use the family dual-gemm, or --schedule cooperative"
    );
    assert_eq!(
        read_schedule("--split-k 3 --exchange cluster"),
        "--split-k is 3; it must be 1, 2, 4 or 8\nhelp: use --split-k 2, or --exchange memory"
    );
    assert_eq!(
        read_schedule("--split-k 65 --exchange memory"),
        "--split-k is 65; --exchange memory supports 1 to 64\nhelp: use --split-k 2"
    );
}

#[test]
fn shared_bytes_of_a_config_match_the_built_kernel() {
    let reduced = Problem {
        bias: true,
        row_sums: true,
        col_sums: true,
        amax: true,
        ..problem()
    };
    let fp8 = Problem::new(40, 512, 512, OperandType::E4m3);
    for p in [problem(), reduced, fp8] {
        for config in Gemm::candidates(&p, &TARGET) {
            let plan = Gemm::plan(&p, &config, &TARGET).unwrap();
            let kernel = &plan.steps[0].kernel;
            assert_eq!(kernel.shared_bytes, config.shared_bytes, "{config:?}");
            assert!(config.shared_bytes <= TARGET.shared_bytes, "{config:?}");
        }
    }
}

#[test]
fn configs_round_trip_through_flags() {
    for config in Gemm::candidates(&problem(), &TARGET) {
        let flags = Choice::from(&config);
        let back = Gemm::fit(&problem(), &Choice::default(), &flags, &TARGET).unwrap();
        assert_eq!(back, config);
    }
    let baseline = Gemm::baseline(&problem(), &Choice::default(), &TARGET).unwrap();
    assert!(matches!(baseline.schedule, Schedule::Cooperative { .. }));
}

/// Returns the number of lines of a file in `src/gemm`.
fn line_count(file: &str) -> usize {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/src/gemm/");
    let text = std::fs::read_to_string(format!("{root}{file}")).unwrap();
    text.lines().count()
}

#[test]
fn the_default_gemm_has_at_most_300_lines_and_each_schedule_at_most_45() {
    let path = [
        "schedule/cooperative.rs",
        "schedule/producer.rs",
        "mainloop/k_major.rs",
        "mainloop/accumulate.rs",
        "epilogue/store.rs",
    ];
    let all: usize = path.into_iter().map(line_count).sum();
    assert!(all <= 300, "{all}");
    for schedule in [
        "cooperative",
        "ping_pong",
        "storer",
        "double_buffer",
        "split_k",
        "split_k_in_memory",
        "stream_k",
        "two_consumer",
    ] {
        let lines = line_count(&format!("schedule/{schedule}.rs"));
        assert!(lines <= 45, "{schedule} has {lines}");
    }
}
