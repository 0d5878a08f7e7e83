//! L2 cache hints of copies and accesses, and the cache policies that they name.

mod range;

pub use range::CreateRangePolicy;

use super::{Exactness, Instr, OpInfo};
use crate::lanes::lanes_of;
use crate::machine::{Asm, Effects, Exec, ExecStatus, Fault, FaultKind, Machine};
use crate::target::Target;
use crate::types::Type;
use crate::value::{Operand, RegId};

/// The L2 cache hint of an access (`.L2::cache_hint`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CacheHint {
    /// Normal priority.
    EvictNormal,
    /// Evicted first: data that is accessed once.
    EvictFirst,
    /// Evicted last: data that is reused.
    EvictLast,
    /// A policy made by [`CreatePolicy`] or [`CreateRangePolicy`] (`u64`).
    Policy(Operand),
}

impl CacheHint {
    /// Returns the 64-bit policy: a register, or the constant that [`CreatePolicy`] makes for the fraction 1.
    pub fn policy(self) -> Operand {
        let all_lines =
            |evict| Operand::Imm(encode_policy(evict, EvictionPriority::Unchanged, 1.0));
        match self {
            CacheHint::EvictNormal => all_lines(EvictionPriority::Normal),
            CacheHint::EvictFirst => all_lines(EvictionPriority::First),
            CacheHint::EvictLast => all_lines(EvictionPriority::Last),
            CacheHint::Policy(policy) => policy,
        }
    }

    /// Returns the name in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            CacheHint::EvictNormal => "evict_normal",
            CacheHint::EvictFirst => "evict_first",
            CacheHint::EvictLast => "evict_last",
            CacheHint::Policy(_) => "policy",
        }
    }
}

/// Returns the suffix of an op's name for its hint.
pub(super) fn hint_name(hint: Option<CacheHint>) -> String {
    hint.map_or(String::new(), |h| format!(".{}", h.name()))
}

/// Reports the policy register of a hint, which is the last operand of its op.
pub(super) fn hint_effects(e: &mut dyn Effects, hint: Option<CacheHint>) {
    if let Some(CacheHint::Policy(policy)) = hint {
        e.arg(policy, Type::U64);
    }
}

/// Returns the PTX suffix and operand of a hint.
pub(super) fn hint_asm(a: &mut dyn Asm, hint: Option<CacheHint>) -> (&'static str, String) {
    match hint {
        None => ("", String::new()),
        Some(h) => {
            let policy = a.in_reg(h.policy(), Type::U64);
            (".L2::cache_hint", format!(", {policy}"))
        }
    }
}

/// The L2 eviction priority of a line.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum EvictionPriority {
    /// Evicted first.
    First,
    /// Evicted last.
    Last,
    /// Normal.
    Normal,
    /// Unchanged.
    Unchanged,
}

impl EvictionPriority {
    /// Returns the name in PTX and in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            EvictionPriority::First => "evict_first",
            EvictionPriority::Last => "evict_last",
            EvictionPriority::Normal => "evict_normal",
            EvictionPriority::Unchanged => "evict_unchanged",
        }
    }
}

/// Encodes a fractional policy as an H200 does: the primary priority applies to some sixteenths of the lines.
fn encode_policy(primary: EvictionPriority, secondary: EvictionPriority, fraction: f32) -> u64 {
    let sixteenths = (fraction * 16.0).ceil().clamp(1.0, 16.0) as u64 - 1;
    (0x10 | priority_code(primary, secondary)) << 56 | sixteenths << 52
}

/// Encodes the two priorities as the hardware does.
fn priority_code(primary: EvictionPriority, secondary: EvictionPriority) -> u64 {
    let code = match primary {
        EvictionPriority::Unchanged => 0,
        EvictionPriority::First => 2,
        EvictionPriority::Last => 4,
        EvictionPriority::Normal => 6,
    };
    code | u64::from(secondary == EvictionPriority::First)
}

/// Returns the suffix of the secondary priority after a prefix; empty if it is unchanged.
fn secondary_suffix(secondary: EvictionPriority, prefix: &str) -> String {
    match secondary {
        EvictionPriority::Unchanged => String::new(),
        secondary => format!("{prefix}{}", secondary.name()),
    }
}

/// Rejects an unsupported secondary priority.
fn legal_secondary(secondary: EvictionPriority) -> Result<(), String> {
    match secondary {
        EvictionPriority::First | EvictionPriority::Unchanged => Ok(()),
        secondary => Err(format!(
            "secondary priority {} is not supported; it must be evict_first or evict_unchanged",
            secondary.name()
        )),
    }
}

/// Creates a policy: the primary priority for a fraction of the lines of an access, the secondary for the others.
#[derive(Clone, PartialEq, Debug)]
pub struct CreatePolicy {
    /// The policy (`u64`).
    pub dst: RegId,
    /// Priority of the fraction.
    pub primary: EvictionPriority,
    /// Priority of the other lines: [`EvictionPriority::First`] or [`EvictionPriority::Unchanged`].
    pub secondary: EvictionPriority,
    /// The fraction (`f32`), greater than 0 and at most 1.
    pub fraction: Operand,
}

