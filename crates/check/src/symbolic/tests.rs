//! Random terms under random values: the value of a term is what the arithmetic gives, lies in its
//! range, and agrees with every decision that is true of it.

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

    /// Numbers near zero, near the ends of types, and others.
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

    fn of(&self, a: Arg) -> i128 {
        match a {
            Arg::Num(x) => x,
            Arg::Sym(s) => self.term(s.term) + s.off,
            Arg::Pred { term, not } => i128::from((self.term(term) != 0) != not),
        }
    }

    fn sym(&self, s: Sym) -> i128 {
        self.of(Arg::Sym(s))
    }

    fn term(&self, t: TermId) -> i128 {
        match self.terms.node(t) {
            Node::Param(p) => self.values[p as usize],
            Node::Sum(list) => list.iter().map(|&(t, k)| self.term(t) * k).sum(),
            Node::Product(list) => list.iter().map(|&t| self.term(t)).product(),
            Node::Div(s, k) => self.sym(s).div_euclid(k),
            Node::Rem(s, k) => self.sym(s).rem_euclid(k),
            Node::Quotient(a, b) => self.of(a) / self.of(b),
            Node::Remainder(a, b) => self.of(a) % self.of(b),
            Node::Least(a, b) => self.of(a).min(self.of(b)),
            Node::Greatest(a, b) => self.of(a).max(self.of(b)),
            Node::Wrap(s, ty) => wrapped(self.sym(s), ty),
            Node::Less(t, k) => i128::from(self.term(t) < k),
            Node::Equal(t, k) => i128::from(self.term(t) == k),
            // A comparison beyond the normal form.
            Node::Test(kind, args) => {
                let (a, b) = (self.of(args[0]), self.of(args[1]));
                i128::from(if kind == u32::MAX { a == b } else { a < b })
            }
            other => panic!("{other:?} is not made here"),
        }
    }
}

fn wrapped(x: i128, ty: Type) -> i128 {
    let all = type_range(ty);
    let size = all.hi - all.lo + 1;
    (x - all.lo).rem_euclid(size) + all.lo
}

/// One op on two values; the answer, as arithmetic has it.
fn apply(
    c: &Case,
    d: &Decided,
    random: &mut Random,
    a: Arg,
    b: Arg,
) -> Option<(Arg, i128, &'static str)> {
    let (x, y) = (c.of(a), c.of(b));
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
            let term = c.terms.add(Node::Least(a, b));
            (Some(Arg::Sym(Sym { term, off: 0 })), x.min(y), "least")
        }
        _ => {
            let term = c.terms.add(Node::Greatest(a, b));
            (Some(Arg::Sym(Sym { term, off: 0 })), x.max(y), "greatest")
        }
    };
    result.map(|r| (r, value, name))
}

#[test]
fn terms_have_the_value_that_arithmetic_gives() {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for _ in 0..4000 {
        let c = Case::new(&mut random);
        let mut d = Decided::default();
        let mut made: Vec<Arg> = (0..3)
            .map(|p| Arg::Sym(Sym { term: p, off: 0 }))
            .chain([0, 1, 63, -1].map(Arg::Num))
            .collect();
        for _ in 0..12 {
            let [a, b] = [0; 2].map(|_| made[random.below(made.len() as u64) as usize]);
            // Terms of a kernel are of at most 64 bits.
            let small = |x: i128| x.abs() < 1 << 64;
            if !small(c.of(a)) || !small(c.of(b)) {
                continue;
            }
            let Some((result, value, name)) = apply(&c, &d, &mut random, a, b) else {
                continue;
            };
            if !small(value) {
                continue;
            }
            let of = || {
                format!(
                    "{name} of {a:?} and {b:?}, values {:?}: {result:?}",
                    c.values
                )
            };
            assert_eq!(c.of(result), value, "{}", of());
            let range = c.terms.range(&d, result);
            assert!(range.has(value), "{value} in {range:?}: {}", of());
            if let Arg::Sym(s) = result {
                let left = c.terms.residue(&d, s.term, 8);
                assert!(
                    left.is_none_or(|r| r == (value - s.off).rem_euclid(8)),
                    "{}",
                    of()
                );
            }
            made.push(result);
            // Something that is true is decided, and rules nothing out that is so.
            let cmp = [Cmp::Lt, Cmp::Le, Cmp::Gt, Cmp::Ge, Cmp::Eq, Cmp::Ne];
            let cmp = cmp[random.below(6) as usize];
            let (x, y) = (c.of(result), c.of(b));
            let holds = match cmp {
                Cmp::Lt => x < y,
                Cmp::Le => x <= y,
                Cmp::Gt => x > y,
                Cmp::Ge => x >= y,
                Cmp::Eq => x == y,
                Cmp::Ne => x != y,
            };
            match c.terms.compare(&d, cmp, result, b) {
                Ok(known) => assert_eq!(known, holds, "{cmp:?} {y}: {}", of()),
                Err(p @ Arg::Pred { term, not }) => {
                    assert_eq!(c.of(p) != 0, holds, "{cmp:?} {y}: {}", of());
                    let yes = holds != not;
                    c.terms.decide(&mut d, Question::Is(term), yes);
                    assert!(!d.impossible, "{cmp:?} {y} decided: {}", of());
                }
                Err(other) => panic!("{other:?}"),
            }
            for &a in &made {
                let range = c.terms.range(&d, a);
                let value = c.of(a);
                assert!(
                    range.has(value),
                    "{a:?} = {value} in {range:?} after {}",
                    of()
                );
            }
        }
    }
}
