//! The cluster barrier.

use super::control::sync_instr;
use super::{Exactness, Instr, OpInfo};
use crate::machine::Asm;
use crate::sync::SyncOp;
use crate::target::Target;

/// Rejects a target without clusters.
pub(super) fn legal_cluster(target: &Target) -> Result<(), String> {
    match target.features.clusters {
        true => Ok(()),
        false => Err(format!(
            "{} does not support thread block clusters",
            target.name
        )),
    }
}

/// Arrives at the cluster barrier without waiting.
#[derive(Clone, PartialEq, Debug)]
pub struct ClusterArrive {
    /// Releases this thread's writes to the threads that wait; otherwise relaxed.
    pub release: bool,
}

impl ClusterArrive {
    fn sync_op(&self) -> SyncOp {
        SyncOp::ClusterArrive {
            release: self.release,
        }
    }

    fn order(&self) -> &'static str {
        if self.release { "release" } else { "relaxed" }
    }
}

impl Instr for ClusterArrive {
    const INFO: OpInfo = OpInfo {
        name: "cluster_arrive",
        ptx: "barrier.cluster.arrive.{release,relaxed}.aligned",
        doc: "arrives at the cluster barrier without waiting",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("cluster_arrive.{}", self.order())
    }
    fn asm(&self, a: &mut dyn Asm) {
        a.emit(format!("barrier.cluster.arrive.{}.aligned", self.order()));
    }
    sync_instr!(whole_warp);
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_cluster(target)
    }
}

/// Waits until all threads of the cluster have arrived.
#[derive(Clone, PartialEq, Debug)]
pub struct ClusterWait;

impl ClusterWait {
    fn sync_op(&self) -> SyncOp {
        SyncOp::ClusterWait
    }
}

impl Instr for ClusterWait {
    const INFO: OpInfo = OpInfo {
        name: "cluster_wait",
        ptx: "barrier.cluster.wait.acquire.aligned",
        doc: "waits until all threads of the cluster have arrived",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        "cluster_wait".into()
    }
    fn asm(&self, a: &mut dyn Asm) {
        a.emit("barrier.cluster.wait.acquire.aligned".into());
    }
    sync_instr!(whole_warp);
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_cluster(target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::fake::{Warp, ptx};

    #[test]
    fn each_op_is_one_sync_op() {
        let warp = Warp::new()
            .run(&ClusterArrive { release: true })
            .run(&ClusterWait);
        let arrived = SyncOp::ClusterArrive { release: true };
        assert_eq!(warp.syncs, [arrived, SyncOp::ClusterWait]);
    }

    #[test]
    fn the_cluster_barrier_prints_its_memory_order() {
        let arrive = |release| ptx(&ClusterArrive { release });
        assert_eq!(arrive(true), ["barrier.cluster.arrive.release.aligned"]);
        assert_eq!(arrive(false), ["barrier.cluster.arrive.relaxed.aligned"]);
        assert_eq!(ptx(&ClusterWait), ["barrier.cluster.wait.acquire.aligned"]);
    }

    #[test]
    fn a_target_without_clusters_is_rejected() {
        let mut t = Target::SM_90A;
        assert_eq!(ClusterWait.legal(&t), Ok(()));
        t.features.clusters = false;
        assert!(
            ClusterWait
                .legal(&t)
                .unwrap_err()
                .contains("sm_90a does not support thread block clusters")
        );
    }
}
