//! Named tensors in a folder or a file.

use super::location::{TensorLocation, unreadable};
use super::safetensors::Safetensors;
use super::{BIN, SAFETENSORS};
use std::path::{Path, PathBuf};
use warpline_ir::DType;
use warpline_kernels::{FamilyError, HostTensor, StoredTensors, TensorSpec};

/// The maximum number of elements of an i64 tensor that determines the problem.
const MAX_INTEGERS: u64 = 1 << 16;

/// Tensors in files: a folder with one file per tensor, or one file with all tensors.
///
/// ```
/// let missing = warpline::data::TensorFiles::open("nowhere".as_ref()).unwrap_err();
/// assert!(missing.to_string().starts_with("cannot read nowhere: "));
/// ```
#[derive(Clone, Debug)]
pub struct TensorFiles {
    path: PathBuf,
    /// The file; `None` for a folder.
    file: Option<Safetensors>,
}

impl TensorFiles {
    /// Opens a folder, or reads the header of a `.safetensors` file.
    pub fn open(path: &Path) -> Result<Self, FamilyError> {
        let found = path.metadata().map_err(|e| unreadable(path, &e))?;
        let file = match found.is_dir() {
            true => None,
            false if path.extension().is_some_and(|end| end == SAFETENSORS) => {
                Some(Safetensors::open(path)?)
            }
            false => {
                let text = format!(
                    "{} is neither a folder nor a .{SAFETENSORS} file",
                    path.display()
                );
                return Err(FamilyError::Data(text));
            }
        };
        Ok(Self {
            path: path.to_owned(),
            file,
        })
    }

    /// Reads tensors with these names, types and shapes.
    pub fn tensors(&self, specs: &[TensorSpec]) -> Result<Vec<HostTensor>, FamilyError> {
        let names: Vec<_> = specs.iter().map(|spec| spec.name).collect();
        self.require(&names)?;
        let read = |spec: &TensorSpec| self.get(spec.name)?.read(spec);
        specs.iter().map(read).collect()
    }

    /// Returns the location of a tensor.
    fn get(&self, name: &str) -> Result<TensorLocation, FamilyError> {
        let missing = || FamilyError::Data(format!("{} has no {name}", self.path.display()));
        self.find(name)?.ok_or_else(missing)
    }

    fn find(&self, name: &str) -> Result<Option<TensorLocation>, FamilyError> {
        if let Some(file) = &self.file {
            return Ok(file.get(name));
        }
        let [raw, safetensors] =
            [BIN, SAFETENSORS].map(|end| self.path.join(format!("{name}.{end}")));
        match (raw.exists(), safetensors.exists()) {
            (true, true) => Err(FamilyError::Data(format!(
                "both {} and {} exist for {name}\nhelp: remove one of them",
                raw.display(),
                safetensors.display()
            ))),
            (true, false) => TensorLocation::raw(raw).map(Some),
            (false, true) => {
                let file = Safetensors::open(&safetensors)?;
                let missing = || {
                    let (file, existing) = (safetensors.display(), file.names().join(", "));
                    FamilyError::Data(format!("{file} has no {name}; it has {existing}"))
                };
                file.get_or_only(name).map(Some).ok_or_else(missing)
            }
            (false, false) => Ok(None),
        }
    }
}

impl StoredTensors for TensorFiles {
    fn require(&self, names: &[&str]) -> Result<(), FamilyError> {
        let mut missing = Vec::new();
        for name in names {
            if self.find(name)?.is_none() {
                missing.push(*name);
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let (path, missing, names) = (self.path.display(), missing.join(", "), names.join(", "));
        Err(FamilyError::Data(match &self.file {
            Some(file) => {
                let existing = file.names().join(", ");
                format!("{path} has no {missing}; it has {existing}\nhelp: the inputs are {names}")
            }
            None => format!(
                "{path} has no {missing}\nhelp: the inputs are {names}, each in NAME.{BIN} or NAME.{SAFETENSORS}"
            ),
        }))
    }

    fn shape(&self, name: &str) -> Result<Option<Vec<usize>>, FamilyError> {
        Ok(self.get(name)?.header.map(|(_, shape)| shape))
    }

    fn bytes(&self, name: &str) -> Result<u64, FamilyError> {
        Ok(self.get(name)?.bytes)
    }

    fn integers(&self, name: &'_ str) -> Result<Vec<i64>, FamilyError> {
        let found = self.get(name)?;
        let count = found.bytes / DType::I64.bytes() as u64;
        if count > MAX_INTEGERS {
            let file = found.file.display();
            let text =
                format!("{name} has {count} integers in {file}; the maximum is {MAX_INTEGERS}");
            return Err(FamilyError::Data(text));
        }
        let data = found.integers(name)?;
        let chunks = data.chunks_exact(DType::I64.bytes());
        // Cannot fail: every chunk has 8 bytes.
        Ok(chunks
            .map(|w| i64::from_le_bytes(w.try_into().unwrap_or_default()))
            .collect())
    }
}
