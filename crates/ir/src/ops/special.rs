//! What the machine and the launch tell a thread.

use super::{Exactness, Info, Instr, Uniform};
use crate::domain::Domain;
use crate::lanes::no_such_type;
use crate::machine::{
    Asm, Axis, Effects, Exec, Fault, FaultKind, Machine, Mask, Special, Step, WARP,
};
use crate::target::Target;
use crate::types::Type;
use crate::value::{ParamId, RegId};

/// The name and the register of an axis.
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
/// [`Special::WarpId`] must be reached by whole warps: it is handed from lane 0
/// to the others, so that ptxas knows it to be the same in all of them.
#[derive(Clone, PartialEq, Debug)]
pub struct ReadSpecial {
    /// Result: `U32`, or `U64` for [`Special::GlobalTimer`].
    pub dst: RegId,
    /// Which one.
    pub which: Special,
}

impl ReadSpecial {
    /// The name in the text form, and the special register it is read from.
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
    const INFO: Info = Info {
        name: "special",
        ptx: "mov.{u32,u64} from %tid.x, %laneid, %ctaid, %nctaid, %cluster_ctarank, %cluster_nctarank, %cluster_ctaid, %cluster_nctaid, %clusterid, %nclusterid, %smid, %nsmid, %clock, %globaltimer",
        doc: "reads a special register: thread, lane, warp, CTA, cluster, SM, clocks",
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
                    "warp_id is read by whole warps; the active lanes are {:#010x}",
                    m.active()
                ),
            ));
        }
        let v = m.special(self.which);
        match self.which {
            Special::GlobalTimer => m.set(self.dst, &v),
            _ => m.set(self.dst, &v.map(|x| x as u32)),
        }
        Ok(Step::Next)
    }
}

/// Reads a launch parameter: a number, or the address behind a pointer.
#[derive(Clone, PartialEq, Debug)]
pub struct ReadParam {
    /// Result.
    pub dst: RegId,
    /// Which parameter.
    pub param: ParamId,
    /// Its type; an address is `U64`.
    pub ty: Type,
}

impl Instr for ReadParam {
    const INFO: Info = Info {
        name: "param",
        ptx: "ld.param.{u8,b16,b32,b64}",
        doc: "reads a launch parameter: a number, or an address",
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
        // A u8 widens into its 16-bit register.
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
            _ => return Err(no_such_type(self.ty)),
        }
        Ok(Step::Next)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        match self.ty {
            Type::Pred => Err("a parameter has any type but pred".into()),
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
    fn special_registers_are_read_lane_by_lane() {
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
    fn special_registers_are_spelled_as_ptx_wants_them() {
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
    fn parameters_fill_every_lane() {
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
