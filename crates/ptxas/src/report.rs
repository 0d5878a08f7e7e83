//! What the log of `ptxas -v` says of each entry.

use super::PtxasError;
use super::log::{LogLine, Severity};

/// What ptxas says of one module.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Report {
    /// The entries, in the order of the log, which is not that of the module.
    pub entries: Vec<Entry>,
    /// Every line with a code such as `(C7508)`, in the order of the log.
    pub advisories: Vec<Advisory>,
}

/// What one entry uses. A device function that it calls has no numbers of its own here.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Entry {
    /// The name in the module.
    pub name: String,
    /// Registers per thread at entry.
    pub registers: u32,
    /// Named barriers.
    pub barriers: u32,
    /// Static shared memory; what a launch adds is not in it.
    pub shared_bytes: u32,
    /// Constant memory over all banks; `None` where ptxas states none, as 13.0 does for `sm_90a`.
    pub cmem_bytes: Option<u32>,
    /// The stack frame of a thread.
    pub stack_bytes: u32,
    /// Bytes of registers stored to the stack.
    pub spill_store_bytes: u32,
    /// Bytes of registers loaded back.
    pub spill_load_bytes: u32,
}

/// A remark of ptxas that has a code.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Advisory {
    /// The code, such as `C7508`.
    pub code: String,
    /// The line of the PTX, where ptxas names one; "around line 23" counts.
    pub line: Option<u32>,
    /// The remark, without its code.
    pub text: String,
}

impl Advisory {
    /// Whether the kernel that ptxas made is not the kernel that was asked for.
    ///
    /// True of `C7504` to `C7519` and `C7602`: register counts that are ignored, matrix
    /// products that are serialized or fenced by the compiler, operands that find no registers.
    #[must_use]
    pub fn is_error(&self) -> bool {
        let number = self.code.strip_prefix('C').and_then(|n| n.parse().ok());
        matches!(number, Some(7504..=7519 | 7602))
    }
}

impl Report {
    /// Reads the log of `ptxas -v`.
    ///
    /// # Errors
    /// [`PtxasError::Unreadable`] when the log names an entry and not its registers or its spills:
    /// a number that is missing is never taken for zero.
    pub fn parse(log: &str) -> Result<Self, PtxasError> {
        let mut report = Self::default();
        let mut drafts: Vec<Draft> = Vec::new();
        // The function that the next line of spills is about.
        let mut subject = "";
        for raw in log.lines() {
            let Some(line) = LogLine::parse(raw) else {
                if let Some(draft) = drafts.iter_mut().find(|d| d.entry.name == subject) {
                    draft.frame(raw);
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
                draft.used(line.text);
            }
        }
        for draft in drafts {
            report.entries.push(draft.finish()?);
        }
        Ok(report)
    }

    /// The entry of that name.
    #[must_use]
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// The advisories that [are errors](Advisory::is_error).
    pub fn errors(&self) -> impl Iterator<Item = &Advisory> {
        self.advisories.iter().filter(|a| a.is_error())
    }
}

/// An entry of which not all has been read.
struct Draft {
    entry: Entry,
    has_registers: bool,
    has_frame: bool,
}

impl Draft {
    fn new(name: &str) -> Self {
        Self {
            entry: Entry {
                name: name.to_owned(),
                ..Entry::default()
            },
            has_registers: false,
            has_frame: false,
        }
    }

    /// Reads `    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads`.
    fn frame(&mut self, raw: &str) {
        let [stack, stores, loads] = ["stack frame", "spill stores", "spill loads"]
            .map(|what| parts(raw).find_map(|part| bytes_of(part, what)));
        if let (Some(stack), Some(stores), Some(loads)) = (stack, stores, loads) {
            self.entry.stack_bytes = stack;
            self.entry.spill_store_bytes = stores;
            self.entry.spill_load_bytes = loads;
            self.has_frame = true;
        }
    }

    /// Reads `Used 10 registers, used 2 barriers, 256 bytes smem, 360 bytes cmem[0]`.
    fn used(&mut self, text: &str) {
        for part in parts(text) {
            let mut words = part.split_whitespace();
            match (words.next(), words.next(), words.next()) {
                (Some("Used"), Some(count), Some("registers")) => {
                    if let Ok(count) = count.parse() {
                        self.entry.registers = count;
                        self.has_registers = true;
                    }
                }
                (Some("used"), Some(count), Some("barriers")) => {
                    self.entry.barriers = count.parse().unwrap_or(0);
                }
                (Some(count), Some("bytes"), Some("smem")) => {
                    self.entry.shared_bytes = count.parse().unwrap_or(0);
                }
                (Some(count), Some("bytes"), Some(bank)) if bank.starts_with("cmem[") => {
                    let bytes: u32 = count.parse().unwrap_or(0);
                    let before = self.entry.cmem_bytes.unwrap_or(0);
                    self.entry.cmem_bytes = Some(before.saturating_add(bytes));
                }
                _ => {}
            }
        }
    }

    fn finish(self) -> Result<Entry, PtxasError> {
        let missing = match (self.has_registers, self.has_frame) {
            (true, true) => return Ok(self.entry),
            (false, _) => "the registers",
            (true, false) => "the stack frame and the spills",
        };
        Err(PtxasError::Unreadable {
            entry: self.entry.name,
            what: missing,
        })
    }
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim)
}

/// The number in `12 bytes spill loads`.
fn bytes_of(part: &str, what: &str) -> Option<u32> {
    let count = part.strip_suffix(what)?.trim_end().strip_suffix("bytes")?;
    count.trim().parse().ok()
}

/// The name in `Compiling entry function 'name' for 'sm_90a'`.
fn compiled_entry(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("Compiling entry function '")?;
    rest.split_once('\'').map(|(name, _)| name)
}

/// The advisory in `(C7508) text`, if the line has a code and is no error already.
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
        line: line.line.or_else(|| line_in(text)),
        text: text.trim().to_owned(),
    })
}

/// The number in `... around line 23 by compiler ...`.
fn line_in(text: &str) -> Option<u32> {
    let (_, rest) = text.split_once("around line ")?;
    rest.split_whitespace().next()?.parse().ok()
}
