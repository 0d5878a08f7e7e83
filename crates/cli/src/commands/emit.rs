//! `warpline emit FAMILY`: prints the kernels of a plan.

use crate::args::EmitArgs;
use crate::args::fields::request;
use crate::errors::Failure;
use crate::file;
use crate::output::CommandOutput;
use crate::resources::{Assembler, Resources};
use clap::{ArgMatches, FromArgMatches};
use serde::Serialize;
use std::path::{Path, PathBuf};
use warpline::{PreparedStep, prepare};
use warpline_ir::{Kernel, Target};
use warpline_kernels::{AnyFamily, DeviceKind};

/// Prints the kernels of the problem and config of the command line.
pub(crate) fn emit(family: &dyn AnyFamily, matches: &ArgMatches) -> Result<CommandOutput, Failure> {
    let args = EmitArgs::from_arg_matches(matches)
        .map_err(|e| Failure::bad_input("bad-usage", e.to_string()))?;
    let target = args.on.target;
    let work = family.workload(&request(family, matches), DeviceKind::Gpu, None, &target)?;
    let prepared = prepare(work.as_ref(), &target)?;
    let assembler = args.resources.then(Assembler::find).transpose()?;
    let mut kernels = (prepared.steps.iter())
        .map(|step| Emitted::new(step, &args, assembler.as_ref(), &target))
        .collect::<Result<Vec<_>, _>>()?;

    let mut text = String::new();
    match args
        .output
        .as_deref()
        .filter(|path| *path != Path::new("-"))
    {
        None => text.extend(kernels.iter().map(Emitted::text)),
        Some(path) => {
            let count = kernels.len();
            for (i, kernel) in kernels.iter_mut().enumerate() {
                let path = numbered(path, i, count, &kernel.name);
                file::write(&path, kernel.text())?;
                text += &format!("kernel {} written to {}\n", kernel.name, path.display());
                kernel.file = Some(path);
            }
        }
    }
    let failure = kernels.iter().find_map(|k| k.resources.as_ref()?.failure());
    Ok(CommandOutput::new("emit", text)
        .field("family", work.family())
        .field("problem", work.problem())
        .field("config", prepared.config(work.as_ref()))
        .field("target", target.name)
        .field("kernels", kernels)
        .with_failure(failure))
}

/// One kernel: IR, PTX and resources, as requested.
#[derive(Serialize)]
struct Emitted {
    name: String,
    hash: String,
    grid: [u32; 3],
    #[serde(skip_serializing_if = "Option::is_none")]
    ir: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ptx: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resources: Option<Resources>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<PathBuf>,
}

impl Emitted {
    fn new(
        step: &PreparedStep,
        args: &EmitArgs,
        assembler: Option<&Assembler>,
        target: &Target,
    ) -> Result<Self, Failure> {
        let kernel = &step.kernel;
        let ptx = step.ptx(target)?;
        let resources = assembler
            .map(|a| a.resources(kernel, &ptx, target))
            .transpose()?;
        let ptx_wanted = args.ptx || !(args.ir || args.resources);
        Ok(Self {
            name: kernel.name.clone(),
            hash: kernel.program_hash(),
            grid: step.grid(),
            // `Checked` displays the verdict; this displays the kernel.
            ir: args.ir.then(|| Kernel::to_string(kernel)),
            ptx: ptx_wanted.then_some(ptx.text),
            resources,
            file: None,
        })
    }

    /// Returns the program, then its resources as comments, so that the text stays valid PTX.
    fn text(&self) -> String {
        let program = self.ir.as_ref().or(self.ptx.as_ref());
        match (program, &self.resources) {
            (Some(program), None) => program.clone(),
            (None, Some(resources)) => resources.to_string(),
            (Some(program), Some(resources)) => {
                let resources = resources.to_string();
                let lines = resources.lines().map(|line| format!("// {line}\n"));
                format!("{program}\n{}", lines.collect::<String>())
            }
            (None, None) => String::new(),
        }
    }
}

/// Returns the file of one kernel of several: `k.2-reduce.ptx` for `k.ptx`.
fn numbered(path: &Path, index: usize, count: usize, kernel: &str) -> PathBuf {
    if count == 1 {
        return path.to_owned();
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let mut name = format!("{stem}.{}-{kernel}", index + 1);
    if let Some(extension) = path.extension() {
        name += &format!(".{}", extension.to_string_lossy());
    }
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_kernels_get_numbered_files() {
        let path = Path::new("out/k.ptx");
        assert_eq!(numbered(path, 0, 1, "gemm"), path);
        assert_eq!(
            numbered(path, 1, 2, "reduce"),
            Path::new("out/k.2-reduce.ptx")
        );
        assert_eq!(
            numbered(Path::new("k"), 0, 2, "gemm"),
            Path::new("k.1-gemm")
        );
    }
}
