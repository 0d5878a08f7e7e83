//! Types, constants and signatures of the used driver functions, as in `cuda.h`. Names are
//! NVIDIA's; a field of [`Api`] has the name of its symbol, including the `_v2` that the header's
//! macros add.

use std::ffi::{c_char, c_int, c_uint, c_void};

use libloading::Library;

use crate::error::CudaError;

pub(crate) type CUresult = c_int;
pub(crate) type CUdevice = c_int;
pub(crate) type CUdeviceptr = u64;

macro_rules! handles {
    ($($name:ident)*) => {$(
        #[repr(transparent)]
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) struct $name(pub(crate) *mut c_void);

        impl $name {
            pub(crate) const NULL: Self = Self(std::ptr::null_mut());
        }

        // SAFETY: an opaque name that only the driver dereferences, and the
        // driver API may be called from any thread.
        unsafe impl Send for $name {}
        // SAFETY: as above; the driver locks what it shares.
        unsafe impl Sync for $name {}
    )*};
}

handles!(CUcontext CUstream CUevent CUlibrary CUmodule CUfunction CUlinkState CUgraph CUgraphExec);

pub(crate) const CUDA_SUCCESS: CUresult = 0;
pub(crate) const CUDA_ERROR_INVALID_VALUE: CUresult = 1;
pub(crate) const CUDA_ERROR_OUT_OF_MEMORY: CUresult = 2;
pub(crate) const CUDA_ERROR_NO_DEVICE: CUresult = 100;
pub(crate) const CUDA_ERROR_NOT_FOUND: CUresult = 500;
pub(crate) const CUDA_ERROR_NOT_READY: CUresult = 600;

/// Results for an image that cannot be compiled or loaded.
pub(crate) const IMAGE_REJECTED: [CUresult; 7] = [
    200, // INVALID_IMAGE
    209, // NO_BINARY_FOR_GPU
    218, // INVALID_PTX
    221, // JIT_COMPILER_NOT_FOUND
    222, // UNSUPPORTED_PTX_VERSION
    223, // JIT_COMPILATION_DISABLED
    300, // INVALID_SOURCE
];

/// Results after which the context is lost.
pub(crate) const FAULTS: [CUresult; 12] = [
    214, // ECC_UNCORRECTABLE
    220, // NVLINK_UNCORRECTABLE
    700, // ILLEGAL_ADDRESS
    702, // LAUNCH_TIMEOUT
    709, // CONTEXT_IS_DESTROYED
    710, // ASSERT
    714, // HARDWARE_STACK_ERROR
    715, // ILLEGAL_INSTRUCTION
    716, // MISALIGNED_ADDRESS
    717, // INVALID_ADDRESS_SPACE
    718, // INVALID_PC
    719, // LAUNCH_FAILED
];

// CUdevice_attribute
pub(crate) const CU_DEVICE_ATTRIBUTE_CLOCK_RATE: c_int = 13;
pub(crate) const CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: c_int = 16;
pub(crate) const CU_DEVICE_ATTRIBUTE_PCI_BUS_ID: c_int = 33;
pub(crate) const CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID: c_int = 34;
pub(crate) const CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID: c_int = 50;
pub(crate) const CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: c_int = 36;
pub(crate) const CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: c_int = 37;
pub(crate) const CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: c_int = 38;
pub(crate) const CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: c_int = 75;
pub(crate) const CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: c_int = 76;
pub(crate) const CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: c_int = 97;

// CUfunction_attribute
pub(crate) const CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: c_int = 0;
pub(crate) const CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: c_int = 1;
pub(crate) const CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: c_int = 3;
pub(crate) const CU_FUNC_ATTRIBUTE_NUM_REGS: c_int = 4;
pub(crate) const CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: c_int = 8;
pub(crate) const CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED: c_int = 14;

// CUjit_option
pub(crate) const CU_JIT_MAX_REGISTERS: c_int = 0;
pub(crate) const CU_JIT_INFO_LOG_BUFFER: c_int = 3;
pub(crate) const CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES: c_int = 4;
pub(crate) const CU_JIT_ERROR_LOG_BUFFER: c_int = 5;
pub(crate) const CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES: c_int = 6;
pub(crate) const CU_JIT_OPTIMIZATION_LEVEL: c_int = 7;
pub(crate) const CU_JIT_TARGET: c_int = 9;
pub(crate) const CU_JIT_LOG_VERBOSE: c_int = 12;
pub(crate) const CU_JIT_GENERATE_LINE_INFO: c_int = 13;

