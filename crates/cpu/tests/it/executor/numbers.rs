//! Arithmetic and warp functions of the builder, compared with Rust.

use half::{bf16, f16};
use warpline_cpu::{Options, Timing};
use warpline_ir::builder::*;
use warpline_ir::*;
use warpline_testkit::kernel::build;
use warpline_testkit::launch::Setup;

/// Runs `body` in one warp, with one input word per lane; returns the `N` output words of each lane.
fn run_lanes<const N: usize>(
    input: [u32; 32],
    body: impl FnOnce(Reg<u32>) -> [Reg<u32>; N],
) -> [[u32; 32]; N] {
    let kernel = build("numbers", |k| {
        let (x, y) = (k.pointer::<u32>("x"), k.pointer::<u32>("y"));
        k.role("all").warps(1).body(|| {
            let lane = lane_id();
            for (i, word) in body(x.load(lane)).into_iter().enumerate() {
                y.store(lane + 32 * i as u32, word);
            }
        });
    });
    let setup = Setup::new().input("x", &input).output("y", 128 * N);
    let run = setup.run(&kernel, 1, &Options::with_timing(Timing::Late));
    run.unwrap_or_else(|e| panic!("{e}"));
    let words = setup.values::<u32>(1);
    std::array::from_fn(|i| std::array::from_fn(|lane| words[32 * i + lane]))
}

/// Returns pseudo-random words.
fn words() -> [u32; 32] {
    std::array::from_fn(|i| (i as u32 + 1).wrapping_mul(0x9e37_79b9) ^ (i as u32) << 7)
}

#[test]
fn bit_functions_match_rust() {
    let x = words();
    let [
        ones,
        zeros,
        reversed,
        field,
        signed,
        inserted,
        left,
        logic,
        bytes,
        high,
    ] = run_lanes(x, |x| {
        [
            x.count_ones(),
            (x >> 9u32).leading_zeros(),
            x.reverse_bits(),
            x.field(5u32, 9u32),
            x.bitcast::<i32>().field(5u32, 9u32).bitcast(),
            x.with_field(x, 8u32, 4u32),
            x.rotate_left(11u32),
            lop3(x, x >> 1u32, 0xff00u32, |a, b, c| a & !b | c),
            prmt(x, !x, 0x3740u32),
            (x >> 4u32).highest_bit(),
        ]
    });
    for i in 0..32 {
        let x = x[i];
        assert_eq!(ones[i], x.count_ones());
        assert_eq!(zeros[i], (x >> 9).leading_zeros());
        assert_eq!(reversed[i], x.reverse_bits());
        assert_eq!(field[i], x >> 5 & 0x1ff);
        assert_eq!(signed[i], ((x << 18) as i32 >> 23) as u32);
        assert_eq!(inserted[i], x & !0xf00 | (x & 0xf) << 8);
        assert_eq!(left[i], x.rotate_left(11));
        assert_eq!(logic[i], x & !(x >> 1) | 0xff00);
        let (a, b) = (x.to_le_bytes(), (!x).to_le_bytes());
        assert_eq!(bytes[i].to_le_bytes(), [a[0], b[0], b[3], a[3]]);
        assert_eq!(high[i], (x >> 4).ilog2());
    }
}

#[test]
fn funnel_shifts_and_wide_multiplies_match_64_bit_arithmetic() {
    let x = words();
    let [right, left, lo, hi, signed] = run_lanes(x, |x| {
        let wide = x.mad_wide(x, x.mul_wide(3u32));
        let [lo, hi] = wide.halves();
        let square = x.bitcast::<i32>().mul_wide(-5).abs();
        let [_, signed] = square.bitcast::<u64>().halves();
        [
            funnel_right(x, 0x1234_5678u32, 12u32),
            funnel_left(x, 0x1234_5678u32, 12u32),
            lo,
            hi,
            signed,
        ]
    });
    for i in 0..32 {
        let x = u64::from(x[i]);
        let both = 0x1234_5678 << 32 | x;
        assert_eq!(right[i], (both >> 12) as u32);
        assert_eq!(left[i], (both << 12 >> 32) as u32);
        let wide = (x * x).wrapping_add(3 * x);
        assert_eq!((lo[i], hi[i]), (wide as u32, (wide >> 32) as u32));
        let signed_product = i64::from(x as u32 as i32) * -5;
        assert_eq!(signed[i], (signed_product.unsigned_abs() >> 32) as u32);
    }
}

