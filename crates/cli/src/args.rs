//! Commands and options.
//!
//! Each family is a subcommand of `check`, `run`, `bench`, `sweep`, `tune` and
//! `emit`, with its own options.

pub(crate) mod fields;
pub(crate) mod sweep;
pub(crate) mod target;
pub(crate) mod tune;

use self::target::TargetArgs;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Arg, ArgAction, Args, Command, ValueHint};
use clap_complete::Shell;
use std::ffi::{OsStr, OsString};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use warpline::bench::{MIN_ROUNDS, suite};
use warpline::kernels::DeviceKind;
use warpline::{Device, Timing};
use warpline_kernels::AnyFamily;

/// The commands, in the order of the help.
pub(crate) const COMMANDS: [&str; 12] = [
    "devices",
    "list",
    "check",
    "explain",
    "run",
    "bench",
    "sweep",
    "tune",
    "cache",
    "emit",
    "new",
    "completions",
];

const ABOUT: &str = "\
Warpline: warp-specialized GPU kernels, proved free of deadlocks and data races
before launch. Runs on an NVIDIA GPU, or on the CPU executor without one.

A family is all kernels of one computation (gemm, softmax, ...). Without a
command, the default problem of the first family runs.";

const EXIT_CODES: &str = "
Exit codes:
  0  PASS, or proved
  1  FAIL: result outside tolerance, or kernel refuted or undecided
  2  bad input, or device not available
  3  device fault or hang";

/// Example command lines, with the names of this program and of its first family.
pub(crate) struct Examples {
    program: String,
    family: &'static str,
}

impl Examples {
    pub(crate) fn new(args: &[OsString], families: &[&dyn AnyFamily]) -> Self {
        Self {
            program: program(args),
            family: families.first().map_or("FAMILY", |f| f.name()),
        }
    }

    fn all(&self) -> String {
        let lines = self.lines(&[
            ("", "run the first family"),
            ("devices", "list usable GPUs and the CPU executor"),
            (
                "check FAMILY",
                "prove the absence of deadlocks and data races",
            ),
            (
                "run FAMILY",
                "run once and compare with a float64 reference",
            ),
            ("run FAMILY --help", "list the options of the family"),
            ("bench memory", "measure a benchmark suite on a GPU"),
            (
                "sweep FAMILY --vary stages=2,3,4",
                "compare the values of an option",
            ),
            (
                "tune FAMILY",
                "autotune on a GPU and cache the fastest config",
            ),
            ("emit FAMILY --ptx -o k.ptx", "write the PTX to a file"),
            ("new mine", "create a crate with a kernel of your own"),
        ]);
        format!("Examples:\n{lines}{EXIT_CODES}")
    }

    fn check(&self) -> String {
        let lines = self.lines(&[
            (
                "check FAMILY",
                "prove the kernel, or report the bug and its source line",
            ),
            (
                "check FAMILY --lint",
                "prove the kernel and print performance warnings",
            ),
            (
                "check FAMILY --fuzz 300 --seed 1",
                "draw 300 valid problems and configs; each must be proved",
            ),
            ("check --all", "check every family with every config"),
            (
                "check --corpus",
                "check kernels with known public bugs; each must be refuted",
            ),
            ("check FAMILY --json", "print the result as JSON"),
            ("check FAMILY --help", "list the options of the family"),
        ]);
        format!("Examples:\n{lines}")
    }

    fn run(&self) -> String {
        let lines = self.lines(&[
            ("run FAMILY", "on a GPU if usable, else on the CPU executor"),
            (
                "run FAMILY --device cpu --timing late",
                "complete asynchronous copies as late as possible",
            ),
            (
                "run FAMILY --device cpu --timing random --seed 7",
                "complete asynchronous copies at random times",
            ),
            (
                "run FAMILY --save tensors",
                "write inputs and outputs to files",
            ),
            ("run FAMILY --data tensors", "read the inputs from files"),
            (
                "run FAMILY --device cuda:0 --json",
                "print the result as JSON",
            ),
            ("run FAMILY --help", "list the options of the family"),
        ]);
        format!("Examples:\n{lines}")
    }

