//! The text form of a kernel, and two hashes.
//!
//! The text has no source locations, so the same program in another file or
//! checkout prints the same text. [`Kernel::text_hash`] hashes this text.
//! [`Kernel::program_hash`] also ignores names and irrelevant orders.

use crate::machine::{Effects, MemoryAccess, MemoryRegion};
use crate::ops::Op;
use crate::program::{Block, Kernel, ParamKind, StmtKind};
use crate::sync::SyncOp;
use crate::tensor_map::TensorMapMode;
use crate::types::Type;
use crate::value::{
    BarId, BarRef, MemoryAddress, NamedId, Operand, ParamId, RegId, RoleId, SharedAddress, TileId,
    View,
};
use std::fmt::{self, Write};

mod program_hash;

impl Kernel {
    /// Returns the hash of the kernel's text, which has names and declared bounds but no source
    /// locations.
    ///
    /// Proofs and compiled code are cached by it. [`program_hash`](Self::program_hash) identifies
    /// the program independently of names.
    pub fn text_hash(&self) -> String {
        hash(&self.to_string())
    }
}

/// Returns the first 32 hexadecimal digits of a text's hash.
fn hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..32].to_owned()
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let printer = Printer {
            kernel: self,
            names: &DeclaredNames(self),
        };
        writeln!(f, "kernel {} {}", self.name, printer.resources())?;
        for (id, p) in (0..).map(ParamId).zip(&self.params) {
            writeln!(f, "  {}{}", printer.param(id), self.show_bounds(p))?;
        }
        f.write_str(&self.show_limits())?;
        printer
            .shared_memory()
            .try_for_each(|line| writeln!(f, "  {line}"))?;
        printer.sections().try_for_each(|(title, block)| {
            if block.0.is_empty() {
                return writeln!(f, "{title} {{}}");
            }
            writeln!(f, "{title} {{")?;
            printer.block(f, block, 1)?;
            writeln!(f, "}}")
        })
    }
}

/// The names that a text uses for registers, parameters, tiles, barriers and roles.
trait Names {
    fn reg(&self, r: RegId) -> String;
    fn param(&self, p: ParamId) -> String;
    fn tile(&self, t: TileId) -> String;
    fn barrier(&self, b: BarId) -> String;
    fn named(&self, n: NamedId) -> String;
    fn role(&self, r: RoleId) -> String;

    /// Returns the suffix of a PDL-safe parameter.
    fn pdl_safe(&self) -> &'static str {
        " pdl-safe"
    }

    fn operand(&self, o: Operand) -> String {
        match o {
            Operand::Reg(r) => self.reg(r),
            Operand::Imm(x) => x.to_string(),
        }
    }
}

/// The names that the author declared.
struct DeclaredNames<'a>(&'a Kernel);

impl Names for DeclaredNames<'_> {
    fn reg(&self, r: RegId) -> String {
        r.to_string()
    }
    fn param(&self, p: ParamId) -> String {
        self.0.param(p).name.clone()
    }
    fn tile(&self, t: TileId) -> String {
        self.0.tile(t).name.clone()
    }
    fn barrier(&self, b: BarId) -> String {
        self.0.barrier(b).name.clone()
    }
    fn named(&self, n: NamedId) -> String {
        self.0.named(n).name.clone()
    }
    fn role(&self, r: RoleId) -> String {
        self.0.roles[r.index()].name.clone()
    }
}

/// Prints a kernel with one set of names.
#[derive(Clone, Copy)]
struct Printer<'a> {
    kernel: &'a Kernel,
    names: &'a dyn Names,
}

impl<'a> Printer<'a> {
    /// Formats threads, cluster and shared memory.
    fn resources(&self) -> String {
        let k = self.kernel;
        let [x, y, z] = k.cluster;
        let mut text = format!("threads {}", k.threads());
        if k.cluster_size() > 1 {
            let _ = write!(text, " cluster {x}x{y}x{z}");
        }
        if k.co_resident {
            text.push_str(" co-resident");
        }
        let _ = write!(text, " shared {} bytes", k.shared_bytes);
        text
    }

