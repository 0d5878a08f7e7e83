//! Families and their work without their types, for code that iterates.
//!
//! This is the only place that forwards to [`Family`].

use crate::bucket::Bucket;
use crate::error::FamilyError;
use crate::family::{Case, Cost, Family, Op, Place};
use crate::field::{FieldError, Fields};
use crate::op::{Call, Signature, TensorView, Value as Argument};
use crate::plan::Plan;
use crate::redirect::{self, ReadRequest};
use crate::request::{FamilyFields, Request};
use crate::stored::Stored;
use crate::tensor::{HostTensor, TensorSpec};
use serde_json::Value;
use std::fmt;
use warpline_ir::Target;

/// Several pieces of work, or why there are none.
pub type Works = Result<Vec<Box<dyn AnyWork>>, FamilyError>;

/// A family without its types.
pub trait AnyFamily: Send + Sync {
    /// See [`Family::NAME`].
    fn name(&self) -> &'static str;
    /// See [`Family::ABOUT`].
    fn about(&self) -> &'static str;
    /// The default problem of a place, as JSON.
    fn default_problem(&self, place: Place) -> Value;
    /// Describes the fields of its problem, with the defaults of a place, and of its config.
    fn fields(&self, place: Place) -> FamilyFields;
    /// The work that a request asks for; where inputs are stored, they may say the rest
    /// ([`Family::learn`]).
    fn work(
        &self,
        request: &Request,
        place: Place,
        stored: Option<&dyn Stored>,
        target: &Target,
    ) -> Result<Box<dyn AnyWork>, FamilyError>;
    /// The work of the default problem.
    fn default_work(&self, place: Place, target: &Target) -> Result<Box<dyn AnyWork>, FamilyError> {
        self.work(&Request::default(), place, None, target)
    }
    /// The candidates for the problem that a request asks for, best guess first: those that
    /// agree with every choice the request makes.
    fn candidates(&self, request: &Request, place: Place, target: &Target) -> Works;
    /// See [`Family::cases`].
    fn cases(&self, target: &Target) -> Vec<Result<Box<dyn AnyWork>, FamilyError>>;
    /// See [`Family::large_cases`].
    fn large_cases(&self, target: &Target) -> Vec<Result<Box<dyn AnyWork>, FamilyError>>;
    /// The suites that it is measured in.
    fn suites(&self) -> Vec<&'static str>;
    /// The problems that it is measured at in a suite, with the configs that it selects.
    fn bench(&self, suite: &str, target: &Target) -> Works;
    /// See [`Family::ops`].
    fn ops(&self) -> Vec<AnyOp>;
    /// The problems that it is measured at in every suite, as calls of its ops.
    fn calls(&self, target: &Target) -> Result<Vec<MeasuredCall>, FamilyError>;
}

/// A problem with its config, without its types: something to run.
pub trait AnyWork: Send + Sync {
    /// The family's name.
    fn family(&self) -> &'static str;
    /// The problem, as JSON.
    fn problem(&self) -> Value;
    /// The config, as JSON.
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
    /// See [`Family::reference`].
    fn reference(&self, inputs: &[HostTensor]) -> Vec<Vec<(f64, f64)>>;
    /// See [`Family::period`].
    fn period(&self) -> Option<Box<dyn AnyWork>> {
        None
    }
    /// See [`Family::reduced`].
    fn reduced(&self) -> Option<Box<dyn AnyWork>> {
        None
    }
    /// The same problem with the family's [baseline](Family::baseline); none
    /// where this config is the baseline, or the caller's choices exclude it.
    fn baseline(&self, _: &Target) -> Option<Box<dyn AnyWork>> {
        None
    }
    /// Describes the work to a tuner; none if it is not a family's.
    fn tuning(&self) -> Option<Tuning> {
        None
    }
    /// See [`Family::estimate`].
    fn estimate(&self, _: &Target) -> Option<f64> {
        None
    }
    /// The same problem with a config that was written down, for it or for
    /// another problem of its bucket; rejected where the family would not take it.
    fn with_config(&self, _: &Value, _: &Target) -> Result<Box<dyn AnyWork>, FamilyError> {
        let text = format!("{} has one config", self.family());
        Err(FamilyError::Config(text))
    }
    /// The same problem with every config that may win: the family's own
    /// selection first, then its candidates that agree with the caller's choices.
    fn alternatives(&self, _: &Target) -> Works {
        Ok(Vec::new())
    }
}

/// What a tuner needs to know of a family's work.
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

/// A problem of a family, and the config to solve it with.
#[derive(Debug)]
pub struct Work<F: Family> {
    /// The problem.
    pub problem: F::Problem,
    /// What the caller fixed of the config.
    pub choice: F::Choice,
    /// How it is solved.
    pub config: F::Config,
}

