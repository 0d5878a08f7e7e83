//! Register ops: one kernel tests every form of an op, each form on its own columns.
//!
//! Each thread loads one value of every operand, runs the op, and stores every result. A CTA processes
//! one block of the input; a block has all columns one after the other, so the kernel does not depend
//! on the number of blocks.

use crate::data;
use crate::tolerance::{Tolerance, error_bound_of};
use crate::trial::{Column, OpTrial, OutputPart, TrialOutput};
use warpline_ir::Target;
use warpline_ir::ops::arith::{Add, MadWide, MulWide};
use warpline_ir::ops::compare::{Cmp, Select, Setp};
use warpline_ir::ops::memory::{Load, LoadCache, Store, StoreCache};
use warpline_ir::ops::special::{ReadParam, ReadSpecial};
use warpline_ir::*;
use warpline_kernels::{Buffer, LaunchStep};

/// The threads of a CTA, and so the values of a column in a block.
pub const THREADS: usize = 64;

/// The sizes of a value in memory, in bytes.
const WIDTHS: [usize; 6] = [1, 2, 4, 8, 16, 32];

/// The input or the output buffer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum BufferSide {
    /// The input.
    Input,
    /// The output.
    Output,
}

/// The forms of one op.
pub struct Columns {
    op: &'static str,
    kernel: Kernel,
    /// The address of the thread's first value of each size, in the input and in the output.
    bases: [[RegId; 6]; 2],
    /// The columns with random data of each form, in the input and in the initial output.
    random_columns: Vec<Vec<(BufferSide, Column)>>,
    results: Vec<OutputPart>,
    /// The bytes of a block of the input and of the output.
    bytes: [usize; 2],
}

impl Columns {
    /// Creates an empty kernel for an op of the op table.
    pub fn new(op: &'static str) -> Self {
        let mut locs = Locs::default();
        let loc = locs.intern(&[Frame {
            file: file!(),
            line: line!(),
            column: 1,
        }]);
        let role = Role {
            name: "all".to_owned(),
            first_warp: 0,
            warps: THREADS as u32 / 32,
            registers: None,
            body: Block::default(),
            loc,
        };
        let pointer = |name: &str| Param::new(name, ParamKind::Pointer(DType::U64), loc);
        let kernel = Kernel {
            name: format!("op_{op}"),
            target: Target::default(),
            params: vec![pointer("in"), pointer("out")],
            tiles: vec![],
            barriers: vec![],
            named: vec![],
            roles: vec![role],
            prologue: Block::default(),
            epilogue: Block::default(),
            regs: vec![],
            cluster: [1, 1, 1],
            shared_bytes: 0,
            limits: Vec::new(),
            co_resident: false,
            locs,
        };
        let mut columns = Self {
            op,
            kernel,
            bases: [[RegId(0); 6]; 2],
            random_columns: vec![],
            results: vec![],
            bytes: [0; 2],
        };
        columns.bases = [(); 2].map(|()| [(); 6].map(|()| columns.reg(Type::U64)));
        columns
    }

