//! Device arrays of other libraries: DLPack, CUDA array interface.

use crate::errors::input;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use std::ffi::{c_int, c_void};
use warpline::DType;
use warpline::ops::TensorView;

/// A device array of another library: where it lies, and who keeps it there.
#[pyclass(frozen)]
pub(crate) struct View {
    pub(crate) tensor: TensorView,
    pub(crate) device: i64,
    /// The stream that the array is ready on, if its library says so.
    #[pyo3(get)]
    stream: Option<usize>,
    /// May it be written?
    #[pyo3(get)]
    writable: bool,
    /// Keeps the memory.
    _owner: Py<PyAny>,
}

#[pymethods]
impl View {
    /// From what an array's `__cuda_array_interface__` says.
    #[staticmethod]
    fn of_interface(array: Bound<'_, PyAny>, device: i64) -> PyResult<Self> {
        let py = array.py();
        let interface = array.getattr("__cuda_array_interface__")?;
        let interface = interface.cast::<PyDict>()?;
        let field = |name: &str| -> PyResult<Option<Bound<'_, PyAny>>> {
            let value = interface.get_item(name)?;
            Ok(value.filter(|value| !value.is_none()))
        };
        let needed = |name: &'static str| {
            field(name)?.ok_or_else(|| {
                input(
                    py,
                    format!("a CUDA array interface has a field {name:?}, and this one has none"),
                )
            })
        };
        let typestr: String = needed("typestr")?.extract()?;
        let dtype = of_typestr(&typestr).ok_or_else(|| {
            input(
                py,
                format!("elements of type {typestr:?} are taken by no kernel"),
            )
        })?;
        let shape: Vec<u64> = needed("shape")?.extract()?;
        let (address, read_only): (u64, bool) = needed("data")?.extract()?;
        if field("mask")?.is_some() {
            return Err(input(py, "arrays with a mask are not taken".into()));
        }
        let mut tensor = TensorView::dense(dtype, &shape, address);
        if let Some(strides) = field("strides")? {
            let bytes: Vec<i64> = strides.extract()?;
            tensor.strides = in_elements(py, &bytes, dtype)?;
        }
        let stream: Option<usize> = match field("stream")? {
            Some(stream) => Some(stream.extract()?),
            None => None,
        };
        Ok(Self {
            tensor,
            device,
            stream,
            writable: !read_only,
            _owner: array.unbind(),
        })
    }

    /// From the capsule that an array's `__dlpack__` gives.
    #[staticmethod]
    fn of_dlpack(capsule: Bound<'_, PyCapsule>) -> PyResult<Self> {
        let py = capsule.py();
        let managed = capsule.pointer_checked(Some(c"dltensor"))?;
        // SAFETY: a capsule of that name holds a DLManagedTensor, which lives
        // as long as the capsule does while nobody takes it over; we do not,
        // and keep the capsule.
        let managed = unsafe { managed.cast::<Managed>().as_ref() };
        let of = &managed.tensor;
        let Some(dtype) = of.dtype.ours() else {
            return Err(input(
                py,
                format!(
                    "DLPack elements of code {}, {} bits, {} lanes are taken by no kernel",
                    of.dtype.code, of.dtype.bits, of.dtype.lanes
                ),
            ));
        };
        const CUDA: c_int = 2;
        if of.device != CUDA {
            return Err(input(
                py,
                format!(
                    "a DLPack array on the GPU has device type {CUDA}, not {}",
                    of.device
                ),
            ));
        }
        let rank = usize::try_from(of.rank).map_err(|_| PyValueError::new_err("negative rank"))?;
        let list = |from: *const i64| -> Option<Vec<i64>> {
            // SAFETY: such a list has as many entries as there are dimensions.
            (!from.is_null()).then(|| unsafe { std::slice::from_raw_parts(from, rank) }.to_vec())
        };
        let shape = list(of.shape).unwrap_or_default();
        let shape: Vec<u64> = shape.iter().map(|&n| n.max(0) as u64).collect();
        let address = of.data as u64 + of.offset;
        let mut tensor = TensorView::dense(dtype, &shape, address);
        if let Some(strides) = list(of.strides) {
            tensor.strides = strides;
        }
        let device = i64::from(of.ordinal);
        Ok(Self {
            tensor,
            device,
            stream: None,
            writable: true,
            _owner: capsule.into_any().unbind(),
        })
    }

    /// The shape.
    #[getter]
    fn shape(&self) -> Vec<u64> {
        self.tensor.shape.clone()
    }

    /// The name of the element type.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.tensor.dtype.name()
    }

    /// The index of the device.
    #[getter]
    fn device(&self) -> i64 {
        self.device
    }
}

/// `<f4` and the like; bfloat16 has none of its own.
fn of_typestr(text: &str) -> Option<DType> {
    Some(match text.trim_start_matches(['<', '|', '=']) {
        "f4" => DType::F32,
        "f2" => DType::F16,
        "u1" => DType::U8,
        "i4" => DType::I32,
        "i8" => DType::I64,
        _ => return None,
    })
}

fn in_elements(py: Python<'_>, bytes: &[i64], dtype: DType) -> PyResult<Vec<i64>> {
    let size = dtype.bytes() as i64;
    let one = |&stride: &i64| match stride % size {
        0 => Ok(stride / size),
        _ => Err(input(
            py,
            format!("a stride of {stride} bytes is not a whole number of {dtype} elements"),
        )),
    };
    bytes.iter().map(one).collect()
}

/// `DLManagedTensor` of DLPack, up to what we read.
#[repr(C)]
struct Managed {
    tensor: Tensor,
}

/// `DLTensor` of DLPack.
#[repr(C)]
struct Tensor {
    data: *const c_void,
    device: c_int,
    ordinal: c_int,
    rank: c_int,
    dtype: DataType,
    shape: *const i64,
    strides: *const i64,
    offset: u64,
}

/// `DLDataType` of DLPack.
#[repr(C)]
struct DataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

impl DataType {
    fn ours(&self) -> Option<DType> {
        Some(match (self.code, self.bits, self.lanes) {
            (0, 32, 1) => DType::I32,
            (0, 64, 1) => DType::I64,
            (1, 8, 1) => DType::U8,
            (2, 32, 1) => DType::F32,
            (2, 16, 1) => DType::F16,
            (4, 16, 1) => DType::Bf16,
            (10, 8, 1) => DType::E4m3,
            (12, 8, 1) => DType::E5m2,
            _ => return None,
        })
    }
}
