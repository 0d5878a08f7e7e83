//! What a kernel family states of itself, and how the rest of the house reads it.
//!
//! An author implements [`Family`] on plain structs; [`AnyFamily`] and
//! [`AnyWork`] are the same without the types, for code that iterates.

use crate::error::FamilyError;
use crate::op::{AnyOp, Measured, Op};
use crate::plan::Plan;
use crate::stored::{Asked, Stored};
use crate::tensor::{HostTensor, TensorSpec};
use crate::tunable::{Bucket, Tunable};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches, ValueEnum};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use warpline_ir::Target;

/// Where a problem is to be solved: default sizes differ by orders of magnitude.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// On the CPU simulator.
    Cpu,
    /// On a GPU.
    Gpu,
}

/// What a problem costs at least.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Cost {
    /// Floating-point operations.
    pub flops: f64,
    /// Bytes of global memory: each input read once, each output written once.
    pub bytes: f64,
}

/// What a value is called on the command line.
pub(crate) fn name<V: ValueEnum>(value: &V) -> String {
    let name = value.to_possible_value();
    name.map_or_else(String::new, |v| v.get_name().to_owned())
}

/// A kernel family.
///
/// Flags, JSON and test names follow from the two structs: `Problem` holds
/// what is asked (class and extents), `Choice` holds what the caller may fix
/// of the config, every field optional.
pub trait Family: Send + Sync + 'static {
    /// What is asked: class (compiled in) and extents (launch parameters).
    type Problem: Args + Serialize + Clone + Debug + Send + Sync;
    /// What the caller fixes of the config; the rest is chosen.
    type Choice: Args + Serialize + Clone + Debug + Default + Send + Sync;
    /// A complete config; read back where a tuner has written it down.
    type Config: Serialize + DeserializeOwned + Clone + Debug + PartialEq + Send + Sync;

    /// The family's name: `vector-add`.
    const NAME: &'static str;
    /// What it computes, in one line.
    const ABOUT: &'static str;

    /// The problem to run when none is given; flags replace fields of it.
    fn default_problem(place: Place) -> Self::Problem;
    /// Refuses a problem the family does not serve.
    fn check(problem: &Self::Problem) -> Result<(), FamilyError>;
    /// The config for a problem, with the caller's choices in it.
    fn config(
        problem: &Self::Problem,
        choice: &Self::Choice,
        target: &Target,
    ) -> Result<Self::Config, FamilyError>;
    /// The config of the family's baseline schedule, with the caller's choices
    /// in it. The checker proves it for every problem of the family, so a call
    /// takes it where the selected config is undecided.
    ///
    /// By default the selected config: a family of one schedule has no other.
    fn baseline(
        problem: &Self::Problem,
        choice: &Self::Choice,
        target: &Target,
    ) -> Result<Self::Config, FamilyError> {
        Self::config(problem, choice, target)
    }
    /// Legal configs, best guess first, at most 48.
    fn candidates(problem: &Self::Problem, target: &Target) -> Vec<Self::Config>;
    /// The kernels that solve the problem.
    fn plan(
        problem: &Self::Problem,
        config: &Self::Config,
        target: &Target,
    ) -> Result<Plan, FamilyError>;
    /// What it costs at least.
    fn cost(problem: &Self::Problem) -> Cost;
    /// Inputs drawn from a seed.
    fn inputs(problem: &Self::Problem, seed: u64) -> Vec<HostTensor>;
    /// What comes out.
    fn outputs(problem: &Self::Problem) -> Vec<TensorSpec>;
    /// The float64 reference from the rounded inputs: for each output, every value and its error bound.
    fn reference(problem: &Self::Problem, inputs: &[HostTensor]) -> Vec<Vec<(f64, f64)>>;
    /// The test table: small problems that reach every path.
    fn cases() -> Vec<Case<Self::Problem, Self::Choice>>;
    /// The problems it is measured at, each with the suite it belongs to: `("memory", …)`.
    fn bench() -> Vec<(&'static str, Self::Problem)> {
        Vec::new()
    }
    /// The small problem that a large one repeats, for inputs that take long
    /// to draw and outputs that take long to compare; none where there is no such.
    fn period(_: &Self::Problem) -> Option<Period<Self::Problem>> {
        None
    }
    /// A small problem of the same class, which a config of this one solves as
    /// well; none where it is small itself.
    fn reduced(problem: &Self::Problem) -> Option<Self::Problem> {
        Self::period(problem).map(|period| period.problem)
    }
    /// Which of its ops asks for a problem that is measured.
    fn op(_: &Self::Problem) -> usize {
        0
    }
    /// More of the test table, which the simulator has no time for.
    fn large_cases() -> Vec<Case<Self::Problem, Self::Choice>> {
        Vec::new()
    }
    /// What decides which configs are good beside the extents, as JSON: types,
    /// layouts, alignment. The whole problem, unless [`bucket`](Self::bucket) covers the rest.
    fn class(problem: &Self::Problem) -> serde_json::Value {
        json(problem)
    }
    /// Which problems of the class share a tuned config, and by what rule.
    fn bucket(_: &Self::Problem) -> Bucket {
        Bucket::exact()
    }
    /// The config of another problem of the bucket, for this one: what follows
    /// from extents, as a grid does, is settled anew, and the rest is judged
    /// again. A family whose buckets hold more than one problem says how.
    fn fit(
        problem: &Self::Problem,
        choice: &Self::Choice,
        config: &Self::Config,
        target: &Target,
    ) -> Result<Self::Config, FamilyError> {
        let known = Self::candidates(problem, target).contains(config)
            || Self::config(problem, choice, target)? == *config;
        match known {
            true => Ok(config.clone()),
            false => Err(FamilyError::Config(format!(
                "{} has no candidate {} for this problem",
                Self::NAME,
                json(config)
            ))),
        }
    }
    /// Does a config give the same bits in every run?
    fn is_deterministic(_: &Self::Config) -> bool {
        true
    }
    /// Seconds that a config takes by the family's model; none where there is
    /// no model, and the order of the candidates ranks them.
    fn estimate(_: &Self::Problem, _: &Self::Config, _: &Target) -> Option<f64> {
        None
    }
    /// Takes over what stored tensors say of the problem, where no option says
    /// it. What both say must agree.
    fn learn(_: &mut Self::Problem, _: Asked<'_>, _: &dyn Stored) -> Result<(), FamilyError> {
        Ok(())
    }
    /// The functions that it serves: in Python, in torch, from Rust. Its
    /// problems are measured as calls of the first.
    fn ops() -> Vec<Op<Self>>
    where
        Self: Sized,
    {
        Vec::new()
    }
}

