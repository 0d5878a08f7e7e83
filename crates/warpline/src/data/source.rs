//! The tensors of a folder or a file, by name.

use super::found::{Found, unreadable};
use super::safetensors::Safetensors;
use super::{BIN, SAFETENSORS};
use std::path::{Path, PathBuf};
use warpline_ir::DType;
use warpline_kernels::{FamilyError, HostTensor, Stored, TensorSpec};

/// The most integers that a tensor which says something of a problem holds.
const MOST_INTEGERS: u64 = 1 << 16;

/// Tensors in files: a folder with a file for each, or one file for all.
///
/// ```
/// let missing = warpline::data::Source::open("nowhere".as_ref()).unwrap_err();
/// assert!(missing.to_string().starts_with("cannot read nowhere: "));
/// ```
#[derive(Clone, Debug)]
pub struct Source {
    path: PathBuf,
    /// None: a folder.
    file: Option<Safetensors>,
}

impl Source {
    /// A folder, or a file whose name ends in `.safetensors`; of the file, its
    /// header is read.
    pub fn open(path: &Path) -> Result<Self, FamilyError> {
        let found = path.metadata().map_err(|e| unreadable(path, &e))?;
        let file = match found.is_dir() {
            true => None,
            false if path.extension().is_some_and(|end| end == SAFETENSORS) => {
                Some(Safetensors::open(path)?)
            }
            false => {
                let text = format!(
                    "tensors are in a folder or in a file that ends in .{SAFETENSORS}, and {} is neither",
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

    /// Tensors of these names, types and shapes.
    pub fn tensors(&self, specs: &[TensorSpec]) -> Result<Vec<HostTensor>, FamilyError> {
        let names: Vec<_> = specs.iter().map(|spec| spec.name).collect();
        self.has(&names)?;
        let read = |spec: &TensorSpec| self.get(spec.name)?.read(spec);
        specs.iter().map(read).collect()
    }

    /// The tensor of that name.
    fn get(&self, name: &str) -> Result<Found, FamilyError> {
        let none = || FamilyError::Data(format!("{} has no {name}", self.path.display()));
        self.find(name)?.ok_or_else(none)
    }

    fn find(&self, name: &str) -> Result<Option<Found>, FamilyError> {
        if let Some(file) = &self.file {
            return Ok(file.get(name));
        }
        let [bare, titled] = [BIN, SAFETENSORS].map(|end| self.path.join(format!("{name}.{end}")));
        match (bare.exists(), titled.exists()) {
            (true, true) => Err(FamilyError::Data(format!(
                "{} and {} are both there, and only one can be {name}",
                bare.display(),
                titled.display()
            ))),
            (true, false) => Found::bare(bare).map(Some),
            (false, true) => {
                let file = Safetensors::open(&titled)?;
                let none = || {
                    let (file, there) = (titled.display(), file.names().join(", "));
                    FamilyError::Data(format!("{file} has no {name}; it has {there}"))
                };
                file.get_or_only(name).map(Some).ok_or_else(none)
            }
            (false, false) => Ok(None),
        }
    }
}

impl Stored for Source {
    fn has(&self, names: &[&str]) -> Result<(), FamilyError> {
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
                let there = file.names().join(", ");
                format!("{path} has no {missing}; the inputs are {names}, and it has {there}")
            }
            None => format!(
                "{path} has no {missing}; the inputs are {names}, each in a file NAME.{BIN} or NAME.{SAFETENSORS}"
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
        if count > MOST_INTEGERS {
            let file = found.file.display();
            let text =
                format!("{name} has at most {MOST_INTEGERS} integers, and {count} in {file}");
            return Err(FamilyError::Data(text));
        }
        let data = found.integers(name)?;
        let words = data.chunks_exact(DType::I64.bytes());
        // A chunk has as many bytes as an integer.
        Ok(words
            .map(|w| i64::from_le_bytes(w.try_into().unwrap_or_default()))
            .collect())
    }
}
