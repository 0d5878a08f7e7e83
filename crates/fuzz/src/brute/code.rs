//! Roles as linear code.

use warpline_ir::{Block, Kernel, Op, Operand, RegId, StmtKind, Type};

/// One instruction.
#[derive(Debug)]
pub(super) enum Inst<'k> {
    Op(&'k Op),
    /// Lanes whose predicate is set go on; if there is none, at `other`.
    If {
        cond: RegId,
        other: usize,
    },
    /// The other lanes go on; if there is none, at `end`.
    Else {
        end: usize,
    },
    /// All lanes that came to the statement go on.
    End,
    /// One lane goes on.
    Elect,
    /// A loop begins: the counter is set.
    For {
        var: RegId,
        from: Operand,
    },
    /// Lanes with a round left go on; if there is none, at `end`.
    Below {
        var: RegId,
        to: Operand,
        signed: bool,
        end: usize,
    },
    /// The counter grows; on to `head`.
    Next {
        var: RegId,
        step: Operand,
        head: usize,
    },
    /// A `while` begins.
    While,
    /// Lanes whose predicate is set go on; if there is none, at `end`.
    Test {
        cond: RegId,
        end: usize,
    },
    Jump(usize),
}

/// The code of each role, with what runs before and after it.
pub(super) fn compile(kernel: &Kernel) -> Vec<Vec<Inst<'_>>> {
    let role = |body| {
        let mut code = Vec::new();
        for block in [&kernel.prologue, body, &kernel.epilogue] {
            add(kernel, block, &mut code);
        }
        code
    };
    kernel.roles.iter().map(|r| role(&r.body)).collect()
}

fn add<'k>(kernel: &Kernel, block: &'k Block, code: &mut Vec<Inst<'k>>) {
    for stmt in &block.0 {
        match &stmt.kind {
            StmtKind::Op(op) => code.push(Inst::Op(op)),
            StmtKind::If { cond, then, other } => {
                let at = code.len();
                code.push(Inst::End);
                add(kernel, then, code);
                let middle = code.len();
                code.push(Inst::End);
                add(kernel, other, code);
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
                add(kernel, body, code);
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
                add(kernel, body, code);
                code.push(Inst::Next {
                    var: *var,
                    step: *step,
                    head,
                });
                let end = code.len();
                code.push(Inst::End);
                code[head] = Inst::Below {
                    var: *var,
                    to: *to,
                    signed: kernel.ty(*var) == Type::I32,
                    end,
                };
            }
            StmtKind::While { head, cond, body } => {
                code.push(Inst::While);
                let first = code.len();
                add(kernel, head, code);
                let test = code.len();
                code.push(Inst::End);
                add(kernel, body, code);
                code.push(Inst::Jump(first));
                let end = code.len();
                code.push(Inst::End);
                code[test] = Inst::Test { cond: *cond, end };
            }
        }
    }
}

/// May another warp or an engine tell when the op runs?
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

/// Is the op outside of what this machine runs?
pub(super) fn is_foreign(op: &Op) -> bool {
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
