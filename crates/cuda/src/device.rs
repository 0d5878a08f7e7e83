//! Devices: what is there, and why one cannot be used.

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
    /// The one our kernels are made for: code for sm_90a runs nowhere else.
    pub const NEEDED: Self = Self { major: 9, minor: 0 };
}

impl fmt::Display for ComputeCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// What the driver says of one device.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// The N of `cuda:N`.
    pub ordinal: u32,
    /// The product's name.
    pub name: String,
    /// The compute capability.
    pub compute_capability: ComputeCapability,
    /// Streaming multiprocessors.
    pub sms: u32,
    /// Device memory.
    pub memory_bytes: u64,
    /// The most shared memory one CTA can have when it asks for it.
    pub shared_bytes_per_block: u32,
    /// Level-2 cache.
    pub l2_bytes: u64,
    /// The highest SM clock in kHz, if the driver says.
    pub clock_khz: Option<u32>,
    /// The highest memory clock in kHz, if the driver says.
    pub memory_clock_khz: Option<u32>,
    /// Width of the memory bus in bits, if the driver says.
    pub memory_bus_bits: Option<u32>,
    /// Where it is on the PCI bus, `0000:3b:00.0`, if the driver says: what
    /// the tools that measure clocks and power know it by.
    pub pci: Option<String>,
    /// The driver's CUDA version.
    pub driver: DriverVersion,
}

impl DeviceInfo {
    /// Whether our kernels run here; the error is a sentence that says why not.
    pub fn usable(&self) -> Result<(), CudaError> {
        if self.compute_capability == ComputeCapability::NEEDED {
            return Ok(());
        }
        Err(CudaError::UnsuitableDevice {
            ordinal: self.ordinal,
            name: self.name.clone(),
            seen: self.compute_capability,
        })
    }
}

/// The devices of this machine's driver, usable or not.
pub fn devices() -> Result<Vec<DeviceInfo>, CudaError> {
    Driver::load()?.devices()
}

/// A device of a loaded driver.
#[derive(Debug, Clone, Copy)]
pub struct Device {
    pub(crate) driver: &'static Driver,
    pub(crate) raw: CUdevice,
    ordinal: u32,
}

impl Driver {
    /// The device `cuda:ordinal`.
    pub fn device(&'static self, ordinal: u32) -> Result<Device, CudaError> {
        let count = self.device_count()?;
        let Some(index) = c_int::try_from(ordinal).ok().filter(|_| ordinal < count) else {
            return Err(CudaError::NoSuchDevice { ordinal, count });
        };
        let mut raw = 0;
        // SAFETY: writes one device number.
        unsafe { cu!(self, cuDeviceGet(&mut raw, index)) }?;
        Ok(Device {
            driver: self,
            raw,
            ordinal,
        })
    }

    /// All devices, usable or not.
    pub fn devices(&'static self) -> Result<Vec<DeviceInfo>, CudaError> {
        (0..self.device_count()?)
            .map(|ordinal| self.device(ordinal)?.info())
            .collect()
    }
}

impl Device {
    /// The N of `cuda:N`.
    pub fn ordinal(&self) -> u32 {
        self.ordinal
    }

    /// What the driver says of this device.
    pub fn info(&self) -> Result<DeviceInfo, CudaError> {
        Ok(DeviceInfo {
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
            clock_khz: self.stated(ffi::CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
            memory_clock_khz: self.stated(ffi::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE),
            memory_bus_bits: self.stated(ffi::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH),
            pci: self.pci(),
            driver: self.driver.version(),
        })
    }

    /// The device's primary context, for a device that our kernels can use.
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

    /// An attribute that a driver may leave out or answer with 0.
    fn stated(&self, attribute: c_int) -> Option<u32> {
        self.attribute(attribute).ok().filter(|&value| value > 0)
    }
}
