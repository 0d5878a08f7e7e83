//! Config selection: the cached winner, else the heuristic's config.

use super::build::program_hashes;
use super::key::TuneKey;
use super::loaded::LoadedEntry;
use super::notices;
use crate::device::Device;
use crate::error::Error;
use crate::prepare::{prepare, prepare_selected};
use std::sync::Arc;
use warpline_kernels::AnyWorkload;

/// Applies `attempt` to the cached winner, its runner-up and the heuristic's config, in this order,
/// until it succeeds. Also returns whether the config came from the cache.
///
/// A cached config that is stale, illegal or fails is skipped with a [notice](super::notices()).
/// This function never tunes.
pub(crate) fn first_usable<T>(
    work: &dyn AnyWorkload,
    device: &Device,
    deterministic: bool,
    mut attempt: impl FnMut(&dyn AnyWorkload) -> Result<T, Error>,
) -> Result<(T, bool), Error> {
    for loaded in cached_entries(work, device, deterministic) {
        for i in 0..loaded.entry.ranked.len() {
            let result = match with_ranked_config(&loaded, i, work, device) {
                Ok(None) => continue,
                Ok(Some(other)) => attempt(other.as_ref()),
                Err(e) => Err(e),
            };
            match result {
                Ok(value) => return Ok((value, true)),
                // The config did not cause these errors.
                Err(e) if e.is_device_lost() || matches!(e, Error::Capture { .. }) => {
                    return Err(e);
                }
                Err(e) => notices::notify(format!(
                    "a cached config of {} failed and is skipped: {} ({e})",
                    work.family(),
                    loaded.entry.ranked[i].config,
                )),
            }
        }
    }
    Ok((attempt(work)?, false))
}

/// Returns whether this build can use the winner of a cache entry.
pub(super) fn is_usable(loaded: &LoadedEntry, work: &dyn AnyWorkload, device: &Device) -> bool {
    matches!(with_ranked_config(loaded, 0, work, device), Ok(Some(_)))
}

/// Returns the cache entries for a problem. If nondeterministic configs are allowed, their entry is
/// first.
fn cached_entries(
    work: &dyn AnyWorkload,
    device: &Device,
    deterministic: bool,
) -> Vec<Arc<LoadedEntry>> {
    let Some(gpu) = device.gpu() else {
        return Vec::new();
    };
    let nondeterministic = (!deterministic).then_some(false);
    let keys = nondeterministic.into_iter().chain([true]);
    let keys = keys.filter_map(|deterministic| TuneKey::new(work, device, deterministic));
    keys.filter_map(|key| gpu.tuned.get(&key)).collect()
}

/// Returns the problem with a cached config; `None` if this build generates another program for it.
fn with_ranked_config(
    loaded: &LoadedEntry,
    i: usize,
    work: &dyn AnyWorkload,
    device: &Device,
) -> Result<Option<Box<dyn AnyWorkload>>, Error> {
    let ranked = &loaded.entry.ranked[i];
    if loaded.is_current[i].get() == Some(&false) {
        return Ok(None);
    }
    let target = device.target();
    let other = work.with_config(&ranked.config, &target)?;
    if loaded.is_current[i].get().is_none() {
        let is_current =
            program_hashes(&prepare_selected(other.as_ref(), &target)?) == ranked.programs;
        if !is_current {
            notices::notify(format!(
                "a tuned config of {} is stale and skipped, because this build generates another \
                 program for it: {}\nhelp: tune again to replace it",
                work.family(),
                ranked.config
            ));
        }
        // Another thread may have stored the same result.
        let _ = loaded.is_current[i].set(is_current);
        if !is_current {
            return Ok(None);
        }
    }
    Ok(Some(other))
}

/// Selects the config of a workload on a device: the cached winner if it loads, else the workload's
/// own config. Also returns whether the config came from the cache.
///
/// ```no_run
/// use warpline::kernels::{DeviceKind, registry};
/// use warpline::{Device, tune};
///
/// # fn main() -> Result<(), warpline::Error> {
/// let device = Device::cuda(0)?;
/// let work = registry()[0].default_workload(DeviceKind::Gpu, &device.target())?;
/// let (work, tuned) = tune::select(work, &device, true)?;
/// println!("{} ({})", work.config(), if tuned { "tuned" } else { "heuristic" });
/// # Ok(())
/// # }
/// ```
pub fn select(
    work: Box<dyn AnyWorkload>,
    device: &Device,
    deterministic: bool,
) -> Result<(Box<dyn AnyWorkload>, bool), Error> {
    let heuristic = work.config();
    let load = |other: &dyn AnyWorkload| {
        // The heuristic's config is checked when it is used.
        if other.config() != heuristic {
            prepare(other, &device.target())?.load(device)?;
        }
        Ok(other.config())
    };
    let (config, tuned) = first_usable(work.as_ref(), device, deterministic, load)?;
    match tuned {
        true => Ok((work.with_config(&config, &device.target())?, true)),
        false => Ok((work, false)),
    }
}