    fn bench(&self) -> String {
        let lines = self.lines(&[
            ("bench", "measure every suite"),
            ("bench memory --json", "measure one suite, print JSON"),
            ("bench FAMILY", "measure one family at its default problem"),
            (
                "bench FAMILY --schedules",
                "compare the schedules of the family",
            ),
            (
                "bench FAMILY --candidates 12",
                "compare the first 12 configs of the heuristic",
            ),
            ("bench FAMILY --help", "list the options of the family"),
        ]);
        format!("Examples:\n{lines}")
    }

    fn sweep(&self) -> String {
        let lines = self.lines(&[
            (
                "sweep FAMILY --vary stages=2,3,4",
                "run each value: times on a GPU, counters on the CPU",
            ),
            (
                "sweep FAMILY --vary stages=2,3 --vary ctas=66,132",
                "run every combination",
            ),
            (
                "sweep FAMILY --vary stages=2,3,4 --svg stages.svg",
                "run each value and write a plot",
            ),
            ("sweep FAMILY --help", "list the options of the family"),
        ]);
        format!("Examples:\n{lines}")
    }

    fn tune(&self) -> String {
        let lines = self.lines(&[
            ("tune FAMILY", "autotune the default problem"),
            (
                "tune FAMILY --dry-run",
                "list the candidates, measure nothing",
            ),
            (
                "tune FAMILY --again",
                "measure again, ignoring the cached result",
            ),
            ("tune --suite memory", "autotune every problem of a suite"),
            ("tune FAMILY --help", "list the options of the family"),
        ]);
        format!("Examples:\n{lines}")
    }

    fn cache(&self) -> String {
        let lines = self.lines(&[
            ("cache list", "list the tuned configs and their files"),
            (
                "cache clear --family FAMILY",
                "delete the tuned configs of one family",
            ),
            (
                "cache export tuned.json",
                "write all tuned configs to one file, for machines with the same GPU",
            ),
            (
                "cache import tuned.json",
                "read the tuned configs of such a file",
            ),
        ]);
        format!("Examples:\n{lines}")
    }

    fn emit(&self) -> String {
        let lines = self.lines(&[
            ("emit FAMILY --ptx -o k.ptx", "write the PTX to a file"),
            (
                "emit FAMILY --ir",
                "print Warpline's intermediate representation",
            ),
            (
                "emit FAMILY --resources --json",
                "print registers, shared memory and spills as JSON",
            ),
            ("emit FAMILY --help", "list the options of the family"),
        ]);
        format!("Examples:\n{lines}")
    }

    fn new_crate(&self) -> String {
        let lines = self.lines(&[
            ("new mine", "create the crate in ./mine"),
            (
                "new mine --path kernels/mine",
                "create the crate in another folder",
            ),
            ("new mine --json", "print the result as JSON"),
        ]);
        format!("Examples:\n{lines}")
    }

    /// The commands to try after a first run.
    pub(crate) fn next(&self) -> String {
        let lines = self.lines(&[
            (
                "check FAMILY",
                "prove the absence of deadlocks and data races",
            ),
            (
                "run FAMILY --help",
                "list the options: sizes, element types, schedule, tiles",
            ),
            ("emit FAMILY --ptx", "print the PTX"),
            ("list", "list the other kernel families"),
            ("devices", "list usable GPUs and the CPU executor"),
            ("new mine", "create a crate with a kernel of your own"),
            ("--help", "list all commands"),
        ]);
        format!("\nTry next:\n{lines}")
    }

    /// Formats command lines and their effects in two columns.
    fn lines(&self, rows: &[(&str, &str)]) -> String {
        let command = |line: &str| {
            let line = line.replace("FAMILY", self.family);
            format!("{} {line}", self.program).trim_end().to_owned()
        };
        let rows: Vec<_> = rows
            .iter()
            .map(|(line, about)| (command(line), about))
            .collect();
        let width = rows.iter().map(|(line, _)| line.len()).max().unwrap_or(0);
        rows.iter()
            .map(|(line, about)| format!("  {line:width$}  {about}\n"))
            .collect()
    }
}

/// The options of `check` without a family.
#[derive(Clone, Debug, Args)]
pub(crate) struct CheckArgs {
    /// Check every family with every config of its heuristic and of its tests
    #[arg(long, conflicts_with = "corpus")]
    pub(crate) all: bool,
    /// Check kernels with known public bugs: each must be refuted, and its repaired
    /// version proved
    #[arg(long)]
    pub(crate) corpus: bool,
    /// Also replay each counterexample on the CPU executor
    #[arg(long)]
    pub(crate) replay: bool,
    #[command(flatten)]
    pub(crate) on: TargetArgs,
}

