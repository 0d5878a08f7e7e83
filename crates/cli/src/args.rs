//! Commands and options.
//!
//! Each family is a subcommand of `check`, `run`, `bench`, `sweep`, `tune` and
//! `emit`, so that its options are its own.

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
use warpline::bench::{LEAST_ROUNDS, suite};
use warpline::kernels::Place;
use warpline::{Device, Timing};
use warpline_kernels::AnyFamily;

/// The commands, in the order of the help.
pub(crate) const COMMANDS: [&str; 11] = [
    "devices",
    "list",
    "check",
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
Warp-specialized GPU kernels: write the assembly line once, check it, run it on
the CPU or a GPU, print it as PTX.

Without a command, the first kernel family runs on the best device there is.";

const EXIT_CODES: &str = "
Exit codes: 0 good; 1 refused, undecided or wrong result; 2 bad input or no such
device; 3 device fault or hang.";

/// What to try, with the names that this program and its first family go by.
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
            ("", "run the first family where it runs best"),
            ("devices", "what can run here, and why not"),
            (
                "check FAMILY",
                "prove that it neither hangs nor races, and print what the proof assumes",
            ),
            ("run FAMILY", "run, compare with the reference, time"),
            ("run FAMILY --help", "the family's own options"),
            ("bench memory", "measure on a GPU"),
            (
                "sweep FAMILY --vary stages=2,3,4",
                "the values of an option side by side",
            ),
            ("tune FAMILY", "find the fastest config on a GPU"),
            ("emit FAMILY --ptx -o k.ptx", "print the kernel"),
            ("new mine", "a crate with a kernel of your own"),
        ]);
        format!("Examples:\n{lines}{EXIT_CODES}")
    }

    fn check(&self) -> String {
        let lines = self.lines(&[
            ("check FAMILY", "proved, or what is wrong and where"),
            ("check FAMILY --lint", "and a checklist of what is slow"),
            ("check --all", "every family with every config"),
            ("check --corpus", "public bugs, which must be refused"),
            ("check FAMILY --json", "for programs"),
            ("check FAMILY --help", "the family's own options"),
        ]);
        format!("Examples:\n{lines}")
    }

    fn run(&self) -> String {
        let lines = self.lines(&[
            ("run FAMILY", "where it runs best"),
            (
                "run FAMILY --device cpu --timing late",
                "asynchronous work ends as late as it can",
            ),
            (
                "run FAMILY --timing random --seed 7",
                "and at moments drawn from a seed",
            ),
            (
                "run FAMILY --save drawn",
                "keep inputs and outputs as files",
            ),
            ("run FAMILY --data drawn", "and run on such files"),
            ("run FAMILY --device cuda:0 --json", "for programs"),
            ("run FAMILY --help", "the family's own options"),
        ]);
        format!("Examples:\n{lines}")
    }

    fn bench(&self) -> String {
        let lines = self.lines(&[
            ("bench", "every suite"),
            ("bench memory --json", "one suite, for programs"),
            ("bench FAMILY", "one family at its default problem"),
            ("bench FAMILY --forms", "its forms against each other"),
            (
                "bench FAMILY --candidates 12",
                "its likeliest configs against each other",
            ),
            ("bench FAMILY --help", "the family's own options"),
        ]);
        format!("Examples:\n{lines}")
    }

    fn sweep(&self) -> String {
        let lines = self.lines(&[
            (
                "sweep FAMILY --vary stages=2,3,4",
                "each value: timed on a GPU, counted on the CPU",
            ),
            (
                "sweep FAMILY --vary stages=2,3 --vary ctas=66,132",
                "every combination",
            ),
            (
                "sweep FAMILY --vary stages=2,3,4 --svg stages.svg",
                "and a plot of it",
            ),
            ("sweep FAMILY --help", "the family's own options"),
        ]);
        format!("Examples:\n{lines}")
    }

    fn tune(&self) -> String {
        let lines = self.lines(&[
            ("tune FAMILY", "the family at its default problem"),
            ("tune FAMILY --dry-run", "what would be raced"),
            ("tune FAMILY --again", "also where it was tuned before"),
            ("tune --suite memory", "every problem of a suite"),
            ("tune FAMILY --help", "the family's own options"),
        ]);
        format!("Examples:\n{lines}")
    }

    fn cache(&self) -> String {
        let lines = self.lines(&[
            ("cache list", "what was tuned, and where it is"),
            ("cache clear --family FAMILY", "forget one family's"),
            ("cache export tuned.json", "for other machines of this kind"),
            ("cache import tuned.json", "take them there"),
        ]);
        format!("Examples:\n{lines}")
    }

    fn emit(&self) -> String {
        let lines = self.lines(&[
            ("emit FAMILY --ptx -o k.ptx", "into a file"),
            ("emit FAMILY --ir", "the program as Warpline reads it"),
            (
                "emit FAMILY --resources --json",
                "registers, shared memory, spills",
            ),
            ("emit FAMILY --help", "the family's own options"),
        ]);
        format!("Examples:\n{lines}")
    }

    fn new_crate(&self) -> String {
        let lines = self.lines(&[
            ("new mine", "in the folder mine"),
            ("new mine --path kernels/mine", "in another folder"),
            ("new mine --json", "for programs"),
        ]);
        format!("Examples:\n{lines}")
    }

    /// What to try after a first run.
    pub(crate) fn next(&self) -> String {
        let lines = self.lines(&[
            ("devices", "what can run here, and why not"),
            ("list", "the kernel families"),
            ("run FAMILY --help", "other problems and configs"),
            ("emit FAMILY --ir", "the program"),
        ]);
        format!("\nTry next:\n{lines}")
    }

    /// Commands and what they do, in two columns.
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

