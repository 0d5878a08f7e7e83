//! Requests to one family that another one serves.

use warpline_kernels::field::Kind;
use warpline_kernels::{AnyFamily, AnyWork, Place, Request, registry};
use warpline_testkit::kernel::TARGET;

fn family(name: &str) -> &'static dyn AnyFamily {
    registry().into_iter().find(|f| f.name() == name).unwrap()
}

fn request(flags: &str) -> Request {
    Request::from_flags(flags.split_whitespace()).unwrap()
}

/// All that tools see of a piece of work.
fn seen(work: &dyn AnyWork) -> String {
    let steps = work.plan(&TARGET).unwrap().steps;
    let programs: Vec<_> = steps.iter().map(|s| s.kernel.program_hash()).collect();
    format!(
        "{} {} {} {programs:?}",
        work.family(),
        work.problem(),
        work.config()
    )
}

#[test]
fn a_request_by_the_value_of_a_field_is_the_same_work() {
    for flags in [
        "",
        "--m 16 --n 64 --k 64 --form warps",
        "--m 40 --n 72 --k 96 --scale-layout block --activations bf16",
        "--m 40 --n 72 --k 96 --consumers 3 --order hilbert",
    ] {
        for place in [Place::Cpu, Place::Gpu] {
            let [by_value, by_name] = [
                ("dual-gemm", format!("--dtype nvfp4 {flags}")),
                ("nvfp4-dual-gemm", flags.to_owned()),
            ]
            .map(|(name, flags)| {
                let (family, request) = (family(name), request(&flags));
                let work = family.work(&request, place, None, &TARGET).unwrap();
                let candidates = family.candidates(&request, place, &TARGET).unwrap();
                let configs: Vec<_> = candidates.iter().map(|w| w.config()).collect();
                (seen(work.as_ref()), configs)
            });
            assert_eq!(by_value, by_name, "{flags}");
            assert!(by_value.0.starts_with("nvfp4-dual-gemm "), "{flags}");
        }
    }
}

#[test]
fn the_fields_of_both_are_offered_once() {
    let fields = family("dual-gemm").fields(Place::Cpu);
    let mut names: Vec<_> = fields.iter().map(|field| field.name).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
    let layout = fields.get("scale_layout").unwrap();
    assert_eq!(layout.requires.as_deref(), Some("--dtype nvfp4"));
    assert_eq!(fields.get("weight_stride").unwrap().requires, None);
    let dtype = fields.get("dtype").unwrap();
    let Kind::Words(words) = &dtype.kind else {
        panic!("{dtype:?}");
    };
    let words: Vec<_> = words.iter().map(|word| word.name).collect();
    assert_eq!(words, ["bf16", "f16", "e4m3", "e5m2", "nvfp4"]);
    assert!(dtype.check("nvfp4").is_ok() && dtype.check("fp16").is_ok());
    assert_eq!(
        dtype.check("fp4").unwrap_err(),
        "bf16, f16, e4m3, e5m2 or nvfp4"
    );
}

#[test]
fn flags_that_the_meant_family_does_not_have_are_rejected() {
    let said = |flags: &str| {
        let work = family("dual-gemm").work(&request(flags), Place::Cpu, None, &TARGET);
        let error = work.err().unwrap();
        let text = error.to_string();
        let first = text.lines().next().unwrap().to_owned();
        assert!(text.contains("\nhelp: "), "{text}");
        (error.code(), first)
    };
    assert_eq!(
        said("--scale-layout block"),
        (
            "bad-problem",
            "--scale-layout requires --dtype nvfp4 (the family nvfp4-dual-gemm)".to_owned()
        )
    );
    assert_eq!(
        said("--dtype nvfp4 --weight-stride 64"),
        (
            "bad-problem",
            "--weight-stride does not go with --dtype nvfp4: the family nvfp4-dual-gemm has no such field".to_owned()
        )
    );
    assert_eq!(
        said("--dtype nvfp4 --tail-n 24"),
        (
            "bad-config",
            "--tail-n does not go with --dtype nvfp4: the family nvfp4-dual-gemm has no such field"
                .to_owned()
        )
    );
}