    /// Formats a parameter without its bounds.
    fn param(&self, id: ParamId) -> String {
        let p = self.kernel.param(id);
        let kind = match &p.kind {
            ParamKind::Scalar(ty) => ty.to_string(),
            ParamKind::Pointer(d) => format!("*{d}"),
            ParamKind::TensorMap(m) => {
                let shape = match &m.mode {
                    TensorMapMode::Tiled => format!("box {:?}", m.tile),
                    TensorMapMode::Strided { element_strides } => {
                        format!("box {:?} by {element_strides:?}", m.tile)
                    }
                    TensorMapMode::Im2col {
                        lower,
                        upper,
                        channels,
                        pixels,
                        element_strides,
                    } => format!(
                        "im2col {lower:?} {upper:?} {channels}x{pixels} by {element_strides:?}"
                    ),
                };
                format!("tensor map {} {shape} {}", m.dtype, m.swizzle)
            }
        };
        let scalar = matches!(p.kind, ParamKind::Scalar(_));
        let pdl_safe = match p.pdl_safe && !scalar {
            true => self.names.pdl_safe(),
            false => "",
        };
        format!("param {}: {kind}{pdl_safe}", self.names.param(id))
    }

    /// Formats tiles, mbarriers and named barriers, one line each.
    fn shared_memory(self) -> impl Iterator<Item = String> + use<'a> {
        let (k, names) = (self.kernel, self.names);
        let tiles = (0..).map(TileId).zip(&k.tiles).map(move |(id, t)| {
            let l = t.layout;
            let alias = t.alias.map(|a| format!(" alias {}", names.tile(a)));
            format!(
                "tile {}: {} x {}[{} x {}] {} at {}{}",
                names.tile(id),
                t.stages,
                t.dtype,
                l.rows,
                l.cols,
                l.swizzle,
                t.offset,
                alias.unwrap_or_default()
            )
        });
        let barriers = (0..).map(BarId).zip(&k.barriers).map(move |(id, b)| {
            format!("mbarrier {}[{}] at {}", names.barrier(id), b.len, b.offset)
        });
        let named = (0..)
            .map(NamedId)
            .zip(&k.named)
            .map(move |(id, n)| format!("named barrier {} = {}", names.named(id), n.id));
        tiles.chain(barriers).chain(named)
    }

    /// Returns the code sections with their titles; an empty prologue or epilogue is omitted.
    fn sections(self) -> impl Iterator<Item = (String, &'a Block)> {
        let k = self.kernel;
        let roles = (0..).map(RoleId).zip(&k.roles).map(move |(id, r)| {
            let last = r.first_warp.saturating_add(r.warps).saturating_sub(1);
            let name = self.names.role(id);
            let mut title = format!("role {name} warps {}..={last}", r.first_warp);
            if let Some(n) = r.registers {
                let _ = write!(title, " registers {n}");
            }
            (title, &r.body)
        });
        let section = |title: &str, block: &'a Block| {
            (!block.0.is_empty()).then(|| (title.to_owned(), block))
        };
        section("prologue", &k.prologue)
            .into_iter()
            .chain(roles)
            .chain(section("epilogue", &k.epilogue))
    }

    /// Formats the results and the rest of an op: `%3:u32`, `add.u32 %1, %2`.
    fn op(&self, op: &Op) -> (String, String) {
        let mut operands = OperandPrinter {
            printer: *self,
            defs: Vec::new(),
            args: Vec::new(),
        };
        op.effects(&mut operands);
        let (name, args) = match op {
            Op::ReadParam(op) => ("param".to_owned(), self.names.param(op.param)),
            Op::TensorPrefetch(op) => ("tensor_prefetch".to_owned(), self.names.param(op.map)),
            _ => (op.name(), operands.args.join(", ")),
        };
        let space = if args.is_empty() { "" } else { " " };
        (operands.defs.join(", "), format!("{name}{space}{args}"))
    }

    /// Formats the line of a statement, without its nested blocks.
    fn head(&self, kind: &StmtKind) -> String {
        let names = self.names;
        match kind {
            StmtKind::Op(op) => match self.op(op) {
                (defs, rest) if defs.is_empty() => rest,
                (defs, rest) => format!("{defs} = {rest}"),
            },
            StmtKind::If { cond, .. } => format!("if {}", names.reg(*cond)),
            StmtKind::For {
                var,
                from,
                to,
                step,
                unroll,
                ..
            } => {
                let [from, to, step] = [from, to, step].map(|o| names.operand(*o));
                let unroll = unroll.map(|u| format!(" unroll {u}")).unwrap_or_default();
                let var = names.reg(*var);
                format!("for {var} from {from} below {to} by {step}{unroll}")
            }
            StmtKind::While { .. } => "while".to_owned(),
            StmtKind::Elect { .. } => "elect".to_owned(),
        }
    }

    fn block(&self, f: &mut fmt::Formatter<'_>, b: &Block, depth: usize) -> fmt::Result {
        let pad = "  ".repeat(depth);
        for s in &b.0 {
            let head = self.head(&s.kind);
            match &s.kind {
                StmtKind::Op(_) => writeln!(f, "{pad}{head}")?,
                StmtKind::If { then, other, .. } => {
                    writeln!(f, "{pad}{head} {{")?;
                    self.block(f, then, depth + 1)?;
                    if !other.0.is_empty() {
                        writeln!(f, "{pad}}} else {{")?;
                        self.block(f, other, depth + 1)?;
                    }
                    writeln!(f, "{pad}}}")?;
                }
                StmtKind::For { body, .. } | StmtKind::Elect { body } => {
                    writeln!(f, "{pad}{head} {{")?;
                    self.block(f, body, depth + 1)?;
                    writeln!(f, "{pad}}}")?;
                }
                StmtKind::While {
                    head: head_block,
                    cond,
                    body,
                } => {
                    writeln!(f, "{pad}{head} {{")?;
                    self.block(f, head_block, depth + 1)?;
                    writeln!(f, "{pad}}} {} {{", self.names.reg(*cond))?;
                    self.block(f, body, depth + 1)?;
                    writeln!(f, "{pad}}}")?;
                }
            }
        }
        Ok(())
    }

    fn bar(&self, b: &BarRef) -> String {
        let names = self.names;
        let name = names.barrier(b.bar);
        format!("{name}[{}]{}", names.operand(b.index), self.peer(b.peer))
    }

    fn shared_address(&self, p: &SharedAddress) -> String {
        let [stage, byte] = [p.stage, p.byte].map(|o| self.names.operand(o));
        let mut s = format!("{}[{stage}]+{byte}", self.names.tile(p.tile));
        if p.offset != 0 {
            let _ = write!(s, "+{}", p.offset);
        }
        s + &self.peer(p.peer)
    }

    fn view(&self, v: &View) -> String {
        let t = self.kernel.tile(v.tile);
        let name = self.names.tile(v.tile);
        let mut s = format!("{name}[{}]", self.names.operand(v.stage));
        let is_whole_tile = (v.row, v.rows, v.col, v.cols) == (0, t.layout.rows, 0, t.layout.cols);
        if !is_whole_tile {
            let (r, c) = (v.row + v.rows, v.col + v.cols);
            let _ = write!(s, "[{}..{r}, {}..{c}]", v.row, v.col);
        }
        s + &self.peer(v.peer)
    }

    /// Formats the cluster rank of a peer CTA; empty for this CTA.
    fn peer(&self, peer: Option<Operand>) -> String {
        peer.map(|p| format!("@{}", self.names.operand(p)))
            .unwrap_or_default()
    }
}

