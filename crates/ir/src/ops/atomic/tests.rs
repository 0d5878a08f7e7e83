//! Atomics, reductions, strong loads and stores.

use super::*;
use crate::job::fake::{Cta, GLOBAL, shared_address};
use crate::lanes::fake::{arg, ptx, reg};
use crate::layout::{Swizzle, TileLayout};
use crate::ops::Instr;
use crate::sync::Scope;
use crate::target::Target;

const IN_GLOBAL: MemoryAddress = MemoryAddress::Global {
    addr: Operand::Imm(GLOBAL),
    offset: 0,
};

fn in_shared() -> MemoryAddress {
    MemoryAddress::Shared(shared_address(0, Operand::Imm(0)))
}

/// Returns a CTA with `word` at the start of global and shared memory, and `operands` in register 1.
fn cta(ty: Type, word: u64, operands: &[u64]) -> Cta {
    let mut cta = Cta::new(1, 16).tile(
        0,
        TileLayout {
            element_bytes: 8,
            rows: 1,
            cols: 2,
            swizzle: Swizzle::None,
        },
    );
    let n = ty.bytes();
    cta.global[..n].copy_from_slice(&word.to_le_bytes()[..n]);
    cta.shared[0][..n].copy_from_slice(&word.to_le_bytes()[..n]);
    cta.warp = cta
        .warp
        .clone()
        .with(1, operands)
        .with_active((1 << operands.len()) - 1);
    cta
}

fn op(op: AtomicOp, ty: Type, at: MemoryAddress) -> Atomic {
    Atomic {
        op,
        ty,
        dst: vec![reg(0)],
        at,
        values: vec![arg(1)],
        compare: None,
        order: MemoryOrder::relaxed(Scope::Gpu),
    }
}

fn red(op: AtomicOp, ty: Type, at: MemoryAddress, n: u32) -> AtomicReduce {
    AtomicReduce {
        op,
        ty,
        at,
        values: (1..=n).map(arg).collect(),
        order: MemoryOrder::release(Scope::Gpu),
    }
}

fn word(bytes: &[u8], ty: Type) -> u64 {
    let mut word_bytes = [0; 8];
    word_bytes[..ty.bytes()].copy_from_slice(&bytes[..ty.bytes()]);
    u64::from_le_bytes(word_bytes)
}

/// Executes an atomic in all lanes; returns the final word and the old word of each lane.
fn run(o: AtomicOp, ty: Type, start: u64, operands: &[u64]) -> (u64, Vec<u64>) {
    let mut cta = cta(ty, start, operands);
    cta.run(&op(o, ty, IN_GLOBAL));
    let old = match ty.bytes() {
        8 => cta.warp.read::<u64>(0).to_vec(),
        2 => cta.warp.read::<u16>(0).map(u64::from).to_vec(),
        _ => cta.warp.read::<u32>(0).map(u64::from).to_vec(),
    };
    (word(&cta.global, ty), old[..operands.len()].to_vec())
}

