mod im2col;

use super::*;
use crate::job::fake::{Cta, GLOBAL, Rng, bar, view};
use crate::job::{Job, JobCompletion, Span};
use crate::lanes::fake::{arg, ptx};
use crate::layout::{Swizzle, TileLayout};
use crate::machine::FaultKind;
use crate::machine::ResolvedBarrier;
use crate::ops::Instr;
use crate::ops::bulk::{CacheHint, Reduction};
use crate::target::Target;
use crate::tensor_map::TensorMapDecl;
use crate::tensor_map::{TensorMapMode, TensorMapValue};
use crate::types::DType;
use crate::value::{ParamId, View};

const BASE: u64 = GLOBAL + 64;

/// Returns the layout of a tile of one panel.
fn panel(rows: u32, inner: u32, element: u32, swizzle: Swizzle) -> TileLayout {
    TileLayout {
        element_bytes: element,
        rows,
        cols: inner,
        swizzle,
    }
}

/// Returns a CTA with a dense tensor of random bytes, its map, and a tile for the box.
///
/// The address of the tile is not aligned to the swizzle pattern.
fn tensor(decl: TensorMapDecl, extents: &[u64]) -> (Cta, View) {
    let map = TensorMapValue::dense(decl.clone(), BASE, extents);
    map.check().unwrap();
    let size = decl.dtype.bytes() as u32;
    let total = extents.iter().product::<u64>() as usize * size as usize;
    let inner = decl.inner();
    let rows = decl.bytes() / size / inner;
    let mut cta =
        Cta::new(2, 64 + total + 64).tile(1024 + 128, panel(rows, inner, size, decl.swizzle));
    cta.global = Rng(3).bytes(cta.global.len());
    cta.maps.push(map);
    cta.warp.active = 1;
    (cta, view(0, 0, rows, 0, inner))
}

fn imm(coords: &[i32]) -> Vec<Operand> {
    coords.iter().map(|&c| Operand::imm(c)).collect()
}

fn load(dst: View, coords: &[i32]) -> TensorLoad {
    TensorLoad {
        map: ParamId(0),
        dst,
        coords: imm(coords),
        offsets: Vec::new(),
        bar: bar(5),
        multicast: None,
        hint: None,
    }
}

fn store(src: View, coords: &[i32]) -> TensorStore {
    TensorStore {
        map: ParamId(0),
        src,
        coords: imm(coords),
        im2col: false,
        reduce: None,
        hint: None,
    }
}

fn tiled(dtype: DType, tile: &[u32], swizzle: Swizzle) -> TensorMapDecl {
    TensorMapDecl {
        dtype,
        tile: tile.to_vec(),
        swizzle,
        mode: TensorMapMode::Tiled,
    }
}

/// Returns every index of a box, the first dimension fastest.
fn indices(sides: &[u32]) -> Vec<Vec<i64>> {
    let total: u32 = sides.iter().product();
    (0..total)
        .map(|mut i| {
            sides
                .iter()
                .map(|&s| {
                    let x = i % s;
                    i /= s;
                    i64::from(x)
                })
                .collect()
        })
        .collect()
}

/// Returns the byte offset of an element, if it is in bounds.
fn element_offset(extents: &[u64], size: usize, at: &[i64]) -> Option<usize> {
    let mut byte = 0;
    let mut stride = size;
    for (&c, &e) in at.iter().zip(extents) {
        if c < 0 || c as u64 >= e {
            return None;
        }
        byte += c as usize * stride;
        stride *= e as usize;
    }
    Some(byte)
}

