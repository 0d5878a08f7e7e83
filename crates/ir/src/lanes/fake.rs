//! A warp with registers only, and a PTX printer that collects lines, for tests of ops.

use crate::job::Job;
use crate::layout::{TileLayout, WgmmaDescriptor};
use crate::machine::*;
use crate::ops::Instr;
use crate::sync::{MemoryOrder, SyncOp};
use crate::tensor_map::TensorMapValue;
use crate::types::Type;
use crate::value::{BarRef, MemoryAddress, NamedId, Operand, ParamId, RegId, SharedAddress, View};
use std::collections::HashMap;

/// Register `n`.
pub(crate) const fn reg(n: u32) -> RegId {
    RegId(n)
}

/// Register `n` as an operand.
pub(crate) const fn arg(n: u32) -> Operand {
    Operand::Reg(RegId(n))
}

/// The registers of one warp. An unwritten register reads as zero.
#[derive(Clone, Default)]
pub(crate) struct Warp {
    /// The active lanes.
    pub(crate) active: Mask,
    /// The value of each parameter.
    pub(crate) params: Vec<u64>,
    registers: HashMap<RegId, PerLane<[u8; 8]>>,
    predicates: HashMap<RegId, Mask>,
    /// The operations passed to [`Machine::sync`].
    pub(crate) syncs: Vec<SyncOp>,
}

impl Warp {
    /// Creates a warp with all lanes active and all registers zero.
    pub(crate) fn new() -> Self {
        Self {
            active: Mask::MAX,
            ..Self::default()
        }
    }

    /// Sets the first lanes of a register, active or not.
    pub(crate) fn with<T: Lane>(mut self, n: u32, values: &[T]) -> Self {
        let lanes = self.registers.entry(reg(n)).or_default();
        for (lane, v) in lanes.iter_mut().zip(values) {
            let bytes = bytemuck::bytes_of(v);
            lane[..bytes.len()].copy_from_slice(bytes);
        }
        self
    }

    /// Sets a predicate register.
    pub(crate) fn with_pred(mut self, n: u32, mask: Mask) -> Self {
        self.predicates.insert(reg(n), mask);
        self
    }

    /// Sets the active lanes.
    pub(crate) fn with_active(mut self, active: Mask) -> Self {
        self.active = active;
        self
    }

    /// Executes an op that must not block.
    pub(crate) fn run(mut self, op: &impl Instr) -> Self {
        assert_eq!(
            op.exec(&mut self),
            Ok(ExecStatus::Completed),
            "{}",
            op.name()
        );
        self
    }

    /// Executes an op that must fail and returns its fault.
    pub(crate) fn fault(mut self, op: &impl Instr) -> Fault {
        op.exec(&mut self).expect_err(&op.name())
    }

    /// Reads a register.
    pub(crate) fn read<T: Lane>(&self, n: u32) -> PerLane<T> {
        let lanes = self.registers.get(&reg(n)).copied().unwrap_or_default();
        lanes.map(|b| bytemuck::pod_read_unaligned(&b[..size_of::<T>()]))
    }

    /// Reads a predicate register.
    pub(crate) fn read_pred(&self, n: u32) -> Mask {
        self.predicates.get(&reg(n)).copied().unwrap_or_default()
    }
}

/// Executes an op with operands in registers 1, 2, … and returns register 0: one lane per row.
pub(crate) fn eval<T: Lane, R: Lane, const N: usize>(op: &impl Instr, rows: &[[T; N]]) -> Vec<R> {
    let mut out = Vec::new();
    for rows in rows.chunks(WARP) {
        let mut warp = Warp::new();
        for n in 0..N {
            let column: Vec<T> = rows.iter().map(|r| r[n]).collect();
            warp = warp.with(n as u32 + 1, &column);
        }
        out.extend_from_slice(&warp.run(op).read::<R>(0)[..rows.len()]);
    }
    out
}

/// Deterministic pseudo-random numbers (splitmix64).
pub(crate) fn random_words(seed: u64) -> impl Iterator<Item = u64> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    })
}

