//! The open GPUs of this process. Each GPU is opened once, and each kernel is loaded once.

use super::disk::CubinCache;
use super::kernel::{LoadCost, LoadedKernel};
use crate::error::Error;
use crate::ops::{Plans, Workspaces};
use crate::prepare::PreparedStep;
use crate::tune::{LoadedTuneCache, TuneCache};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use warpline_cuda::{Context, CudaError, Driver, JitOptions};
use warpline_ir::Target;

/// An open GPU with its loaded kernels. All handles of a GPU share it; dropping the last one unloads
/// the kernels.
#[derive(Debug)]
pub(crate) struct Gpu {
    pub(crate) context: Context,
    /// The target for which kernels are built and checked.
    pub(crate) target: Target,
    pub(super) disk: CubinCache,
    kernels: Mutex<HashMap<KernelKey, Arc<KernelSlot>>>,
    /// The plans of op calls.
    pub(crate) plans: Plans,
    /// The workspaces of ops, per stream.
    pub(crate) workspaces: Workspaces,
    /// The loaded cache entries of tuned configs.
    pub(crate) tuned: LoadedTuneCache,
}

/// The key of a loaded kernel on a device. The text hash covers the entry name and the order of the
/// parameters, but not source locations.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct KernelKey {
    text: Arc<str>,
    target: &'static str,
    jit: JitOptions,
}

/// A kernel, once loaded. The lock is held during compilation, so that other threads wait instead of
/// compiling the same kernel.
type KernelSlot = Mutex<Option<Arc<LoadedKernel>>>;

impl Gpu {
    /// Opens the GPU `cuda:ordinal`, or returns the open one.
    pub(crate) fn open(ordinal: u32) -> Result<Arc<Self>, CudaError> {
        static OPEN: Mutex<Vec<(u32, Weak<Gpu>)>> = Mutex::new(Vec::new());
        let mut open = lock(&OPEN);
        let known = open.iter().find(|(n, _)| *n == ordinal);
        if let Some(gpu) = known.and_then(|(_, gpu)| gpu.upgrade()) {
            return Ok(gpu);
        }
        let context = Driver::load()?.device(ordinal)?.context()?;
        let info = context.device();
        let capability = info.compute_capability;
        // A context exists only for supported capabilities, so the target exists.
        let target = Target::with_capability((capability.major, capability.minor));
        let gpu = Arc::new(Self {
            target: Target {
                sms: info.sms,
                ..target.unwrap_or_default()
            },
            context,
            disk: CubinCache::from_env(),
            kernels: Mutex::default(),
            plans: Plans::default(),
            workspaces: Workspaces::default(),
            tuned: LoadedTuneCache::new(TuneCache::from_env()),
        });
        tracing::debug!(ordinal, name = gpu.context.device().name, "opened a GPU");
        open.retain(|(n, _)| *n != ordinal);
        open.push((ordinal, Arc::downgrade(&gpu)));
        Ok(gpu)
    }

    /// Returns the loaded kernel of a step and the cost of loading it, which is 0 on a hit.
    pub(super) fn kernel(
        &self,
        step: &PreparedStep,
        jit: &JitOptions,
    ) -> Result<(Arc<LoadedKernel>, LoadCost), Error> {
        let slot = lock(&self.kernels)
            .entry(KernelKey::new(step, jit))
            .or_default()
            .clone();
        let mut slot = lock(&slot);
        if let Some(kernel) = slot.as_ref() {
            return Ok((kernel.clone(), LoadCost::default()));
        }
        let (kernel, cost) = LoadedKernel::load(step, self, jit)?;
        let kernel = Arc::new(kernel);
        *slot = Some(kernel.clone());
        Ok((kernel, cost))
    }

    /// Returns whether the kernel of a step is loaded.
    pub(crate) fn has_kernel(&self, step: &PreparedStep, jit: &JitOptions) -> bool {
        let slot = lock(&self.kernels).get(&KernelKey::new(step, jit)).cloned();
        slot.is_some_and(|slot| lock(&slot).is_some())
    }
}

impl KernelKey {
    fn new(step: &PreparedStep, jit: &JitOptions) -> Self {
        Self {
            text: step.text_hash.clone(),
            target: step.target().name,
            jit: *jit,
        }
    }
}

/// Locks a mutex and ignores poisoning: no holder leaves the data in an inconsistent state.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
