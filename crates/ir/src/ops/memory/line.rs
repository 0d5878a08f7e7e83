//! What becomes of whole lines of the L2.

use crate::lanes::lanes_of;
use crate::machine::{
    Access, Asm, Completion, Effects, Exec, Fault, FaultKind, Machine, Memory, Proxy, Step, Touch,
    WARP,
};
use crate::ops::{Exactness, Info, Instr};
use crate::types::Type;
use crate::value::{At, Operand};

/// Bytes of a line.
const LINE: u32 = 128;

/// What the CPU leaves in bytes that mean nothing.
const JUNK: u8 = 0xdb;

/// Refuses an address inside a line.
fn check_line<M: Machine>(m: &mut M, addr: Operand) -> Result<(), Fault> {
    let at = m.get::<u64>(addr);
    match lanes_of(m.active()).find(|&lane| at[lane] % u64::from(LINE) != 0) {
        None => Ok(()),
        Some(lane) => Err(Fault::new(
            FaultKind::Misaligned,
            format!(
                "the address of a line is a multiple of {LINE}, not {:#x} in lane {lane}",
                at[lane]
            ),
        )),
    }
}

/// Takes a line of global memory for one as others again, after it was kept for long.
#[derive(Clone, PartialEq, Debug)]
pub struct ApplyPriority {
    /// The line (`u64`), a multiple of 128.
    pub addr: Operand,
}

impl Instr for ApplyPriority {
    const INFO: Info = Info {
        name: "apply_priority",
        ptx: "applypriority.global.L2::evict_normal",
        doc: "has the L2 keep a line as other lines, after evict_last",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        "apply_priority.evict_normal".into()
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.arg(self.addr, Type::U64);
    }
    fn asm(&self, a: &mut dyn Asm) {
        let addr = a.in_reg(self.addr, Type::U64);
        a.emit(format!(
            "applypriority.global.L2::evict_normal [{addr}], {LINE}"
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        check_line(m, self.addr)?;
        Ok(Step::Next)
    }
}

/// Drops a line of global memory without writing it back: a write of bytes that mean nothing.
#[derive(Clone, PartialEq, Debug)]
pub struct Discard {
    /// The line (`u64`), a multiple of 128.
    pub addr: Operand,
}

impl Instr for Discard {
    const INFO: Info = Info {
        name: "discard",
        ptx: "discard.global.L2",
        doc: "drops a line of the L2 without writing it back; its bytes mean nothing until they are written",
        exactness: Exactness::Machine,
    };
    fn name(&self) -> String {
        "discard".into()
    }
    fn effects(&self, e: &mut dyn Effects) {
        let at = At::Global {
            addr: self.addr,
            offset: 0,
        };
        e.touch(&Touch {
            memory: Memory::At(at, LINE),
            access: Access::Write,
            proxy: Proxy::Generic,
            completion: Completion::Now,
            multicast: None,
        });
    }
    fn asm(&self, a: &mut dyn Asm) {
        let addr = a.in_reg(self.addr, Type::U64);
        a.emit(format!("discard.global.L2 [{addr}], {LINE}"));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        check_line(m, self.addr)?;
        for offset in (0..LINE as i32).step_by(16) {
            let at = At::Global {
                addr: self.addr,
                offset,
            };
            m.store(m.active(), &at, 16, &[[JUNK; 16]; WARP])?;
        }
        Ok(Step::Next)
    }
}