/// The options of `check FAMILY`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Check")]
pub(crate) struct CheckFamilyArgs {
    /// Also run this launch on the CPU executor and report data races in shared and
    /// global memory
    #[arg(long)]
    pub(crate) launch: bool,
    /// Also print performance warnings: bank conflicts, uncoalesced sectors, divergence,
    /// registers, spills, idle roles, block sizes
    #[arg(long)]
    pub(crate) lint: bool,
    /// Also replay each counterexample on the CPU executor
    #[arg(long)]
    pub(crate) replay: bool,
    /// Instead check N random calls: each draws a valid problem, and about a third a legal config.
    /// Prints the command line of every call that is not proved. A call whose selected config is
    /// undecided counts as proved if the baseline, which it then uses, is proved
    #[arg(long, value_name = "N", conflicts_with_all = ["launch", "lint", "replay"])]
    pub(crate) fuzz: Option<NonZeroU32>,
    /// Seed of --fuzz; the same seed draws the same calls
    #[arg(long, value_name = "N", default_value_t = 0, requires = "fuzz")]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) on: TargetArgs,
}

/// The options of `run`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Run")]
pub(crate) struct RunArgs {
    /// Device: auto selects the first usable GPU, else the CPU executor
    #[arg(long, value_name = "auto|cpu|cuda:N", default_value = "auto")]
    pub(crate) device: String,
    /// When the CPU executor completes asynchronous copies and matrix instructions: at
    /// once, as late as the kernel allows, or at random times [default: eager]
    #[arg(long, value_parser = timing(), hide_possible_values = true, value_name = "eager|late|random")]
    pub(crate) timing: Option<Timing>,
    /// Seed of the random inputs and of the random timing
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Number of timed launches; the median is reported [default: 10 on a GPU, 1 on the
    /// CPU executor]
    #[arg(long, value_name = "N")]
    pub(crate) repeat: Option<NonZeroU32>,
    /// Read the inputs from a folder with NAME.bin or NAME.safetensors for each, or
    /// from one .safetensors file
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) data: Option<PathBuf>,
    /// Write inputs and outputs to a new folder, NAME.bin for each, or to one
    /// .safetensors file
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) save: Option<PathBuf>,
    /// On a GPU: skip the first run, which executes the kernel with time limits in a child
    /// process and reports a hang
    #[arg(long)]
    pub(crate) no_watchdog: bool,
    /// Also print the build times and the origin of each kernel (compiled or cached)
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

/// The options of `bench`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Measure")]
pub(crate) struct BenchArgs {
    /// GPU: auto selects the first usable one
    #[arg(long, value_name = "auto|cuda:N", default_value = "auto")]
    pub(crate) device: String,
    /// Measurement rounds; each times every candidate once, in random order
    #[arg(long, value_name = "N", default_value_t = 25, value_parser = rounds())]
    pub(crate) rounds: u32,
    /// Seed of the random inputs and of the measurement order
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Also time each candidate back to back for more than a second, at sustained clocks
    /// under the power limit
    #[arg(long)]
    pub(crate) sustained: bool,
}

/// The options that select the configs to compare.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Candidates")]
pub(crate) struct CandidateArgs {
    /// Compare the first N candidates of the heuristic that match the given config
    /// options, instead of measuring the selected config alone
    #[arg(long, value_name = "N", conflicts_with = "schedules")]
    pub(crate) candidates: Option<NonZeroU32>,
    /// Compare the first candidate of each schedule
    #[arg(long)]
    pub(crate) schedules: bool,
}

/// The options of `emit`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct EmitArgs {
    /// Print Warpline's intermediate representation
    #[arg(long, conflicts_with = "ptx")]
    pub(crate) ir: bool,
    /// Print PTX for the target (the default)
    #[arg(long)]
    pub(crate) ptx: bool,
    /// Print registers, shared memory, barriers and spills: reported by ptxas if found,
    /// else estimated
    #[arg(long)]
    pub(crate) resources: bool,
    /// Write to a file; `-` is standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) on: TargetArgs,
}

/// The options of `new`.
#[derive(Clone, Debug, Args)]
pub(crate) struct NewArgs {
    /// Name of the crate: ASCII letters, digits, - and _
    pub(crate) name: String,
    /// Folder to create; an existing one must be empty [default: ./NAME]
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) path: Option<PathBuf>,
    /// Checkout of Warpline to depend on [default: the checkout that built this
    /// program, else the Git repository]
    #[arg(long, value_name = "CHECKOUT", value_hint = ValueHint::DirPath)]
    pub(crate) warpline: Option<PathBuf>,
}