/// Boxes of every rank, and tensors that are not multiples of them.
const CASES: &[(DType, &[u32], &[u64], Swizzle)] = &[
    (DType::F32, &[32], &[100], Swizzle::None),
    (DType::U8, &[64], &[160], Swizzle::B64),
    (DType::Bf16, &[64, 24], &[136, 40], Swizzle::B128),
    (DType::F16, &[32, 10], &[72, 17], Swizzle::B64),
    (DType::F32, &[8, 9], &[20, 11], Swizzle::B32),
    (DType::Bf16, &[64, 5, 3], &[72, 7, 4], Swizzle::B128),
    (DType::U16, &[8, 3, 2, 2], &[24, 5, 3, 4], Swizzle::None),
    (
        DType::I32,
        &[4, 2, 3, 2, 2],
        &[12, 3, 4, 3, 3],
        Swizzle::None,
    ),
    (
        DType::F32,
        &[16, 2, 3, 2, 2],
        &[20, 3, 4, 3, 3],
        Swizzle::B64,
    ),
];

/// Returns coordinates before, across and past every side of a tensor.
fn coordinates(dtype: DType, tile: &[u32], extents: &[u64]) -> Vec<Vec<i32>> {
    let granule = 16 / dtype.bytes() as i32;
    let mut rng = Rng(11);
    let mut all = vec![vec![0; tile.len()]];
    for _ in 0..40 {
        let pick = |(&t, &e): (&u32, &u64)| rng.range(-i64::from(t) - 1, e as i64 + 2) as i32;
        let mut coords: Vec<i32> = tile.iter().zip(extents).map(pick).collect();
        coords[0] = coords[0].div_euclid(granule) * granule;
        all.push(coords);
    }
    all
}

#[test]
fn a_load_of_any_rank_equals_the_naive_loop_with_zero_fill() {
    for &(dtype, tile, extents, swizzle) in CASES {
        let (mut cta, v) = tensor(tiled(dtype, tile, swizzle), extents);
        let size = dtype.bytes();
        for coords in coordinates(dtype, tile, extents) {
            cta.run(&load(v, &coords));
            assert_eq!(
                cta.jobs[0].completion(),
                JobCompletion::Bytes(ResolvedBarrier { cta: 0, slot: 5 })
            );
            let bytes = tile.iter().product::<u32>() * size as u32;
            assert_eq!(
                cta.complete(),
                [bytes],
                "out-of-bounds elements count as transaction bytes"
            );
            for (i, at) in indices(tile).iter().enumerate() {
                let at: Vec<_> = at
                    .iter()
                    .zip(&coords)
                    .map(|(x, &c)| x + i64::from(c))
                    .collect();
                let byte = swizzle.apply(1024 + 128 + (i * size) as u32) as usize;
                let got = &cta.shared[0][byte..byte + size];
                match element_offset(extents, size, &at) {
                    Some(b) => assert_eq!(
                        got,
                        &cta.global[64 + b..64 + b + size],
                        "{tile:?} {coords:?} {at:?}"
                    ),
                    None => assert!(got.iter().all(|&x| x == 0), "{tile:?} {coords:?} {at:?}"),
                }
            }
        }
    }
}

#[test]
fn a_store_of_any_rank_equals_the_naive_loop_and_writes_nothing_else() {
    for &(dtype, tile, extents, swizzle) in CASES {
        let (mut cta, v) = tensor(tiled(dtype, tile, swizzle), extents);
        let size = dtype.bytes();
        for mut coords in coordinates(dtype, tile, extents) {
            coords.iter_mut().for_each(|c| *c = (*c).max(0));
            let mut want = cta.global.clone();
            for (i, at) in indices(tile).iter().enumerate() {
                let at: Vec<_> = at
                    .iter()
                    .zip(&coords)
                    .map(|(x, &c)| x + i64::from(c))
                    .collect();
                let byte = swizzle.apply(1024 + 128 + (i * size) as u32) as usize;
                if let Some(b) = element_offset(extents, size, &at) {
                    want[64 + b..64 + b + size].copy_from_slice(&cta.shared[0][byte..byte + size]);
                }
            }
            cta.warp.active = 1 << 9;
            cta.run(&store(v, &coords));
            assert_eq!(
                cta.jobs[0].completion(),
                JobCompletion::BulkGroup { lane: 9 }
            );
            cta.complete();
            assert_eq!(cta.global, want, "{tile:?} {coords:?}");
            cta.shared[0] = Rng(u64::from(coords[0] as u32) + 5).bytes(cta.shared[0].len());
        }
    }
}

