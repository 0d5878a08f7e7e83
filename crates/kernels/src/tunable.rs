//! What a tuner needs to know of work: which problems share a winner, and which configs may win.

use crate::error::FamilyError;
use crate::family::{AnyWork, Family, Work, agrees, json};
use serde::Serialize;
use serde_json::{Map, Value};
use warpline_ir::Target;

/// Which extents share what was tuned at one of them.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Bucket {
    /// What all of them have in common, as JSON: `{"cols": 4096, "rows": 16384}`.
    pub extents: Value,
    /// The rule that made it, in one sentence.
    pub rule: &'static str,
}

impl Bucket {
    /// A bucket of one problem, all of which is in the class.
    pub fn exact() -> Self {
        Self {
            extents: Value::Object(Map::new()),
            rule: "each problem is tuned by itself",
        }
    }
}

/// The upper end of a bucket that doubles: the least power of two that is not below `n`.
///
/// ```
/// use warpline_kernels::tunable::doubling;
/// assert_eq!([0, 1, 2, 3, 4096, 4097].map(doubling), [1, 1, 2, 4, 4096, 8192]);
/// assert_eq!(doubling(u64::MAX), u64::MAX);
/// ```
pub fn doubling(n: u64) -> u64 {
    n.checked_next_power_of_two().unwrap_or(u64::MAX)
}

/// Work that can be tuned, without its types.
pub trait Tunable {
    /// See [`Family::class`].
    fn class(&self) -> Value;
    /// What the caller fixed of the config, as JSON; nothing that was left open.
    fn fixed(&self) -> Value;
    /// See [`Family::bucket`].
    fn bucket(&self) -> Bucket;
    /// See [`Family::is_deterministic`].
    fn is_deterministic(&self) -> bool;
    /// See [`Family::estimate`].
    fn estimate(&self, target: &Target) -> Option<f64>;
    /// The same problem with a config that was written down, for it or for
    /// another problem of its bucket; refused where the family would not take it.
    fn with_config(&self, config: &Value, target: &Target)
    -> Result<Box<dyn AnyWork>, FamilyError>;
    /// The same problem with every config that may win: the family's own
    /// choice first, then its candidates that agree with what is fixed.
    fn alternatives(&self, target: &Target) -> Result<Vec<Box<dyn AnyWork>>, FamilyError>;
}

impl<F: Family> Tunable for Work<F> {
    fn class(&self) -> Value {
        F::class(&self.problem)
    }
    fn fixed(&self) -> Value {
        let mut fixed = json(&self.choice);
        if let Value::Object(fields) = &mut fixed {
            fields.retain(|_, value| !value.is_null());
        }
        fixed
    }
    fn bucket(&self) -> Bucket {
        F::bucket(&self.problem)
    }
    fn is_deterministic(&self) -> bool {
        F::is_deterministic(&self.config)
    }
    fn estimate(&self, target: &Target) -> Option<f64> {
        F::estimate(&self.problem, &self.config, target)
    }
    fn with_config(
        &self,
        config: &Value,
        target: &Target,
    ) -> Result<Box<dyn AnyWork>, FamilyError> {
        let refuse = |why: String| {
            let text = format!("{} cannot take the config {config}: {why}", F::NAME);
            FamilyError::Config(text)
        };
        let read: F::Config =
            serde_json::from_value(config.clone()).map_err(|e| refuse(e.to_string()))?;
        let config = F::fit(&self.problem, &self.choice, &read, target)?;
        if !agrees(&json(&config), &json(&self.choice)) {
            return Err(refuse("it does not agree with what is fixed".into()));
        }
        Ok(Box::new(self.with(config)))
    }
    fn alternatives(&self, target: &Target) -> Result<Vec<Box<dyn AnyWork>>, FamilyError> {
        let mut all = vec![F::config(&self.problem, &self.choice, target)?];
        let fixed = json(&self.choice);
        for config in F::candidates(&self.problem, target) {
            if agrees(&json(&config), &fixed) && !all.contains(&config) {
                all.push(config);
            }
        }
        let work = |config| Box::new(self.with(config)) as Box<dyn AnyWork>;
        Ok(all.into_iter().map(work).collect())
    }
}

