//! CTA, cluster and grid: barriers, indices, `setmaxnreg`, dependent launches.

use crate::builder::reg::Reg;
use crate::builder::state::emit;
use crate::builder::warp::special;
use crate::machine::{Axis, Special};
use crate::ops::cluster::{ClusterArrive, ClusterWait};
use crate::ops::control::{
    CtaSync, Exit, LaunchDependents, Nanosleep, SetMaxRegs, Trap, WaitPrerequisites,
};

/// Synchronizes all threads of the CTA (`bar.sync 0`).
#[track_caller]
pub fn cta_sync() {
    emit(CtaSync);
}

/// Synchronizes all threads of the cluster and orders their memory accesses
/// (`barrier.cluster.arrive` and `.wait`).
#[track_caller]
pub fn cluster_sync() {
    emit(ClusterArrive { release: true });
    emit(ClusterWait);
}

/// Arrives at the cluster barrier with release order (`barrier.cluster.arrive.release`).
#[track_caller]
pub fn cluster_arrive() {
    emit(ClusterArrive { release: true });
}

/// Arrives at the cluster barrier without memory ordering (`barrier.cluster.arrive.relaxed`).
#[track_caller]
pub fn cluster_arrive_relaxed() {
    emit(ClusterArrive { release: false });
}

/// Waits until all threads of the cluster have arrived (`barrier.cluster.wait`).
#[track_caller]
pub fn cluster_wait() {
    emit(ClusterWait);
}

/// Returns the number of CTAs of the cluster.
#[track_caller]
pub fn cluster_size() -> Reg<u32> {
    special(Special::ClusterSize)
}

/// Returns the CTA's index in its cluster along an axis.
#[track_caller]
pub fn cluster_cta_id(axis: Axis) -> Reg<u32> {
    special(Special::ClusterCtaId(axis))
}

/// Returns the number of CTAs of the cluster along an axis.
#[track_caller]
pub fn cluster_dim(axis: Axis) -> Reg<u32> {
    special(Special::ClusterDim(axis))
}

/// Returns the cluster's index in the grid along an axis.
#[track_caller]
pub fn cluster_id_along(axis: Axis) -> Reg<u32> {
    special(Special::ClusterId(axis))
}

/// Returns the number of clusters of the grid along an axis.
#[track_caller]
pub fn grid_clusters_along(axis: Axis) -> Reg<u32> {
    special(Special::GridClusters(axis))
}

/// Returns the number of CTAs of the grid along an axis.
#[track_caller]
pub fn grid_ctas_along(axis: Axis) -> Reg<u32> {
    special(Special::GridDim(axis))
}

/// Returns the highest SM index plus 1 (`%nsmid`).
#[track_caller]
pub fn sm_count() -> Reg<u32> {
    special(Special::SmCount)
}

/// Releases registers to the CTA's pool, so that each thread of the warpgroup keeps `count`
/// (`setmaxnreg.dec`).
///
/// [`RoleDecl::registers`](crate::builder::RoleDecl::registers) emits it at the start of a role.
#[track_caller]
pub fn setmaxnreg_dec(count: u32) {
    emit(SetMaxRegs { count, grow: false });
}

/// Waits for registers of the CTA's pool, so that each thread of the warpgroup has `count`
/// (`setmaxnreg.inc`).
#[track_caller]
pub fn setmaxnreg_inc(count: u32) {
    emit(SetMaxRegs { count, grow: true });
}

/// Allows the dependent grid to start once every CTA has called this or exited
/// (`griddepcontrol.launch_dependents`).
#[track_caller]
pub fn launch_dependents() {
    emit(LaunchDependents);
}

/// Waits until the grids that this grid depends on are complete and their writes are visible
/// (`griddepcontrol.wait`).
#[track_caller]
pub fn wait_prerequisites() {
    emit(WaitPrerequisites);
}

/// Suspends the warp for about `ns` nanoseconds (`nanosleep`).
#[track_caller]
pub fn nanosleep(ns: u32) {
    emit(Nanosleep { ns });
}

/// Exits the calling threads before the end of their role (`exit`).
#[track_caller]
pub fn exit() {
    emit(Exit);
}

/// Aborts the kernel with an error (`trap`).
#[track_caller]
pub fn trap() {
    emit(Trap);
}