#[test]
fn a_store_must_not_start_before_the_tensor_or_misaligned() {
    let (mut cta, v) = tensor(tiled(DType::F32, &[8, 3], Swizzle::B32), &[12, 4]);
    for reduce in [None, Some(Reduction::Add)] {
        let store_at = |coords: &[i32]| TensorStore {
            reduce,
            ..store(v, coords)
        };
        cta.run(&store_at(&[12, 4]));
        let f = cta.fault(&store_at(&[4, -1]));
        assert_eq!(f.kind, FaultKind::Operand);
        assert!(f.text.starts_with("has coordinate 1 = -1"), "{}", f.text);
        let f = cta.fault(&store_at(&[3, 0]));
        assert!(f.text.contains("element 3 of f32, byte 12,"), "{}", f.text);
    }
    cta.run(&load(v, &[-8, -1]));
}

#[test]
fn strides_may_have_padding() {
    let (mut cta, v) = tensor(tiled(DType::F32, &[4, 3], Swizzle::None), &[16, 8]);
    cta.maps[0].strides[0] = 80;
    cta.run(&load(v, &[4, 1]));
    cta.complete();
    for row in 0..3 {
        let (at, from) = (1152 + 16 * row, 64 + 80 * (1 + row) + 16);
        assert_eq!(cta.shared[0][at..at + 16], cta.global[from..from + 16]);
    }
}

#[test]
fn one_3d_box_fills_a_wide_swizzled_tile() {
    let (rows, cols, extents) = (16u32, 128u32, [64u64, 16, 2]);
    let (mut cta, _) = tensor(tiled(DType::Bf16, &[64, rows, 2], Swizzle::B128), &extents);
    let layout = panel(rows, cols, 2, Swizzle::B128);
    cta.tiles[0] = (2048, layout);
    cta.run(&load(view(0, 0, rows, 0, cols), &[0, 0, 0]));
    cta.complete();
    for (row, col) in (0..rows).flat_map(|r| (0..cols).map(move |c| (r, c))) {
        let at = 2048 + layout.offset(row, col) as usize;
        let from = 64 + 2 * (col % 64 + 64 * (row + 16 * (col / 64))) as usize;
        assert_eq!(
            cta.shared[0][at..at + 2],
            cta.global[from..from + 2],
            "{row} {col}"
        );
    }
}

#[test]
fn a_copy_may_fill_some_rows_of_one_panel() {
    let (mut cta, _) = tensor(tiled(DType::Bf16, &[64, 8], Swizzle::B128), &[64, 16]);
    let layout = panel(32, 128, 2, Swizzle::B128);
    cta.tiles[0] = (1024, layout);
    cta.run(&load(view(0, 16, 8, 64, 64), &[0, 3]));
    cta.complete();
    for (row, col) in (0..8).flat_map(|r| (0..64).map(move |c| (r, c))) {
        let at = 1024 + layout.offset(16 + row, 64 + col) as usize;
        let from = 64 + 2 * (col + 64 * (row + 3)) as usize;
        assert_eq!(
            cta.shared[0][at..at + 2],
            cta.global[from..from + 2],
            "{row} {col}"
        );
    }
}

