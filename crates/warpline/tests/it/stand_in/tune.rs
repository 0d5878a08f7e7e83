//! Tuning: what is raced, kept and looked up, where every launch takes 1.5 ms
//! and nothing is written.

use crate::stand_in::harness::{calls, compilations, cubins, with_driver};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use warpline::cuda::Stream;
use warpline::kernels::vector_add::{Choice, Float, Problem, VectorAdd};
use warpline::kernels::{AnyWork, Work};
use warpline::ops::{Call, TensorView};
use warpline::tune::{Fate, Key, Store, TuneStage, choose, notices};
use warpline::{DType, Device, TuneOptions, prepare, tune};

const ROOM: &str = "free=999999999 l2=1048576";

/// Nothing is asked of it, so nothing is wrong.
fn nothing(device: &Device) -> Work<VectorAdd> {
    sum(0, device)
}

fn sum(n: u64, device: &Device) -> Work<VectorAdd> {
    let dtype = Float::F32;
    Work::new(Problem { n, dtype }, &Choice::default(), &device.target()).unwrap()
}

fn entries() -> Vec<PathBuf> {
    let listed = Store::from_env().list().unwrap();
    listed.into_iter().map(|l| l.path).collect()
}

#[test]
fn a_winner_is_remembered_by_the_process_and_on_disk() {
    with_driver(
        "tune::a_winner_is_remembered_by_the_process_and_on_disk",
        ROOM,
        || {
            let device = Device::cuda(0).unwrap();
            let work = nothing(&device);
            let stages = Arc::new(Mutex::new(Vec::new()));
            let mut options = TuneOptions::default();
            let told = stages.clone();
            options.progress = Some(Arc::new(move |stage| {
                told.lock().unwrap().push(stage.clone());
            }));
            let tuned = tune(&work, &device, &options).unwrap();
            // All take as long, so the family's own choice stays.
            assert_eq!(tuned.config, AnyWork::config(&work));
            assert_eq!((tuned.gain, tuned.remembered.as_ref()), (Some(1.0), None));
            assert!((tuned.median_s - 1.5e-3).abs() < 1e-9);
            assert!(tuned.candidates.len() > 20 && tuned.candidates[0].chosen);
            assert_eq!(tuned.candidates[0].fate, Fate::Won);
            let kept = tuned.kept.unwrap();
            assert!(kept.starts_with(cubins().join("tune")) && kept.is_file());

            let stages = stages.lock().unwrap().clone();
            let total = tuned.candidates.len();
            assert_eq!(stages[0], TuneStage::Builds { done: 0, total });
            assert!(stages.contains(&TuneStage::Builds { done: total, total }));
            let last = [TuneStage::Compares, TuneStage::Confirms];
            assert_eq!(stages[stages.len() - 2..], last);

            let (again, called) = calls(|| tune(&work, &device, &options).unwrap());
            assert!(again.remembered.is_some() && again.candidates.is_empty());
            assert_eq!(again.config, tuned.config);
            assert!(!called.contains("cuLaunchKernelEx"), "{called}");

            // From disk in what is a new process to it.
            drop(device);
            let device = Device::cuda(0).unwrap();
            assert!(tune(&work, &device, &options).unwrap().remembered.is_some());
            options.again = true;
            let anew = tune(&work, &device, &options).unwrap();
            assert!(anew.remembered.is_none() && anew.candidates.len() == total);
            assert_eq!(entries(), [kept]);
            let (chosen, is_tuned) = choose(Box::new(work), &device, true).unwrap();
            assert!(is_tuned && chosen.config() == tuned.config);
            assert_eq!(notices(), [""; 0]);
        },
    );
}

#[test]
fn what_is_wrong_is_never_kept() {
    with_driver("tune::what_is_wrong_is_never_kept", ROOM, || {
        let device = Device::cuda(0).unwrap();
        let error = tune(&sum(1000, &device), &device, &TuneOptions::default()).unwrap_err();
        let said = error.to_string();
        let start = "vector-add could not be tuned: none of ";
        assert!(said.starts_with(start), "{said}");
        assert!(said.contains("1000 of 1000 elements are wrong"), "{said}");
        assert_eq!((error.code(), error.exit_code()), ("not-tuned", 1));
        assert!(entries().is_empty());
    });
}