impl Kernel {
    /// Formats an mbarrier for messages: `full[%3]`.
    pub fn show_bar(&self, b: &BarRef) -> String {
        let names = &DeclaredNames(self);
        Printer {
            kernel: self,
            names,
        }
        .bar(b)
    }
}

/// Collects the formatted operands of one op, in order.
struct OperandPrinter<'a> {
    printer: Printer<'a>,
    defs: Vec<String>,
    args: Vec<String>,
}

impl OperandPrinter<'_> {
    fn push(&mut self, s: String) {
        self.args.push(s);
    }
}

/// Formats a constant of a type.
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

impl Effects for OperandPrinter<'_> {
    fn def(&mut self, r: RegId) {
        let (name, ty) = (self.printer.names.reg(r), self.printer.kernel.ty(r));
        self.defs.push(format!("{name}:{ty}"));
    }
    fn arg(&mut self, o: Operand, ty: Type) {
        self.push(match o {
            Operand::Reg(r) => self.printer.names.reg(r),
            Operand::Imm(bits) => constant(bits, ty),
        });
    }
    fn access(&mut self, access: &MemoryAccess) {
        let printer = self.printer;
        let value = |o: Operand| printer.names.operand(o);
        let s = match &access.memory {
            MemoryRegion::PerLane(MemoryAddress::Shared(p), _) => printer.shared_address(p),
            MemoryRegion::PerLane(MemoryAddress::Global { addr, offset }, _) => {
                format!("[{}+{offset}]", value(*addr))
            }
            MemoryRegion::View(v) => printer.view(v),
            MemoryRegion::Tensor(p) => printer.names.param(*p),
            MemoryRegion::Global(addr, bytes) => {
                format!("[{}; {} bytes]", value(*addr), value(*bytes))
            }
            MemoryRegion::Shared(p, bytes) => {
                format!("{}; {} bytes", printer.shared_address(p), value(*bytes))
            }
            MemoryRegion::MatrixRows(p, _) => printer.shared_address(p),
            // Registers are printed as results or operands.
            MemoryRegion::Register(_) => return,
        };
        self.push(s);
        if let crate::machine::Completion::Bytes(bar) = &access.completion {
            let b = format!("→ {}", printer.bar(bar));
            if !self.args.contains(&b) {
                self.push(b);
            }
        }
        if let Some(mask) = access.multicast {
            let m = format!("multicast {}", value(mask));
            if !self.args.contains(&m) {
                self.push(m);
            }
        }
    }
    fn sync(&mut self, s: &SyncOp) {
        let printer = self.printer;
        let value = |o: Operand| printer.names.operand(o);
        match s {
            SyncOp::Init { bar, count } => {
                self.push(format!("{}, {count} arrivals", printer.bar(bar)))
            }
            SyncOp::Inval { bar } | SyncOp::CopyArrive { bar, .. } => self.push(printer.bar(bar)),
            SyncOp::Arrive { bar, count, tx, .. } => {
                self.push(format!("{}, {}", printer.bar(bar), value(*count)));
                if let Some(tx) = tx {
                    self.push(format!("expect {} bytes", value(*tx)));
                }
            }
            SyncOp::ExpectTx { bar, tx } => {
                self.push(format!("{}, {} bytes", printer.bar(bar), value(*tx)));
            }
            SyncOp::Wait { bar, parity, .. } | SyncOp::Test { bar, parity, .. } => {
                self.push(format!("{}, parity {}", printer.bar(bar), value(*parity)));
            }
            SyncOp::NamedSync { bar, threads } | SyncOp::NamedArrive { bar, threads } => {
                self.push(format!("{}, {threads} threads", printer.names.named(*bar)));
            }
            SyncOp::NamedReduce {
                bar, threads, pred, ..
            } => {
                let (name, pred) = (printer.names.named(*bar), value(*pred));
                self.push(format!("{name}, {threads} threads, {pred}"));
            }
            SyncOp::BulkWait { pending, .. } | SyncOp::WgmmaWait { pending } => {
                self.push(format!("{pending} pending"));
            }
            SyncOp::CopyWait { pending } => {
                self.push(pending.map_or("all".into(), |n| format!("{n} pending")));
            }
            SyncOp::SetMaxRegs { count, .. } => self.push(count.to_string()),
            SyncOp::Fence(fence) => {
                let address = fence.address();
                address.into_iter().for_each(|o| self.push(value(o)));
            }
            SyncOp::Warp { mask } => self.push(match mask {
                Operand::Imm(m) => format!("{m:#x}"),
                Operand::Reg(_) => value(*mask),
            }),
            SyncOp::Cta
            | SyncOp::ClusterArrive { .. }
            | SyncOp::ClusterWait
            | SyncOp::BulkCommit
            | SyncOp::CopyCommit
            | SyncOp::WgmmaFence
            | SyncOp::WgmmaCommit
            | SyncOp::Exit => {}
        }
    }
    fn whole_warp(&mut self) {}
}