/// How a large problem repeats a small one of the same class.
///
/// Each tensor of the large problem is the small one's over and over, cut off
/// at its end: rows that are computed alone repeat, and weights are the same in both.
#[derive(Clone, Debug)]
pub struct Period<P> {
    /// The small problem.
    pub problem: P,
    /// The inputs of the large one.
    pub inputs: Vec<TensorSpec>,
}

/// A row of a test table.
#[derive(Clone, Debug)]
pub struct Case<P, C> {
    /// What is asked.
    pub problem: P,
    /// What is fixed of the config.
    pub choice: C,
}

/// A family without its types.
pub trait AnyFamily: Send + Sync {
    /// See [`Family::NAME`].
    fn name(&self) -> &'static str;
    /// See [`Family::ABOUT`].
    fn about(&self) -> &'static str;
    /// Adds the family's flags to a command.
    fn flags(&self, command: Command, place: Place) -> Command;
    /// The work that flags ask for; a flag that is not given keeps its default for the place.
    fn parse(
        &self,
        m: &ArgMatches,
        place: Place,
        target: &Target,
    ) -> Result<Box<dyn AnyWork>, FamilyError>;
    /// The same where the inputs are stored ([`Family::learn`]).
    fn parse_stored(
        &self,
        m: &ArgMatches,
        place: Place,
        target: &Target,
        stored: &dyn Stored,
    ) -> Result<Box<dyn AnyWork>, FamilyError>;
    /// The work of the default problem.
    fn default_work(&self, place: Place, target: &Target) -> Result<Box<dyn AnyWork>, FamilyError>;
    /// The default problem, as JSON.
    fn default_problem(&self, place: Place) -> serde_json::Value;
    /// The candidates of the default problem, as JSON.
    fn default_candidates(&self, place: Place, target: &Target) -> Vec<serde_json::Value>;
    /// The test table.
    fn cases(&self, target: &Target) -> Vec<Result<Box<dyn AnyWork>, FamilyError>>;
    /// See [`Family::large_cases`].
    fn large_cases(&self, target: &Target) -> Vec<Result<Box<dyn AnyWork>, FamilyError>>;
    /// The candidates for the problem that flags ask for, best guess first:
    /// those that agree with every choice the flags make.
    fn candidates(
        &self,
        m: &ArgMatches,
        place: Place,
        target: &Target,
    ) -> Result<Vec<Box<dyn AnyWork>>, FamilyError>;
    /// The suites it is measured in.
    fn suites(&self) -> Vec<&'static str>;
    /// What it is measured at in a suite, with the configs it chooses itself.
    fn bench(&self, suite: &str, target: &Target) -> Result<Vec<Box<dyn AnyWork>>, FamilyError>;
    /// See [`Family::ops`].
    fn ops(&self) -> Vec<AnyOp>;
    /// What it is measured at in every suite, as calls of its first op.
    fn calls(&self, target: &Target) -> Result<Vec<Measured>, FamilyError>;
}

