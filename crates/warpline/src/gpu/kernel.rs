//! Loaded kernels: printing, loading and launch configuration.

use super::advisories::{JitAdvisory, advisories};
use super::args::param_bytes;
use super::cache::Gpu;
use super::code::{CodeOrigin, LoadedCode};
use super::footprint::Footprint;
use crate::error::Error;
use crate::prepare::PreparedStep;
use std::time::{Duration, Instant};
use warpline_cuda::{CudaError, Function, JitOptions, LaunchConfig, Module};
use warpline_ptx::Ptx;

/// A kernel that is loaded on a device.
#[derive(Debug)]
pub(crate) struct LoadedKernel {
    pub(super) function: Function,
    /// The launch configuration without the grid.
    base_config: LaunchConfig,
    /// The maximum number of resident CTAs on the device.
    resident_ctas: u64,
    advisories: Vec<JitAdvisory>,
}

/// The cost of loading a kernel.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LoadCost {
    pub(super) print: Duration,
    pub(super) jit: Duration,
    pub(super) origin: CodeOrigin,
}

impl LoadedKernel {
    pub(super) fn load(
        step: &PreparedStep,
        gpu: &Gpu,
        jit: &JitOptions,
    ) -> Result<(Self, LoadCost), Error> {
        let start = Instant::now();
        let ptx = step.ptx(&step.target())?;
        let print = start.elapsed();

        let start = Instant::now();
        let LoadedCode {
            module,
            log,
            origin,
        } = LoadedCode::load(&step.kernel, gpu, &ptx.text, jit)?;
        let function = function(step, &ptx, &module)?;
        let base_config = base_config(&ptx);
        let kernel = Self {
            resident_ctas: resident_ctas(&function, &base_config)?,
            advisories: advisories(&log, &ptx),
            function,
            base_config,
        };
        kernel.check_residency()?;
        let cost = LoadCost {
            print,
            jit: start.elapsed(),
            origin,
        };
        kernel.log(&log, &cost);
        Ok((kernel, cost))
    }

    /// Returns the launch configuration for a grid.
    pub(super) fn config(&self, grid: [u32; 3]) -> LaunchConfig {
        self.base_config.grid(grid)
    }

    /// Rejects a co-resident grid that does not fit on the device.
    pub(super) fn check_co_resident(&self, grid: [u32; 3]) -> Result<(), Error> {
        let ctas: u64 = grid.into_iter().map(u64::from).product();
        if ctas <= self.resident_ctas {
            return Ok(());
        }
        Err(self.rejected(format!(
            "its {ctas} CTAs wait for each other and must be co-resident, but the device holds {}",
            self.resident_ctas
        )))
    }

    /// Rejects a kernel with advisories that change it.
    pub(super) fn check_advisories(&self) -> Result<(), Error> {
        if self.advisories.is_empty() {
            return Ok(());
        }
        let advisories: Vec<_> = self.advisories.iter().map(|a| format!("\n  {a}")).collect();
        Err(Error::NotAsWritten {
            kernel: self.function.name().to_owned(),
            advisories: advisories.concat(),
        })
    }

    /// Returns the resources of the kernel.
    pub(super) fn footprint(&self) -> Footprint {
        let attributes = self.function.attributes();
        Footprint {
            name: self.function.name().to_owned(),
            threads: self.base_config.block.iter().product(),
            registers: attributes.registers,
            local_bytes: attributes.local_bytes,
            shared_bytes: self.base_config.shared_bytes + attributes.static_shared_bytes,
            resident_ctas: self.resident_ctas,
        }
    }

    fn check_residency(&self) -> Result<(), Error> {
        if self.resident_ctas > 0 {
            return Ok(());
        }
        let LaunchConfig {
            block: [threads, ..],
            shared_bytes,
            cluster,
            ..
        } = self.base_config;
        let launched = match cluster {
            Some([x, y, z]) => format!("a cluster of {x}×{y}×{z} CTAs"),
            None => "a CTA".into(),
        };
        Err(self.rejected(format!(
            "{launched} with {threads} threads of {} registers and {shared_bytes} bytes of shared memory does not fit on the device",
            self.function.attributes().registers
        )))
    }

    fn rejected(&self, why: String) -> Error {
        Error::Launch {
            kernel: self.function.name().to_owned(),
            why,
        }
    }

    fn log(&self, log: &str, cost: &LoadCost) {
        let kernel = self.function.name();
        for advisory in &self.advisories {
            tracing::warn!(
                kernel,
                "the driver did not compile the kernel as written: {advisory}"
            );
        }
        let attributes = self.function.attributes();
        tracing::debug!(
            kernel,
            registers = attributes.registers,
            local_bytes = attributes.local_bytes,
            origin = ?cost.origin,
            jit_ms = cost.jit.as_secs_f64() * 1e3,
            log,
            "loaded a kernel"
        );
    }
}

/// Returns the kernel's function with the attributes that its launches need.
fn function(step: &PreparedStep, ptx: &Ptx, module: &Module) -> Result<Function, CudaError> {
    let sizes: Vec<usize> = step
        .kernel
        .params
        .iter()
        .map(|p| param_bytes(&p.kind))
        .collect();
    let mut function = module.function_with_params(&ptx.entry, &sizes)?;
    if ptx.shared_bytes > function.max_dynamic_shared() {
        function.set_max_dynamic_shared(ptx.shared_bytes)?;
    }
    if step.kernel.cluster_size() > function.max_cluster() {
        function.allow_non_portable_clusters()?;
    }
    Ok(function)
}

/// Returns the launch configuration of one CTA or cluster.
fn base_config(ptx: &Ptx) -> LaunchConfig {
    let clustered = ptx.cluster.iter().product::<u32>() > 1;
    LaunchConfig::new(ptx.cluster, [ptx.threads, 1, 1])
        .cluster(clustered.then_some(ptx.cluster))
        .shared_bytes(ptx.shared_bytes)
}

fn resident_ctas(function: &Function, config: &LaunchConfig) -> Result<u64, CudaError> {
    Ok(match config.cluster {
        Some(cluster) => {
            let size: u64 = cluster.into_iter().map(u64::from).product();
            u64::from(function.max_active_clusters(config)?) * size
        }
        None => {
            let sms = function.module().context().device().sms;
            u64::from(function.max_active_blocks(config)?) * u64::from(sms)
        }
    })
}
