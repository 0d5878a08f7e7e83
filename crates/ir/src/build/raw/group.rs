//! The CTA, the cluster and the grid: meetings, places, registers, dependent launches.

use crate::build::reg::Reg;
use crate::build::state::emit;
use crate::build::warp::special;
use crate::machine::{Axis, Special};
use crate::ops::cluster::{ClusterArrive, ClusterWait};
use crate::ops::control::{
    CtaSync, Exit, LaunchDependents, Nanosleep, SetMaxRegs, Trap, WaitPrerequisites,
};

/// All threads of the CTA meet.
#[track_caller]
pub fn cta_sync() {
    emit(CtaSync);
}

/// All threads of the cluster meet and see each other's memory.
#[track_caller]
pub fn cluster_sync() {
    emit(ClusterArrive { release: true });
    emit(ClusterWait);
}

/// Arrives at the cluster's barrier.
#[track_caller]
pub fn cluster_arrive() {
    emit(ClusterArrive { release: true });
}

/// As [`cluster_arrive`], passing nothing on of what this thread wrote.
#[track_caller]
pub fn cluster_arrive_relaxed() {
    emit(ClusterArrive { release: false });
}

/// Waits for all threads of the cluster to arrive.
#[track_caller]
pub fn cluster_wait() {
    emit(ClusterWait);
}

/// CTAs of the cluster.
#[track_caller]
pub fn cluster_size() -> Reg<u32> {
    special(Special::ClusterSize)
}

/// The CTA's index in its cluster, by axis.
#[track_caller]
pub fn cluster_cta_id(axis: Axis) -> Reg<u32> {
    special(Special::ClusterCtaId(axis))
}

/// CTAs of the cluster, by axis.
#[track_caller]
pub fn cluster_dim(axis: Axis) -> Reg<u32> {
    special(Special::ClusterDim(axis))
}

/// The cluster's index in the grid, by axis.
#[track_caller]
pub fn cluster_id_along(axis: Axis) -> Reg<u32> {
    special(Special::ClusterId(axis))
}

/// Clusters of the grid, by axis.
#[track_caller]
pub fn grid_clusters_along(axis: Axis) -> Reg<u32> {
    special(Special::GridClusters(axis))
}

/// CTAs of the grid, by axis.
#[track_caller]
pub fn grid_ctas_along(axis: Axis) -> Reg<u32> {
    special(Special::GridDim(axis))
}

/// One more than the highest number of an SM.
#[track_caller]
pub fn sm_count() -> Reg<u32> {
    special(Special::SmCount)
}

/// Gives registers back to the CTA's pool, so that each thread of the warpgroup has `count`.
///
/// A role that asks for registers ([`RoleDecl::registers`](crate::build::RoleDecl::registers)) does this at its start.
#[track_caller]
pub fn give_registers(count: u32) {
    emit(SetMaxRegs { count, grow: false });
}

/// Takes registers from the CTA's pool, so that each thread of the warpgroup
/// has `count`; waits until the pool can give them.
#[track_caller]
pub fn take_registers(count: u32) {
    emit(SetMaxRegs { count, grow: true });
}

/// Lets the grid that depends on this one start, once every CTA has said so or left.
#[track_caller]
pub fn launch_dependents() {
    emit(LaunchDependents);
}

/// Waits until the grids this one depends on are complete, and sees their memory.
#[track_caller]
pub fn wait_prerequisites() {
    emit(WaitPrerequisites);
}

/// Lets the warp rest for about `ns` nanoseconds.
#[track_caller]
pub fn nanosleep(ns: u32) {
    emit(Nanosleep { ns });
}

/// Ends the threads of each warp that runs it, before the end of their role.
#[track_caller]
pub fn exit() {
    emit(Exit);
}

/// Stops the kernel with an error.
#[track_caller]
pub fn trap() {
    emit(Trap);
}