/// A problem with its config, without its types: something to run.
pub trait AnyWork: Send + Sync {
    /// The family's name.
    fn family(&self) -> &'static str;
    /// The problem, as JSON.
    fn problem(&self) -> serde_json::Value;
    /// The config, as JSON.
    fn config(&self) -> serde_json::Value;
    /// See [`Family::plan`].
    fn plan(&self, target: &Target) -> Result<Plan, FamilyError>;
    /// See [`Family::cost`].
    fn cost(&self) -> Cost;
    /// See [`Family::inputs`].
    fn inputs(&self, seed: u64) -> Vec<HostTensor>;
    /// See [`Family::outputs`].
    fn outputs(&self) -> Vec<TensorSpec>;
    /// See [`Family::reference`].
    fn reference(&self, inputs: &[HostTensor]) -> Vec<Vec<(f64, f64)>>;
    /// See [`Family::period`].
    fn period(&self) -> Option<Period<Box<dyn AnyWork>>> {
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
    /// What a tuner needs to know of it; none of work that is not a family's.
    fn tunable(&self) -> Option<&dyn Tunable> {
        None
    }
}

/// A problem of a family, and the config to solve it with.
#[derive(Debug)]
pub struct Work<F: Family> {
    /// What is asked.
    pub problem: F::Problem,
    /// What the caller fixed of the config.
    pub choice: F::Choice,
    /// How it is solved.
    pub config: F::Config,
}

impl<F: Family> Work<F> {
    /// Checks the problem and settles the config.
    pub fn new(
        problem: F::Problem,
        choice: &F::Choice,
        target: &Target,
    ) -> Result<Self, FamilyError> {
        F::check(&problem)?;
        let config = F::config(&problem, choice, target)?;
        Ok(Self {
            problem,
            choice: choice.clone(),
            config,
        })
    }
}

/// A plain struct as JSON; a struct of numbers and names always has one.
pub(crate) fn json(x: &impl Serialize) -> serde_json::Value {
    serde_json::to_value(x).unwrap_or(serde_json::Value::Null)
}

impl<F: Family> AnyWork for Work<F> {
    fn family(&self) -> &'static str {
        F::NAME
    }
    fn problem(&self) -> serde_json::Value {
        json(&self.problem)
    }
    fn config(&self) -> serde_json::Value {
        json(&self.config)
    }
    fn plan(&self, target: &Target) -> Result<Plan, FamilyError> {
        F::plan(&self.problem, &self.config, target)
    }
    fn cost(&self) -> Cost {
        F::cost(&self.problem)
    }
    fn inputs(&self, seed: u64) -> Vec<HostTensor> {
        F::inputs(&self.problem, seed)
    }
    fn outputs(&self) -> Vec<TensorSpec> {
        F::outputs(&self.problem)
    }
    fn reference(&self, inputs: &[HostTensor]) -> Vec<Vec<(f64, f64)>> {
        F::reference(&self.problem, inputs)
    }
    fn period(&self) -> Option<Period<Box<dyn AnyWork>>> {
        let Period { problem, inputs } = F::period(&self.problem)?;
        let small = Self {
            problem,
            choice: self.choice.clone(),
            config: self.config.clone(),
        };
        Some(Period {
            problem: Box::new(small),
            inputs,
        })
    }
    fn reduced(&self) -> Option<Box<dyn AnyWork>> {
        let small = Self {
            problem: F::reduced(&self.problem)?,
            choice: self.choice.clone(),
            config: self.config.clone(),
        };
        Some(Box::new(small))
    }
    fn baseline(&self, target: &Target) -> Option<Box<dyn AnyWork>> {
        let config = F::baseline(&self.problem, &self.choice, target).ok()?;
        let differs = config != self.config;
        (differs && agrees(&json(&config), &json(&self.choice)))
            .then(|| Box::new(self.with(config)) as Box<dyn AnyWork>)
    }
    fn tunable(&self) -> Option<&dyn Tunable> {
        Some(self)
    }
}