#[test]
fn a_folder_that_cannot_be_written_is_a_notice_and_the_winner_counts_here() {
    with_driver(
        "tune::a_folder_that_cannot_be_written_is_a_notice_and_the_winner_counts_here",
        ROOM,
        || {
            fs::create_dir_all(cubins()).unwrap();
            fs::write(cubins().join("tune"), "no folder").unwrap();
            let device = Device::cuda(0).unwrap();
            let work = nothing(&device);
            let tuned = tune(&work, &device, &TuneOptions::default()).unwrap();
            assert!(tuned.kept.is_none());
            let said = notices().join("\n");
            assert!(said.contains("cannot be locked") && said.contains("could not be kept"));
            let again = tune(&work, &device, &TuneOptions::default()).unwrap();
            assert!(
                again.remembered.is_some(),
                "for as long as the process lives"
            );
        },
    );
}

#[test]
fn the_simulator_cannot_be_tuned() {
    let device = Device::cpu();
    let error = tune(&nothing(&device), &device, &TuneOptions::default()).unwrap_err();
    assert_eq!(error.code(), "no-gpu");
}

const X: u64 = 1 << 40;
const Y: u64 = 1 << 41;

fn softmax(rows: u64) -> Call {
    let view = |address| TensorView::dense(DType::Bf16, &[rows, 1024], address);
    let call = Call::new("softmax").unwrap().tensor("x", view(X)).unwrap();
    call.out(view(Y))
}

/// The work of softmax over so many rows, and its candidate with a queue,
/// which alone has a workspace.
fn with_queue(rows: u64, device: &Device) -> (Box<dyn AnyWork>, Value, Vec<String>) {
    let op = warpline::ops::all()
        .iter()
        .find(|op| op.signature.name == "softmax");
    let view = |address| TensorView::dense(DType::Bf16, &[rows, 1024], address);
    let args = [view(X).into(), (-1i64).into()];
    let target = device.target();
    let work = op
        .unwrap()
        .solve(&args, &[view(Y)], &target)
        .unwrap()
        .unwrap();
    let all = work.alternatives(&target).unwrap();
    let other = all
        .iter()
        .find(|w| w.config()["form"] == "specialized")
        .unwrap();
    let prepared = prepare(other.as_ref(), &target).unwrap();
    let programs = prepared.steps.iter().map(|s| s.hash.to_string()).collect();
    let config = other.config();
    (work, config, programs)
}

/// Has the store remember these configs for softmax, best first.
fn remember(work: &dyn AnyWork, device: &Device, ranked: &[(Value, Vec<String>)]) {
    let one = |(config, programs): &(Value, Vec<String>)| json!({ "config": config, "programs": programs, "median_s": 1e-5, "spread": 0.0 });
    let entry = json!({
        "format": "warpline tuned config",
        "version": 1,
        "key": Key::new(work, device, true).unwrap(),
        "problem": work.problem(),
        "ranked": ranked.iter().map(one).collect::<Vec<_>>(),
        "candidates": 2,
        "tuned_at": "2026-11-16T09:30:00Z",
        "tuned_by": "a test",
    });
    let all = json!({ "format": "warpline tuned configs", "version": 1, "entries": [entry] });
    let file = cubins().join("all.json");
    fs::create_dir_all(cubins()).unwrap();
    fs::write(&file, all.to_string()).unwrap();
    let came = Store::from_env().import(&file).unwrap();
    assert_eq!(came.taken, 1, "{came:?}");
}

#[test]
fn calls_take_the_remembered_winner_for_every_problem_of_its_bucket() {
    with_driver(
        "tune::calls_take_the_remembered_winner_for_every_problem_of_its_bucket",
        "",
        || {
            let device = Device::cuda(0).unwrap();
            let stream = Stream::new(device.context().unwrap()).unwrap();
            let workspace = |rows| softmax(rows).plan(&device, &stream).unwrap().workspace();
            let (work, config, programs) = with_queue(60, &device);
            remember(work.as_ref(), &device, &[(config, programs)]);
            assert!(workspace(60) > 0 && workspace(33) > 0, "rows up to 64");
            assert_eq!(workspace(65), 0, "the next bucket");
            assert_eq!(notices(), [""; 0]);
            // An address that is not on 16 bytes is of another class.
            let odd = |address| TensorView::dense(DType::Bf16, &[60, 1024], address);
            let call = Call::new("softmax").unwrap();
            let call = call.tensor("x", odd(X + 2)).unwrap().out(odd(Y));
            assert_eq!(call.plan(&device, &stream).unwrap().workspace(), 0);
        },
    );
}