impl<F: Family> Work<F> {
    /// Checks the problem and selects the config.
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
        let config = F::config(&problem, choice, target)?;
        Ok(Self {
            problem,
            choice: choice.clone(),
            config,
        })
    }

    fn with(&self, problem: F::Problem, config: F::Config) -> Box<dyn AnyWork> {
        Box::new(Self {
            problem,
            choice: self.choice.clone(),
            config,
        })
    }

    fn with_configs(&self, configs: Vec<F::Config>) -> Vec<Box<dyn AnyWork>> {
        let work = |config| self.with(self.problem.clone(), config);
        configs.into_iter().map(work).collect()
    }
}

/// The complete config as JSON.
fn config_json<F: Family>(config: &F::Config) -> Value {
    F::Choice::from(config).json()
}

/// The candidates of a problem that agree with a choice.
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

/// Does a config have every value that a choice fixes?
pub(crate) fn agrees(config: &Value, choice: &Value) -> bool {
    let mut fixed = choice.as_object().into_iter().flatten();
    fixed.all(|(name, value)| config.get(name).is_none_or(|has| has == value))
}

impl<F: Family> AnyWork for Work<F> {
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
    fn reference(&self, inputs: &[HostTensor]) -> Vec<Vec<(f64, f64)>> {
        F::reference(&self.problem, inputs)
    }
    fn period(&self) -> Option<Box<dyn AnyWork>> {
        Some(self.with(F::period(&self.problem)?, self.config.clone()))
    }
    fn reduced(&self) -> Option<Box<dyn AnyWork>> {
        Some(self.with(F::reduced(&self.problem)?, self.config.clone()))
    }
    fn baseline(&self, target: &Target) -> Option<Box<dyn AnyWork>> {
        let config = F::baseline(&self.problem, &self.choice, target).ok()?;
        (config != self.config).then(|| self.with(self.problem.clone(), config))
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
    ) -> Result<Box<dyn AnyWork>, FamilyError> {
        let reject = |why: String| {
            let text = format!("{} cannot take the config {config}: {why}", F::NAME);
            FamilyError::Config(text)
        };
        let mut stored = F::Choice::default();
        stored.set_json(config).map_err(|e| reject(e.to_string()))?;
        let fitted = F::fit(&self.problem, &self.choice, &stored, target)?;
        let json = config_json::<F>(&fitted);
        let mut names = json.as_object().into_iter().flatten();
        if let Some((name, _)) = names.find(|(name, _)| config.get(name).is_none()) {
            return Err(reject(format!("it has no field {name:?}")));
        }
        if !agrees(&json, &self.choice.json()) {
            return Err(reject("it does not agree with the caller's choices".into()));
        }
        Ok(self.with(self.problem.clone(), fitted))
    }
    fn alternatives(&self, target: &Target) -> Works {
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
    fn default_problem(&self, place: Place) -> Value {
        F::default_problem(place).json()
    }
    fn fields(&self, place: Place) -> FamilyFields {
        redirect::fields::<F>(place)
    }
    fn work(
        &self,
        request: &Request,
        place: Place,
        stored: Option<&dyn Stored>,
        target: &Target,
    ) -> Result<Box<dyn AnyWork>, FamilyError> {
        let task = NewWork {
            place,
            stored,
            target,
        };
        redirect::read::<F, _>(request, place, &task)
    }
    fn candidates(&self, request: &Request, place: Place, target: &Target) -> Works {
        redirect::read::<F, _>(request, place, &Candidates { place, target })
    }
    fn cases(&self, target: &Target) -> Vec<Result<Box<dyn AnyWork>, FamilyError>> {
        works::<F>(F::cases(), target)
    }
    fn large_cases(&self, target: &Target) -> Vec<Result<Box<dyn AnyWork>, FamilyError>> {
        works::<F>(F::large_cases(), target)
    }
    fn suites(&self) -> Vec<&'static str> {
        let mut names: Vec<_> = F::bench().into_iter().map(|(suite, _)| suite).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
    fn bench(&self, suite: &str, target: &Target) -> Works {
        let of_suite = F::bench().into_iter().filter(|(name, _)| *name == suite);
        let cases = of_suite.map(|(_, problem)| Case {
            problem,
            choice: F::Choice::default(),
        });
        works::<F>(cases.collect(), target).into_iter().collect()
    }
    fn ops(&self) -> Vec<AnyOp> {
        F::ops().into_iter().map(AnyOp::new).collect()
    }
    fn calls(&self, target: &Target) -> Result<Vec<MeasuredCall>, FamilyError> {
        let ops = F::ops();
        let call = |(suite, problem): (&'static str, F::Problem)| {
            let op = ops.get(F::op(&problem))?;
            let args = (op.args)(&problem);
            let work = Work::<F>::new(problem, &F::Choice::default(), target);
            Some(work.map(|work| MeasuredCall {
                suite,
                op: op.signature.name,
                args,
                work: Box::new(work),
            }))
        };
        F::bench().into_iter().filter_map(call).collect()
    }
}

/// Reads a request into work.
struct NewWork<'a> {
    place: Place,
    stored: Option<&'a dyn Stored>,
    target: &'a Target,
}