#[test]
fn element_strides_skip_elements() {
    let decl = TensorMapDecl {
        mode: TensorMapMode::Strided {
            element_strides: vec![1, 3, 2],
        },
        ..tiled(DType::F32, &[4, 3, 2], Swizzle::None)
    };
    let extents = [12, 8, 5];
    let (mut cta, v) = tensor(decl, &extents);
    for coords in [[0, 0, 0], [4, -2, 1], [8, 3, 4]] {
        cta.run(&load(v, &coords));
        assert_eq!(cta.complete(), [4 * 3 * 2 * 4]);
        for (i, at) in indices(&[4, 3, 2]).iter().enumerate() {
            let at: Vec<_> = (at.iter().zip(&coords).zip([1, 3, 2]))
                .map(|((x, &c), step)| x * step + i64::from(c))
                .collect();
            let got = &cta.shared[0][1152 + 4 * i..1152 + 4 * i + 4];
            match element_offset(&extents, 4, &at) {
                Some(b) => assert_eq!(got, &cta.global[64 + b..64 + b + 4], "{at:?}"),
                None => assert_eq!(got, [0; 4], "{at:?}"),
            }
        }
    }
}

#[test]
fn a_reducing_store_updates_in_bounds_elements() {
    let (mut cta, v) = tensor(tiled(DType::I32, &[8, 3], Swizzle::B32), &[12, 4]);
    let mut want = cta.global.clone();
    for (i, at) in indices(&[8, 3]).iter().enumerate() {
        let at = [at[0] + 8, at[1] + 2];
        let from = Swizzle::B32.apply(1152 + 4 * i as u32) as usize;
        if let Some(b) = element_offset(&[12, 4], 4, &at) {
            let number = |bytes: &[u8]| bytemuck::pod_read_unaligned::<i32>(bytes);
            let sum = number(&want[64 + b..64 + b + 4])
                .wrapping_add(number(&cta.shared[0][from..from + 4]));
            want[64 + b..64 + b + 4].copy_from_slice(&sum.to_le_bytes());
        }
    }
    cta.run(&TensorStore {
        reduce: Some(Reduction::Add),
        ..store(v, &[8, 2])
    });
    assert!(cta.jobs[0].is_reduction());
    cta.complete();
    assert_eq!(cta.global, want);
    let (mut cta, v) = tensor(tiled(DType::F32, &[8, 3], Swizzle::B32), &[12, 4]);
    let f = cta.fault(&TensorStore {
        reduce: Some(Reduction::Min),
        ..store(v, &[8, 2])
    });
    assert_eq!(f.kind, FaultKind::TensorMap);
    assert!(
        f.text.contains("does not support reduction min of f32"),
        "{}",
        f.text
    );
}

#[test]
fn a_box_prefetch_checks_its_operands_and_issues_no_job() {
    let (mut cta, _) = tensor(tiled(DType::F32, &[32, 4], Swizzle::None), &[64, 8]);
    let prefetch = |coords: &[i32]| TensorPrefetchBox {
        map: ParamId(0),
        coords: imm(coords),
        offsets: Vec::new(),
        hint: None,
    };
    cta.run(&prefetch(&[-4, 100]));
    assert!(cta.jobs.is_empty());
    let f = cta.fault(&prefetch(&[0]));
    assert_eq!(f.kind, FaultKind::TensorMap);
}

#[test]
fn a_multicast_writes_the_same_offset_in_every_receiver() {
    let (mut cta, v) = tensor(tiled(DType::F32, &[32, 4], Swizzle::B128), &[64, 8]);
    cta.run(&TensorLoad {
        multicast: Some(Operand::Imm(3)),
        ..load(v, &[0, 0])
    });
    let completions: Vec<_> = cta.jobs.iter().map(Job::completion).collect();
    let want = [0, 1].map(|cta| JobCompletion::Bytes(ResolvedBarrier { cta, slot: 5 }));
    assert_eq!(completions, want);
    cta.complete();
    assert_eq!(
        cta.shared[0][1152..1152 + 512],
        cta.shared[1][1152..1152 + 512]
    );
}

