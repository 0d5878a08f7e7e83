//! Autotuning: measurement, cache and lookup. With the stub, every launch takes 1.5 ms and writes
//! nothing.

use crate::stub_driver::harness::{cache_dir, calls, compilations, with_driver};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use warpline::cuda::Stream;
use warpline::kernels::vector_add::{Choice, FloatType, Problem, VectorAdd};
use warpline::kernels::{AnyWorkload, Workload};
use warpline::ops::{Call, TensorView};
use warpline::tune::{CandidateOutcome, TuneCache, TuneKey, TuneStage, notices, select};
use warpline::{DType, Device, TuneOptions, prepare, tune};

const ENOUGH_MEMORY: &str = "free=999999999 l2=1048576";

/// Returns an empty vector addition, whose result passes without a kernel.
fn empty_sum(device: &Device) -> Workload<VectorAdd> {
    sum(0, device)
}

fn sum(n: u64, device: &Device) -> Workload<VectorAdd> {
    let dtype = FloatType::F32;
    Workload::new(Problem { n, dtype }, &Choice::default(), &device.target()).unwrap()
}

fn entries() -> Vec<PathBuf> {
    let listed = TuneCache::from_env().list().unwrap();
    listed.into_iter().map(|l| l.path).collect()
}

#[test]
fn a_winner_is_cached_in_the_process_and_on_disk() {
    with_driver(
        "tune::a_winner_is_cached_in_the_process_and_on_disk",
        ENOUGH_MEMORY,
        || {
            let device = Device::cuda(0).unwrap();
            let work = empty_sum(&device);
            let stages = Arc::new(Mutex::new(Vec::new()));
            let mut options = TuneOptions::default();
            let recorded = stages.clone();
            options.progress = Some(Arc::new(move |stage| {
                recorded.lock().unwrap().push(stage.clone());
            }));
            let tuned = tune(&work, &device, &options).unwrap();
            // All candidates take the same time, so the heuristic's config wins.
            assert_eq!(tuned.config, AnyWorkload::config(&work));
            assert_eq!((tuned.speedup, tuned.cached_at.as_ref()), (Some(1.0), None));
            assert!((tuned.median_s - 1.5e-3).abs() < 1e-9);
            assert!(tuned.candidates.len() > 20 && tuned.candidates[0].from_heuristic);
            assert_eq!(tuned.candidates[0].outcome, CandidateOutcome::Winner);
            let file = tuned.cache_file.unwrap();
            assert!(file.starts_with(cache_dir().join("tune")) && file.is_file());

            let stages = stages.lock().unwrap().clone();
            let total = tuned.candidates.len();
            assert_eq!(stages[0], TuneStage::Building { done: 0, total });
            assert!(stages.contains(&TuneStage::Building { done: total, total }));
            let last = [TuneStage::Comparing, TuneStage::Confirming];
            assert_eq!(stages[stages.len() - 2..], last);

            let (again, called) = calls(|| tune(&work, &device, &options).unwrap());
            assert!(again.cached_at.is_some() && again.candidates.is_empty());
            assert_eq!(again.config, tuned.config);
            assert!(!called.contains("cuLaunchKernelEx"), "{called}");

            // A new device handle reads the cache from disk.
            drop(device);
            let device = Device::cuda(0).unwrap();
            assert!(tune(&work, &device, &options).unwrap().cached_at.is_some());
            options.retune = true;
            let retuned = tune(&work, &device, &options).unwrap();
            assert!(retuned.cached_at.is_none() && retuned.candidates.len() == total);
            assert_eq!(entries(), [file]);
            let (selected, is_tuned) = select(Box::new(work), &device, true).unwrap();
            assert!(is_tuned && selected.config() == tuned.config);
            assert_eq!(notices(), [""; 0]);
        },
    );
}

#[test]
fn a_wrong_result_is_never_cached() {
    with_driver(
        "tune::a_wrong_result_is_never_cached",
        ENOUGH_MEMORY,
        || {
            let device = Device::cuda(0).unwrap();
            let error = tune(&sum(1000, &device), &device, &TuneOptions::default()).unwrap_err();
            let text = error.to_string();
            let start = "vector-add could not be tuned: all ";
            assert!(text.starts_with(start), "{text}");
            assert!(text.contains("1000 of 1000 elements are wrong"), "{text}");
            assert_eq!((error.code(), error.exit_code()), ("not-tuned", 1));
            assert!(entries().is_empty());
        },
    );
}