impl<F: Family> Work<F> {
    /// The same problem with another config.
    pub(crate) fn with(&self, config: F::Config) -> Self {
        Self {
            problem: self.problem.clone(),
            choice: self.choice.clone(),
            config,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::AnyFamily;
    use crate::softmax::Softmax;
    use crate::vector_add::{Choice, Float, Form, Problem, VectorAdd};
    use serde_json::json;

    const TARGET: Target = Target::SM_90A;

    fn add(n: u64, choice: &Choice) -> Work<VectorAdd> {
        let dtype = Float::F32;
        Work::new(Problem { n, dtype }, choice, &TARGET).unwrap()
    }

    #[test]
    fn every_config_of_every_measured_problem_comes_back_from_json() {
        for family in crate::registry() {
            for work in crate::shipped::measured(family, &TARGET).unwrap() {
                let tunable = work.tunable().unwrap();
                for other in tunable.alternatives(&TARGET).unwrap() {
                    let text = other.config().to_string();
                    let read = serde_json::from_str(&text).unwrap();
                    let back = tunable.with_config(&read, &TARGET).unwrap();
                    assert_eq!(back.config(), other.config(), "{}", family.name());
                    assert_eq!(back.problem(), work.problem());
                }
            }
        }
    }

    #[test]
    fn a_config_follows_the_extents_of_another_problem_of_its_bucket() {
        let (one, two) = (
            add(1 << 20, &Choice::default()),
            add(900_000, &Choice::default()),
        );
        assert_eq!((one.class(), one.bucket()), (two.class(), two.bucket()));
        let taken = two.with_config(&AnyWork::config(&one), &TARGET).unwrap();
        assert_ne!(taken.config()["ctas"], AnyWork::config(&one)["ctas"]);
        assert_eq!(taken.config(), AnyWork::config(&two));
    }

    #[test]
    fn what_is_no_config_of_the_family_is_refused_by_a_sentence() {
        let work = add(1000, &Choice::default());
        let said = |config: Value| match work.with_config(&config, &TARGET) {
            Ok(_) => "good".into(),
            Err(e) => e.to_string(),
        };
        let good = AnyWork::config(&work);
        assert_eq!(said(good.clone()), "good");
        assert!(said(json!({})).starts_with("vector-add cannot take the config {}: missing field"));
        let mut bad = good.clone();
        bad["warps"] = json!(3);
        assert!(
            said(bad).contains("not"),
            "judged by the family's own rules"
        );
        let mut bad = good;
        bad["form"] = json!("no-form");
        assert!(said(bad).contains("unknown variant"));
    }

    #[test]
    fn what_is_fixed_stays_fixed() {
        let choice = Choice {
            form: Some(Form::Elements),
            ..Choice::default()
        };
        let work = add(1000, &choice);
        assert_eq!(work.fixed(), json!({ "form": "elements" }));
        let all = work.alternatives(&TARGET).unwrap();
        assert!(all.iter().all(|w| w.config()["form"] == "elements"));
        let other = AnyWork::config(&add(1000, &Choice::default()));
        let refused = work.with_config(&other, &TARGET).err().unwrap();
        assert!(
            refused
                .to_string()
                .ends_with("it does not agree with what is fixed")
        );
    }

    #[test]
    fn rows_share_a_bucket_up_to_a_power_of_two_and_columns_never() {
        let work = |rows: u64, cols: u64| {
            let flags = Softmax::NEW.flags(clap::Command::new("x"), crate::Place::Gpu);
            let words = format!("x --rows {rows} --cols {cols}");
            let m = flags.try_get_matches_from(words.split(' ')).unwrap();
            let work = Softmax::NEW.parse(&m, crate::Place::Gpu, &TARGET).unwrap();
            let t = work.tunable().unwrap();
            (t.class(), t.bucket().extents)
        };
        assert_eq!(work(16384, 4096), work(9000, 4096));
        assert_ne!(work(16384, 4096), work(16385, 4096));
        assert_ne!(work(16384, 4096), work(16384, 4104));
        assert_ne!(
            work(16384, 4096).0,
            work(16384, 4097).0,
            "alignment is of the class"
        );
    }
}
