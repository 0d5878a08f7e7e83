//! `warpline run --data` and `--save`: tensors in files.

use crate::common::DRIVER_STUB;
use half::f16;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use warpline_cli::{CliOutput, run};
use warpline_kernels::registry;
use warpline_testkit::full::few_or;

fn folder() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Runs a command line on the CPU executor; `{}` is replaced by a path.
fn warpline(line: &str, path: &Path) -> CliOutput {
    let words = line.split_whitespace().map(|word| match word {
        "{}" => path.into(),
        word => word.into(),
    });
    let args: Vec<_> = std::iter::once("warpline".into()).chain(words).collect();
    run(&registry(), &args)
}

fn passed(output: &CliOutput) -> &str {
    assert_eq!(
        (output.exit_code, output.stderr.as_str()),
        (0, ""),
        "{}",
        output.stdout
    );
    &output.stdout
}

/// Returns the error of a rejected command, without the path of the test's folder.
fn rejection(line: &str, path: &Path) -> String {
    let output = warpline(line, path);
    assert_eq!(
        (output.exit_code, output.stdout.as_str()),
        (2, ""),
        "{}",
        output.stderr
    );
    let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let mut ancestors = path.ancestors();
    let folder = ancestors
        .find(|folder| folder.parent() == Some(tmp))
        .unwrap();
    let message = output.stderr.replace(&format!("{}/", folder.display()), "");
    message.trim_end().trim_start_matches("error: ").to_owned()
}

fn integers(numbers: &[i64]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

fn halves(numbers: impl IntoIterator<Item = f32>) -> Vec<u8> {
    let numbers = numbers.into_iter().map(f16::from_f32);
    numbers.flat_map(f16::to_le_bytes).collect()
}

/// The problem that [`write_maps`] writes files for.
const MAPS: &str = "--batch 2 --num-query 3 --heads 1 --channels 8 --points 2";

/// Writes maps of 4x4 and 2x3 pixels with a border, and sampling points. Every pixel holds the
/// number of its batch, so every query inside a map returns that number.
fn write_maps(temp: &Path) -> PathBuf {
    let folder = temp.join("maps");
    fs::create_dir(&folder).unwrap();
    let write = |name: &str, bytes: Vec<u8>| {
        fs::write(folder.join(format!("{name}.bin")), bytes).unwrap();
    };
    let value = (0..2).flat_map(|batch| {
        let level = move |height: usize, width: usize| {
            (0..(height + 2) * (width + 2)).flat_map(move |pixel| {
                let (row, col) = (pixel / (width + 2), pixel % (width + 2));
                let inside = (1..=height).contains(&row) && (1..=width).contains(&col);
                [f32::from(u8::from(inside) * (batch + 1)); 8]
            })
        };
        level(4, 4).chain(level(2, 3))
    });
    write("value", halves(value));
    write("spatial_shapes", integers(&[4, 4, 2, 3]));
    write("level_start_index", integers(&[0, 36]));
    write("sampling_locations", halves([0.5; 2 * 3 * 2 * 2 * 2]));
    write("attention_weights", halves([0.25; 2 * 3 * 2 * 2]));
    folder
}

#[test]
fn headerless_files_with_a_border_give_the_expected_result() {
    let temp = folder();
    let maps = write_maps(temp.path());
    let line = format!(
        "run ms-deform-attn --device cpu --data {{}} {MAPS} --spatial-size 56 --levels 2 --im2col-step 1"
    );
    let output = warpline(&line, &maps);
    let text = passed(&output);
    assert!(text.contains("shapes 4x4,2x3,"), "{text}");
    assert!(text.contains("layout halo"), "{text}");
    assert!(
        text.contains(&format!("inputs    from {}", maps.display())),
        "{text}"
    );

    let kept = temp.path().join("kept");
    let line = format!("{line} --save {}", kept.display());
    let output = warpline(&format!("{line} --json"), &maps);
    let json: Value = serde_json::from_str(passed(&output)).unwrap();
    assert_eq!(json["data"], maps.to_str().unwrap());
    assert_eq!(json["saved"], kept.to_str().unwrap());
    assert_eq!(json["outputs"][0]["max_error"], 0.0);
    // Every query returns the number of its batch.
    let expected = halves((0..2u8).flat_map(|b| [f32::from(b + 1); 3 * 8]));
    assert_eq!(fs::read(kept.join("out.bin")).unwrap(), expected);
    assert_eq!(
        fs::read(kept.join("value.bin")).unwrap(),
        fs::read(maps.join("value.bin")).unwrap()
    );
}

#[test]
fn saved_tensors_reproduce_the_result_in_every_family() {
    for family in registry().into_iter().step_by(few_or(3, 1)) {
        let temp = folder();
        let [first, one, last] =
            ["first", "one.safetensors", "last"].map(|name| temp.path().join(name));
        let name = family.name();
        let run = format!("run {name} --device cpu");
        passed(&warpline(&format!("{run} --seed 5 --save {{}}"), &first));
        let line = format!("{run} --data {} --save {{}}", first.display());
        let output = warpline(&line, &one);
        assert!(passed(&output).ends_with("one.safetensors\n"));
        let line = format!("{run} --data {} --save {{}}", one.display());
        passed(&warpline(&line, &last));
        let mut files: Vec<_> = fs::read_dir(&first).unwrap().collect();
        files.sort_by_key(|f| f.as_ref().unwrap().file_name());
        assert!(files.len() >= 2);
        for file in files {
            let name = file.unwrap().file_name();
            let [a, b] = [&first, &last].map(|folder| fs::read(folder.join(&name)).unwrap());
            assert!(a == b, "{} {name:?}", family.name());
        }
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 3);
    }
}