pub(crate) const CU_JIT_INPUT_PTX: c_int = 1;
pub(crate) const CU_TARGET_COMPUTE_90A: usize = 0x10000 + 90;

pub(crate) const CU_STREAM_NON_BLOCKING: c_uint = 1;
pub(crate) const CU_STREAM_CAPTURE_MODE_THREAD_LOCAL: c_int = 1;
pub(crate) const CU_STREAM_CAPTURE_STATUS_NONE: c_int = 0;
pub(crate) const CU_MEMHOSTALLOC_PORTABLE: c_uint = 1;
pub(crate) const CU_MEMHOSTALLOC_DEVICEMAP: c_uint = 2;
pub(crate) const CU_EVENT_DEFAULT: c_uint = 0;
pub(crate) const CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: c_uint = 4;
pub(crate) const CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION: c_uint = 6;
pub(crate) const CU_TENSOR_MAP_INTERLEAVE_NONE: c_int = 0;

/// `CUlaunchAttribute`: an id, padding to 8 bytes, a union of 64 bytes.
#[repr(C, align(8))]
#[derive(Clone, Copy, Default)]
pub(crate) struct CUlaunchAttribute {
    pub(crate) id: c_uint,
    pub(crate) pad: u32,
    pub(crate) value: [u32; 16],
}

#[repr(C)]
pub(crate) struct CUlaunchConfig {
    pub(crate) grid: [c_uint; 3],
    pub(crate) block: [c_uint; 3],
    pub(crate) shared_bytes: c_uint,
    pub(crate) stream: CUstream,
    pub(crate) attributes: *mut CUlaunchAttribute,
    pub(crate) attribute_count: c_uint,
}

const _: () = assert!(size_of::<CUlaunchAttribute>() == 72);
const _: () = assert!(size_of::<CUlaunchConfig>() == 56);

/// `CUtensorMap`: 128 opaque bytes that a kernel parameter holds at a
/// multiple of 64.
#[repr(C, align(64))]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct CUtensorMap(pub(crate) [u64; 16]);

macro_rules! api {
    (
        required { $($name:ident($($arg:ty),* $(,)?);)* }
        optional { $($optional:ident($($optional_arg:ty),* $(,)?);)* }
    ) => {
        /// The functions of a loaded driver.
        #[allow(non_snake_case)]
        pub(crate) struct Api {
            $(pub(crate) $name: unsafe extern "C" fn($($arg),*) -> CUresult,)*
            $(pub(crate) $optional: Option<unsafe extern "C" fn($($optional_arg),*) -> CUresult>,)*
        }

        impl Api {
            /// Looks up every function; the error names the first missing one.
            ///
            /// # Safety
            /// The table must not outlive `library`, and its symbols must have
            /// the signatures of `cuda.h`.
            pub(crate) unsafe fn load(library: &Library, path: &str) -> Result<Self, CudaError> {
                Ok(Self {
                    // SAFETY: the caller guarantees the signatures.
                    $($name: unsafe { symbol(library, path, stringify!($name)) }?,)*
                    // SAFETY: as above.
                    $($optional: unsafe { symbol(library, path, stringify!($optional)) }.ok(),)*
                })
            }
        }
    };
}

/// Looks up one function of the library.
///
/// # Safety
/// `F` must be the function pointer type of the symbol, and must not be called
/// after the library is closed.
pub(crate) unsafe fn symbol<F: Copy>(
    library: &Library,
    path: &str,
    name: &'static str,
) -> Result<F, CudaError> {
    // SAFETY: the caller guarantees the type; the pointer is copied out, and the library is
    // never closed.
    match unsafe { library.get::<F>(name) } {
        Ok(found) => Ok(*found),
        Err(_) => Err(CudaError::MissingSymbol {
            library: path.into(),
            symbol: name,
        }),
    }
}

/// `cuDriverGetVersion`. It is looked up first, so that an old driver is reported as too old
/// and not as incomplete.
pub(crate) type DriverGetVersion = unsafe extern "C" fn(*mut c_int) -> CUresult;

