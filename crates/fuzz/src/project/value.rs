//! Counts and conditions in the expression form of each role.

use super::env::RoleEnv;
use crate::plan::{
    Conversion, CountBug, CountFormula, Guard, GuardBug, GuardTest, LaneVote, NumberSource,
    TableElem, TableIndex, TripCount,
};
use warpline_ir::builder::*;

/// The number of elements of a table.
pub(crate) const TABLE_ENTRIES: u32 = 32;

/// A number with its type.
#[derive(Clone, Copy)]
pub(super) enum Number {
    U8(Reg<u8>),
    U16(Reg<u16>),
    U32(Reg<u32>),
    I32(Reg<i32>),
    U64(Reg<u64>),
}

impl Number {
    /// Returns the low 32 bits, zero-extended.
    pub(super) fn word(self) -> Reg<u32> {
        match self {
            Number::U8(x) => x.cast(),
            Number::U16(x) => x.cast(),
            Number::U32(x) => x,
            Number::I32(x) => x.bitcast(),
            Number::U64(x) => x.cast(),
        }
    }

    /// Returns the number after a conversion.
    fn converted(self, conversion: Conversion) -> Number {
        match (conversion, self) {
            (Conversion::Keep, x) => x,
            (Conversion::U8, Number::U64(x)) => Number::U64(x.cast::<u8>().cast()),
            (Conversion::U16, Number::U64(x)) => Number::U64(x.cast::<u16>().cast()),
            (Conversion::U32, Number::U64(x)) => Number::U64(x.cast::<u32>().cast()),
            (Conversion::F32, Number::U64(x)) => Number::U64(x.cast::<f32>().cast()),
            (Conversion::F32, Number::I32(x)) => Number::I32(x.cast::<f32>().cast()),
            (Conversion::U8, x) => Number::U8(x.word().cast()),
            (Conversion::U16, x) => Number::U16(x.word().cast()),
            (Conversion::F32, x) => Number::U32(x.word().cast::<f32>().cast()),
            (Conversion::U32, x) => x,
        }
    }
}

impl RoleEnv<'_> {
    fn index(&self, at: TableIndex) -> Reg<u32> {
        let wrapped = |i: Option<Reg<u32>>| match i {
            Some(i) => i & (TABLE_ENTRIES - 1),
            None => 0u32.reg(),
        };
        match at {
            TableIndex::Fixed(i) => (i & (TABLE_ENTRIES - 1)).reg(),
            TableIndex::Round => wrapped(self.round),
            TableIndex::Item => wrapped(self.item),
            TableIndex::Lane => lane_id(),
        }
    }

    /// Reads a source.
    pub(super) fn number(&self, source: NumberSource) -> Number {
        let inputs = &self.inputs;
        match source {
            NumberSource::Small => Number::U32(inputs.small),
            NumberSource::Other => Number::U32(inputs.other),
            NumberSource::Wide => Number::U32(inputs.wide),
            NumberSource::Signed => Number::I32(inputs.signed),
            NumberSource::Long => Number::U64(inputs.long),
            NumberSource::Table { elem, shared, at } => {
                let i = self.index(at);
                if shared && let Some(tables) = inputs.shared {
                    return match elem {
                        TableElem::U8 => Number::U8(tables.u8s.whole().load(0u32, i)),
                        TableElem::U16 => Number::U16(tables.u16s.whole().load(0u32, i)),
                        TableElem::U32 => Number::U32(tables.u32s.whole().load(0u32, i)),
                        TableElem::I32 => Number::I32(tables.i32s.whole().load(0u32, i)),
                    };
                }
                match elem {
                    TableElem::U8 => Number::U8(inputs.u8s.load(i)),
                    TableElem::U16 => Number::U16(inputs.u16s.load(i)),
                    TableElem::U32 => Number::U32(inputs.u32s.load(i)),
                    TableElem::I32 => Number::I32(inputs.i32s.load(i)),
                }
            }
        }
    }

    /// Computes a count with the expression form and the injected bug of this role.
    pub(super) fn count(&self, count: &TripCount) -> Reg<u32> {
        let bug = count.bug.filter(|t| t.0 == self.role).map(|t| t.1);
        let source = match bug {
            Some(CountBug::NumberSource(other)) => other,
            _ => count.source,
        };
        let conversion = match bug {
            Some(CountBug::Conversion(conversion)) => conversion,
            _ => count.conversion,
        };
        self.count_from(count, self.number(source).converted(conversion), bug)
    }

    /// Computes a count from a number.
    pub(super) fn count_from_number(&self, count: &TripCount, x: Number) -> Reg<u32> {
        self.count_from(count, x.converted(count.conversion), None)
    }

    fn count_from(&self, count: &TripCount, mut x: Number, bug: Option<CountBug>) -> Reg<u32> {
        let form = count.forms[self.role % count.forms.len()];
        if bug == Some(CountBug::Unsigned) {
            x = Number::U32(x.word());
        }
        let mut n = formula_value(x, count.formula, form);
        if form & 8 != 0 {
            n = shuffle_from(n, 0u32);
        }
        match bug {
            Some(CountBug::Zero) => 0u32.reg(),
            Some(CountBug::More) => n + 1,
            _ => n,
        }
    }

    /// Computes a condition with the expression form and the injected bug of this role.
    pub(super) fn guard(&self, guard: &Guard) -> Reg<bool> {
        let bug = guard.bug.filter(|t| t.0 == self.role).map(|t| t.1);
        let conversion = match bug {
            Some(GuardBug::Conversion(conversion)) => conversion,
            _ => guard.conversion,
        };
        let vote = match bug {
            Some(GuardBug::LaneVote(vote)) => vote,
            _ => guard.vote,
        };
        match bug {
            Some(GuardBug::Always) => return 0u32.reg().eq(0u32),
            Some(GuardBug::Never) => return 0u32.reg().ne(0u32),
            _ => {}
        }
        let form = guard.forms[self.role % guard.forms.len()];
        let mut x = self.number(guard.source).converted(conversion);
        if bug == Some(GuardBug::Unsigned) {
            if let (GuardTest::Less, Number::I32(x)) = (guard.test, x) {
                return (x - 5).lt(3);
            }
            x = Number::U32(x.word());
        }
        let holds = Self::test(x, guard.test, form);
        match vote {
            LaneVote::Uniform => holds,
            LaneVote::All => all_lanes(holds),
            LaneVote::Any => any_lane(holds),
            LaneVote::Agree => lanes_agree(holds),
            LaneVote::Ballot => ballot(holds).ne(0u32),
        }
    }

    fn test(x: Number, test: GuardTest, form: u8) -> Reg<bool> {
        let flip = form & 1 != 0;
        match (test, x) {
            (GuardTest::NotNegative, Number::I32(x)) if flip => x.gt(-1),
            (GuardTest::NotNegative, Number::I32(x)) => x.ge(0),
            (GuardTest::NotNegative, Number::U64(x)) if flip => !x.eq(0u64),
            (GuardTest::NotNegative, Number::U64(x)) => x.ne(0u64),
            (GuardTest::NotNegative, x) if flip => !x.word().eq(0u32),
            (GuardTest::NotNegative, x) => x.word().ne(0u32),
            (GuardTest::Above(c), Number::I32(x)) if flip => !x.le(c as i32),
            (GuardTest::Above(c), Number::I32(x)) => x.gt(c as i32),
            (GuardTest::Above(c), Number::U64(x)) => x.gt(u64::from(c)),
            (GuardTest::Above(c), x) if flip => !x.word().le(c),
            (GuardTest::Above(c), x) => x.word().gt(c),
            (GuardTest::Less, Number::I32(x)) => (x - 5).bitcast::<u32>().lt(3u32),
            (GuardTest::Less, x) if flip => !(x.word() - 5).ge(3u32),
            (GuardTest::Less, x) => (x.word() - 5).lt(3u32),
        }
    }
}