impl ReadRequest for NewWork<'_> {
    type Output = Box<dyn AnyWork>;
    fn read<F: Family>(&self, request: &Request) -> Result<Box<dyn AnyWork>, FamilyError> {
        let (mut problem, choice) = request.read::<F>(self.place)?;
        if let Some(stored) = self.stored {
            F::learn(&mut problem, &|name| request.get(name).is_some(), stored)?;
        }
        Ok(Box::new(Work::<F>::new(problem, &choice, self.target)?))
    }
}

/// Reads a request into candidates.
struct Candidates<'a> {
    place: Place,
    target: &'a Target,
}

impl ReadRequest for Candidates<'_> {
    type Output = Vec<Box<dyn AnyWork>>;
    fn read<F: Family>(&self, request: &Request) -> Works {
        let (problem, choice) = request.read::<F>(self.place)?;
        F::check(&problem)?;
        let work = |config| {
            Box::new(Work::<F> {
                problem: problem.clone(),
                choice: choice.clone(),
                config,
            }) as Box<dyn AnyWork>
        };
        let all = candidates::<F>(&problem, &choice, self.target);
        Ok(all.into_iter().map(work).collect())
    }
}

/// Rows of a test table as work.
fn works<F: Family>(
    cases: Vec<Case<F::Problem, F::Choice>>,
    target: &Target,
) -> Vec<Result<Box<dyn AnyWork>, FamilyError>> {
    let work = |c: Case<F::Problem, F::Choice>| {
        let work = Work::<F>::new(c.problem, &c.choice, target)?;
        Ok(Box::new(work) as Box<dyn AnyWork>)
    };
    cases.into_iter().map(work).collect()
}

/// What a call comes to: work on the call's tensors.
type Solve =
    dyn Fn(&Call<'_>, &Target) -> Result<Option<Box<dyn AnyWork>>, FamilyError> + Send + Sync;

/// An op without the types of its family.
pub struct AnyOp {
    /// What callers see of it.
    pub signature: Signature,
    /// The family's name.
    pub family: &'static str,
    solve: Box<Solve>,
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
        let (name, problem) = (op.signature.name, op.problem);
        Self {
            signature: op.signature,
            family: F::NAME,
            solve: Box::new(move |call, target| {
                let (problem, choice) = problem(call)?;
                if call.outs.iter().all(|out| out.elements() == 0) {
                    return Ok(None);
                }
                let work = Work::<F>::new(problem, &choice, target);
                Ok(Some(Box::new(work.map_err(|e| named(name, e))?)))
            }),
        }
    }

    /// The work that a call asks for; none where nothing comes out.
    ///
    /// The plan's inputs are the tensors that are given, in the order of the
    /// parameters, and its outputs those of the call. Lists of integers have
    /// their place among the inputs too, and no kernel reads them.
    pub fn solve(
        &self,
        args: &[Argument],
        outs: &[TensorView],
        target: &Target,
    ) -> Result<Option<Box<dyn AnyWork>>, FamilyError> {
        let call = Call::new(&self.signature, args, outs)?;
        (self.solve)(&call, target)
    }

    /// Refuses outputs that share memory with an input or with each other:
    /// what must hold of every call anew, as addresses change.
    pub fn apart(&self, args: &[Argument], outs: &[TensorView]) -> Result<(), FamilyError> {
        Call {
            signature: &self.signature,
            args,
            outs,
        }
        .apart()
    }
}

/// What a family refuses, with the op's name before it.
fn named(op: &str, error: FamilyError) -> FamilyError {
    match error {
        FamilyError::Problem(text) => FamilyError::Problem(format!("{op}: {text}")),
        FamilyError::Config(text) => FamilyError::Config(format!("{op}: {text}")),
        other => other,
    }
}

/// A call that benchmarks make.
pub struct MeasuredCall {
    /// The suite.
    pub suite: &'static str,
    /// The op's name.
    pub op: &'static str,
    /// Its arguments, in the order of the parameters.
    pub args: Vec<Argument>,
    /// The work behind it: problem and cost.
    pub work: Box<dyn AnyWork>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_fixed_and_unknown_to_the_config_excludes_nothing() {
        let config = json!({ "form": "a", "stages": 3 });
        assert!(agrees(&config, &json!({ "other": 7 })));
        assert!(agrees(&config, &json!({ "form": "a" })));
        assert!(!agrees(&config, &json!({ "form": "a", "stages": 2 })));
    }
}