#[test]
fn without_a_writable_folder_the_winner_is_valid_for_this_process() {
    with_driver(
        "tune::without_a_writable_folder_the_winner_is_valid_for_this_process",
        ENOUGH_MEMORY,
        || {
            fs::create_dir_all(cache_dir()).unwrap();
            fs::write(cache_dir().join("tune"), "no folder").unwrap();
            let device = Device::cuda(0).unwrap();
            let work = empty_sum(&device);
            let tuned = tune(&work, &device, &TuneOptions::default()).unwrap();
            assert!(tuned.cache_file.is_none());
            let text = notices().join("\n");
            assert!(text.contains("cannot be locked") && text.contains("could not be written"));
            let again = tune(&work, &device, &TuneOptions::default()).unwrap();
            assert!(again.cached_at.is_some(), "cached in this process");
        },
    );
}

#[test]
fn the_cpu_executor_cannot_be_tuned() {
    let device = Device::cpu();
    let error = tune(&empty_sum(&device), &device, &TuneOptions::default()).unwrap_err();
    assert_eq!(error.code(), "no-gpu");
}

const X: u64 = 1 << 40;
const Y: u64 = 1 << 41;

fn softmax(rows: u64) -> Call {
    let view = |address| TensorView::dense(DType::Bf16, &[rows, 1024], address);
    let call = Call::new("softmax").unwrap().tensor("x", view(X)).unwrap();
    call.out(view(Y))
}

/// Returns a softmax workload and its candidate with a work queue, which is the only one with a
/// workspace.
fn with_queue(rows: u64, device: &Device) -> (Box<dyn AnyWorkload>, Value, Vec<String>) {
    let op = warpline::ops::all()
        .iter()
        .find(|op| op.signature.name == "softmax");
    let view = |address| TensorView::dense(DType::Bf16, &[rows, 1024], address);
    let args = [view(X).into(), (-1i64).into(), false.into()];
    let target = device.target();
    let work = op
        .unwrap()
        .workload(&args, &[view(Y)], &target)
        .unwrap()
        .unwrap();
    let all = work.alternatives(&target).unwrap();
    let other = all
        .iter()
        .find(|w| w.config()["schedule"] == "specialized")
        .unwrap();
    let prepared = prepare(other.as_ref(), &target).unwrap();
    let programs = prepared.steps.iter().map(|s| s.hash.to_string()).collect();
    let config = other.config();
    (work, config, programs)
}

/// Imports these configs into the cache, best first.
fn import(work: &dyn AnyWorkload, device: &Device, ranked: &[(Value, Vec<String>)]) {
    let ranked_json = |(config, programs): &(Value, Vec<String>)| json!({ "config": config, "programs": programs, "median_s": 1e-5, "spread": 0.0 });
    let entry = json!({
        "format": "warpline tuned config",
        "version": 1,
        "key": TuneKey::new(work, device, true).unwrap(),
        "problem": work.problem(),
        "ranked": ranked.iter().map(ranked_json).collect::<Vec<_>>(),
        "candidates": 2,
        "tuned_at": "2026-11-16T09:30:00Z",
        "tuned_by": "a test",
    });
    let all = json!({ "format": "warpline tuned configs", "version": 1, "entries": [entry] });
    let file = cache_dir().join("all.json");
    fs::create_dir_all(cache_dir()).unwrap();
    fs::write(&file, all.to_string()).unwrap();
    let report = TuneCache::from_env().import(&file).unwrap();
    assert_eq!(report.added, 1, "{report:?}");
}

#[test]
fn calls_use_the_cached_winner_for_every_problem_of_its_bucket() {
    with_driver(
        "tune::calls_use_the_cached_winner_for_every_problem_of_its_bucket",
        "",
        || {
            let device = Device::cuda(0).unwrap();
            let stream = Stream::new(device.context().unwrap()).unwrap();
            let workspace = |rows| softmax(rows).plan(&device, &stream).unwrap().workspace();
            let (work, config, programs) = with_queue(60, &device);
            import(work.as_ref(), &device, &[(config, programs)]);
            assert!(workspace(60) > 0 && workspace(33) > 0, "rows up to 64");
            assert_eq!(workspace(65), 0, "the next bucket");
            assert_eq!(notices(), [""; 0]);
            // An unaligned address belongs to another class.
            let unaligned = |address| TensorView::dense(DType::Bf16, &[60, 1024], address);
            let call = Call::new("softmax").unwrap();
            let call = call
                .tensor("x", unaligned(X + 2))
                .unwrap()
                .out(unaligned(Y));
            assert_eq!(call.plan(&device, &stream).unwrap().workspace(), 0);
        },
    );
}

