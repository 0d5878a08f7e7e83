//! Random terms under random values: the value of a term equals the result of the arithmetic, is in
//! its range, and agrees with every true decision about it.

use super::*;
use warpline_ir::Type;
use warpline_ir::ops::compare::Cmp;

/// A generator of numbers, the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// Returns a number near an end of the range, or any number in it.
    fn value(&mut self, range: Range) -> i128 {
        let span = (range.hi - range.lo) as u128 + 1;
        let at = match self.below(4) {
            0 => 0,
            1 => span - 1,
            2 => u128::from(self.below(70)) % span,
            _ => u128::from(self.next()) % span,
        };
        range.lo + at as i128
    }
}

/// Parameters with ranges and values, and the terms made of them.
struct Case {
    terms: Terms,
    values: Vec<i128>,
}

impl Case {
    fn new(random: &mut Random) -> Self {
        let terms = Terms::default();
        let values = (0..3).map(|p| {
            let all = [Type::U32, Type::I32, Type::U16][random.below(3) as usize];
            let all = type_range(all);
            let (a, b) = (random.value(all), random.value(all));
            let range = match random.below(3) {
                0 => all,
                _ => Range::new(a.min(b), a.max(b)),
            };
            terms.bounded(Node::Param(p), range);
            random.value(range)
        });
        let values = values.collect();
        Self { terms, values }
    }

    fn value_of(&self, a: Arg) -> i128 {
        match a {
            Arg::Num(x) => x,
            Arg::Sym(s) => self.term(s.term) + s.off,
            Arg::Pred { term, not } => i128::from((self.term(term) != 0) != not),
        }
    }

    fn sym(&self, s: Sym) -> i128 {
        self.value_of(Arg::Sym(s))
    }

    fn term(&self, t: TermId) -> i128 {
        match self.terms.node(t) {
            Node::Param(p) => self.values[p as usize],
            Node::Sum(list) => list.iter().map(|&(t, k)| self.term(t) * k).sum(),
            Node::Product(list) => list.iter().map(|&t| self.term(t)).product(),
            Node::Div(s, k) => self.sym(s).div_euclid(k),
            Node::Rem(s, k) => self.sym(s).rem_euclid(k),
            Node::Quotient(a, b) => self.value_of(a) / self.value_of(b),
            Node::Remainder(a, b) => self.value_of(a) % self.value_of(b),
            Node::Min(a, b) => self.value_of(a).min(self.value_of(b)),
            Node::Max(a, b) => self.value_of(a).max(self.value_of(b)),
            Node::Wrap(s, ty) => wrapped(self.sym(s), ty),
            Node::Less(t, k) => i128::from(self.term(t) < k),
            Node::Equal(t, k) => i128::from(self.term(t) == k),
            // A comparison beyond the normal form.
            Node::Test(kind, args) => {
                let (a, b) = (self.value_of(args[0]), self.value_of(args[1]));
                i128::from(if kind == u32::MAX { a == b } else { a < b })
            }
            other => panic!("{other:?} is not part of this test"),
        }
    }
}

fn wrapped(x: i128, ty: Type) -> i128 {
    let all = type_range(ty);
    let size = all.hi - all.lo + 1;
    (x - all.lo).rem_euclid(size) + all.lo
}

