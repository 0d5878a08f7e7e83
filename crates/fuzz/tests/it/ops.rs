//! The checker must not exclude the result that the executor computes, for every arithmetic op with
//! random and boundary operands.
//!
//! Each kernel hangs if the result of an op equals the value that the executor computed. The operands
//! are parameters with declared bounds that contain their values, so a launch hangs and the checker
//! must not prove the kernel.

use warpline_check::{Verdict, examine};
use warpline_cpu::{GlobalMemory, Options, run};
use warpline_fuzz::Rng;
use warpline_ir::builder::*;
use warpline_ir::{Arg, Kernel, Launch, Target};

/// The operands of an op.
struct Operands {
    a: Reg<u32>,
    b: Reg<u32>,
    x: Reg<i32>,
    y: Reg<i32>,
    u: Reg<u64>,
    v: Reg<u64>,
}

type Compute = fn(&Operands) -> Reg<u64>;

fn bool_bits(p: Reg<bool>) -> Reg<u64> {
    select(p, 1u64, 0u64)
}

fn signed_bits(x: Reg<i32>) -> Reg<u64> {
    x.bitcast::<u32>().cast()
}

/// The ops, by name.
const OPS: &[(&str, Compute)] = &[
    ("add.u32", |o| (o.a + o.b).cast()),
    ("sub.u32", |o| (o.a - o.b).cast()),
    ("mul.u32", |o| (o.a * o.b).cast()),
    ("mul_hi.u32", |o| o.a.mul_hi(o.b).cast()),
    ("mul_wide.u32", |o| o.a.mul_wide(o.b)),
    ("mad.u32", |o| o.a.mad(o.b, 7u32).cast()),
    ("div.u32", |o| (o.a / o.b).cast()),
    ("div.u32 constant", |o| (o.a / 7u32).cast()),
    ("rem.u32", |o| (o.a % o.b).cast()),
    ("rem.u32 constant", |o| (o.a % 12u32).cast()),
    ("div_ceil", |o| o.a.div_ceil(64).cast()),
    ("min.u32", |o| o.a.min(o.b).cast()),
    ("max.u32", |o| o.a.max(o.b).cast()),
    ("and.u32", |o| (o.a & o.b).cast()),
    ("and.u32 constant", |o| (o.a & 0xFFFF_FFC0u32).cast()),
    ("and.u32 low", |o| (o.a & 63u32).cast()),
    ("or.u32", |o| (o.a | o.b).cast()),
    ("xor.u32", |o| (o.a ^ o.b).cast()),
    ("shl.u32", |o| (o.a << (o.b & 31u32)).cast()),
    ("shl.u32 constant", |o| (o.a << 3u32).cast()),
    ("shr.u32", |o| (o.a >> (o.b & 31u32)).cast()),
    ("shr.u32 constant", |o| (o.a >> 6u32).cast()),
    ("lt.u32", |o| bool_bits(o.a.lt(o.b))),
    ("le.u32", |o| bool_bits(o.a.le(o.b))),
    ("eq.u32", |o| bool_bits(o.a.eq(o.b))),
    ("ne.u32", |o| bool_bits(o.a.ne(o.b))),
    ("add.i32", |o| signed_bits(o.x + o.y)),
    ("sub.i32", |o| signed_bits(o.x - o.y)),
    ("mul.i32", |o| signed_bits(o.x * o.y)),
    ("div.i32", |o| signed_bits(o.x / o.y)),
    ("div.i32 constant", |o| signed_bits(o.x / 4)),
    ("rem.i32", |o| signed_bits(o.x % o.y)),
    ("rem.i32 constant", |o| signed_bits(o.x % 4)),
    ("min.i32", |o| signed_bits(o.x.min(o.y))),
    ("max.i32", |o| signed_bits(o.x.max(o.y))),
    ("shr.i32 constant", |o| signed_bits(o.x >> 2u32)),
    ("lt.i32", |o| bool_bits(o.x.lt(o.y))),
    ("gt.i32 constant", |o| bool_bits(o.x.gt(-1))),
    ("abs.i32", |o| signed_bits(o.x.abs())),
    ("add.u64", |o| o.u + o.v),
    ("sub.u64", |o| o.u - o.v),
    ("mul.u64", |o| o.u * o.v),
    ("lt.u64", |o| bool_bits(o.u.lt(o.v))),
    ("min.u64", |o| o.u.min(o.v)),
    ("shr.u64 constant", |o| o.u >> 32u32),
    ("u32 to u16", |o| o.a.cast::<u16>().cast::<u32>().cast()),
    ("u32 to i32", |o| signed_bits(o.a.bitcast::<i32>())),
    ("i32 to u64", |o| o.x.cast::<u64>()),
    ("u64 to u32", |o| o.u.cast::<u32>().cast()),
    ("u32 through f32", |o| {
        o.a.cast::<f32>().cast::<u32>().cast()
    }),
    ("i32 through f32", |o| {
        signed_bits(o.x.cast::<f32>().cast::<i32>())
    }),
    ("select", |o| select(o.a.lt(o.b), o.a, 5u32).cast()),
    ("and.pred", |o| bool_bits(o.a.lt(o.b) & o.x.lt(o.y))),
    ("or.pred", |o| bool_bits(o.a.lt(o.b) | o.x.lt(o.y))),
    ("not.pred", |o| bool_bits(!o.a.lt(o.b))),
    ("shuffle", |o| shuffle_from(o.a, o.b & 31u32).cast()),
    ("shuffle of lanes", |o| {
        shuffle_from(o.a + lane_id(), 5u32).cast()
    }),
    ("all lanes", |o| bool_bits(all_lanes(o.a.lt(o.b)))),
    ("any lane", |o| bool_bits(any_lane(lane_id().lt(o.a)))),
    ("lanes agree", |o| bool_bits(lanes_agree(o.a.lt(o.b)))),
    ("lanes agree on lanes", |o| {
        bool_bits(lanes_agree(lane_id().lt(o.a)))
    }),
];

