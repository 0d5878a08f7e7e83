//! Policies of address ranges.

use super::{Evict, code, legal_rest, rest_suffix};
use crate::lanes::lanes_of;
use crate::machine::{Asm, Effects, Exec, Fault, FaultKind, Machine, Step};
use crate::ops::{Exactness, Info, Instr};
use crate::target::Target;
use crate::types::Type;
use crate::value::{Operand, RegId};

/// Makes a policy: the first bytes of a range are kept one way, the rest of it another.
#[derive(Clone, PartialEq, Debug)]
pub struct CreateRangePolicy {
    /// The policy (`u64`).
    pub dst: RegId,
    /// What becomes of the first bytes.
    pub primary: Evict,
    /// What becomes of the rest: [`Evict::First`] or [`Evict::Unchanged`].
    pub rest: Evict,
    /// Where the range starts (`u64`).
    pub addr: Operand,
    /// The first bytes (`u32`), no more than all.
    pub bytes: Operand,
    /// All bytes (`u32`), from 1 on.
    pub total: Operand,
}

/// The power of two that the range is cut by: blocks of at least 4 KiB, so
/// that 128 cover it. The hardware takes an approximate logarithm, in which
/// what is less than 11 units above a power of two is that power.
fn block_bits(total: u32) -> u32 {
    let bits = (total as f32).to_bits();
    let (log, above) = ((bits >> 23) - 127, bits & 0x7f_ffff);
    (log + u32::from(above > 10)).saturating_sub(7).max(12)
}

/// The bits of a policy, as an H200 makes them: size, number of the first block, blocks.
fn policy(primary: Evict, rest: Evict, addr: u64, bytes: u32, total: u32) -> u64 {
    let shift = block_bits(total);
    let past = bytes.wrapping_add((1 << shift) - 1);
    let first = addr >> shift;
    let end = addr.wrapping_add(past.into()) >> shift;
    let blocks = end.wrapping_sub(first).min(0x7f);
    let kind = 0x18 | code(primary, rest);
    kind << 56 | u64::from(shift - 12) << 52 | (first & 0x7f) << 44 | blocks << 37
}