    /// Returns the name of the op in the op table.
    pub fn op_name(&self) -> &'static str {
        self.op
    }

    /// Declares a register.
    pub fn reg(&mut self, ty: Type) -> RegId {
        self.kernel.regs.push(RegInfo {
            ty,
            role: None,
            loc: Loc(0),
        });
        RegId(self.kernel.regs.len() as u32 - 1)
    }

    /// Declares a register and returns it as an operand.
    pub fn arg(&mut self, ty: Type) -> Operand {
        self.reg(ty).into()
    }

    /// Returns a new register and a constant as operands.
    pub fn register_and_constant(&mut self, ty: Type) -> [Operand; 2] {
        [self.arg(ty), constant(ty)]
    }

    /// Adds a form if it is legal: loads its operands and stores its results.
    pub fn form(&mut self, op: impl Into<Op>) {
        let op: Op = op.into();
        if op.legal(&Target::default()).is_err() {
            return;
        }
        let mut uses = RegisterUses::default();
        op.effects(&mut uses);
        self.random_columns.push(vec![]);
        let read = uses.read.into_iter();
        let from: Vec<Column> = read.map(|(reg, ty)| self.load_operand(reg, ty)).collect();
        let name = op.name();
        self.emit(op);
        for reg in uses.written {
            self.store_result(&name, reg, &from);
        }
    }

    /// Adds a form of a memory op if it is legal. `op` receives the address of `n` consecutive values
    /// of the thread in the input or the output.
    ///
    /// If the op reads them, the values get random initial data.
    pub fn memory_form(
        &mut self,
        side: BufferSide,
        (ty, n): (Type, usize),
        reads: bool,
        op: impl FnOnce(MemoryAddress) -> Op,
    ) {
        let column = Column {
            ty,
            n,
            at: self.bytes[side as usize],
        };
        if column.stride() > WIDTHS[WIDTHS.len() - 1] {
            return;
        }
        let op = op(self.address(side, &column));
        if op.legal(&Target::default()).is_err() {
            return;
        }
        let mut uses = RegisterUses::default();
        op.effects(&mut uses);
        let allocated = self.column(side, ty, n);
        self.random_columns.push(vec![]);
        let addresses = self.bases.as_flattened().to_vec();
        let read = uses.read.into_iter();
        let read = read.filter(|(reg, _)| !addresses.contains(reg));
        let mut from: Vec<Column> = read.map(|(reg, ty)| self.load_operand(reg, ty)).collect();
        let name = op.name();
        self.emit(op);
        for reg in uses.written {
            self.store_result(&name, reg, &from);
        }
        if reads {
            self.fill_randomly(side, allocated.clone());
        }
        if side == BufferSide::Output {
            from.clear();
            self.output_part(&name, &allocated, from);
        }
    }

    /// Loads random data into a register that the next op reads.
    fn load_operand(&mut self, reg: RegId, ty: Type) -> Column {
        let column = self.column(BufferSide::Input, ty, 1);
        self.load(reg, &column);
        self.fill_randomly(BufferSide::Input, column.clone());
        column
    }

    fn fill_randomly(&mut self, side: BufferSide, column: Column) {
        if let Some(form) = self.random_columns.last_mut() {
            form.push((side, column));
        }
    }

    /// Stores a register that the last op wrote.
    fn store_result(&mut self, name: &str, reg: RegId, from: &[Column]) {
        let column = self.column(BufferSide::Output, self.kernel.ty(reg), 1);
        self.store(reg, &column);
        self.output_part(name, &column, from.to_vec());
    }

    fn output_part(&mut self, name: &str, column: &Column, from: Vec<Column>) {
        self.results.push(OutputPart {
            name: name.to_owned(),
            ty: column.ty,
            at: column.at..column.at + THREADS * column.stride(),
            tolerance: error_bound_of(self.op).map_or(Tolerance::Exact, Tolerance::ErrorBound),
            from,
        });
    }

    /// Returns the trial on `blocks` blocks of random operands.
    pub fn trial(mut self, blocks: usize) -> OpTrial {
        self.emit_addresses();
        let mut input = vec![0; blocks * self.bytes[0]];
        let mut initial = vec![0xff; blocks * self.bytes[1]];
        for (i, form) in self.random_columns.iter().enumerate() {
            let types: Vec<Type> = (form.iter())
                .flat_map(|(_, c)| std::iter::repeat_n(c.ty, c.n))
                .collect();
            let mut values = data::columns(&types, blocks * THREADS, i as u64).into_iter();
            for (side, column) in form {
                let bytes = match side {
                    BufferSide::Input => &mut input,
                    BufferSide::Output => &mut initial,
                };
                let (width, block) = (Column::width(column.ty), self.bytes[*side as usize]);
                for (j, values) in values.by_ref().take(column.n).enumerate() {
                    for (n, x) in values.into_iter().enumerate() {
                        let thread = column.at + n % THREADS * column.stride();
                        let at = n / THREADS * block + thread + j * width;
                        bytes[at..at + width].copy_from_slice(&x.to_le_bytes()[..width]);
                    }
                }
            }
        }
        OpTrial {
            name: self.op.to_owned(),
            covers: vec![self.op],
            step: LaunchStep::new(self.kernel, [blocks as u32, 1, 1])
                .pointer("in", Buffer::Input(0))
                .pointer("out", Buffer::Output(0)),
            inputs: vec![input],
            outputs: vec![TrialOutput {
                initial,
                block: self.bytes[1],
                from: self.bytes[0],
                parts: self.results,
            }],
        }
    }

    /// Allocates a column of `n` values per thread.
    fn column(&mut self, side: BufferSide, ty: Type, n: usize) -> Column {
        let at = self.bytes[side as usize];
        let column = Column { ty, n, at };
        self.bytes[side as usize] += THREADS * column.stride();
        column
    }

    /// Returns the address of the thread's values.
    fn address(&self, side: BufferSide, column: &Column) -> MemoryAddress {
        let width = column.stride().ilog2() as usize;
        MemoryAddress::Global {
            addr: self.bases[side as usize][width].into(),
            offset: column.at as i32,
        }
    }

    fn load(&mut self, reg: RegId, column: &Column) {
        let (at, cache) = (self.address(BufferSide::Input, column), LoadCache::DEFAULT);
        if column.ty != Type::Pred {
            let (ty, dst) = (column.ty, vec![reg]);
            return self.emit(Load { ty, dst, at, cache });
        }
        let (ty, word) = (Type::U32, self.reg(Type::U32));
        let dst = vec![word];
        self.emit(Load { ty, dst, at, cache });
        self.emit(Setp {
            cmp: Cmp::Ne,
            ty,
            dst: reg,
            a: word.into(),
            b: Operand::Imm(0),
        });
    }

    fn store(&mut self, reg: RegId, column: &Column) {
        let (at, cache) = (
            self.address(BufferSide::Output, column),
            StoreCache::DEFAULT,
        );
        if column.ty != Type::Pred {
            let (ty, src) = (column.ty, vec![reg.into()]);
            return self.emit(Store { ty, src, at, cache });
        }
        let (ty, word) = (Type::U32, self.reg(Type::U32));
        self.emit(Select {
            ty,
            dst: word,
            cond: reg.into(),
            a: Operand::Imm(1),
            b: Operand::Imm(0),
        });
        let src = vec![word.into()];
        self.emit(Store { ty, src, at, cache });
    }

    /// Emits the address computation of every thread: `buffer + cta · block + thread · width`.
    fn emit_addresses(&mut self) {
        let [tid, cta] = [Special::Tid, Special::CtaId(Axis::X)].map(|which| {
            let dst = self.reg(Type::U32);
            self.emit_prologue(ReadSpecial { dst, which });
            dst.into()
        });
        for side in 0..2 {
            let [start, block] = [(); 2].map(|()| self.reg(Type::U64));
            let (param, ty) = (ParamId(side as u32), Type::U64);
            self.emit_prologue(ReadParam {
                dst: start,
                param,
                ty,
            });
            let bytes = Operand::Imm(self.bytes[side] as u64);
            self.emit_prologue(MadWide {
                ty: Type::U32,
                dst: block,
                a: cta,
                b: bytes,
                c: start.into(),
            });
            for (i, width) in WIDTHS.into_iter().enumerate() {
                let offset = self.reg(Type::U64);
                self.emit_prologue(MulWide {
                    ty: Type::U32,
                    dst: offset,
                    a: tid,
                    b: Operand::Imm(width as u64),
                });
                self.emit_prologue(Add {
                    ty,
                    dst: self.bases[side][i],
                    a: block.into(),
                    b: offset.into(),
                });
            }
        }
    }

    fn emit_prologue(&mut self, op: impl Into<Op>) {
        self.kernel.prologue.0.push(stmt(op.into()));
    }

    fn emit(&mut self, op: impl Into<Op>) {
        self.kernel.roles[0].body.0.push(stmt(op.into()));
    }
}

