//! Where a config is chosen: what is remembered, else the family's own choice.

use super::build::hashes;
use super::key::Key;
use super::memory::Known;
use super::notices;
use crate::device::Device;
use crate::error::Error;
use crate::prepare::{prepare, prepare_exactly};
use std::sync::Arc;
use warpline_kernels::AnyWork;

/// Does something with the first config that it can be done with: the
/// remembered winner, its runner-up, the family's own choice. Whether it was a
/// remembered one is given as well.
///
/// A remembered config that is stale, illegal or fails is passed over with a
/// [notice](super::notices()); nothing is ever tuned here.
pub(crate) fn first_good<T>(
    work: &dyn AnyWork,
    device: &Device,
    deterministic: bool,
    mut take: impl FnMut(&dyn AnyWork) -> Result<T, Error>,
) -> Result<(T, bool), Error> {
    for known in remembered(work, device, deterministic) {
        for i in 0..known.entry.ranked.len() {
            let tried = match fitted(&known, i, work, device) {
                Ok(None) => continue,
                Ok(Some(other)) => take(other.as_ref()),
                Err(e) => Err(e),
            };
            match tried {
                Ok(taken) => return Ok((taken, true)),
                // Neither is a fault of the config.
                Err(e) if e.is_lost() || matches!(e, Error::Capture { .. }) => return Err(e),
                Err(e) => notices::say(format!(
                    "a remembered config of {} failed, and the next one is taken: {} ({e})",
                    work.family(),
                    known.entry.ranked[i].config,
                )),
            }
        }
    }
    Ok((take(work)?, false))
}

/// Is anything remembered for a problem that this build can use?
pub(super) fn is_remembered(known: &Known, work: &dyn AnyWork, device: &Device) -> bool {
    matches!(fitted(known, 0, work, device), Ok(Some(_)))
}

/// The entries for a problem: of what may differ from run to run first, where
/// that is allowed.
fn remembered(work: &dyn AnyWork, device: &Device, deterministic: bool) -> Vec<Arc<Known>> {
    let Some(gpu) = device.gpu() else {
        return Vec::new();
    };
    let any = (!deterministic).then_some(false);
    let keys = any.into_iter().chain([true]);
    let keys = keys.filter_map(|deterministic| Key::new(work, device, deterministic));
    keys.filter_map(|key| gpu.tuned.of(&key)).collect()
}

/// The problem with a remembered config; none where that is of another program.
fn fitted(
    known: &Known,
    i: usize,
    work: &dyn AnyWork,
    device: &Device,
) -> Result<Option<Box<dyn AnyWork>>, Error> {
    let ranked = &known.entry.ranked[i];
    if known.sound[i].get() == Some(&false) {
        return Ok(None);
    }
    let target = device.target();
    let other = work.with_config(&ranked.config, &target)?;
    if known.sound[i].get().is_none() {
        let sound = hashes(&prepare_exactly(other.as_ref(), &target)?) == ranked.programs;
        if !sound {
            notices::say(format!(
                "a tuned config of {} is stale and passed over, as this build makes another \
                 program of it: {}; tune again to replace it",
                work.family(),
                ranked.config
            ));
        }
        // Whoever was first found the same.
        let _ = known.sound[i].set(sound);
        if !sound {
            return Ok(None);
        }
    }
    Ok(Some(other))
}

/// The work to run on a device: the problem with what is remembered for it and
/// loads there, else as it is. Whether it was remembered is given as well.
///
/// ```no_run
/// use warpline::kernels::{Place, registry};
/// use warpline::{Device, tune};
///
/// # fn main() -> Result<(), warpline::Error> {
/// let device = Device::cuda(0)?;
/// let work = registry()[0].default_work(Place::Gpu, &device.target())?;
/// let (work, tuned) = tune::choose(work, &device, true)?;
/// println!("{} ({})", work.config(), if tuned { "tuned" } else { "chosen" });
/// # Ok(())
/// # }
/// ```
pub fn choose(
    work: Box<dyn AnyWork>,
    device: &Device,
    deterministic: bool,
) -> Result<(Box<dyn AnyWork>, bool), Error> {
    let own = work.config();
    let load = |other: &dyn AnyWork| {
        // The family's own choice is judged where it is used.
        if other.config() != own {
            prepare(other, &device.target())?.load(device)?;
        }
        Ok(other.config())
    };
    let (config, tuned) = first_good(work.as_ref(), device, deterministic, load)?;
    match tuned {
        true => Ok((work.with_config(&config, &device.target())?, true)),
        false => Ok((work, false)),
    }
}