/// Applies one op to two values; returns the term, the result of the arithmetic and the op's name.
fn apply(
    c: &Case,
    d: &Decisions,
    random: &mut Random,
    a: Arg,
    b: Arg,
) -> Option<(Arg, i128, &'static str)> {
    let (x, y) = (c.value_of(a), c.value_of(b));
    let k = [1, 2, 3, 4, 7, 16, 64, 100][random.below(8) as usize];
    let (result, value, name) = match random.below(9) {
        0 => (c.terms.sum(a, b, 1), x + y, "sum"),
        1 => (c.terms.sum(a, b, -1), x - y, "difference"),
        2 => (c.terms.product(a, b), x.checked_mul(y)?, "product"),
        3 => (c.terms.product(a, Arg::Num(k)), x * k, "multiple"),
        4 => (c.terms.quotient(d, a, k), x.div_euclid(k), "quotient"),
        5 => (c.terms.remainder(d, a, k), x.rem_euclid(k), "remainder"),
        6 => {
            let ty = [Type::U32, Type::I32, Type::U16, Type::U64][random.below(4) as usize];
            (Some(c.terms.wrap(d, a, ty)), wrapped(x, ty), "wrap")
        }
        7 => {
            let term = c.terms.add(Node::Min(a, b));
            (Some(Arg::Sym(Sym { term, off: 0 })), x.min(y), "least")
        }
        _ => {
            let term = c.terms.add(Node::Max(a, b));
            (Some(Arg::Sym(Sym { term, off: 0 })), x.max(y), "greatest")
        }
    };
    result.map(|r| (r, value, name))
}

#[test]
fn random_terms_agree_with_arithmetic_ranges_and_decisions() {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for _ in 0..4000 {
        let c = Case::new(&mut random);
        let mut d = Decisions::default();
        let mut made: Vec<Arg> = (0..3)
            .map(|p| Arg::Sym(Sym { term: p, off: 0 }))
            .chain([0, 1, 63, -1].map(Arg::Num))
            .collect();
        for _ in 0..12 {
            let [a, b] = [0; 2].map(|_| made[random.below(made.len() as u64) as usize]);
            // Terms of a kernel have at most 64 bits.
            let small = |x: i128| x.abs() < 1 << 64;
            if !small(c.value_of(a)) || !small(c.value_of(b)) {
                continue;
            }
            let Some((result, value, name)) = apply(&c, &d, &mut random, a, b) else {
                continue;
            };
            if !small(value) {
                continue;
            }
            let case_text = || {
                format!(
                    "{name} of {a:?} and {b:?}, values {:?}: {result:?}",
                    c.values
                )
            };
            assert_eq!(c.value_of(result), value, "{}", case_text());
            let range = c.terms.range(&d, result);
            assert!(range.has(value), "{value} in {range:?}: {}", case_text());
            if let Arg::Sym(s) = result {
                let left = c.terms.residue(&d, s.term, 8);
                assert!(
                    left.is_none_or(|r| r == (value - s.off).rem_euclid(8)),
                    "{}",
                    case_text()
                );
            }
            made.push(result);
            // A true comparison is decided; no range excludes the actual values afterwards.
            let cmp = [Cmp::Lt, Cmp::Le, Cmp::Gt, Cmp::Ge, Cmp::Eq, Cmp::Ne];
            let cmp = cmp[random.below(6) as usize];
            let (x, y) = (c.value_of(result), c.value_of(b));
            let holds = match cmp {
                Cmp::Lt => x < y,
                Cmp::Le => x <= y,
                Cmp::Gt => x > y,
                Cmp::Ge => x >= y,
                Cmp::Eq => x == y,
                Cmp::Ne => x != y,
            };
            match c.terms.compare(&d, cmp, result, b) {
                Ok(known) => assert_eq!(known, holds, "{cmp:?} {y}: {}", case_text()),
                Err(p @ Arg::Pred { term, not }) => {
                    assert_eq!(c.value_of(p) != 0, holds, "{cmp:?} {y}: {}", case_text());
                    let yes = holds != not;
                    c.terms.decide(&mut d, Question::Holds(term), yes);
                    assert!(!d.contradictory, "{cmp:?} {y} decided: {}", case_text());
                }
                Err(other) => panic!("{other:?}"),
            }
            for &a in &made {
                let range = c.terms.range(&d, a);
                let value = c.value_of(a);
                assert!(
                    range.has(value),
                    "{a:?} = {value} in {range:?} after {}",
                    case_text()
                );
            }
        }
    }
}
