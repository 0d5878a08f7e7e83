//! One kernel on a device: print it, load its code, know what it takes to launch.

use super::advice::{Remark, remarks};
use super::args::size;
use super::cache::Gpu;
use super::code::{Code, Origin};
use super::footprint::Footprint;
use crate::error::Error;
use crate::prepare::PreparedStep;
use std::time::{Duration, Instant};
use warpline_cuda::{CudaError, Function, JitOptions, LaunchConfig, Module};
use warpline_ptx::Ptx;

/// A kernel on a device, ready for any number of launches.
#[derive(Debug)]
pub(crate) struct OnDevice {
    pub(super) function: Function,
    /// Every launch of it, but for the grid.
    shape: LaunchConfig,
    /// CTAs that the device can hold at once.
    resident: u64,
    remarks: Vec<Remark>,
}

/// What it took to bring a kernel onto the device.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Took {
    pub(super) print: Duration,
    pub(super) jit: Duration,
    pub(super) origin: Origin,
}

impl OnDevice {
    pub(super) fn load(
        step: &PreparedStep,
        gpu: &Gpu,
        jit: &JitOptions,
    ) -> Result<(Self, Took), Error> {
        let start = Instant::now();
        let ptx = step.ptx(&step.target())?;
        let print = start.elapsed();

        let start = Instant::now();
        let Code {
            module,
            log,
            origin,
        } = Code::load(&step.kernel, gpu, &ptx.text, jit)?;
        let function = function(step, &ptx, &module)?;
        let shape = shape(&ptx);
        let kernel = Self {
            resident: resident(&function, &shape)?,
            remarks: remarks(&log, &ptx),
            function,
            shape,
        };
        kernel.can_run()?;
        let took = Took {
            print,
            jit: start.elapsed(),
            origin,
        };
        kernel.tell(&log, &took);
        Ok((kernel, took))
    }

    /// A launch of so many CTAs.
    pub(super) fn config(&self, grid: [u32; 3]) -> LaunchConfig {
        self.shape.grid(grid)
    }

    /// Refuses a grid that must be on the device at once, and cannot.
    pub(super) fn holds(&self, grid: [u32; 3]) -> Result<(), Error> {
        let ctas: u64 = grid.into_iter().map(u64::from).product();
        if ctas <= self.resident {
            return Ok(());
        }
        Err(self.refused(format!(
            "its CTAs wait for each other, so all {ctas} must be on the device at once, and it holds {}",
            self.resident
        )))
    }

    /// Refuses a kernel that the compiler did not make as it was written.
    pub(super) fn as_written(&self) -> Result<(), Error> {
        if self.remarks.is_empty() {
            return Ok(());
        }
        let remarks: Vec<_> = self.remarks.iter().map(|r| format!("\n  {r}")).collect();
        Err(Error::NotAsWritten {
            kernel: self.function.name().to_owned(),
            remarks: remarks.concat(),
        })
    }

    /// What it needs.
    pub(super) fn footprint(&self) -> Footprint {
        let attributes = self.function.attributes();
        Footprint {
            name: self.function.name().to_owned(),
            threads: self.shape.block.iter().product(),
            registers: attributes.registers,
            local_bytes: attributes.local_bytes,
            shared_bytes: self.shape.shared_bytes + attributes.static_shared_bytes,
            resident_ctas: self.resident,
        }
    }

    fn can_run(&self) -> Result<(), Error> {
        if self.resident > 0 {
            return Ok(());
        }
        let LaunchConfig {
            block: [threads, ..],
            shared_bytes,
            cluster,
            ..
        } = self.shape;
        let what = match cluster {
            Some([x, y, z]) => format!("a cluster of {x}×{y}×{z} CTAs"),
            None => "a CTA".into(),
        };
        Err(self.refused(format!(
            "{what} with {threads} threads of {} registers and {shared_bytes} bytes of shared memory does not fit the device",
            self.function.attributes().registers
        )))
    }

    fn refused(&self, why: String) -> Error {
        Error::Launch {
            kernel: self.function.name().to_owned(),
            why,
        }
    }

    fn tell(&self, log: &str, took: &Took) {
        let kernel = self.function.name();
        for remark in &self.remarks {
            tracing::warn!(
                kernel,
                "the driver did not compile the kernel as it was written: {remark}"
            );
        }
        let attributes = self.function.attributes();
        tracing::debug!(
            kernel,
            registers = attributes.registers,
            local_bytes = attributes.local_bytes,
            origin = ?took.origin,
            jit_ms = took.jit.as_secs_f64() * 1e3,
            log,
            "loaded a kernel"
        );
    }
}

/// The kernel's function, allowed all that its launches ask for.
fn function(step: &PreparedStep, ptx: &Ptx, module: &Module) -> Result<Function, CudaError> {
    let sizes: Vec<usize> = step.kernel.params.iter().map(|p| size(&p.kind)).collect();
    let mut function = module.function_with(&ptx.entry, &sizes)?;
    if ptx.shared_bytes > function.max_dynamic_shared() {
        function.set_max_dynamic_shared(ptx.shared_bytes)?;
    }
    if step.kernel.cluster_size() > function.max_cluster() {
        function.allow_non_portable_clusters()?;
    }
    Ok(function)
}

/// A launch of one CTA or cluster.
fn shape(ptx: &Ptx) -> LaunchConfig {
    let clustered = ptx.cluster.iter().product::<u32>() > 1;
    LaunchConfig::new(ptx.cluster, [ptx.threads, 1, 1])
        .cluster(clustered.then_some(ptx.cluster))
        .shared_bytes(ptx.shared_bytes)
}

fn resident(function: &Function, shape: &LaunchConfig) -> Result<u64, CudaError> {
    Ok(match shape.cluster {
        Some(cluster) => {
            let size: u64 = cluster.into_iter().map(u64::from).product();
            u64::from(function.max_active_clusters(shape)?) * size
        }
        None => {
            let sms = function.module().context().device().sms;
            u64::from(function.max_active_blocks(shape)?) * u64::from(sms)
        }
    })
}
