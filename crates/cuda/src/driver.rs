//! The driver library: opened once, never closed.

use std::error::Error;
use std::ffi::{CStr, OsStr, c_char, c_int};
use std::fmt;
use std::sync::OnceLock;

use libloading::Library;

use crate::error::CudaError;
use crate::ffi::{self, Api, CUresult};

/// A version of CUDA as the driver reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DriverVersion {
    /// The part before the dot.
    pub major: u32,
    /// The part after the dot.
    pub minor: u32,
}

impl DriverVersion {
    /// The oldest version with PTX 8.0 and tensor maps.
    pub const REQUIRED: Self = Self {
        major: 12,
        minor: 0,
    };

    /// Decodes the driver's `1000 · major + 10 · minor`.
    fn from_raw(raw: c_int) -> Self {
        let raw = raw.max(0).unsigned_abs();
        Self {
            major: raw / 1000,
            minor: raw % 1000 / 10,
        }
    }
}

impl fmt::Display for DriverVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A loaded and initialized CUDA driver.
pub struct Driver {
    pub(crate) api: Api,
    version: DriverVersion,
    path: String,
    /// `cuInit` found no device; no other function may be called.
    has_no_device: bool,
    /// Keeps the functions of `api` in memory.
    _library: Library,
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver")
            .field("library", &self.path)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

impl Driver {
    /// The file name of the driver library.
    pub const LIBRARY: &'static str = "libcuda.so.1";

    /// Returns the machine's driver. The first call loads it; its result, success or error,
    /// stays the same for the life of the process.
    pub fn load() -> Result<&'static Self, CudaError> {
        static DRIVER: OnceLock<Result<&'static Driver, CudaError>> = OnceLock::new();
        DRIVER
            .get_or_init(|| Self::open(Self::LIBRARY))
            .as_ref()
            .copied()
            .map_err(Clone::clone)
    }

    /// Loads the driver from another library, such as a stub for tests. It stays loaded for the
    /// life of the process.
    pub fn open(library: impl AsRef<OsStr>) -> Result<&'static Self, CudaError> {
        let name = library.as_ref();
        let path = name.to_string_lossy().into_owned();
        // SAFETY: loading runs the library's initializers; the library is the driver or the
        // caller's replacement for it.
        let library = unsafe { Library::new(name) }.map_err(|error| CudaError::NoDriver {
            library: path.clone(),
            // The loader's own message is the source of the error.
            reason: error.source().unwrap_or(&error).to_string(),
        })?;

        // SAFETY: the signature is that of cuda.h.
        let get_version: ffi::DriverGetVersion =
            unsafe { ffi::symbol(&library, &path, "cuDriverGetVersion") }?;
        let mut raw = 0;
        // SAFETY: writes one int; allowed before cuInit.
        let version_result = unsafe { get_version(&mut raw) };
        let version = DriverVersion::from_raw(raw);
        if version_result == ffi::CUDA_SUCCESS && version < DriverVersion::REQUIRED {
            return Err(CudaError::DriverTooOld { seen: version });
        }

        let mut driver = Self {
            // SAFETY: signatures as in cuda.h; the library moves into the same
            // value and is leaked with it.
            api: unsafe { Api::load(&library, &path) }?,
            version,
            path,
            has_no_device: false,
            _library: library,
        };
        driver.check("cuDriverGetVersion", version_result)?;
        // SAFETY: takes a flag that must be 0.
        let init = unsafe { (driver.api.cuInit)(0) };
        if init == ffi::CUDA_ERROR_NO_DEVICE {
            driver.has_no_device = true;
        } else {
            driver.check("cuInit", init)?;
        }
        Ok(Box::leak(Box::new(driver)))
    }

    /// Returns the newest CUDA version that this driver supports.
    pub fn version(&self) -> DriverVersion {
        self.version
    }

    /// Returns the number of devices after `CUDA_VISIBLE_DEVICES`.
    pub fn device_count(&self) -> Result<u32, CudaError> {
        if self.has_no_device {
            return Ok(0);
        }
        let mut count = 0;
        // SAFETY: writes one int.
        unsafe { cu!(self, cuDeviceGetCount(&mut count)) }?;
        Ok(count.max(0).unsigned_abs())
    }

    /// Converts the result of the driver function `call`.
    pub(crate) fn check(&self, call: &'static str, result: CUresult) -> Result<(), CudaError> {
        if result == ffi::CUDA_SUCCESS {
            return Ok(());
        }
        Err(CudaError::DriverCall {
            call: call.strip_suffix("_v2").unwrap_or(call),
            result,
            name: self.result_name(result),
            text: self
                .error_text(self.api.cuGetErrorString, result)
                .unwrap_or_else(|| "no description from the driver".into()),
        })
    }

    pub(crate) fn result_name(&self, result: CUresult) -> String {
        self.error_text(self.api.cuGetErrorName, result)
            .unwrap_or_else(|| format!("CUresult {result}"))
    }

    fn error_text(
        &self,
        function: unsafe extern "C" fn(CUresult, *mut *const c_char) -> CUresult,
        result: CUresult,
    ) -> Option<String> {
        let mut text: *const c_char = std::ptr::null();
        // SAFETY: writes one pointer, to a constant string or null.
        if unsafe { function(result, &mut text) } != ffi::CUDA_SUCCESS || text.is_null() {
            return None;
        }
        // SAFETY: a non-null pointer refers to a NUL-terminated constant of the driver.
        let text = unsafe { CStr::from_ptr(text) };
        Some(text.to_string_lossy().into_owned())
    }
}

/// Calls one driver function and checks its result. The caller writes `unsafe` and its reason.
macro_rules! cu {
    ($driver:expr, $name:ident($($arg:expr),* $(,)?)) => {{
        let driver: &$crate::driver::Driver = $driver;
        let result = (driver.api.$name)($($arg),*);
        driver.check(stringify!($name), result)
    }};
}
pub(crate) use cu;