/// What to check, where no family is named.
#[derive(Clone, Debug, Args)]
pub(crate) struct CheckArgs {
    /// Every family with every config that it may choose or is tested with
    #[arg(long, conflicts_with = "corpus")]
    pub(crate) all: bool,
    /// Kernels with public bugs: each must be refused, and its repaired form proved
    #[arg(long)]
    pub(crate) corpus: bool,
    /// Also replays each refutation on the CPU executor, with the launch and the schedule
    /// that it was found in
    #[arg(long)]
    pub(crate) replay: bool,
    #[command(flatten)]
    pub(crate) on: TargetArgs,
}

/// What else to look at in a family's kernels.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Check")]
pub(crate) struct LintArgs {
    /// Also runs this launch on the CPU simulator and looks for races, in global
    /// memory too: one writer for each byte, or an order
    #[arg(long)]
    pub(crate) launch: bool,
    /// Also a checklist of what is slow: bank conflicts, sectors, divergence,
    /// registers, spills, idle roles, sizes
    #[arg(long)]
    pub(crate) lint: bool,
    /// Also replays each refutation on the CPU executor, with the launch and the schedule
    /// that it was found in
    #[arg(long)]
    pub(crate) replay: bool,
    #[command(flatten)]
    pub(crate) on: TargetArgs,
}

/// How to run.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Run")]
pub(crate) struct RunArgs {
    /// Where to run: auto takes a GPU if one can be used, else the CPU simulator
    #[arg(long, value_name = "auto|cpu|cuda:N", default_value = "auto")]
    pub(crate) device: String,
    /// When asynchronous work completes on the simulator: at once, as late as
    /// the program allows, or at moments drawn from the seed [default: eager]
    #[arg(long, value_parser = timing(), hide_possible_values = true, value_name = "eager|late|random")]
    pub(crate) timing: Option<Timing>,
    /// Draws the inputs and the random timing
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Timed runs, of which the median counts [default: 10 on a GPU, 1 on the simulator]
    #[arg(long, value_name = "N")]
    pub(crate) repeat: Option<NonZeroU32>,
    /// Takes the inputs from a folder with a NAME.bin or NAME.safetensors for
    /// each, or from one .safetensors file
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) data: Option<PathBuf>,
    /// Leaves inputs and outputs in a new folder, a NAME.bin for each, or in
    /// one .safetensors file
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) save: Option<PathBuf>,
    /// On a GPU: does not look for hangs first, in a process of its own
    #[arg(long)]
    pub(crate) no_watchdog: bool,
    /// Also says how long the kernels took to make, and where they came from
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

/// How to measure.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Measure")]
pub(crate) struct BenchArgs {
    /// The GPU: auto takes the first that can be used
    #[arg(long, value_name = "auto|cuda:N", default_value = "auto")]
    pub(crate) device: String,
    /// Rounds, each of which times every contender once, in a fresh random order
    #[arg(long, value_name = "N", default_value_t = 25, value_parser = rounds())]
    pub(crate) rounds: u32,
    /// Draws the inputs and the orders
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Also runs each contender alone for more than a second, as a product
    /// under the power limit does
    #[arg(long)]
    pub(crate) sustained: bool,
}

