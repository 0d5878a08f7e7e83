//! Files that say types and shapes.

use super::found::{Found, length, unreadable};
use safetensors::tensor::Metadata;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, serialize};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use warpline_ir::DType;
use warpline_kernels::{FamilyError, HostTensor};

/// Bytes of the number that says how long the header is.
const LENGTH: u64 = 8;
/// The most bytes of a header, as the format has it.
const MOST: u64 = 100_000_000;

/// The header of a file.
#[derive(Clone, Debug)]
pub(super) struct Safetensors {
    file: PathBuf,
    header: Metadata,
    /// Where the data begins.
    start: u64,
}

impl Safetensors {
    /// Reads the header of a file.
    pub(super) fn open(file: &Path) -> Result<Self, FamilyError> {
        let bytes = length(file)?;
        let bad = |why: String| {
            let file = file.display();
            FamilyError::Data(format!("{file} is no safetensors file: {why}"))
        };
        let text = header(file).map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => bad(format!("its {bytes} bytes end in the header")),
            io::ErrorKind::InvalidData => bad(e.to_string()),
            _ => unreadable(file, &e),
        })?;
        let header: Metadata = serde_json::from_slice(&text).map_err(|e| bad(e.to_string()))?;
        let start = LENGTH + text.len() as u64;
        let data = header.data_len() as u64;
        if start.checked_add(data) != Some(bytes) {
            return Err(bad(format!(
                "its header of {start} bytes announces {data} more, and it has {bytes}"
            )));
        }
        Ok(Self {
            file: file.to_owned(),
            header,
            start,
        })
    }

    /// The tensor of that name.
    pub(super) fn get(&self, name: &str) -> Option<Found> {
        let info = self.header.info(name)?;
        let (from, to) = info.data_offsets;
        Some(Found {
            file: self.file.clone(),
            header: Some((info.dtype, info.shape.clone())),
            at: self.start + from as u64,
            bytes: (to - from) as u64,
        })
    }

    /// The tensor of that name, or the only one.
    pub(super) fn get_or_only(&self, name: &str) -> Option<Found> {
        match self.names().as_slice() {
            [only] => self.get(only),
            _ => self.get(name),
        }
    }

    /// The names of its tensors, as they lie.
    pub(super) fn names(&self) -> Vec<String> {
        self.header.offset_keys()
    }
}

/// The bytes of a header.
fn header(file: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(file)?;
    let mut length = [0; LENGTH as usize];
    file.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > MOST {
        let text = format!("a header has at most {MOST} bytes, and its own would have {length}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    let mut text = Vec::new();
    match file.take(length).read_to_end(&mut text)? as u64 {
        read if read == length => Ok(text),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Tensors as the bytes of one file.
///
/// ```
/// use warpline::data::{Source, encode};
/// use warpline::kernels::{HostTensor, TensorSpec};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let spec = TensorSpec { name: "x", dtype: warpline::DType::Bf16, shape: vec![2, 3] };
/// let x = HostTensor::round(spec.clone(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
/// let file = tempfile::tempdir()?.keep().join("x.safetensors");
/// std::fs::write(&file, encode(&[&x])?)?;
/// assert_eq!(Source::open(&file)?.tensors(&[spec])?, [x]);
/// # std::fs::remove_dir_all(file.parent().unwrap())?;
/// # Ok(())
/// # }
/// ```
pub fn encode(tensors: &[&HostTensor]) -> Result<Vec<u8>, FamilyError> {
    let refused = |e: safetensors::SafeTensorError| FamilyError::Data(e.to_string());
    let mut views = Vec::new();
    for HostTensor { spec, data } in tensors {
        let view = TensorView::new(dtype(spec.dtype), spec.shape.clone(), data).map_err(refused)?;
        views.push((spec.name, view));
    }
    serialize(views, None).map_err(refused)
}

/// An element type as files have it.
pub(super) fn dtype(dtype: DType) -> Dtype {
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

/// The name of an element type of a file: ours, where we have it.
pub(super) fn dtype_name(theirs: Dtype) -> String {
    let ours = DType::ALL.into_iter().find(|ours| dtype(*ours) == theirs);
    ours.map_or_else(
        || theirs.to_string().to_lowercase(),
        |ours| ours.name().into(),
    )
}