#[test]
fn each_active_lane_issues_its_own_box() {
    let (cta, v) = tensor(tiled(DType::F32, &[4], Swizzle::None), &[64]);
    let mut cta = cta.tile(0, panel(1, 4, 4, Swizzle::None));
    cta.warp = cta
        .warp
        .clone()
        .with(1, &[0i32, 4, 8, 12])
        .with_active(0b1010);
    cta.run(&TensorStore {
        coords: vec![arg(1)],
        ..store(v, &[0])
    });
    let mut to = Vec::new();
    cta.jobs.iter().for_each(|j| j.writes(&mut |s| to.push(s)));
    assert_eq!(to, [4, 12].map(|c| Span::Global(BASE + 4 * c, 16)));
}

#[test]
fn faults_name_the_rule_and_the_value() {
    let fault = |change: &dyn Fn(&mut Cta, &mut TensorLoad)| {
        let (mut cta, v) = tensor(tiled(DType::Bf16, &[64, 8], Swizzle::B128), &[64, 8]);
        let mut op = load(v, &[0, 0]);
        change(&mut cta, &mut op);
        let f = cta.fault(&op);
        (f.kind, f.text)
    };
    let assert_fault = |got: (FaultKind, String), kind, text: &str| {
        assert_eq!(got.0, kind, "{}", got.1);
        assert!(got.1.contains(text), "{}", got.1);
    };
    assert_fault(
        fault(&|_, op| op.coords.truncate(1)),
        FaultKind::TensorMap,
        "has 1 coordinates; its tensor map has rank 2",
    );
    assert_fault(
        fault(&|_, op| op.offsets.push(Operand::Imm(0))),
        FaultKind::TensorMap,
        "1 im2col offsets; its tiled tensor map of rank 2 needs 0",
    );
    assert_fault(
        fault(&|_, op| op.dst.rows = 7),
        FaultKind::TensorMap,
        "a box of 1024 bytes and a view of 896",
    );
    assert_fault(
        fault(&|cta, _| cta.tiles[0].1.swizzle = Swizzle::B64),
        FaultKind::TensorMap,
        "a tensor map with layout swizzle 128B and a tile with swizzle 64B",
    );
    assert_fault(
        fault(&|cta, _| cta.tiles[0].0 = 1024 + 64),
        FaultKind::Misaligned,
        "has shared address 0x440; it must be a multiple of 128 bytes",
    );
    assert_fault(
        fault(&|cta, op| {
            cta.tiles[0].1 = panel(16, 128, 2, Swizzle::B128);
            op.dst = view(0, 0, 4, 0, 128);
        }),
        FaultKind::TensorMap,
        "a view of rows 0..4 of 16",
    );
    assert_fault(
        fault(&|_, op| op.bar.peer = Some(Operand::Imm(1))),
        FaultKind::Operand,
        "in the CTA of rank 0 but its mbarrier in the CTA of rank 1",
    );
    assert_fault(
        fault(&|_, op| op.multicast = Some(Operand::Imm(6))),
        FaultKind::Operand,
        "has multicast mask 0x6;",
    );
    assert_fault(
        fault(&|cta, _| cta.maps[0].decl.tile = vec![32, 16]),
        FaultKind::TensorMap,
        "a box with 64 bytes along the innermost dimension; it must equal the swizzle span of 128 bytes",
    );
}

