//! `ldmatrix`, `stmatrix` and `movmatrix`: 8×8 matrices of 16-bit elements, distributed over a warp.
//!
//! Lane `8j + r` provides the shared address of row `r` of matrix `j`. Register
//! `j` of lane `t` holds two adjacent elements of that matrix:
//!
//! ```text
//! plain   row t/4, columns 2(t mod 4) and 2(t mod 4) + 1
//! trans   column t/4, rows 2(t mod 4) and 2(t mod 4) + 1
//! ```

use super::control::require_whole_warp;
use super::{Exactness, Instr, OpInfo, Uniform, require_type};
use crate::machine::{
    AccessKind, Asm, Completion, Effects, Exec, ExecStatus, LaneBytes, Machine, Mask, MemoryAccess,
    MemoryRegion, PerLane, Proxy, WARP,
};
use crate::target::Target;
use crate::types::Type;
use crate::value::{MemoryAddress, Operand, RegId, SharedAddress};

/// Locates half `half` of register `j` in lane `t`: returns the lane that provides the row address, and the column.
fn element(j: usize, t: usize, half: usize, trans: bool) -> (usize, usize) {
    let (a, b) = (t / 4, 2 * (t % 4) + half);
    let (row, col) = if trans { (b, a) } else { (a, b) };
    (8 * j + row, col)
}

/// Returns the lanes that provide the addresses of `n` matrices.
fn address_lanes(n: usize) -> Mask {
    Mask::MAX >> (WARP - 8 * n)
}

/// Returns the memory access of `n` matrices.
fn matrix_access(at: SharedAddress, n: usize, access: AccessKind) -> MemoryAccess {
    MemoryAccess {
        memory: MemoryRegion::MatrixRows(at, 8 * n as u32),
        access,
        proxy: Proxy::Generic,
        completion: Completion::Now,
        multicast: None,
    }
}

/// Returns `.trans` or nothing.
fn suffix(trans: bool) -> &'static str {
    if trans { ".trans" } else { "" }
}

/// Rejects an unsupported number of matrices, and memory of a peer.
fn legal_matrices(name: &str, n: usize, at: &SharedAddress) -> Result<(), String> {
    if ![1, 2, 4].contains(&n) {
        return Err(format!(
            "{name} of {n} matrices; the number must be 1, 2 or 4"
        ));
    }
    match at.peer {
        None => Ok(()),
        Some(_) => Err(format!(
            "{name} on a tile of a peer; the tile must be in the same CTA"
        )),
    }
}

/// Loads 8×8 matrices (`ldmatrix`).
#[derive(Clone, PartialEq, Debug)]
pub struct LoadMatrix {
    /// One register per matrix, two elements each (`u32`, or a packed pair).
    pub dst: Vec<RegId>,
    /// The address of one 16-byte row in each lane.
    pub at: SharedAddress,
    /// Transposes the matrices.
    pub trans: bool,
}