impl Instr for CreatePolicy {
    const INFO: OpInfo = OpInfo {
        name: "create_policy",
        ptx: "createpolicy.fractional.L2::{evict_first,evict_last,evict_normal,evict_unchanged}{.L2::evict_first}.b64",
        doc: "creates a cache policy: L2 eviction priorities of a fraction of the lines of an access, and of the others",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        let secondary = secondary_suffix(self.secondary, ".");
        format!("create_policy.{}{secondary}", self.primary.name())
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.def(self.dst);
        e.arg(self.fraction, Type::F32);
    }
    fn asm(&self, a: &mut dyn Asm) {
        let (dst, fraction) = (a.reg(self.dst), a.operand(self.fraction, Type::F32));
        let secondary = secondary_suffix(self.secondary, ".L2::");
        a.emit(format!(
            "createpolicy.fractional.L2::{}{secondary}.b64 {dst}, {fraction}",
            self.primary.name()
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let fraction = m.get::<f32>(self.fraction);
        if let Some(lane) = lanes_of(m.active()).find(|&l| !is_fraction(fraction[l])) {
            return Err(Fault::new(
                FaultKind::Operand,
                fraction_out_of_range(fraction[lane]),
            ));
        }
        let policies = fraction.map(|f| encode_policy(self.primary, self.secondary, f));
        m.set(self.dst, &policies);
        Ok(ExecStatus::Completed)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        legal_secondary(self.secondary)?;
        match self.fraction {
            Operand::Imm(bits) if !is_fraction(f32::from_bits(bits as u32)) => Err(format!(
                "create_policy {}",
                fraction_out_of_range(f32::from_bits(bits as u32))
            )),
            _ => Ok(()),
        }
    }
}

fn is_fraction(f: f32) -> bool {
    f > 0.0 && f <= 1.0
}

fn fraction_out_of_range(f: f32) -> String {
    format!("has fraction {f}; it must be greater than 0 and at most 1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::fake::{Warp, arg, ptx, reg};

    fn create(
        primary: EvictionPriority,
        secondary: EvictionPriority,
        fraction: Operand,
    ) -> CreatePolicy {
        CreatePolicy {
            dst: reg(0),
            primary,
            secondary,
            fraction,
        }
    }

    #[test]
    fn policy_encoding_equals_the_hardware() {
        // Measured on an H200.
        for (primary, secondary, fraction, bits) in [
            (
                EvictionPriority::First,
                EvictionPriority::Unchanged,
                1.0f32,
                0x12f,
            ),
            (
                EvictionPriority::First,
                EvictionPriority::Unchanged,
                0.97,
                0x12f,
            ),
            (
                EvictionPriority::First,
                EvictionPriority::First,
                0.53,
                0x138,
            ),
            (
                EvictionPriority::Last,
                EvictionPriority::Unchanged,
                0.5,
                0x147,
            ),
            (EvictionPriority::Last, EvictionPriority::First, 0.1, 0x151),
            (
                EvictionPriority::Normal,
                EvictionPriority::First,
                0.0625,
                0x170,
            ),
            (
                EvictionPriority::Unchanged,
                EvictionPriority::Unchanged,
                0.001,
                0x100,
            ),
        ] {
            let warp =
                Warp::new()
                    .with(1, &[fraction; 32])
                    .run(&create(primary, secondary, arg(1)));
            assert_eq!(warp.read::<u64>(0)[3], bits << 52, "{primary:?} {fraction}");
        }
        assert_eq!(
            CacheHint::EvictLast.policy(),
            Operand::Imm(0x14f0_0000_0000_0000)
        );
        assert_eq!(CacheHint::Policy(arg(4)).policy(), arg(4));
    }

    #[test]
    fn policies_print_their_priorities() {
        let half = Operand::imm(0.5f32);
        assert_eq!(
            ptx(&create(
                EvictionPriority::Last,
                EvictionPriority::Unchanged,
                half
            )),
            ["createpolicy.fractional.L2::evict_last.b64 %0, 0f3F000000"]
        );
        assert_eq!(
            ptx(&create(
                EvictionPriority::Normal,
                EvictionPriority::First,
                arg(1)
            )),
            ["createpolicy.fractional.L2::evict_normal.L2::evict_first.b64 %0, %1"]
        );
    }

    #[test]
    fn unsupported_priorities_and_fractions_are_rejected() {
        let legal = |secondary, f: f32| {
            create(EvictionPriority::First, secondary, Operand::imm(f)).legal(&Target::SM_90A)
        };
        assert_eq!(legal(EvictionPriority::Unchanged, 1.0), Ok(()));
        assert!(
            legal(EvictionPriority::Last, 1.0)
                .unwrap_err()
                .contains("secondary priority evict_last")
        );
        assert!(
            legal(EvictionPriority::First, 0.0)
                .unwrap_err()
                .contains("fraction 0;")
        );
        assert!(
            legal(EvictionPriority::First, 1.5)
                .unwrap_err()
                .contains("fraction 1.5;")
        );
        let fault = Warp::new().fault(&create(
            EvictionPriority::First,
            EvictionPriority::First,
            arg(1),
        ));
        assert_eq!(fault.kind, FaultKind::Operand);
    }
}