#[test]
fn eight_bit_floats_match_rust() {
    let x: [u32; 32] = std::array::from_fn(|i| (i as f32 * 0.37 - 4.0).to_bits());
    let [e4m3, e5m2, relu, f16s, back, wide] = run_lanes(x, |x| {
        let x: Reg<f32> = x.bitcast();
        let four = [x, x * 2.0, -x, x * 1e9];
        let e4m3 = Reg::<E4m3x4>::round4(four);
        let [lo, hi] = e4m3.widen_f16();
        let [a, b, c, d] = e4m3.widen4();
        [
            e4m3.bitcast(),
            Reg::<E5m2x4>::round4(four).bitcast(),
            Reg::<E4m3x4>::round4_relu(four).bitcast(),
            lo.bitcast(),
            Reg::<E4m3x4>::round_f16([lo, hi]).bitcast(),
            (a + b * 2.0 + c * 4.0 + d * 8.0).bitcast(),
        ]
    });
    for i in 0..32 {
        let x = f32::from_bits(x[i]);
        let four = [x, x * 2.0, -x, x * 1e9];
        let codes = four.map(|x| E4m3::round(x).0);
        assert_eq!(e4m3[i].to_le_bytes(), codes);
        assert_eq!(e5m2[i].to_le_bytes(), four.map(|x| E5m2::round(x).0));
        assert_eq!(
            relu[i].to_le_bytes(),
            four.map(|x| E4m3::round(x.max(0.0)).0)
        );
        let pair = F16x2::new(
            f16::from_f32(E4m3(codes[0]).widen()),
            f16::from_f32(E4m3(codes[1]).widen()),
        );
        assert_eq!(f16s[i], pair.0);
        assert_eq!(back[i], e4m3[i]);
        let [a, b, c, d] = codes.map(|c| E4m3(c).widen());
        assert_eq!(f32::from_bits(wide[i]), a + b * 2.0 + c * 4.0 + d * 8.0);
    }
}

#[test]
fn sixteen_bit_and_tf32_floats_match_rust() {
    let x: [u32; 32] = std::array::from_fn(|i| (i as f32 * 0.171_3 - 2.0).to_bits());
    let [power, tanh, relu, tf32, halves] = run_lanes(x, |x| {
        let x: Reg<f32> = x.bitcast();
        let pair = Reg::<F16x2>::round(x, -x);
        let bf: Reg<bf16> = x.cast();
        let [lo, hi] = Reg::<Bf16x2>::pack(bf, bf).bitcast::<u32>().halves();
        [
            exp2(pair).bitcast(),
            tanh_approx(x.cast::<f16>()).cast::<f32>().bitcast(),
            Reg::<Bf16x2>::round_relu(x, -x).bitcast(),
            x.cast::<Tf32>().as_f32().bitcast(),
            Reg::<u32>::pack(hi, lo),
        ]
    });
    for i in 0..32 {
        let x = f32::from_bits(x[i]);
        let near = |bits: u32, want: f32| {
            let got = f16::from_bits(bits as u16).to_f32();
            assert!((got - want).abs() <= want.abs() / 512.0, "{got} {want}");
        };
        let half = f16::from_f32(x).to_f32();
        near(power[i], half.exp2());
        near(power[i] >> 16, (-half).exp2());
        assert!((f32::from_bits(tanh[i]) - half.tanh()).abs() < 1.0 / 1024.0);
        let clamp = |x: f32| bf16::from_f32(x.max(0.0));
        assert_eq!(relu[i], Bf16x2::new(clamp(x), clamp(-x)).0);
        assert_eq!(tf32[i], Tf32::round(x).0);
        assert_eq!(halves[i], u32::from(bf16::from_f32(x).to_bits()) * 0x1_0001);
    }
}

#[test]
fn shuffles_and_warp_reductions_match_rust() {
    let x = words();
    let [long, short, flag, sum, least, most, agree] = run_lanes(x, |x| {
        let long = shuffle_xor(x.mul_wide(x), 5u32);
        let short: Reg<u16> = shuffle_down(x.cast::<u16>(), 1u32);
        let odd = (x & 1).ne(0u32);
        [
            long.halves()[1],
            short.cast(),
            select(shuffle_from(odd, 9u32), 1u32, 0u32),
            redux_add(x),
            redux_min(x.bitcast::<i32>()).bitcast(),
            redux_max(x) ^ redux_and(x) ^ redux_or(x) ^ redux_xor(x),
            select(lanes_agree(odd), 1u32, 0u32),
        ]
    });
    let fold = |f: fn(u32, u32) -> u32| x[1..].iter().fold(x[0], |a, &b| f(a, b));
    for i in 0..32 {
        let other = u64::from(x[i ^ 5]);
        assert_eq!(long[i], ((other * other) >> 32) as u32);
        assert_eq!(short[i], x[(i + 1).min(31)] & 0xffff);
        assert_eq!(flag[i], x[9] & 1);
        assert_eq!(sum[i], fold(u32::wrapping_add));
        assert_eq!(least[i], fold(|a, b| (a as i32).min(b as i32) as u32));
        let bits = fold(|a, b| a & b) ^ fold(|a, b| a | b) ^ fold(|a, b| a ^ b);
        assert_eq!(most[i], fold(u32::max) ^ bits);
        assert_eq!(agree[i], 0);
    }
}

#[test]
fn match_finds_lanes_with_equal_values() {
    let x: [u32; 32] = std::array::from_fn(|i| i as u32 % 5);
    let [any, long, all, same] = run_lanes(x, |x| {
        [
            match_any(x),
            match_any(Reg::<u64>::pack(7u32, x >> 1u32)),
            select(match_all(x), 1u32, 0u32),
            select(match_all(shuffle_from(x, 3u32)), 1u32, 0u32),
        ]
    });
    let lanes_with_equal = |f: &dyn Fn(u32) -> u32, i: usize| {
        (0..32).fold(0, |m, j| m | u32::from(f(x[i]) == f(x[j])) << j)
    };
    for i in 0..32 {
        assert_eq!(any[i], lanes_with_equal(&|x| x, i));
        assert_eq!(long[i], lanes_with_equal(&|x| x >> 1, i));
        assert_eq!((all[i], same[i]), (0, 1));
    }
}