#[test]
fn file_headers_define_missing_extents() {
    let temp = folder();
    let file = temp.path().join("maps.safetensors");
    let run = format!("run ms-deform-attn --device cpu {MAPS} --shapes 4x4,2x3 --layout halo");
    passed(&warpline(&format!("{run} --save {{}}"), &file));
    let output = warpline("run ms-deform-attn --device cpu --data {}", &file);
    let text = passed(&output);
    let problem = "batch 2, num-query 3, heads 1, channels 8, shapes 4x4,2x3, points 2, dtype f16, layout halo";
    assert!(text.contains(problem), "{text}");

    let run = "run ms-deform-attn --device cpu --data {}";
    for (more, message) in [
        (
            "--heads 2",
            "value must be f16 [2, 56, 2, 8], but maps.safetensors has f16 [2, 56, 1, 8]",
        ),
        (
            "--dtype bf16",
            "value must be bf16 [2, 56, 1, 8], but maps.safetensors has f16 [2, 56, 1, 8]",
        ),
        (
            "--shapes 4x4",
            "--shapes 4x4 does not match spatial_shapes 4x4,2x3",
        ),
    ] {
        assert_eq!(rejection(&format!("{run} {more}"), &file), message);
    }
    assert_eq!(
        rejection("run vector-add --device cpu --data {}", &file),
        "maps.safetensors has no a, b; it has level_start_index, spatial_shapes, \
         attention_weights, out, sampling_locations, value\nhelp: the inputs are a, b"
    );
}

