//! The baseline replaces a selected config that is undecided, and no other config.

use warpline::kernels::{
    AnyWorkload, Buffer, DeviceKind, Family, FamilyError, HostTensor, LaunchStep, Plan, Program,
    TensorSpec, TestCase, Workload,
};
use warpline::kernels::{config, fields, keywords};
use warpline::{Device, Error, RunOptions, prepare, prepare_selected, run, tune};
use warpline_check::examine;
use warpline_ir::builder::*;
use warpline_ir::{BuildErrors, DType, Kernel, Target};
use warpline_testkit::kernel::TARGET;

/// A family that selects an undecided schedule.
#[derive(Debug)]
pub(crate) struct Ones;

fields! {
    /// The problem.
    pub(crate) struct Problem {
        /// Whether the baseline is proved
        safe: bool,
    }
}

keywords! {
    /// A schedule.
    pub(crate) enum Schedule {
        /// Uses one of two barriers; a value in memory selects it
        Index = "index",
        /// Waits for a parity that depends on the sign of an exponential
        Exponential = "exponential",
        /// One barrier, one parity
        Plain = "plain",
    }
}

config! {
    /// A complete config.
    #[derive(Copy)]
    pub(crate) struct Config {
        /// The schedule
        schedule: Schedule,
    }
    /// The fields that the caller fixes.
    pub(crate) struct Choice;
}

impl Schedule {
    /// Returns an undecided schedule. Improvements of the checker may change the result.
    fn undecided() -> Self {
        let mut all = [Schedule::Index, Schedule::Exponential].into_iter();
        let undecided = |s: &Schedule| {
            let report = examine(&s.kernel().unwrap(), &TARGET);
            !report.diagnostics.is_empty() && report.diagnostics.iter().all(|r| r.undecided)
        };
        all.find(undecided).expect("one of them is undecided")
    }

    fn kernel(self) -> Result<Kernel, BuildErrors> {
        Kernel::build("ones", &Target::SM_90A, |k| {
            let (x, y) = (k.pointer::<f32>("x"), k.pointer::<f32>("y"));
            let bars = k.barrier("bars", 2).arrivals(1);
            k.role("all").body(|| {
                let first = x.load(0u32);
                // The barrier and the parity; an exponential is never negative.
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

    fn default_problem(_: DeviceKind) -> Problem {
        Problem { safe: true }
    }
    fn config(_: &Problem, choice: &Choice, _: &Target) -> Result<Config, FamilyError> {
        let schedule = choice.schedule.unwrap_or_else(Schedule::undecided);
        Ok(Config { schedule })
    }
    fn baseline(p: &Problem, choice: &Choice, _: &Target) -> Result<Config, FamilyError> {
        let baseline = match (p.safe, Schedule::undecided()) {
            (true, _) => Schedule::Plain,
            // Another schedule that is not proved.
            (_, Schedule::Index) => Schedule::Exponential,
            _ => Schedule::Index,
        };
        let schedule = choice.schedule.unwrap_or(baseline);
        Ok(Config { schedule })
    }
    fn candidates(_: &Problem, _: &Target) -> Vec<Config> {
        Vec::new()
    }
    fn plan(_: &Problem, c: &Config, target: &Target) -> Result<Plan, FamilyError> {
        let kernel = Program::cached(format!("ones {c:?}"), target, |_| c.schedule.kernel())?;
        let step = LaunchStep::new(kernel, [1, 1, 1])
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
    fn cases() -> Vec<TestCase<Problem, Choice>> {
        Vec::new()
    }
}

fn work(safe: bool, schedule: Option<Schedule>) -> Workload<Ones> {
    Workload::new(Problem { safe }, &Choice { schedule }, &TARGET).unwrap()
}

/// Returns the reason why the checker could not decide.
fn undecided_reason(prepared: Result<warpline::Prepared, Error>) -> String {
    match prepared {
        Err(Error::NotProved(all)) if all.diagnostics.iter().all(|r| r.undecided) => {
            all.to_string()
        }
        other => panic!("must be undecided: {other:?}"),
    }
}

#[test]
fn the_baseline_replaces_an_undecided_config() {
    let work = work(true, None);
    let reason = undecided_reason(prepare_selected(&work, &TARGET));
    let prepared = prepare(&work, &TARGET).unwrap();
    let fallback = prepared.fallback.unwrap();
    assert_eq!(fallback.config["schedule"], "plain");
    assert_eq!(
        (fallback.selected, fallback.reason),
        (work.config(), reason)
    );
    assert!(prepared.steps.iter().all(|step| step.kernel.is_proved()));

    let report = run(&work, &Device::cpu(), &RunOptions::default()).unwrap();
    assert!(report.passed() && report.fallback.is_some());
    assert_eq!(report.config["schedule"], "plain");
    let notices = tune::notices();
    let matching = notices
        .iter()
        .filter(|n| n.contains("selected config of ones"));
    assert_eq!(matching.count(), 1, "emitted once: {notices:?}");
}

#[test]
fn an_explicit_undecided_config_is_an_error() {
    let explicit = work(true, Some(Schedule::undecided()));
    undecided_reason(prepare(&explicit, &TARGET));
    let proved = work(true, Some(Schedule::Plain));
    assert_eq!(prepare(&proved, &TARGET).unwrap().fallback, None);
}

#[test]
fn an_unproved_baseline_replaces_nothing() {
    let work = work(false, None);
    let reason = undecided_reason(prepare_selected(&work, &TARGET));
    assert_eq!(undecided_reason(prepare(&work, &TARGET)), reason);
}
