//! Type-erased families, workloads and ops, for code that iterates over families.
//!
//! Only this module forwards to [`Family`].

use crate::bucket::Bucket;
use crate::draw;
use crate::error::FamilyError;
use crate::family::{Cost, DeviceKind, Family, Op, TestCase};
use crate::field::{FieldError, Fields};
use crate::numbers::Random;
use crate::op::{ArgValue, OpArgs, Signature, TensorView};
use crate::plan::Plan;
use crate::redirect::{self, ReadRequest};
use crate::request::{FamilyFields, Request};
use crate::stored::StoredTensors;
use crate::tensor::{HostTensor, TensorSpec};
use serde_json::Value;
use std::fmt;
use warpline_ir::Target;

/// A list of workloads, or the error that prevented it.
pub type Workloads = Result<Vec<Box<dyn AnyWorkload>>, FamilyError>;

/// A type-erased [`Family`].
pub trait AnyFamily: Send + Sync {
    /// See [`Family::NAME`].
    fn name(&self) -> &'static str;
    /// See [`Family::ABOUT`].
    fn about(&self) -> &'static str;
    /// Returns the default problem for a device kind, as JSON.
    fn default_problem(&self, device: DeviceKind) -> Value;
    /// Describes the fields of the problem, with the defaults for a device kind, and of the config.
    fn fields(&self, device: DeviceKind) -> FamilyFields;
    /// Returns the workload of a request. Stored input tensors may determine fields that the
    /// request does not set ([`Family::complete_from_tensors`]).
    fn workload(
        &self,
        request: &Request,
        device: DeviceKind,
        stored: Option<&dyn StoredTensors>,
        target: &Target,
    ) -> Result<Box<dyn AnyWorkload>, FamilyError>;
    /// Returns the workload of the default problem.
    fn default_workload(
        &self,
        device: DeviceKind,
        target: &Target,
    ) -> Result<Box<dyn AnyWorkload>, FamilyError> {
        self.workload(&Request::default(), device, None, target)
    }
    /// Draws a valid problem and returns its request for the device kind [`draw::DEVICE`]: see
    /// [`Family::draw_problem`].
    fn draw_problem(&self, random: &mut Random) -> Request;
    /// Returns the candidates for the problem of a request, most promising first. Every candidate
    /// agrees with the config fields that the request sets.
    fn candidates(&self, request: &Request, device: DeviceKind, target: &Target) -> Workloads;
    /// See [`Family::cases`].
    fn cases(&self, target: &Target) -> Vec<Result<Box<dyn AnyWorkload>, FamilyError>>;
    /// See [`Family::large_cases`].
    fn large_cases(&self, target: &Target) -> Vec<Result<Box<dyn AnyWorkload>, FamilyError>>;
    /// Returns the names of the benchmark suites of the family.
    fn suites(&self) -> Vec<&'static str>;
    /// Returns the names of the [surveys](Family::surveys) of the family.
    fn surveys(&self) -> Vec<&'static str>;
    /// Returns the workloads of a benchmark suite or a survey, with the configs that the heuristic
    /// selects.
    fn bench(&self, suite: &str, target: &Target) -> Workloads;
    /// See [`Family::ops`].
    fn ops(&self) -> Vec<AnyOp>;
    /// Returns the benchmark problems of all suites as op calls.
    fn bench_calls(&self, target: &Target) -> Result<Vec<BenchCall>, FamilyError>;
    /// Returns the problems of all surveys as op calls.
    fn survey_calls(&self, target: &Target) -> Result<Vec<BenchCall>, FamilyError>;
}

