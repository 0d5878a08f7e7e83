//! Text of operands, addresses and descriptors.
//!
//! A program register keeps its number: `%17` is `%r17`, `%h17`, `%d17` or `%p17`, depending on its
//! width. The numbers of the printer's temporaries start after those of the program registers.

use crate::lines::LineTable;
use crate::names::comment;
use std::collections::BTreeSet;
use std::fmt::Write;
use warpline_ir::{
    Asm, BarRef, Kernel, Loc, MemoryAddress, NamedId, Operand, ParamId, ParamKind, RegId,
    SharedAddress, TileId, TileLayout, Type, View, WgmmaDescriptor,
};

/// The register with the start of shared memory.
pub(crate) const SHARED: &str = "%smem";
/// The register with the start of shared memory in units of 16 bytes, for descriptors.
pub(crate) const SHARED_16: &str = "%smem16";

/// Writes the instructions of an entry.
pub(crate) struct Writer<'k> {
    pub(crate) kernel: &'k Kernel,
    pub(crate) text: String,
    pub(crate) line_table: LineTable,
    pub(crate) params: &'k [String],
    pub(crate) entry_values: EntryValues,
    /// The nesting depth of the current statement.
    pub(crate) depth: usize,
    registers: u32,
    labels: u32,
    /// Names of the tiles and barriers of the next instruction, for its comment.
    comments: Vec<String>,
}

/// The values that the body uses and that the entry sets up before the first statement.
#[derive(Default)]
pub(crate) struct EntryValues {
    pub(crate) shared: bool,
    pub(crate) shared_16: bool,
    pub(crate) maps: BTreeSet<ParamId>,
}

impl<'k> Writer<'k> {
    pub(crate) fn new(kernel: &'k Kernel, params: &'k [String]) -> Self {
        Self {
            kernel,
            text: String::new(),
            line_table: LineTable::default(),
            params,
            entry_values: EntryValues::default(),
            depth: 0,
            registers: kernel.regs.len() as u32,
            labels: 0,
            comments: Vec::new(),
        }
    }

    /// Returns one more than the highest register number.
    pub(crate) fn register_count(&self) -> u32 {
        self.registers
    }

    /// Returns the next label number.
    pub(crate) fn next_label(&mut self) -> u32 {
        self.labels += 1;
        self.labels
    }

    /// Writes a line of text at the current depth.
    pub(crate) fn line(&mut self, text: &str) {
        let indent = 4 + 2 * self.depth;
        let _ = writeln!(self.text, "{:indent$}{text}", "");
    }

    /// Writes an instruction.
    pub(crate) fn instruction(&mut self, text: &str) {
        self.line(&format!("{text};"));
    }

    /// Writes a label, one indentation step to the left.
    pub(crate) fn place_label(&mut self, name: &str) {
        let indent = 2 + 2 * self.depth;
        let _ = writeln!(self.text, "{:indent$}{name}:", "");
    }

    /// Writes `.loc` for the following instructions.
    pub(crate) fn set_location(&mut self, loc: Loc) {
        if let Some(frame) = self.kernel.locs.author(loc)
            && let Some(directive) = self.line_table.loc(frame)
        {
            self.line(&directive);
        }
    }

    fn add_comment(&mut self, name: &str) {
        let name = comment(name);
        if !self.comments.contains(&name) {
            self.comments.push(name);
        }
    }

    /// Returns `register+constant` for `base + stage · bytes + byte + constant` in shared memory of
    /// this CTA or a peer.
    fn shared_operand(
        &mut self,
        peer: Option<Operand>,
        stage: Operand,
        stage_bytes: u32,
        byte: Operand,
        mut constant: u64,
    ) -> String {
        self.entry_values.shared = true;
        let mut at = SHARED.to_owned();
        if let Some(peer) = peer {
            let (rank, mapped) = (self.operand(peer, Type::U32), self.temp(Type::U32));
            self.instruction(&format!("mapa.shared::cluster.u32 {mapped}, {at}, {rank}"));
            at = mapped;
        }
        match stage {
            Operand::Imm(s) => add_scaled(&mut constant, s, stage_bytes),
            Operand::Reg(s) => at = self.scaled_stage(s, stage_bytes, &at),
        }
        match byte {
            Operand::Imm(b) => add_scaled(&mut constant, b, 1),
            Operand::Reg(b) => {
                let (sum, b) = (self.temp(Type::U32), self.reg(b));
                self.instruction(&format!("add.u32 {sum}, {at}, {b}"));
                at = sum;
            }
        }
        with_offset(at, constant)
    }

    /// Computes `stage · bytes + base` in a register.
    fn scaled_stage(&mut self, stage: RegId, bytes: u32, base: &str) -> String {
        let (sum, stage) = (self.temp(Type::U32), self.reg(stage));
        self.instruction(&format!("mad.lo.u32 {sum}, {stage}, {bytes}, {base}"));
        sum
    }

    fn shared_address(&mut self, p: &SharedAddress) -> String {
        let tile = self.tile(p.tile);
        let constant = u64::from(tile.offset) + u64::from(p.offset);
        self.shared_operand(p.peer, p.stage, tile.layout.stage_bytes(), p.byte, constant)
    }

    fn tile(&mut self, id: TileId) -> &'k warpline_ir::TileInfo {
        let tile = self.kernel.tile(id);
        self.add_comment(&tile.name);
        tile
    }
}

