//! Modules: PTX compiled by the driver, or a cubin, and the kernels in them.

use std::ffi::{CString, c_int, c_void};
use std::ptr::without_provenance_mut;
use std::sync::Arc;

use crate::context::Context;
use crate::driver::cu;
use crate::error::CudaError;
use crate::ffi::{self, CUfunction, CUmodule};

/// Room for each of the compiler's two logs.
const LOG_BYTES: usize = 64 << 10;

/// What is asked of the driver's PTX compiler. The default is what `ptxas`
/// does by default, with line numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    raw: CUmodule,
    log: String,
}

impl Module {
    /// Compiles and loads PTX text. What the compiler remarks on is in
    /// [`Module::log`], what it refuses in [`CudaError::JitRefused`].
    pub fn from_ptx(context: &Context, ptx: &str, options: &JitOptions) -> Result<Self, CudaError> {
        let text = CString::new(ptx).map_err(|error| {
            CudaError::bad_argument(
                "PTX text",
                format!("it has a NUL byte at {}", error.nul_position()),
            )
        })?;
        // SAFETY: NUL-terminated text, which the driver reads to its NUL.
        unsafe { Self::load(context, text.as_ptr().cast(), options) }
    }

    /// Loads a cubin: machine code for this very kind of device.
    pub fn from_cubin(context: &Context, cubin: &[u8]) -> Result<Self, CudaError> {
        elf_is_whole(cubin).map_err(|why| CudaError::bad_argument("cubin", why))?;
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
        let mut info = vec![0u8; LOG_BYTES];
        let mut errors = vec![0u8; LOG_BYTES];
        // An option's value is a pointer, or a number in a pointer's place.
        let number = |n: usize| without_provenance_mut::<c_void>(n);
        let mut options: Vec<(c_int, *mut c_void)> = vec![
            (ffi::CU_JIT_INFO_LOG_BUFFER, info.as_mut_ptr().cast()),
            (ffi::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, number(LOG_BYTES)),
            (ffi::CU_JIT_ERROR_LOG_BUFFER, errors.as_mut_ptr().cast()),
            (ffi::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, number(LOG_BYTES)),
            (ffi::CU_JIT_LOG_VERBOSE, number(1)),
        ];
        if jit.line_info {
            options.push((ffi::CU_JIT_GENERATE_LINE_INFO, number(1)));
        }
        if let Some(most) = jit.max_registers {
            options.push((ffi::CU_JIT_MAX_REGISTERS, number(most as usize)));
        }
        if let Some(level) = jit.optimization {
            options.push((ffi::CU_JIT_OPTIMIZATION_LEVEL, number(level as usize)));
        }
        let (mut names, mut values): (Vec<_>, Vec<_>) = options.into_iter().unzip();

        let driver = context.driver();
        let mut raw = CUmodule::NULL;
        let _current = context.enter()?;
        // SAFETY: the caller vouches for the image; names and values are of
        // one length, and the logs are as long as their size options say.
        let result = unsafe {
            (driver.api.cuModuleLoadDataEx)(
                &mut raw,
                image,
                names.len() as u32,
                names.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        if ffi::IMAGE_REFUSED.contains(&result) {
            return Err(CudaError::JitRefused {
                name: driver.result_name(result),
                log: log_text(&errors),
            });
        }
        driver.check("cuModuleLoadDataEx", result)?;
        Ok(Self {
            loaded: Arc::new(Loaded {
                context: context.clone(),
                raw,
                log: log_text(&info),
            }),
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
            let _ = unsafe { cu!(self.context.driver(), cuModuleUnload(self.raw)) };
        }
    }
}

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
    module: Module,
    pub(crate) raw: CUfunction,
    name: String,
    attributes: FunctionAttributes,
    max_dynamic_shared: u32,
    max_cluster: u32,
    params: Option<Vec<usize>>,
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

/// The text of a log up to its NUL.
fn log_text(bytes: &[u8]) -> String {
    let text = bytes.split(|&b| b == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).trim().to_owned()
}

/// Whether the bytes are a 64-bit ELF file whose headers and sections all lie
/// inside them: a cut-off file must not reach the driver, which is told no
/// length.
fn elf_is_whole(bytes: &[u8]) -> Result<(), String> {
    let field = |at: usize, len: usize| -> Option<u64> {
        let mut word = [0; 8];
        word[..len].copy_from_slice(bytes.get(at..at.checked_add(len)?)?);
        Some(u64::from_le_bytes(word))
    };
    let inside = |at: u64, len: u64| {
        at.checked_add(len)
            .is_some_and(|end| end <= bytes.len() as u64)
    };
    if bytes.get(..6) != Some(b"\x7fELF\x02\x01") {
        return Err("the bytes are no 64-bit ELF file".into());
    }
    let tables_and_sections = || -> Option<bool> {
        let (programs, program_size, program_count) = (field(32, 8)?, field(54, 2)?, field(56, 2)?);
        let (sections, section_size, section_count) = (field(40, 8)?, field(58, 2)?, field(60, 2)?);
        let mut whole = inside(programs, program_size * program_count)
            && inside(sections, section_size * section_count);
        for index in 0..if whole { section_count } else { 0 } {
            const NOBITS: u64 = 8;
            let header = usize::try_from(sections + index * section_size).ok()?;
            let kind = field(header + 4, 4)?;
            whole &= kind == NOBITS || inside(field(header + 24, 8)?, field(header + 32, 8)?);
        }
        Some(whole)
    };
    match tables_and_sections() {
        Some(true) => Ok(()),
        _ => Err(format!(
            "the file is cut off: {} bytes are less than its headers name",
            bytes.len()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ELF header, one section of 16 bytes, and its table.
    fn elf() -> Vec<u8> {
        let mut bytes = vec![0; 64 + 16 + 64];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[40] = 80; // section table
        bytes[58] = 64;
        bytes[60] = 1;
        bytes[80 + 24] = 64; // the section's place
        bytes[80 + 32] = 16; // and size
        bytes
    }

    #[test]
    fn a_whole_cubin_passes_and_every_cut_is_seen() {
        let whole = elf();
        assert_eq!(elf_is_whole(&whole), Ok(()));
        for len in 0..whole.len() {
            assert!(elf_is_whole(&whole[..len]).is_err(), "{len}");
        }
        let mut long_section = whole.clone();
        long_section[80 + 32] = 81;
        assert!(elf_is_whole(&long_section).is_err());
        let mut wild = whole;
        wild[80 + 24..80 + 32].fill(0xff);
        assert!(elf_is_whole(&wild).is_err());
    }
}