/// A type-erased [`Workload`]: a problem with its config.
pub trait AnyWorkload: Send + Sync {
    /// Returns the name of the family.
    fn family(&self) -> &'static str;
    /// Returns the problem as JSON.
    fn problem(&self) -> Value;
    /// Returns the config as JSON.
    fn config(&self) -> Value;
    /// See [`Family::plan`].
    fn plan(&self, target: &Target) -> Result<Plan, FamilyError>;
    /// See [`Family::cost`].
    fn cost(&self) -> Cost;
    /// See [`Family::inputs`].
    fn inputs(&self) -> Vec<TensorSpec>;
    /// See [`Family::outputs`].
    fn outputs(&self) -> Vec<TensorSpec>;
    /// See [`Family::draw`].
    fn draw(&self, seed: u64) -> Vec<HostTensor> {
        HostTensor::draw_normal(self.inputs(), seed)
    }
    /// See [`Family::check_values`].
    fn check_values(&self, _inputs: &[HostTensor]) -> Result<(), FamilyError> {
        Ok(())
    }
    /// See [`Family::reference`].
    fn reference(&self, inputs: &[HostTensor]) -> Vec<Vec<(f64, f64)>>;
    /// See [`Family::period`].
    fn period(&self) -> Option<Box<dyn AnyWorkload>> {
        None
    }
    /// See [`Family::reduced`].
    fn reduced(&self) -> Option<Box<dyn AnyWorkload>> {
        None
    }
    /// Returns the same problem with the [baseline](Family::baseline) config; `None` if this config
    /// is the baseline or the caller's choices exclude it.
    fn baseline(&self, _: &Target) -> Option<Box<dyn AnyWorkload>> {
        None
    }
    /// Returns the data that autotuning needs; `None` if the workload belongs to no family.
    fn tuning(&self) -> Option<Tuning> {
        None
    }
    /// See [`Family::estimate`].
    fn estimate(&self, _: &Target) -> Option<f64> {
        None
    }
    /// Returns the same problem with a stored config, tuned for this problem or another one of its
    /// bucket. Rejects a config that the family does not accept.
    fn with_config(&self, _: &Value, _: &Target) -> Result<Box<dyn AnyWorkload>, FamilyError> {
        let text = format!("{} has only one config", self.family());
        Err(FamilyError::Config(text))
    }
    /// Returns the same problem with every config that autotuning considers: the heuristic's
    /// selection first, then the candidates that agree with the caller's choices.
    fn alternatives(&self, _: &Target) -> Workloads {
        Ok(Vec::new())
    }
}

/// The data that autotuning needs about a workload.
#[derive(Clone, PartialEq, Debug)]
pub struct Tuning {
    /// See [`Family::class`].
    pub class: Value,
    /// The fields of the config that the caller fixed, as JSON.
    pub fixed: Value,
    /// See [`Family::bucket`].
    pub bucket: Bucket,
    /// See [`Family::is_deterministic`].
    pub is_deterministic: bool,
}

/// A problem of a family with its config.
#[derive(Debug)]
pub struct Workload<F: Family> {
    /// The problem.
    pub problem: F::Problem,
    /// The part of the config that the caller fixed.
    pub choice: F::Choice,
    /// The complete config.
    pub config: F::Config,
}

impl<F: Family> Workload<F> {
    /// Checks the problem and the choice, and selects the config.
    pub fn new(
        problem: F::Problem,
        choice: &F::Choice,
        target: &Target,
    ) -> Result<Self, FamilyError> {
        let rejected = |e: FieldError| FamilyError::Problem(e.to_string());
        problem.check().map_err(rejected)?;
        F::check(&problem)?;
        let rejected = |e: FieldError| FamilyError::Config(e.to_string());
        choice.check().map_err(rejected)?;
        let choice = F::fixed_choice(&problem, choice, target)?;
        let config = F::config(&problem, &choice, target)?;
        Ok(Self {
            problem,
            choice,
            config,
        })
    }

    fn boxed_with(&self, problem: F::Problem, config: F::Config) -> Box<dyn AnyWorkload> {
        Box::new(Self {
            problem,
            choice: self.choice.clone(),
            config,
        })
    }

    fn with_configs(&self, configs: Vec<F::Config>) -> Vec<Box<dyn AnyWorkload>> {
        let workload = |config| self.boxed_with(self.problem.clone(), config);
        configs.into_iter().map(workload).collect()
    }
}

/// Returns the complete config as JSON.
fn config_json<F: Family>(config: &F::Config) -> Value {
    F::Choice::from(config).json()
}

/// Returns the candidates of a problem that agree with a choice.
fn candidates<F: Family>(
    problem: &F::Problem,
    choice: &F::Choice,
    target: &Target,
) -> Vec<F::Config> {
    let fixed = choice.json();
    let mut all = F::candidates(problem, target);
    all.retain(|config| agrees(&config_json::<F>(config), &fixed));
    all
}

