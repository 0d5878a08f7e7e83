//! Operations on L2 cache lines.

use crate::lanes::lanes_of;
use crate::machine::{
    AccessKind, Asm, Completion, Effects, Exec, ExecStatus, Fault, FaultKind, Machine,
    MemoryAccess, MemoryRegion, Proxy, WARP,
};
use crate::ops::{Exactness, Instr, OpInfo};
use crate::types::Type;
use crate::value::{MemoryAddress, Operand};

/// Bytes of a cache line.
const LINE: u32 = 128;

/// The byte that the CPU executor writes to discarded lines.
const JUNK: u8 = 0xdb;

/// Rejects an address that is not aligned to a cache line.
fn check_line<M: Machine>(m: &mut M, addr: Operand) -> Result<(), Fault> {
    let addresses = m.get::<u64>(addr);
    match lanes_of(m.active()).find(|&lane| addresses[lane] % u64::from(LINE) != 0) {
        None => Ok(()),
        Some(lane) => Err(Fault::new(
            FaultKind::Misaligned,
            format!(
                "has address {:#x} in lane {lane}; it must be a multiple of {LINE}",
                addresses[lane]
            ),
        )),
    }
}

/// Resets the eviction priority of a global cache line to `evict_normal`.
#[derive(Clone, PartialEq, Debug)]
pub struct ApplyPriority {
    /// The address of the line (`u64`), a multiple of 128.
    pub addr: Operand,
}

impl Instr for ApplyPriority {
    const INFO: OpInfo = OpInfo {
        name: "apply_priority",
        ptx: "applypriority.global.L2::evict_normal",
        doc: "resets the L2 eviction priority of a line to evict_normal, after evict_last",
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
        Ok(ExecStatus::Completed)
    }
}

/// Discards a global cache line without writing it back: a write of undefined bytes.
#[derive(Clone, PartialEq, Debug)]
pub struct Discard {
    /// The address of the line (`u64`), a multiple of 128.
    pub addr: Operand,
}

impl Instr for Discard {
    const INFO: OpInfo = OpInfo {
        name: "discard",
        ptx: "discard.global.L2",
        doc: "discards an L2 line without writing it back; its bytes are undefined until written",
        exactness: Exactness::Machine,
    };
    fn name(&self) -> String {
        "discard".into()
    }
    fn effects(&self, e: &mut dyn Effects) {
        let at = MemoryAddress::Global {
            addr: self.addr,
            offset: 0,
        };
        e.access(&MemoryAccess {
            memory: MemoryRegion::PerLane(at, LINE),
            access: AccessKind::Write,
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
            let at = MemoryAddress::Global {
                addr: self.addr,
                offset,
            };
            m.store(m.active(), &at, 16, &[[JUNK; 16]; WARP])?;
        }
        Ok(ExecStatus::Completed)
    }
}
