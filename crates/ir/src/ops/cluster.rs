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