#[test]
fn a_stale_entry_is_skipped_with_one_notice() {
    with_driver("tune::a_stale_entry_is_skipped_with_one_notice", "", || {
        let device = Device::cuda(0).unwrap();
        let stream = Stream::new(device.context().unwrap()).unwrap();
        let (work, config, _) = with_queue(60, &device);
        import(
            work.as_ref(),
            &device,
            &[(config, vec!["of another build".into()])],
        );
        for rows in [60, 50] {
            let planned = softmax(rows).plan(&device, &stream).unwrap();
            assert_eq!(planned.workspace(), 0);
        }
        let notices = notices();
        assert_eq!(notices.len(), 1, "{notices:?}");
        assert!(notices[0].starts_with("a tuned config of softmax is stale and skipped"));
    });
}

#[test]
fn a_failing_winner_is_skipped_with_a_notice() {
    with_driver(
        "tune::a_failing_winner_is_skipped_with_a_notice",
        "",
        || {
            let device = Device::cuda(0).unwrap();
            let stream = Stream::new(device.context().unwrap()).unwrap();
            let (work, config, programs) = with_queue(60, &device);
            let mut bad = config.clone();
            bad["threads"] = json!(7);
            import(work.as_ref(), &device, &[(bad, vec![]), (config, programs)]);
            let planned = softmax(60).plan(&device, &stream).unwrap();
            assert!(planned.workspace() > 0, "the runner-up");
            let notices = notices();
            let start = "a cached config of softmax failed and is skipped: ";
            assert!(
                notices.len() == 1 && notices[0].starts_with(start),
                "{notices:?}"
            );
            assert!(notices[0].contains("not 7 (selected"), "{notices:?}");
        },
    );
}

#[test]
fn a_corrupt_entry_breaks_no_call() {
    with_driver("tune::a_corrupt_entry_breaks_no_call", "", || {
        let device = Device::cuda(0).unwrap();
        let stream = Stream::new(device.context().unwrap()).unwrap();
        let (work, config, programs) = with_queue(60, &device);
        import(work.as_ref(), &device, &[(config, programs)]);
        let path = entries().pop().unwrap();
        let text = fs::read(&path).unwrap();
        fs::write(&path, &text[..text.len() / 2]).unwrap();
        let planned = softmax(60).plan(&device, &stream).unwrap();
        assert_eq!(planned.workspace(), 0);
        let notices = notices();
        assert!(
            notices.len() == 1 && notices[0].contains("is skipped"),
            "{notices:?}"
        );
    });
}

#[test]
fn tuning_is_rejected_during_capture() {
    with_driver(
        "tune::tuning_is_rejected_during_capture",
        ENOUGH_MEMORY,
        || {
            let device = Device::cuda(0).unwrap();
            let stream = Stream::new(device.context().unwrap()).unwrap();
            let options = TuneOptions::default();
            let result = stream.capture(|s| softmax(4).tune(&device, s, &options).map(drop));
            let error = result.unwrap_err();
            assert_eq!((error.code(), error.exit_code()), ("tune-in-capture", 1));
            let start = "softmax cannot be tuned during stream capture";
            assert!(error.to_string().starts_with(start));
            // An empty output is not tuned.
            let none = softmax(0).tune(&device, &stream, &options).unwrap();
            assert!(none.is_none());
        },
    );
}

#[test]
fn calls_never_tune_by_default() {
    with_driver("tune::calls_never_tune_by_default", "", || {
        let device = Device::cuda(0).unwrap();
        let stream = Stream::new(device.context().unwrap()).unwrap();
        let compiled = compilations(|| drop(softmax(60).plan(&device, &stream).unwrap()));
        assert_eq!(compiled, 1);
        assert!(!cache_dir().join("tune").exists(), "and writes no cache");
    });
}

/// Prints the host cost of a call with a cached plan before its launch. The plan includes the tuned
/// config. Command: `cargo test -p warpline --release --test it -- --ignored --nocapture
/// stub_driver::tune::call_cost`.
#[test]
#[ignore = "prints times"]
fn call_cost() {
    with_driver("tune::call_cost", "", || {
        let device = Device::cuda(0).unwrap();
        let stream = Stream::new(device.context().unwrap()).unwrap();
        let call = softmax(60);
        call.plan(&device, &stream).unwrap();
        let (start, n) = (std::time::Instant::now(), 200_000);
        for _ in 0..n {
            std::hint::black_box(call.cached_plan(&device));
        }
        let ns = start.elapsed().as_secs_f64() * 1e9 / f64::from(n);
        eprintln!("a call with a cached plan: {ns:.0} ns");
        let work = with_queue(60, &device).0;
        let start = std::time::Instant::now();
        for _ in 0..n {
            std::hint::black_box(TuneKey::new(work.as_ref(), &device, true));
        }
        let ns = start.elapsed().as_secs_f64() * 1e9 / f64::from(n);
        eprintln!("the key of a new call: {ns:.0} ns");
    });
}
