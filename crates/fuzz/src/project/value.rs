//! Counts and conditions, as each role writes them.

use super::env::Env;
use crate::plan::{
    Count, CountTwist, Elem, Guard, GuardTwist, Index, Narrow, Shape, Source, Test, Vote,
};
use warpline_ir::builder::*;

/// Elements of a table.
pub(crate) const ENTRIES: u32 = 32;

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
    /// The low 32 bits, zero-extended.
    pub(super) fn word(self) -> Reg<u32> {
        match self {
            Number::U8(x) => x.cast(),
            Number::U16(x) => x.cast(),
            Number::U32(x) => x,
            Number::I32(x) => x.bitcast(),
            Number::U64(x) => x.cast(),
        }
    }

    /// The number after a conversion.
    fn narrowed(self, narrow: Narrow) -> Number {
        match (narrow, self) {
            (Narrow::Keep, x) => x,
            (Narrow::U8, Number::U64(x)) => Number::U64(x.cast::<u8>().cast()),
            (Narrow::U16, Number::U64(x)) => Number::U64(x.cast::<u16>().cast()),
            (Narrow::U32, Number::U64(x)) => Number::U64(x.cast::<u32>().cast()),
            (Narrow::F32, Number::U64(x)) => Number::U64(x.cast::<f32>().cast()),
            (Narrow::F32, Number::I32(x)) => Number::I32(x.cast::<f32>().cast()),
            (Narrow::U8, x) => Number::U8(x.word().cast()),
            (Narrow::U16, x) => Number::U16(x.word().cast()),
            (Narrow::F32, x) => Number::U32(x.word().cast::<f32>().cast()),
            (Narrow::U32, x) => x,
        }
    }
}

impl Env<'_> {
    fn index(&self, at: Index) -> Reg<u32> {
        let counted = |i: Option<Reg<u32>>| match i {
            Some(i) => i & (ENTRIES - 1),
            None => 0u32.reg(),
        };
        match at {
            Index::Fixed(i) => (i & (ENTRIES - 1)).reg(),
            Index::Round => counted(self.round),
            Index::Item => counted(self.item),
            Index::Lane => lane_id(),
        }
    }

    /// A source, as this role reads it.
    pub(super) fn number(&self, source: Source) -> Number {
        let given = &self.inputs;
        match source {
            Source::Small => Number::U32(given.small),
            Source::Other => Number::U32(given.other),
            Source::Wide => Number::U32(given.wide),
            Source::Signed => Number::I32(given.signed),
            Source::Long => Number::U64(given.long),
            Source::Table { elem, shared, at } => {
                let i = self.index(at);
                if shared && let Some(tables) = given.shared {
                    return match elem {
                        Elem::U8 => Number::U8(tables.u8s.whole().load(0u32, i)),
                        Elem::U16 => Number::U16(tables.u16s.whole().load(0u32, i)),
                        Elem::U32 => Number::U32(tables.u32s.whole().load(0u32, i)),
                        Elem::I32 => Number::I32(tables.i32s.whole().load(0u32, i)),
                    };
                }
                match elem {
                    Elem::U8 => Number::U8(given.u8s.load(i)),
                    Elem::U16 => Number::U16(given.u16s.load(i)),
                    Elem::U32 => Number::U32(given.u32s.load(i)),
                    Elem::I32 => Number::I32(given.i32s.load(i)),
                }
            }
        }
    }

    /// A count, in this role's writing and with its twist.
    pub(super) fn count(&self, count: &Count) -> Reg<u32> {
        let twist = count.twist.filter(|t| t.0 == self.role).map(|t| t.1);
        let source = match twist {
            Some(CountTwist::Source(other)) => other,
            _ => count.source,
        };
        let narrow = match twist {
            Some(CountTwist::Narrow(narrow)) => narrow,
            _ => count.narrow,
        };
        self.written(count, self.number(source).narrowed(narrow), twist)
    }

    /// A count of a number that was read elsewhere.
    pub(super) fn count_of(&self, count: &Count, x: Number) -> Reg<u32> {
        self.written(count, x.narrowed(count.narrow), None)
    }

    fn written(&self, count: &Count, mut x: Number, twist: Option<CountTwist>) -> Reg<u32> {
        let form = count.forms[self.role % count.forms.len()];
        if twist == Some(CountTwist::Unsigned) {
            x = Number::U32(x.word());
        }
        let mut n = shaped(x, count.shape, form);
        if form & 8 != 0 {
            n = shuffle_from(n, 0u32);
        }
        match twist {
            Some(CountTwist::Zero) => 0u32.reg(),
            Some(CountTwist::More) => n + 1,
            _ => n,
        }
    }

    /// A condition, in this role's writing and with its twist.
    pub(super) fn guard(&self, guard: &Guard) -> Reg<bool> {
        let twist = guard.twist.filter(|t| t.0 == self.role).map(|t| t.1);
        let narrow = match twist {
            Some(GuardTwist::Narrow(narrow)) => narrow,
            _ => guard.narrow,
        };
        let vote = match twist {
            Some(GuardTwist::Vote(vote)) => vote,
            _ => guard.vote,
        };
        match twist {
            Some(GuardTwist::Always) => return 0u32.reg().eq(0u32),
            Some(GuardTwist::Never) => return 0u32.reg().ne(0u32),
            _ => {}
        }
        let form = guard.forms[self.role % guard.forms.len()];
        let mut x = self.number(guard.source).narrowed(narrow);
        if twist == Some(GuardTwist::Unsigned) {
            if let (Test::Less, Number::I32(x)) = (guard.test, x) {
                return (x - 5).lt(3);
            }
            x = Number::U32(x.word());
        }
        let holds = Self::tested(x, guard.test, form);
        match vote {
            Vote::Uniform => holds,
            Vote::All => all_lanes(holds),
            Vote::Any => any_lane(holds),
            Vote::Agree => lanes_agree(holds),
            Vote::Ballot => ballot(holds).ne(0u32),
        }
    }

    fn tested(x: Number, test: Test, form: u8) -> Reg<bool> {
        let flip = form & 1 != 0;
        match (test, x) {
            (Test::NotNegative, Number::I32(x)) if flip => x.gt(-1),
            (Test::NotNegative, Number::I32(x)) => x.ge(0),
            (Test::NotNegative, Number::U64(x)) if flip => !x.eq(0u64),
            (Test::NotNegative, Number::U64(x)) => x.ne(0u64),
            (Test::NotNegative, x) if flip => !x.word().eq(0u32),
            (Test::NotNegative, x) => x.word().ne(0u32),
            (Test::Above(c), Number::I32(x)) if flip => !x.le(c as i32),
            (Test::Above(c), Number::I32(x)) => x.gt(c as i32),
            (Test::Above(c), Number::U64(x)) => x.gt(u64::from(c)),
            (Test::Above(c), x) if flip => !x.word().le(c),
            (Test::Above(c), x) => x.word().gt(c),
            (Test::Less, Number::I32(x)) => (x - 5).bitcast::<u32>().lt(3u32),
            (Test::Less, x) if flip => !(x.word() - 5).ge(3u32),
            (Test::Less, x) => (x.word() - 5).lt(3u32),
        }
    }
}

