//! Compiles roles to linear code.

use warpline_ir::{Block, Kernel, Op, Operand, RegId, StmtKind, Type};

/// One instruction.
#[derive(Debug)]
pub(super) enum Inst<'k> {
    Op(&'k Op),
    /// Continues with the lanes whose predicate is set; jumps to `other` if there are none.
    If {
        cond: RegId,
        other: usize,
    },
    /// Continues with the other lanes; jumps to `end` if there are none.
    Else {
        end: usize,
    },
    /// Continues with all lanes that reached the statement.
    End,
    /// Continues with one lane.
    Elect,
    /// Starts a loop: sets the counter.
    For {
        var: RegId,
        from: Operand,
    },
    /// Continues with the lanes that have an iteration left; jumps to `end` if there are none.
    ForTest {
        var: RegId,
        to: Operand,
        signed: bool,
        end: usize,
    },
    /// Advances the counter and jumps to `head`.
    Next {
        var: RegId,
        step: Operand,
        head: usize,
    },
    /// Starts a `while` loop.
    While,
    /// Continues with the lanes whose predicate is set; jumps to `end` if there are none.
    WhileTest {
        cond: RegId,
        end: usize,
    },
    Jump(usize),
}

/// Returns the code of each role, with the prologue and the epilogue.
pub(super) fn compile(kernel: &Kernel) -> Vec<Vec<Inst<'_>>> {
    let role = |body| {
        let mut code = Vec::new();
        for block in [&kernel.prologue, body, &kernel.epilogue] {
            compile_block(kernel, block, &mut code);
        }
        code
    };
    kernel.roles.iter().map(|r| role(&r.body)).collect()
}

fn compile_block<'k>(kernel: &Kernel, block: &'k Block, code: &mut Vec<Inst<'k>>) {
    for stmt in &block.0 {
        match &stmt.kind {
            StmtKind::Op(op) => code.push(Inst::Op(op)),
            StmtKind::If { cond, then, other } => {
                let at = code.len();
                code.push(Inst::End);
                compile_block(kernel, then, code);
                let middle = code.len();
                code.push(Inst::End);
                compile_block(kernel, other, code);
                let end = code.len();
                code.push(Inst::End);
                code[at] = Inst::If {
                    cond: *cond,
                    other: middle,
                };
                code[middle] = Inst::Else { end };
            }
            StmtKind::Elect { body } => {
                code.push(Inst::Elect);
                compile_block(kernel, body, code);
                code.push(Inst::End);
            }
            StmtKind::For {
                var,
                from,
                to,
                step,
                body,
                ..
            } => {
                code.push(Inst::For {
                    var: *var,
                    from: *from,
                });
                let head = code.len();
                code.push(Inst::End);
                compile_block(kernel, body, code);
                code.push(Inst::Next {
                    var: *var,
                    step: *step,
                    head,
                });
                let end = code.len();
                code.push(Inst::End);
                code[head] = Inst::ForTest {
                    var: *var,
                    to: *to,
                    signed: kernel.ty(*var) == Type::I32,
                    end,
                };
            }
            StmtKind::While { head, cond, body } => {
                code.push(Inst::While);
                let first = code.len();
                compile_block(kernel, head, code);
                let test = code.len();
                code.push(Inst::End);
                compile_block(kernel, body, code);
                code.push(Inst::Jump(first));
                let end = code.len();
                code.push(Inst::End);
                code[test] = Inst::WhileTest { cond: *cond, end };
            }
        }
    }
}

/// Returns whether another warp or an engine can observe when the op runs.
pub(super) fn is_visible(op: &Op) -> bool {
    matches!(
        op,
        Op::MbarrierInit(_)
            | Op::MbarrierInval(_)
            | Op::MbarrierArrive(_)
            | Op::MbarrierExpectTx(_)
            | Op::MbarrierWait(_)
            | Op::MbarrierTest(_)
            | Op::CopyArrive(_)
            | Op::CopyWait(_)
            | Op::BulkWait(_)
            | Op::NamedSync(_)
            | Op::NamedArrive(_)
            | Op::CtaSync(_)
            | Op::ClusterArrive(_)
            | Op::ClusterWait(_)
            | Op::Atomic(_)
            | Op::AtomicReduce(_)
            | Op::StrongLoad(_)
            | Op::StrongStore(_)
    )
}

/// Returns whether the machine does not support the op.
pub(super) fn is_unsupported(op: &Op) -> bool {
    matches!(
        op,
        Op::Wgmma(_)
            | Op::WgmmaFence(_)
            | Op::WgmmaCommit(_)
            | Op::WgmmaWait(_)
            | Op::TensorLoad(_)
            | Op::TensorStore(_)
            | Op::NamedReduce(_)
            | Op::SetMaxRegs(_)
            | Op::Exit(_)
    )
}
