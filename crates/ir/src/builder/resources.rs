//! The SM resources of a kernel, computed without building its code.

use super::declare::Builder;
use super::{finalize, state};
use crate::error::BuildErrors;
use crate::program::Role;
use crate::target::Target;

/// The SM resources of a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Resources {
    /// The threads of a CTA.
    pub threads: u32,
    /// The bytes of shared memory of a CTA.
    pub shared_bytes: u32,
    /// The CTAs of a cluster.
    pub cluster: u32,
    /// The roles, by ascending first warp.
    pub roles: Vec<RoleResources>,
}

/// The SM resources of a role.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RoleResources {
    /// The name.
    pub name: String,
    /// The number of warps.
    pub warps: u32,
    /// The register budget for `setmaxnreg`; `None` keeps the launch default.
    pub registers: Option<u32>,
}

impl Resources {
    /// Returns the resources of the kernel that `body` declares. Role bodies do not run, so the
    /// pass takes microseconds; the sizes are exact.
    ///
    /// ```
    /// use warpline_ir::builder::*;
    /// use warpline_ir::{Kernel, Target};
    ///
    /// fn copy(k: Builder, stages: u32) {
    ///     let (x, y) = (k.pointer::<f32>("x"), k.pointer::<f32>("y"));
    ///     let ring = k.ring("tiles", stages, |s| s.vector::<f32>(1024));
    ///     k.role("load").body(|| elect(|| {
    ///         let slot = ring.acquire();
    ///         slot.load_bytes(slot.tiles(), x.address(0u32), 4096u32);
    ///         slot.commit();
    ///     }));
    ///     k.role("store").body(|| elect(|| {
    ///         let slot = ring.wait();
    ///         bulk_store(slot.tiles(), y.address(0u32), 4096u32);
    ///         bulk_commit();
    ///         bulk_wait(0);
    ///         slot.release();
    ///     }));
    /// }
    /// let target = Target::SM_90A;
    /// let resources = Resources::of(&target, |k| copy(k, 3))?;
    /// let kernel = Kernel::build("copy", &target, |k| copy(k, 3))?;
    /// assert_eq!(resources.shared_bytes, kernel.shared_bytes);
    /// assert_eq!(resources.threads, 64);
    /// # Ok::<(), warpline_ir::BuildErrors>(())
    /// ```
    pub fn of(target: &Target, body: impl FnOnce(Builder)) -> Result<Self, BuildErrors> {
        let open = state::declare_only(target);
        body(Builder::new());
        let kernel = finalize::finalize(open.close())?;
        let role = |r: &Role| RoleResources {
            name: r.name.clone(),
            warps: r.warps,
            registers: r.registers,
        };
        Ok(Self {
            threads: kernel.threads(),
            shared_bytes: kernel.shared_bytes,
            cluster: kernel.cluster_size(),
            roles: kernel.roles.iter().map(role).collect(),
        })
    }
}
