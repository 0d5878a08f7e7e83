//! Kernels of a loaded module.

use std::ffi::c_int;

use crate::driver::cu;
use crate::error::CudaError;
use crate::ffi::{self, CUfunction};
use crate::module::Module;

/// What the compiler gave a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FunctionAttributes {
    /// Registers per thread at entry.
    pub registers: u32,
    /// Bytes of local memory per thread: spills and arrays.
    pub local_bytes: u32,
    /// Bytes of shared memory declared with a size in the code.
    pub static_shared_bytes: u32,
    /// The most threads a CTA of it can have.
    pub max_threads: u32,
}

/// A kernel of a loaded module.
#[derive(Debug)]
pub struct Function {
    pub(crate) module: Module,
    pub(crate) raw: CUfunction,
    pub(crate) name: String,
    pub(crate) attributes: FunctionAttributes,
    pub(crate) max_dynamic_shared: u32,
    pub(crate) max_cluster: u32,
    pub(crate) params: Option<Vec<usize>>,
}

impl Function {
    /// The kernel's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The module it is in.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Registers, local and shared memory, threads.
    pub fn attributes(&self) -> FunctionAttributes {
        self.attributes
    }

    /// Allows launches with up to `bytes` of dynamic shared memory; without
    /// this the limit is 48 KiB less the static part.
    pub fn set_max_dynamic_shared(&mut self, bytes: u32) -> Result<(), CudaError> {
        let most = self.module.context().device().shared_bytes_per_block;
        let fixed = self.attributes.static_shared_bytes;
        match bytes.checked_add(fixed) {
            Some(sum) if sum <= most => {}
            _ => {
                return Err(CudaError::bad_argument(
                    format!("kernel {}", self.name),
                    format!(
                        "{bytes} bytes of dynamic and {fixed} of static shared memory are more than the device's {most} for one CTA"
                    ),
                ));
            }
        }
        self.set(
            ffi::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
            bytes as c_int,
        )?;
        self.max_dynamic_shared = bytes;
        Ok(())
    }

    /// The most dynamic shared memory that a launch may ask for now.
    pub fn max_dynamic_shared(&self) -> u32 {
        self.max_dynamic_shared
    }

    /// Allows clusters of up to 16 CTAs instead of the portable 8.
    pub fn allow_non_portable_clusters(&mut self) -> Result<(), CudaError> {
        self.set(ffi::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1)?;
        self.max_cluster = 16;
        Ok(())
    }

    /// The most CTAs that a cluster of this kernel may have now.
    pub fn max_cluster(&self) -> u32 {
        self.max_cluster
    }

    /// The size in bytes of each parameter, if the driver can tell (12.4 and
    /// newer). Launches are checked against it.
    pub fn params(&self) -> Option<&[usize]> {
        self.params.as_deref()
    }

    fn set(&self, attribute: c_int, value: c_int) -> Result<(), CudaError> {
        let context = self.module.context();
        let _current = context.enter()?;
        // SAFETY: the handle lives as long as the module.
        unsafe {
            cu!(
                context.driver(),
                cuFuncSetAttribute(self.raw, attribute, value)
            )
        }
    }
}