#[test]
fn a_folder_may_have_one_safetensors_file_per_tensor() {
    let temp = folder();
    let [file, parts, saved] =
        ["whole.safetensors", "parts", "saved"].map(|name| temp.path().join(name));
    passed(&warpline(
        "run vector-add --device cpu --n 7 --save {}",
        &file,
    ));
    // Both names hold the same file; each reads the tensor of its name.
    fs::create_dir(&parts).unwrap();
    for name in ["a", "b"] {
        fs::copy(&file, parts.join(format!("{name}.safetensors"))).unwrap();
    }
    let line = format!(
        "run vector-add --device cpu --n 7 --data {} --save {{}}",
        parts.display()
    );
    passed(&warpline(&line, &saved));
    assert_eq!(fs::read(saved.join("a.bin")).unwrap().len(), 28);

    let run = "run vector-add --device cpu --n 7 --data {}";
    fs::copy(saved.join("a.bin"), parts.join("a.bin")).unwrap();
    assert_eq!(
        rejection(run, &parts),
        "both parts/a.bin and parts/a.safetensors exist for a\nhelp: remove one of them"
    );
    fs::remove_file(parts.join("a.safetensors")).unwrap();
    passed(&warpline(run, &parts));
    let file_of_b = |n: usize| {
        let header = format!(r#"{{"b":{{"dtype":"F32","shape":[{n},7],"data_offsets":[0,28]}}}}"#);
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes.extend([0; 28]);
        bytes
    };
    let b = parts.join("b.safetensors");
    fs::write(&b, file_of_b(1)).unwrap();
    assert_eq!(
        rejection(run, &parts),
        "b must be f32 [7], but parts/b.safetensors has f32 [1, 7]"
    );
    for (bytes, why) in [
        (vec![1, 2, 3], "its 3 bytes end inside the header"),
        (
            vec![255; 20],
            "the header size is 18446744073709551615 bytes; the maximum is 100000000",
        ),
        (
            file_of_b(1)[..70].to_vec(),
            "its header ends at byte 65 and declares 28 bytes of data, but the file has 70 bytes",
        ),
        (
            file_of_b(2),
            "invalid shape, data type, or offset for tensor",
        ),
    ] {
        fs::write(&b, bytes).unwrap();
        let start = format!("parts/b.safetensors is not a safetensors file: {why}");
        let message = rejection(run, &parts);
        assert!(message.starts_with(&start), "{message}");
    }
}

#[test]
fn mismatched_files_are_rejected() {
    let temp = folder();
    let maps = write_maps(temp.path());
    let run = format!("run ms-deform-attn --device cpu --data {{}} {MAPS}");
    let original = |name: &str| fs::read(maps.join(name)).unwrap();
    for (name, bytes, message) in [
        (
            "value.bin",
            original("value.bin")[2..].to_vec(),
            "value must be f16 [2, 56, 1, 8] (1792 bytes), but maps/value.bin has 1790 bytes",
        ),
        (
            "level_start_index.bin",
            integers(&[0, 35]),
            "levels 4x4,2x3 start at 0, 16 in layout standard, or at 0, 36 in layout halo, but level_start_index is 0, 35",
        ),
        (
            "level_start_index.bin",
            integers(&[0]),
            "levels 4x4,2x3 start at 0, 16 in layout standard, or at 0, 36 in layout halo, but level_start_index is 0",
        ),
        (
            "spatial_shapes.bin",
            integers(&[4, 4, -2, 3]),
            "level 1 of spatial_shapes is -2x3, but heights and widths must be 1 to 4194304",
        ),
        (
            "spatial_shapes.bin",
            integers(&[i64::MAX, 4, 2, 3]),
            "level 0 of spatial_shapes is 9223372036854775807x4, but heights and widths must be 1 to 4194304",
        ),
        (
            "spatial_shapes.bin",
            integers(&[4, 4, 2]),
            "spatial_shapes has 3 numbers, but needs a height and a width for each level",
        ),
        (
            "spatial_shapes.bin",
            integers(&[4, 4, 2, 3])[1..].to_vec(),
            "spatial_shapes must be i64, but the size of maps/spatial_shapes.bin is 31 bytes, which is not a multiple of 8",
        ),
        (
            "spatial_shapes.bin",
            integers(&[1; 70000]),
            "spatial_shapes has 70000 integers in maps/spatial_shapes.bin; the maximum is 65536",
        ),
    ] {
        let bytes_before = original(name);
        fs::write(maps.join(name), bytes).unwrap();
        assert_eq!(rejection(&run, &maps), message);
        fs::write(maps.join(name), bytes_before).unwrap();
    }
    for (more, message) in [
        (
            "--layout standard",
            "levels 4x4,2x3 start at 0, 16 in layout standard, but level_start_index is 0, 36",
        ),
        (
            "--spatial-size 22",
            "--spatial-size 22 does not match the 56 pixels of spatial_shapes 4x4,2x3 in layout halo",
        ),
        (
            "--levels 4",
            "--levels 4 does not match the 2 levels of spatial_shapes 4x4,2x3",
        ),
    ] {
        assert_eq!(rejection(&format!("{run} {more}"), &maps), message);
    }
    fs::remove_file(maps.join("value.bin")).unwrap();
    assert_eq!(
        rejection(&run, &maps),
        "maps has no value\nhelp: the inputs are value, spatial_shapes, level_start_index, \
         sampling_locations, attention_weights, each in NAME.bin or NAME.safetensors"
    );
    fs::create_dir(maps.join("value.bin")).unwrap();
    assert_eq!(rejection(&run, &maps), "maps/value.bin is not a file");
}

#[test]
fn unusable_paths_are_rejected_before_the_run() {
    let temp = folder();
    let full_folder = write_maps(temp.path());
    let text = temp.path().join("notes.txt");
    fs::write(&text, "mine").unwrap();
    let run = "run vector-add --device cpu";
    let at = |name: &str| temp.path().join(name);
    for (option, path, message) in [
        (
            "--data",
            text.clone(),
            "notes.txt is neither a folder nor a .safetensors file",
        ),
        (
            "--data",
            at("nowhere"),
            "cannot read nowhere: No such file or directory (os error 2)",
        ),
        (
            "--save",
            full_folder,
            "cannot write maps: it is a folder that is not empty",
        ),
        ("--save", text, "cannot write notes.txt: it is not a folder"),
        (
            "--save",
            at("no/x.safetensors"),
            "cannot write no/x.safetensors: cannot create it in no: entity not found",
        ),
    ] {
        assert_eq!(rejection(&format!("{run} {option} {{}}"), &path), message);
    }
}

#[test]
fn the_watchdog_process_reads_the_same_files() {
    let temp = folder();
    let (empty, kept) = (temp.path().join("empty"), temp.path().join("kept"));
    fs::create_dir(&empty).unwrap();
    for name in ["a.bin", "b.bin"] {
        fs::write(empty.join(name), "").unwrap();
    }
    let run = || {
        Command::new(env!("CARGO_BIN_EXE_warpline"))
            .args(["run", "vector-add", "--n", "0", "--device", "cuda:0"])
            .args(["--data".as_ref(), empty.as_os_str()])
            .args(["--save".as_ref(), kept.as_os_str()])
            .env("LD_LIBRARY_PATH", &*DRIVER_STUB)
            .env("WARPLINE_STUB", "free=16777216 l2=1048576")
            .env("WARPLINE_CACHE", "off")
            .output()
            .unwrap()
    };
    // The stub computes nothing, and the problem is empty.
    let output = run();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), message.as_str()), (Some(0), ""));
    assert_eq!(fs::read_dir(&kept).unwrap().count(), 3);
    let output = run();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        message.ends_with("it is a folder that is not empty\n"),
        "{message}"
    );
}
