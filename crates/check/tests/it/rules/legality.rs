use warpline_ir::ops::arith::Add;
use warpline_ir::{Operand, Type};
use warpline_testkit::raw::RawKernel;

#[test]
fn an_op_that_the_target_lacks_is_refuted() {
    let mut k = RawKernel::one();
    let dst = k.reg(Type::Tf32);
    let one = Operand::Imm(1);
    k.push(
        10,
        Add {
            ty: Type::Tf32,
            dst,
            a: one,
            b: one,
        },
    );
    let text = k.refuted("S.op", 10);
    assert!(text.contains("does not support tf32"), "{text}");
}
