//! Test vectors: small inputs and outputs of every trial, recorded on an H200 and replayed on the CPU.
//!
//! A file has one trial: a line of JSON with the lengths, then the bytes of every input and output.

use crate::trial::{OpTrial, OutputBytes};
use anyhow::{Context as _, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the directory of the recorded files of this repository.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors")
}

/// The recorded run of a trial.
#[derive(Clone, PartialEq, Debug)]
pub struct TestVector {
    /// The device and its driver.
    pub device: String,
    /// The inputs.
    pub inputs: Vec<Vec<u8>>,
    /// The outputs.
    pub outputs: OutputBytes,
}

/// The first line of a file.
#[derive(Serialize, Deserialize)]
struct Header {
    trial: String,
    device: String,
    inputs: Vec<usize>,
    outputs: Vec<usize>,
}

/// Returns the file of a trial: its name with all characters but letters and digits replaced.
pub fn path(folder: &Path, trial: &str) -> PathBuf {
    let replace = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    folder.join(trial.chars().map(replace).collect::<String>() + ".bin")
}

impl TestVector {
    /// Writes the file of a trial.
    pub fn write(&self, folder: &Path, trial: &str) -> Result<()> {
        let lengths = |all: &[Vec<u8>]| all.iter().map(Vec::len).collect();
        let header = Header {
            trial: trial.to_owned(),
            device: self.device.clone(),
            inputs: lengths(&self.inputs),
            outputs: lengths(&self.outputs),
        };
        let mut bytes = serde_json::to_vec(&header)?;
        bytes.push(b'\n');
        for buffer in self.inputs.iter().chain(&self.outputs) {
            bytes.extend(buffer);
        }
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        let path = path(folder, trial);
        fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Reads the file of a trial; returns `None` if it does not exist.
    pub fn read(folder: &Path, trial: &str) -> Result<Option<Self>> {
        let path = path(folder, trial);
        match fs::read(&path) {
            Ok(bytes) => Self::parse(&bytes, trial)
                .map(Some)
                .with_context(|| format!("{} is damaged", path.display())),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    fn parse(bytes: &[u8], trial: &str) -> Result<Self> {
        let end = bytes.iter().position(|&b| b == b'\n');
        let (header, mut rest) = bytes.split_at(end.context("the header line is missing")? + 1);
        let header: Header = serde_json::from_slice(header)?;
        ensure!(
            header.trial == trial,
            "the file belongs to trial {:?}",
            header.trial
        );
        let mut take_buffers = |lengths: &[usize]| -> Result<Vec<Vec<u8>>> {
            let mut all = vec![];
            for &n in lengths {
                let (buffer, remaining) =
                    rest.split_at_checked(n).context("the file is too short")?;
                all.push(buffer.to_vec());
                rest = remaining;
            }
            Ok(all)
        };
        let (inputs, outputs) = (
            take_buffers(&header.inputs)?,
            take_buffers(&header.outputs)?,
        );
        ensure!(rest.is_empty(), "the file is too long");
        Ok(Self {
            device: header.device,
            inputs,
            outputs,
        })
    }

    /// Runs the recorded inputs on the CPU and compares the recorded outputs.
    pub fn replay(&self, trial: &OpTrial) -> Result<()> {
        let lengths = |all: &[Vec<u8>]| all.iter().map(Vec::len).collect::<Vec<_>>();
        let outputs: Vec<_> = trial.outputs.iter().map(|o| o.initial.len()).collect();
        if lengths(&self.inputs) != lengths(&trial.inputs) || lengths(&self.outputs) != outputs {
            bail!(
                "the buffers of the trial differ from the recorded ones\nhelp: record the trial again"
            );
        }
        let options = warpline_cpu::Options {
            threads: 1,
            ..Default::default()
        };
        let expected = trial.run_on_cpu_with(&self.inputs, &options);
        let expected = expected.map_err(anyhow::Error::msg)?;
        trial
            .compare(&self.inputs, &expected, &self.outputs)
            .map_err(anyhow::Error::msg)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector() -> TestVector {
        TestVector {
            device: "a GPU".to_owned(),
            inputs: vec![vec![1, 2, 3], vec![]],
            outputs: vec![vec![4; 9]],
        }
    }

    #[test]
    fn a_written_file_reads_back() {
        let folder = tempfile::tempdir().unwrap();
        vector().write(folder.path(), "load, shared").unwrap();
        let back = TestVector::read(folder.path(), "load, shared").unwrap();
        assert_eq!(back, Some(vector()));
        assert_eq!(TestVector::read(folder.path(), "load").unwrap(), None);
    }

    #[test]
    fn a_damaged_file_is_reported_by_name() {
        let folder = tempfile::tempdir().unwrap();
        vector().write(folder.path(), "x").unwrap();
        let path = path(folder.path(), "x");
        let complete = fs::read(&path).unwrap();
        let long = [&complete[..], &[0]].concat();
        for bytes in [&complete[..complete.len() - 1], &complete[..5], &[], &long] {
            fs::write(&path, bytes).unwrap();
            let error = format!("{:#}", TestVector::read(folder.path(), "x").unwrap_err());
            assert!(error.contains("x.bin is damaged"), "{error}");
        }
    }
}
