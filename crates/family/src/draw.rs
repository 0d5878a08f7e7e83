//! Draws valid problems and legal configs at random, for `warpline check FAMILY --fuzz`.
//!
//! A family draws its problems ([`Family::draw_problem`]) from its documented domain, so a rejected
//! problem is a bug of the family. [`problem`] is the default for families without such a function.
//! [`call`] adds an explicit config to some of the problems.

use crate::erased::{AnyFamily, AnyWorkload};
use crate::error::FamilyError;
use crate::family::{DeviceKind, Family};
use crate::field::{Field, FieldKind, FieldRule, Fields};
use crate::numbers::Random;
use crate::request::Request;
use serde_json::Value;
use warpline_ir::Target;

/// The kind of device whose defaults complete a drawn request: that of `warpline check`.
pub const DEVICE: DeviceKind = DeviceKind::Gpu;
/// The share of problems with an explicit config, in percent.
const EXPLICIT_PERCENT: u64 = 30;
/// The number of attempts to draw a legal config, or a problem that the family accepts.
const MAX_ATTEMPTS: u32 = 40;
/// Values of numeric config fields, beside those near the values of the selected config.
const COUNTS: [u64; 24] = [
    0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 15, 16, 20, 24, 32, 48, 64, 96, 128, 160, 192, 256, 512, 1024,
];

/// Draws every field from the values that its declaration allows: any keyword, numbers from 1 to
/// twice the default. Fields without a default keep their value.
///
/// ```
/// use warpline_family::{draw, fields, numbers::Random};
///
/// fields! {
///     pub struct Problem {
///         /// Rows
///         pub rows: u32 where at_most(9) = 4,
///         /// Adds a bias
///         pub bias: bool = false,
///     }
/// }
///
/// let mut random = Random::new(1);
/// let mut problem = Problem { rows: 4, bias: false };
/// draw::fields(&mut problem, &mut random);
/// assert!(problem.rows >= 1 && problem.rows <= 9);
/// ```
pub fn fields<P: Fields>(values: &mut P, random: &mut Random) {
    let current = values.json();
    for field in P::fields() {
        let default = current.get(field.name).or(field.default.as_ref());
        if let Some(text) = field_value(&field, default, random) {
            // A value that the type does not hold leaves the field unchanged.
            let _ = values.set(field.name, &text);
        }
    }
}

/// Draws the value of a field as text; `None` if its declaration does not determine a domain.
fn field_value(field: &Field, default: Option<&Value>, random: &mut Random) -> Option<String> {
    if let Some(word) = keyword(field, random) {
        return Some(word);
    }
    let default = default?;
    match (default.as_u64(), default.as_f64(), field.rule) {
        (Some(n), _, rule) => Some(legal(random.extent(1..=(2 * n).max(4096)), rule).to_string()),
        (None, Some(x), None) => Some(random.pick(&[0.0, x, 10.0 * x, 1.0]).to_string()),
        _ => None,
    }
}

/// Returns a number near `n` that satisfies the rule.
fn legal(n: u64, rule: Option<FieldRule>) -> u64 {
    match rule {
        None => n,
        Some(FieldRule::AtLeast(least)) => n.max(least),
        Some(FieldRule::AtMost(most)) => n.min(most),
        Some(FieldRule::MultipleOf(unit)) => n.next_multiple_of(unit),
    }
}

/// Draws a keyword or a boolean; `None` for a numeric field.
fn keyword(field: &Field, random: &mut Random) -> Option<String> {
    match &field.kind {
        FieldKind::Number { .. } => None,
        FieldKind::Flag => Some(random.percent(50).to_string()),
        FieldKind::Keywords(all) => Some(random.pick(all).name.to_owned()),
    }
}

/// Draws a problem by its declared [`fields()`] and redraws problems that `check` rejects. Returns the
/// default problem if `check` rejects every attempt.
pub fn problem<P: Fields>(
    default: P,
    check: impl Fn(&P) -> Result<(), FamilyError>,
    random: &mut Random,
) -> P {
    for _ in 0..MAX_ATTEMPTS {
        let mut problem = default.clone();
        fields(&mut problem, random);
        if problem.check().is_ok() && check(&problem).is_ok() {
            return problem;
        }
    }
    default
}

/// Returns the request for a problem: every field whose value is not the default of [`DEVICE`].
pub(crate) fn problem_request<F: Family>(problem: &F::Problem) -> Request {
    let (values, defaults) = (problem.json(), F::default_problem(DEVICE).json());
    let mut request = Request::default();
    for field in F::Problem::fields() {
        let (value, default) = (values.get(field.name), defaults.get(field.name));
        // JSON omits a declared default, and the default problem may differ from it.
        let value = value.or(field.default.as_ref().filter(|_| default.is_some()));
        if let Some(value) = value.filter(|value| Some(*value) != default) {
            request = request.with(field.name, text(value));
        }
    }
    request
}

/// Returns a field value as text: a string without quotes.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A drawn call: a problem, and maybe a config.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DrawnCall {
    /// The fields of the problem and, in an explicit config, those of the config.
    pub request: Request,
    /// Whether the caller fixes fields of the config.
    pub is_explicit: bool,
}

