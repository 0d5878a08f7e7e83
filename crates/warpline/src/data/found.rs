//! A tensor in a file: where it lies, and whether it is the one asked for.

use super::safetensors::{dtype as stored, dtype_name};
use safetensors::Dtype;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use warpline_kernels::{FamilyError, HostTensor, TensorSpec};

/// A tensor that was found.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Found {
    /// The file.
    pub(super) file: PathBuf,
    /// The type and shape that it has there; none where there is no header.
    pub(super) header: Option<(Dtype, Vec<usize>)>,
    /// Its first byte.
    pub(super) at: u64,
    /// Its bytes.
    pub(super) bytes: u64,
}

impl Found {
    /// A file that holds nothing but elements.
    pub(super) fn bare(file: PathBuf) -> Result<Self, FamilyError> {
        Ok(Self {
            bytes: length(&file)?,
            header: None,
            at: 0,
            file,
        })
    }

    /// The tensor, if it is what was asked for.
    pub(super) fn read(&self, spec: &TensorSpec) -> Result<HostTensor, FamilyError> {
        let TensorSpec { name, dtype, shape } = spec;
        let asked = format!("{name} is {dtype} {shape:?} by the problem");
        let file = self.file.display();
        match &self.header {
            Some((theirs, sides)) if *theirs != stored(*dtype) || sides != shape => {
                let theirs = dtype_name(*theirs);
                return Err(FamilyError::Data(format!(
                    "{asked}, and {theirs} {sides:?} in {file}"
                )));
            }
            None if self.bytes != spec.bytes() as u64 => {
                let (needed, there) = (spec.bytes(), self.bytes);
                return Err(FamilyError::Data(format!(
                    "{asked}, which is {needed} bytes, and {file} has {there}"
                )));
            }
            _ => {}
        }
        let data = self.all()?;
        let spec = spec.clone();
        Ok(HostTensor { spec, data })
    }

    /// Its bytes, if they are integers of 64 bits.
    pub(super) fn integers(&self, name: &str) -> Result<Vec<u8>, FamilyError> {
        let file = self.file.display();
        if let Some((theirs, _)) = self
            .header
            .as_ref()
            .filter(|(dtype, _)| *dtype != Dtype::I64)
        {
            let text = format!("{name} is i64, and {} in {file}", dtype_name(*theirs));
            return Err(FamilyError::Data(text));
        }
        if !self.bytes.is_multiple_of(8) {
            let text = format!(
                "{name} is i64, and the {} bytes of {file} are no multiple of 8",
                self.bytes
            );
            return Err(FamilyError::Data(text));
        }
        self.all()
    }

    /// Its bytes, whatever they are.
    fn all(&self) -> Result<Vec<u8>, FamilyError> {
        let read = || {
            let mut file = File::open(&self.file)?;
            file.seek(SeekFrom::Start(self.at))?;
            let mut data = vec![0; self.bytes as usize];
            file.read_exact(&mut data)?;
            Ok(data)
        };
        read().map_err(|e| unreadable(&self.file, &e))
    }
}

/// The bytes of a file.
pub(super) fn length(file: &Path) -> Result<u64, FamilyError> {
    let found = file.metadata().map_err(|e| unreadable(file, &e))?;
    match found.is_file() {
        true => Ok(found.len()),
        false => Err(FamilyError::Data(format!("{} is no file", file.display()))),
    }
}

/// What cannot be read.
pub(super) fn unreadable(path: &Path, e: &io::Error) -> FamilyError {
    FamilyError::Data(format!("cannot read {}: {e}", path.display()))
}
