//! Redirected requests: `dual-gemm --dtype nvfp4` is served by `nvfp4-dual-gemm`.

use warpline_kernels::field::FieldKind;
use warpline_kernels::{AnyFamily, AnyWorkload, DeviceKind, Request, registry};
use warpline_testkit::kernel::TARGET;

fn family(name: &str) -> &'static dyn AnyFamily {
    registry().into_iter().find(|f| f.name() == name).unwrap()
}

fn request(flags: &str) -> Request {
    Request::from_flags(flags.split_whitespace()).unwrap()
}

/// Returns the parts of a workload that tools see.
fn visible_parts(work: &dyn AnyWorkload) -> String {
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
fn a_redirected_request_returns_the_same_workload() {
    for flags in [
        "",
        "--m 16 --n 64 --k 64 --schedule warps",
        "--m 40 --n 72 --k 96 --scale-layout block --activations bf16",
        "--m 40 --n 72 --k 96 --consumers 3 --raster hilbert",
    ] {
        for device in [DeviceKind::Cpu, DeviceKind::Gpu] {
            let [by_value, by_name] = [
                ("dual-gemm", format!("--dtype nvfp4 {flags}")),
                ("nvfp4-dual-gemm", flags.to_owned()),
            ]
            .map(|(name, flags)| {
                let (family, request) = (family(name), request(&flags));
                let work = family.workload(&request, device, None, &TARGET).unwrap();
                let candidates = family.candidates(&request, device, &TARGET).unwrap();
                let configs: Vec<_> = candidates.iter().map(|w| w.config()).collect();
                (visible_parts(work.as_ref()), configs)
            });
            assert_eq!(by_value, by_name, "{flags}");
            assert!(by_value.0.starts_with("nvfp4-dual-gemm "), "{flags}");
        }
    }
}

#[test]
fn shared_fields_of_both_families_are_listed_once() {
    let fields = family("dual-gemm").fields(DeviceKind::Cpu);
    let mut names: Vec<_> = fields.iter().map(|field| field.name).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    let layout = fields.get("scale_layout").unwrap();
    assert_eq!(layout.requires.as_deref(), Some("--dtype nvfp4"));
    assert_eq!(fields.get("weight_stride").unwrap().requires, None);
    let dtype = fields.get("dtype").unwrap();
    let FieldKind::Keywords(words) = &dtype.kind else {
        panic!("{dtype:?}");
    };
    let words: Vec<_> = words.iter().map(|word| word.name).collect();
    assert_eq!(words, ["bf16", "f16", "e4m3", "e5m2", "f32", "nvfp4"]);
    assert!(dtype.check("nvfp4").is_ok() && dtype.check("fp16").is_ok());
    assert_eq!(
        dtype.check("fp4").unwrap_err(),
        "bf16, f16, e4m3, e5m2, f32 or nvfp4"
    );
}

#[test]
fn flags_that_the_target_family_does_not_have_are_rejected() {
    let rejected = |flags: &str| {
        let work = family("dual-gemm").workload(&request(flags), DeviceKind::Cpu, None, &TARGET);
        let error = work.err().unwrap();
        let text = error.to_string();
        let first = text.lines().next().unwrap().to_owned();
        assert!(text.contains("\nhelp: "), "{text}");
        (error.code(), first)
    };
    assert_eq!(
        rejected("--scale-layout block"),
        (
            "bad-problem",
            "--scale-layout requires --dtype nvfp4 (the family nvfp4-dual-gemm)".to_owned()
        )
    );
    assert_eq!(
        rejected("--dtype nvfp4 --weight-stride 64"),
        (
            "bad-problem",
            "--weight-stride cannot be combined with --dtype nvfp4: the family nvfp4-dual-gemm has no such field".to_owned()
        )
    );
    assert_eq!(
        rejected("--dtype nvfp4 --tail-n 24"),
        (
            "bad-config",
            "--tail-n cannot be combined with --dtype nvfp4: the family nvfp4-dual-gemm has no such field"
                .to_owned()
        )
    );
}
