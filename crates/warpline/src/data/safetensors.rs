//! Safetensors files.

use super::location::{TensorLocation, file_size, unreadable};
use safetensors::tensor::Metadata;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, serialize};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use warpline_ir::DType;
use warpline_kernels::{FamilyError, HostTensor};

/// The size of the header length field in bytes.
const LENGTH_BYTES: u64 = 8;
/// The maximum header size of the format in bytes.
const MAX_HEADER_BYTES: u64 = 100_000_000;

/// The header of a file.
#[derive(Clone, Debug)]
pub(super) struct Safetensors {
    file: PathBuf,
    header: Metadata,
    /// The offset of the data.
    start: u64,
}

impl Safetensors {
    /// Reads the header of a file.
    pub(super) fn open(file: &Path) -> Result<Self, FamilyError> {
        let bytes = file_size(file)?;
        let invalid = |why: String| {
            let file = file.display();
            FamilyError::Data(format!("{file} is not a safetensors file: {why}"))
        };
        let text = read_header(file).map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => {
                invalid(format!("its {bytes} bytes end inside the header"))
            }
            io::ErrorKind::InvalidData => invalid(e.to_string()),
            _ => unreadable(file, &e),
        })?;
        let header: Metadata = serde_json::from_slice(&text).map_err(|e| invalid(e.to_string()))?;
        let start = LENGTH_BYTES + text.len() as u64;
        let data = header.data_len() as u64;
        if start.checked_add(data) != Some(bytes) {
            return Err(invalid(format!(
                "its header ends at byte {start} and declares {data} bytes of data, but the file has {bytes} bytes"
            )));
        }
        Ok(Self {
            file: file.to_owned(),
            header,
            start,
        })
    }

    /// Returns the location of a tensor.
    pub(super) fn get(&self, name: &str) -> Option<TensorLocation> {
        let info = self.header.info(name)?;
        let (from, to) = info.data_offsets;
        Some(TensorLocation {
            file: self.file.clone(),
            header: Some((info.dtype, info.shape.clone())),
            offset: self.start + from as u64,
            bytes: (to - from) as u64,
        })
    }

    /// Returns the location of a tensor, or of the only tensor.
    pub(super) fn get_or_only(&self, name: &str) -> Option<TensorLocation> {
        match self.names().as_slice() {
            [only] => self.get(only),
            _ => self.get(name),
        }
    }

    /// Returns the names of the tensors in file order.
    pub(super) fn names(&self) -> Vec<String> {
        self.header.offset_keys()
    }
}

/// Reads the header.
fn read_header(file: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(file)?;
    let mut length = [0; LENGTH_BYTES as usize];
    file.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > MAX_HEADER_BYTES {
        let text = format!("the header size is {length} bytes; the maximum is {MAX_HEADER_BYTES}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    let mut text = Vec::new();
    match file.take(length).read_to_end(&mut text)? as u64 {
        read if read == length => Ok(text),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Encodes tensors as a safetensors file.
///
/// ```
/// use warpline::data::{TensorFiles, encode};
/// use warpline::kernels::{HostTensor, TensorSpec};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let spec = TensorSpec { name: "x", dtype: warpline::DType::Bf16, shape: vec![2, 3] };
/// let x = HostTensor::round(spec.clone(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
/// let file = tempfile::tempdir()?.keep().join("x.safetensors");
/// std::fs::write(&file, encode(&[&x])?)?;
/// assert_eq!(TensorFiles::open(&file)?.tensors(&[spec])?, [x]);
/// # std::fs::remove_dir_all(file.parent().unwrap())?;
/// # Ok(())
/// # }
/// ```
pub fn encode(tensors: &[&HostTensor]) -> Result<Vec<u8>, FamilyError> {
    let rejected = |e: safetensors::SafeTensorError| FamilyError::Data(e.to_string());
    let mut views = Vec::new();
    for HostTensor { spec, data } in tensors {
        let view = TensorView::new(safetensors_dtype(spec.dtype), spec.shape.clone(), data)
            .map_err(rejected)?;
        views.push((spec.name, view));
    }
    serialize(views, None).map_err(rejected)
}

/// Returns the safetensors type of an element type.
pub(super) fn safetensors_dtype(dtype: DType) -> Dtype {
    match dtype {
        DType::U8 => Dtype::U8,
        DType::U16 => Dtype::U16,
        DType::U32 => Dtype::U32,
        DType::I32 => Dtype::I32,
        DType::U64 => Dtype::U64,
        DType::I64 => Dtype::I64,
        DType::F32 | DType::Tf32 => Dtype::F32,
        DType::F16 => Dtype::F16,
        DType::Bf16 => Dtype::BF16,
        DType::E4m3 => Dtype::F8_E4M3,
        DType::E5m2 => Dtype::F8_E5M2,
    }
}

/// Returns the name of a safetensors type: Warpline's name if it has one.
pub(super) fn dtype_name(stored: Dtype) -> String {
    let known = DType::ALL
        .into_iter()
        .find(|&dtype| safetensors_dtype(dtype) == stored);
    known.map_or_else(
        || stored.to_string().to_lowercase(),
        |dtype| dtype.name().into(),
    )
}