impl Instr for CreateRangePolicy {
    const INFO: Info = Info {
        name: "create_range_policy",
        ptx: "createpolicy.range.global.L2::{evict_first,evict_last,evict_normal,evict_unchanged}{.L2::evict_first}.b64",
        doc: "makes a cache policy: how the L2 keeps the first bytes of an address range, and the rest of it",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        let rest = rest_suffix(self.rest, ".");
        format!("create_range_policy.{}{rest}", self.primary.name())
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.def(self.dst);
        e.arg(self.addr, Type::U64);
        e.arg(self.bytes, Type::U32);
        e.arg(self.total, Type::U32);
    }
    fn asm(&self, a: &mut dyn Asm) {
        let (dst, addr) = (a.reg(self.dst), a.in_reg(self.addr, Type::U64));
        let bytes = a.operand(self.bytes, Type::U32);
        let total = a.operand(self.total, Type::U32);
        a.emit(format!(
            "createpolicy.range.global.L2::{}{}.b64 {dst}, [{addr}], {bytes}, {total}",
            self.primary.name(),
            rest_suffix(self.rest, ".L2::")
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let addr = m.get::<u64>(self.addr);
        let (bytes, total) = (m.get::<u32>(self.bytes), m.get::<u32>(self.total));
        let mut made = [0; 32];
        for lane in lanes_of(m.active()) {
            let (bytes, total) = (bytes[lane], total[lane]);
            check(bytes, total).map_err(|text| Fault::new(FaultKind::Operand, text))?;
            made[lane] = policy(self.primary, self.rest, addr[lane], bytes, total);
        }
        m.set(self.dst, &made);
        Ok(Step::Next)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        legal_rest(self.rest)?;
        match (self.bytes, self.total) {
            (Operand::Imm(bytes), Operand::Imm(total)) => check(bytes as u32, total as u32),
            _ => Ok(()),
        }
    }
}

fn check(bytes: u32, total: u32) -> Result<(), String> {
    if total > 0 && bytes <= total {
        return Ok(());
    }
    Err(format!(
        "a policy is for the first bytes of a range of at least one, no more than it has, not for {bytes} of {total}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::fake::{Warp, arg, ptx, reg};

    fn create(primary: Evict, rest: Evict) -> CreateRangePolicy {
        CreateRangePolicy {
            dst: reg(0),
            primary,
            rest,
            addr: arg(1),
            bytes: arg(2),
            total: arg(3),
        }
    }

    fn given(addr: u64, bytes: u32, total: u32) -> Warp {
        Warp::new()
            .with(1, &[addr; 32])
            .with(2, &[bytes; 32])
            .with(3, &[total; 32])
    }

    #[test]
    fn a_policy_has_the_bits_the_hardware_gives_it() {
        // Read from an H200.
        const BASE: u64 = 0x7f12_3400_0000;
        for (addr, bytes, total, bits) in [
            (BASE, 4096, 8192, 0x1c0_0002),
            (BASE, 1 << 20, 1 << 21, 0x1c2_0080),
            (BASE, 1 << 20, 1 << 22, 0x1c3_0040),
            (BASE + 128, 1 << 20, 1 << 21, 0x1c2_0082),
            (BASE, 100, 1000, 0x1c0_0002),
            (BASE, 1 << 24, 1 << 26, 0x1c7_0040),
            (BASE, 1 << 30, 1 << 31, 0x1cc_3480),
            (BASE, 0, 1 << 20, 0x1c1_0000),
            (BASE + (1 << 20), 1 << 20, 1 << 21, 0x1c2_4080),
            (BASE + 12345 * 128, 3 << 16, 7 << 18, 0x1c2_601a),
            (BASE, 1, 1, 0x1c0_0002),
            (BASE, 1 << 31, u32::MAX, 0x1cd_1a80),
            (BASE, 1 << 22, 1 << 22, 0x1c3_00fe),
            (BASE, 0x12_0000, 0x25_0000, 0x1c3_0048),
        ] {
            let op = create(Evict::Last, Evict::Unchanged);
            let made = given(addr, bytes, total).run(&op).read::<u64>(0)[5];
            assert_eq!(made, bits << 36, "{addr:#x} {bytes:#x} {total:#x}");
        }
        for (primary, rest, kind) in [
            (Evict::First, Evict::Unchanged, 0x1a),
            (Evict::Last, Evict::First, 0x1d),
            (Evict::Normal, Evict::Unchanged, 0x1e),
            (Evict::Unchanged, Evict::Unchanged, 0x18),
        ] {
            let made = given(0, 1, 1).run(&create(primary, rest));
            assert_eq!(made.read::<u64>(0)[0] >> 56, kind);
        }
    }

    #[test]
    fn a_range_just_above_a_power_of_two_counts_as_one() {
        // Where an H200 goes over to larger blocks.
        for (log, above) in [
            (19, 1),
            (20, 2),
            (21, 3),
            (22, 6),
            (23, 11),
            (24, 22),
            (31, 2689),
        ] {
            let over = (1 << log) + above;
            assert_eq!(block_bits(over - 1), log - 7, "{log}");
            assert_eq!(block_bits(over), log - 6, "{log}");
        }
    }

    #[test]
    fn ptx_of_range_policies() {
        assert_eq!(
            ptx(&create(Evict::Last, Evict::Unchanged)),
            ["createpolicy.range.global.L2::evict_last.b64 %0, [%1], %2, %3"]
        );
        assert_eq!(
            ptx(&create(Evict::Normal, Evict::First)),
            ["createpolicy.range.global.L2::evict_normal.L2::evict_first.b64 %0, [%1], %2, %3"]
        );
    }

    #[test]
    fn legality() {
        let op = |rest, bytes: u32, total: u32| CreateRangePolicy {
            bytes: Operand::imm(bytes),
            total: Operand::imm(total),
            ..create(Evict::First, rest)
        };
        let legal = |rest, bytes, total| op(rest, bytes, total).legal(&Target::SM_90A);
        assert_eq!(legal(Evict::First, 5, 5), Ok(()));
        let why = legal(Evict::First, 6, 5).unwrap_err();
        assert!(why.ends_with("not for 6 of 5"), "{why}");
        assert!(legal(Evict::Unchanged, 0, 0).is_err());
        let why = legal(Evict::Normal, 1, 2).unwrap_err();
        assert!(why.ends_with("not evict_normal"), "{why}");
        let fault = given(0, 2, 1).fault(&create(Evict::First, Evict::First));
        assert_eq!(fault.kind, FaultKind::Operand);
    }
}
