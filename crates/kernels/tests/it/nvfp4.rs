//! Configs of NVFP4: flat flags, and the schedules that they are read into.

use warpline_kernels::nvfp4_dual_gemm::{Choice, Nvfp4DualGemm, Problem};
use warpline_kernels::{AnyFamily, Family, Fields, Place, Request};
use warpline_testkit::kernel::TARGET;

#[test]
fn a_config_that_is_written_down_is_read_as_itself() {
    let cases = Nvfp4DualGemm.cases(&TARGET);
    let cases = cases.into_iter().map(|case| case.unwrap());
    let tuned = Nvfp4DualGemm.candidates(&Request::default(), Place::Gpu, &TARGET);
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
fn flags_that_do_not_go_together_are_rejected_with_help() {
    for (flags, sentence) in [
        (
            "--form warps --tile-k 256",
            "form warps has tiles of 32 x 512, 32 x 1024, 64 x 256, 64 x 512, 64 x 1024 (--tile-n x --tile-k), not 32 x 256",
        ),
        (
            "--form warps --consumers 3",
            "form warps has 8 warps that multiply, which are 2 warpgroups, not 3",
        ),
        (
            "--form dequantiser --consumers 3",
            "form dequantiser has --tile-k 64 and 1 or 2 consumers, not 64 and 3",
        ),
        (
            "--tile-k 256 --consumers 1",
            "2 to 4 consumers take slots of --tile-k 256 in turn, not 1",
        ),
        (
            "--consumers 4 --math-registers 128",
            "registers are moved where 2 or 3 consumers have outputs of their own",
        ),
        (
            "--consumers 2 --tile-k 64 --tile-n 32",
            "a tile of 2 consumers with --tile-k 64 has 64 columns, not 32",
        ),
        (
            "--order hilbert --group 4",
            "--group requires --order grouped (selected: hilbert)",
        ),
        (
            "--consumers 4 --tile-k 64 --tile-m 128",
            "--tile-m of 4 consumers with --tile-k 64 is a multiple of 16 up to 64, not 128",
        ),
        (
            "--split-k 4 --tile-m 16",
            "each CTA of --split-k 4 finishes a multiple of 8 tokens of a tile, not 4",
        ),
        (
            "--split-k 3",
            "1, 2 or 4 CTAs split the sums of a tile, not 3",
        ),
        ("--stages 33", "a ring has 2 to 32 stages here, not 33"),
        (
            "--split-k 2 --ctas 3",
            "a grid has a multiple of 2 CTAs (whole clusters), at least one, not 3",
        ),
        (
            "--stages 4294967295",
            "a ring has 2 to 32 stages here, not 4294967295",
        ),
    ] {
        let request = Request::from_flags(flags.split_whitespace()).unwrap();
        let work = Nvfp4DualGemm.work(&request, Place::Gpu, None, &TARGET);
        let text = work.err().unwrap().to_string();
        let (said, help) = text
            .split_once("\nhelp: ")
            .unwrap_or_else(|| panic!("{text}"));
        assert_eq!(said, sentence, "{flags}");
        assert!(!help.is_empty(), "{flags}");
    }
}

#[test]
fn stages_that_do_not_fit_are_counted_by_the_builder() {
    let flags = "--consumers 2 --tile-k 64 --tile-m 256 --split-k 1";
    let ask = |flags: String| {
        let request = Request::from_flags(flags.split_whitespace()).unwrap();
        Nvfp4DualGemm.work(&request, Place::Gpu, None, &TARGET)
    };
    let fits = ask(flags.to_owned()).unwrap();
    let stages = fits.config()["stages"].as_u64().unwrap();
    let kernel = &fits.plan(&TARGET).unwrap().steps.pop().unwrap().kernel;
    assert!(kernel.shared_bytes <= TARGET.shared_bytes);
    let text = ask(format!("{flags} --stages {}", stages + 1))
        .err()
        .unwrap();
    let text = text.to_string();
    assert!(
        text.contains("bytes of shared memory; sm_90a has 232448"),
        "{text}"
    );
    assert!(text.contains("\nhelp: "), "{text}");
}
