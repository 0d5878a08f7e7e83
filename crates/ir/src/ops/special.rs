//! Special registers and launch parameters.

use super::{Exactness, Instr, OpInfo, Uniform};
use crate::domain::Domain;
use crate::lanes::unsupported_type;
use crate::machine::{
    Asm, Axis, Effects, Exec, ExecStatus, Fault, FaultKind, Machine, Mask, Special, WARP,
};
use crate::target::Target;
use crate::types::Type;
use crate::value::{ParamId, RegId};

/// The text name and the PTX register of a special register along an axis.
macro_rules! by_axis {
    ($axis:expr, $name:literal, $register:literal) => {
        match $axis {
            Axis::X => (concat!($name, ".x"), concat!($register, ".x")),
            Axis::Y => (concat!($name, ".y"), concat!($register, ".y")),
            Axis::Z => (concat!($name, ".z"), concat!($register, ".z")),
        }
    };
}

/// Reads a special register.
///
/// Whole warps must execute [`Special::WarpId`]: a shuffle broadcasts lane 0's
/// value, so that ptxas treats it as uniform.
#[derive(Clone, PartialEq, Debug)]
pub struct ReadSpecial {
    /// Result: `U32`, or `U64` for [`Special::GlobalTimer`].
    pub dst: RegId,
    /// The special register.
    pub which: Special,
}

impl ReadSpecial {
    /// Returns the name in the text form and the PTX special register.
    fn names(&self) -> (&'static str, &'static str) {
        match self.which {
            Special::Tid => ("tid", "%tid.x"),
            Special::LaneId => ("lane_id", "%laneid"),
            Special::WarpId => ("warp_id", "%tid.x"),
            Special::CtaId(a) => by_axis!(a, "cta_id", "%ctaid"),
            Special::GridDim(a) => by_axis!(a, "grid_dim", "%nctaid"),
            Special::ClusterRank => ("cluster_rank", "%cluster_ctarank"),
            Special::ClusterSize => ("cluster_size", "%cluster_nctarank"),
            Special::ClusterCtaId(a) => by_axis!(a, "cluster_cta_id", "%cluster_ctaid"),
            Special::ClusterDim(a) => by_axis!(a, "cluster_dim", "%cluster_nctaid"),
            Special::ClusterId(a) => by_axis!(a, "cluster_id", "%clusterid"),
            Special::GridClusters(a) => by_axis!(a, "grid_clusters", "%nclusterid"),
            Special::SmId => ("sm_id", "%smid"),
            Special::SmCount => ("sm_count", "%nsmid"),
            Special::Clock => ("clock", "%clock"),
            Special::GlobalTimer => ("global_timer", "%globaltimer"),
        }
    }
}

impl Instr for ReadSpecial {
    const INFO: OpInfo = OpInfo {
        name: "special",
        ptx: "mov.{u32,u64} from %tid.x, %laneid, %ctaid, %nctaid, %cluster_ctarank, %cluster_nctarank, %cluster_ctaid, %cluster_nctaid, %clusterid, %nclusterid, %smid, %nsmid, %clock, %globaltimer",
        doc: "reads a special register: thread, lane, warp, CTA, cluster, SM, clock",
        exactness: Exactness::Machine,
    };
    fn name(&self) -> String {
        format!("special.{}", self.names().0)
    }
    fn effects(&self, e: &mut dyn Effects) {
        if self.which == Special::WarpId {
            e.whole_warp();
        }
        e.def(self.dst);
    }
    fn uniform(&self, _: Uniform) -> Uniform {
        match self.which {
            Special::Tid | Special::LaneId | Special::Clock | Special::GlobalTimer => Uniform::Lane,
            Special::WarpId => Uniform::Warp,
            _ => Uniform::Cta,
        }
    }
    fn asm(&self, a: &mut dyn Asm) {
        let (d, (_, register)) = (a.reg(self.dst), self.names());
        match self.which {
            Special::WarpId => {
                let [tid, warp] = [a.temp(Type::U32), a.temp(Type::U32)];
                a.emit(format!("mov.u32 {tid}, {register}"));
                a.emit(format!("shr.u32 {warp}, {tid}, 5"));
                a.emit(format!("shfl.sync.idx.b32 {d}, {warp}, 0, 31, 0xffffffff"));
            }
            Special::GlobalTimer => a.emit(format!("mov.u64 {d}, {register}")),
            _ => a.emit(format!("mov.u32 {d}, {register}")),
        }
    }
    fn transfer<D: Domain>(&self, d: &mut D) {
        let v = d.special(self.which);
        d.write(self.dst, v);
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        if self.which == Special::WarpId && m.active() != Mask::MAX {
            return Err(Fault::new(
                FaultKind::Convergence,
                format!(
                    "is executed by lanes {:#010x} only; all lanes of the warp must execute it together",
                    m.active()
                ),
            ));
        }
        let v = m.special(self.which);
        match self.which {
            Special::GlobalTimer => m.set(self.dst, &v),
            _ => m.set(self.dst, &v.map(|x| x as u32)),
        }
        Ok(ExecStatus::Completed)
    }
}

