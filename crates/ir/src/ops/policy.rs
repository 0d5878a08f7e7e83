//! What the L2 shall keep: hints of copies and accesses, and the policies behind them.

mod range;

pub use range::CreateRangePolicy;

use super::{Exactness, Info, Instr};
use crate::lanes::lanes_of;
use crate::machine::{Asm, Effects, Exec, Fault, FaultKind, Machine, Step};
use crate::target::Target;
use crate::types::Type;
use crate::value::{Operand, RegId};

/// How long the L2 shall keep the bytes of an access.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CacheHint {
    /// As other lines.
    EvictNormal,
    /// Read once.
    EvictFirst,
    /// Read again and again.
    EvictLast,
    /// As a policy says that [`CreatePolicy`] made (`u64`).
    Policy(Operand),
}

impl CacheHint {
    /// The 64-bit policy: a register, or what [`CreatePolicy`] makes for whole accesses.
    pub fn policy(self) -> Operand {
        let all = |evict| Operand::Imm(policy(evict, Evict::Unchanged, 1.0));
        match self {
            CacheHint::EvictNormal => all(Evict::Normal),
            CacheHint::EvictFirst => all(Evict::First),
            CacheHint::EvictLast => all(Evict::Last),
            CacheHint::Policy(policy) => policy,
        }
    }

    /// The name in text.
    pub const fn name(self) -> &'static str {
        match self {
            CacheHint::EvictNormal => "evict_normal",
            CacheHint::EvictFirst => "evict_first",
            CacheHint::EvictLast => "evict_last",
            CacheHint::Policy(_) => "policy",
        }
    }
}

/// The hint's part of an op's name.
pub(super) fn hint_name(hint: Option<CacheHint>) -> String {
    hint.map_or(String::new(), |h| format!(".{}", h.name()))
}

/// The register of a hint that is one, the last operand of its op.
pub(super) fn hint_effects(e: &mut dyn Effects, hint: Option<CacheHint>) {
    if let Some(CacheHint::Policy(policy)) = hint {
        e.arg(policy, Type::U64);
    }
}

/// The hint's suffix and operand in PTX.
pub(super) fn hint_asm(a: &mut dyn Asm, hint: Option<CacheHint>) -> (&'static str, String) {
    match hint {
        None => ("", String::new()),
        Some(h) => {
            let policy = a.in_reg(h.policy(), Type::U64);
            (".L2::cache_hint", format!(", {policy}"))
        }
    }
}

/// What the L2 does with a line.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Evict {
    /// Goes before others.
    First,
    /// Goes after others.
    Last,
    /// As other lines.
    Normal,
    /// Keeps the place it has.
    Unchanged,
}

impl Evict {
    /// The name in PTX and in text.
    pub const fn name(self) -> &'static str {
        match self {
            Evict::First => "evict_first",
            Evict::Last => "evict_last",
            Evict::Normal => "evict_normal",
            Evict::Unchanged => "evict_unchanged",
        }
    }
}

/// The bits of a policy, as an H200 makes them: what becomes of some sixteenths, and of the rest.
fn policy(primary: Evict, rest: Evict, fraction: f32) -> u64 {
    let sixteenths = (fraction * 16.0).ceil().clamp(1.0, 16.0) as u64 - 1;
    (0x10 | code(primary, rest)) << 56 | sixteenths << 52
}

/// What becomes of the two parts, as the hardware writes it.
fn code(primary: Evict, rest: Evict) -> u64 {
    let code = match primary {
        Evict::Unchanged => 0,
        Evict::First => 2,
        Evict::Last => 4,
        Evict::Normal => 6,
    };
    code | u64::from(rest == Evict::First)
}

/// What becomes of the rest, behind a prefix; nothing if it stays as it is.
fn rest_suffix(rest: Evict, prefix: &str) -> String {
    match rest {
        Evict::Unchanged => String::new(),
        rest => format!("{prefix}{}", rest.name()),
    }
}

/// Refuses what cannot become of the rest.
fn legal_rest(rest: Evict) -> Result<(), String> {
    match rest {
        Evict::First | Evict::Unchanged => Ok(()),
        rest => Err(format!(
            "the rest of a policy is evict_first or evict_unchanged, not {}",
            rest.name()
        )),
    }
}

/// Makes a policy: a fraction of the lines of an access is kept one way, the rest another.
#[derive(Clone, PartialEq, Debug)]
pub struct CreatePolicy {
    /// The policy (`u64`).
    pub dst: RegId,
    /// What becomes of the fraction.
    pub primary: Evict,
    /// What becomes of the rest: [`Evict::First`] or [`Evict::Unchanged`].
    pub rest: Evict,
    /// The fraction (`f32`), above 0 and up to 1.
    pub fraction: Operand,
}