#[test]
fn lanes_update_one_after_another() {
    use AtomicOp::*;
    let negative = |x: i32| u64::from(-x as u32);
    let assert_update = |o, ty, start, operands: &[u64], end, old: &[u64]| {
        assert_eq!(
            run(o, ty, start, operands),
            (end, old.to_vec()),
            "{o:?} {ty}"
        );
    };
    assert_update(Add, Type::U32, 5, &[1, 2, 3], 11, &[5, 6, 8]);
    assert_update(Add, Type::U32, 0xffff_ffff, &[1], 0, &[0xffff_ffff]);
    assert_update(Add, Type::I32, 1, &[negative(3)], negative(2), &[1]);
    assert_update(Add, Type::U64, u64::MAX, &[2], 1, &[u64::MAX]);
    assert_update(
        Min,
        Type::I32,
        1,
        &[negative(1), 7],
        negative(1),
        &[1, negative(1)],
    );
    assert_update(Min, Type::U32, 1, &[negative(1)], 1, &[1]);
    assert_update(Max, Type::U64, 1, &[9, 4], 9, &[1, 9]);
    assert_update(Max, Type::I64, u64::MAX, &[0], 0, &[u64::MAX]);
    assert_update(And, Type::U32, 0b1110, &[0b0111], 0b0110, &[0b1110]);
    assert_update(Or, Type::U64, 1 << 40, &[1], 1 << 40 | 1, &[1 << 40]);
    assert_update(Xor, Type::U32, 0b1110, &[0b0111], 0b1001, &[0b1110]);
    assert_update(Inc, Type::U32, 1, &[3, 3, 3, 3], 1, &[1, 2, 3, 0]);
    assert_update(Inc, Type::U32, 9, &[3], 0, &[9]);
    assert_update(Dec, Type::U32, 1, &[3, 3, 3], 2, &[1, 0, 3]);
    assert_update(Dec, Type::U32, 9, &[3], 3, &[9]);
    assert_update(Exch, Type::U32, 1, &[2, 3], 3, &[1, 2]);
    // 1, 2, 3.5 in f16; 1, 2, 4 in bf16.
    assert_update(
        Add,
        Type::F16,
        0x3c00,
        &[0x3c00, 0x3e00],
        0x4300,
        &[0x3c00, 0x4000],
    );
    assert_update(
        Add,
        Type::Bf16,
        0x3f80,
        &[0x3f80, 0x4000],
        0x4080,
        &[0x3f80, 0x4000],
    );
}

#[test]
fn float_sums_flush_subnormals_of_f32_in_global_memory_only() {
    let (tiny, one) = (1u64, u64::from(1f32.to_bits()));
    let add = |ty, a, b| run(AtomicOp::Add, ty, a, &[b]).0;
    assert_eq!(add(Type::F32, one, one), u64::from(2f32.to_bits()));
    assert_eq!(add(Type::F32, tiny, tiny), 0);
    let mut cta = cta(Type::F32, tiny, &[tiny]);
    cta.run(&op(AtomicOp::Add, Type::F32, in_shared()));
    assert_eq!(word(&cta.shared[0], Type::F32), 2);
    // 1 + 1 paired with a subnormal, in f16 and in bf16.
    assert_eq!(add(Type::F16x2, 0x0001_3c00, 0x0001_3c00), 0x0002_4000);
    assert_eq!(add(Type::Bf16x2, 0x0001_3f80, 0x0001_3f80), 0x0002_4000);
    assert_eq!(add(Type::F16, 1, 1), 2);
    assert_eq!(add(Type::Bf16, 1, 1), 2);
}

#[test]
fn float_sums_return_the_canonical_nan() {
    let add = |ty, a, b| run(AtomicOp::Add, ty, a, &[b]).0;
    assert_eq!(add(Type::F32, 0x7f80_0000, 0xff80_0000), 0x7fff_ffff);
    assert_eq!(add(Type::F32, 0xffc1_2345, 0), 0x7fff_ffff);
    assert_eq!(add(Type::F16x2, 0x7c00_fe12, 0xfc00_0000), 0x7fff_7fff);
    assert_eq!(add(Type::Bf16x2, 0x7f80_ffc1, 0xff80_0000), 0x7fff_7fff);
}

#[test]
fn cas_writes_if_the_old_word_equals_the_compare_operand() {
    let mut cta = cta(Type::U32, 5, &[7, 8, 9]);
    cta.warp = cta.warp.clone().with(2, &[5u32, 5, 7]);
    cta.run(&Atomic {
        compare: Some(arg(2)),
        ..op(AtomicOp::Cas, Type::U32, in_shared())
    });
    assert_eq!(word(&cta.shared[0], Type::U32), 9);
    assert_eq!(cta.warp.read::<u32>(0)[..3], [5, 7, 7]);
}