/// Computes the formula of a number in one of its forms.
fn formula_value(x: Number, formula: CountFormula, form: u8) -> Reg<u32> {
    let form = form & 7;
    match (formula, x) {
        (CountFormula::Clamp, Number::I32(x)) => match form % 3 {
            0 => x.max(0).min(3).bitcast(),
            1 => x.min(3).max(0).bitcast(),
            _ => select(x.lt(0), 0, x.min(3)).bitcast(),
        },
        (CountFormula::High, Number::I32(x)) => (x.bitcast::<u32>() >> 30u32) & 3,
        (CountFormula::Mod, Number::I32(x)) => match form % 2 {
            0 => (x.max(0) % 5).bitcast(),
            _ => x.max(0).bitcast::<u32>() % 5,
        },
        (CountFormula::Clamp, Number::U64(x)) => x.min(3u64).cast(),
        (CountFormula::High, Number::U64(x)) => match form % 2 {
            0 => (x >> 33u32).cast::<u32>() & 3,
            _ => (x >> 32u32).cast::<u32>().field(1u32, 2u32),
        },
        (CountFormula::Mod, Number::U64(x)) => (x % 5).cast(),
        (formula, x) => {
            let high = match x {
                Number::U8(_) => 6u32,
                Number::U16(_) => 14,
                _ => 30,
            };
            word_formula(x.word(), formula, form, high)
        }
    }
}

fn word_formula(x: Reg<u32>, formula: CountFormula, form: u8, high: u32) -> Reg<u32> {
    match (formula, form % 3) {
        (CountFormula::Plain, 1) => (x + 1) - 1,
        (CountFormula::Plain, _) => x,
        (CountFormula::Quarter, 0) => x / 4,
        (CountFormula::Quarter, _) => x >> 2u32,
        (CountFormula::Tiles, 0) => x.div_ceil(4),
        (CountFormula::Tiles, 1) => (x + 3) / 4,
        (CountFormula::Tiles, _) => (x + 3) >> 2u32,
        (CountFormula::Twice, 0) => x * 2,
        (CountFormula::Twice, 1) => x + x,
        (CountFormula::Twice, _) => x << 1u32,
        (CountFormula::Four, 0) => x * 4,
        (CountFormula::Four, _) => x << 2u32,
        (CountFormula::Clamp, 0) => x.min(3u32),
        (CountFormula::Clamp, 1) => select(x.lt(3u32), x, 3u32),
        (CountFormula::Clamp, _) => select(x.gt(2u32), 3u32, x),
        (CountFormula::Mod, 0) => x % 5,
        (CountFormula::Mod, _) => x - (x / 5) * 5,
        (CountFormula::High, 0) => x >> high,
        (CountFormula::High, _) => x / (1 << high),
    }
}