api! {
    required {
        cuInit(c_uint);
        cuGetErrorName(CUresult, *mut *const c_char);
        cuGetErrorString(CUresult, *mut *const c_char);

        cuDeviceGetCount(*mut c_int);
        cuDeviceGet(*mut CUdevice, c_int);
        cuDeviceGetName(*mut c_char, c_int, CUdevice);
        cuDeviceGetAttribute(*mut c_int, c_int, CUdevice);
        cuDeviceTotalMem_v2(*mut usize, CUdevice);

        cuDevicePrimaryCtxRetain(*mut CUcontext, CUdevice);
        cuDevicePrimaryCtxRelease_v2(CUdevice);
        cuCtxPushCurrent_v2(CUcontext);
        cuCtxPopCurrent_v2(*mut CUcontext);
        cuCtxSynchronize();

        cuMemGetInfo_v2(*mut usize, *mut usize);
        cuMemAlloc_v2(*mut CUdeviceptr, usize);
        cuMemFree_v2(CUdeviceptr);
        cuMemcpyHtoDAsync_v2(CUdeviceptr, *const c_void, usize, CUstream);
        cuMemcpyDtoHAsync_v2(*mut c_void, CUdeviceptr, usize, CUstream);
        cuMemcpyDtoDAsync_v2(CUdeviceptr, CUdeviceptr, usize, CUstream);
        cuMemsetD8Async(CUdeviceptr, u8, usize, CUstream);
        cuMemHostAlloc(*mut *mut c_void, usize, c_uint);
        cuMemHostGetDevicePointer_v2(*mut CUdeviceptr, *mut c_void, c_uint);
        cuMemFreeHost(*mut c_void);

        cuStreamCreate(*mut CUstream, c_uint);
        cuStreamDestroy_v2(CUstream);
        cuStreamSynchronize(CUstream);
        cuStreamWaitEvent(CUstream, CUevent, c_uint);
        cuStreamBeginCapture_v2(CUstream, c_int);
        cuStreamEndCapture(CUstream, *mut CUgraph);
        cuStreamIsCapturing(CUstream, *mut c_int);

        cuGraphInstantiateWithFlags(*mut CUgraphExec, CUgraph, u64);
        cuGraphLaunch(CUgraphExec, CUstream);
        cuGraphDestroy(CUgraph);
        cuGraphExecDestroy(CUgraphExec);

        cuEventCreate(*mut CUevent, c_uint);
        cuEventDestroy_v2(CUevent);
        cuEventRecord(CUevent, CUstream);
        cuEventQuery(CUevent);
        cuEventSynchronize(CUevent);
        cuEventElapsedTime(*mut f32, CUevent, CUevent);

        cuLibraryLoadData(
            *mut CUlibrary, *const c_void, *mut c_int, *mut *mut c_void, c_uint, *mut c_int,
            *mut *mut c_void, c_uint,
        );
        cuLibraryGetModule(*mut CUmodule, CUlibrary);
        cuLibraryUnload(CUlibrary);
        cuLinkCreate_v2(c_uint, *mut c_int, *mut *mut c_void, *mut CUlinkState);
        cuLinkAddData_v2(
            CUlinkState, c_int, *mut c_void, usize, *const c_char, c_uint, *mut c_int,
            *mut *mut c_void,
        );
        cuLinkComplete(CUlinkState, *mut *mut c_void, *mut usize);
        cuLinkDestroy(CUlinkState);
        cuModuleGetFunction(*mut CUfunction, CUmodule, *const c_char);
        cuFuncGetAttribute(*mut c_int, c_int, CUfunction);
        cuFuncSetAttribute(CUfunction, c_int, c_int);
        cuOccupancyMaxActiveBlocksPerMultiprocessor(*mut c_int, CUfunction, c_int, usize);
        cuOccupancyMaxActiveClusters(*mut c_int, CUfunction, *const CUlaunchConfig);
        cuLaunchKernelEx(*const CUlaunchConfig, CUfunction, *mut *mut c_void, *mut *mut c_void);

        cuTensorMapEncodeTiled(
            *mut CUtensorMap, c_int, u32, *mut c_void, *const u64, *const u64, *const u32,
            *const u32, c_int, c_int, c_int, c_int,
        );
        cuTensorMapEncodeIm2col(
            *mut CUtensorMap, c_int, u32, *mut c_void, *const u64, *const u64, *const c_int,
            *const c_int, u32, u32, *const u32, c_int, c_int, c_int, c_int,
        );
        cuTensorMapReplaceAddress(*mut CUtensorMap, *mut c_void);
    }
    optional {
        // Since CUDA 12.4.
        cuFuncGetParamInfo(CUfunction, usize, *mut usize, *mut usize);
    }
}
