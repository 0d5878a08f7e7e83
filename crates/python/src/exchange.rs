//! Reads tensors without calling Python, through DLPack's table of C functions, which torch
//! has from 2.10 on.

use crate::dlpack::DlTensor;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::ffi::{c_int, c_void};
use warpline::ops::TensorView;

/// The major version of the table.
const MAJOR: u32 = 1;

/// `DLPackExchangeAPI`; only `tensor_from_python` is called.
#[repr(C)]
struct ExchangeTable {
    major: u32,
    minor: u32,
    previous: *const c_void,
    allocate: *const c_void,
    managed_from_python: *const c_void,
    managed_to_python: *const c_void,
    tensor_from_python: Option<unsafe extern "C" fn(*mut c_void, *mut DlTensor) -> c_int>,
    current_stream: *const c_void,
}

/// The table of one tensor class.
pub(crate) struct Exchange {
    /// The class; the table's functions accept only its instances.
    class: Py<PyAny>,
    tensor_from_python: unsafe extern "C" fn(*mut c_void, *mut DlTensor) -> c_int,
}

impl Exchange {
    /// Returns the table of a class, if it has one of the supported version.
    pub(crate) fn of(class: &Bound<'_, PyAny>) -> Option<Self> {
        let capsule = class.getattr("__dlpack_c_exchange_api__").ok()?;
        let capsule = capsule.cast::<PyCapsule>().ok()?;
        let table = capsule.pointer_checked(Some(c"dlpack_exchange_api")).ok()?;
        // SAFETY: a capsule of that name holds such a table, which lives as
        // long as the process; its first fields are the same in all versions.
        let table = unsafe { table.cast::<ExchangeTable>().as_ref() };
        let tensor_from_python = table.tensor_from_python.filter(|_| table.major == MAJOR)?;
        Some(Self {
            class: class.clone().unbind(),
            tensor_from_python,
        })
    }

    /// Returns the raw tensor of an object, whose shape and strides live as long as the object does
    /// not change. Returns none if DLPack cannot describe it.
    ///
    /// # Safety
    /// The object is an instance of the table's class.
    pub(crate) unsafe fn raw(&self, object: &Bound<'_, PyAny>) -> Option<DlTensor> {
        let mut tensor = DlTensor::empty();
        // SAFETY: guaranteed by the caller.
        let status = unsafe { (self.tensor_from_python)(object.as_ptr().cast(), &mut tensor) };
        if status != 0 {
            // The fallback reports its own error.
            drop(PyErr::take(object.py()));
            return None;
        }
        Some(tensor)
    }

    /// Returns a tensor and its device index (-1 is the CPU). Returns none if the object is of
    /// another class or DLPack cannot describe it.
    pub(crate) fn view(&self, object: &Bound<'_, PyAny>) -> Option<(TensorView, i64)> {
        let py = object.py();
        if !object.is_instance(self.class.bind(py)).ok()? {
            return None;
        }
        // SAFETY: the object is of the table's class.
        let tensor = unsafe { self.raw(object) }?;
        // SAFETY: the object outlives the call, and so do the shape and the strides; filled in by the library; read before the object can change.
        unsafe { tensor.view() }.ok()
    }
}