/// Returns whether a config has every value that a choice fixes. Fields that the config does not
/// have are ignored.
pub(crate) fn agrees(config: &Value, choice: &Value) -> bool {
    let mut fixed = choice.as_object().into_iter().flatten();
    fixed.all(|(name, value)| config.get(name).is_none_or(|actual| actual == value))
}

impl<F: Family> AnyWorkload for Workload<F> {
    fn family(&self) -> &'static str {
        F::NAME
    }
    fn problem(&self) -> Value {
        self.problem.json()
    }
    fn config(&self) -> Value {
        config_json::<F>(&self.config)
    }
    fn plan(&self, target: &Target) -> Result<Plan, FamilyError> {
        F::plan(&self.problem, &self.config, target)
    }
    fn cost(&self) -> Cost {
        F::cost(&self.problem)
    }
    fn inputs(&self) -> Vec<TensorSpec> {
        F::inputs(&self.problem)
    }
    fn outputs(&self) -> Vec<TensorSpec> {
        F::outputs(&self.problem)
    }
    fn draw(&self, seed: u64) -> Vec<HostTensor> {
        F::draw(&self.problem, seed)
    }
    fn check_values(&self, inputs: &[HostTensor]) -> Result<(), FamilyError> {
        F::check_values(&self.problem, inputs)
    }
    fn reference(&self, inputs: &[HostTensor]) -> Vec<Vec<(f64, f64)>> {
        F::reference(&self.problem, inputs)
    }
    fn period(&self) -> Option<Box<dyn AnyWorkload>> {
        Some(self.boxed_with(F::period(&self.problem)?, self.config.clone()))
    }
    fn reduced(&self) -> Option<Box<dyn AnyWorkload>> {
        let (problem, config) = F::reduced(&self.problem, &self.config)?;
        Some(self.boxed_with(problem, config))
    }
    fn baseline(&self, target: &Target) -> Option<Box<dyn AnyWorkload>> {
        let config = F::baseline(&self.problem, &self.choice, target).ok()?;
        (config != self.config).then(|| self.boxed_with(self.problem.clone(), config))
    }
    fn tuning(&self) -> Option<Tuning> {
        Some(Tuning {
            class: F::class(&self.problem),
            fixed: self.choice.json(),
            bucket: F::bucket(&self.problem),
            is_deterministic: F::is_deterministic(&self.config),
        })
    }
    fn estimate(&self, target: &Target) -> Option<f64> {
        F::estimate(&self.problem, &self.config, target)
    }
    fn with_config(
        &self,
        config: &Value,
        target: &Target,
    ) -> Result<Box<dyn AnyWorkload>, FamilyError> {
        let reject = |why: String| {
            let text = format!("{} rejects the config {config}: {why}", F::NAME);
            FamilyError::Config(text)
        };
        let mut stored = F::Choice::default();
        stored.set_json(config).map_err(|e| reject(e.to_string()))?;
        let fitted = F::fit(&self.problem, &self.choice, &stored, target)?;
        let json = config_json::<F>(&fitted);
        let mut names = json.as_object().into_iter().flatten();
        if let Some((name, _)) = names.find(|(name, _)| config.get(name).is_none()) {
            return Err(reject(format!("the field {name:?} is missing")));
        }
        if !agrees(&json, &self.choice.json()) {
            return Err(reject("it contradicts the caller's choices".into()));
        }
        Ok(self.boxed_with(self.problem.clone(), fitted))
    }
    fn alternatives(&self, target: &Target) -> Workloads {
        let mut all = vec![F::config(&self.problem, &self.choice, target)?];
        for config in candidates::<F>(&self.problem, &self.choice, target) {
            if !all.contains(&config) {
                all.push(config);
            }
        }
        Ok(self.with_configs(all))
    }
}

