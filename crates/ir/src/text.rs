//! The readable form of a kernel, and its hash.
//!
//! The text leaves locations out: two checkouts, and two files with the same
//! program, print the same.

use crate::machine::{Effects, Memory, Touch};
use crate::ops::Op;
use crate::program::{Block, Kernel, ParamKind, StmtKind};
use crate::sync::Sync;
use crate::tensor_map::MapMode;
use crate::types::Type;
use crate::value::{At, BarRef, Operand, Place, RegId, View};
use std::fmt::{self, Write};

impl Kernel {
    /// The program's identity: a hash of its text.
    ///
    /// Locations are left out, so that moving a line changes nothing.
    pub fn hash(&self) -> String {
        hash(self)
    }

    /// The identity of the code: a hash of the text without the declared
    /// [bounds](crate::bounds) of parameters, on which no instruction depends.
    ///
    /// Kernels with the same code have the same PTX; a proof holds for one
    /// [`hash`](Self::hash).
    pub fn code_hash(&self) -> String {
        hash(&Code(self))
    }
}

fn hash(text: &impl fmt::Display) -> String {
    blake3::hash(text.to_string().as_bytes()).to_hex()[..32].to_owned()
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text(f, true)
    }
}

/// A kernel whose text leaves the bounds of parameters out.
struct Code<'a>(&'a Kernel);

impl fmt::Display for Code<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.text(f, false)
    }
}

impl Kernel {
    fn text(&self, f: &mut fmt::Formatter<'_>, with_bounds: bool) -> fmt::Result {
        let [x, y, z] = self.cluster;
        write!(f, "kernel {} threads {}", self.name, self.threads())?;
        if self.cluster_size() > 1 {
            write!(f, " cluster {x}x{y}x{z}")?;
        }
        if self.co_resident {
            write!(f, " co-resident")?;
        }
        writeln!(f, " shared {} bytes", self.shared_bytes)?;
        for p in &self.params {
            let settled = if p.settled { " settled" } else { "" };
            let bounds = match with_bounds {
                true => self.show_bounds(p),
                false => String::new(),
            };
            match &p.kind {
                ParamKind::Scalar(ty) => writeln!(f, "  param {}: {ty}{bounds}", p.name)?,
                ParamKind::Pointer(d) => writeln!(f, "  param {}: *{d}{settled}{bounds}", p.name)?,
                ParamKind::TensorMap(m) => {
                    write!(f, "  param {}: tensor map {} ", p.name, m.dtype)?;
                    match &m.mode {
                        MapMode::Tiled => write!(f, "box {:?}", m.tile)?,
                        MapMode::Stepped { steps } => {
                            write!(f, "box {:?} by {steps:?}", m.tile)?;
                        }
                        MapMode::Im2col {
                            lower,
                            upper,
                            channels,
                            pixels,
                            steps,
                        } => write!(
                            f,
                            "im2col {lower:?} {upper:?} {channels}x{pixels} by {steps:?}"
                        )?,
                    }
                    writeln!(f, " {}{settled}", m.swizzle)?;
                }
            }
        }
        if with_bounds {
            f.write_str(&self.show_limits())?;
        }
        for t in &self.tiles {
            let l = t.layout;
            write!(
                f,
                "  tile {}: {} x {}[{} x {}] {} at {}",
                t.name, t.stages, t.dtype, l.rows, l.cols, l.swizzle, t.offset
            )?;
            if let Some(a) = t.alias {
                write!(f, " alias {}", self.tile(a).name)?;
            }
            writeln!(f)?;
        }
        for b in &self.barriers {
            writeln!(f, "  mbarrier {}[{}] at {}", b.name, b.len, b.offset)?;
        }
        for n in &self.named {
            writeln!(f, "  named barrier {} = {}", n.name, n.id)?;
        }
        let section = |f: &mut fmt::Formatter<'_>, title: String, b: &Block| match b.0.is_empty() {
            true => writeln!(f, "{title} {{}}"),
            false => {
                writeln!(f, "{title} {{")?;
                self.block(f, b, 1)?;
                writeln!(f, "}}")
            }
        };
        if !self.prologue.0.is_empty() {
            section(f, "prologue".into(), &self.prologue)?;
        }
        for r in &self.roles {
            let last = r.first_warp.saturating_add(r.warps).saturating_sub(1);
            let mut title = format!("role {} warps {}..={last}", r.name, r.first_warp);
            if let Some(n) = r.registers {
                let _ = write!(title, " registers {n}");
            }
            section(f, title, &r.body)?;
        }
        match self.epilogue.0.is_empty() {
            true => Ok(()),
            false => section(f, "epilogue".into(), &self.epilogue),
        }
    }
}

