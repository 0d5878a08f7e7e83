//! Cache policies of address ranges.

use super::{EvictionPriority, legal_secondary, priority_code, secondary_suffix};
use crate::lanes::lanes_of;
use crate::machine::{Asm, Effects, Exec, ExecStatus, Fault, FaultKind, Machine};
use crate::ops::{Exactness, Instr, OpInfo};
use crate::target::Target;
use crate::types::Type;
use crate::value::{Operand, RegId};

/// Creates a policy: the primary priority for the first bytes of a range, the secondary for the rest.
#[derive(Clone, PartialEq, Debug)]
pub struct CreateRangePolicy {
    /// The policy (`u64`).
    pub dst: RegId,
    /// Priority of the first bytes.
    pub primary: EvictionPriority,
    /// Priority of the rest: [`EvictionPriority::First`] or [`EvictionPriority::Unchanged`].
    pub secondary: EvictionPriority,
    /// Start of the range (`u64`).
    pub addr: Operand,
    /// Size of the primary part (`u32`), at most `total`.
    pub bytes: Operand,
    /// Size of the range (`u32`), at least 1.
    pub total: Operand,
}

/// Returns the log2 of the block size: blocks of at least 4 KiB, so that 128
/// of them cover the range. The logarithm of the hardware is approximate: a
/// value less than 11 ulps above a power of two counts as that power.
fn block_bits(total: u32) -> u32 {
    let bits = (total as f32).to_bits();
    let (log, above) = ((bits >> 23) - 127, bits & 0x7f_ffff);
    (log + u32::from(above > 10)).saturating_sub(7).max(12)
}

/// Encodes a range policy as an H200 does: block size, number of the first block, number of blocks.
fn encode_policy(
    primary: EvictionPriority,
    secondary: EvictionPriority,
    addr: u64,
    bytes: u32,
    total: u32,
) -> u64 {
    let shift = block_bits(total);
    let past = bytes.wrapping_add((1 << shift) - 1);
    let first = addr >> shift;
    let end = addr.wrapping_add(past.into()) >> shift;
    let blocks = end.wrapping_sub(first).min(0x7f);
    let kind = 0x18 | priority_code(primary, secondary);
    kind << 56 | u64::from(shift - 12) << 52 | (first & 0x7f) << 44 | blocks << 37
}

impl Instr for CreateRangePolicy {
    const INFO: OpInfo = OpInfo {
        name: "create_range_policy",
        ptx: "createpolicy.range.global.L2::{evict_first,evict_last,evict_normal,evict_unchanged}{.L2::evict_first}.b64",
        doc: "creates a cache policy: L2 eviction priorities of the first bytes of an address range, and of the rest",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        let secondary = secondary_suffix(self.secondary, ".");
        format!("create_range_policy.{}{secondary}", self.primary.name())
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
            secondary_suffix(self.secondary, ".L2::")
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let addr = m.get::<u64>(self.addr);
        let (bytes, total) = (m.get::<u32>(self.bytes), m.get::<u32>(self.total));
        let mut policies = [0; 32];
        for lane in lanes_of(m.active()) {
            let (bytes, total) = (bytes[lane], total[lane]);
            check_sizes(bytes, total).map_err(|text| Fault::new(FaultKind::Operand, text))?;
            policies[lane] = encode_policy(self.primary, self.secondary, addr[lane], bytes, total);
        }
        m.set(self.dst, &policies);
        Ok(ExecStatus::Completed)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        legal_secondary(self.secondary)?;
        match (self.bytes, self.total) {
            (Operand::Imm(bytes), Operand::Imm(total)) => check_sizes(bytes as u32, total as u32)
                .map_err(|why| format!("create_range_policy {why}")),
            _ => Ok(()),
        }
    }
}

fn check_sizes(bytes: u32, total: u32) -> Result<(), String> {
    if total > 0 && bytes <= total {
        return Ok(());
    }
    Err(format!(
        "has a primary part of {bytes} bytes in a range of {total}; the range must have at least 1 byte, and the primary part must fit in it"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::fake::{Warp, arg, ptx, reg};

    fn create(primary: EvictionPriority, secondary: EvictionPriority) -> CreateRangePolicy {
        CreateRangePolicy {
            dst: reg(0),
            primary,
            secondary,
            addr: arg(1),
            bytes: arg(2),
            total: arg(3),
        }
    }

    fn warp_with(addr: u64, bytes: u32, total: u32) -> Warp {
        Warp::new()
            .with(1, &[addr; 32])
            .with(2, &[bytes; 32])
            .with(3, &[total; 32])
    }

    #[test]
    fn policy_encoding_equals_the_hardware() {
        // Measured on an H200.
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
            let op = create(EvictionPriority::Last, EvictionPriority::Unchanged);
            let policy = warp_with(addr, bytes, total).run(&op).read::<u64>(0)[5];
            assert_eq!(policy, bits << 36, "{addr:#x} {bytes:#x} {total:#x}");
        }
        for (primary, secondary, kind) in [
            (EvictionPriority::First, EvictionPriority::Unchanged, 0x1a),
            (EvictionPriority::Last, EvictionPriority::First, 0x1d),
            (EvictionPriority::Normal, EvictionPriority::Unchanged, 0x1e),
            (
                EvictionPriority::Unchanged,
                EvictionPriority::Unchanged,
                0x18,
            ),
        ] {
            let warp = warp_with(0, 1, 1).run(&create(primary, secondary));
            assert_eq!(warp.read::<u64>(0)[0] >> 56, kind);
        }
    }

    #[test]
    fn a_range_just_above_a_power_of_two_rounds_down_to_it() {
        // Thresholds at which an H200 uses larger blocks.
        for (log, above) in [
            (19, 1),
            (20, 2),
            (21, 3),
            (22, 6),
            (23, 11),
            (24, 22),
            (31, 2689),
        ] {
            let first_above = (1 << log) + above;
            assert_eq!(block_bits(first_above - 1), log - 7, "{log}");
            assert_eq!(block_bits(first_above), log - 6, "{log}");
        }
    }

    #[test]
    fn range_policies_print_their_priorities() {
        assert_eq!(
            ptx(&create(EvictionPriority::Last, EvictionPriority::Unchanged)),
            ["createpolicy.range.global.L2::evict_last.b64 %0, [%1], %2, %3"]
        );
        assert_eq!(
            ptx(&create(EvictionPriority::Normal, EvictionPriority::First)),
            ["createpolicy.range.global.L2::evict_normal.L2::evict_first.b64 %0, [%1], %2, %3"]
        );
    }

    #[test]
    fn unsupported_priorities_and_sizes_are_rejected() {
        let op = |secondary, bytes: u32, total: u32| CreateRangePolicy {
            bytes: Operand::imm(bytes),
            total: Operand::imm(total),
            ..create(EvictionPriority::First, secondary)
        };
        let legal = |secondary, bytes, total| op(secondary, bytes, total).legal(&Target::SM_90A);
        assert_eq!(legal(EvictionPriority::First, 5, 5), Ok(()));
        let why = legal(EvictionPriority::First, 6, 5).unwrap_err();
        assert!(why.contains("6 bytes in a range of 5"), "{why}");
        assert!(legal(EvictionPriority::Unchanged, 0, 0).is_err());
        let why = legal(EvictionPriority::Normal, 1, 2).unwrap_err();
        assert!(why.contains("secondary priority evict_normal"), "{why}");
        let fault =
            warp_with(0, 2, 1).fault(&create(EvictionPriority::First, EvictionPriority::First));
        assert_eq!(fault.kind, FaultKind::Operand);
    }
}