/// Draws a valid problem of the family, and for some problems a legal config. The same `random`
/// gives the same call.
///
/// A config is a candidate of the family or a few random field values. A random config that the
/// family rejects is drawn again.
pub fn call(family: &dyn AnyFamily, random: &mut Random, target: &Target) -> DrawnCall {
    let problem = family.draw_problem(random);
    let explicit = match random.percent(EXPLICIT_PERCENT) {
        true => explicit_config(family, &problem, random, target),
        false => None,
    };
    DrawnCall {
        is_explicit: explicit.is_some(),
        request: explicit.unwrap_or(problem),
    }
}

/// Adds a legal config to a problem; `None` if the problem is rejected or no attempt is legal.
fn explicit_config(
    family: &dyn AnyFamily,
    problem: &Request,
    random: &mut Random,
    target: &Target,
) -> Option<Request> {
    let workload = |request: &Request| family.workload(request, DEVICE, None, target).ok();
    let selected = workload(problem)?.config();
    let mut fields = family.fields(DEVICE).config;
    // A field with `requires` belongs to a family that this one redirects to.
    fields.retain(|field| field.requires.is_none());
    if fields.is_empty() {
        return None;
    }
    if random.percent(50) {
        let candidates = family.candidates(problem, DEVICE, target).ok()?;
        if !candidates.is_empty() {
            let candidate = random.pick(&(0..candidates.len()).collect::<Vec<_>>());
            return candidate_request(problem, &fields, candidates[candidate].as_ref(), workload);
        }
    }
    for _ in 0..MAX_ATTEMPTS {
        let mut request = problem.clone();
        for _ in 0..=random.below(4) {
            let field = random.pick(&fields);
            let near = selected.get(field.name).and_then(Value::as_u64);
            let value = keyword(&field, random).unwrap_or_else(|| count(near, random).to_string());
            request = request.with(field.name, value);
        }
        if workload(&request).is_some() {
            return Some(request);
        }
    }
    None
}

/// Draws a number of a config: near the selected config's, or any.
fn count(near: Option<u64>, random: &mut Random) -> u64 {
    match near {
        Some(n) if random.percent(60) => {
            random.pick(&[n, 2 * n, 4 * n, n / 2, n + 1, n.saturating_sub(1), n + 8])
        }
        _ => random.pick(&COUNTS),
    }
}

/// Returns the request whose config is the candidate: the problem, and the first config fields in
/// which the completed config still differs.
fn candidate_request(
    problem: &Request,
    fields: &[Field],
    candidate: &dyn AnyWorkload,
    workload: impl Fn(&Request) -> Option<Box<dyn AnyWorkload>>,
) -> Option<Request> {
    let wanted = candidate.config();
    let mut request = problem.clone();
    for field in fields {
        // A config that is illegal so far has no values to compare: set the field.
        let actual = workload(&request).map(|work| work.config());
        if actual.as_ref() == Some(&wanted) {
            break;
        }
        let actual = actual.and_then(|config| config.get(field.name).cloned());
        if let Some(value) = wanted.get(field.name)
            && actual.as_ref() != Some(value)
        {
            request = request.with(field.name, text(value));
        }
    }
    workload(&request).map(|_| request)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields as declare;

    keywords! {
        /// A color.
        enum Color {
            /// Red
            Red = "red",
            /// Blue
            Blue = "blue",
        }
    }

    declare! {
        /// A problem with a field of every kind.
        struct Problem {
            /// A multiple of 3
            rows: u32 where multiple_of(3),
            /// At least 5
            cols: u64 where at_least(5),
            color: Color,
            /// Adds a bias
            bias: bool = false,
            /// Added to the variance
            eps: f64,
            /// No default, so its domain is unknown
            stride: Option<u64>,
        }
    }

    fn default() -> Problem {
        Problem {
            rows: 6,
            cols: 100,
            color: Color::Red,
            bias: false,
            eps: 1e-5,
            stride: None,
        }
    }

    #[test]
    fn the_default_drawing_follows_the_declared_fields() {
        let mut random = Random::new(3);
        let drawn: Vec<Problem> = (0..200)
            .map(|_| problem(default(), |_| Ok(()), &mut random))
            .collect();
        assert!(
            drawn
                .iter()
                .all(|p| p.check().is_ok() && p.stride.is_none())
        );
        assert!(drawn.iter().any(|p| p.rows > 6) && drawn.iter().any(|p| p.cols == 5));
        assert!(drawn.iter().any(|p| p.color == Color::Blue && p.bias));
        assert!(drawn.iter().any(|p| p.eps == 0.0) && drawn.iter().any(|p| p.eps == 1e-5));
    }

    #[test]
    fn problems_that_the_family_rejects_are_drawn_again() {
        let check = |p: &Problem| match p.bias && p.cols > 40 {
            true => Ok(()),
            false => Err(FamilyError::Problem("rejected".into())),
        };
        let drawn = problem(default(), check, &mut Random::new(1));
        assert!(drawn.bias && drawn.cols > 40);
        let never = |_: &Problem| Err(FamilyError::Problem("rejected".into()));
        assert_eq!(problem(default(), never, &mut Random::new(1)), default());
    }
}
