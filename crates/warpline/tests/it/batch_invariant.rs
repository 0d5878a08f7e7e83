//! Batch invariance on the CPU executor: the bits of a row do not depend on the other rows.
//!
//! All tests of this file take about 1 s in a debug build; the test of Python runs all sizes on a GPU.

use warpline::kernels::{DeviceKind, Request, registry};
use warpline::ops::{self, ArgValue, Call, TensorView};
use warpline::{DType, Device, Error, RunOptions};

/// The largest batch.
const MAX: usize = 70;
/// The sizes that are compared with it: parts of one tile, a tile and more.
const SIZES: [usize; 3] = [1, 17, 64];
/// Extents of the GEMMs: several k-tiles.
const N: u64 = 64;
const K: u64 = 320;

/// Returns pseudorandom bf16 values between -1 and 1.
fn noise(elements: u64, seed: u64) -> Vec<u8> {
    let value = |i: u64| {
        let mixed = (i + 1 + (seed << 20)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let x = mixed as f32 / (1 << 23) as f32 - 1.0;
        ((x.to_bits() >> 16) as u16).to_le_bytes()
    };
    (0..elements).flat_map(value).collect()
}

/// An input of a call: whether its first dimension is the batch, and its inner dimensions.
type Input = (&'static str, bool, &'static [u64]);

/// Returns the bytes of the output of the first `rows` rows, or those of one row.
fn output(op: &str, inputs: &[Input], row: &[u64], rows: std::ops::Range<usize>) -> Vec<u8> {
    let (first, rows) = (rows.start as u64, rows.len() as u64);
    let mut call = Call::new(op).unwrap();
    call = call.value("batch_invariant", true).unwrap();
    let mut bytes = Vec::new();
    for (seed, (name, is_batched, inner)) in (0..).zip(inputs) {
        let len: u64 = inner.iter().product();
        let mut shape = inner.to_vec();
        let mut all = noise(len, seed);
        if *is_batched {
            shape.insert(0, rows);
            let [start, end] = [first, first + rows].map(|row| (row * len * 2) as usize);
            all = noise(MAX as u64 * len, seed)[start..end].to_vec();
        }
        let view = TensorView::dense(DType::Bf16, &shape, 0);
        call = call.tensor(name, view).unwrap();
        bytes.push(all);
    }
    let shape = [&[rows], row].concat();
    let call = call.out(TensorView::dense(DType::Bf16, &shape, 0));
    let bytes: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
    let mut outputs = call.simulate(&bytes, &RunOptions::default()).unwrap();
    outputs.remove(0)
}

/// Compares the rows of every size, and single rows, with the same rows of the largest batch.
#[track_caller]
fn check(op: &str, inputs: &[Input], row: &[u64]) {
    let full = output(op, inputs, row, 0..MAX);
    let row_bytes = 2 * row.iter().product::<u64>() as usize;
    let sizes = SIZES.map(|size| 0..size);
    for rows in sizes.into_iter().chain([33..34, MAX - 1..MAX]) {
        let expected = &full[rows.start * row_bytes..rows.end * row_bytes];
        let found = output(op, inputs, row, rows.clone());
        assert!(found == expected, "{op}: rows {rows:?} of {MAX}");
    }
}

#[test]
fn rows_of_a_linear_layer_do_not_depend_on_the_batch() {
    let inputs: [Input; 3] = [
        ("x", true, &[K]),
        ("weight", false, &[N, K]),
        ("bias", false, &[N]),
    ];
    check("linear", &inputs, &[N]);
}

#[test]
fn rows_of_a_gated_gemm_do_not_depend_on_the_batch() {
    let inputs: [Input; 3] = [
        ("x", true, &[K]),
        ("w_gate", false, &[N, K]),
        ("w_up", false, &[N, K]),
    ];
    check("swiglu", &inputs, &[N]);
}

#[test]
fn rows_of_softmax_and_norms_do_not_depend_on_the_batch() {
    check("softmax", &[("x", true, &[777])], &[777]);
    let norm: [Input; 2] = [("x", true, &[1000]), ("weight", false, &[1000])];
    check("rms_norm", &norm, &[1000]);
    check("layer_norm", &norm, &[1000]);
}

#[test]
fn batches_of_attention_do_not_depend_on_each_other() {
    let keys: &[u64] = &[5, 1, 64];
    let inputs: [Input; 3] = [
        ("q", true, &[3, 2, 64]),
        ("k", true, keys),
        ("v", true, keys),
    ];
    check("attention", &inputs, &[3, 2, 64]);
}

/// Returns the config of a linear layer with `m` rows.
fn linear_config(m: u64, batch_invariant: bool) -> serde_json::Value {
    let (n, k) = (256, 16384);
    let view = |rows| TensorView::dense(DType::Bf16, &[rows, k], 0).into();
    let op = ops::all().iter().find(|op| op.signature.name == "linear");
    let op = op.unwrap();
    let mut args: Vec<ArgValue> = op.signature.params.iter().map(default).collect();
    args[0] = view(m);
    args[1] = view(n);
    let flag = op.signature.position("batch_invariant").unwrap();
    args[flag] = batch_invariant.into();
    let out = TensorView::dense(DType::Bf16, &[m, n], 0);
    let work = op.workload(&args, &[out], &Device::cpu().target());
    work.unwrap().unwrap().config()
}

fn default(param: &warpline::kernels::op::OpParam) -> ArgValue {
    param.default.map_or(ArgValue::None, |d| d.value())
}

#[test]
fn k_is_divided_only_without_the_option() {
    let divides = |config: &serde_json::Value| {
        config["stream_k"] == true || config["split_k"].as_u64().is_some_and(|n| n > 1)
    };
    let sizes = [1, 16, 64, 128, 512];
    let count = |option| {
        let configs = sizes.map(|m| linear_config(m, option));
        configs.iter().filter(|config| divides(config)).count()
    };
    assert!(count(false) > 0, "otherwise this test compares nothing");
    assert_eq!(count(true), 0);
}

#[test]
fn the_division_of_a_row_does_not_depend_on_the_rows() {
    let families = [
        "softmax",
        "layer-norm",
        "rms-norm",
        "ms-deform-attn",
        "attention",
    ];
    let config = |name: &str, rows: &str| {
        let family = *registry().iter().find(|f| f.name() == name).unwrap();
        let field = match name {
            "ms-deform-attn" => "num_query",
            "attention" => "queries",
            _ => "rows",
        };
        let request = Request::default().with(field, rows.to_owned());
        let request = request.with("batch_invariant", "true".to_owned());
        let target = Device::cpu().target();
        let work = family.workload(&request, DeviceKind::Cpu, None, &target);
        let mut config = work.unwrap().config();
        for grid in ["ctas", "parts", "work_split", "stages", "consumers"] {
            config.as_object_mut().unwrap().remove(grid);
        }
        config
    };
    for name in families {
        let one = config(name, "1");
        for rows in ["7", "512", "100000"] {
            assert_eq!(config(name, rows), one, "{name} {rows}");
        }
    }
}

#[test]
fn contradicting_options_are_rejected() {
    let error = |family: &str, options: &[(&str, &str)]| {
        let family = *registry().iter().find(|f| f.name() == family).unwrap();
        let mut request = Request::default().with("batch_invariant", "true".to_owned());
        for (name, value) in options {
            request = request.with(name, (*value).to_owned());
        }
        let target = Device::cpu().target();
        match family.workload(&request, DeviceKind::Cpu, None, &target) {
            Ok(_) => "ok".to_owned(),
            Err(error) => Error::from(error).to_string(),
        }
    };
    assert_eq!(error("gemm", &[]), "ok");
    assert_eq!(
        error("gemm", &[("split_k", "1"), ("swap_ab", "true")]),
        "ok"
    );
    assert_eq!(
        error("gemm", &[("split_k", "2")]),
        "--split-k is 2; --batch-invariant needs 1\nhelp: leave one of them out"
    );
    assert_eq!(
        error("linear", &[("stream_k", "true")]),
        "--stream-k is true; --batch-invariant needs false\nhelp: leave one of them out"
    );
    assert_eq!(
        error("gemm", &[("row_sums", "true")]),
        "--batch-invariant does not support --row-sums\nhelp: leave one of them out"
    );
    assert_eq!(
        error("nvfp4-dual-gemm", &[("schedule", "warps")]),
        "--schedule is warps; --batch-invariant needs cooperative\nhelp: leave one of them out"
    );
}