/// The options of `completions`.
#[derive(Clone, Debug, Args)]
pub(crate) struct CompletionArgs {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

fn rounds() -> impl TypedValueParser<Value = u32> {
    clap::value_parser!(u32).range(i64::from(MIN_ROUNDS)..=1_000_000)
}

fn timing() -> impl TypedValueParser<Value = Timing> {
    PossibleValuesParser::new(Timing::ALL.map(Timing::name)).try_map(|name| name.parse::<Timing>())
}

/// Builds the command line.
pub(crate) fn command(families: &[&dyn AnyFamily], args: &[OsString]) -> Command {
    let device = device_kind(args);
    let examples = Examples::new(args, families);
    let family_command = |name: &'static str, about: &'static str, examples: String| {
        Command::new(name)
            .about(about)
            .after_help(examples)
            .subcommand_required(true)
            .subcommand_value_name("FAMILY")
            .subcommand_help_heading("Families")
            .disable_help_subcommand(true)
    };
    let run = family_command(
        "run",
        "Run a family's kernels, compare with a float64 reference, print PASS/FAIL and the time",
        examples.run(),
    );
    let emit = family_command(
        "emit",
        "Print a family's kernels: PTX, intermediate representation, resources",
        examples.emit(),
    );
    Command::new("warpline")
        .bin_name(program(args))
        .version(env!("CARGO_PKG_VERSION"))
        .about(ABOUT)
        .after_help(examples.all())
        .disable_help_subcommand(true)
        .arg(
            Arg::new("json")
                .long("json")
                .global(true)
                .action(ArgAction::SetTrue)
                .help("Print one JSON object to standard output, all else to standard error"),
        )
        .subcommand(Command::new("devices").about("List usable GPUs and the CPU executor"))
        .subcommand(
            TargetArgs::augment_args(Command::new("list"))
                .about("List the kernel families, their problems and configs")
                .arg(
                    Arg::new("ops")
                        .long("ops")
                        .action(ArgAction::SetTrue)
                        .help("List the instructions of kernels and their PTX instead"),
                ),
        )
        .subcommand(check(families, examples.check()))
        .subcommand(explain())
        .subcommand(run.subcommands(families.iter().map(|f| {
            let command = with_flags(*f, device);
            RunArgs::augment_args(command).about(f.about())
        })))
        .subcommand(bench(families, examples.bench()))
        .subcommand(sweep::sweep(families, device, examples.sweep()))
        .subcommand(tune::tune(families, examples.tune()))
        .subcommand(tune::cache(examples.cache()))
        .subcommand(emit.subcommands(families.iter().map(|f| {
            let command = with_flags(*f, DeviceKind::Gpu);
            EmitArgs::augment_args(command).about(f.about())
        })))
        .subcommand(
            NewArgs::augment_args(Command::new("new"))
                .about("Create a crate with a kernel of your own to edit")
                .after_help(examples.new_crate()),
        )
        .subcommand(
            CompletionArgs::augment_args(Command::new("completions"))
                .about("Print a completion script for a shell"),
        )
}

/// Builds `explain`: one code, or the list of codes.
fn explain() -> Command {
    Command::new("explain")
        .about("Explain a code that check, run or a lint printed: the rule, a broken kernel, its repair")
        .arg(
            Arg::new("code")
                .value_name("CODE")
                .required_unless_present("list")
                .help("The code, for example R6.bulk"),
        )
        .arg(
            Arg::new("list")
                .long("list")
                .action(ArgAction::SetTrue)
                .conflicts_with("code")
                .help("List every code"),
        )
}

/// Builds `check`: one family, all families, or the corpus.
fn check(families: &[&dyn AnyFamily], examples: String) -> Command {
    let command = Command::new("check")
        .after_help(examples)
        .subcommand_value_name("FAMILY")
        .subcommand_help_heading("Families")
        .disable_help_subcommand(true);
    let families = families.iter().map(|f| {
        let command = with_flags(*f, DeviceKind::Gpu);
        CheckFamilyArgs::augment_args(command).about(f.about())
    });
    CheckArgs::augment_args(command)
        .about("Prove that kernels have no deadlock and no data race, or report the bug and its source line")
        .args_conflicts_with_subcommands(true)
        .subcommands(families)
}

/// Builds `bench`: one suite, one family, or every suite.
fn bench(families: &[&dyn AnyFamily], examples: String) -> Command {
    let command = Command::new("bench")
        .after_help(examples)
        .subcommand_value_name("SUITE or FAMILY")
        .subcommand_help_heading("Suites and families")
        .disable_help_subcommand(true);
    // `bench NAME` measures the suite NAME if no option of the family NAME is given.
    let is_not_a_family = |name: &&str| families.iter().all(|f| f.name() != *name);
    let suites = suite::names(families).into_iter().filter(is_not_a_family);
    let suites =
        suites.map(|name| BenchArgs::augment_args(Command::new(name)).about(suite::about(name)));
    let families = families.iter().map(|f| {
        let command = CandidateArgs::augment_args(with_flags(*f, DeviceKind::Gpu));
        BenchArgs::augment_args(command).about(f.about())
    });
    BenchArgs::augment_args(command)
        .about("Measure kernels on a GPU, and a device copy or a large GEMM as their limit in the same run")
        .args_conflicts_with_subcommands(true)
        .subcommands(suites.chain(families))
}

/// Builds a family's subcommand with its own options.
pub(crate) fn with_flags(family: &dyn AnyFamily, device: DeviceKind) -> Command {
    fields::flags(Command::new(family.name()), family, device)
}

/// Returns the name of this program.
pub(crate) fn program(args: &[OsString]) -> String {
    let stem = args.first().and_then(|first| Path::new(first).file_stem());
    stem.map_or("warpline".into(), |stem| {
        stem.to_string_lossy().into_owned()
    })
}

/// Returns whether the arguments contain `--json`; works on arguments that do not parse.
pub(crate) fn wants_json(args: &[OsString]) -> bool {
    args.iter()
        .skip(1)
        .take_while(|a| *a != "--")
        .any(|a| a == "--json")
}

/// Returns the command: the first argument that is not an option.
pub(crate) fn first_word(args: &[OsString]) -> Option<&str> {
    let words = args.iter().skip(1).filter_map(|a| a.to_str());
    words.into_iter().find(|a| !a.starts_with('-'))
}

/// Returns the kind of device that the arguments select; help shows its defaults.
fn device_kind(args: &[OsString]) -> DeviceKind {
    let device = args
        .iter()
        .enumerate()
        .find_map(|(i, a)| match a.to_str()? {
            "--device" => args.get(i + 1)?.to_str(),
            a => a.strip_prefix("--device="),
        });
    let is_help = |a: &OsString| [OsStr::new("-h"), OsStr::new("--help")].contains(&a.as_os_str());
    match device {
        Some(name) if name.starts_with("cuda") => DeviceKind::Gpu,
        // Only help shows defaults, and loading the driver takes time.
        None | Some("auto") if args.iter().any(is_help) => Device::auto().0.kind(),
        _ => DeviceKind::Cpu,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn command_line_is_consistent() {
        command(&warpline_kernels::registry(), &words("warpline")).debug_assert();
        let names = command(&[], &words("warpline"));
        let names: Vec<&str> = names.get_subcommands().map(Command::get_name).collect();
        assert_eq!(names, COMMANDS);
    }

    #[test]
    fn json_flag_is_found_anywhere_before_the_double_dash() {
        assert!(wants_json(&words("warpline --json")));
        assert!(wants_json(&words("warpline run vector-add --json --n 3")));
        assert!(!wants_json(&words("warpline run -- --json")));
    }

    #[test]
    fn help_shows_the_defaults_of_the_named_device() {
        assert_eq!(
            device_kind(&words("warpline run x --device cuda:1 --help")),
            DeviceKind::Gpu
        );
        assert_eq!(
            device_kind(&words("warpline run x --device=cuda --help")),
            DeviceKind::Gpu
        );
        assert_eq!(
            device_kind(&words("warpline run x --device cpu --help")),
            DeviceKind::Cpu
        );
        assert_eq!(device_kind(&words("warpline run x")), DeviceKind::Cpu);
    }

    #[test]
    fn program_name_is_the_file_name() {
        assert_eq!(program(&words("/usr/bin/mine --json")), "mine");
        assert_eq!(program(&[]), "warpline");
    }
}