fn stmt(op: Op) -> Stmt {
    Stmt {
        kind: StmtKind::Op(op),
        loc: Loc(0),
    }
}

/// Returns a constant of a type: 1.5, 3 or −3.
pub fn constant(ty: Type) -> Operand {
    Operand::Imm(match ty {
        Type::Pred => 1,
        Type::F32 | Type::Tf32 => 0x3fc0_0000,
        Type::F16 => 0x3e00,
        Type::Bf16 => 0x3fc0,
        Type::F16x2 => 0x3e00_3e00,
        Type::Bf16x2 => 0x3fc0_3fc0,
        Type::I32 => 0xffff_fffd,
        Type::I64 => -3i64 as u64,
        _ => 3,
    })
}

/// The registers that an op reads, each once, and those that it writes.
#[derive(Default)]
struct RegisterUses {
    read: Vec<(RegId, Type)>,
    written: Vec<RegId>,
}

impl Effects for RegisterUses {
    fn def(&mut self, r: RegId) {
        self.written.push(r);
    }
    fn arg(&mut self, o: Operand, ty: Type) {
        if let Operand::Reg(r) = o
            && !self.read.iter().any(|(known, _)| *known == r)
        {
            self.read.push((r, ty));
        }
    }
    fn access(&mut self, _: &MemoryAccess) {}
    fn sync(&mut self, _: &warpline_ir::SyncOp) {}
    fn whole_warp(&mut self) {}
}
