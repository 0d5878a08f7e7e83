//! The barrier of a cluster.

use super::control::acts;
use super::{Exactness, Info, Instr};
use crate::machine::Asm;
use crate::sync::Sync;
use crate::target::Target;

/// Refuses a target without clusters.
pub(super) fn legal_cluster(target: &Target) -> Result<(), String> {
    match target.features.clusters {
        true => Ok(()),
        false => Err(format!("{} has no clusters of CTAs", target.name)),
    }
}

/// Arrives at the cluster's barrier and goes on.
#[derive(Clone, PartialEq, Debug)]
pub struct ClusterArrive {
    /// Are this thread's writes seen by those who wait?
    pub release: bool,
}

impl ClusterArrive {
    fn act(&self) -> Sync {
        Sync::ClusterArrive {
            release: self.release,
        }
    }

    fn order(&self) -> &'static str {
        if self.release { "release" } else { "relaxed" }
    }
}

impl Instr for ClusterArrive {
    const INFO: Info = Info {
        name: "cluster_arrive",
        ptx: "barrier.cluster.arrive.{release,relaxed}.aligned",
        doc: "arrives at the cluster's barrier and goes on",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("cluster_arrive.{}", self.order())
    }
    fn asm(&self, a: &mut dyn Asm) {
        a.emit(format!("barrier.cluster.arrive.{}.aligned", self.order()));
    }
    acts!(whole_warp);
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_cluster(target)
    }
}

/// Waits until all threads of the cluster have arrived.
#[derive(Clone, PartialEq, Debug)]
pub struct ClusterWait;

impl ClusterWait {
    fn act(&self) -> Sync {
        Sync::ClusterWait
    }
}

impl Instr for ClusterWait {
    const INFO: Info = Info {
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
    acts!(whole_warp);
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_cluster(target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::fake::{Warp, ptx};

    #[test]
    fn each_op_is_one_act() {
        let warp = Warp::new()
            .run(&ClusterArrive { release: true })
            .run(&ClusterWait);
        let arrived = Sync::ClusterArrive { release: true };
        assert_eq!(warp.syncs, [arrived, Sync::ClusterWait]);
    }

    #[test]
    fn ptx_of_the_barrier() {
        let arrive = |release| ptx(&ClusterArrive { release });
        assert_eq!(arrive(true), ["barrier.cluster.arrive.release.aligned"]);
        assert_eq!(arrive(false), ["barrier.cluster.arrive.relaxed.aligned"]);
        assert_eq!(ptx(&ClusterWait), ["barrier.cluster.wait.acquire.aligned"]);
    }

    #[test]
    fn a_target_without_clusters_refuses() {
        let mut t = Target::SM_90A;
        assert_eq!(ClusterWait.legal(&t), Ok(()));
        t.features.clusters = false;
        assert!(
            ClusterWait
                .legal(&t)
                .unwrap_err()
                .contains("sm_90a has no clusters")
        );
    }
}
