//! The driver's PTX compiler: options, log and cubin.

use std::ffi::{CString, c_int, c_void};
use std::ptr::without_provenance_mut;

use crate::context::Context;
use crate::driver::{Driver, cu};
use crate::error::CudaError;
use crate::ffi::{self, CUlinkState, CUresult};
use crate::module::Module;

/// The size of each of the compiler's two log buffers.
const LOG_BYTES: usize = 64 << 10;

/// Options of the driver's PTX compiler. The defaults are those of `ptxas`, with line
/// information.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct JitOptions {
    /// The maximum number of registers per thread.
    pub max_registers: Option<u32>,
    /// The optimization level, 0 to 4; the compiler's default is 4.
    pub optimization: Option<u32>,
    /// Keeps the `.loc` lines for profilers and debuggers.
    pub line_info: bool,
}

impl Default for JitOptions {
    fn default() -> Self {
        Self {
            max_registers: None,
            optimization: None,
            line_info: true,
        }
    }
}

/// Machine code for one GPU architecture, and the compiler's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cubin {
    /// An ELF file.
    pub bytes: Vec<u8>,
    /// The compiler's information log.
    pub log: String,
}

impl Module {
    /// Compiles PTX text to a cubin for [`Module::from_cubin`]. Another process with the same
    /// driver and GPU architecture can load it too.
    ///
    /// The driver's linker treats the text as one unit of a larger program and ignores
    /// `setmaxnreg` in it (C7504). Load a kernel that uses `setmaxnreg` with
    /// [`Module::from_ptx`].
    pub fn compile(context: &Context, ptx: &str, options: &JitOptions) -> Result<Cubin, CudaError> {
        let text = nul_terminated(ptx)?;
        let mut request = Request::new(options);
        // Without this option the linker targets sm_90, which has no wgmma.
        request.set(ffi::CU_JIT_TARGET, ffi::CU_TARGET_COMPUTE_90A);
        let _current = context.enter()?;
        let linker = Linker::new(context.driver(), &mut request)?;
        let bytes = linker.link(&text, &request)?;
        drop(linker);
        Ok(Cubin {
            bytes,
            log: request.info(),
        })
    }
}

/// A running compilation; the context must stay current while it lives.
struct Linker {
    driver: &'static Driver,
    raw: CUlinkState,
}

impl Linker {
    /// Starts a compilation. The driver writes into the request's logs until the linker is dropped.
    fn new(driver: &'static Driver, request: &mut Request) -> Result<Self, CudaError> {
        let mut raw = CUlinkState::NULL;
        // SAFETY: writes one handle; names and values have equal length, and the logs have
        // the length that their size options state. The caller keeps the request until the
        // linker is dropped.
        unsafe {
            cu!(
                driver,
                cuLinkCreate_v2(
                    request.len(),
                    request.names.as_mut_ptr(),
                    request.values.as_mut_ptr(),
                    &mut raw
                )
            )
        }?;
        Ok(Self { driver, raw })
    }

    /// Compiles one PTX text and copies the cubin out of the linker.
    fn link(&self, text: &CString, request: &Request) -> Result<Vec<u8>, CudaError> {
        let bytes = text.as_bytes_with_nul();
        // SAFETY: the driver reads `bytes.len()` bytes, and the last one is NUL; there are no
        // options.
        let added = unsafe {
            (self.driver.api.cuLinkAddData_v2)(
                self.raw,
                ffi::CU_JIT_INPUT_PTX,
                bytes.as_ptr().cast_mut().cast(),
                bytes.len(),
                c"kernel.ptx".as_ptr(),
                0,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
            )
        };
        request.check(self.driver, "cuLinkAddData", added)?;
        let (mut image, mut len) = (std::ptr::null_mut(), 0);
        // SAFETY: writes a pointer and a length.
        let linked = unsafe { (self.driver.api.cuLinkComplete)(self.raw, &mut image, &mut len) };
        request.check(self.driver, "cuLinkComplete", linked)?;
        if image.is_null() {
            return Ok(Vec::new());
        }
        // SAFETY: the linker owns `len` bytes until it is destroyed.
        let image = unsafe { std::slice::from_raw_parts(image.cast::<u8>(), len) };
        Ok(image.to_vec())
    }
}

impl Drop for Linker {
    fn drop(&mut self) {
        // SAFETY: created once, destroyed once.
        let _ = unsafe { cu!(self.driver, cuLinkDestroy(self.raw)) };
    }
}

/// The options in the driver's format, and the log buffers that the driver writes.
pub(crate) struct Request {
    info: Vec<u8>,
    errors: Vec<u8>,
    pub(crate) names: Vec<c_int>,
    /// Each value is a pointer, or a number cast to a pointer.
    pub(crate) values: Vec<*mut c_void>,
}

impl Request {
    pub(crate) fn new(jit: &JitOptions) -> Self {
        let mut request = Self {
            info: vec![0; LOG_BYTES],
            errors: vec![0; LOG_BYTES],
            names: Vec::new(),
            values: Vec::new(),
        };
        let (info, errors) = (request.info.as_mut_ptr(), request.errors.as_mut_ptr());
        request.push(ffi::CU_JIT_INFO_LOG_BUFFER, info.cast());
        request.set(ffi::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, LOG_BYTES);
        request.push(ffi::CU_JIT_ERROR_LOG_BUFFER, errors.cast());
        request.set(ffi::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, LOG_BYTES);
        request.set(ffi::CU_JIT_LOG_VERBOSE, 1);
        if jit.line_info {
            request.set(ffi::CU_JIT_GENERATE_LINE_INFO, 1);
        }
        if let Some(max) = jit.max_registers {
            request.set(ffi::CU_JIT_MAX_REGISTERS, max as usize);
        }
        if let Some(level) = jit.optimization {
            request.set(ffi::CU_JIT_OPTIMIZATION_LEVEL, level as usize);
        }
        request
    }

    fn push(&mut self, name: c_int, value: *mut c_void) {
        self.names.push(name);
        self.values.push(value);
    }

    fn set(&mut self, name: c_int, number: usize) {
        self.push(name, without_provenance_mut(number));
    }

    pub(crate) fn len(&self) -> u32 {
        self.names.len() as u32
    }

    /// Returns the compiler's information log.
    pub(crate) fn info(&self) -> String {
        log_text(&self.info)
    }

    /// Checks a result of the driver; a rejection carries the compiler's error log.
    pub(crate) fn check(
        &self,
        driver: &Driver,
        call: &'static str,
        result: CUresult,
    ) -> Result<(), CudaError> {
        if ffi::IMAGE_REJECTED.contains(&result) {
            return Err(CudaError::JitRejected {
                name: driver.result_name(result),
                log: log_text(&self.errors),
            });
        }
        driver.check(call, result)
    }
}

/// Converts PTX text to a C string.
pub(crate) fn nul_terminated(ptx: &str) -> Result<CString, CudaError> {
    CString::new(ptx).map_err(|error| {
        CudaError::bad_argument(
            "PTX text",
            format!("contains a NUL byte at offset {}", error.nul_position()),
        )
    })
}

/// Returns the text of a log buffer up to its NUL.
fn log_text(bytes: &[u8]) -> String {
    let text = bytes.split(|&b| b == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).trim().to_owned()
}
