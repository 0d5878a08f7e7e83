//! Programs: kernels that are built once and checked once.

use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use warpline_check::{Checked, Diagnostics, check};
use warpline_ir::{BuildErrors, Kernel, Target};

/// The capacity of the program cache. A full cache is cleared.
const MAX_PROGRAMS: usize = 128;

/// A kernel and the cached verdicts of the checker.
///
/// All problems of a class share one program; only the launch depends on the extents. A family
/// that uses [`Program::cached`] plans a second problem of a class in microseconds.
#[derive(Clone)]
pub struct Program(Arc<Inner>);

struct Inner {
    kernel: Kernel,
    /// The verdicts by target. Failures are cached too, because the checker may take long.
    verdicts: Mutex<Vec<(Target, Result<Proof, Diagnostics>)>>,
}

/// A proved kernel and its hashes.
#[derive(Clone, Debug)]
pub struct Proof {
    /// The kernel.
    pub kernel: Arc<Checked>,
    /// The [program hash](Kernel::program_hash).
    pub hash: Arc<str>,
    /// The [text hash](Kernel::text_hash), the key of compiled code.
    pub text_hash: Arc<str>,
}

impl Program {
    /// Returns the cached program for a key and a target, and builds it on a miss. The key must
    /// name the family and everything that is compiled in.
    ///
    /// ```
    /// use warpline_family::Program;
    /// use warpline_ir::{Kernel, Target};
    /// # fn main() -> Result<(), warpline_ir::BuildErrors> {
    /// let nothing = |target: &Target| Kernel::build("nothing", target, |k| k.role("all").body(|| {}));
    /// let [first, second] = [0, 1].map(|_| Program::cached("nothing".into(), &Target::SM_90A, nothing));
    /// assert!(first?.is_same(&second?));
    /// # Ok(())
    /// # }
    /// ```
    pub fn cached(
        key: String,
        target: &Target,
        build: impl FnOnce(&Target) -> Result<Kernel, BuildErrors>,
    ) -> Result<Self, BuildErrors> {
        let key = format!("{} {key}", target.name);
        static BUILT: LazyLock<Mutex<HashMap<String, Program>>> = LazyLock::new(Mutex::default);
        if let Some(program) = lock(&BUILT).get(&key) {
            return Ok(program.clone());
        }
        let program: Self = build(target)?.into();
        let mut built = lock(&BUILT);
        if built.len() >= MAX_PROGRAMS {
            built.clear();
        }
        Ok(built.entry(key).or_insert(program).clone())
    }

    /// Returns whether both are the same object; equal but separate kernels are not.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the proof for a target. The checker runs once per target.
    pub fn proof(&self, target: &Target) -> Result<Proof, Diagnostics> {
        let mut verdicts = lock(&self.0.verdicts);
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

/// Locks a mutex and ignores poisoning: no holder leaves the data in an inconsistent state.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpline_ir::builder::elect;

    #[test]
    fn the_checker_runs_once_for_each_verdict() {
        let program = |arrives: bool| -> Program {
            let kernel = Kernel::build("one", &Target::SM_90A, |k| {
                let bar = k.barrier("bar", 1).arrivals(1).at(0u32);
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
            let [first, second] = [0, 1].map(|_| program.proof(&Target::SM_90A));
            assert_eq!(first.is_ok(), proved);
            assert_eq!(first.err(), second.err());
            assert_eq!(lock(&program.0.verdicts).len(), 1);
        }
    }
}