impl Kernel {
    fn block(&self, f: &mut fmt::Formatter<'_>, b: &Block, depth: usize) -> fmt::Result {
        let pad = "  ".repeat(depth);
        for s in &b.0 {
            match &s.kind {
                StmtKind::Op(Op::ReadParam(op)) => {
                    let (r, p) = (op.dst, self.param(op.param));
                    writeln!(f, "{pad}{r}:{} = param {}", op.ty, p.name)?;
                }
                StmtKind::Op(op) => {
                    let mut line = Line::new(self);
                    op.effects(&mut line);
                    let defs = line.defs.join(", ");
                    let args = line.args.join(", ");
                    f.write_str(&pad)?;
                    if !defs.is_empty() {
                        write!(f, "{defs} = ")?;
                    }
                    f.write_str(&op.name())?;
                    if !args.is_empty() {
                        write!(f, " {args}")?;
                    }
                    writeln!(f)?;
                }
                StmtKind::If { cond, then, other } => {
                    writeln!(f, "{pad}if {cond} {{")?;
                    self.block(f, then, depth + 1)?;
                    if !other.0.is_empty() {
                        writeln!(f, "{pad}}} else {{")?;
                        self.block(f, other, depth + 1)?;
                    }
                    writeln!(f, "{pad}}}")?;
                }
                StmtKind::For {
                    var,
                    from,
                    to,
                    step,
                    body,
                    unroll,
                } => {
                    write!(f, "{pad}for {var} from {from} below {to} by {step}")?;
                    if let Some(u) = unroll {
                        write!(f, " unroll {u}")?;
                    }
                    writeln!(f, " {{")?;
                    self.block(f, body, depth + 1)?;
                    writeln!(f, "{pad}}}")?;
                }
                StmtKind::While { head, cond, body } => {
                    writeln!(f, "{pad}while {{")?;
                    self.block(f, head, depth + 1)?;
                    writeln!(f, "{pad}}} {cond} {{")?;
                    self.block(f, body, depth + 1)?;
                    writeln!(f, "{pad}}}")?;
                }
                StmtKind::Elect { body } => {
                    writeln!(f, "{pad}elect {{")?;
                    self.block(f, body, depth + 1)?;
                    writeln!(f, "{pad}}}")?;
                }
            }
        }
        Ok(())
    }

    /// A barrier as messages name it: `full[%3]`.
    pub fn show_bar(&self, b: &BarRef) -> String {
        let mut s = format!("{}[{}]", self.barrier(b.bar).name, b.index);
        if let Some(p) = b.peer {
            let _ = write!(s, "@{p}");
        }
        s
    }

    fn show_place(&self, p: &Place) -> String {
        let mut s = format!("{}[{}]+{}", self.tile(p.tile).name, p.stage, p.byte);
        if p.offset != 0 {
            let _ = write!(s, "+{}", p.offset);
        }
        if let Some(peer) = p.peer {
            let _ = write!(s, "@{peer}");
        }
        s
    }

    fn show_view(&self, v: &View) -> String {
        let t = self.tile(v.tile);
        let mut s = format!("{}[{}]", t.name, v.stage);
        let whole = (v.row, v.rows, v.col, v.cols) == (0, t.layout.rows, 0, t.layout.cols);
        if !whole {
            let (r, c) = (v.row + v.rows, v.col + v.cols);
            let _ = write!(s, "[{}..{r}, {}..{c}]", v.row, v.col);
        }
        if let Some(peer) = v.peer {
            let _ = write!(s, "@{peer}");
        }
        s
    }
}

/// Collects the operands of one op, in the order in which it names them.
struct Line<'a> {
    kernel: &'a Kernel,
    defs: Vec<String>,
    args: Vec<String>,
}

impl<'a> Line<'a> {
    fn new(kernel: &'a Kernel) -> Self {
        Self {
            kernel,
            defs: Vec::new(),
            args: Vec::new(),
        }
    }

    fn push(&mut self, s: String) {
        self.args.push(s);
    }
}

