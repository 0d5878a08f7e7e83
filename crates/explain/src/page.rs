//! The page of a code, and its text.

use std::fmt;
use warpline_check::Rule;

use warpline_corpus::Bug;
use warpline_ir::builder::Builder;
use warpline_ir::{Kernel, Launch};

/// The tool that reports the broken kernel of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FoundBy {
    /// `Kernel::build`.
    Builder,
    /// `warpline check`.
    Checker,
    /// `warpline check --lint`.
    Linter,
    /// The CPU executor, or the runtime when it binds arguments. The kernel alone does not show the
    /// error, so the checker cannot report it.
    Run,
    /// No tool: the checker proves the kernel, with this code as one of its assumptions.
    Assumption,
}

/// The broken version of a page.
#[derive(Clone, Copy, Debug)]
pub enum Broken {
    /// Declares the broken kernel.
    Built(fn(Builder)),
    /// Edits the repaired kernel. The builder never makes the broken kernel.
    EditedKernel(fn(&mut Kernel)),
    /// Edits a launch of the repaired kernel.
    EditedLaunch(fn(&mut Launch)),
}

/// The explanation and the kernels of one code.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// The code.
    pub code: &'static str,
    /// The tool that reports it.
    pub found_by: FoundBy,
    /// The broken version.
    pub broken: Broken,
    /// Declares the repaired kernel.
    pub repaired: fn(Builder),
    /// The module of the source file that holds this page; `None` if the page is the whole file.
    pub(crate) module: Option<&'static str>,
    /// The source file.
    pub(crate) source: &'static str,
}

impl Example {
    /// Returns the explanation: the documentation of the page's module.
    pub fn explanation(&self) -> String {
        let lines = self.module_lines().into_iter();
        let lines = lines.map_while(|line| line.strip_prefix("//!"));
        let lines: Vec<&str> = lines
            .map(|line| line.strip_prefix(' ').unwrap_or(line))
            .collect();
        lines.join("\n")
    }

    /// Returns the source of the broken kernel.
    pub fn broken_source(&self) -> String {
        self.function_source("broken")
    }

    /// Returns the source of the repaired kernel.
    pub fn repaired_source(&self) -> String {
        self.function_source("repaired")
    }

    /// Returns the source of a function of the page's module, without its visibility.
    fn function_source(&self, name: &str) -> String {
        let start = format!("fn {name}(");
        let lines = self.module_lines().into_iter().map(without_visibility);
        let mut lines = lines.skip_while(|line| !line.starts_with(&start));
        let mut text = Vec::new();
        for line in lines.by_ref() {
            text.push(line);
            if line == "}" {
                break;
            }
        }
        text.join("\n")
    }

    /// Returns the lines of the page's module, without the indentation of the module.
    fn module_lines(&self) -> Vec<&'static str> {
        let Some(module) = self.module else {
            return self.source.lines().collect();
        };
        let head = format!("pub(super) mod {module} {{");
        let lines = self.source.lines().skip_while(|line| *line != head).skip(1);
        lines
            .take_while(|line| *line != "}")
            .map(|line| line.strip_prefix("    ").unwrap_or(line))
            .collect()
    }
}

fn without_visibility(line: &str) -> &str {
    let line = line.strip_prefix("pub(super) ").unwrap_or(line);
    line.strip_prefix("pub(crate) ").unwrap_or(line)
}

/// Everything that `warpline explain` prints about a code.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// The rule.
    pub rule: &'static Rule,
    /// The explanation and the kernels.
    pub example: Option<&'static Example>,
}

impl Page {
    /// Returns the public bugs of this kind.
    pub fn bugs(&self) -> impl Iterator<Item = &'static Bug> + use<> {
        let code = self.rule.code;
        warpline_corpus::all()
            .iter()
            .filter(move |bug| bug.rule == code)
    }
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rule {
            code,
            title,
            requirement,
            help,
        } = self.rule;
        writeln!(f, "{code}: {title}\n")?;
        writeln!(f, "rule: {requirement}")?;
        writeln!(f, "help: {help}")?;
        if let Some(example) = self.example {
            writeln!(f, "\n{}", example.explanation())?;
            let headline = match example.broken {
                Broken::Built(_) => "A broken kernel",
                Broken::EditedKernel(_) => {
                    "A broken kernel, which the builder never makes; this function edits the repaired \
                     kernel"
                }
                Broken::EditedLaunch(_) => {
                    "A broken launch; this function edits a launch of the kernel below"
                }
            };
            let broken = indented(&example.broken_source());
            writeln!(f, "\n{headline}:\n\n{broken}")?;
            writeln!(f, "\nRepaired:\n\n{}", indented(&example.repaired_source()))?;
        }
        let mut bugs = self.bugs().peekable();
        if bugs.peek().is_some() {
            writeln!(
                f,
                "\nPublic bugs of this kind (warpline check --corpus checks them):\n"
            )?;
        }
        for bug in bugs {
            writeln!(f, "  {}: {}", bug.reference, bug.title)?;
        }
        Ok(())
    }
}

/// Indents every line that is not empty.
fn indented(text: &str) -> String {
    let lines = text.lines().map(|line| match line {
        "" => String::new(),
        _ => format!("    {line}"),
    });
    lines.collect::<Vec<_>>().join("\n")
}
