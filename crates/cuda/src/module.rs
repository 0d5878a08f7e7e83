//! Modules: PTX compiled by the driver, or a cubin, loaded.

use std::ffi::{CString, c_void};
use std::sync::Arc;

use crate::compile::{JitOptions, Request, nul_terminated};
use crate::context::Context;
use crate::driver::cu;
use crate::elf;
use crate::error::CudaError;
use crate::ffi::{self, CUfunction, CUlibrary, CUmodule};
use crate::function::{Function, FunctionAttributes};

/// A loaded module. Clones name the same one; it is unloaded with the last
/// clone and the last [`Function`] of it, so keep one of them until the work
/// that runs it is done.
#[derive(Debug, Clone)]
pub struct Module {
    loaded: Arc<Loaded>,
}

#[derive(Debug)]
struct Loaded {
    context: Context,
    library: CUlibrary,
    /// The library as it is in the context.
    raw: CUmodule,
    log: String,
}

impl Module {
    /// Compiles and loads PTX text. What the compiler remarks on is in
    /// [`Module::log`], what it refuses in [`CudaError::JitRefused`].
    pub fn from_ptx(context: &Context, ptx: &str, options: &JitOptions) -> Result<Self, CudaError> {
        let text = nul_terminated(ptx)?;
        // SAFETY: NUL-terminated text, which the driver reads to its NUL.
        unsafe { Self::load(context, text.as_ptr().cast(), options) }
    }

    /// Loads a cubin: machine code for this very kind of device.
    pub fn from_cubin(context: &Context, cubin: &[u8]) -> Result<Self, CudaError> {
        elf::is_whole(cubin).map_err(|why| CudaError::bad_argument("cubin", why))?;
        // SAFETY: the driver reads as far as the ELF headers say, which is
        // inside the slice.
        unsafe { Self::load(context, cubin.as_ptr().cast(), &JitOptions::default()) }
    }

    /// # Safety
    /// `image` is NUL-terminated PTX or a whole cubin.
    unsafe fn load(
        context: &Context,
        image: *const c_void,
        jit: &JitOptions,
    ) -> Result<Self, CudaError> {
        let mut request = Request::new(jit);
        let driver = context.driver();
        let mut library = CUlibrary::NULL;
        let _current = context.enter()?;
        // A library rather than a module: of modules the driver compiles one
        // at a time, whatever the number of threads.
        //
        // SAFETY: the caller vouches for the image; names and values are of
        // one length, and the logs are as long as their size options say.
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
        request.judge(driver, "cuLibraryLoadData", result)?;
        let mut loaded = Loaded {
            context: context.clone(),
            library,
            raw: CUmodule::NULL,
            log: String::new(),
        };
        // What the compiler refuses is told here.
        //
        // SAFETY: writes one handle; the library is loaded.
        let result = unsafe { (driver.api.cuLibraryGetModule)(&mut loaded.raw, library) };
        request.judge(driver, "cuLibraryGetModule", result)?;
        loaded.log = request.info();
        Ok(Self {
            loaded: Arc::new(loaded),
        })
    }

    /// The compiler's information log. Empty when the driver took the code
    /// from its own cache on disk.
    pub fn log(&self) -> &str {
        &self.loaded.log
    }

    /// The context the module is loaded in.
    pub fn context(&self) -> &Context {
        &self.loaded.context
    }

    /// The kernel of that name.
    ///
    /// The driver tells parameter sizes only until it is asked for one too
    /// many, which debuggers and sanitizers report as an error of the program:
    /// a caller who knows the sizes takes [`function_with`](Self::function_with).
    pub fn function(&self, name: &str) -> Result<Function, CudaError> {
        let mut function = self.function_with(name, &[])?;
        let _current = self.context().enter()?;
        function.params = self.params(function.raw)?;
        Ok(function)
    }

    /// The kernel of that name, whose parameters have these sizes in bytes.
    pub fn function_with(&self, name: &str, params: &[usize]) -> Result<Function, CudaError> {
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

    /// Size of each parameter, if the driver can tell (12.4 and newer).
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

impl Drop for Loaded {
    fn drop(&mut self) {
        if let Ok(_current) = self.context.enter() {
            // SAFETY: loaded once, unloaded once; every `Function` keeps a
            // clone of the module.
            let _ = unsafe { cu!(self.context.driver(), cuLibraryUnload(self.library)) };
        }
    }
}
