//! The location of a tensor in a file, and a check of its type and shape.

use super::safetensors::{dtype_name, safetensors_dtype};
use safetensors::Dtype;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use warpline_kernels::{FamilyError, HostTensor, TensorSpec};

/// The location of a tensor in a file.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct TensorLocation {
    /// The file.
    pub(super) file: PathBuf,
    /// The type and shape in the header; `None` for a raw file.
    pub(super) header: Option<(Dtype, Vec<usize>)>,
    /// The offset of the first byte.
    pub(super) offset: u64,
    /// The size in bytes.
    pub(super) bytes: u64,
}

impl TensorLocation {
    /// Returns the location of a raw file.
    pub(super) fn raw(file: PathBuf) -> Result<Self, FamilyError> {
        Ok(Self {
            bytes: file_size(&file)?,
            header: None,
            offset: 0,
            file,
        })
    }

    /// Reads the tensor. Returns an error if its type, shape or size does not match.
    pub(super) fn read(&self, spec: &TensorSpec) -> Result<HostTensor, FamilyError> {
        let TensorSpec { name, dtype, shape } = spec;
        let expected = format!("{name} must be {dtype} {shape:?}");
        let file = self.file.display();
        match &self.header {
            Some((actual_dtype, dims))
                if *actual_dtype != safetensors_dtype(*dtype) || dims != shape =>
            {
                let actual_dtype = dtype_name(*actual_dtype);
                return Err(FamilyError::Data(format!(
                    "{expected}, but {file} has {actual_dtype} {dims:?}"
                )));
            }
            None if self.bytes != spec.bytes() as u64 => {
                let (needed, actual) = (spec.bytes(), self.bytes);
                return Err(FamilyError::Data(format!(
                    "{expected} ({needed} bytes), but {file} has {actual} bytes"
                )));
            }
            _ => {}
        }
        let data = self.read_bytes()?;
        let spec = spec.clone();
        Ok(HostTensor { spec, data })
    }

    /// Reads the bytes of an i64 tensor.
    pub(super) fn integers(&self, name: &str) -> Result<Vec<u8>, FamilyError> {
        let file = self.file.display();
        if let Some((actual_dtype, _)) = self
            .header
            .as_ref()
            .filter(|(dtype, _)| *dtype != Dtype::I64)
        {
            let text = format!(
                "{name} must be i64, but {file} has {}",
                dtype_name(*actual_dtype)
            );
            return Err(FamilyError::Data(text));
        }
        if !self.bytes.is_multiple_of(8) {
            let text = format!(
                "{name} must be i64, but the size of {file} is {} bytes, which is not a multiple of 8",
                self.bytes
            );
            return Err(FamilyError::Data(text));
        }
        self.read_bytes()
    }

    /// Reads the bytes.
    fn read_bytes(&self) -> Result<Vec<u8>, FamilyError> {
        let read = || {
            let mut file = File::open(&self.file)?;
            file.seek(SeekFrom::Start(self.offset))?;
            let mut data = vec![0; self.bytes as usize];
            file.read_exact(&mut data)?;
            Ok(data)
        };
        read().map_err(|e| unreadable(&self.file, &e))
    }
}

/// Returns the size of a file in bytes.
pub(super) fn file_size(file: &Path) -> Result<u64, FamilyError> {
    let found = file.metadata().map_err(|e| unreadable(file, &e))?;
    match found.is_file() {
        true => Ok(found.len()),
        false => Err(FamilyError::Data(format!(
            "{} is not a file",
            file.display()
        ))),
    }
}

/// Returns the error for a file that cannot be read.
pub(super) fn unreadable(path: &Path, e: &io::Error) -> FamilyError {
    FamilyError::Data(format!("cannot read {}: {e}", path.display()))
}