impl<F: Family> AnyFamily for F {
    fn name(&self) -> &'static str {
        F::NAME
    }
    fn about(&self) -> &'static str {
        F::ABOUT
    }
    fn flags(&self, command: Command, place: Place) -> Command {
        // Flags that are not given keep the default problem's value, so none is required.
        let command = F::Problem::augment_args_for_update(command).next_help_heading(None::<&str>);
        let defaults = json(&F::default_problem(place));
        let command = command.mut_args(|arg| {
            let id = arg.get_id().as_str().to_owned();
            let Some(value) = defaults.get(&id) else {
                return arg;
            };
            let shown = match value {
                serde_json::Value::String(s) => s.clone(),
                other => other.to_string(),
            };
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            arg.help(format!("{help} [default here: {shown}]"))
                .help_heading("Problem")
        });
        let named: Vec<String> = command
            .get_arguments()
            .map(|a| a.get_id().to_string())
            .collect();
        F::Choice::augment_args(command).mut_args(|arg| {
            if named.contains(&arg.get_id().to_string()) {
                arg
            } else {
                arg.help_heading("Config")
            }
        })
    }
    fn parse(
        &self,
        m: &ArgMatches,
        place: Place,
        target: &Target,
    ) -> Result<Box<dyn AnyWork>, FamilyError> {
        let (problem, choice) = asked::<F>(m, place)?;
        Ok(Box::new(Work::<F>::new(problem, &choice, target)?))
    }
    fn parse_stored(
        &self,
        m: &ArgMatches,
        place: Place,
        target: &Target,
        stored: &dyn Stored,
    ) -> Result<Box<dyn AnyWork>, FamilyError> {
        let (mut problem, choice) = asked::<F>(m, place)?;
        let asked = |option: &str| m.value_source(option) == Some(ValueSource::CommandLine);
        F::learn(&mut problem, &asked, stored)?;
        Ok(Box::new(Work::<F>::new(problem, &choice, target)?))
    }
    fn default_work(&self, place: Place, target: &Target) -> Result<Box<dyn AnyWork>, FamilyError> {
        let (problem, choice) = (F::default_problem(place), F::Choice::default());
        Ok(Box::new(Work::<F>::new(problem, &choice, target)?))
    }
    fn default_problem(&self, place: Place) -> serde_json::Value {
        json(&F::default_problem(place))
    }
    fn default_candidates(&self, place: Place, target: &Target) -> Vec<serde_json::Value> {
        F::candidates(&F::default_problem(place), target)
            .iter()
            .map(json)
            .collect()
    }
    fn cases(&self, target: &Target) -> Vec<Result<Box<dyn AnyWork>, FamilyError>> {
        works::<F>(F::cases(), target)
    }
    fn large_cases(&self, target: &Target) -> Vec<Result<Box<dyn AnyWork>, FamilyError>> {
        works::<F>(F::large_cases(), target)
    }
    fn candidates(
        &self,
        m: &ArgMatches,
        place: Place,
        target: &Target,
    ) -> Result<Vec<Box<dyn AnyWork>>, FamilyError> {
        let (problem, choice) = asked::<F>(m, place)?;
        F::check(&problem)?;
        let fixed = json(&choice);
        let work = |config| {
            let (problem, choice) = (problem.clone(), choice.clone());
            Box::new(Work::<F> {
                problem,
                choice,
                config,
            }) as Box<dyn AnyWork>
        };
        Ok(F::candidates(&problem, target)
            .into_iter()
            .filter(|config| agrees(&json(config), &fixed))
            .map(work)
            .collect())
    }
    fn suites(&self) -> Vec<&'static str> {
        let mut names: Vec<_> = F::bench().into_iter().map(|(suite, _)| suite).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
    fn bench(&self, suite: &str, target: &Target) -> Result<Vec<Box<dyn AnyWork>>, FamilyError> {
        let of_suite = F::bench().into_iter().filter(|(name, _)| *name == suite);
        of_suite
            .map(|(_, problem)| {
                let work = Work::<F>::new(problem, &F::Choice::default(), target)?;
                Ok(Box::new(work) as Box<dyn AnyWork>)
            })
            .collect()
    }
    fn ops(&self) -> Vec<AnyOp> {
        F::ops().into_iter().map(AnyOp::new).collect()
    }
    fn calls(&self, target: &Target) -> Result<Vec<Measured>, FamilyError> {
        let ops = F::ops();
        let call = |(suite, problem): (&'static str, F::Problem)| {
            let op = ops.get(F::op(&problem))?;
            let args = (op.args)(&problem);
            let work = Work::<F>::new(problem, &F::Choice::default(), target);
            Some(work.map(|work| Measured {
                suite,
                op: op.signature.name,
                args,
                work: Box::new(work),
            }))
        };
        F::bench().into_iter().filter_map(call).collect()
    }
}

