//! The code of a kernel on a device.
//!
//! Most kernels are compiled to a cubin, which is stored [on disk](super::disk) with the compiler's
//! log. The driver produces cubins with its linker, which uses relocatable compilation. Relocatable
//! code must not change the register count of its caller's warps, so the compiler ignores
//! `setmaxnreg` in it (C7504). A kernel with `setmaxnreg` is therefore loaded as PTX text and
//! compiled as a *whole program*. The driver caches that code itself and returns it without a log,
//! so advisories appear only at the first compilation.

use super::cache::Gpu;
use super::disk::CubinKey;
use crate::error::Error;
use serde::Serialize;
use warpline_cuda::{CudaError, JitOptions, Module};
use warpline_ir::{Kernel, Op, StmtKind};

/// The origin of a kernel's code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CodeOrigin {
    /// It was already loaded in this process.
    #[default]
    Process,
    /// A cubin on disk.
    Disk,
    /// The driver compiled it.
    Compiled,
    /// The driver compiled it as a whole program, possibly in an earlier process.
    CompiledWhole,
}

/// Loaded code and the log of the compiler.
pub(super) struct LoadedCode {
    pub(super) module: Module,
    pub(super) log: String,
    pub(super) origin: CodeOrigin,
}

impl LoadedCode {
    /// Loads the code of a kernel that was printed as `ptx`.
    pub(super) fn load(
        kernel: &Kernel,
        gpu: &Gpu,
        ptx: &str,
        jit: &JitOptions,
    ) -> Result<Self, Error> {
        if has_setmaxnreg(kernel) {
            return Ok(compile_whole(gpu, ptx, jit)?);
        }
        let key = CubinKey::new(ptx, gpu.context.device(), jit);
        match from_disk(gpu, &key)? {
            Some(code) => Ok(code),
            None => Ok(compile(gpu, &key, ptx, jit)?),
        }
    }
}

/// Returns whether the kernel contains `setmaxnreg`.
fn has_setmaxnreg(kernel: &Kernel) -> bool {
    let mut found = false;
    kernel.each_stmt(&mut |_, stmt| {
        found |= matches!(&stmt.kind, StmtKind::Op(Op::SetMaxRegs(_)));
    });
    found
}

fn compile_whole(gpu: &Gpu, ptx: &str, jit: &JitOptions) -> Result<LoadedCode, CudaError> {
    let module = Module::from_ptx(&gpu.context, ptx, jit)?;
    Ok(LoadedCode {
        log: module.log().to_owned(),
        module,
        origin: CodeOrigin::CompiledWhole,
    })
}

fn from_disk(gpu: &Gpu, key: &CubinKey) -> Result<Option<LoadedCode>, CudaError> {
    let Some(cubin) = gpu.disk.read(key) else {
        return Ok(None);
    };
    match Module::from_cubin(&gpu.context, &cubin.bytes) {
        Ok(module) => Ok(Some(LoadedCode {
            module,
            log: cubin.log,
            origin: CodeOrigin::Disk,
        })),
        Err(e @ (CudaError::JitRejected { .. } | CudaError::BadArgument { .. })) => {
            tracing::warn!("a cubin on disk is rejected and compiled again: {e}");
            Ok(None)
        }
        Err(e) => Err(e),
    }
}

/// Compiles a cubin and stores it on disk.
fn compile(
    gpu: &Gpu,
    key: &CubinKey,
    ptx: &str,
    jit: &JitOptions,
) -> Result<LoadedCode, CudaError> {
    let cubin = Module::compile(&gpu.context, ptx, jit)?;
    let module = Module::from_cubin(&gpu.context, &cubin.bytes)?;
    gpu.disk.write(key, &cubin);
    Ok(LoadedCode {
        module,
        log: cubin.log,
        origin: CodeOrigin::Compiled,
    })
}