impl<F: Family> AnyFamily for F {
    fn name(&self) -> &'static str {
        F::NAME
    }
    fn about(&self) -> &'static str {
        F::ABOUT
    }
    fn default_problem(&self, device: DeviceKind) -> Value {
        F::default_problem(device).json()
    }
    fn fields(&self, device: DeviceKind) -> FamilyFields {
        redirect::fields::<F>(device)
    }
    fn workload(
        &self,
        request: &Request,
        device: DeviceKind,
        stored: Option<&dyn StoredTensors>,
        target: &Target,
    ) -> Result<Box<dyn AnyWorkload>, FamilyError> {
        let task = NewWorkload {
            device,
            stored,
            target,
        };
        redirect::read::<F, _>(request, device, &task)
    }
    fn draw_problem(&self, random: &mut Random) -> Request {
        draw::problem_request::<F>(&F::draw_problem(random))
    }
    fn candidates(&self, request: &Request, device: DeviceKind, target: &Target) -> Workloads {
        redirect::read::<F, _>(request, device, &Candidates { device, target })
    }
    fn cases(&self, target: &Target) -> Vec<Result<Box<dyn AnyWorkload>, FamilyError>> {
        workloads::<F>(F::cases(), target)
    }
    fn large_cases(&self, target: &Target) -> Vec<Result<Box<dyn AnyWorkload>, FamilyError>> {
        workloads::<F>(F::large_cases(), target)
    }
    fn suites(&self) -> Vec<&'static str> {
        names(F::bench())
    }
    fn surveys(&self) -> Vec<&'static str> {
        names(F::surveys())
    }
    fn bench(&self, suite: &str, target: &Target) -> Workloads {
        let all = F::bench().into_iter().chain(F::surveys());
        let problems = all.filter(|(name, _)| *name == suite);
        let cases = problems.map(|(_, problem)| TestCase {
            problem,
            choice: F::Choice::default(),
        });
        workloads::<F>(cases.collect(), target)
            .into_iter()
            .collect()
    }
    fn ops(&self) -> Vec<AnyOp> {
        let mut all = Vec::new();
        for op in F::ops() {
            let variant = op.signature.with_optional_output();
            let variant = variant.map(|signature| Op { signature, ..op });
            all.push(AnyOp::new(op));
            all.extend(variant.map(AnyOp::new));
        }
        all
    }
    fn bench_calls(&self, target: &Target) -> Result<Vec<BenchCall>, FamilyError> {
        calls::<F>(F::bench(), target)
    }
    fn survey_calls(&self, target: &Target) -> Result<Vec<BenchCall>, FamilyError> {
        calls::<F>(F::surveys(), target)
    }
}

/// Returns the names of suites, sorted.
fn names<P>(problems: Vec<(&'static str, P)>) -> Vec<&'static str> {
    let mut names: Vec<_> = problems.into_iter().map(|(suite, _)| suite).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns the problems of suites as op calls.
fn calls<F: Family>(
    problems: Vec<(&'static str, F::Problem)>,
    target: &Target,
) -> Result<Vec<BenchCall>, FamilyError> {
    let ops = F::ops();
    let call = |(suite, problem): (&'static str, F::Problem)| {
        let op = ops.get(F::bench_op(&problem))?;
        let args = (op.args)(&problem);
        let work = Workload::<F>::new(problem, &F::Choice::default(), target);
        Some(work.map(|work| BenchCall {
            suite,
            op: op.signature.name,
            args,
            workload: Box::new(work),
        }))
    };
    problems.into_iter().filter_map(call).collect()
}

/// Converts a request to a workload.
struct NewWorkload<'a> {
    device: DeviceKind,
    stored: Option<&'a dyn StoredTensors>,
    target: &'a Target,
}

impl ReadRequest for NewWorkload<'_> {
    type Output = Box<dyn AnyWorkload>;
    fn read<F: Family>(&self, request: &Request) -> Result<Box<dyn AnyWorkload>, FamilyError> {
        let (mut problem, choice) = request.read::<F>(self.device)?;
        if let Some(stored) = self.stored {
            F::complete_from_tensors(&mut problem, &|name| request.get(name).is_some(), stored)?;
        }
        Ok(Box::new(Workload::<F>::new(problem, &choice, self.target)?))
    }
}

/// Converts a request to candidates.
struct Candidates<'a> {
    device: DeviceKind,
    target: &'a Target,
}

impl ReadRequest for Candidates<'_> {
    type Output = Vec<Box<dyn AnyWorkload>>;
    fn read<F: Family>(&self, request: &Request) -> Workloads {
        let (problem, choice) = request.read::<F>(self.device)?;
        F::check(&problem)?;
        let choice = F::fixed_choice(&problem, &choice, self.target)?;
        let work = |config| {
            Box::new(Workload::<F> {
                problem: problem.clone(),
                choice: choice.clone(),
                config,
            }) as Box<dyn AnyWorkload>
        };
        let all = candidates::<F>(&problem, &choice, self.target);
        Ok(all.into_iter().map(work).collect())
    }
}