/// The function of a number, in one of its writings.
fn shaped(x: Number, shape: Shape, form: u8) -> Reg<u32> {
    let form = form & 7;
    match (shape, x) {
        (Shape::Clamp, Number::I32(x)) => match form % 3 {
            0 => x.max(0).min(3).bitcast(),
            1 => x.min(3).max(0).bitcast(),
            _ => select(x.lt(0), 0, x.min(3)).bitcast(),
        },
        (Shape::High, Number::I32(x)) => (x.bitcast::<u32>() >> 30u32) & 3,
        (Shape::Mod, Number::I32(x)) => match form % 2 {
            0 => (x.max(0) % 5).bitcast(),
            _ => x.max(0).bitcast::<u32>() % 5,
        },
        (Shape::Clamp, Number::U64(x)) => x.min(3u64).cast(),
        (Shape::High, Number::U64(x)) => match form % 2 {
            0 => (x >> 33u32).cast::<u32>() & 3,
            _ => (x >> 32u32).cast::<u32>().field(1u32, 2u32),
        },
        (Shape::Mod, Number::U64(x)) => (x % 5).cast(),
        (shape, x) => {
            let high = match x {
                Number::U8(_) => 6u32,
                Number::U16(_) => 14,
                _ => 30,
            };
            word(x.word(), shape, form, high)
        }
    }
}

fn word(x: Reg<u32>, shape: Shape, form: u8, high: u32) -> Reg<u32> {
    match (shape, form % 3) {
        (Shape::Plain, 1) => (x + 1) - 1,
        (Shape::Plain, _) => x,
        (Shape::Quarter, 0) => x / 4,
        (Shape::Quarter, _) => x >> 2u32,
        (Shape::Tiles, 0) => x.div_ceil(4),
        (Shape::Tiles, 1) => (x + 3) / 4,
        (Shape::Tiles, _) => (x + 3) >> 2u32,
        (Shape::Twice, 0) => x * 2,
        (Shape::Twice, 1) => x + x,
        (Shape::Twice, _) => x << 1u32,
        (Shape::Four, 0) => x * 4,
        (Shape::Four, _) => x << 2u32,
        (Shape::Clamp, 0) => x.min(3u32),
        (Shape::Clamp, 1) => select(x.lt(3u32), x, 3u32),
        (Shape::Clamp, _) => select(x.gt(2u32), 3u32, x),
        (Shape::Mod, 0) => x % 5,
        (Shape::Mod, _) => x - (x / 5) * 5,
        (Shape::High, 0) => x >> high,
        (Shape::High, _) => x / (1 << high),
    }
}
