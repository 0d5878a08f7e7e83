//! Reads the inputs of a run from files; writes its inputs and outputs.

use crate::errors::Failure;
use crate::file;
use std::path::{Path, PathBuf};
use warpline::data::{self, SAFETENSORS, TensorFiles};
use warpline::kernels::HostTensor;
use warpline::{RunData, RunTensors, estimate};
use warpline_family::AnyWorkload;

/// Reads the inputs of a workload from a source.
pub(crate) fn read(work: &dyn AnyWorkload, source: &TensorFiles) -> Result<RunData, Failure> {
    estimate::check_host_memory(work)?;
    Ok(RunData::new(source.tensors(&work.inputs())?))
}

/// The destination of a run's tensors: one file, or a folder with one file per tensor.
pub(crate) struct Destination {
    path: PathBuf,
    is_single_file: bool,
}

impl Destination {
    /// Rejects, before the run, a path that cannot be written after it.
    pub(crate) fn new(path: &Path) -> Result<Self, Failure> {
        let is_single_file = path.extension().is_some_and(|end| end == SAFETENSORS);
        match is_single_file {
            true => file::can_write(path)?,
            false => file::can_write_folder(path).map(|_| ())?,
        }
        let path = path.to_owned();
        Ok(Self {
            path,
            is_single_file,
        })
    }

    /// Writes the inputs and the outputs.
    pub(crate) fn save(&self, tensors: &RunTensors) -> Result<(), Failure> {
        let all: Vec<&HostTensor> = tensors.inputs.iter().chain(&tensors.outputs).collect();
        if self.is_single_file {
            return file::write(&self.path, data::encode(&all)?);
        }
        let name = |t: &&HostTensor| format!("{}.{}", t.spec.name, data::BIN);
        let files: Vec<_> = all.iter().map(|t| (name(t), &t.data)).collect();
        file::write_folder(&self.path, &files)
    }

    /// Returns the path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}
