//! Devices: enumeration, properties, and the check whether Warpline supports them.

use std::ffi::c_int;
use std::fmt;

use crate::context::Context;
use crate::driver::{Driver, DriverVersion, cu};
use crate::error::CudaError;
use crate::ffi::{self, CUdevice};

/// A compute capability, such as 9.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComputeCapability {
    /// The part before the dot.
    pub major: u32,
    /// The part after the dot.
    pub minor: u32,
}

impl ComputeCapability {
    /// The capability of Warpline's kernels: sm_90a code runs on no other.
    pub const REQUIRED: Self = Self { major: 9, minor: 0 };
}

impl fmt::Display for ComputeCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The properties of one device.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CudaDeviceInfo {
    /// The N in `cuda:N`.
    pub ordinal: u32,
    /// The product's name.
    pub name: String,
    /// The compute capability.
    pub compute_capability: ComputeCapability,
    /// Streaming multiprocessors.
    pub sms: u32,
    /// Bytes of device memory.
    pub memory_bytes: u64,
    /// The maximum shared memory of one CTA after opt-in, in bytes.
    pub shared_bytes_per_block: u32,
    /// Bytes of L2 cache.
    pub l2_bytes: u64,
    /// The highest SM clock in kHz, if the driver reports it.
    pub clock_khz: Option<u32>,
    /// The highest memory clock in kHz, if the driver reports it.
    pub memory_clock_khz: Option<u32>,
    /// Width of the memory bus in bits, if the driver reports it.
    pub memory_bus_bits: Option<u32>,
    /// The PCI bus ID, `0000:3b:00.0`, if the driver reports it. Tools that measure clocks and
    /// power identify the device by it.
    pub pci: Option<String>,
    /// The driver's CUDA version.
    pub driver: DriverVersion,
}

impl CudaDeviceInfo {
    /// Checks that Warpline's kernels can run on this device.
    pub fn check_supported(&self) -> Result<(), CudaError> {
        if self.compute_capability == ComputeCapability::REQUIRED {
            return Ok(());
        }
        Err(CudaError::UnsupportedDevice {
            ordinal: self.ordinal,
            name: self.name.clone(),
            seen: self.compute_capability,
        })
    }
}

/// Lists all devices of the machine's driver, supported or not.
pub fn devices() -> Result<Vec<CudaDeviceInfo>, CudaError> {
    Driver::load()?.devices()
}

/// A device of a loaded driver.
#[derive(Debug, Clone, Copy)]
pub struct CudaDevice {
    pub(crate) driver: &'static Driver,
    pub(crate) raw: CUdevice,
    ordinal: u32,
}

impl Driver {
    /// Returns the device `cuda:ordinal`.
    pub fn device(&'static self, ordinal: u32) -> Result<CudaDevice, CudaError> {
        let count = self.device_count()?;
        let Some(index) = c_int::try_from(ordinal).ok().filter(|_| ordinal < count) else {
            return Err(CudaError::NoSuchDevice { ordinal, count });
        };
        let mut raw = 0;
        // SAFETY: writes one device number.
        unsafe { cu!(self, cuDeviceGet(&mut raw, index)) }?;
        Ok(CudaDevice {
            driver: self,
            raw,
            ordinal,
        })
    }

    /// Lists all devices, supported or not.
    pub fn devices(&'static self) -> Result<Vec<CudaDeviceInfo>, CudaError> {
        (0..self.device_count()?)
            .map(|ordinal| self.device(ordinal)?.info())
            .collect()
    }
}

impl CudaDevice {
    /// Returns the N in `cuda:N`.
    pub fn ordinal(&self) -> u32 {
        self.ordinal
    }

    /// Queries the properties of this device.
    pub fn info(&self) -> Result<CudaDeviceInfo, CudaError> {
        Ok(CudaDeviceInfo {
            ordinal: self.ordinal,
            name: self.name()?,
            compute_capability: ComputeCapability {
                major: self.attribute(ffi::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
                minor: self.attribute(ffi::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
            },
            sms: self.attribute(ffi::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            memory_bytes: self.memory_bytes()?,
            shared_bytes_per_block: self
                .attribute(ffi::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
            l2_bytes: self
                .attribute(ffi::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?
                .into(),
            clock_khz: self.optional_attribute(ffi::CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
            memory_clock_khz: self.optional_attribute(ffi::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE),
            memory_bus_bits: self
                .optional_attribute(ffi::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH),
            pci: self.pci(),
            driver: self.driver.version(),
        })
    }

    /// Retains the device's primary context; fails on a device that Warpline does not support.
    pub fn context(&self) -> Result<Context, CudaError> {
        Context::new(self)
    }

    fn name(&self) -> Result<String, CudaError> {
        let mut bytes = [0u8; 256];
        // SAFETY: writes at most 256 bytes with a NUL into a buffer of 256.
        unsafe {
            cu!(
                self.driver,
                cuDeviceGetName(bytes.as_mut_ptr().cast(), 256, self.raw)
            )
        }?;
        let text = bytes.split(|&b| b == 0).next().unwrap_or_default();
        Ok(String::from_utf8_lossy(text).into_owned())
    }

    fn pci(&self) -> Option<String> {
        let domain = self
            .attribute(ffi::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID)
            .ok()?;
        let bus = self.attribute(ffi::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID).ok()?;
        let device = self
            .attribute(ffi::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID)
            .ok()?;
        Some(format!("{domain:04x}:{bus:02x}:{device:02x}.0"))
    }

    fn memory_bytes(&self) -> Result<u64, CudaError> {
        let mut bytes = 0;
        // SAFETY: writes one size.
        unsafe { cu!(self.driver, cuDeviceTotalMem_v2(&mut bytes, self.raw)) }?;
        Ok(bytes as u64)
    }

    fn attribute(&self, attribute: c_int) -> Result<u32, CudaError> {
        let mut value = 0;
        // SAFETY: writes one int.
        unsafe {
            cu!(
                self.driver,
                cuDeviceGetAttribute(&mut value, attribute, self.raw)
            )
        }?;
        Ok(value.max(0).unsigned_abs())
    }

    /// Reads an attribute that a driver may omit or report as 0.
    fn optional_attribute(&self, attribute: c_int) -> Option<u32> {
        self.attribute(attribute).ok().filter(|&value| value > 0)
    }
}
