//! Every code has a page, and the tools report its broken kernel and prove its repaired one.

use regex::Regex;
use std::collections::BTreeSet;
use std::path::Path;
use warpline_check::codes::{A_WRITER, LINT_SPILLS, R13_LAUNCH, R18_WRITER};
use warpline_check::rules::pdl_unsafe;
use warpline_check::{CODES, Diagnostic, Rule, Verdict, examine};
use warpline_cpu::{GlobalMemory, Options, run};
use warpline_explain::{Broken, Example, FoundBy, build_errors, examples, failures, page, rules};
use warpline_ir::{Arg, BuildErrors, Kernel, Launch, ParamId, ParamKind, TensorMapValue};
use warpline_lint::{LintStatus, lint_run};
use warpline_ptx::ptxas::Ptxas;
use warpline_testkit::kernel::TARGET;
use warpline_testkit::timings::timings;
use warpline_testkit::verdict::checked;

#[test]
fn every_code_of_a_kernel_has_a_page_with_kernels() {
    let has_kernels = |code: &str| examples().any(|example| example.code == code);
    let rules = CODES.iter().chain(build_errors::RULES);
    let missing: Vec<_> = rules
        .map(|rule| rule.code)
        .filter(|code| !has_kernels(code))
        .collect();
    assert!(missing.is_empty(), "codes without kernels: {missing:?}");
    for example in examples() {
        assert!(page(example.code).is_some(), "{} has no rule", example.code);
    }
}

#[test]
fn codes_are_unique() {
    let mut codes: Vec<_> = rules().map(|rule| rule.code).collect();
    codes.sort_unstable();
    let count = codes.len();
    codes.dedup();
    assert_eq!(codes.len(), count);
}

