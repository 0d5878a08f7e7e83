//! Parser for the log of `ptxas -v`: the resources of each kernel, and advisories.

use super::PtxasError;
use super::log::{LogLine, Severity};

/// The parsed log of one module.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct PtxasReport {
    /// The kernels, in the order of the log, which differs from the module's.
    pub kernels: Vec<KernelReport>,
    /// The info and warning lines with a code such as `(C7508)`, in the order of the log.
    pub advisories: Vec<Advisory>,
}

/// The resources of one kernel. Device functions that it calls are not listed separately.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct KernelReport {
    /// The name in the module.
    pub name: String,
    /// Registers per thread at entry.
    pub registers: u32,
    /// Named barriers.
    pub barriers: u32,
    /// Static shared memory in bytes; excludes dynamic shared memory.
    pub shared_bytes: u32,
    /// Constant memory over all banks in bytes; `None` if ptxas reports none. ptxas 13.0 reports none
    /// for `sm_90a`.
    pub cmem_bytes: Option<u32>,
    /// The stack frame per thread, in bytes.
    pub stack_bytes: u32,
    /// Bytes of spill stores.
    pub spill_store_bytes: u32,
    /// Bytes of spill loads.
    pub spill_load_bytes: u32,
}

/// A message of ptxas with a code.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Advisory {
    /// The code, such as `C7508`.
    pub code: String,
    /// The PTX line, if ptxas names one; "around line 23" counts.
    pub line: Option<u32>,
    /// The message, without its code.
    pub text: String,
}

impl Advisory {
    /// Returns whether ptxas reports that it did not compile the kernel as written.
    ///
    /// These codes are `C7504` to `C7519` and `C7602`: ignored register counts, wgmmas that the compiler
    /// serializes or fences, wgmma operands that do not fit in registers.
    #[must_use]
    pub fn is_error(&self) -> bool {
        let number = self.code.strip_prefix('C').and_then(|n| n.parse().ok());
        matches!(number, Some(7504..=7519 | 7602))
    }
}

impl PtxasReport {
    /// Parses the log of `ptxas -v`.
    ///
    /// # Errors
    /// [`PtxasError::Unreadable`] if the log names a kernel without its registers or spills. A
    /// missing number is never treated as zero.
    pub fn parse(log: &str) -> Result<Self, PtxasError> {
        let mut report = Self::default();
        let mut drafts: Vec<Draft> = Vec::new();
        // The function that the next spill line describes.
        let mut subject = "";
        for raw in log.lines() {
            let Some(line) = LogLine::parse(raw) else {
                if let Some(draft) = drafts.iter_mut().find(|d| d.kernel.name == subject) {
                    draft.parse_frame(raw);
                }
                continue;
            };
            report.advisories.extend(advisory(&line));
            if let Some(name) = compiled_entry(line.text) {
                drafts.push(Draft::new(name));
                subject = "";
            } else if let Some(name) = line.text.strip_prefix("Function properties for ") {
                subject = name;
            } else if line.text.starts_with("Used ")
                && let Some(draft) = drafts.last_mut()
            {
                draft.parse_usage(line.text);
            }
        }
        for draft in drafts {
            report.kernels.push(draft.finish()?);
        }
        Ok(report)
    }

    /// Returns the report of the kernel `name`.
    #[must_use]
    pub fn kernel(&self, name: &str) -> Option<&KernelReport> {
        self.kernels.iter().find(|kernel| kernel.name == name)
    }

    /// Returns the advisories that [are errors](Advisory::is_error).
    pub fn errors(&self) -> impl Iterator<Item = &Advisory> {
        self.advisories.iter().filter(|a| a.is_error())
    }
}

/// A kernel report under construction.
struct Draft {
    kernel: KernelReport,
    has_registers: bool,
    has_frame: bool,
}

impl Draft {
    fn new(name: &str) -> Self {
        Self {
            kernel: KernelReport {
                name: name.to_owned(),
                ..KernelReport::default()
            },
            has_registers: false,
            has_frame: false,
        }
    }

    /// Parses `    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads`.
    fn parse_frame(&mut self, raw: &str) {
        let [stack, stores, loads] = ["stack frame", "spill stores", "spill loads"]
            .map(|what| comma_separated(raw).find_map(|part| byte_count(part, what)));
        if let (Some(stack), Some(stores), Some(loads)) = (stack, stores, loads) {
            self.kernel.stack_bytes = stack;
            self.kernel.spill_store_bytes = stores;
            self.kernel.spill_load_bytes = loads;
            self.has_frame = true;
        }
    }

    /// Parses `Used 10 registers, used 2 barriers, 256 bytes smem, 360 bytes cmem[0]`.
    fn parse_usage(&mut self, text: &str) {
        for part in comma_separated(text) {
            let mut words = part.split_whitespace();
            match (words.next(), words.next(), words.next()) {
                (Some("Used"), Some(count), Some("registers")) => {
                    if let Ok(count) = count.parse() {
                        self.kernel.registers = count;
                        self.has_registers = true;
                    }
                }
                (Some("used"), Some(count), Some("barriers")) => {
                    self.kernel.barriers = count.parse().unwrap_or(0);
                }
                (Some(count), Some("bytes"), Some("smem")) => {
                    self.kernel.shared_bytes = count.parse().unwrap_or(0);
                }
                (Some(count), Some("bytes"), Some(bank)) if bank.starts_with("cmem[") => {
                    let bytes: u32 = count.parse().unwrap_or(0);
                    let before = self.kernel.cmem_bytes.unwrap_or(0);
                    self.kernel.cmem_bytes = Some(before.saturating_add(bytes));
                }
                _ => {}
            }
        }
    }

    fn finish(self) -> Result<KernelReport, PtxasError> {
        let missing = match (self.has_registers, self.has_frame) {
            (true, true) => return Ok(self.kernel),
            (false, _) => "the registers",
            (true, false) => "the stack frame and the spills",
        };
        Err(PtxasError::Unreadable {
            kernel: self.kernel.name,
            what: missing,
        })
    }
}

fn comma_separated(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim)
}

/// Parses the number in `12 bytes spill loads`.
fn byte_count(part: &str, what: &str) -> Option<u32> {
    let count = part.strip_suffix(what)?.trim_end().strip_suffix("bytes")?;
    count.trim().parse().ok()
}

/// Parses the name in `Compiling entry function 'name' for 'sm_90a'`.
fn compiled_entry(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("Compiling entry function '")?;
    rest.split_once('\'').map(|(name, _)| name)
}

/// Parses the advisory in `(C7508) text`, if the line has a code and its severity is info or warning.
fn advisory(line: &LogLine) -> Option<Advisory> {
    if !matches!(line.severity, Severity::Info | Severity::Warning) {
        return None;
    }
    let (code, text) = line.text.strip_prefix('(')?.split_once(')')?;
    let number = code.strip_prefix('C')?;
    if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some(Advisory {
        code: code.to_owned(),
        line: line.line.or_else(|| line_number_in(text)),
        text: text.trim().to_owned(),
    })
}

/// Parses the number in `... around line 23 by compiler ...`.
fn line_number_in(text: &str) -> Option<u32> {
    let (_, rest) = text.split_once("around line ")?;
    rest.split_whitespace().next()?.parse().ok()
}