/// Converts a test table to workloads.
fn workloads<F: Family>(
    cases: Vec<TestCase<F::Problem, F::Choice>>,
    target: &Target,
) -> Vec<Result<Box<dyn AnyWorkload>, FamilyError>> {
    let work = |c: TestCase<F::Problem, F::Choice>| {
        let work = Workload::<F>::new(c.problem, &c.choice, target)?;
        Ok(Box::new(work) as Box<dyn AnyWorkload>)
    };
    cases.into_iter().map(work).collect()
}

/// Converts a call to a workload; `None` if all outputs are empty.
type BuildWorkload =
    dyn Fn(&OpArgs<'_>, &Target) -> Result<Option<Box<dyn AnyWorkload>>, FamilyError> + Send + Sync;

/// A type-erased op.
pub struct AnyOp {
    /// The name, parameters and outputs.
    pub signature: Signature,
    /// The name of the family.
    pub family: &'static str,
    build: Box<BuildWorkload>,
}

impl fmt::Debug for AnyOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut s = f.debug_struct("AnyOp");
        s.field("signature", &self.signature)
            .field("family", &self.family)
            .finish()
    }
}

impl AnyOp {
    fn new<F: Family>(op: Op<F>) -> Self {
        let problem = op.problem;
        Self {
            signature: op.signature,
            family: F::NAME,
            build: Box::new(move |call, target| {
                let (problem, choice) = problem(call)?;
                if call.outs.iter().all(|out| out.elements() == 0) {
                    return Ok(None);
                }
                let work = Workload::<F>::new(problem, &choice, target);
                Ok(Some(Box::new(work.map_err(|e| call_error(call, e))?)))
            }),
        }
    }

    /// Returns the workload of a call; `None` if all outputs are empty.
    ///
    /// The plan's inputs are the tensor arguments in the order of the parameters; its outputs are
    /// those of the call. A list of integers also occupies an input, but no kernel reads it.
    pub fn workload(
        &self,
        args: &[ArgValue],
        outs: &[TensorView],
        target: &Target,
    ) -> Result<Option<Box<dyn AnyWorkload>>, FamilyError> {
        let call = OpArgs::new(&self.signature, args, outs)?;
        (self.build)(&call, target)
    }

    /// Rejects outputs that share memory with an input or with each other. Every call must check
    /// this, because addresses change between calls.
    pub fn check_aliasing(
        &self,
        args: &[ArgValue],
        outs: &[TensorView],
    ) -> Result<(), FamilyError> {
        OpArgs {
            signature: &self.signature,
            args,
            outs,
        }
        .check_aliasing()
    }
}

/// Converts an error of the family to that of a call. The op has validated the call, so a problem
/// that the family rejects is one that no kernel computes.
fn call_error(call: &OpArgs<'_>, error: FamilyError) -> FamilyError {
    let op = call.signature.name;
    match error {
        FamilyError::Problem(text) => {
            let is_dense = call.inputs().chain(call.outs).all(TensorView::is_dense);
            let text = format!("{op}: {text}");
            match is_dense {
                true => FamilyError::Unsupported(text),
                false => FamilyError::Layout(text),
            }
        }
        FamilyError::Config(text) => FamilyError::Config(format!("{op}: {text}")),
        other => other,
    }
}

/// An op call of a benchmark.
pub struct BenchCall {
    /// The suite.
    pub suite: &'static str,
    /// The op's name.
    pub op: &'static str,
    /// The arguments, in the order of the parameters.
    pub args: Vec<ArgValue>,
    /// The workload, which has the problem and the cost.
    pub workload: Box<dyn AnyWorkload>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_fixed_field_that_the_config_lacks_excludes_nothing() {
        let config = json!({ "schedule": "a", "stages": 3 });
        assert!(agrees(&config, &json!({ "other": 7 })));
        assert!(agrees(&config, &json!({ "schedule": "a" })));
        assert!(!agrees(&config, &json!({ "schedule": "a", "stages": 2 })));
    }
}