/// A constant as an author would write it.
fn constant(bits: u64, ty: Type) -> String {
    match ty {
        Type::F32 => format!("{:?}", f32::from_bits(bits as u32)),
        Type::F16 => format!("{:?}", half::f16::from_bits(bits as u16)),
        Type::Bf16 => format!("{:?}", half::bf16::from_bits(bits as u16)),
        Type::I32 => format!("{}", bits as u32 as i32),
        Type::I64 => format!("{}", bits as i64),
        Type::Pred => format!("{}", bits != 0),
        _ => format!("{bits}"),
    }
}

impl Effects for Line<'_> {
    fn def(&mut self, r: RegId) {
        let ty = self.kernel.ty(r);
        self.defs.push(format!("{r}:{ty}"));
    }
    fn arg(&mut self, o: Operand, ty: Type) {
        self.push(match o {
            Operand::Reg(r) => r.to_string(),
            Operand::Imm(bits) => constant(bits, ty),
        });
    }
    fn touch(&mut self, t: &Touch) {
        let k = self.kernel;
        let s = match &t.memory {
            Memory::At(At::Shared(p), _) => k.show_place(p),
            Memory::At(At::Global { addr, offset }, _) => format!("[{addr}+{offset}]"),
            Memory::View(v) => k.show_view(v),
            Memory::Tensor(p) => k.param(*p).name.clone(),
            Memory::Global(addr, bytes) => format!("[{addr}; {bytes} bytes]"),
            Memory::Run(p, bytes) => format!("{}; {bytes} bytes", k.show_place(p)),
            Memory::Rows(p, _) => k.show_place(p),
            // Printed as a result or an operand.
            Memory::Register(_) => return,
        };
        self.push(s);
        if let crate::machine::Completion::Bytes(bar) = &t.completion {
            let b = format!("→ {}", k.show_bar(bar));
            if !self.args.contains(&b) {
                self.push(b);
            }
        }
        if let Some(mask) = t.multicast {
            let m = format!("multicast {mask}");
            if !self.args.contains(&m) {
                self.push(m);
            }
        }
    }
    fn sync(&mut self, s: &Sync) {
        let k = self.kernel;
        match s {
            Sync::Init { bar, count } => {
                self.push(format!("{}, {count} arrivals", k.show_bar(bar)))
            }
            Sync::Inval { bar } | Sync::CopyArrive { bar, .. } => self.push(k.show_bar(bar)),
            Sync::Arrive { bar, count, tx, .. } => {
                self.push(format!("{}, {count}", k.show_bar(bar)));
                if let Some(tx) = tx {
                    self.push(format!("expect {tx} bytes"));
                }
            }
            Sync::ExpectTx { bar, tx } => self.push(format!("{}, {tx} bytes", k.show_bar(bar))),
            Sync::Wait { bar, parity, .. } | Sync::Test { bar, parity, .. } => {
                self.push(format!("{}, parity {parity}", k.show_bar(bar)));
            }
            Sync::NamedSync { bar, threads } | Sync::NamedArrive { bar, threads } => {
                self.push(format!("{}, {threads} threads", k.named(*bar).name));
            }
            Sync::NamedTally {
                bar, threads, pred, ..
            } => {
                let name = &k.named(*bar).name;
                self.push(format!("{name}, {threads} threads, {pred}"));
            }
            Sync::BulkWait { pending, .. } | Sync::WgmmaWait { pending } => {
                self.push(format!("{pending} pending"));
            }
            Sync::CopyWait { pending } => {
                self.push(pending.map_or("all".into(), |n| format!("{n} pending")));
            }
            Sync::SetMaxRegs { count, .. } => self.push(count.to_string()),
            Sync::Fence(fence) => {
                let about = fence.address();
                about.into_iter().for_each(|o| self.push(o.to_string()));
            }
            Sync::Warp { mask } => self.push(match mask {
                Operand::Imm(m) => format!("{m:#x}"),
                Operand::Reg(r) => r.to_string(),
            }),
            Sync::Cta
            | Sync::ClusterArrive { .. }
            | Sync::ClusterWait
            | Sync::BulkCommit
            | Sync::CopyCommit
            | Sync::WgmmaFence
            | Sync::WgmmaCommit
            | Sync::Exit => {}
        }
    }
    fn whole_warp(&mut self) {}
}
