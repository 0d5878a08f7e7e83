//! What is measured: heats, by suite or by family.
//!
//! Families state themselves what they are measured at
//! ([`Family::bench`](crate::kernels::Family::bench)); no suite knows a family
//! by name.

use crate::error::Error;
use warpline_ir::Target;
use warpline_kernels::{AnyFamily, AnyWork};

/// The suite of everything.
pub const ALL: &str = "all";
/// The suite of what memory binds.
pub const MEMORY: &str = "memory";
/// The suite of products, to which probes belong as well.
pub const PRODUCTS: &str = "products";
/// The suite of the ladder: one product in steps, each a change of the one before.
pub const LADDER: &str = "ladder";

/// Work that is measured together: one problem, one or more configs.
///
/// All take the same inputs; the first is entered twice.
pub struct Heat {
    works: Vec<Box<dyn AnyWork>>,
    steps: bool,
}

impl Heat {
    /// Of works that answer the same question, the family's own choice first;
    /// none of no work.
    pub fn new(works: Vec<Box<dyn AnyWork>>) -> Option<Self> {
        let steps = false;
        (!works.is_empty()).then_some(Self { works, steps })
    }

    /// Neighbours that answer the same question together: those of one family
    /// that cost the same and give the same tensors.
    pub fn group(works: impl IntoIterator<Item = Box<dyn AnyWork>>) -> Vec<Self> {
        let mut heats: Vec<Self> = Vec::new();
        for work in works {
            match heats.last_mut().map(|heat| &mut heat.works) {
                Some(same) if same_question(same[0].as_ref(), work.as_ref()) => same.push(work),
                _ => heats.extend(Self::new(vec![work])),
            }
        }
        heats
    }

    /// Has each work held against the one before, as a change of it: the
    /// report keeps their order and states what each gained.
    pub fn in_steps(mut self) -> Self {
        self.steps = true;
        self
    }

    /// Is each work a change of the one before?
    pub fn has_steps(&self) -> bool {
        self.steps
    }

    /// Keeps the best guess of each form: the first work with each value of
    /// `form` in its config.
    pub fn forms(mut self) -> Self {
        let mut seen = Vec::new();
        self.works.retain(|work| {
            let form = work.config().get("form").cloned();
            let new = !seen.contains(&form);
            seen.push(form);
            new
        });
        self
    }

    /// Keeps the first `most` works, and at least one.
    pub fn first(mut self, most: usize) -> Self {
        self.works.truncate(most.max(1));
        self
    }

    /// The family's name.
    pub fn family(&self) -> &'static str {
        self.works[0].family()
    }

    /// The contenders.
    pub fn works(&self) -> &[Box<dyn AnyWork>] {
        &self.works
    }
}

fn same_question(a: &dyn AnyWork, b: &dyn AnyWork) -> bool {
    (a.family(), a.cost(), a.outputs()) == (b.family(), b.cost(), b.outputs())
}

/// The names of the suites, [`ALL`] last.
///
/// ```
/// let names = warpline::bench::suite::names(&warpline::kernels::registry());
/// assert!(names.contains(&"memory"));
/// assert_eq!(names.last(), Some(&"all"));
/// ```
pub fn names(families: &[&dyn AnyFamily]) -> Vec<&'static str> {
    let mut names: Vec<_> = families.iter().flat_map(|f| f.suites()).collect();
    names.extend([LADDER, PRODUCTS]);
    names.sort_unstable();
    names.dedup();
    names.push(ALL);
    names
}

/// What a suite measures, in one line.
pub fn about(name: &str) -> String {
    match name {
        MEMORY => "What memory binds, against a device copy".into(),
        PRODUCTS => "Products of matrices, against a plain large one".into(),
        LADDER => "One product in steps, each against the one before".into(),
        ALL => "Every suite; what is measured if nothing is named".into(),
        other => format!("What families state for {other}"),
    }
}

/// The heats of a suite: what the families state for it, and the `probes` that
/// belong to it.
pub fn heats(
    suite: &str,
    families: &[&dyn AnyFamily],
    probes: impl Fn(&str) -> Vec<Box<dyn AnyWork>>,
    target: &Target,
) -> Result<Vec<Heat>, Error> {
    let mut heats = Vec::new();
    for name in names(families) {
        if name == ALL || ![name, ALL].contains(&suite) {
            continue;
        }
        for family in families {
            heats.extend(Heat::group(family.bench(name, target)?));
        }
        let probes = Heat::group(probes(name)).into_iter();
        match name {
            LADDER => heats.extend(probes.map(Heat::in_steps)),
            _ => heats.extend(probes),
        }
    }
    Ok(heats)
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpline_kernels::Work;
    use warpline_kernels::vector_add::{Choice, Float, Form, Problem, VectorAdd};

    fn work(n: u64, form: Form, stages: u32) -> Box<dyn AnyWork> {
        let dtype = Float::F32;
        let choice = Choice {
            form: Some(form),
            stages: Some(stages),
            ..Choice::default()
        };
        let problem = Problem { n, dtype };
        Box::new(Work::<VectorAdd>::new(problem, &choice, &Target::SM_90A).unwrap())
    }

    fn sizes(heats: &[Heat]) -> Vec<usize> {
        heats.iter().map(|h| h.works().len()).collect()
    }

    #[test]
    fn works_that_answer_the_same_question_run_together() {
        let specialized = |n, stages| work(n, Form::Specialized, stages);
        let works = vec![
            specialized(5000, 2),
            specialized(5000, 3),
            specialized(6000, 3),
            specialized(5000, 2),
        ];
        assert_eq!(sizes(&Heat::group(works)), [2, 1, 1]);
        assert!(Heat::new(vec![]).is_none());
    }

    #[test]
    fn forms_keeps_the_first_of_each() {
        let works = vec![
            work(5000, Form::Specialized, 2),
            work(5000, Form::Specialized, 3),
            work(5000, Form::DoubleBuffer, 2),
        ];
        let forms = Heat::new(works).unwrap().forms();
        let configs: Vec<_> = forms.works().iter().map(|w| w.config()).collect();
        assert_eq!(configs.len(), 2);
        assert_eq!(configs[0]["stages"], 2);
        assert_eq!(configs[1]["form"], "double-buffer");
        assert_eq!(forms.first(0).works().len(), 1);
    }

    #[test]
    fn a_suite_holds_what_families_state_and_the_probes_that_belong_to_it() {
        let families: [&dyn AnyFamily; 1] = [&VectorAdd];
        let probes = |suite: &str| match suite {
            PRODUCTS => vec![work(7000, Form::Specialized, 2)],
            LADDER => vec![
                work(8000, Form::Specialized, 2),
                work(8000, Form::Specialized, 3),
            ],
            _ => vec![],
        };
        let of = |suite| heats(suite, &families, probes, &Target::SM_90A).unwrap();
        let [memory, product, ladder, all] = ["memory", "products", "ladder", "all"].map(of);
        assert_eq!(sizes(&memory), [1]);
        assert_eq!(memory[0].works()[0].problem()["n"], 1 << 28);
        assert_eq!(product[0].works()[0].problem()["n"], 7000);
        assert!(ladder[0].has_steps() && !product[0].has_steps());
        assert_eq!(sizes(&all), [2, 1, 1]);
        assert!(of("nothing").is_empty());
        assert!(about("nothing").ends_with("nothing"));
    }
}
