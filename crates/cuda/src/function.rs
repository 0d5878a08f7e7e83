//! Kernels of a loaded module.

use std::ffi::c_int;

use crate::driver::cu;
use crate::error::CudaError;
use crate::ffi::{self, CUfunction};
use crate::module::Module;

/// The resources that the compiler assigned to a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FunctionAttributes {
    /// Registers per thread at entry.
    pub registers: u32,
    /// Bytes of local memory per thread: spills and arrays.
    pub local_bytes: u32,
    /// Bytes of statically declared shared memory.
    pub static_shared_bytes: u32,
    /// The maximum number of threads per CTA.
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
    /// Returns the kernel's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the kernel's module.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Returns the resources that the compiler assigned to the kernel.
    pub fn attributes(&self) -> FunctionAttributes {
        self.attributes
    }

    /// Allows launches with up to `bytes` of dynamic shared memory. The default limit is 48 KiB
    /// minus the static part.
    pub fn set_max_dynamic_shared(&mut self, bytes: u32) -> Result<(), CudaError> {
        let max = self.module.context().device().shared_bytes_per_block;
        let fixed = self.attributes.static_shared_bytes;
        match bytes.checked_add(fixed) {
            Some(sum) if sum <= max => {}
            _ => {
                return Err(CudaError::bad_argument(
                    format!("kernel {}", self.name),
                    format!(
                        "{bytes} bytes of dynamic and {fixed} bytes of static shared memory exceed the device's limit of {max} bytes per CTA\nhelp: request at most {} bytes of dynamic shared memory",
                        max.saturating_sub(fixed)
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

    /// Returns the current limit of dynamic shared memory of a launch.
    pub fn max_dynamic_shared(&self) -> u32 {
        self.max_dynamic_shared
    }

    /// Allows clusters of up to 16 CTAs instead of the portable 8.
    pub fn allow_non_portable_clusters(&mut self) -> Result<(), CudaError> {
        self.set(ffi::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1)?;
        self.max_cluster = 16;
        Ok(())
    }

    /// Returns the current limit of CTAs per cluster.
    pub fn max_cluster(&self) -> u32 {
        self.max_cluster
    }

    /// Returns the size of each parameter in bytes, which every launch must match: the sizes given
    /// to [`Module::function_with_params`], else those that the driver reports (12.4 and newer);
    /// `None` if it reports none.
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
