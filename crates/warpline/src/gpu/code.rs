//! The code of a kernel on a device.
//!
//! Most kernels are compiled to a cubin, which is kept [on disk](super::disk)
//! with what the compiler said of it. The driver makes cubins by its linker,
//! which compiles a text as one unit of many: such a unit must not change how
//! many registers its caller's warps have, so `setmaxnreg` is ignored in it
//! (C7504). A kernel with `setmaxnreg` is therefore loaded *whole*, as text.
//! The driver keeps that code in a cache of its own, from where it comes
//! without a log: the compiler's remarks are heard once.

use super::cache::Gpu;
use super::disk::Key;
use crate::error::Error;
use serde::Serialize;
use warpline_cuda::{CudaError, JitOptions, Module};
use warpline_ir::{Kernel, Op, StmtKind};

/// Where the code of a kernel came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// It was on the device already.
    #[default]
    Process,
    /// From a cubin on disk.
    Disk,
    /// The driver compiled it.
    Compiled,
    /// The driver compiled it as a whole program, or had done so before.
    CompiledWhole,
}

/// Code on a device, and what the compiler said of it.
pub(super) struct Code {
    pub(super) module: Module,
    pub(super) log: String,
    pub(super) origin: Origin,
}

impl Code {
    /// The code of a kernel that was printed as `ptx`.
    pub(super) fn load(
        kernel: &Kernel,
        gpu: &Gpu,
        ptx: &str,
        jit: &JitOptions,
    ) -> Result<Self, Error> {
        if moves_registers(kernel) {
            return Ok(whole(gpu, ptx, jit)?);
        }
        let key = Key::new(ptx, gpu.context.device(), jit);
        match from_disk(gpu, &key)? {
            Some(code) => Ok(code),
            None => Ok(compiled(gpu, &key, ptx, jit)?),
        }
    }
}

/// Has the kernel `setmaxnreg` in it?
fn moves_registers(kernel: &Kernel) -> bool {
    let mut moves = false;
    kernel.each_stmt(&mut |_, stmt| {
        moves |= matches!(&stmt.kind, StmtKind::Op(Op::SetMaxRegs(_)));
    });
    moves
}

fn whole(gpu: &Gpu, ptx: &str, jit: &JitOptions) -> Result<Code, CudaError> {
    let module = Module::from_ptx(&gpu.context, ptx, jit)?;
    Ok(Code {
        log: module.log().to_owned(),
        module,
        origin: Origin::CompiledWhole,
    })
}

fn from_disk(gpu: &Gpu, key: &Key) -> Result<Option<Code>, CudaError> {
    let Some(cubin) = gpu.disk.read(key) else {
        return Ok(None);
    };
    match Module::from_cubin(&gpu.context, &cubin.bytes) {
        Ok(module) => Ok(Some(Code {
            module,
            log: cubin.log,
            origin: Origin::Disk,
        })),
        Err(e @ (CudaError::JitRefused { .. } | CudaError::BadArgument { .. })) => {
            tracing::warn!("a cubin on disk is passed over and made again: {e}");
            Ok(None)
        }
        Err(e) => Err(e),
    }
}

/// Compiled now, and kept on disk.
fn compiled(gpu: &Gpu, key: &Key, ptx: &str, jit: &JitOptions) -> Result<Code, CudaError> {
    let cubin = Module::compile(&gpu.context, ptx, jit)?;
    let module = Module::from_cubin(&gpu.context, &cubin.bytes)?;
    gpu.disk.write(key, &cubin);
    Ok(Code {
        module,
        log: cubin.log,
        origin: Origin::Compiled,
    })
}