/// The values of the parameters and their declared bounds.
struct Values {
    words: [u32; 4],
    long: [u64; 2],
    bounds: [(u32, u32); 2],
    signed: [(i32, i32); 2],
}

const WORDS: [u32; 14] = [
    0,
    1,
    2,
    31,
    63,
    64,
    65,
    0xFFFF,
    0x1_0000,
    0x7FFF_FFFF,
    0x8000_0000,
    0xFFFF_FFC0,
    0xFFFF_FFFE,
    0xFFFF_FFFF,
];

impl Values {
    fn random(rng: &mut Rng) -> Self {
        let mut word = || match rng.below(2) {
            0 => WORDS[rng.below(WORDS.len())],
            _ => rng.below(1 << 20) as u32,
        };
        let words = [word(), word(), word(), word()];
        let long = [word(), word()].map(|w| u64::from(w) << (w % 33));
        // Bounds that contain the value: none, exact, or within 100.
        let mut bounds = |x: u32| match rng.below(3) {
            0 => (0, u32::MAX),
            1 => (x, x),
            _ => (
                x.saturating_sub(rng.below(100) as u32),
                x.saturating_add(rng.below(100) as u32),
            ),
        };
        let signed = |(lo, hi): (u32, u32)| match lo as i32 <= hi as i32 && lo != 0 {
            true => (lo as i32, hi as i32),
            false => (i32::MIN, i32::MAX),
        };
        Self {
            words,
            long,
            bounds: [bounds(words[0]), bounds(words[1])],
            signed: [signed(bounds(words[2])), signed(bounds(words[3]))],
        }
    }
}

/// Builds a kernel that stores the result of an op, or one that hangs if the result is `hangs`.
fn kernel(op: Compute, values: &Values, hangs: Option<u64>) -> Kernel {
    let built = Kernel::build("op", &Target::SM_90A, |k| {
        let [(a, b), (c, d)] = values.bounds;
        let [(e, f), (g, h)] = values.signed;
        let operands = Operands {
            a: k.param::<u32>("a").at_least(a).at_most(b),
            b: k.param::<u32>("b").at_least(c).at_most(d),
            x: k.param::<i32>("x").at_least(e).at_most(f),
            y: k.param::<i32>("y").at_least(g).at_most(h),
            u: k.param::<u64>("u"),
            v: k.param::<u64>("v"),
        };
        let out = k.pointer::<u64>("out");
        let never = k.barrier("never", 1).arrivals(1);
        k.role("only").warps(1).body(|| {
            let result = op(&operands);
            match hangs {
                None => elect(|| out.store(0u32, result)),
                Some(x) => if_(result.eq(x), || never.at(0u32).wait(0u32)),
            }
        });
    });
    built.unwrap_or_else(|e| panic!("{e}"))
}

/// Computes an op in the executor.
fn computed(op: Compute, values: &Values) -> Option<u64> {
    let kernel = kernel(op, values, None);
    let mut memory = GlobalMemory::new();
    let out = memory.alloc_from(&[0; 8], "out");
    let [a, b, x, y] = values.words;
    let [u, v] = values.long;
    let args = vec![
        Arg::scalar(a),
        Arg::scalar(b),
        Arg::scalar(x as i32),
        Arg::scalar(y as i32),
        Arg::scalar(u),
        Arg::scalar(v),
        Arg::Pointer(out),
    ];
    let launch = Launch {
        grid: [1, 1, 1],
        args,
    };
    run(&kernel, &launch, &memory, &Options::default()).ok()?;
    let bytes = memory.read_lossy(out, 8).ok()?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

#[test]
fn the_checker_excludes_no_computed_result() {
    let mut rng = Rng::new(7);
    for &(name, op) in OPS {
        let (mut ran, mut excluded) = (0, 0);
        for _ in 0..24 {
            let values = Values::random(&mut rng);
            let Some(result) = computed(op, &values) else {
                continue;
            };
            ran += 1;
            let wrong = kernel(op, &values, Some(result));
            let report = examine(&wrong, &Target::SM_90A);
            // The proof may assume that no sum overflows.
            let assumed = report.assumptions.iter().any(|a| a.code == "A.overflow");
            assert!(
                report.verdict() != Verdict::Proved || assumed,
                "{name} of {:x?}, {:x?} within {:x?}, {:x?} is {result:#x}",
                values.words,
                values.long,
                values.bounds,
                values.signed,
            );
            let other = kernel(op, &values, Some(result ^ (1 << 62)));
            excluded += u32::from(examine(&other, &Target::SM_90A).verdict() == Verdict::Proved);
        }
        assert!(ran > 8, "{name} ran {ran} times");
        println!("{name}: another result excluded in {excluded} of {ran} cases");
    }
}