#[test]
fn vector_atomics_update_each_word() {
    let mut cta = cta(Type::F32, 0, &[u64::from(1f32.to_bits())]);
    cta.global[..16].copy_from_slice(bytemuck::cast_slice(&[1f32, 2.0, 3.0, 4.0]));
    cta.run(&Atomic {
        dst: (10..14).map(reg).collect(),
        values: vec![arg(1); 4],
        ..op(AtomicOp::Add, Type::F32, IN_GLOBAL)
    });
    let end: &[f32] = bytemuck::cast_slice(&cta.global[..16]);
    assert_eq!(end, [2.0, 3.0, 4.0, 5.0]);
    let old = [10, 11, 12, 13].map(|r| cta.warp.read::<f32>(r)[0]);
    assert_eq!(old, [1.0, 2.0, 3.0, 4.0]);
}

#[test]
fn strong_accesses_pass_their_order_to_the_machine() {
    let mut cta = cta(Type::U64, 40, &[2]);
    cta.run(&StrongLoad {
        ty: Type::U64,
        dst: reg(0),
        at: IN_GLOBAL,
        order: MemoryOrder::acquire(Scope::Gpu),
    });
    assert_eq!(cta.warp.read::<u64>(0)[0], 40);
    cta.run(&red(AtomicOp::Add, Type::U64, IN_GLOBAL, 1));
    assert_eq!(word(&cta.global, Type::U64), 42);
    cta.run(&StrongStore {
        ty: Type::U64,
        src: Operand::Imm(9),
        at: IN_GLOBAL,
        order: MemoryOrder::relaxed(Scope::Cta),
    });
    assert_eq!(word(&cta.global, Type::U64), 9);
    assert_eq!(
        cta.orders,
        [
            MemoryOrder::acquire(Scope::Gpu),
            MemoryOrder::release(Scope::Gpu),
            MemoryOrder::relaxed(Scope::Cta)
        ]
    );
    assert!(cta.warp.syncs.is_empty());
}

#[test]
fn vector_reductions_update_each_word() {
    let mut cta = cta(Type::F32, 0, &[0]);
    let start = [1f32, 2.0, 3.0, 4.0];
    cta.global.copy_from_slice(bytemuck::cast_slice(&start));
    for (r, x) in [0.5f32, 0.25, -3.0, 8.0].into_iter().enumerate() {
        cta.warp = cta.warp.clone().with(r as u32 + 1, &[x, x]);
    }
    cta.warp.active = 0b11;
    cta.run(&red(AtomicOp::Add, Type::F32, IN_GLOBAL, 4));
    let end: &[f32] = bytemuck::cast_slice(&cta.global);
    assert_eq!(end, [2.0, 2.5, -3.0, 20.0]);
}

#[test]
fn atomics_print_their_order_space_and_type() {
    let text = |o, ty, at| ptx(&op(o, ty, at)).remove(0);
    use AtomicOp::*;
    for (o, ty, at, suffix) in [
        (Add, Type::F32, IN_GLOBAL, "global.add.f32"),
        (Add, Type::I64, IN_GLOBAL, "global.add.u64"),
        (Add, Type::Bf16x2, in_shared(), "shared.add.noftz.bf16x2"),
        (Add, Type::F16, in_shared(), "shared.add.noftz.f16"),
        (Min, Type::I32, in_shared(), "shared.min.s32"),
        (Or, Type::I32, in_shared(), "shared.or.b32"),
        (Xor, Type::U64, IN_GLOBAL, "global.xor.b64"),
        (Inc, Type::U32, IN_GLOBAL, "global.inc.u32"),
        (Exch, Type::F16x2, IN_GLOBAL, "global.exch.b32"),
    ] {
        let want = format!("atom.relaxed.gpu.{suffix} %0, [address], %1");
        assert_eq!(text(o, ty, at), want);
    }
    let cas = Atomic {
        compare: Some(arg(2)),
        order: MemoryOrder::acq_rel(Scope::Cluster),
        ..op(Cas, Type::U64, IN_GLOBAL)
    };
    assert_eq!(
        ptx(&cas),
        ["atom.acq_rel.cluster.global.cas.b64 %0, [address], %2, %1"]
    );
    assert_eq!(
        ptx(&red(Max, Type::U32, IN_GLOBAL, 1)),
        ["red.release.gpu.global.max.u32 [address], %1"]
    );
    let vector_add = Atomic {
        dst: vec![reg(3), reg(4)],
        values: vec![arg(1), arg(2)],
        ..op(Add, Type::Bf16, IN_GLOBAL)
    };
    assert_eq!(
        ptx(&vector_add),
        ["atom.relaxed.gpu.global.add.noftz.v2.bf16 {%3, %4}, [address], {%1, %2}"]
    );
    assert_eq!(vector_add.ptx_version(), (8, 1));
    let vector_reduce = red(Add, Type::F16x2, IN_GLOBAL, 2);
    assert_eq!(
        ptx(&vector_reduce),
        ["red.release.gpu.global.add.noftz.v2.f16x2 [address], {%1, %2}"]
    );
    assert_eq!(vector_reduce.ptx_version(), (8, 1));
    let load = StrongLoad {
        ty: Type::F32,
        dst: reg(0),
        at: IN_GLOBAL,
        order: MemoryOrder::acquire(Scope::Sys),
    };
    assert_eq!(ptx(&load), ["ld.acquire.sys.global.b32 %0, [address]"]);
    let store = StrongStore {
        ty: Type::U32,
        src: arg(1),
        at: in_shared(),
        order: MemoryOrder::release(Scope::Cluster),
    };
    assert_eq!(ptx(&store), ["st.release.cluster.shared.b32 [address], %1"]);
}