/// Reads a launch parameter: a scalar or a pointer.
#[derive(Clone, PartialEq, Debug)]
pub struct ReadParam {
    /// Result.
    pub dst: RegId,
    /// The parameter.
    pub param: ParamId,
    /// Type of the parameter; a pointer is `U64`.
    pub ty: Type,
}

impl Instr for ReadParam {
    const INFO: OpInfo = OpInfo {
        name: "param",
        ptx: "ld.param.{u8,b16,b32,b64}",
        doc: "reads a launch parameter: a scalar or a pointer",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("{}.{}", self.param, self.ty)
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.def(self.dst);
    }
    fn asm(&self, a: &mut dyn Asm) {
        let (d, name) = (a.reg(self.dst), a.param(self.param));
        // ld.param.u8 zero-extends into the 16-bit register of a u8.
        let suffix = if self.ty == Type::U8 {
            "u8"
        } else {
            self.ty.bits()
        };
        a.emit(format!("ld.param.{suffix} {d}, [{name}]"));
    }
    fn transfer<D: Domain>(&self, d: &mut D) {
        let v = d.param(self.param, self.ty);
        d.write(self.dst, v);
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let bits = m.param(self.param);
        match self.ty.bytes() {
            1 => m.set(self.dst, &[bits as u8; WARP]),
            2 => m.set(self.dst, &[bits as u16; WARP]),
            4 => m.set(self.dst, &[bits as u32; WARP]),
            8 => m.set(self.dst, &[bits; WARP]),
            _ => return Err(unsupported_type(self.ty)),
        }
        Ok(ExecStatus::Completed)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        match self.ty {
            Type::Pred => Err("a launch parameter cannot be a pred".into()),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::fake::{Warp, ptx, reg};

    fn read(which: Special) -> ReadSpecial {
        ReadSpecial { dst: reg(0), which }
    }

    #[test]
    fn special_registers_are_read_per_lane() {
        let tid = Warp::new().run(&read(Special::Tid)).read::<u32>(0);
        assert_eq!((tid[0], tid[31]), (96, 127));
        let cta = Warp::new()
            .run(&read(Special::CtaId(Axis::Y)))
            .read::<u32>(0);
        assert_eq!(cta, [101; 32]);
        let time = Warp::new().run(&read(Special::GlobalTimer)).read::<u64>(0);
        assert_eq!(time, [u64::MAX - 1; 32]);
    }

    #[test]
    fn the_warp_id_needs_the_whole_warp() {
        let warp = Warp::new().run(&read(Special::WarpId)).read::<u32>(0);
        assert_eq!(warp, [3; 32]);
        let fault = Warp::new().with_active(1).fault(&read(Special::WarpId));
        assert_eq!(fault.kind, FaultKind::Convergence);
    }

    #[test]
    fn special_registers_print_their_ptx_name() {
        let print = |which| ptx(&read(which)).join("; ");
        assert_eq!(print(Special::Tid), "mov.u32 %0, %tid.x");
        assert_eq!(print(Special::GridDim(Axis::Z)), "mov.u32 %0, %nctaid.z");
        assert_eq!(print(Special::ClusterRank), "mov.u32 %0, %cluster_ctarank");
        assert_eq!(
            print(Special::ClusterCtaId(Axis::Y)),
            "mov.u32 %0, %cluster_ctaid.y"
        );
        assert_eq!(
            print(Special::GridClusters(Axis::Z)),
            "mov.u32 %0, %nclusterid.z"
        );
        assert_eq!(print(Special::SmCount), "mov.u32 %0, %nsmid");
        assert_eq!(print(Special::GlobalTimer), "mov.u64 %0, %globaltimer");
        assert_eq!(
            print(Special::WarpId),
            "mov.u32 %t0, %tid.x; shr.u32 %t1, %t0, 5; shfl.sync.idx.b32 %0, %t1, 0, 31, 0xffffffff"
        );
        assert_eq!(read(Special::CtaId(Axis::X)).name(), "special.cta_id.x");
    }

    #[test]
    fn a_parameter_is_read_in_every_lane() {
        let param = |ty| ReadParam {
            dst: reg(0),
            param: ParamId(1),
            ty,
        };
        let mut warp = Warp::new();
        warp.params = vec![0, 0x1122_3344_5566_7788];
        assert_eq!(warp.clone().run(&param(Type::U8)).read::<u8>(0), [0x88; 32]);
        assert_eq!(
            warp.clone().run(&param(Type::Bf16)).read::<u16>(0),
            [0x7788; 32]
        );
        assert_eq!(
            warp.clone().run(&param(Type::F32)).read::<u32>(0),
            [0x5566_7788; 32]
        );
        assert_eq!(
            warp.clone().run(&param(Type::U64)).read::<u64>(0),
            [0x1122_3344_5566_7788; 32]
        );
        assert_eq!(ptx(&param(Type::U8)), ["ld.param.u8 %0, [param1]"]);
        assert_eq!(ptx(&param(Type::F32)), ["ld.param.b32 %0, [param1]"]);
        assert!(param(Type::Pred).legal(&Target::SM_90A).is_err());
        assert_eq!(warp.fault(&param(Type::Pred)).kind, FaultKind::Illegal);
    }
}
