//! The baseline takes the place of a selected config that is undecided, and of no other.

use warpline::kernels::{
    AnyWork, Buffer, Case, Family, FamilyError, HostTensor, Place, Plan, Program, Step, TensorSpec,
    Work,
};
use warpline::kernels::{config, fields, words};
use warpline::{Device, Error, RunOptions, prepare, prepare_exactly, run, tune};
use warpline_check::examine;
use warpline_ir::build::*;
use warpline_ir::{BuildErrors, DType, Kernel, Target};
use warpline_testkit::kernel::TARGET;

/// A family that selects a schedule which the checker does not decide.
#[derive(Debug)]
struct Ones;

fields! {
    /// The problem.
    struct Problem {
        /// Has it a baseline that is proved?
        safe: bool,
    }
}

words! {
    /// A schedule.
    enum Schedule {
        /// Takes one of two barriers, which memory names
        Index = "index",
        /// Waits for a parity that follows from the sign of an exponential
        Exponential = "exponential",
        /// One barrier, one parity
        Plain = "plain",
    }
}

config! {
    /// A complete config.
    #[derive(Copy)]
    struct Config {
        /// The schedule
        schedule: Schedule,
    }
    /// What the caller fixes of it.
    struct Choice;
}

impl Schedule {
    /// One that the checker leaves undecided: which one that is may change as it learns.
    fn undecided() -> Self {
        let mut all = [Schedule::Index, Schedule::Exponential].into_iter();
        let undecided = |s: &Schedule| {
            let report = examine(&s.kernel().unwrap(), &TARGET);
            !report.refusals.is_empty() && report.refusals.iter().all(|r| r.undecided)
        };
        all.find(undecided).expect("one of them is undecided")
    }

    fn kernel(self) -> Result<Kernel, BuildErrors> {
        Kernel::build("ones", &Target::SM_90A, |k| {
            let (x, y) = (k.pointer::<f32>("x"), k.pointer::<f32>("y"));
            let bars = k.barrier("bars", 2).count(1);
            k.role("all").body(|| {
                let first = x.load(0u32);
                // Which barrier, and the parity; an exponential is never below 0.
                let (bar, parity) = match self {
                    Schedule::Index => (first.bitcast::<u32>() & 1, 0u32.reg()),
                    Schedule::Exponential => {
                        (0u32.reg(), select(exp2(first).lt(0.0f32), 1u32, 0u32))
                    }
                    Schedule::Plain => (0u32.reg(), 0u32.reg()),
                };
                elect(|| bars.at(bar).arrive());
                bars.at(bar).wait(parity);
                y.store(lane_id(), 1.0f32);
            });
        })
    }
}

fn spec(name: &'static str) -> TensorSpec {
    TensorSpec {
        name,
        dtype: DType::F32,
        shape: vec![32],
    }
}

impl Family for Ones {
    type Problem = Problem;
    type Choice = Choice;
    type Config = Config;
    const NAME: &'static str = "ones";
    const ABOUT: &'static str = "y = 1";

    fn default_problem(_: Place) -> Problem {
        Problem { safe: true }
    }
    fn config(_: &Problem, choice: &Choice, _: &Target) -> Result<Config, FamilyError> {
        let schedule = choice.schedule.unwrap_or_else(Schedule::undecided);
        Ok(Config { schedule })
    }
    fn baseline(p: &Problem, choice: &Choice, _: &Target) -> Result<Config, FamilyError> {
        let usual = match (p.safe, Schedule::undecided()) {
            (true, _) => Schedule::Plain,
            // Another one that is not proved.
            (_, Schedule::Index) => Schedule::Exponential,
            _ => Schedule::Index,
        };
        let schedule = choice.schedule.unwrap_or(usual);
        Ok(Config { schedule })
    }
    fn candidates(_: &Problem, _: &Target) -> Vec<Config> {
        Vec::new()
    }
    fn plan(_: &Problem, c: &Config, target: &Target) -> Result<Plan, FamilyError> {
        let kernel = Program::once(format!("ones {c:?}"), target, |_| c.schedule.kernel())?;
        let step = Step::new(kernel, [1, 1, 1])
            .pointer("x", Buffer::Input(0))
            .pointer("y", Buffer::Output(0));
        Plan::new(vec![step], 0)
    }
    fn inputs(_: &Problem) -> Vec<TensorSpec> {
        vec![spec("x")]
    }
    fn draw(_: &Problem, _: u64) -> Vec<HostTensor> {
        vec![HostTensor::round(spec("x"), [0.0; 32])]
    }
    fn outputs(_: &Problem) -> Vec<TensorSpec> {
        vec![spec("y")]
    }
    fn reference(_: &Problem, _: &[HostTensor]) -> Vec<Vec<(f64, f64)>> {
        vec![vec![(1.0, 0.0); 32]]
    }
    fn cases() -> Vec<Case<Problem, Choice>> {
        Vec::new()
    }
}

fn work(safe: bool, schedule: Option<Schedule>) -> Work<Ones> {
    Work::new(Problem { safe }, &Choice { schedule }, &TARGET).unwrap()
}

/// Why the checker decides nothing.
fn undecided(prepared: Result<warpline::Prepared, Error>) -> String {
    match prepared {
        Err(Error::Refused(all)) if all.refusals.iter().all(|r| r.undecided) => all.to_string(),
        other => panic!("must be undecided: {other:?}"),
    }
}

#[test]
fn the_baseline_takes_the_place_of_a_selected_config_that_is_undecided() {
    let work = work(true, None);
    let reason = undecided(prepare_exactly(&work, &TARGET));
    let prepared = prepare(&work, &TARGET).unwrap();
    let fallback = prepared.fallback.unwrap();
    assert_eq!(fallback.config["schedule"], "plain");
    assert_eq!(
        (fallback.selected, fallback.reason),
        (work.config(), reason)
    );
    assert!(prepared.steps.iter().all(|step| step.kernel.is_proved()));

    let outcome = run(&work, &Device::cpu(), &RunOptions::default()).unwrap();
    assert!(outcome.passed() && outcome.fallback.is_some());
    assert_eq!(outcome.config["schedule"], "plain");
    let told = tune::notices();
    let ours = told
        .iter()
        .filter(|n| n.contains("selected config of ones"));
    assert_eq!(ours.count(), 1, "told once: {told:?}");
}

#[test]
fn a_config_that_is_given_is_reported() {
    let given = work(true, Some(Schedule::undecided()));
    undecided(prepare(&given, &TARGET));
    let proved = work(true, Some(Schedule::Plain));
    assert_eq!(prepare(&proved, &TARGET).unwrap().fallback, None);
}

#[test]
fn a_baseline_that_is_not_proved_takes_no_place() {
    let work = work(false, None);
    let reason = undecided(prepare_exactly(&work, &TARGET));
    assert_eq!(undecided(prepare(&work, &TARGET)), reason);
}