#[test]
fn copies_print_their_rank_mode_and_operands() {
    let v = view(0, 0, 8, 0, 64);
    let all_options = TensorLoad {
        map: ParamId(2),
        coords: vec![arg(1), Operand::imm(-1)],
        multicast: Some(arg(3)),
        hint: Some(CacheHint::EvictFirst),
        ..load(v, &[])
    };
    assert_eq!(
        ptx(&all_options),
        [
            "cvt.u16.u32 %t0, %3",
            "mov.b64 %t1, 0x12f0000000000000",
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint \
             [view], [param2, {%1, 4294967295}], [barrier], %t0, %t1",
        ]
    );
    let im2col = TensorLoad {
        offsets: vec![arg(7), Operand::Imm(2)],
        ..load(v, &[0, 1, 2, 3])
    };
    assert_eq!(
        ptx(&im2col),
        [
            "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes \
          [view], [param0, {0, 1, 2, 3}], [barrier], {%7, 2}"
        ]
    );
    assert_eq!(
        ptx(&store(v, &[0])),
        ["cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [param0, {0}], [view]"]
    );
    let im2col_store = TensorStore {
        im2col: true,
        reduce: Some(Reduction::Max),
        ..store(v, &[0, 1, 2])
    };
    assert_eq!(
        ptx(&im2col_store),
        [
            "cp.reduce.async.bulk.tensor.3d.global.shared::cta.max.im2col_no_offs.bulk_group [param0, {0, 1, 2}], [view]"
        ]
    );
    let prefetch = TensorPrefetchBox {
        map: ParamId(1),
        coords: imm(&[0, 1, 2]),
        offsets: vec![arg(7)],
        hint: None,
    };
    assert_eq!(
        ptx(&prefetch),
        ["cp.async.bulk.prefetch.tensor.3d.L2.global.im2col [param1, {0, 1, 2}], {%7}"]
    );
    assert_eq!(
        ptx(&TensorPrefetch { map: ParamId(0) }),
        ["prefetch.tensormap [param0]"]
    );
}

#[test]
fn unsupported_ranks_starts_and_peers_are_rejected() {
    let v = view(0, 0, 8, 0, 64);
    let t = Target::SM_90A;
    assert_eq!(load(v, &[0; 5]).legal(&t), Ok(()));
    assert!(
        load(v, &[0; 6])
            .legal(&t)
            .unwrap_err()
            .contains("6 coordinates")
    );
    assert!(
        load(v, &[])
            .legal(&t)
            .unwrap_err()
            .contains("0 coordinates")
    );
    let im2col = TensorLoad {
        offsets: vec![Operand::Imm(0)],
        ..load(v, &[0; 4])
    };
    assert!(
        im2col
            .legal(&t)
            .unwrap_err()
            .contains("1 offsets for 4 coordinates")
    );
    let im2col_store = TensorStore {
        im2col: true,
        ..store(v, &[0; 2])
    };
    assert!(
        im2col_store
            .legal(&t)
            .unwrap_err()
            .contains("2 coordinates")
    );
    let negative_start = store(v, &[0, 3, -2]).legal(&t).unwrap_err();
    assert!(
        negative_start.starts_with("tensor_store has coordinate 2 = -2"),
        "{negative_start}"
    );
    let register_coords = TensorStore {
        coords: vec![arg(1), Operand::Imm(0)],
        ..store(v, &[])
    };
    assert_eq!(register_coords.legal(&t), Ok(()));
    let peer = View {
        peer: Some(Operand::Imm(1)),
        ..v
    };
    assert!(
        store(peer, &[0])
            .legal(&t)
            .unwrap_err()
            .contains("from a tile of a peer")
    );
}

/// Values measured on an H200.
#[test]
fn a_tf32_map_rounds_to_nearest_even() {
    let cases = [
        (0x3f80_0fff, 0x3f80_0000),
        (0x3f80_1000, 0x3f80_0000),
        (0x3f80_1001, 0x3f80_2000),
        (0x3f81_3000, 0x3f81_4000),
        (0xbf81_3000, 0xbf81_4000),
        (0x0000_1000, 0),
        (0x0000_1001, 0x0000_2000),
        (0x007f_ffff, 0x0080_0000),
        (0x7f7f_ffff, 0x7f80_0000),
        (0xff80_0000, 0xff80_0000),
        (0x7f80_0001, 0x7fff_e000),
        (0xffc0_1234, 0x7fff_e000),
    ];
    for (x, want) in cases {
        assert_eq!(super::job::to_tf32(x), want, "{x:#x}");
    }
}