/// Which configs of a family to measure against each other.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Contenders")]
pub(crate) struct ContenderArgs {
    /// The first N of the family's candidates that agree with the config
    /// options given, instead of its own choice alone
    #[arg(long, value_name = "N", conflicts_with = "forms")]
    pub(crate) candidates: Option<NonZeroU32>,
    /// The first candidate of each form
    #[arg(long)]
    pub(crate) forms: bool,
}

/// What to print of a kernel.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct EmitArgs {
    /// The program as Warpline reads it
    #[arg(long, conflicts_with = "ptx")]
    pub(crate) ir: bool,
    /// PTX for the target (what is printed unless asked otherwise)
    #[arg(long)]
    pub(crate) ptx: bool,
    /// Registers, shared memory, barriers and spills: from ptxas if it is
    /// found, else our estimate
    #[arg(long)]
    pub(crate) resources: bool,
    /// Writes the program to a file; `-` is standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) on: TargetArgs,
}

/// What to make, and where.
#[derive(Clone, Debug, Args)]
pub(crate) struct NewArgs {
    /// The crate's name: ASCII letters, digits, - and _
    pub(crate) name: String,
    /// The folder to make; one that is there must be empty [default: ./NAME]
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) path: Option<PathBuf>,
    /// The checkout of Warpline to depend on [default: the one that built this
    /// program, or the repository where that is gone]
    #[arg(long, value_name = "CHECKOUT", value_hint = ValueHint::DirPath)]
    pub(crate) warpline: Option<PathBuf>,
}

