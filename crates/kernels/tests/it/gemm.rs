//! Configs of GEMMs: flags that go together, and sizes that are the builder's.

use warpline_kernels::gemm::{Choice, Factor, Gemm, Problem, Schedule};
use warpline_kernels::{Family as _, Fields as _};
use warpline_testkit::kernel::TARGET;

fn problem() -> Problem {
    Problem::new(300, 264, 200, Factor::Bf16)
}

/// What `gemm` says to flags.
fn said(flags: &str) -> String {
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
    let schedule = said("--form cooperative --consumers 2 --swap true --tile-m 16 --order hilbert");
    assert_eq!(
        schedule,
        "Cooperative { consumers: 2, operands: Swapped, tiles: Static(Hilbert) }"
    );
    let schedule = said("--form cooperative --stream-k true --consumers 1 --tile-m 64 --group 4");
    assert_eq!(
        schedule,
        "StreamK { consumers: 1, swap_ab: false, raster: Grouped(4) }"
    );
    let schedule = said("--form ping-pong --cluster 2x1 --order dynamic --group 8");
    assert_eq!(schedule, "PingPong { cluster: Rows, tiles: Dynamic(8) }");
}

#[test]
fn flags_that_a_schedule_does_not_have_are_rejected_with_help() {
    for (flags, sentence) in [
        (
            "--form ping-pong --swap true",
            "form ping-pong has no --swap here",
        ),
        (
            "--form storer --split-k 2",
            "form storer has no --split-k here",
        ),
        (
            "--form double-buffer --cluster 1x2",
            "form double-buffer has no --cluster here",
        ),
        (
            "--form cooperative --swap true --cluster 1x2",
            "form cooperative has no --cluster here",
        ),
        (
            "--form cooperative --split-k 2 --stream-k true",
            "form cooperative has no --split-k here",
        ),
        (
            "--form cooperative --split-k 2 --order dynamic",
            "with --split-k a CTA knows its tiles beforehand: not --order dynamic",
        ),
    ] {
        let text = said(flags);
        let (first, help) = text.split_once("\nhelp: ").unwrap_or((&text, ""));
        assert_eq!(first, sentence, "{flags}");
        assert!(!help.is_empty(), "{flags}: {text}");
    }
    assert_eq!(
        said("--form two-consumer"),
        "form two-consumer has an operand for each consumer: it is for dual-gemm"
    );
    assert_eq!(
        said("--split-k 3"),
        "1 or 2 CTAs split the sums of a tile, not 3"
    );
}

#[test]
fn sizes_are_those_of_the_kernel_that_is_built() {
    let reduced = Problem {
        bias: true,
        row_sums: true,
        col_sums: true,
        amax: true,
        ..problem()
    };
    let eight = Problem::new(40, 512, 512, Factor::E4m3);
    for p in [problem(), reduced, eight] {
        for config in Gemm::candidates(&p, &TARGET) {
            let plan = Gemm::plan(&p, &config, &TARGET).unwrap();
            let kernel = &plan.steps[0].kernel;
            assert_eq!(kernel.shared_bytes, config.shared_bytes, "{config:?}");
            assert!(config.shared_bytes <= TARGET.shared_bytes, "{config:?}");
        }
    }
}

#[test]
fn a_config_is_read_back_from_its_flags() {
    for config in Gemm::candidates(&problem(), &TARGET) {
        let flags = Choice::from(&config);
        let back = Gemm::fit(&problem(), &Choice::default(), &flags, &TARGET).unwrap();
        assert_eq!(back, config);
    }
    let one = Gemm::baseline(&problem(), &Choice::default(), &TARGET).unwrap();
    assert!(matches!(one.schedule, Schedule::Cooperative { .. }));
}

/// Lines of a file of the GEMM.
fn lines(file: &str) -> usize {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/src/gemm/");
    let text = std::fs::read_to_string(format!("{root}{file}")).unwrap();
    text.lines().count()
}

#[test]
fn the_default_gemm_is_read_in_300_lines_and_a_schedule_in_45() {
    let path = [
        "schedule/cooperative.rs",
        "schedule/producer.rs",
        "mainloop/k_major.rs",
        "mainloop/accumulate.rs",
        "epilogue/store.rs",
    ];
    let all: usize = path.into_iter().map(lines).sum();
    assert!(all <= 300, "{all}");
    for schedule in [
        "cooperative",
        "ping_pong",
        "storer",
        "double_buffer",
        "split_k",
        "stream_k",
        "two_consumer",
    ] {
        let lines = lines(&format!("schedule/{schedule}.rs"));
        assert!(lines <= 45, "{schedule} has {lines}");
    }
}
