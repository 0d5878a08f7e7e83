//! The driver's PTX compiler: its options, its log, and the cubin it makes.

use std::ffi::{CString, c_int, c_void};
use std::ptr::without_provenance_mut;

use crate::context::Context;
use crate::driver::{Driver, cu};
use crate::error::CudaError;
use crate::ffi::{self, CUlinkState, CUresult};
use crate::module::Module;

/// Room for each of the compiler's two logs.
const LOG_BYTES: usize = 64 << 10;

/// What is asked of the driver's PTX compiler. The default is what `ptxas`
/// does by default, with line numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct JitOptions {
    /// The most registers a thread may have.
    pub max_registers: Option<u32>,
    /// 0 to 4; the compiler's default is 4.
    pub optimization: Option<u32>,
    /// Keep the `.loc` lines for profilers and debuggers.
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

/// Machine code for one kind of device, and what the compiler said of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cubin {
    /// An ELF file.
    pub bytes: Vec<u8>,
    /// The compiler's information log.
    pub log: String,
}

impl Module {
    /// Compiles PTX text to a cubin, which [`Module::from_cubin`] loads, now
    /// or in another process with the same driver and kind of device.
    ///
    /// The driver's linker takes the text for one unit of a larger program,
    /// and ignores `setmaxnreg` in it (C7504): a kernel that has it is loaded
    /// by [`Module::from_ptx`].
    pub fn compile(context: &Context, ptx: &str, options: &JitOptions) -> Result<Cubin, CudaError> {
        let text = nul_terminated(ptx)?;
        let mut request = Request::new(options);
        // The linker derives plain sm_90 from the context, without wgmma.
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

/// A compilation under way; the context is current as long as it lives.
struct Linker {
    driver: &'static Driver,
    raw: CUlinkState,
}

impl Linker {
    /// The driver writes into the request's logs until the linker is dropped.
    fn new(driver: &'static Driver, request: &mut Request) -> Result<Self, CudaError> {
        let mut raw = CUlinkState::NULL;
        // SAFETY: writes one handle; names and values are of one length, and
        // the logs are as long as their size options say. The caller keeps
        // the request until the linker is gone.
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

    /// The cubin of one text, copied out of the linker.
    fn link(&self, text: &CString, request: &Request) -> Result<Vec<u8>, CudaError> {
        let bytes = text.as_bytes_with_nul();
        // SAFETY: the driver reads as many bytes as it is told, the last of
        // which is NUL; there are no options and no name.
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
        request.judge(self.driver, "cuLinkAddData", added)?;
        let (mut image, mut len) = (std::ptr::null_mut(), 0);
        // SAFETY: writes a pointer and a length.
        let linked = unsafe { (self.driver.api.cuLinkComplete)(self.raw, &mut image, &mut len) };
        request.judge(self.driver, "cuLinkComplete", linked)?;
        if image.is_null() {
            return Ok(Vec::new());
        }
        // SAFETY: the linker owns so many bytes until it is destroyed.
        let image = unsafe { std::slice::from_raw_parts(image.cast::<u8>(), len) };
        Ok(image.to_vec())
    }
}

impl Drop for Linker {
    fn drop(&mut self) {
        // SAFETY: made once, destroyed once.
        let _ = unsafe { cu!(self.driver, cuLinkDestroy(self.raw)) };
    }
}

/// Options as the driver takes them, and the logs it writes.
pub(crate) struct Request {
    info: Vec<u8>,
    errors: Vec<u8>,
    pub(crate) names: Vec<c_int>,
    /// Each a pointer, or a number in a pointer's place.
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
        if let Some(most) = jit.max_registers {
            request.set(ffi::CU_JIT_MAX_REGISTERS, most as usize);
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

    /// What the compiler remarked on.
    pub(crate) fn info(&self) -> String {
        log_text(&self.info)
    }

    /// The driver's answer; a refusal comes with the compiler's errors.
    pub(crate) fn judge(
        &self,
        driver: &Driver,
        call: &'static str,
        result: CUresult,
    ) -> Result<(), CudaError> {
        if ffi::IMAGE_REFUSED.contains(&result) {
            return Err(CudaError::JitRefused {
                name: driver.result_name(result),
                log: log_text(&self.errors),
            });
        }
        driver.check(call, result)
    }
}

/// PTX text as the driver reads it.
pub(crate) fn nul_terminated(ptx: &str) -> Result<CString, CudaError> {
    CString::new(ptx).map_err(|error| {
        CudaError::bad_argument(
            "PTX text",
            format!("it has a NUL byte at {}", error.nul_position()),
        )
    })
}

/// The text of a log up to its NUL.
fn log_text(bytes: &[u8]) -> String {
    let text = bytes.split(|&b| b == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).trim().to_owned()
}