/// Reads the sources: every code that the builder, the runtime or the command line prints has a
/// page, and every page has a code.
#[test]
fn every_code_in_the_sources_has_a_page() {
    let builder = codes_in(
        "../ir/src/builder",
        r#"(?:\(|code: )\s*"([a-z]+(?:-[a-z]+)+)","#,
    );
    assert_same("builder", &builder, build_errors::RULES);
    let mut runtime: BTreeSet<String> = [
        "../warpline/src/error.rs",
        "../cuda/src/error.rs",
        "../family/src/error.rs",
        "../ptx/src/print.rs",
    ]
    .iter()
    .flat_map(|file| codes_in(file, r#"=>\s*(?:\{\s*)?"([a-z]+(?:-[a-z]+)*)"(?:,|\s*\})"#))
    .collect();
    let failure = r#"\bbad_(?:input|result)\(\s*"([a-z-]+)"|code: "([a-z-]+)""#;
    runtime.extend(codes_in("../cli/src", failure));
    assert_same("runtime and command line", &runtime, failures::RULES);
}

fn assert_same(tool: &str, printed: &BTreeSet<String>, rules: &[Rule]) {
    let explained: BTreeSet<String> = rules.iter().map(|rule| rule.code.to_owned()).collect();
    let missing: Vec<_> = printed.difference(&explained).collect();
    let unused: Vec<_> = explained.difference(printed).collect();
    assert!(
        missing.is_empty() && unused.is_empty(),
        "codes of the {tool} without a page: {missing:?}; pages of unused codes: {unused:?}"
    );
}

/// Returns the codes that a pattern finds in the sources of a file or folder.
fn codes_in(path: &str, pattern: &str) -> BTreeSet<String> {
    let pattern = Regex::new(pattern).unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let mut codes = BTreeSet::new();
    for text in sources(&path) {
        let found = pattern.captures_iter(&text);
        codes.extend(found.filter_map(|c| {
            c.iter()
                .skip(1)
                .flatten()
                .next()
                .map(|m| m.as_str().to_owned())
        }));
    }
    assert!(!codes.is_empty(), "{} has no codes", path.display());
    codes
}

fn sources(path: &Path) -> Vec<String> {
    if path.is_file() {
        return vec![std::fs::read_to_string(path).unwrap()];
    }
    let entries = std::fs::read_dir(path).unwrap();
    entries
        .flat_map(|entry| sources(&entry.unwrap().path()))
        .collect()
}

#[test]
fn pages_print_both_kernels() {
    for example in examples() {
        for source in [example.broken_source(), example.repaired_source()] {
            assert!(
                source.starts_with("fn ") && source.ends_with('}'),
                "{}: {source}",
                example.code
            );
        }
        assert_ne!(
            example.broken_source(),
            example.repaired_source(),
            "{}",
            example.code
        );
        assert!(
            !example.explanation().is_empty(),
            "{} has no explanation",
            example.code
        );
    }
}

#[test]
fn broken_kernels_are_reported_with_their_code() {
    for_every_example(|example| {
        let codes = codes_of(example, &broken(example));
        match codes.iter().any(|code| code == example.code) {
            true => Ok(()),
            false => Err(format!("reported {codes:?}")),
        }
    });
}

#[test]
fn repaired_kernels_are_proved() {
    for_every_example(|example| {
        let trial = repaired(example);
        let kernel = trial.kernel.as_ref().map_err(|errors| errors.to_string())?;
        let report = examine(kernel, &TARGET);
        // Every kernel that writes global memory assumes A.writer. Its repair runs without a race.
        let codes = match example.code == A_WRITER.code {
            true => faults(kernel, trial.edit_launch),
            false => codes_of(example, &trial),
        };
        if report.verdict() != Verdict::Proved {
            Err(report.text())
        } else if codes
            .iter()
            .any(|code| code == example.code || code == R18_WRITER.code)
        {
            Err(format!("the repaired kernel is still reported: {codes:?}"))
        } else {
            Ok(())
        }
    });
}

/// Applies a check to every page and reports all failures together. Skips the page of spills without
/// ptxas.
fn for_every_example(check: impl Fn(&Example) -> Result<(), String>) {
    let is_testable =
        |example: &&Example| example.code != LINT_SPILLS.code || Ptxas::find().is_ok();
    let failed: Vec<String> = examples()
        .filter(is_testable)
        .filter_map(|example| Some(format!("{}: {}", example.code, check(example).err()?)))
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

/// A kernel, and the change that its launch needs.
struct Trial {
    kernel: Result<Kernel, BuildErrors>,
    edit_launch: fn(&mut Launch),
}

fn repaired(example: &Example) -> Trial {
    Trial {
        kernel: Kernel::build("repaired", &TARGET, example.repaired),
        edit_launch: |_| {},
    }
}

fn broken(example: &Example) -> Trial {
    build_errors::leak_register();
    let repaired = repaired(example);
    match example.broken {
        Broken::Built(body) => Trial {
            kernel: Kernel::build("broken", &TARGET, body),
            ..repaired
        },
        Broken::EditedKernel(edit) => Trial {
            kernel: repaired.kernel.map(|mut kernel| {
                edit(&mut kernel);
                kernel
            }),
            ..repaired
        },
        Broken::EditedLaunch(edit_launch) => Trial {
            edit_launch,
            ..repaired
        },
    }
}

/// Returns the codes that the tool of the page reports.
fn codes_of(example: &Example, trial: &Trial) -> Vec<String> {
    let kernel = match &trial.kernel {
        Ok(kernel) => kernel,
        Err(errors) if example.found_by == FoundBy::Builder => {
            return errors.errors.iter().map(|e| e.code.to_owned()).collect();
        }
        Err(errors) => panic!("{}: {errors}", example.code),
    };
    match example.found_by {
        FoundBy::Builder => Vec::new(),
        FoundBy::Checker => diagnostic_codes(&examine(kernel, &TARGET).diagnostics),
        FoundBy::Assumption => {
            let report = examine(kernel, &TARGET);
            assert_eq!(report.verdict(), Verdict::Proved, "{}", report.text());
            let assumptions = report.assumptions.iter();
            assumptions.map(|a| a.code.to_owned()).collect()
        }
        FoundBy::Linter => warnings(kernel),
        FoundBy::Run => faults(kernel, trial.edit_launch),
    }
}

fn diagnostic_codes(diagnostics: &[Diagnostic]) -> Vec<String> {
    diagnostics.iter().map(|d| d.code().to_owned()).collect()
}

/// Returns the lints that warn about a kernel.
fn warnings(kernel: &Kernel) -> Vec<String> {
    let kernel = checked(kernel.clone());
    let (memory, launch) = launch(&kernel);
    let stats = run(&kernel, &launch, &memory, &Options::default()).unwrap();
    let mut options = warpline_lint::Options::default();
    options.ptxas = Ptxas::find().ok();
    let findings = lint_run(&kernel, &stats, &options).unwrap();
    let warned = findings.iter().filter(|f| f.status == LintStatus::Warn);
    warned.map(|f| f.check.to_owned()).collect()
}

/// Returns the codes that the binding of a launch and its runs in several timings report.
fn faults(kernel: &Kernel, edit: fn(&mut Launch)) -> Vec<String> {
    let params: Vec<_> = (0..kernel.params.len() as u32).map(ParamId).collect();
    let mut codes = diagnostic_codes(&pdl_unsafe(kernel, &params));
    let (_, mut bound) = launch(kernel);
    edit(&mut bound);
    let is_illegal = |arg: &Arg| matches!(arg, Arg::TensorMap(map) if map.check().is_err());
    if bound.args.iter().any(is_illegal) {
        codes.push(R13_LAUNCH.code.to_owned());
    }
    for options in timings(8) {
        let (memory, mut launch) = launch(kernel);
        edit(&mut launch);
        let options = Options {
            threads: 1,
            max_steps: Some(100_000),
            ..options
        };
        if let Err(error) = run(kernel, &launch, &memory, &options) {
            let text = error.to_string();
            let cited = CODES.iter().map(|rule| rule.code);
            let cited = cited.filter(|code| text.contains(&format!("[{code}]")));
            codes.extend(cited.map(str::to_owned));
        }
    }
    codes
}

/// Returns a launch of two clusters. Scalars are 4, and buffers are zero.
fn launch(kernel: &Kernel) -> (GlobalMemory, Launch) {
    let mut memory = GlobalMemory::new();
    let args = kernel.params.iter().map(|param| match &param.kind {
        ParamKind::Scalar(ty) => Arg::Scalar(*ty, 4),
        ParamKind::Pointer(_) => {
            Arg::Pointer(memory.alloc_from(&vec![0; BUFFER_BYTES], &param.name))
        }
        ParamKind::TensorMap(decl) => {
            let base = memory.alloc_from(&vec![0; BUFFER_BYTES], &param.name);
            let extents: Vec<u64> = (0..decl.rank())
                .map(|dimension| 4 * u64::from(decl.box_extent(dimension)))
                .collect();
            Arg::TensorMap(TensorMapValue::dense(decl.clone(), base, &extents))
        }
    });
    let args = args.collect();
    let [x, y, z] = kernel.cluster;
    let grid = [2 * x, y, z];
    (memory, Launch { grid, args })
}

/// The size of each buffer of a launch in bytes.
const BUFFER_BYTES: usize = 1 << 20;