impl Asm for Writer<'_> {
    fn emit(&mut self, instruction: String) {
        // An op with a loop prefixes the instruction with its label.
        let instruction = match instruction.split_once(": ") {
            Some((label, rest)) if label.starts_with('$') => {
                self.place_label(label);
                rest
            }
            _ => instruction.as_str(),
        };
        let is_setup = ["mov.", "cvt."].iter().any(|m| instruction.starts_with(m));
        if is_setup || self.comments.is_empty() {
            return self.instruction(instruction);
        }
        let comments = std::mem::take(&mut self.comments);
        self.line(&format!("{instruction};  // {}", comments.join(", ")));
    }

    fn reg(&mut self, r: RegId) -> String {
        register(self.kernel.ty(r), r.0)
    }

    fn operand(&mut self, o: Operand, ty: Type) -> String {
        let bits = match o {
            Operand::Reg(r) => return self.reg(r),
            Operand::Imm(bits) => bits,
        };
        match ty {
            // PTX has no immediates of these types.
            Type::F16 | Type::Bf16 | Type::F16x2 | Type::Bf16x2 => self.in_reg(o, ty),
            Type::F32 => format!("0f{:08X}", bits as u32),
            Type::I32 => (bits as u32 as i32).to_string(),
            Type::I64 => (bits as i64).to_string(),
            Type::Tf32 | Type::E4m3x4 | Type::E5m2x4 => format!("{:#x}", bits as u32),
            Type::E4m3x2 | Type::E5m2x2 => format!("{:#x}", bits as u16),
            Type::Pred | Type::U8 | Type::U16 | Type::U32 | Type::U64 => bits.to_string(),
        }
    }

    fn in_reg(&mut self, o: Operand, ty: Type) -> String {
        let bits = match o {
            Operand::Reg(r) => return self.reg(r),
            Operand::Imm(bits) => bits,
        };
        let constant = match ty {
            Type::F16 | Type::Bf16 | Type::F16x2 | Type::Bf16x2 => format!("{bits:#x}"),
            _ => self.operand(o, ty),
        };
        let to = self.temp(ty);
        let class = if ty == Type::U8 { "b16" } else { ty.bits() };
        self.instruction(&format!("mov.{class} {to}, {constant}"));
        to
    }

    fn temp(&mut self, ty: Type) -> String {
        self.registers += 1;
        register(ty, self.registers - 1)
    }

    fn label(&mut self) -> String {
        format!("$again_{}", self.next_label())
    }

    fn address(&mut self, at: &MemoryAddress) -> String {
        match at {
            MemoryAddress::Shared(p) => self.shared_address(p),
            MemoryAddress::Global { addr, offset } => {
                let addr = self.in_reg(*addr, Type::U64);
                match offset {
                    0 => addr,
                    _ => format!("{addr}+{offset}"),
                }
            }
        }
    }

    fn view(&mut self, v: &View) -> String {
        let tile = self.tile(v.tile);
        let layout = &tile.layout;
        let constant = u64::from(tile.offset) + u64::from(layout.unswizzled_offset(v.row, v.col));
        self.shared_operand(
            v.peer,
            v.stage,
            layout.stage_bytes(),
            Operand::Imm(0),
            constant,
        )
    }

    fn barrier(&mut self, b: &BarRef) -> String {
        let array = self.kernel.barrier(b.bar);
        self.add_comment(&array.name);
        self.shared_operand(b.peer, b.index, 8, Operand::Imm(0), array.offset.into())
    }

    fn named(&mut self, id: NamedId) -> u32 {
        let named = self.kernel.named(id);
        self.add_comment(&named.name);
        named.id
    }

    fn param(&mut self, p: ParamId) -> String {
        let name = &self.params[p.index()];
        if let ParamKind::TensorMap(_) = self.kernel.param(p).kind {
            self.entry_values.maps.insert(p);
            map_register(name)
        } else {
            name.clone()
        }
    }

    /// The low word is one sum, so that a step along K costs one add. The high word is constant.
    fn descriptor(&mut self, v: &View, d: WgmmaDescriptor) -> String {
        self.entry_values.shared = true;
        self.entry_values.shared_16 = true;
        let tile = self.tile(v.tile);
        let layout = &tile.layout;
        let (leading, high) = layout.descriptor(d);
        let mut constant =
            (u64::from(tile.offset) + u64::from(layout.unswizzled_offset(v.row, v.col))) >> 4;
        let mut at = SHARED_16.to_owned();
        match v.stage {
            Operand::Imm(s) => add_scaled(&mut constant, s, layout.stage_bytes() >> 4),
            Operand::Reg(s) => at = self.scaled_stage(s, layout.stage_bytes() >> 4, &at),
        }
        let (low, descriptor) = (self.temp(Type::U32), self.temp(Type::U64));
        add_scaled(&mut constant, 1, leading);
        self.instruction(&format!("add.u32 {low}, {at}, {constant}"));
        self.instruction(&format!("mov.b64 {descriptor}, {{{low}, {high:#x}}}"));
        descriptor
    }

    fn layout(&self, view: &View) -> TileLayout {
        self.kernel.layout(view)
    }
}

/// Returns the register with the generic address of a tensor map.
pub(crate) fn map_register(param: &str) -> String {
    format!("%{param}")
}

/// Returns the name of a register.
fn register(ty: Type, number: u32) -> String {
    let class = match ty.bytes() {
        0 => 'p',
        1 | 2 => 'h',
        8 => 'd',
        _ => 'r',
    };
    format!("%{class}{number}")
}

/// Adds `n · bytes`. Addresses wrap, because an unproved kernel may name any stage.
fn add_scaled(constant: &mut u64, n: u64, bytes: u32) {
    *constant = constant.wrapping_add(n.wrapping_mul(bytes.into())) & u64::from(u32::MAX);
}

fn with_offset(register: String, constant: u64) -> String {
    match constant {
        0 => register,
        _ => format!("{register}+{constant}"),
    }
}