impl Machine for Warp {
    fn active(&self) -> Mask {
        self.active
    }
    fn get<T: Lane>(&mut self, o: Operand) -> PerLane<T> {
        match o {
            Operand::Reg(r) => self.read(r.0),
            Operand::Imm(x) => {
                [bytemuck::pod_read_unaligned(&x.to_le_bytes()[..size_of::<T>()]); WARP]
            }
        }
    }
    fn set<T: Lane>(&mut self, r: RegId, v: &PerLane<T>) {
        let lanes = self.registers.entry(r).or_default();
        for i in (0..WARP).filter(|i| self.active >> i & 1 == 1) {
            let bytes = bytemuck::bytes_of(&v[i]);
            lanes[i][..bytes.len()].copy_from_slice(bytes);
        }
    }
    fn pred(&mut self, o: Operand) -> Mask {
        match o {
            Operand::Reg(r) => self.read_pred(r.0),
            Operand::Imm(x) => Mask::from(x != 0).wrapping_neg(),
        }
    }
    fn set_pred(&mut self, r: RegId, m: Mask) {
        let old = self.predicates.entry(r).or_default();
        *old = *old & !self.active | m & self.active;
    }
    fn special(&mut self, s: Special) -> PerLane<u64> {
        // Warp 3 of a CTA. Most other special registers have a recognizable constant.
        std::array::from_fn(|lane| match s {
            Special::Tid => 96 + lane as u64,
            Special::LaneId => lane as u64,
            Special::WarpId => 3,
            Special::CtaId(axis) => 100 + axis.index() as u64,
            Special::GlobalTimer => u64::MAX - 1,
            _ => 7,
        })
    }
    fn param(&mut self, p: ParamId) -> u64 {
        self.params[p.index()]
    }
    fn sync(&mut self, s: &SyncOp) -> Exec {
        self.syncs.push(*s);
        Ok(ExecStatus::Completed)
    }
    fn tensor_map(&mut self, _: ParamId) -> Result<TensorMapValue, Fault> {
        registers_only()
    }
    fn load(&mut self, _: Mask, _: &MemoryAddress, _: usize) -> Result<LaneBytes, Fault> {
        registers_only()
    }
    fn store(&mut self, _: Mask, _: &MemoryAddress, _: usize, _: &LaneBytes) -> Result<(), Fault> {
        registers_only()
    }
    fn atomic(
        &mut self,
        _: &MemoryAddress,
        _: usize,
        _: MemoryOrder,
        _: &mut dyn FnMut(usize, u64) -> u64,
    ) -> Result<PerLane<u64>, Fault> {
        registers_only()
    }
    fn resolve(&mut self, _: &SharedAddress, _: usize, _: usize) -> Result<ResolvedAddress, Fault> {
        registers_only()
    }
    fn resolve_view(&mut self, _: &View, _: usize) -> Result<ResolvedAddress, Fault> {
        registers_only()
    }
    fn resolve_bar(&mut self, _: &BarRef, _: usize) -> Result<ResolvedBarrier, Fault> {
        registers_only()
    }
    fn layout(&self, _: &View) -> TileLayout {
        TileLayout {
            element_bytes: 0,
            rows: 0,
            cols: 0,
            swizzle: crate::layout::Swizzle::None,
        }
    }
    fn submit(&mut self, _: Mask, _: Job) -> Result<(), Fault> {
        registers_only()
    }
}

fn registers_only<T>() -> Result<T, Fault> {
    Err(Fault::new(
        FaultKind::OutOfBounds,
        "accesses memory, but the test warp has only registers",
    ))
}

/// Returns the PTX of an op, one line per instruction; temporaries are `%t0`, `%t1`, ….
pub(crate) fn ptx(op: &impl Instr) -> Vec<String> {
    let mut recorder = PtxRecorder::default();
    op.asm(&mut recorder);
    recorder.lines
}

#[derive(Default)]
struct PtxRecorder {
    lines: Vec<String>,
    temps: usize,
}

impl Asm for PtxRecorder {
    fn emit(&mut self, instruction: String) {
        self.lines.push(instruction);
    }
    fn reg(&mut self, r: RegId) -> String {
        r.to_string()
    }
    fn operand(&mut self, o: Operand, ty: Type) -> String {
        match o {
            Operand::Imm(x) if ty == Type::F32 => format!("0f{x:08X}"),
            o => o.to_string(),
        }
    }
    fn in_reg(&mut self, o: Operand, ty: Type) -> String {
        match o {
            Operand::Reg(r) => self.reg(r),
            Operand::Imm(x) => {
                let t = self.temp(ty);
                self.emit(format!("mov.{} {t}, {x:#x}", ty.bits()));
                t
            }
        }
    }
    fn temp(&mut self, _: Type) -> String {
        self.temps += 1;
        format!("%t{}", self.temps - 1)
    }
    fn label(&mut self) -> String {
        "label".into()
    }
    fn address(&mut self, _: &MemoryAddress) -> String {
        "address".into()
    }
    fn view(&mut self, _: &View) -> String {
        "view".into()
    }
    fn barrier(&mut self, _: &BarRef) -> String {
        "barrier".into()
    }
    fn named(&mut self, id: NamedId) -> u32 {
        id.0
    }
    fn param(&mut self, p: ParamId) -> String {
        p.to_string()
    }
    fn descriptor(&mut self, _: &View, _: WgmmaDescriptor) -> String {
        "descriptor".into()
    }
    fn layout(&self, view: &View) -> TileLayout {
        Machine::layout(&Warp::new(), view)
    }
}
