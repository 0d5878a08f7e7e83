//! im2col copies.

use super::*;

/// Lists the window positions of a convolution, W fastest.
fn window_positions(extents: &[u64], lower: &[i32], upper: &[i32], steps: &[u32]) -> Vec<Vec<i64>> {
    let mut all = vec![vec![]];
    for i in (0..lower.len()).rev() {
        let last = extents[i + 1] as i32 - 1 + upper[i];
        let row = (lower[i]..=last).step_by(steps[i] as usize);
        all = (all.iter())
            .flat_map(|outer| {
                row.clone()
                    .map(move |x| [&[i64::from(x)], &outer[..]].concat())
            })
            .collect();
    }
    (0..extents[lower.len() + 1] as i64 + 2)
        .flat_map(|n| all.iter().map(move |at| [&at[..], &[n]].concat()))
        .collect()
}

#[test]
fn an_im2col_load_equals_the_reads_of_a_convolution() {
    // (channels C, W, H, …, N), filter sides, padding, strides, first channel.
    type Case<'a> = (&'a [u64], &'a [u32], &'a [i32], &'a [u32], i32);
    let cases: [Case; 7] = [
        (&[24, 9, 2], &[3], &[1], &[1], 0),
        (&[24, 19, 2], &[3], &[1], &[2], 0),
        (&[24, 7, 5, 3], &[3, 3], &[1, 1], &[1, 1], 8),
        (&[24, 7, 8, 3], &[3, 3], &[1, 1], &[2, 2], 8),
        (&[24, 8, 7, 4], &[1, 1], &[0, 0], &[3, 2], 8),
        (&[16, 6, 5, 2], &[5, 3], &[2, 0], &[1, 1], 16),
        (&[16, 4, 3, 3, 2], &[3, 2, 3], &[1, 0, 1], &[1, 1, 2], -8),
    ];
    for (extents, filter, pad, steps, channel) in cases {
        // Corners as CUTLASS sets them: the positions are those of the output.
        let lower: Vec<i32> = pad.iter().map(|&p| -p).collect();
        let upper: Vec<i32> = filter
            .iter()
            .zip(pad)
            .map(|(&f, &p)| p - (f as i32 - 1))
            .collect();
        let decl = TensorMapDecl {
            dtype: DType::Bf16,
            tile: Vec::new(),
            swizzle: Swizzle::B32,
            mode: TensorMapMode::Im2col {
                lower: lower.clone(),
                upper: upper.clone(),
                channels: 16,
                pixels: 11,
                element_strides: steps.to_vec(),
            },
        };
        let (mut cta, v) = tensor(decl, extents);
        let positions = window_positions(extents, &lower, &upper, steps);
        for tap in indices(filter) {
            for start in (0..positions.len() - 11).step_by(5) {
                let mut coords = vec![channel];
                coords.extend(positions[start].iter().map(|&x| x as i32));
                let op = TensorLoad {
                    offsets: tap.iter().map(|&t| Operand::Imm(t as u64)).collect(),
                    ..load(v, &coords)
                };
                cta.run(&op);
                assert_eq!(cta.complete(), [11 * 32]);
                for pixel in 0..11 {
                    for c in 0..16 {
                        let mut at = vec![i64::from(channel) + c as i64];
                        at.extend(&positions[start + pixel]);
                        for (x, t) in at[1..].iter_mut().zip(&tap) {
                            *x += t;
                        }
                        let byte = Swizzle::B32.apply(1152 + (32 * pixel + 2 * c) as u32) as usize;
                        let got = &cta.shared[0][byte..byte + 2];
                        match element_offset(extents, 2, &at) {
                            Some(b) => assert_eq!(got, &cta.global[64 + b..64 + b + 2], "{at:?}"),
                            None => assert_eq!(got, [0, 0], "{at:?}"),
                        }
                    }
                }
            }
        }
    }
}

