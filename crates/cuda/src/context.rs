//! The primary context of a device.

use std::marker::PhantomData;
use std::sync::Arc;

use crate::device::{CudaDevice, CudaDeviceInfo};
use crate::driver::{Driver, cu};
use crate::error::CudaError;
use crate::ffi::CUcontext;

/// The primary context of a device, shared by all users of the device in this process. Clones
/// are cheap and refer to the same context. It is released when the last clone and the last
/// object created in it are dropped.
#[derive(Debug, Clone)]
pub struct Context {
    primary: Arc<Primary>,
}

#[derive(Debug)]
struct Primary {
    device: CudaDevice,
    info: CudaDeviceInfo,
    raw: CUcontext,
}

impl Context {
    /// Retains the primary context of `device`; fails on a device that Warpline does not support.
    pub fn new(device: &CudaDevice) -> Result<Self, CudaError> {
        let info = device.info()?;
        info.check_supported()?;
        let mut raw = CUcontext::NULL;
        // SAFETY: writes one handle; released when `Primary` is dropped.
        unsafe {
            cu!(
                device.driver,
                cuDevicePrimaryCtxRetain(&mut raw, device.raw)
            )
        }?;
        Ok(Self {
            primary: Arc::new(Primary {
                device: *device,
                info,
                raw,
            }),
        })
    }

    /// Returns the properties of the context's device.
    pub fn device(&self) -> &CudaDeviceInfo {
        &self.primary.info
    }

    /// Returns the free and total bytes of device memory.
    pub fn memory(&self) -> Result<(u64, u64), CudaError> {
        let _current = self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: writes two sizes.
        unsafe { cu!(self.driver(), cuMemGetInfo_v2(&mut free, &mut total)) }?;
        Ok((free as u64, total as u64))
    }

    /// Waits for all work in this context, including work of other users in the process.
    pub fn synchronize(&self) -> Result<(), CudaError> {
        let _current = self.enter()?;
        // SAFETY: takes no argument.
        unsafe { cu!(self.driver(), cuCtxSynchronize()) }
    }

    pub(crate) fn driver(&self) -> &'static Driver {
        self.primary.device.driver
    }

    /// Makes this context current on this thread until the guard is dropped.
    pub(crate) fn enter(&self) -> Result<Current<'_>, CudaError> {
        // SAFETY: the handle is retained as long as `self` lives.
        unsafe { cu!(self.driver(), cuCtxPushCurrent_v2(self.primary.raw)) }?;
        Ok(Current {
            driver: self.driver(),
            context: PhantomData,
        })
    }

    /// Rejects a stream of another context.
    pub(crate) fn expect_same(
        &self,
        other: &Context,
        what: impl FnOnce() -> String,
    ) -> Result<(), CudaError> {
        if self.primary.raw == other.primary.raw {
            return Ok(());
        }
        Err(CudaError::bad_argument(
            what(),
            format!(
                "the stream belongs to cuda:{}, the operands to cuda:{}",
                other.device().ordinal,
                self.device().ordinal
            ),
        ))
    }
}

impl Drop for Primary {
    fn drop(&mut self) {
        // SAFETY: pairs with the retain in `Context::new`.
        let _ = unsafe {
            cu!(
                self.device.driver,
                cuDevicePrimaryCtxRelease_v2(self.device.raw)
            )
        };
    }
}

/// A guard for a context that is current on this thread; pops it on drop.
pub(crate) struct Current<'a> {
    driver: &'static Driver,
    /// Borrows the context, and must be dropped on the thread that created it.
    context: PhantomData<(&'a Context, *const ())>,
}

impl Drop for Current<'_> {
    fn drop(&mut self) {
        let mut popped = CUcontext::NULL;
        // SAFETY: writes one handle; pairs with the push in `Context::enter`.
        let _ = unsafe { cu!(self.driver, cuCtxPopCurrent_v2(&mut popped)) };
    }
}
