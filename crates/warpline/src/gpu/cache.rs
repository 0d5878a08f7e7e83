//! Each GPU once in a process, and each kernel once on it.

use super::disk::Disk;
use super::kernel::{OnDevice, Took};
use crate::error::Error;
use crate::ops::{Plans, Workspaces};
use crate::prepare::PreparedStep;
use crate::tune::{Memory, Store};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use warpline_cuda::{Context, CudaError, Driver, JitOptions};
use warpline_ir::Target;

/// A GPU in this process, with the kernels that were brought onto it. All who
/// open it share it; the last one takes the kernels along.
#[derive(Debug)]
pub(crate) struct Gpu {
    pub(crate) context: Context,
    /// What kernels for it are built and checked for.
    pub(crate) target: Target,
    pub(super) disk: Disk,
    kernels: Mutex<HashMap<Key, Arc<Slot>>>,
    /// What calls of ops came to.
    pub(crate) plans: Plans,
    /// Where ops work that were given no workspace.
    pub(crate) workspaces: Workspaces,
    /// What is known of tuned configs.
    pub(crate) tuned: Memory,
}

/// What a loaded kernel depends on, besides the device. The name of the entry
/// and the order of the parameters are part of it, source locations are not.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Key {
    text: Arc<str>,
    target: &'static str,
    jit: JitOptions,
}

/// A kernel once it is loaded. Its lock is held while it is compiled, so that
/// others who ask for it wait for that and compile nothing.
type Slot = Mutex<Option<Arc<OnDevice>>>;

impl Gpu {
    /// The GPU `cuda:ordinal`.
    pub(crate) fn open(ordinal: u32) -> Result<Arc<Self>, CudaError> {
        static OPEN: Mutex<Vec<(u32, Weak<Gpu>)>> = Mutex::new(Vec::new());
        let mut open = held(&OPEN);
        let known = open.iter().find(|(n, _)| *n == ordinal);
        if let Some(gpu) = known.and_then(|(_, gpu)| gpu.upgrade()) {
            return Ok(gpu);
        }
        let context = Driver::load()?.device(ordinal)?.context()?;
        let info = context.device();
        let capability = info.compute_capability;
        // A context is only made for a capability that a target has.
        let target = Target::with_capability((capability.major, capability.minor));
        let gpu = Arc::new(Self {
            target: Target {
                sms: info.sms,
                ..target.unwrap_or_default()
            },
            context,
            disk: Disk::from_env(),
            kernels: Mutex::default(),
            plans: Plans::default(),
            workspaces: Workspaces::default(),
            tuned: Memory::new(Store::from_env()),
        });
        tracing::debug!(ordinal, name = gpu.context.device().name, "opened a GPU");
        open.retain(|(n, _)| *n != ordinal);
        open.push((ordinal, Arc::downgrade(&gpu)));
        Ok(gpu)
    }

    /// The kernel of a step, brought here if it is not here yet, and what
    /// that took.
    pub(super) fn kernel(
        &self,
        step: &PreparedStep,
        jit: &JitOptions,
    ) -> Result<(Arc<OnDevice>, Took), Error> {
        let slot = held(&self.kernels)
            .entry(Key::new(step, jit))
            .or_default()
            .clone();
        let mut slot = held(&slot);
        if let Some(kernel) = slot.as_ref() {
            return Ok((kernel.clone(), Took::default()));
        }
        let (kernel, took) = OnDevice::load(step, self, jit)?;
        let kernel = Arc::new(kernel);
        *slot = Some(kernel.clone());
        Ok((kernel, took))
    }

    /// Is the kernel of a step here?
    pub(crate) fn has(&self, step: &PreparedStep, jit: &JitOptions) -> bool {
        let slot = held(&self.kernels).get(&Key::new(step, jit)).cloned();
        slot.is_some_and(|slot| held(&slot).is_some())
    }
}

impl Key {
    fn new(step: &PreparedStep, jit: &JitOptions) -> Self {
        Self {
            text: step.text_hash.clone(),
            target: step.target().name,
            jit: *jit,
        }
    }
}

/// A lock whose holder never leaves it half done, so a panic spoils nothing.
pub(crate) fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}