#[test]
fn illegal_types_widths_and_orders_are_rejected() {
    let t = Target::SM_90A;
    let assert_rejected = |r: Result<(), String>, text: &str| {
        let why = r.unwrap_err();
        assert!(why.contains(text), "{why}");
    };
    use AtomicOp::*;
    assert_eq!(op(Add, Type::F32, IN_GLOBAL).legal(&t), Ok(()));
    assert_rejected(
        op(Min, Type::F32, IN_GLOBAL).legal(&t),
        "atomic min does not support f32",
    );
    assert_rejected(
        op(Inc, Type::I32, IN_GLOBAL).legal(&t),
        "atomic inc does not support i32; supported types: u32",
    );
    assert_rejected(
        op(Add, Type::U16, IN_GLOBAL).legal(&t),
        "does not support u16",
    );
    assert_rejected(
        op(Cas, Type::U32, IN_GLOBAL).legal(&t),
        "atomic cas requires a compare operand",
    );
    assert_rejected(
        red(Exch, Type::U32, IN_GLOBAL, 1).legal(&t),
        "red does not support exch",
    );
    assert_eq!(red(Add, Type::F32, IN_GLOBAL, 4).legal(&t), Ok(()));
    assert_eq!(red(Add, Type::F16, IN_GLOBAL, 8).legal(&t), Ok(()));
    assert_rejected(
        red(Add, Type::F32, IN_GLOBAL, 8).legal(&t),
        "8 words of f32",
    );
    assert_rejected(
        op(Exch, Type::F16, IN_GLOBAL).legal(&t),
        "does not support f16",
    );
    let uneven = Atomic {
        dst: vec![reg(3), reg(4)],
        ..op(Add, Type::F32, IN_GLOBAL)
    };
    assert_rejected(uneven.legal(&t), "1 operands for 2 results");
    assert_rejected(
        red(Add, Type::U32, IN_GLOBAL, 2).legal(&t),
        "2 words of u32",
    );
    assert_rejected(
        red(Add, Type::F32, IN_GLOBAL, 3).legal(&t),
        "3 words of f32",
    );
    assert_rejected(
        red(Add, Type::F32, in_shared(), 2).legal(&t),
        "shared memory",
    );
    let acquire = AtomicReduce {
        order: MemoryOrder::acquire(Scope::Gpu),
        ..red(Add, Type::U32, IN_GLOBAL, 1)
    };
    assert_rejected(
        acquire.legal(&t),
        "a reduction does not support acquire; supported: relaxed, release",
    );
    let load = StrongLoad {
        ty: Type::U32,
        dst: reg(0),
        at: IN_GLOBAL,
        order: MemoryOrder::release(Scope::Gpu),
    };
    assert_rejected(
        load.legal(&t),
        "does not support release; supported: relaxed, acquire",
    );
}
