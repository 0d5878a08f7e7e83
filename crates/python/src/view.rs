//! GPU arrays of other libraries: DLPack, CUDA array interface.

use crate::dlpack::DlTensor;
use crate::errors::input_error;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use warpline::DType;
use warpline::ops::TensorView;

/// A GPU array of another library and its owner.
#[pyclass(frozen, module = "warpline._warpline")]
pub(crate) struct View {
    pub(crate) tensor: TensorView,
    pub(crate) device: i64,
    /// The stream that the array is ready on, if its library reports one.
    #[pyo3(get)]
    stream: Option<usize>,
    /// Whether the array may be written.
    #[pyo3(get)]
    writable: bool,
    /// Keeps the memory alive.
    _owner: Py<PyAny>,
}

#[pymethods]
impl View {
    /// Creates a view from `__cuda_array_interface__`.
    #[staticmethod]
    fn from_cuda_array_interface(array: Bound<'_, PyAny>, device: i64) -> PyResult<Self> {
        let py = array.py();
        let interface = array.getattr("__cuda_array_interface__")?;
        let interface = interface.cast::<PyDict>()?;
        let field = |name: &str| -> PyResult<Option<Bound<'_, PyAny>>> {
            let value = interface.get_item(name)?;
            Ok(value.filter(|value| !value.is_none()))
        };
        let required = |name: &'static str| {
            field(name)?.ok_or_else(|| {
                input_error(
                    py,
                    format!("__cuda_array_interface__ must have the field {name:?}"),
                )
            })
        };
        let typestr: String = required("typestr")?.extract()?;
        let dtype = parse_typestr(&typestr)
            .ok_or_else(|| input_error(py, format!("unsupported element type {typestr:?}")))?;
        let shape: Vec<u64> = required("shape")?.extract()?;
        let (address, read_only): (u64, bool) = required("data")?.extract()?;
        if field("mask")?.is_some() {
            return Err(input_error(py, "masked arrays are not supported".into()));
        }
        let mut tensor = TensorView::dense(dtype, &shape, address);
        if let Some(strides) = field("strides")? {
            let bytes: Vec<i64> = strides.extract()?;
            tensor.strides = strides_in_elements(py, &bytes, dtype)?;
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

    /// Creates a view from the capsule of `__dlpack__`.
    #[staticmethod]
    fn from_dlpack(capsule: Bound<'_, PyCapsule>) -> PyResult<Self> {
        let py = capsule.py();
        let managed = capsule.pointer_checked(Some(c"dltensor"))?;
        // SAFETY: a capsule of that name holds a DLManagedTensor, whose first field is the tensor.
        // It lives as long as the capsule, which this view keeps and does not consume.
        let (tensor, device) = unsafe { managed.cast::<DlTensor>().as_ref().view() }
            .map_err(|what| input_error(py, format!("the array has {what}")))?;
        Ok(Self {
            tensor,
            device,
            stream: None,
            writable: true,
            _owner: capsule.into_any().unbind(),
        })
    }
}

/// Parses a type string such as `<f4`. The interface has no type string for bfloat16.
fn parse_typestr(text: &str) -> Option<DType> {
    Some(match text.trim_start_matches(['<', '|', '=']) {
        "f4" => DType::F32,
        "f2" => DType::F16,
        "u1" => DType::U8,
        "i4" => DType::I32,
        "i8" => DType::I64,
        _ => return None,
    })
}

fn strides_in_elements(py: Python<'_>, bytes: &[i64], dtype: DType) -> PyResult<Vec<i64>> {
    let size = dtype.bytes() as i64;
    let in_elements = |&stride: &i64| match stride % size {
        0 => Ok(stride / size),
        _ => Err(input_error(
            py,
            format!("a stride of {stride} bytes is not a whole number of {dtype} elements"),
        )),
    };
    bytes.iter().map(in_elements).collect()
}