impl Instr for CreatePolicy {
    const INFO: Info = Info {
        name: "create_policy",
        ptx: "createpolicy.fractional.L2::{evict_first,evict_last,evict_normal,evict_unchanged}{.L2::evict_first}.b64",
        doc: "makes a cache policy: how the L2 keeps a fraction of the lines of an access, and the rest",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        let rest = rest_suffix(self.rest, ".");
        format!("create_policy.{}{rest}", self.primary.name())
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.def(self.dst);
        e.arg(self.fraction, Type::F32);
    }
    fn asm(&self, a: &mut dyn Asm) {
        let (dst, fraction) = (a.reg(self.dst), a.operand(self.fraction, Type::F32));
        let rest = rest_suffix(self.rest, ".L2::");
        a.emit(format!(
            "createpolicy.fractional.L2::{}{rest}.b64 {dst}, {fraction}",
            self.primary.name()
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let fraction = m.get::<f32>(self.fraction);
        if let Some(lane) = lanes_of(m.active()).find(|&l| !is_fraction(fraction[l])) {
            return Err(Fault::new(FaultKind::Operand, wrong(fraction[lane])));
        }
        let made = fraction.map(|f| policy(self.primary, self.rest, f));
        m.set(self.dst, &made);
        Ok(Step::Next)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        legal_rest(self.rest)?;
        match self.fraction {
            Operand::Imm(bits) if !is_fraction(f32::from_bits(bits as u32)) => {
                Err(wrong(f32::from_bits(bits as u32)))
            }
            _ => Ok(()),
        }
    }
}

fn is_fraction(f: f32) -> bool {
    f > 0.0 && f <= 1.0
}

fn wrong(f: f32) -> String {
    format!("the fraction of a policy is above 0 and up to 1, not {f}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::fake::{Warp, arg, ptx, reg};

    fn create(primary: Evict, rest: Evict, fraction: Operand) -> CreatePolicy {
        CreatePolicy {
            dst: reg(0),
            primary,
            rest,
            fraction,
        }
    }

    #[test]
    fn a_policy_has_the_bits_the_hardware_gives_it() {
        // Read from an H200.
        for (primary, rest, fraction, bits) in [
            (Evict::First, Evict::Unchanged, 1.0f32, 0x12f),
            (Evict::First, Evict::Unchanged, 0.97, 0x12f),
            (Evict::First, Evict::First, 0.53, 0x138),
            (Evict::Last, Evict::Unchanged, 0.5, 0x147),
            (Evict::Last, Evict::First, 0.1, 0x151),
            (Evict::Normal, Evict::First, 0.0625, 0x170),
            (Evict::Unchanged, Evict::Unchanged, 0.001, 0x100),
        ] {
            let made = Warp::new()
                .with(1, &[fraction; 32])
                .run(&create(primary, rest, arg(1)));
            assert_eq!(made.read::<u64>(0)[3], bits << 52, "{primary:?} {fraction}");
        }
        assert_eq!(
            CacheHint::EvictLast.policy(),
            Operand::Imm(0x14f0_0000_0000_0000)
        );
        assert_eq!(CacheHint::Policy(arg(4)).policy(), arg(4));
    }

    #[test]
    fn ptx_of_policies() {
        let half = Operand::imm(0.5f32);
        assert_eq!(
            ptx(&create(Evict::Last, Evict::Unchanged, half)),
            ["createpolicy.fractional.L2::evict_last.b64 %0, 0f3F000000"]
        );
        assert_eq!(
            ptx(&create(Evict::Normal, Evict::First, arg(1))),
            ["createpolicy.fractional.L2::evict_normal.L2::evict_first.b64 %0, %1"]
        );
    }

    #[test]
    fn legality() {
        let legal =
            |rest, f: f32| create(Evict::First, rest, Operand::imm(f)).legal(&Target::SM_90A);
        assert_eq!(legal(Evict::Unchanged, 1.0), Ok(()));
        assert!(
            legal(Evict::Last, 1.0)
                .unwrap_err()
                .contains("not evict_last")
        );
        assert!(legal(Evict::First, 0.0).unwrap_err().contains("not 0"));
        assert!(legal(Evict::First, 1.5).unwrap_err().contains("not 1.5"));
        let fault = Warp::new().fault(&create(Evict::First, Evict::First, arg(1)));
        assert_eq!(fault.kind, FaultKind::Operand);
    }
}
