// The operands of a wgmma must hold K in the same order.
use half::f16;
use warpline_ir::E4m3;
use warpline_ir::builder::*;

fn decoded(acc: &Acc, codes: TileRef<E4m3>, b: TileRef<f16>, decode: fn(Reg<u32>) -> [Reg<warpline_ir::F16x2>; 2]) {
    let a = RegBytes::load(&codes).decode::<f16>(decode);
    acc.mma(&a, &b);
}

fn transposed(acc: &Acc, a: RegOperand<f16, Quads>, b: TileRef<f16>) {
    acc.mma(&a, &b.t());
}

fn from_fragment(acc: &Acc, sums: &Frag, b: TileRef<E4m3>) {
    acc.mma(&sums.operand::<E4m3>(), &b);
}

fn main() {}
