//! Tensors that a run reads from files and leaves in files.

use crate::errors::Failure;
use crate::file;
use std::path::{Path, PathBuf};
use warpline::data::{self, SAFETENSORS, Source};
use warpline::kernels::HostTensor;
use warpline::{RunData, Tensors, estimate};
use warpline_family::AnyWork;

/// The inputs of work, from a source.
pub(crate) fn read(work: &dyn AnyWork, source: &Source) -> Result<RunData, Failure> {
    estimate::fits_host(work)?;
    Ok(RunData::new(source.tensors(&work.inputs())?))
}

/// Where the tensors of a run go: to one file, or to a folder with one for each.
pub(crate) struct Destination {
    path: PathBuf,
    in_one: bool,
}

impl Destination {
    /// Refuses at once what could not be written after the run.
    pub(crate) fn new(path: &Path) -> Result<Self, Failure> {
        let in_one = path.extension().is_some_and(|end| end == SAFETENSORS);
        match in_one {
            true => file::can_write(path)?,
            false => file::can_write_folder(path).map(|_| ())?,
        }
        let path = path.to_owned();
        Ok(Self { path, in_one })
    }

    /// Writes the inputs and the outputs.
    pub(crate) fn save(&self, tensors: &Tensors) -> Result<(), Failure> {
        let all: Vec<&HostTensor> = tensors.inputs.iter().chain(&tensors.outputs).collect();
        if self.in_one {
            return file::write(&self.path, data::encode(&all)?);
        }
        let name = |t: &&HostTensor| format!("{}.{}", t.spec.name, data::BIN);
        let files: Vec<_> = all.iter().map(|t| (name(t), &t.data)).collect();
        file::write_folder(&self.path, &files)
    }

    /// Where they are.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}
