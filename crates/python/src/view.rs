//! Device arrays of other libraries: DLPack, CUDA array interface.

use crate::dlpack::DlTensor;
use crate::errors::input;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use warpline::DType;
use warpline::ops::TensorView;

/// A device array of another library: where it lies, and who keeps it there.
#[pyclass(frozen, module = "warpline._warpline")]
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
        // SAFETY: a capsule of that name holds a DLManagedTensor, which begins
        // with the tensor and lives as long as the capsule does while nobody
        // takes it over; we do not, and keep the capsule.
        let (tensor, device) = unsafe { managed.cast::<DlTensor>().as_ref().view() }
            .map_err(|what| input(py, format!("the array has {what}")))?;
        Ok(Self {
            tensor,
            device,
            stream: None,
            writable: true,
            _owner: capsule.into_any().unbind(),
        })
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
