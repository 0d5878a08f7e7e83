//! Kernels that are built once and checked once.

use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use warpline_check::{Checked, Refusals, check};
use warpline_ir::{BuildErrors, Kernel, Target};

/// The most programs that are kept by what they were built from; beyond, all are forgotten.
const MOST: usize = 128;

/// A kernel, and what the checker made of it.
///
/// Every problem of a class has the same one: what is new with other extents
/// is the launch. A family that builds it by [`Program::once`] plans a second
/// problem of a class in microseconds.
#[derive(Clone)]
pub struct Program(Arc<Inner>);

struct Inner {
    kernel: Kernel,
    /// By target. What was not proved is kept too: to find it out may take long.
    verdicts: Mutex<Vec<(Target, Result<Proof, Refusals>)>>,
}

/// A kernel that the checker proved, and its hashes.
#[derive(Clone, Debug)]
pub struct Proof {
    /// The kernel.
    pub kernel: Arc<Checked>,
    /// Its [program hash](Kernel::program_hash).
    pub hash: Arc<str>,
    /// Its [text hash](Kernel::text_hash), which compiled code belongs to.
    pub text_hash: Arc<str>,
}

impl Program {
    /// The program that a key stands for on a target, built where it is new. The key names
    /// the family and all that is compiled in.
    ///
    /// ```
    /// use warpline_family::Program;
    /// use warpline_ir::{Kernel, Target};
    /// # fn main() -> Result<(), warpline_ir::BuildErrors> {
    /// let nothing = |target: &Target| Kernel::build("nothing", target, |k| k.role("all").body(|| {}));
    /// let [one, two] = [0, 1].map(|_| Program::once("nothing".into(), &Target::SM_90A, nothing));
    /// assert!(one?.is(&two?));
    /// # Ok(())
    /// # }
    /// ```
    pub fn once(
        key: String,
        target: &Target,
        build: impl FnOnce(&Target) -> Result<Kernel, BuildErrors>,
    ) -> Result<Self, BuildErrors> {
        let key = format!("{} {key}", target.name);
        static BUILT: LazyLock<Mutex<HashMap<String, Program>>> = LazyLock::new(Mutex::default);
        if let Some(program) = held(&BUILT).get(&key) {
            return Ok(program.clone());
        }
        let program: Self = build(target)?.into();
        let mut built = held(&BUILT);
        if built.len() >= MOST {
            built.clear();
        }
        Ok(built.entry(key).or_insert(program).clone())
    }

    /// Are both the same, and not only alike?
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The kernel, proved by the checker for a target; it is asked once.
    pub fn proof(&self, target: &Target) -> Result<Proof, Refusals> {
        let mut verdicts = held(&self.0.verdicts);
        if let Some((_, verdict)) = verdicts.iter().find(|(t, _)| t == target) {
            return verdict.clone();
        }
        let verdict = check(self.0.kernel.clone(), target).map(|checked| Proof {
            hash: checked.program_hash().into(),
            text_hash: checked.text_hash().into(),
            kernel: Arc::new(checked),
        });
        verdicts.push((*target, verdict.clone()));
        verdict
    }
}

impl From<Kernel> for Program {
    fn from(kernel: Kernel) -> Self {
        Self(Arc::new(Inner {
            kernel,
            verdicts: Mutex::default(),
        }))
    }
}

impl Deref for Program {
    type Target = Kernel;
    fn deref(&self) -> &Kernel {
        &self.0.kernel
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.kernel.fmt(f)
    }
}

/// A lock whose holder never leaves it half done, so a panic spoils nothing.
fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpline_ir::build::elect;

    #[test]
    fn the_checker_is_asked_once_whatever_it_says() {
        let program = |arrives: bool| -> Program {
            let kernel = Kernel::build("one", &Target::SM_90A, |k| {
                let bar = k.barrier("bar", 1).count(1).at(0u32);
                k.role("all").body(|| {
                    if arrives {
                        elect(|| bar.arrive());
                    }
                    bar.wait(0u32);
                });
            });
            kernel.unwrap().into()
        };
        for (program, proved) in [(program(true), true), (program(false), false)] {
            let [one, two] = [0, 1].map(|_| program.proof(&Target::SM_90A));
            assert_eq!(one.is_ok(), proved);
            assert_eq!(one.err(), two.err());
            assert_eq!(held(&program.0.verdicts).len(), 1);
        }
    }
}