/// For which shell.
#[derive(Clone, Debug, Args)]
pub(crate) struct CompletionArgs {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

fn rounds() -> impl TypedValueParser<Value = u32> {
    clap::value_parser!(u32).range(i64::from(LEAST_ROUNDS)..=1_000_000)
}

fn timing() -> impl TypedValueParser<Value = Timing> {
    PossibleValuesParser::new(Timing::ALL.map(Timing::name)).try_map(|name| name.parse::<Timing>())
}

/// The whole command line.
pub(crate) fn command(families: &[&dyn AnyFamily], args: &[OsString]) -> Command {
    let place = place(args);
    let examples = Examples::new(args, families);
    let of_families = |name: &'static str, about: &'static str, examples: String| {
        Command::new(name)
            .about(about)
            .after_help(examples)
            .subcommand_required(true)
            .subcommand_value_name("FAMILY")
            .subcommand_help_heading("Families")
            .disable_help_subcommand(true)
    };
    let run = of_families(
        "run",
        "Runs a family's kernels, compares them with the reference, and prints error and time",
        examples.run(),
    );
    let emit = of_families(
        "emit",
        "Prints a family's kernels: program, PTX, resources",
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
                .help("One JSON object on standard output, all else on standard error"),
        )
        .subcommand(Command::new("devices").about("What can run here, and why not"))
        .subcommand(
            TargetArgs::augment_args(Command::new("list"))
                .about("The kernel families, their problems and configs")
                .arg(
                    Arg::new("ops")
                        .long("ops")
                        .action(ArgAction::SetTrue)
                        .help("The instructions a kernel can use, instead"),
                ),
        )
        .subcommand(check(families, examples.check()))
        .subcommand(run.subcommands(families.iter().map(|f| {
            let command = with_flags(*f, place);
            RunArgs::augment_args(command).about(f.about())
        })))
        .subcommand(bench(families, examples.bench()))
        .subcommand(sweep::sweep(families, place, examples.sweep()))
        .subcommand(tune::tune(families, examples.tune()))
        .subcommand(tune::cache(examples.cache()))
        .subcommand(emit.subcommands(families.iter().map(|f| {
            let command = with_flags(*f, Place::Gpu);
            EmitArgs::augment_args(command).about(f.about())
        })))
        .subcommand(
            NewArgs::augment_args(Command::new("new"))
                .about("Makes a crate with a kernel of your own, to be changed")
                .after_help(examples.new_crate()),
        )
        .subcommand(
            CompletionArgs::augment_args(Command::new("completions"))
                .about("Prints a script that completes commands in a shell"),
        )
}

/// `check`: a family, all of them, or the corpus.
fn check(families: &[&dyn AnyFamily], examples: String) -> Command {
    let command = Command::new("check")
        .after_help(examples)
        .subcommand_value_name("FAMILY")
        .subcommand_help_heading("Families")
        .disable_help_subcommand(true);
    let families = families.iter().map(|f| {
        let command = with_flags(*f, Place::Gpu);
        LintArgs::augment_args(command).about(f.about())
    });
    CheckArgs::augment_args(command)
        .about("Proves that kernels neither hang nor race, under the assumptions it prints, or reports the bug and its line")
        .args_conflicts_with_subcommands(true)
        .subcommands(families)
}

/// `bench`: a suite, a family, or everything.
fn bench(families: &[&dyn AnyFamily], examples: String) -> Command {
    let command = Command::new("bench")
        .after_help(examples)
        .subcommand_value_name("SUITE or FAMILY")
        .subcommand_help_heading("Suites and families")
        .disable_help_subcommand(true);
    // A suite with the name of a family is measured where the family is asked for nothing of its own.
    let families_too = |name: &&str| families.iter().all(|f| f.name() != *name);
    let suites = suite::names(families).into_iter().filter(families_too);
    let suites =
        suites.map(|name| BenchArgs::augment_args(Command::new(name)).about(suite::about(name)));
    let families = families.iter().map(|f| {
        let command = ContenderArgs::augment_args(with_flags(*f, Place::Gpu));
        BenchArgs::augment_args(command).about(f.about())
    });
    BenchArgs::augment_args(command)
        .about("Measures on a GPU: contenders against each other and against the limit, in one run")
        .args_conflicts_with_subcommands(true)
        .subcommands(suites.chain(families))
}

/// A family's subcommand with its own options.
pub(crate) fn with_flags(family: &dyn AnyFamily, place: Place) -> Command {
    fields::flags(Command::new(family.name()), family, place)
}

/// The name this program goes by.
pub(crate) fn program(args: &[OsString]) -> String {
    let stem = args.first().and_then(|first| Path::new(first).file_stem());
    stem.map_or("warpline".into(), |stem| {
        stem.to_string_lossy().into_owned()
    })
}

/// Is the answer to be JSON? Asked before the arguments are known to be good.
pub(crate) fn wants_json(args: &[OsString]) -> bool {
    args.iter()
        .skip(1)
        .take_while(|a| *a != "--")
        .any(|a| a == "--json")
}

/// The first argument that is no option: the command.
pub(crate) fn first_word(args: &[OsString]) -> Option<&str> {
    let words = args.iter().skip(1).filter_map(|a| a.to_str());
    words.into_iter().find(|a| !a.starts_with('-'))
}

/// Where a run would be, for the defaults that help shows.
fn place(args: &[OsString]) -> Place {
    let named = args
        .iter()
        .enumerate()
        .find_map(|(i, a)| match a.to_str()? {
            "--device" => args.get(i + 1)?.to_str(),
            a => a.strip_prefix("--device="),
        });
    let asks = |a: &OsString| [OsStr::new("-h"), OsStr::new("--help")].contains(&a.as_os_str());
    match named {
        Some(name) if name.starts_with("cuda") => Place::Gpu,
        // Only help needs to know; asking a driver takes time.
        None | Some("auto") if args.iter().any(asks) => Device::auto().0.place(),
        _ => Place::Cpu,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn the_command_line_holds_together() {
        command(&warpline_kernels::registry(), &words("warpline")).debug_assert();
        let names = command(&[], &words("warpline"));
        let names: Vec<&str> = names.get_subcommands().map(Command::get_name).collect();
        assert_eq!(names, COMMANDS);
    }

    #[test]
    fn json_is_asked_for_anywhere_before_the_double_dash() {
        assert!(wants_json(&words("warpline --json")));
        assert!(wants_json(&words("warpline run vector-add --json --n 3")));
        assert!(!wants_json(&words("warpline run -- --json")));
    }

    #[test]
    fn help_for_a_named_device_shows_its_defaults() {
        assert_eq!(
            place(&words("warpline run x --device cuda:1 --help")),
            Place::Gpu
        );
        assert_eq!(
            place(&words("warpline run x --device=cuda --help")),
            Place::Gpu
        );
        assert_eq!(
            place(&words("warpline run x --device cpu --help")),
            Place::Cpu
        );
        assert_eq!(place(&words("warpline run x")), Place::Cpu);
    }

    #[test]
    fn a_program_goes_by_the_name_of_its_file() {
        assert_eq!(program(&words("/usr/bin/mine --json")), "mine");
        assert_eq!(program(&[]), "warpline");
    }
}