/// The problem and the choice that flags ask for.
fn asked<F: Family>(m: &ArgMatches, place: Place) -> Result<(F::Problem, F::Choice), FamilyError> {
    let mut problem = F::default_problem(place);
    problem
        .update_from_arg_matches(m)
        .map_err(|e| FamilyError::Problem(e.to_string()))?;
    let choice = F::Choice::from_arg_matches(m).map_err(|e| FamilyError::Config(e.to_string()))?;
    Ok((problem, choice))
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

/// Does a config have every value that a choice fixes?
pub(crate) fn agrees(config: &serde_json::Value, choice: &serde_json::Value) -> bool {
    let mut fixed = (choice.as_object().into_iter().flatten()).filter(|(_, v)| !v.is_null());
    fixed.all(|(name, value)| config.get(name).is_none_or(|has| has == value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector_add::VectorAdd;
    use serde_json::json;

    fn candidates(flags: &str) -> Vec<serde_json::Value> {
        let command = VectorAdd.flags(Command::new("x"), Place::Gpu);
        let words = std::iter::once("x").chain(flags.split_whitespace());
        let m = command.try_get_matches_from(words).unwrap();
        let all = VectorAdd.candidates(&m, Place::Gpu, &Target::SM_90A);
        all.unwrap().iter().map(|w| w.config()).collect()
    }

    #[test]
    fn candidates_agree_with_what_is_fixed() {
        let all = candidates("--n 1000000");
        let fixed = candidates("--n 1000000 --form specialized --stages 3");
        assert!(!fixed.is_empty() && fixed.len() < all.len());
        for config in &fixed {
            assert_eq!(config["form"], json!("specialized"));
            assert_eq!(config["stages"], json!(3));
            assert!(all.contains(config));
        }
    }

    #[test]
    fn what_is_fixed_and_unknown_to_the_config_excludes_nothing() {
        let config = json!({ "form": "a", "stages": 3 });
        assert!(agrees(&config, &json!({ "form": null, "other": 7 })));
        assert!(agrees(&config, &json!({ "form": "a", "stages": null })));
        assert!(!agrees(&config, &json!({ "form": "a", "stages": 2 })));
    }

    #[test]
    fn a_suite_holds_the_problems_that_families_name_for_it() {
        let target = Target::SM_90A;
        assert_eq!(VectorAdd.suites(), ["memory"]);
        let works = VectorAdd.bench("memory", &target).unwrap();
        assert_eq!(works[0].problem()["n"], json!(1u64 << 28));
        assert!(VectorAdd.bench("products", &target).unwrap().is_empty());
    }

    #[test]
    fn what_families_are_measured_at_repeats_tensors_of_the_same_kind() {
        let target = Target::SM_90A;
        for family in crate::registry() {
            let suites = family.suites().into_iter();
            let works = suites.flat_map(|suite| family.bench(suite, &target).unwrap());
            // The one that is drawn soonest.
            let bytes = |w: &dyn AnyWork| w.cost().bytes;
            let Some(large) = works.min_by(|x, y| bytes(x.as_ref()).total_cmp(&bytes(y.as_ref())))
            else {
                continue;
            };
            let Some(period) = large.period() else {
                continue;
            };
            let small = period.problem.inputs(0);
            let (few, many) = (period.problem.outputs(), large.outputs());
            let small = small.iter().map(|t| &t.spec).chain(&few);
            let pairs: Vec<_> = small.zip(period.inputs.iter().chain(&many)).collect();
            assert_eq!(
                pairs.len(),
                period.inputs.len() + many.len(),
                "{}",
                family.name()
            );
            for (small, large) in pairs {
                assert_eq!((small.name, small.dtype), (large.name, large.dtype));
                let inner = |spec: &TensorSpec| spec.shape[1..].to_vec();
                assert_eq!(
                    inner(small),
                    inner(large),
                    "{} {}",
                    family.name(),
                    small.name
                );
                assert!(small.bytes() <= large.bytes());
            }
        }
    }

    #[test]
    fn a_large_problem_repeats_a_small_one_of_its_class() {
        let works = VectorAdd.bench("memory", &Target::SM_90A).unwrap();
        let period = works[0].period().unwrap();
        let small = period.problem;
        assert_eq!(small.config(), works[0].config());
        assert_eq!(small.problem()["dtype"], works[0].problem()["dtype"]);
        assert!(small.outputs()[0].elements() < works[0].outputs()[0].elements());
        let bytes: usize = period.inputs.iter().map(TensorSpec::bytes).sum();
        assert_eq!(bytes, 2 * works[0].outputs()[0].bytes());
        assert!(small.period().is_none(), "a small problem is drawn whole");
    }
}