impl Instr for LoadMatrix {
    const INFO: OpInfo = OpInfo {
        name: "load_matrix",
        ptx: "ldmatrix.sync.aligned.m8n8.{x1,x2,x4}{.trans}.shared.b16",
        doc: "loads 1, 2 or 4 8×8 matrices of 16-bit elements, distributed over the warp",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("load_matrix.x{}{}", self.dst.len(), suffix(self.trans))
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.whole_warp();
        self.dst.iter().for_each(|&r| e.def(r));
        e.access(&matrix_access(self.at, self.dst.len(), AccessKind::Read));
    }
    fn uniform(&self, _: Uniform) -> Uniform {
        Uniform::Lane
    }
    fn asm(&self, a: &mut dyn Asm) {
        let dst: Vec<_> = self.dst.iter().map(|&r| a.reg(r)).collect();
        let at = a.address(&MemoryAddress::Shared(self.at));
        a.emit(format!(
            "ldmatrix.sync.aligned.m8n8.x{}{}.shared.b16 {{{}}}, [{at}]",
            dst.len(),
            suffix(self.trans),
            dst.join(", ")
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        require_whole_warp(m)?;
        let rows = m.load(
            address_lanes(self.dst.len()),
            &MemoryAddress::Shared(self.at),
            16,
        )?;
        for (j, &r) in self.dst.iter().enumerate() {
            let pair: PerLane<u32> = std::array::from_fn(|t| {
                let half = |h| {
                    let (lane, col) = element(j, t, h, self.trans);
                    u16::from_le_bytes([rows[lane][2 * col], rows[lane][2 * col + 1]])
                };
                u32::from(half(0)) | u32::from(half(1)) << 16
            });
            m.set(r, &pair);
        }
        Ok(ExecStatus::Completed)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        legal_matrices(Self::INFO.name, self.dst.len(), &self.at)
    }
}

/// Stores 8×8 matrices (`stmatrix`).
#[derive(Clone, PartialEq, Debug)]
pub struct StoreMatrix {
    /// One register per matrix, two elements each (`u32`, or a packed pair).
    pub src: Vec<Operand>,
    /// The address of one 16-byte row in each lane.
    pub at: SharedAddress,
    /// Transposes the matrices.
    pub trans: bool,
}

impl Instr for StoreMatrix {
    const INFO: OpInfo = OpInfo {
        name: "store_matrix",
        ptx: "stmatrix.sync.aligned.m8n8.{x1,x2,x4}{.trans}.shared.b16",
        doc: "stores 1, 2 or 4 8×8 matrices of 16-bit elements that are distributed over the warp",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("store_matrix.x{}{}", self.src.len(), suffix(self.trans))
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.whole_warp();
        e.access(&matrix_access(self.at, self.src.len(), AccessKind::Write));
        self.src.iter().for_each(|&o| e.arg(o, Type::U32));
    }
    fn asm(&self, a: &mut dyn Asm) {
        let at = a.address(&MemoryAddress::Shared(self.at));
        let src: Vec<_> = self.src.iter().map(|&o| a.in_reg(o, Type::U32)).collect();
        a.emit(format!(
            "stmatrix.sync.aligned.m8n8.x{}{}.shared.b16 [{at}], {{{}}}",
            src.len(),
            suffix(self.trans),
            src.join(", ")
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        require_whole_warp(m)?;
        let mut rows: LaneBytes = [[0; 16]; WARP];
        for (j, &o) in self.src.iter().enumerate() {
            let pairs = m.get::<u32>(o);
            for (t, &pair) in pairs.iter().enumerate() {
                for half in 0..2 {
                    let (lane, col) = element(j, t, half, self.trans);
                    let bits = (pair >> (16 * half)) as u16;
                    rows[lane][2 * col..2 * col + 2].copy_from_slice(&bits.to_le_bytes());
                }
            }
        }
        m.store(
            address_lanes(self.src.len()),
            &MemoryAddress::Shared(self.at),
            16,
            &rows,
        )?;
        Ok(ExecStatus::Completed)
    }
    fn legal(&self, target: &Target) -> Result<(), String> {
        if target.capability < (9, 0) {
            return Err(format!("{} does not support stmatrix", target.name));
        }
        legal_matrices(Self::INFO.name, self.src.len(), &self.at)
    }
}

/// Transposes an 8×8 matrix in registers (`movmatrix`).
#[derive(Clone, PartialEq, Debug)]
pub struct TransposeMatrix {
    /// Type of the registers, two elements each (`u32`, or a packed pair).
    pub ty: Type,
    /// The transposed matrix.
    pub dst: RegId,
    /// The matrix.
    pub src: Operand,
}

impl Instr for TransposeMatrix {
    const INFO: OpInfo = OpInfo {
        name: "transpose_matrix",
        ptx: "movmatrix.sync.aligned.m8n8.trans.b16",
        doc: "transposes an 8×8 matrix of 16-bit elements in the registers of a warp",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("transpose_matrix.{}", self.ty)
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.whole_warp();
        e.def(self.dst);
        e.arg(self.src, self.ty);
    }
    fn uniform(&self, _: Uniform) -> Uniform {
        Uniform::Lane
    }
    fn asm(&self, a: &mut dyn Asm) {
        let (dst, src) = (a.reg(self.dst), a.in_reg(self.src, self.ty));
        a.emit(format!(
            "movmatrix.sync.aligned.m8n8.trans.b16 {dst}, {src}"
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        require_whole_warp(m)?;
        let src = m.get::<u32>(self.src);
        let mut dst = [0u32; WARP];
        for (t, &pair) in src.iter().enumerate() {
            for half in 0..2 {
                // Lane 4·col + row/2 of the result holds element (row, col).
                let (row, col) = element(0, t, half, false);
                dst[4 * col + row / 2] |= (pair >> (16 * half) & 0xffff) << (16 * (row % 2));
            }
        }
        m.set(self.dst, &dst);
        Ok(ExecStatus::Completed)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        let pairs = [Type::U32, Type::F16x2, Type::Bf16x2];
        require_type(Self::INFO.name, self.ty, &pairs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::fake::{Cta, Rng, shared_address};
    use crate::lanes::fake::{arg, ptx, reg};
    use crate::layout::{Swizzle, TileLayout};
    use crate::machine::FaultKind;

    /// Returns a CTA with 32 rows of 16 bytes; register 1 of lane `i` holds the offset of row `31 - i`.
    fn cta() -> Cta {
        let layout = TileLayout {
            element_bytes: 2,
            rows: 32,
            cols: 8,
            swizzle: Swizzle::None,
        };
        let mut cta = Cta::new(1, 0).tile(128, layout);
        let rows: PerLane<u32> = std::array::from_fn(|i| 16 * (31 - i as u32));
        cta.warp = cta.warp.clone().with(1, &rows);
        cta
    }

    fn load(n: u32, trans: bool) -> LoadMatrix {
        LoadMatrix {
            dst: (0..n).map(|i| reg(10 + i)).collect(),
            at: shared_address(0, arg(1)),
            trans,
        }
    }

    fn store(n: u32, trans: bool) -> StoreMatrix {
        StoreMatrix {
            src: (0..n).map(|i| arg(10 + i)).collect(),
            at: shared_address(0, arg(1)),
            trans,
        }
    }

    /// Transposes register 10 into register 11.
    fn transpose() -> TransposeMatrix {
        TransposeMatrix {
            ty: Type::U32,
            dst: reg(11),
            src: arg(10),
        }
    }

    /// Returns element (row, col) of matrix `j`.
    fn tile_element(cta: &Cta, j: usize, row: usize, col: usize) -> u16 {
        let at = 128 + 16 * (31 - (8 * j + row)) + 2 * col;
        u16::from_le_bytes([cta.shared[0][at], cta.shared[0][at + 1]])
    }

    #[test]
    fn ldmatrix_returns_the_documented_fragment() {
        for (n, trans) in [1, 2, 4].into_iter().flat_map(|n| [(n, false), (n, true)]) {
            let mut cta = cta();
            cta.run(&load(n, trans));
            for j in 0..n as usize {
                let got = cta.warp.read::<u32>(10 + j as u32);
                // Figure of the PTX ISA: four lanes per row, two adjacent elements each.
                for (row, col) in (0..8).flat_map(|r| (0..8).map(move |c| (r, c))) {
                    let want = match trans {
                        false => tile_element(&cta, j, row, col),
                        true => tile_element(&cta, j, col, row),
                    };
                    let pair = got[4 * row + col / 2];
                    let half = if col % 2 == 0 {
                        pair as u16
                    } else {
                        (pair >> 16) as u16
                    };
                    assert_eq!(half, want, "x{n} trans {trans} matrix {j} at {row}, {col}");
                }
            }
        }
    }

    #[test]
    fn stmatrix_inverts_ldmatrix_and_writes_no_other_row() {
        let mut rng = Rng(4);
        for (n, trans) in [1, 2, 4].into_iter().flat_map(|n| [(n, false), (n, true)]) {
            let mut cta = cta();
            let want: Vec<PerLane<u32>> = (0..n)
                .map(|_| std::array::from_fn(|_| rng.next() as u32))
                .collect();
            for (i, v) in want.iter().enumerate() {
                cta.set(reg(10 + i as u32), v);
            }
            let before = cta.shared[0].clone();
            cta.run(&store(n, trans));
            // The addresses are in reverse lane order.
            let untouched = 128 + 16 * (32 - 8 * n as usize);
            assert_eq!(cta.shared[0][..untouched], before[..untouched]);
            assert_eq!(cta.shared[0][128 + 512..], before[128 + 512..]);
            (0..n).for_each(|i| cta.set(reg(10 + i), &[0u32; WARP]));
            cta.run(&load(n, trans));
            for (i, v) in want.iter().enumerate() {
                assert_eq!(cta.warp.read::<u32>(10 + i as u32), *v);
            }
        }
    }

    #[test]
    fn movmatrix_equals_a_transposed_load() {
        let (mut plain, mut trans) = (cta(), cta());
        plain.run(&load(1, false));
        plain.run(&transpose());
        trans.run(&load(1, true));
        let got = plain.warp.read::<u32>(11);
        assert_eq!(got, trans.warp.read::<u32>(10));
        assert_ne!(got, plain.warp.read::<u32>(10));
    }

    #[test]
    fn matrix_ops_fault_with_inactive_lanes() {
        let mut cta = cta();
        cta.warp.active = 0xff;
        assert_eq!(cta.fault(&load(1, false)).kind, FaultKind::Convergence);
        assert_eq!(cta.fault(&store(1, false)).kind, FaultKind::Convergence);
        assert_eq!(cta.fault(&transpose()).kind, FaultKind::Convergence);
    }

    #[test]
    fn matrix_ops_print_their_count_and_transposition() {
        assert_eq!(
            ptx(&load(1, false)),
            ["ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%10}, [address]"]
        );
        assert_eq!(
            ptx(&load(2, true)),
            ["ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%10, %11}, [address]"]
        );
        assert_eq!(
            ptx(&store(4, true)),
            ["stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [address], {%10, %11, %12, %13}"]
        );
        assert_eq!(
            ptx(&transpose()),
            ["movmatrix.sync.aligned.m8n8.trans.b16 %11, %10"]
        );
    }

    #[test]
    fn unsupported_counts_types_and_peers_are_rejected() {
        let t = Target::SM_90A;
        assert_eq!(load(4, true).legal(&t), Ok(()));
        assert!(
            load(3, true)
                .legal(&t)
                .unwrap_err()
                .contains("of 3 matrices")
        );
        let remote = SharedAddress {
            peer: Some(Operand::Imm(1)),
            ..shared_address(0, arg(1))
        };
        let op = StoreMatrix {
            at: remote,
            ..store(1, false)
        };
        assert!(op.legal(&t).unwrap_err().contains("on a tile of a peer"));
        assert_eq!(transpose().legal(&t), Ok(()));
        let op = TransposeMatrix {
            ty: Type::F32,
            ..transpose()
        };
        assert!(op.legal(&t).unwrap_err().contains("does not support f32"));
    }
}