#[test]
fn a_stale_entry_is_passed_over_and_told_once() {
    with_driver(
        "tune::a_stale_entry_is_passed_over_and_told_once",
        "",
        || {
            let device = Device::cuda(0).unwrap();
            let stream = Stream::new(device.context().unwrap()).unwrap();
            let (work, config, _) = with_queue(60, &device);
            remember(
                work.as_ref(),
                &device,
                &[(config, vec!["of another build".into()])],
            );
            for rows in [60, 50] {
                let planned = softmax(rows).plan(&device, &stream).unwrap();
                assert_eq!(planned.workspace(), 0);
            }
            let said = notices();
            assert_eq!(said.len(), 1, "{said:?}");
            assert!(said[0].starts_with("a tuned config of softmax is stale and passed over"));
        },
    );
}

#[test]
fn if_a_remembered_winner_fails_the_next_is_taken_and_it_is_said() {
    with_driver(
        "tune::if_a_remembered_winner_fails_the_next_is_taken_and_it_is_said",
        "",
        || {
            let device = Device::cuda(0).unwrap();
            let stream = Stream::new(device.context().unwrap()).unwrap();
            let (work, config, programs) = with_queue(60, &device);
            let mut bad = config.clone();
            bad["threads"] = json!(7);
            remember(work.as_ref(), &device, &[(bad, vec![]), (config, programs)]);
            let planned = softmax(60).plan(&device, &stream).unwrap();
            assert!(planned.workspace() > 0, "the runner-up");
            let said = notices();
            let start = "a remembered config of softmax failed, and the next one is taken: ";
            assert!(said.len() == 1 && said[0].starts_with(start), "{said:?}");
            assert!(said[0].contains("not by 7 threads"), "{said:?}");
        },
    );
}

#[test]
fn a_damaged_entry_breaks_no_call() {
    with_driver("tune::a_damaged_entry_breaks_no_call", "", || {
        let device = Device::cuda(0).unwrap();
        let stream = Stream::new(device.context().unwrap()).unwrap();
        let (work, config, programs) = with_queue(60, &device);
        remember(work.as_ref(), &device, &[(config, programs)]);
        let path = entries().pop().unwrap();
        let text = fs::read(&path).unwrap();
        fs::write(&path, &text[..text.len() / 2]).unwrap();
        let planned = softmax(60).plan(&device, &stream).unwrap();
        assert_eq!(planned.workspace(), 0);
        let said = notices();
        assert!(
            said.len() == 1 && said[0].contains("is passed over"),
            "{said:?}"
        );
    });
}

#[test]
fn tuning_a_call_is_refused_in_a_capture() {
    with_driver("tune::tuning_a_call_is_refused_in_a_capture", ROOM, || {
        let device = Device::cuda(0).unwrap();
        let stream = Stream::new(device.context().unwrap()).unwrap();
        let options = TuneOptions::default();
        let refused = stream.capture(|s| softmax(4).tune(&device, s, &options).map(drop));
        let refused = refused.unwrap_err();
        assert_eq!(
            (refused.code(), refused.exit_code()),
            ("tune-in-capture", 1)
        );
        let start = "softmax cannot be tuned while a stream is captured";
        assert!(refused.to_string().starts_with(start));
        // Nothing comes out of no rows, so nothing is tuned.
        let none = softmax(0).tune(&device, &stream, &options).unwrap();
        assert!(none.is_none());
    });
}

#[test]
fn default_use_never_tunes() {
    with_driver("tune::default_use_never_tunes", "", || {
        let device = Device::cuda(0).unwrap();
        let stream = Stream::new(device.context().unwrap()).unwrap();
        let compiled = compilations(|| drop(softmax(60).plan(&device, &stream).unwrap()));
        assert_eq!(compiled, 1);
        assert!(!cubins().join("tune").exists(), "and leaves nothing there");
    });
}

/// Prints what a call costs before its launch, where its plan is known: what
/// was tuned is part of it. `cargo test -p warpline --release --test it --
/// --ignored --nocapture stand_in::tune::cost`.
#[test]
#[ignore = "prints times"]
fn cost() {
    with_driver("tune::cost", "", || {
        let device = Device::cuda(0).unwrap();
        let stream = Stream::new(device.context().unwrap()).unwrap();
        let call = softmax(60);
        call.plan(&device, &stream).unwrap();
        let (start, n) = (std::time::Instant::now(), 200_000);
        for _ in 0..n {
            std::hint::black_box(call.known(&device));
        }
        let ns = start.elapsed().as_secs_f64() * 1e9 / f64::from(n);
        eprintln!("a known call: {ns:.0} ns");
        let work = with_queue(60, &device).0;
        let start = std::time::Instant::now();
        for _ in 0..n {
            std::hint::black_box(Key::new(work.as_ref(), &device, true));
        }
        let ns = start.elapsed().as_secs_f64() * 1e9 / f64::from(n);
        eprintln!("a key of a new call: {ns:.0} ns");
    });
}
