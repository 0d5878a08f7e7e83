//! Loaded modules: PTX compiled by the driver, or cubins.

use std::ffi::{CString, c_void};
use std::sync::Arc;

use crate::compile::{JitOptions, Request, nul_terminated};
use crate::context::Context;
use crate::driver::cu;
use crate::elf;
use crate::error::CudaError;
use crate::ffi::{self, CUfunction, CUlibrary, CUmodule};
use crate::function::{Function, FunctionAttributes};

/// A loaded module. Clones refer to the same module. It is unloaded when the last clone and the
/// last [`Function`] are dropped, so keep one of them until its launches complete.
#[derive(Debug, Clone)]
pub struct Module {
    loaded: Arc<LoadedModule>,
}

#[derive(Debug)]
struct LoadedModule {
    context: Context,
    library: CUlibrary,
    /// The library's module in the context.
    raw: CUmodule,
    log: String,
}

impl Module {
    /// Compiles and loads PTX text. [`Module::log`] has the compiler's remarks;
    /// [`CudaError::JitRejected`] has its errors.
    pub fn from_ptx(context: &Context, ptx: &str, options: &JitOptions) -> Result<Self, CudaError> {
        let text = nul_terminated(ptx)?;
        // SAFETY: NUL-terminated text, which the driver reads to its NUL.
        unsafe { Self::load(context, text.as_ptr().cast(), options) }
    }

    /// Loads a cubin: machine code for this GPU architecture.
    pub fn from_cubin(context: &Context, cubin: &[u8]) -> Result<Self, CudaError> {
        elf::check_complete(cubin).map_err(|why| CudaError::bad_argument("cubin", why))?;
        // SAFETY: the driver reads the ranges in the ELF headers, which are inside the slice.
        unsafe { Self::load(context, cubin.as_ptr().cast(), &JitOptions::default()) }
    }

    /// # Safety
    /// `image` is NUL-terminated PTX or a complete cubin.
    unsafe fn load(
        context: &Context,
        image: *const c_void,
        jit: &JitOptions,
    ) -> Result<Self, CudaError> {
        let mut request = Request::new(jit);
        let driver = context.driver();
        let mut library = CUlibrary::NULL;
        let _current = context.enter()?;
        // A library rather than a module: the driver compiles modules one at a time, even from
        // several threads.
        //
        // SAFETY: the caller guarantees the image; names and values have equal length, and the
        // logs have the length that their size options state.
        let result = unsafe {
            (driver.api.cuLibraryLoadData)(
                &mut library,
                image,
                request.names.as_mut_ptr(),
                request.values.as_mut_ptr(),
                request.len(),
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                0,
            )
        };
        request.check(driver, "cuLibraryLoadData", result)?;
        let mut loaded = LoadedModule {
            context: context.clone(),
            library,
            raw: CUmodule::NULL,
            log: String::new(),
        };
        // This call reports errors of the compiler.
        //
        // SAFETY: writes one handle; the library is loaded.
        let result = unsafe { (driver.api.cuLibraryGetModule)(&mut loaded.raw, library) };
        request.check(driver, "cuLibraryGetModule", result)?;
        loaded.log = request.info();
        Ok(Self {
            loaded: Arc::new(loaded),
        })
    }

    /// Returns the compiler's information log; empty when the driver took the code from its disk
    /// cache.
    pub fn log(&self) -> &str {
        &self.loaded.log
    }

    /// Returns the context of the module.
    pub fn context(&self) -> &Context {
        &self.loaded.context
    }

    /// Returns the kernel `name`.
    ///
    /// The driver has no query for the number of parameters: the only way to find the last one
    /// is a failing call, which debuggers and sanitizers report as an error. A caller that knows
    /// the sizes should use [`function_with_params`](Self::function_with_params).
    pub fn function(&self, name: &str) -> Result<Function, CudaError> {
        let mut function = self.function_with_params(name, &[])?;
        let _current = self.context().enter()?;
        function.params = self.params(function.raw)?;
        Ok(function)
    }

    /// Returns the kernel `name`; `params` are the sizes of its parameters in bytes.
    pub fn function_with_params(
        &self,
        name: &str,
        params: &[usize],
    ) -> Result<Function, CudaError> {
        let missing = || {
            CudaError::bad_argument(
                "kernel name",
                format!("the module has no kernel named {name:?}"),
            )
        };
        let symbol = CString::new(name).map_err(|_| missing())?;
        let driver = self.context().driver();
        let _current = self.context().enter()?;
        let mut raw = CUfunction::NULL;
        // SAFETY: writes one handle; the module is loaded and the name ends
        // in NUL.
        let result =
            unsafe { (driver.api.cuModuleGetFunction)(&mut raw, self.loaded.raw, symbol.as_ptr()) };
        if result == ffi::CUDA_ERROR_NOT_FOUND {
            return Err(missing());
        }
        driver.check("cuModuleGetFunction", result)?;

        let attribute = |which| -> Result<u32, CudaError> {
            let mut value = 0;
            // SAFETY: writes one int.
            unsafe { cu!(driver, cuFuncGetAttribute(&mut value, which, raw)) }?;
            Ok(value.max(0).unsigned_abs())
        };
        let attributes = FunctionAttributes {
            registers: attribute(ffi::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            local_bytes: attribute(ffi::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            static_shared_bytes: attribute(ffi::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
            max_threads: attribute(ffi::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        };
        Ok(Function {
            max_dynamic_shared: attribute(ffi::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)?,
            max_cluster: 8,
            params: Some(params.to_vec()),
            module: self.clone(),
            raw,
            name: name.into(),
            attributes,
        })
    }

    /// Queries the size of each parameter, if the driver reports it (12.4 and newer).
    fn params(&self, function: CUfunction) -> Result<Option<Vec<usize>>, CudaError> {
        let driver = self.context().driver();
        let Some(param_info) = driver.api.cuFuncGetParamInfo else {
            return Ok(None);
        };
        let mut sizes = Vec::new();
        loop {
            let (mut offset, mut size) = (0, 0);
            // SAFETY: writes two sizes; an index past the end is an error.
            match unsafe { param_info(function, sizes.len(), &mut offset, &mut size) } {
                ffi::CUDA_ERROR_INVALID_VALUE => return Ok(Some(sizes)),
                result => driver.check("cuFuncGetParamInfo", result)?,
            }
            sizes.push(size);
        }
    }
}

impl Drop for LoadedModule {
    fn drop(&mut self) {
        if let Ok(_current) = self.context.enter() {
            // SAFETY: loaded once, unloaded once; every `Function` keeps a
            // clone of the module.
            let _ = unsafe { cu!(self.context.driver(), cuLibraryUnload(self.library)) };
        }
    }
}
