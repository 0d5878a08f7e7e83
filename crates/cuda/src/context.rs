//! The primary context of a device.

use std::marker::PhantomData;
use std::sync::Arc;

use crate::device::{Device, DeviceInfo};
use crate::driver::{Driver, cu};
use crate::error::CudaError;
use crate::ffi::CUcontext;

/// The primary context of a device: the one that every user in the process
/// shares. Clones are cheap and name the same one; it is released with the
/// last clone and the last thing made in it.
#[derive(Debug, Clone)]
pub struct Context {
    primary: Arc<Primary>,
}

#[derive(Debug)]
struct Primary {
    device: Device,
    info: DeviceInfo,
    raw: CUcontext,
}

impl Context {
    /// Retains the primary context of `device`, which must be usable.
    pub fn new(device: &Device) -> Result<Self, CudaError> {
        let info = device.info()?;
        info.usable()?;
        let mut raw = CUcontext::NULL;
        // SAFETY: writes one handle; given back when `Primary` is dropped.
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

    /// The device this context is on.
    pub fn device(&self) -> &DeviceInfo {
        &self.primary.info
    }

    /// Free and total bytes of device memory.
    pub fn memory(&self) -> Result<(u64, u64), CudaError> {
        let _current = self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: writes two sizes.
        unsafe { cu!(self.driver(), cuMemGetInfo_v2(&mut free, &mut total)) }?;
        Ok((free as u64, total as u64))
    }

    /// Waits for all work in this context, of other users in the process too.
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

    /// Refuses to mix what belongs to different contexts.
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
                "the stream is on cuda:{}, the rest on cuda:{}",
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

/// A context that is current on this thread; leaves it so on drop.
pub(crate) struct Current<'a> {
    driver: &'static Driver,
    /// Borrows the context, and must be dropped on the thread that made it.
    context: PhantomData<(&'a Context, *const ())>,
}

impl Drop for Current<'_> {
    fn drop(&mut self) {
        let mut popped = CUcontext::NULL;
        // SAFETY: writes one handle; pairs with the push in `Context::enter`.
        let _ = unsafe { cu!(self.driver, cuCtxPopCurrent_v2(&mut popped)) };
    }
}
