//! Random operands: every special value of a type, and numbers of similar size.

use warpline_ir::Type;
use warpline_kernels::numbers::Random;

/// Returns rows of operands, one column for each type: combinations of special values first, then
/// random values with some special values among them.
pub fn columns(types: &[Type], rows: usize, seed: u64) -> Vec<Vec<u64>> {
    let mut random = Random::new(seed);
    let specials: Vec<_> = types.iter().map(|&ty| specials(ty)).collect();
    let combinations = (specials.iter()).fold(1usize, |n, all| n.saturating_mul(all.len()));
    let combination_rows = combinations.min(rows / 2);
    // With fewer rows than combinations, a prime stride samples all of them.
    let stride = if combinations > combination_rows {
        7919
    } else {
        1
    };
    let mut columns = vec![Vec::with_capacity(rows); types.len()];
    for row in 0..rows {
        let mut rest = row * stride;
        for (column, (&ty, specials)) in columns.iter_mut().zip(types.iter().zip(&specials)) {
            let pick = |n: u64| specials[(n % specials.len() as u64) as usize];
            column.push(if row < combination_rows {
                let value = pick(rest as u64);
                rest /= specials.len();
                value
            } else if random.bits().is_multiple_of(8) {
                pick(random.bits())
            } else {
                value(ty, &mut random)
            });
        }
    }
    columns
}

/// Returns a random value of a type: mostly numbers of moderate size, sometimes any bits.
pub fn value(ty: Type, random: &mut Random) -> u64 {
    let x = random.bits();
    if random.bits().is_multiple_of(3) {
        return x & mask(ty);
    }
    // Fewer bits in the mantissa make ties and exact results frequent.
    let single = |x: u64| {
        let kept_bits = [0x807f_ffff, 0x807f_f000, 0x8040_0001][(x >> 60) as usize % 3];
        x & kept_bits | (117 + (x >> 40) % 20) << 23
    };
    let half = |x: u64| x & 0x83ff | (10 + (x >> 12) % 10) << 10;
    let bfloat = |x: u64| x & 0x807f | (122 + (x >> 12) % 10) << 7;
    let value = match ty {
        Type::F32 | Type::Tf32 => single(x),
        Type::F16 => half(x),
        Type::Bf16 => bfloat(x),
        Type::F16x2 => half(x) | half(x >> 32) << 16,
        Type::Bf16x2 => bfloat(x) | bfloat(x >> 32) << 16,
        Type::U32 | Type::I32 | Type::U64 | Type::I64 => x >> (x % 60),
        _ => x,
    };
    value & mask(ty)
}

/// Returns the bit mask of a type.
fn mask(ty: Type) -> u64 {
    match ty.bytes() {
        0 => 1,
        8 => u64::MAX,
        n => (1 << (8 * n)) - 1,
    }
}

/// Returns the special values: zeros, ones, range limits, infinities, NaNs, subnormals, and rounding
/// edge cases of conversions.
fn specials(ty: Type) -> Vec<u64> {
    let pairs = |halves: Vec<u64>| {
        let n = halves.len();
        (0..n)
            .map(|i| halves[i] | halves[(i * 7 + 3) % n] << 16)
            .collect()
    };
    match ty {
        Type::Pred => vec![0, 1],
        Type::U8 => vec![0, 1, 0x7f, 0x80, 0xff],
        Type::F16 => vec![
            0, 0x8000, 1, 0x8001, 0x3ff, 0x400, 0x3c00, 0xbc00, 0x3c01, 0x7bff, 0xfbff, 0x7c00,
            0xfc00, 0x7c01, 0x7e00, 0xfe01, 0x7fff, 0x3800, 0x1000, 0x5800,
        ],
        Type::Bf16 => vec![
            0, 0x8000, 1, 0x8001, 0x7f, 0x80, 0x3f80, 0xbf80, 0x3f81, 0x7f7f, 0xff7f, 0x7f80,
            0xff80, 0x7f81, 0x7fc0, 0xffc1, 0x7fff, 0x3f00, 0x1c80, 0x1f80,
        ],
        Type::F16x2 => pairs(specials(Type::F16)),
        Type::Bf16x2 => pairs(specials(Type::Bf16)),
        Type::F32 | Type::Tf32 => vec![
            0,
            0x8000_0000,
            1,
            0x8000_0001,
            0x007f_ffff,
            0x0080_0000,
            0x3f80_0000,
            0xbf80_0000,
            0x3f80_0001,
            0x7f7f_ffff,
            0xff7f_ffff,
            0x7f80_0000,
            0xff80_0000,
            0x7f80_0001,
            0x7fc0_0000,
            0xffc1_2345,
            0x3f00_0000,
            0x4f00_0000,
            0xcf00_0000,
            0x4f80_0000,
            0x5f00_0000,
            0xdf00_0000,
            0x5f80_0000,
            0x3f80_1000,
            0x3f80_3000,
            0x4380_0000,
            0x477f_f000,
            0x3300_0000,
        ],
        Type::U64 | Type::I64 => vec![
            0,
            1,
            2,
            3,
            5,
            0x7fff_ffff,
            0x8000_0000,
            0xffff_ffff,
            1 << 32,
            1 << 63,
            (1 << 63) - 1,
            u64::MAX,
            u64::MAX - 1,
            0x8000_0080_0000_0001,
            0xdead_beef_0123_4567,
        ],
        _ => [
            0u64,
            1,
            2,
            3,
            4,
            5,
            7,
            8,
            15,
            16,
            17,
            24,
            31,
            32,
            33,
            63,
            64,
            65,
            255,
            256,
            0x7fff,
            0x8000,
            0xffff,
            0x7fff_ffff,
            0x8000_0000,
            0x8000_0001,
            0xffff_fffe,
            0xffff_ffff,
            0x0100_0001,
            0x0100_0003,
            0xdead_beef,
        ]
        .map(|x| x & mask(ty))
        .to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same_rows() {
        let draw = |seed| columns(&[Type::F32, Type::U8], 256, seed);
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn a_long_column_has_every_special_value() {
        for ty in Type::ALL {
            let column = &columns(&[ty], 2048, 0)[0];
            assert!(specials(ty).iter().all(|x| column.contains(x)), "{ty}");
            assert!(column.iter().all(|x| x & !mask(ty) == 0), "{ty}");
        }
    }
}