/// As on an H200, the copy continues the line by the stride, then starts at the lower corner.
#[test]
fn an_im2col_copy_may_start_between_strided_positions() {
    let decl = TensorMapDecl {
        dtype: DType::F32,
        tile: Vec::new(),
        swizzle: Swizzle::None,
        mode: TensorMapMode::Im2col {
            lower: vec![-1],
            upper: vec![-1],
            channels: 4,
            pixels: 8,
            element_strides: vec![2],
        },
    };
    let (mut cta, v) = tensor(decl, &[4, 9, 2]);
    cta.run(&TensorLoad {
        offsets: vec![Operand::Imm(1)],
        ..load(v, &[0, 2, 0])
    });
    cta.complete();
    let pixels = [
        (3, 0),
        (5, 0),
        (7, 0),
        (0, 1),
        (2, 1),
        (4, 1),
        (6, 1),
        (8, 1),
    ];
    for (i, (w, n)) in pixels.into_iter().enumerate() {
        let (at, from) = (1152 + 16 * i, 64 + 16 * (w + 9 * n));
        assert_eq!(
            cta.shared[0][at..at + 16],
            cta.global[from..from + 16],
            "{i}"
        );
    }
}

#[test]
fn an_im2col_store_writes_the_in_bounds_pixels() {
    let extents = [8, 5, 4, 2];
    let decl = TensorMapDecl {
        dtype: DType::Bf16,
        tile: Vec::new(),
        swizzle: Swizzle::None,
        mode: TensorMapMode::Im2col {
            lower: vec![1, 0],
            upper: vec![1, 0],
            channels: 8,
            pixels: 13,
            element_strides: vec![2, 1],
        },
    };
    let negative_corner = TensorMapDecl {
        mode: TensorMapMode::Im2col {
            lower: vec![-1, 0],
            upper: vec![0, 0],
            channels: 8,
            pixels: 13,
            element_strides: vec![2, 1],
        },
        ..decl.clone()
    };
    assert!(
        negative_corner
            .check_store()
            .unwrap_err()
            .contains("is [-1, 0]")
    );
    let (mut cta, v) = tensor(decl, &extents);
    let positions = window_positions(&extents, &[1, 0], &[1, 0], &[2, 1]);
    // The last position of a line is past the tensor.
    let mut want = cta.global.clone();
    for (pixel, at) in positions[5..18].iter().enumerate() {
        if let Some(b) = element_offset(&extents, 2, &[&[0], &at[..]].concat()) {
            let from = 1152 + 16 * pixel;
            want[64 + b..64 + b + 16].copy_from_slice(&cta.shared[0][from..from + 16]);
        }
    }
    let first: Vec<_> = positions[5].iter().map(|&x| x as i32).collect();
    cta.run(&TensorStore {
        im2col: true,
        ..store(v, &[&[0], &first[..]].concat())
    });
    cta.complete();
    assert_eq!(cta.global, want);
}

#[test]
fn an_im2col_copy_must_start_inside_its_bounding_box() {
    let decl = TensorMapDecl {
        dtype: DType::Bf16,
        tile: Vec::new(),
        swizzle: Swizzle::None,
        mode: TensorMapMode::Im2col {
            lower: vec![-1, -1],
            upper: vec![-1, -1],
            channels: 8,
            pixels: 4,
            element_strides: vec![1, 2],
        },
    };
    let (mut cta, v) = tensor(decl, &[8, 6, 6, 2]);
    let load_at = |w, h| TensorLoad {
        offsets: vec![Operand::Imm(0); 2],
        ..load(v, &[0, w, h, 0])
    };
    cta.run(&load_at(-1, 3));
    let large_offset = TensorLoad {
        offsets: vec![Operand::Imm(0), Operand::Imm(256)],
        ..load_at(0, 1)
    };
    let f = cta.fault(&large_offset);
    assert!(
        f.text
            .contains("im2col offset 256; with 2 spatial dimensions it must be 0 to 255"),
        "{}",
        f.text
    );
    let f = cta.fault(&load_at(5, 1));
    assert_eq!(f.kind, FaultKind::Operand);
    assert!(
        f.text
            .contains("coordinate 1 = 5, outside the bounding box; it must be -1 to 4"),
        "{}",
        f.text
    );
    cta.maps[0].extents[2] = 0;
    let f = cta.fault(&load_at(0, 1));
    assert_eq!(f.kind, FaultKind::TensorMap);
}
